//! A client of the gateway, by lines of JSON.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A running gateway, and its client.
pub(crate) struct Client {
    gateway: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    /// Starts it, and shakes hands.
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut gateway = command.spawn().unwrap();
        let (to, from) = (gateway.stdin.take(), BufReader::new(gateway.stdout.take().unwrap()));
        let mut client = Self { gateway, to, from, next: 0 };
        let us = json!({"name": "month", "version": "1"});
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": us,
        });
        client.request("initialize", &hello);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.to.as_mut().unwrap(), "{message}").unwrap();
    }

    /// The answer to a request; what comes besides is left.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert_ne!(self.from.read_line(&mut line).unwrap(), 0, "the gateway has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    /// Calls a tool: what it said, or its refusal.
    pub(crate) fn call(&mut self, tool: &str, args: &Value) -> Result<String, Value> {
        let result = self.request("tools/call", &json!({"name": tool, "arguments": args}));
        match result["_meta"].get("dev.syscap/refusal") {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(result["content"][0]["text"].as_str().unwrap().to_owned()),
        }
    }

    /// The client goes, and its gateway with it.
    pub(crate) fn end(mut self) {
        drop(self.to.take());
        assert!(self.gateway.wait().unwrap().success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.gateway.kill());
        drop(self.gateway.wait());
    }
}
