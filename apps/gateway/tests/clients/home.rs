//! A home, the gateway's command on it, and what is on record.

use std::fs;
use std::path::{Path, PathBuf};

use host_support::{Scratch, scratch};
use serde_json::Value;

use crate::clients::parts::{Parts, Ran, run, text};

/// A fresh home, and a folder for the other files of a test.
pub(crate) struct Home {
    folder: Scratch,
    pub(crate) parts: &'static Parts,
}

/// A server behind the gateway: its name there, its command, and with which options it is put
/// there, as `--class`.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) command: Vec<String>,
    pub(crate) options: &'static [&'static str],
}

impl Home {
    pub(crate) fn new(parts: &'static Parts) -> Self {
        let home = Self { folder: scratch(), parts };
        fs::create_dir(home.path("docs")).unwrap();
        fs::create_dir(home.path("user")).unwrap();
        home.syscap(&["init", &home.home(), "--trust-out", &home.trust()]).well();
        home
    }

    /// A file or folder of the test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        // The system's own folder may stand behind a link, which a server would resolve.
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn home(&self) -> String {
        text(&self.path("home"))
    }

    fn trust(&self) -> String {
        text(&self.path("trust.cbor"))
    }

    /// Where programs may keep what is theirs.
    pub(crate) fn user(&self) -> PathBuf {
        self.path("user")
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    /// What `send_email` and `http_post` of the fixture were called with.
    pub(crate) fn outbox(&self) -> PathBuf {
        self.path("outbox")
    }

    pub(crate) fn syscap(&self, args: &[&str]) -> Ran {
        let mut command = self.parts.program(&self.user(), &text(&self.parts.syscap));
        command.args(args);
        run(command, "")
    }

    /// The gateway's whole command line, as it would stand in a client's configuration.
    pub(crate) fn gateway(&self, agent: &str, token: Option<&str>, server: &Server) -> Vec<String> {
        let mut line = vec![text(&self.parts.syscap), "mcp".into(), self.home()];
        line.extend(["--agent".into(), agent.into(), "--name".into(), server.name.into()]);
        // Nobody answers while a test's client waits.
        line.extend(["--approval-wait".into(), "0s".into()]);
        line.extend(server.options.iter().map(|&option| option.into()));
        if let Some(token) = token {
            line.extend(["--token".into(), token.into()]);
        }
        line.push("--".into());
        line.extend(server.command.iter().cloned());
        line
    }

    /// Puts the server's tools on record, as the first client of a new server does.
    pub(crate) fn meet(&self, server: &Server) {
        let met = self.drive("auto", &self.gateway("first", None, server), &[r#"{"do":"tools"}"#]);
        assert!(!met[0]["tools"].as_array().unwrap().is_empty(), "{met:?}");
    }

    /// A token for some tools.
    pub(crate) fn issue(&self, agent: &str, tools: &[&str], budget: Option<&str>) -> String {
        let (home, tools) = (self.home(), tools.join(","));
        let mut args = vec!["token", "issue", &home, "--agent", agent, "--tool", &tools];
        if let Some(budget) = budget {
            args.extend(["--budget", budget]);
        }
        self.syscap(&args).well().trim().to_owned()
    }

    /// Lets the Python SDK take `steps` (see sdk.py) with a server.
    pub(crate) fn drive(&self, mode: &str, server: &[String], steps: &[&str]) -> Vec<Value> {
        let mut command = self.parts.python(&self.user(), "sdk.py");
        command.arg(mode).arg("--").args(server);
        let answers = run(command, &steps.join("\n")).json();
        assert_eq!(answers.len(), steps.len(), "an answer to each step: {answers:?}");
        answers
    }

    /// All records, the oldest first.
    pub(crate) fn records(&self) -> Vec<Value> {
        self.syscap(&["log", "show", &self.home(), "--json"]).json()
    }

    /// How often calls of a tool came to `what`: `ok` or a reason.
    pub(crate) fn count(&self, tool: &str, what: &str) -> usize {
        let came = |record: &Value| match record["kind"].as_str() {
            Some("outcome") if record["status"] == "ok" => Some("ok".to_owned()),
            Some("ask") => Some("asked".to_owned()),
            Some("outcome" | "refusal") => Some(record["reason"].as_str()?.to_owned()),
            _ => None,
        };
        let of_tool = |record: &&Value| record["tool_id"] == tool;
        self.records().iter().filter(of_tool).filter_map(came).filter(|it| it == what).count()
    }

    /// The log is whole, nothing is open and the last run ended properly.
    pub(crate) fn verify(&self) {
        self.syscap(&["verify", &self.home(), "--trust", &self.trust()]).well();
    }
}

/// The text of a result.
pub(crate) fn said(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

/// Asserts that a call was refused or failed for that reason: an error of the tool, in text, and
/// the record that it names says the same.
pub(crate) fn refused(home: &Home, result: &Value, reason: &str) {
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.get("structuredContent").is_none(), "{result}");
    assert!(said(result).contains(reason), "{result}");
    let refusal = &result["_meta"]["dev.syscap/refusal"];
    assert_eq!(refusal["reason"], reason, "{result}");
    let record = &home.records()[usize::try_from(refusal["record"].as_u64().unwrap()).unwrap()];
    // What the policy asks about waits for a person, under a record of its own.
    if record["kind"] == "ask" {
        return assert_eq!(reason, "asked", "{record}");
    }
    assert!(record["kind"] == "refusal" || record["kind"] == "outcome", "{record}");
    assert_eq!(record["reason"], reason, "{record}");
}

/// Whether a file is there.
pub(crate) fn is_file(path: &Path) -> bool {
    path.is_file()
}
