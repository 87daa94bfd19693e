//! A home with an agent's client set up, and a process that holds it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cli::support::{Run, TestHome, run, run_with, syscap};

/// A home, and which client uses it.
pub(super) struct Hooked {
    pub(super) home: TestHome,
    pub(super) client: &'static str,
    /// What else stands on the command line.
    pub(super) flags: Vec<String>,
    held: Option<Child>,
}

impl Hooked {
    /// Set up, and held by nobody.
    pub(super) fn loose(client: &'static str, flags: &[&str]) -> Self {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let hooked = Self { home: TestHome::new(), client, flags, held: None };
        let set_up = hooked.set_up(&[]);
        assert_eq!(set_up.code, 0, "{}", set_up.err);
        hooked
    }

    /// Claude Code set up with a folder of its own, and held by nobody; and that folder.
    pub(super) fn rooted(flags: &[&str]) -> (Self, String) {
        let hooked = Self::loose("claude-code", flags);
        let project = hooked.home.beside("project");
        fs::create_dir(&project).unwrap();
        let root = project.canonicalize().unwrap().to_str().unwrap().to_owned();
        assert_eq!(hooked.set_up(&["--root", &root]).code, 0);
        (hooked, root)
    }

    /// Puts a policy in force.
    pub(super) fn go_by(&self, policy: &str) {
        let set = run(["policy", "set", &self.home.path(), policy]);
        assert_eq!(set.code, 0, "{}", set.err);
    }

    /// Set up, and held until the test ends.
    pub(super) fn new(client: &'static str, flags: &[&str]) -> Self {
        let mut hooked = Self::loose(client, flags);
        hooked.hold();
        hooked
    }

    /// Has a process hold it until the test ends.
    pub(super) fn hold(&mut self) {
        let mut command = syscap();
        command.args(["serve", &self.home.path()]).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
        self.held = Some(child);
        assert!(said.starts_with("serving "), "{said}");
    }

    pub(super) fn args(&self) -> Vec<String> {
        let words = ["hook", &self.home.path(), "--agent", "coder", "--client", self.client];
        // Most tests have nobody who answers.
        let ask = ["--ask", "deny"].iter().filter(|_| !self.flags.contains(&"--ask".to_owned()));
        let words = words.iter().chain(ask).map(|word| (*word).to_owned());
        words.chain(self.flags.clone()).collect()
    }

    pub(super) fn set_up(&self, flags: &[&str]) -> Run {
        let flags = flags.iter().map(|flag| (*flag).to_owned());
        run(self
            .args()
            .into_iter()
            .chain(["--setup".to_owned(), "--print".to_owned()])
            .chain(flags))
    }

    /// The client runs the hook.
    pub(super) fn hook(&self, event: &Value) -> Run {
        self.raw(event.to_string().as_bytes())
    }

    pub(super) fn raw(&self, input: &[u8]) -> Run {
        run_with(self.args(), input)
    }

    /// The last record.
    pub(super) fn last(&self) -> Value {
        self.home.log().pop().unwrap()
    }

    pub(super) fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.home.log().into_iter().filter(|record| record["kind"] == kind).collect()
    }

    /// A run that must change nothing on record, and say why in one line.
    pub(super) fn changes_nothing(&self, code: i32, hook: impl FnOnce(&Self) -> Run) {
        let before = self.home.log().len();
        hook(self).failed(code);
        assert_eq!(self.home.log().len(), before);
    }

    /// Waits until so many records of a kind are there.
    pub(super) fn until(&self, kind: &str, count: usize) -> Value {
        for _ in 0..600 {
            let mut found = self.of_kind(kind);
            if found.len() >= count {
                return found.swap_remove(count - 1);
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("no {count} records of {kind}");
    }

    /// Ends the holder; the log must be sound.
    pub(super) fn end(mut self) -> TestHome {
        if let Some(mut child) = self.held.take() {
            terminate(child.id());
            assert!(child.wait().unwrap().success());
        }
        assert_eq!(self.home.verify(), 0);
        std::mem::replace(&mut self.home, TestHome { folder: host_support::scratch() })
    }
}

impl Drop for Hooked {
    fn drop(&mut self) {
        if let Some(mut child) = self.held.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

pub(super) fn terminate(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
}

/// What Claude Code sends.
pub(super) fn claude(event: &str, id: &str, tool: &str, input: Value) -> Value {
    json!({
        "session_id": "00893aaf-19fa-41d2-8238-13269b9b3ca0",
        "transcript_path": "/tmp/project/00893aaf.jsonl",
        "cwd": "/tmp/project",
        "permission_mode": "default",
        "hook_event_name": event,
        "tool_name": tool,
        "tool_input": input,
        "tool_use_id": id,
    })
}

/// With what the tool brought.
pub(super) fn with(mut event: Value, key: &str, value: Value) -> Value {
    event[key] = value;
    event
}

/// What Gemini CLI sends.
pub(super) fn gemini(event: &str, tool: &str, input: Value) -> Value {
    json!({
        "session_id": "5f0c5a52-2b0f-4c8b-9d2e-9a3f3a1d7c11",
        "transcript_path": "/tmp/project/session.json",
        "cwd": "/tmp/project",
        "hook_event_name": event,
        "timestamp": "2026-11-22T05:00:00.000Z",
        "tool_name": tool,
        "tool_input": input,
    })
}
