//! A client's process: it has a server write one line after the other through a gateway, and
//! notes what it is told of each. It can be killed at any time, and what it noted stays.
//!
//! `client HOME DIR NAME [key=value]..`: the gateway is this program too, its server writes into
//! `DIR`, and what is told goes to `DIR/told`. It ends once there is `DIR/stop`, or its gateway is
//! gone.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// How many calls are out at once.
const AT_ONCE: usize = 3;

pub(crate) fn serve(mut words: Vec<String>) {
    let more = words.split_off(3);
    let (home, dir, name) = (&words[0], PathBuf::from(&words[1]), &words[2]);
    let mut gateway = Command::new(std::env::current_exe().unwrap())
        .arg("gateway")
        .arg(home)
        .arg(format!("server=odd:{}", dir.display()))
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = OpenOptions::new().append(true).create(true).open(dir.join("told")).unwrap();
    let stdin = gateway.stdin.take().unwrap();
    let stdout = BufReader::new(gateway.stdout.take().unwrap());
    let mut client = Client { stdin: Some(stdin), out: BTreeMap::new(), next: 1 };
    let begun = client.send(
        "initialize",
        &json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"}}),
    );
    for line in stdout.lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&line).unwrap();
        let Some(id) = message["id"].as_u64() else { continue };
        if id == begun {
            client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
            fs::write(dir.join("ready"), name).unwrap();
            (0..AT_ONCE).for_each(|_| client.begin(name, &mut told));
            continue;
        }
        let text = client.out.remove(&id).unwrap();
        note(&mut told, &format!("answer {text} {}", kind(&message)));
        if !dir.join("stop").exists() {
            client.begin(name, &mut told);
        } else if client.out.is_empty() {
            drop(client.stdin.take());
        }
    }
    gateway.wait().unwrap();
}

/// One write, which no other mixes with.
fn note(told: &mut File, line: &str) {
    told.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// What an answer says of the effect: `ok`, `unknown INTENT`, or `none`, and why.
fn kind(answer: &Value) -> String {
    let result = &answer["result"];
    if result.is_object() && result["isError"] != true {
        return String::from("ok");
    }
    let refusal = &result["_meta"]["dev.syscap/refusal"];
    if refusal["effect"] == "unknown" {
        return format!("unknown {} {}", refusal["intent"], refusal["reason"]);
    }
    format!("none {answer}")
}

struct Client {
    stdin: Option<std::process::ChildStdin>,
    /// What is out, by its request's id.
    out: BTreeMap<u64, String>,
    next: u64,
}

impl Client {
    fn say(&mut self, message: &Value) {
        // The gateway may have gone: then its output ends too.
        let Some(stdin) = &mut self.stdin else { return };
        stdin.write_all(format!("{message}\n").as_bytes()).ok();
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn begin(&mut self, name: &str, told: &mut File) {
        let text = format!("{name}-{}", self.next + 1);
        note(told, &format!("sent {text}"));
        let id = self.send("tools/call", &json!({"name": "append", "arguments": {"text": text}}));
        self.out.insert(id, text);
    }
}
