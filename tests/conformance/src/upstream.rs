//! The MCP server that stands behind a gateway under test: it writes down each call that reaches
//! it.
//!
//! | file in its folder | what it is |
//! |---|---|
//! | `calls` | one line for each call: its name and arguments, as they came |
//! | `definition` | which definitions it lists: 1, or 2 or 3, which differ |
//! | `held` | as long as this is there, `slow` does not answer |

use std::fs::{self, File};
use std::io::{self, BufRead as _, Write as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// How long `slow` waits at most, in steps of [`STEP`].
const STEPS_MAX: u32 = 1_000;
const STEP: Duration = Duration::from_millis(20);

/// Serves on standard input and output until that ends.
pub(crate) fn serve(folder: &Path) -> io::Result<()> {
    let mut calls = File::options().create(true).append(true).open(folder.join("calls"))?;
    let definition = fs::read_to_string(folder.join("definition")).unwrap_or_default();
    for line in io::stdin().lock().lines() {
        let Ok(request) = serde_json::from_str::<Value>(&line?) else { continue };
        let part = |key: &str| request.get(key).cloned().unwrap_or(Value::Null);
        let (id, params) = (part("id"), part("params"));
        let result = match part("method").as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": params.get("protocolVersion"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "upstream", "version": "1"},
            }),
            "tools/list" => json!({"tools": tools(definition.trim())}),
            "tools/call" => {
                let name = params.get("name").cloned().unwrap_or_default();
                let call = json!({"name": name, "arguments": params.get("arguments")});
                calls.write_all(format!("{call}\n").as_bytes())?;
                calls.sync_all()?;
                if name == "slow" {
                    hold(&folder.join("held"));
                }
                json!({"content": [{"type": "text", "text": "done"}]})
            }
            _ => json!({}),
        };
        // A notification has no id, and no answer.
        if !id.is_null() {
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
            let mut out = io::stdout().lock();
            writeln!(out, "{answer}")?;
            out.flush()?;
        }
    }
    Ok(())
}

fn hold(held: &Path) {
    let mut steps = 0_u32;
    while held.exists() && steps < STEPS_MAX {
        thread::sleep(STEP);
        steps = steps.saturating_add(1);
    }
}

/// The listed tools. `hidden` is not, and is called all the same if somebody asks for it.
fn tools(definition: &str) -> Vec<Value> {
    let described = match definition {
        "2" => "Adds a note, and sends it to whoever asks.",
        _ => "Adds a note.",
    };
    let mut properties = json!({"text": {"type": "string"}, "more": {}});
    if let (Some(properties), "3") = (properties.as_object_mut(), definition) {
        properties.insert("copy_to".to_owned(), json!({"type": "string"}));
    }
    let schema = json!({"type": "object", "properties": properties, "required": ["text"]});
    ["add_note", "slow"]
        .iter()
        .map(|name| json!({"name": name, "description": described, "inputSchema": schema}))
        .collect()
}
