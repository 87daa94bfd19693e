//! The office: a home that this process holds, its agents, and the person who looks after them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use syscap::format::UnixMillis;
use syscap::kernel::{Clock, Reading};
use syscap::{Grant, Options, Runtime, SystemClock};

use crate::{month::End, month::client::Client};

/// The machine's clocks, ahead by what the test says.
#[derive(Clone, Default)]
pub(crate) struct Ahead(Arc<AtomicU64>);

impl Ahead {
    fn hours(&self, hours: u64) {
        self.0.fetch_add(hours * 3_600_000, Ordering::SeqCst);
    }
}

impl Clock for Ahead {
    fn read(&self) -> Reading {
        let (now, ahead) = (SystemClock.read(), self.0.load(Ordering::SeqCst));
        Reading {
            wall: UnixMillis::new(now.wall.get() + ahead),
            boottime_ms: now.boottime_ms + ahead,
        }
    }
}

pub(crate) struct Office {
    folder: host_support::Scratch,
    clock: Ahead,
    holder: Option<Runtime>,
    agents: Vec<String>,
    clients: Vec<Client>,
    answered: Vec<String>,
    counts: BTreeMap<&'static str, usize>,
    /// Bytes of the home before the first day.
    began: u64,
}

impl Office {
    pub(crate) fn new(agents: usize) -> Self {
        let agents = (0..agents).map(|n| format!("team/a{n}")).collect();
        let (folder, clock) = (host_support::scratch(), Ahead::default());
        let mut office = Self {
            folder,
            clock,
            holder: None,
            agents,
            clients: Vec::new(),
            answered: Vec::new(),
            counts: BTreeMap::new(),
            began: 0,
        };
        let (home, trust) = (office.path("home"), office.path("trust.cbor"));
        fs::write(office.path("notes"), "").unwrap();
        office.does(&["init", &home, "--no-passphrase", "--trust-out", &trust]);
        office.hold();
        for agent in office.agents.clone() {
            office.set_up(&agent);
        }
        office.began = size(&office.folder.path().join("home"));
        office
    }

    fn set_up(&mut self, agent: &str) {
        let home = self.path("home");
        let client = ["--client", "claude-code", "--setup", "--print"];
        self.does(&[&["hook", &home, "--agent", agent][..], &client].concat());
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn hold(&mut self) {
        let options = Options::new().clock(self.clock.clone());
        self.holder = Some(options.open(self.path("home")).unwrap());
    }

    fn syscap(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_syscap"));
        command.args(args).stdin(Stdio::null()).output().unwrap()
    }

    /// The person runs a command, which does what it is to do.
    fn does(&self, args: &[&str]) -> String {
        let output = self.syscap(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Time passes. What is signed by processes beside the holder is signed by the time of the last
    /// record: they have the machine's own clock, which is behind.
    pub(crate) fn hours(&self, hours: u64) {
        self.clock.hours(hours);
        let holder = self.holder.as_ref().unwrap();
        let token = holder.issue(Grant::to("clock").tools(["echo"])).unwrap();
        holder.revoke(token).unwrap();
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Everybody's client starts.
    pub(crate) fn morning(&mut self, day: u64) {
        // Sixteen hours after the evening before; more over the weekend.
        self.hours(if day > 0 && day.is_multiple_of(5) { 64 } else { 16 });
        let (home, server) = (self.path("home"), script());
        for (n, agent) in self.agents.clone().into_iter().enumerate() {
            let mut command = Command::new(env!("CARGO_BIN_EXE_syscap"));
            command.args(["mcp", &home, "--agent", &agent, "--name", "notes"]);
            command.args([
                "--class",
                "read=count",
                "--class",
                "local_write=write",
                "--approval-wait",
                "0s",
            ]);
            // Some have little, and go on by themselves or by the person's hand.
            match n % 3 {
                0 => command.args(["--budget", "calls=3", "--renew", "999"]),
                1 => command.args(["--budget", "calls=3"]),
                _ => &mut command,
            };
            command.arg("--").arg("python3").arg(&server).arg(self.path("notes"));
            let mut client = Client::start(command);
            let tools = client.request("tools/list", &json!({}));
            assert_eq!(tools["tools"].as_array().unwrap().len(), 3, "{tools}");
            self.clients.push(client);
        }
    }

    /// Each agent reads, writes and uses its client's own tools; once a day it sends something.
    pub(crate) fn work(&mut self, day: u64, round: usize) {
        for n in 0..self.agents.len() {
            let text = format!("{n} on day {day} at {round}");
            self.call(n, "count", &json!({}));
            self.call(n, "write", &json!({"text": text}));
            self.answered.push(text.clone());
            if round == 0 {
                self.call(n, "send", &json!({"text": text}));
                self.answered.push(format!("sent {text}"));
            }
            self.uses_a_file(n, &text);
        }
    }

    /// A call, until it is answered: what a refusal says goes on is done.
    fn call(&mut self, n: usize, tool: &str, args: &Value) {
        for _ in 0..3 {
            let refusal = match self.clients[n].call(tool, args) {
                Ok(_) => return,
                Err(refusal) => refusal,
            };
            let reason = refusal["reason"].as_str().unwrap();
            self.count(match reason {
                "asked" => "asked",
                "over_budget" | "exhausted" | "expired" => "reissued",
                _ => panic!("nobody expected that: {refusal}"),
            });
            // The operator finds the command in the log.
            let record = refusal["record"].to_string();
            let shown = self.does(&["log", "show", &self.path("home"), &record]);
            let next = shown.lines().find_map(|line| line.strip_prefix("goes on by"));
            let Some(command) = next.and_then(|next| next.trim().strip_prefix("syscap ")) else {
                return self.count("dead ends");
            };
            self.does(&command.split_whitespace().collect::<Vec<_>>());
        }
        self.count("dead ends");
    }

    /// What Claude Code does before and after it writes a file.
    fn uses_a_file(&mut self, n: usize, text: &str) {
        let before = json!({
            "session_id": format!("s{n}"), "transcript_path": "/t", "cwd": "/w",
            "permission_mode": "default", "hook_event_name": "PreToolUse",
            "tool_name": "Write", "tool_use_id": text,
            "tool_input": {"file_path": "/w/a.txt", "content": text},
        });
        let mut after = before.clone();
        after["hook_event_name"] = json!("PostToolUse");
        after["tool_response"] = json!({"success": true});
        for _ in 0..2 {
            let said = self.hook(n, &before);
            if said["hookSpecificOutput"]["permissionDecision"] != "deny" {
                self.hook(n, &after);
                return self.count("uses");
            }
            // Its token lives for half a day: each morning there is a new one.
            self.count("set up");
            let agent = self.agents[n].clone();
            self.set_up(&agent);
        }
        self.count("dead ends");
    }

    fn hook(&self, n: usize, event: &Value) -> Value {
        let (home, agent) = (self.path("home"), &self.agents[n]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_syscap"));
        command.args(["hook", &home, "--agent", agent, "--client", "claude-code"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut hook = command.spawn().unwrap();
        std::io::Write::write_all(&mut hook.stdin.take().unwrap(), event.to_string().as_bytes())
            .unwrap();
        let output = hook.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    pub(crate) fn evening(&mut self) {
        self.clients.drain(..).for_each(Client::end);
    }

    /// The keys of three roles are made new, while the home is held.
    pub(crate) fn rotate_keys(&mut self) {
        let home = self.path("home");
        for role in ["issuer", "operator", "approver"] {
            self.does(&["keys", "rotate", &home, "--role", role]);
            self.count("rotated");
        }
    }

    /// The program is made new: the holder ends, the log is looked at, and another begins.
    pub(crate) fn upgrade(&mut self) {
        let holder = self.holder.take().unwrap();
        holder.close().unwrap();
        self.verify();
        self.hold();
    }

    fn verify(&self) {
        self.does(&["verify", &self.path("home"), "--trust", &self.path("trust.cbor")]);
    }

    /// Closes, and says what there is.
    pub(crate) fn end(mut self) -> End {
        self.holder.take().unwrap().close().unwrap();
        self.verify();
        let log = self.does(&["log", "show", &self.path("home"), "--json"]);
        let of_kind = |kind: &str| log.matches(&format!("\"kind\":\"{kind}\"")).count();
        let renewed = of_kind("issue");
        let by_hand = self.counts.get("reissued").copied().unwrap_or_default();
        self.counts.insert("renewed", renewed.saturating_sub(by_hand));
        let notes = fs::read_to_string(self.path("notes")).unwrap();
        End {
            notes: notes.lines().map(str::to_owned).collect(),
            intents: of_kind("intent") as u64,
            records: log.lines().count(),
            bytes: size(&self.folder.path().join("home")).saturating_sub(self.began),
            memory_kib: most_memory(),
            answered: self.answered,
            counts: self.counts,
        }
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/month/server.py")
}

/// Bytes of all files.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.file_type().unwrap() {
            kind if kind.is_dir() => size(&entry.path()),
            kind if kind.is_file() => entry.metadata().unwrap().len(),
            _ => 0,
        })
        .sum()
}

/// The most memory that this process, which holds the home, had.
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
