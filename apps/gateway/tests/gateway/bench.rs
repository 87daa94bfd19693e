//! A home, a gateway on it, and a client that speaks raw lines.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};

use host_support::{Scratch, scratch};
use serde_json::{Value, json};
use syscap::audit::{HomeLock, SqliteReader};
use syscap::format::{Body, Outcome, OutcomeFlags, Record, Refusal, Seq};
use syscap::kernel::Next;
use syscap::prelude::*;
use syscap::verify::{Options as VerifyOptions, Soundness, TrustSource, verify_home};

/// Longest wait for anything that must come.
pub(crate) const SOON: Duration = Duration::from_secs(60);
/// What a client must say of itself on every request of the newer wire.
pub(crate) const NEW: &str = "2026-07-28";

/// Digits of a token's id.
const TOKEN_DIGITS: usize = 64;

/// A home, and a folder that a server writes into.
pub(crate) struct Bench {
    pub(crate) dir: Scratch,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(Options::new())
    }

    pub(crate) fn with(options: Options) -> Self {
        let dir = scratch();
        options.create(dir.path().join("home")).unwrap().close().unwrap();
        let bench = Self { dir };
        fs::create_dir(bench.server("odd")).unwrap();
        bench
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The folder of a server.
    pub(crate) fn server(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What a server got, line by line, its starts and ends among them.
    pub(crate) fn got(&self, name: &str) -> Vec<String> {
        let got = fs::read_to_string(self.server(name).join("got")).unwrap_or_default();
        got.lines().map(String::from).collect()
    }

    /// How many requests or notifications of a method a server got.
    pub(crate) fn got_method(&self, name: &str, method: &str) -> usize {
        let mark = format!("\"method\":\"{method}\"");
        self.got(name).iter().filter(|line| line.contains(&mark)).count()
    }

    /// A gateway with one odd server of the older wire, all of whose tools may be called.
    pub(crate) fn gateway(&self, more: &[&str]) -> GatewayProcess {
        let server = format!("server=odd:{}", self.server("odd").display());
        let mut words = vec![server.as_str(), "class=local_write=*"];
        words.extend(more);
        self.start(&words)
    }

    pub(crate) fn start(&self, words: &[&str]) -> GatewayProcess {
        self.start_in(words, &[])
    }

    /// With that in its environment.
    pub(crate) fn start_in(&self, words: &[&str], env: &[(&str, &str)]) -> GatewayProcess {
        GatewayProcess::start(&self.home(), words, env)
    }

    /// The process that serves the home. The system's list of locks may leave one out while others
    /// change: it is looked at more than once.
    pub(crate) fn server_process(&self) -> Option<u32> {
        (0..5).find_map(|_| HomeLock::holder(&self.home()))
    }

    /// Kills it.
    pub(crate) fn kill_server(&self) {
        let server = self.server_process().expect("it is served").to_string();
        assert!(Command::new("kill").args(["-KILL", &server]).status().unwrap().success());
        until("it has gone", || {
            self.server_process().is_none_or(|other| other.to_string() != server)
        });
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        SqliteReader::open(&self.home())
            .unwrap()
            .records(Seq::GENESIS, &mut |_, bytes| {
                records.push(Record::decode(bytes).unwrap());
                Next::More
            })
            .unwrap();
        records
    }

    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        let outcome = |record: Record| match record.body {
            Body::Outcome(outcome) => Some(*outcome),
            _ => None,
        };
        self.records().into_iter().filter_map(outcome).collect()
    }

    pub(crate) fn refusals(&self) -> Vec<Refusal> {
        let refusal = |record: Record| match record.body {
            Body::Refusal(refusal) => Some(*refusal),
            _ => None,
        };
        self.records().into_iter().filter_map(refusal).collect()
    }

    /// How many records of a kind there are.
    pub(crate) fn count(&self, kind: &str) -> usize {
        let of = |record: &&Record| format!("{:?}", record.body.kind()).eq_ignore_ascii_case(kind);
        self.records().iter().filter(of).count()
    }

    /// Every intent has its outcome, nothing is held, and the log is sound.
    pub(crate) fn settled(&self) {
        assert_eq!(self.count("Intent"), self.count("Outcome"));
        let trust = TrustSource::File(self.home().join("trust.cbor"));
        let options = VerifyOptions { trust, ..VerifyOptions::default() };
        let verdict = verify_home(&self.home(), &options).unwrap().verdict();
        assert_eq!(verdict, Soundness::Sound);
        let kernel = Options::new().inspect(self.home()).unwrap();
        for token in kernel.kernel().tokens() {
            assert!(token.held.iter().all(|(_, amount)| amount == 0), "{:?}", token.held);
        }
        // No run may use its token up by having taken longer than was set aside.
        let over = self.outcomes().into_iter().filter(|o| o.flags.has(OutcomeFlags::OVERRUN));
        assert_eq!(over.count(), 0);
    }
}

/// A gateway's process and its client.
pub(crate) struct GatewayProcess {
    child: Child,
    home: String,
    pub(crate) stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Whether nothing is read of it.
    paused: Arc<(Mutex<bool>, Condvar)>,
    /// What it said to the operator.
    said: Arc<Mutex<String>>,
    /// Answers that came while another was waited for.
    answers: HashMap<String, Value>,
    /// What came unasked: notifications and requests.
    pub(crate) unasked: Vec<Value>,
    next: i64,
    new: bool,
    /// What the client says that it can do.
    pub(crate) capabilities: Value,
}

impl GatewayProcess {
    fn start(home: &Path, words: &[&str], env: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_syscap-gateway-harness"))
            .arg("gateway")
            .arg(home)
            .args(words)
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let paused = Arc::<(Mutex<bool>, Condvar)>::default();
        let waits = Arc::clone(&paused);
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
                let (paused, changed) = &*waits;
                drop(changed.wait_while(paused.lock().unwrap(), |paused| *paused).unwrap());
            }
        });
        let said = Arc::<Mutex<String>>::default();
        let (keeps, stderr) = (Arc::clone(&said), BufReader::new(child.stderr.take().unwrap()));
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                eprintln!("{line}");
                keeps.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        let stdin = child.stdin.take();
        Self {
            child,
            home: home.display().to_string(),
            stdin,
            lines,
            paused,
            said,
            answers: HashMap::new(),
            unasked: Vec::new(),
            next: 1,
            new: false,
            capabilities: json!({}),
        }
    }

    /// On another home than a bench's own.
    pub(crate) fn at(home: &Path, words: &[&str]) -> Self {
        Self::start(home, words, &[])
    }

    /// Begins a session on the older wire.
    pub(crate) fn session(mut self) -> Self {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": self.capabilities,
            "clientInfo": {"name": "raw", "version": "1"}});
        let begun = self.request("initialize", params);
        assert_eq!(begun["result"]["protocolVersion"], "2025-11-25", "{begun}");
        self.notify("notifications/initialized", json!({}));
        self
    }

    /// Speaks the newer wire.
    pub(crate) fn stateless(mut self) -> Self {
        self.new = true;
        self
    }

    pub(crate) fn able(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Reads nothing of it, or reads on.
    pub(crate) fn pause(&self, pauses: bool) {
        *self.paused.0.lock().unwrap() = pauses;
        self.paused.1.notify_all();
    }

    /// What it has said to the operator.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// The words of the last line of what it said that names this command, as a shell reads them.
    pub(crate) fn command(&self, command: &str) -> Vec<String> {
        let said = self.said_with(command);
        let line = said.lines().rfind(|line| line.contains(command)).unwrap();
        let (_, rest) = line.split_once(command).unwrap();
        let script = format!("printf '%s\\n' {command}{rest}");
        let printed = Command::new("sh").arg("-c").arg(script).output().unwrap();
        assert!(printed.status.success(), "{line}");
        String::from_utf8(printed.stdout).unwrap().lines().map(String::from).collect()
    }

    /// All that it has said, once this is among it.
    pub(crate) fn said_with(&self, text: &str) -> String {
        for _ in 0..500 {
            if self.said().contains(text) {
                return self.said();
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("it never said {text:?}: {}", self.said());
    }

    /// The most memory that it has had, in KiB.
    pub(crate) fn peak_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse().unwrap()
    }

    pub(crate) fn write(&mut self, line: &str) {
        self.write_bytes(line.as_bytes());
    }

    pub(crate) fn write_bytes(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line).unwrap();
        stdin.write_all(b"\n").unwrap();
        stdin.flush().unwrap();
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends a request under an id, and does not wait.
    pub(crate) fn send(&mut self, id: &Value, method: &str, mut params: Value) {
        if self.new {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert(json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = json!(NEW);
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "raw", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.write(&request.to_string());
    }

    pub(crate) fn id(&mut self) -> Value {
        self.next += 1;
        json!(self.next)
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.id();
        self.send(&id, method, params);
        self.answer(&id)
    }

    /// Sends a call and does not wait; its id.
    pub(crate) fn begin(&mut self, tool: &str, args: Value) -> Value {
        let id = self.id();
        self.send(&id, "tools/call", json!({"name": tool, "arguments": args}));
        id
    }

    pub(crate) fn call(&mut self, tool: &str, args: Value) -> Value {
        let id = self.begin(tool, args);
        self.result(&id)
    }

    /// The result of a request that is not to be an error of the protocol.
    pub(crate) fn result(&mut self, id: &Value) -> Value {
        let answer = self.answer(id);
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].clone()
    }

    pub(crate) fn answer(&mut self, id: &Value) -> Value {
        let until = Instant::now() + SOON;
        loop {
            if let Some(answer) = self.answers.remove(&id.to_string()) {
                return answer;
            }
            self.receive(until).unwrap_or_else(|| panic!("no answer to {id}"));
        }
    }

    /// Waits for a notification or a request of that method.
    pub(crate) fn hears(&mut self, method: &str) -> Value {
        let until = Instant::now() + SOON;
        loop {
            let found = self.unasked.iter().position(|said| said["method"] == method);
            if let Some(place) = found {
                return self.unasked.remove(place);
            }
            self.receive(until).unwrap_or_else(|| panic!("no {method}"));
        }
    }

    /// Takes in one message. `None` where none came in time.
    fn receive(&mut self, until: Instant) -> Option<()> {
        let left = until.saturating_duration_since(Instant::now());
        let line = match self.lines.recv_timeout(left) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => panic!("the gateway has ended"),
        };
        self.expect_fit_for_a_model(&line);
        let message: Value = serde_json::from_str(&line).unwrap();
        match (message.get("method"), message.get("id")) {
            (None, Some(id)) => drop(self.answers.insert(id.to_string(), message)),
            _ => self.unasked.push(message),
        }
        Some(())
    }

    /// A client may give its model all that it is told: no path of the home, no token id, and no
    /// command but the one that approves a call.
    fn expect_fit_for_a_model(&self, line: &str) {
        assert!(!line.contains(&self.home), "the home: {line}");
        let mut words = line.split(|c: char| !c.is_ascii_hexdigit());
        assert!(words.all(|word| word.len() != TOKEN_DIGITS), "an id: {line}");
        let approves = line.matches("syscap approvals approve ").count();
        assert_eq!(line.matches("syscap ").count(), approves, "a command: {line}");
    }

    /// Whether an answer to that id has come, after a while.
    pub(crate) fn has_answer(&mut self, id: &Value, within: Duration) -> bool {
        let until = Instant::now() + within;
        while self.receive(until).is_some() {}
        self.answers.contains_key(&id.to_string())
    }

    pub(crate) fn names(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Ends the input, as a client does, and waits for the end.
    pub(crate) fn end(mut self) -> ExitStatus {
        drop(self.stdin.take());
        self.wait()
    }

    pub(crate) fn signal(&self, name: &str) {
        let done = Command::new("kill").arg(name).arg(self.child.id().to_string()).status();
        assert!(done.unwrap().success());
    }

    pub(crate) fn wait(mut self) -> ExitStatus {
        let until = Instant::now() + SOON;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "the gateway does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for GatewayProcess {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The text of a tool's result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// What a refusal says to programs.
pub(crate) fn refusal(result: &Value) -> &Value {
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.get("structuredContent").is_none(), "{result}");
    &result["_meta"]["dev.syscap/refusal"]
}

/// Waits until something holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}
