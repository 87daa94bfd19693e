//! `shapes.json`: the tables of the documents, for programs. `tests/spec.rs` holds the documents
//! against the code.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

/// The head of the table of reasons.
pub(crate) const REASONS: &str = "Code | Reason | Retry";

/// The cells of a table, with the heading above it and its own head.
pub(crate) struct Table {
    heading: String,
    pub(crate) head: String,
    pub(crate) rows: Vec<Vec<String>>,
}

pub(crate) fn tables(text: &str) -> Vec<Table> {
    let (mut tables, mut heading, mut open) = (Vec::<Table>::new(), String::new(), false);
    for line in text.lines() {
        if line.starts_with('#') {
            line.trim_start_matches('#').trim().clone_into(&mut heading);
        }
        let inner = line.strip_prefix('|').and_then(|line| line.strip_suffix('|'));
        if let Some(inner) = inner {
            let cells: Vec<String> = inner.split('|').map(|cell| cell.trim().to_owned()).collect();
            if !open {
                tables.push(Table {
                    heading: heading.clone(),
                    head: cells.join(" | "),
                    rows: Vec::new(),
                });
            } else if !cells.iter().all(|cell| cell == "---") {
                tables.last_mut().expect("a table").rows.push(cells);
            }
        }
        open = inner.is_some();
    }
    tables
}

/// The texts between backticks.
fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// A field of a shape: `list of`, `or null` and `or absent` are said apart. A row without a key
/// stands for all fields of another shape.
fn field(row: &[String]) -> Value {
    let form = &row[2];
    let number = row[0].parse::<u64>().ok();
    json!({
        "key": number,
        "name": code(&row[1]).first(),
        "type": code(form).first(),
        "list": form.starts_with("list of "),
        "null": form.ends_with(" or null"),
        "absent": form.ends_with(" or absent"),
    })
}

/// The text of `shapes.json`.
pub(crate) fn text(folder: &Path) -> String {
    let mut all = String::new();
    for name in ["cbor", "tokens", "log", "verification", "calls"] {
        all += &fs::read_to_string(folder.join(format!("{name}.md"))).expect("a document");
    }
    let mut found: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for table in tables(&all) {
        let rows = &table.rows;
        let mut add =
            |part, name: &str, value| found.entry(part).or_default().insert(name.to_owned(), value);
        match table.head.as_str() {
            "Key | Name | Type | Meaning" => {
                let mut names = code(&table.heading);
                if names.is_empty() {
                    names.push(&table.heading);
                }
                for name in names {
                    add("shapes", name, rows.iter().map(|row| field(row)).collect());
                }
            }
            "Code | Number | Name | Meaning" | "Set | Bit | Name | Meaning" => {
                let part = if table.head.starts_with("Code") { "codes" } else { "bits" };
                let mut sets: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
                for row in rows {
                    let number: u64 = row[1].parse().expect("a number");
                    sets.entry(code(&row[0])[0])
                        .or_default()
                        .insert(code(&row[2])[0].to_owned(), json!(number));
                }
                sets.into_iter().for_each(|(name, set)| {
                    add(part, name, Value::Object(set));
                });
            }
            "Requirement | Number | Kind | Version | Written | Meaning" => {
                for row in rows {
                    let of = |at: usize| row[at].parse::<u64>().expect("a number");
                    let kind = json!({"number": of(1), "version": of(3), "reserved": row[4] == "reserved"});
                    add("kinds", code(&row[2])[0], kind);
                }
            }
            REASONS => {
                for row in rows {
                    let number: u64 = row[0].parse().expect("a number");
                    add("reasons", code(&row[1])[0], json!({"code": number, "retry": row[2]}));
                }
            }
            "Domain | Context string | What is hashed" => {
                rows.iter().for_each(|row| {
                    add("domains", code(&row[0])[0], json!(code(&row[1])[0]));
                });
            }
            "Kind | Role | Body" => {
                for row in rows {
                    add(
                        "control",
                        code(&row[0])[0],
                        json!({"role": row[1], "body": code(&row[2])[0]}),
                    );
                }
            }
            _ => {}
        }
    }
    let part = |(name, entries): (&str, Map<String, Value>)| {
        let lines: Vec<String> =
            entries.iter().map(|(key, value)| format!("{}: {value}", json!(key))).collect();
        format!("{}: {{\n{}\n}}", json!(name), lines.join(",\n"))
    };
    let parts: Vec<String> = found.into_iter().map(part).collect();
    format!("{{\"schema\": 1, \"license\": \"CC0-1.0\",\n{}}}\n", parts.join(",\n"))
}
