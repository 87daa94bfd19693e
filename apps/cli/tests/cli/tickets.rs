//! `ticket`: an agent's program opens sessions of its own, by descriptor 3 and nothing else.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use syscap::prelude::*;
use syscap::{Session, SessionTicket};

use crate::cli::support::{Serving, TestHome, run, syscap, until};

/// Reads the ticket and the home of descriptor 3, and waits until its standard input ends.
const PROGRAM: &str = r"import os, sys
size = os.fstat(3).st_size
print(os.pread(3, size, 0).hex(), os.environ.get('SYSCAP_TICKET'), sorted(os.listdir('/proc/self/fd')), flush=True)
try:
    os.pwrite(3, b'x', 0)
except PermissionError:
    print('sealed', flush=True)
sys.stdin.read()
sys.exit(7)
";

/// The command, and the program that it has started.
struct Started {
    parent: Child,
    input: Option<ChildStdin>,
    ticket: SessionTicket,
    home: PathBuf,
}

impl Started {
    fn of(home: &TestHome, token: &str) -> Self {
        Self::with(home, token, &[])
    }

    fn with(home: &TestHome, token: &str, flags: &[&str]) -> Self {
        let mut command = syscap();
        let program = ["--", "python3", "-c", PROGRAM];
        command.args(["ticket", &home.path(), "--agent", "a", "--token", token]).args(flags);
        command.args(program).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut parent = command.spawn().unwrap();
        let mut said = BufReader::new(parent.stdout.take().unwrap()).lines();
        let line = said.next().unwrap().unwrap();
        let words: Vec<&str> = line.splitn(2, ' ').collect();
        let byte = |at: usize| u8::from_str_radix(&words[0][at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..words[0].len()).step_by(2).map(byte).collect();
        // Nothing in its environment, and no other descriptor: one is the listing's own.
        assert_eq!(words[1], "None ['0', '1', '2', '3', '4']");
        assert_eq!(said.next().unwrap().unwrap(), "sealed");
        let (ticket, path) = bytes.split_at(32);
        Self {
            input: parent.stdin.take(),
            parent,
            ticket: SessionTicket::from_bytes(ticket.try_into().unwrap()),
            home: PathBuf::from(std::str::from_utf8(path).unwrap()),
        }
    }

    fn take(&self) -> Result<Session, Error> {
        Runtime::agent(&self.home)?.take(&self.ticket)
    }

    fn ends(mut self) -> Option<i32> {
        drop(self.input.take());
        self.parent.wait().unwrap().code()
    }
}

fn is_not_bound<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Refused(refused)) if refused.reason() == Reason::NotBound)
}

fn echo(session: &Session) -> Result<ToolResult, Error> {
    session.call("echo", args! { "value": 1 })
}

/// Sixteen connections at a time, each with a session of its own, and only while the command runs; the
/// token's budget is one.
#[test]
fn program_opens_sessions_by_its_ticket() {
    let home = TestHome::new();
    let token = home.token("a", &["--tool", "echo", "--budget", "calls=20"]);
    let started = Started::of(&home, &token);
    assert_eq!(started.home, home.beside("home"));
    let guessed = Runtime::agent(&started.home).unwrap().take(&SessionTicket::from_bytes([7; 32]));
    assert!(is_not_bound(guessed));
    let mut sessions: Vec<Session> = (0..16).map(|_| started.take().unwrap()).collect();
    let full = started.take();
    assert!(matches!(full, Err(Error::Refused(why)) if why.reason() == Reason::Overloaded));
    let numbers: std::collections::BTreeSet<_> = sessions.iter().map(Session::number).collect();
    assert_eq!(numbers.len(), 16, "a session each");
    for session in &sessions {
        assert_eq!((session.agent().as_str(), session.token().to_string()), ("a", token.clone()));
        assert_eq!(echo(session).unwrap().reason(), None);
    }
    // A place is free once its connection has gone.
    drop(sessions.pop());
    let mut last = None;
    until("there is a place again", || match started.take() {
        Ok(session) => last.replace(session).is_none(),
        Err(Error::Refused(why)) if why.reason() == Reason::Overloaded => false,
        Err(error) => panic!("{error}"),
    });
    let last = last.unwrap();
    let spent: Vec<_> = (0..5).map(|_| echo(&last).unwrap().reason()).collect();
    assert_eq!(spent, [None, None, None, None, Some(Reason::OverBudget)]);
    // With the command everything ends that it let in.
    let (path, ticket) = (started.home.clone(), started.ticket.clone());
    let first = sessions.swap_remove(0);
    assert_eq!(started.ends(), Some(7), "the program's own exit code");
    until("its sessions have ended", || echo(&first).is_err());
    drop((first, sessions, last));
    until("no server is left", || home.server().is_none());
    let serving = Serving::of(&home.path(), &[]);
    assert!(is_not_bound(Runtime::agent(&path).unwrap().take(&ticket)));
    serving.stop();
    assert_eq!(home.verify(), 0);
}

/// Four workers call 600 times while the server is killed again and again: nothing is lost, nothing runs
/// twice, and the ticket holds with each new server. When the command is killed, it opens nothing.
#[test]
fn ticket_outlives_its_server_and_not_its_command() {
    const CALLS: u64 = 600;
    let home = TestHome::new();
    assert_eq!(run(["config", &home.path(), "--idle", "1s"]).code, 0);
    let grant = ["--tool", "memory.write", "--budget", "calls=100000"];
    let token = home.token("a", &grant);
    let started = Started::of(&home, &token);
    let (done, lost, next) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = taken(&started);
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= CALLS {
                        break;
                    }
                    let args = args! { "key": format!("k{number}"), "value": "x" };
                    // What has a key is sent again, until it is answered.
                    let key = format!("call-{number}");
                    loop {
                        let call = session.request("memory.write").args(args.clone()).key(&key);
                        match call.wait() {
                            Ok(answer) if answer.reason() == Some(Reason::OutcomeUnknown) => {
                                lost.fetch_add(1, Ordering::SeqCst);
                                break;
                            }
                            Ok(answer) => {
                                assert_eq!(answer.reason(), None);
                                done.fetch_add(1, Ordering::SeqCst);
                                break;
                            }
                            Err(_) => session = taken(&started),
                        }
                    }
                }
            });
        }
        for _ in 0..3 {
            let before = done.load(Ordering::SeqCst);
            until("some calls more", || done.load(Ordering::SeqCst) >= (before + 60).min(CALLS));
            home.kill_server();
        }
    });
    let (done, lost) = (done.into_inner(), lost.into_inner());
    assert_eq!(done + lost, CALLS);
    assert!(lost <= 12, "only what ran as a server was killed: {lost}");
    // Each key's call ran once: an intent each, and one more where a boot has proved that nothing was done.
    let log = home.log();
    let intents: Vec<&serde_json::Value> = log
        .iter()
        .filter(|one| one["kind"] == "intent" && one["tool_id"] == "memory.write")
        .map(|one| &one["seq"])
        .collect();
    let undone = log.iter().filter(|one| one["kind"] == "recovery" && one["verdict"] == "not_done");
    let undone = undone.filter(|one| intents.contains(&&one["intent"])).count();
    assert_eq!(intents.len() - undone, usize::try_from(CALLS).unwrap());
    // The command is killed, and its program with it, as a supervisor does.
    let mut started = started;
    let session = taken(&started);
    started.parent.kill().unwrap();
    started.parent.wait().unwrap();
    drop(started.input.take());
    until("its sessions have ended", || echo(&session).is_err());
    drop(session);
    until("no server is left", || home.server().is_none());
    let serving = Serving::of(&home.path(), &[]);
    assert!(is_not_bound(started.take()));
    serving.stop();
    assert_eq!(home.verify(), 0);
}

/// A session by the ticket, once a server is there that knows it.
fn taken(started: &Started) -> Session {
    let since = Instant::now();
    loop {
        match started.take() {
            Ok(session) => return session,
            Err(error) => assert!(since.elapsed() < Duration::from_secs(20), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Signals and exit codes are the program's; what can't be started says so; another agent's token, a
/// revoked one and an unknown one start nothing.
#[test]
fn ticket_starts_what_it_is_told_and_passes_on() {
    let home = TestHome::new();
    let path = home.path();
    let token = home.token("a", &["--tool", "echo"]);
    let start = |agent: &str, token: &str, command: &[&str]| {
        let begin = ["ticket", &path, "--agent", agent, "--token", token, "--"];
        run(begin.iter().chain(command))
    };
    assert_eq!(start("a", &token, &["sh", "-c", "exit 5"]).code, 5);
    assert_eq!(start("a", &token, &["sh", "-c", "kill -9 $$"]).code, 137);
    assert_eq!(start("a", &token, &["syscap-none"]).code, 127);
    assert_eq!(start("a", &token, &["/etc/passwd"]).code, 126);
    let ran = home.beside("ran");
    let mark = ["touch", ran.to_str().unwrap()];
    start("b", &token, &mark).failed(3);
    start("a", &"0".repeat(64), &mark).failed(3);
    assert_eq!(run(["ticket", &path, "--agent", "a", "--token", &token]).code, 2);
    assert!(!ran.exists());
    // It forks: all of them have the file, and each its own place in it.
    let forks = "import os\nfor _ in range(4): os.fork()\nassert len(os.pread(3, 32, 0)) == 32";
    assert_eq!(start("a", &token, &["python3", "-c", forks]).code, 0);
    let mut command = syscap();
    command.args(["ticket", &path, "--agent", "a", "--token", &token, "--", "sh", "-c"]);
    command.arg("trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done");
    let mut parent = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let process = Pid::from_raw(i32::try_from(parent.id()).unwrap()).unwrap();
    kill_process(process, Signal::TERM).unwrap();
    assert_eq!(parent.wait().unwrap().code(), Some(9));
    until("no server is left", || home.server().is_none());
    assert_eq!(home.verify(), 0);
}

/// The client of the page, in another language: it sees what it has, calls, waits for a person and goes
/// on, is refused by name, and sends nothing that has no exact form.
#[test]
fn client_of_the_page_calls_waits_and_goes_on() {
    const SCRIPT: &str = r#"
import os, sys, threading, time
import client
session = client.join()
print(sorted(tool["name"] for tool in session.tools()), session.agent, flush=True)
write = {"path": "a.txt", "text": "hello"}
asked = session.call("fs.write", write)["error"]
print(asked["reason"], asked["got"], flush=True)
stands = session.wait(int(asked["got"]))
print(*stands, session.call("fs.write", write)["status"], flush=True)
asked = session.call("fs.write", {"path": "b.txt", "text": "x"})["error"]
print(asked["reason"], asked["got"], flush=True)
print(*session.wait(int(asked["got"])), flush=True)
assert session.call("fs.read", {"path": "a.txt"})["error"]["reason"] == "not_granted"
for value in (float("nan"), float("inf"), 1 << 64, {1, 2}, "\ud800", {"a": [object()]}):
    try:
        session.call("echo", {"value": value})
    except ValueError:
        continue
    raise SystemExit(f"{value!r} was sent")
one = session.call("echo", {"value": 1}, key="turn-1")
assert session.call("echo", {"value": 1}, key="turn-1")["result"] == one["result"]
answers = []
call = lambda n: answers.append(session.call("echo", {"value": n})["result"]["value"])
threads = [threading.Thread(target=call, args=[n]) for n in range(12)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
assert sorted(answers) == list(range(12)), answers
try:
    session.channel.ask(client.WAIT, {1: session.number, 2: 1, 3: 600001})
except client.Refused as refused:
    assert (refused.reason, refused.allowed) == (102, "at most 600000 ms"), refused
else:
    raise SystemExit("it waits too long")
try:
    session.channel.ask(8, None)
except client.Lost:
    session = client.join()
if os.fork() == 0:
    try:
        session.left()
    except client.Lost:
        os._exit(0 if client.join().call("echo", {"value": 1})["status"] == "ok" else 1)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
print("left", session.left()[0], flush=True)
"#;
    let home = TestHome::new();
    let path = home.path();
    let policy = r#"{"id": "echoes", "effect": "allow", "subject": {"tool_id": "echo"},
        "when": {"op": "all", "args": []}, "on_fail": "block", "reason": "x"}, {"id""#;
    let policy = crate::cli::approvals::POLICY.replacen("{\"id\"", policy, 1);
    run(["policy", "set", &path, &home.file("policy.json", &policy)]).fine();
    let flags = ["--tool", "echo,fs.write", "--write", "workspace", "--read", "workspace"];
    let token = home.token("a", &[&flags[..], &["--budget", "calls=100"]].concat());
    let mut command = syscap();
    command.args(["ticket", &path, "--agent", "a", "--token", &token, "--"]);
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples");
    command.args(["python3", "-B", "-c", SCRIPT]).env("PYTHONPATH", examples);
    let mut parent = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(parent.stdout.take().unwrap()).lines();
    let mut next = || said.next().unwrap().unwrap();
    assert_eq!(next(), "['echo', 'fs_write'] a");
    let asked = |line: String| line.strip_prefix("asked ").unwrap().to_owned();
    let first = asked(next());
    run(["approvals", "approve", &path, &first]).fine();
    assert_eq!(next(), "approved None ok");
    assert_eq!(std::fs::read_to_string(home.workspace("a").join("a.txt")).unwrap(), "hello");
    let second = asked(next());
    run(["approvals", "deny", &path, &second, "--because", "not today"]).fine();
    assert_eq!(next(), "denied not today");
    assert_eq!(next(), "left 81");
    assert_eq!(parent.wait().unwrap().code(), Some(0));
    assert!(!home.workspace("a").join("b.txt").exists());
    until("no server is left", || home.server().is_none());
    assert_eq!(home.verify(), 0);
}

/// What is offered below a prefix has the class that the operator has written, and names that are another's
/// are no prefix.
#[test]
fn offers_of_a_program_have_the_class_that_was_written() {
    use syscap::format::{EffectClass, Manifest};
    use syscap::host::{Begun, OwnUse};
    use syscap::provide::{HostCall, HostRan, Provider};

    struct Quiet;
    impl Provider for Quiet {
        fn run(&self, _: HostCall) -> HostRan {
            let none = syscap::format::Canonical::null();
            HostRan::new(Ok(none), syscap::format::TxOutcome::NoOp, syscap::format::Amounts::ZERO)
        }
    }

    let home = TestHome::new();
    let token = home.token("a", &["--tool", "echo"]);
    let started = Started::with(&home, &token, &["--offer", "py.=read", "--offer", "send"]);
    let running = Started::with(&home, &token, &["--offer", "py.=read", "--client-runs"]);
    let agent = Runtime::agent(&started.home).unwrap();
    let session = agent.take(&started.ticket).unwrap();
    let tools = ["py.find", "send"]
        .map(|name| Manifest::new(ToolId::new(name).unwrap(), EffectClass::Pure));
    agent.provide(tools.to_vec(), std::sync::Arc::new(Quiet)).unwrap();
    let path = home.path();
    for (tool, class) in [("py.find", "read"), ("send", "external_write")] {
        let shown = run(["--json", "tools", "show", &path, tool]).fine().one();
        assert_eq!(shown["effect"], class, "{shown}");
    }
    // It runs them itself where the operator has said so, and not else.
    let begins = |session: &Session| {
        let (tool, args) = (ToolId::new("py.find").unwrap(), args! {}.finish());
        session.begin_use(&OwnUse { id: None, tool, args, location: None, part: None })
    };
    assert!(is_not_bound(begins(&session)));
    let runs = Runtime::agent(&running.home).unwrap();
    let runs_session = runs.take(&running.ticket).unwrap();
    runs.provide(tools[..1].to_vec(), std::sync::Arc::new(Quiet)).unwrap();
    let Ok(Begun::Answered(answer)) = begins(&runs_session) else { panic!("it is not granted") };
    assert_eq!(answer.reason(), Some(Reason::NotGranted));
    let alone = ["ticket", &path, "--agent", "a", "--token", &token, "--client-runs", "--", "true"];
    assert_eq!(run(alone).code, 2);
    for (offer, code) in [("fs.", 3), ("claude_code", 3), ("py=none", 2), ("Py", 2)] {
        let flags = ["ticket", &path, "--agent", "a", "--token", &token, "--offer", offer];
        assert_eq!(run(flags.iter().chain(&["--", "true"])).code, code, "{offer}");
    }
    drop((session, agent, runs, runs_session));
    assert_eq!((started.ends(), running.ends()), (Some(7), Some(7)));
    until("no server is left", || home.server().is_none());
    assert_eq!(home.verify(), 0);
}

/// The same over the streams of a program, as over ssh; running a ticket the client brings its own.
#[test]
fn channel_is_carried_by_a_program() {
    const SCRIPT: &str = r#"
import os, subprocess, sys
import client
carried = client.over([sys.argv[1], "channel"])
print(carried.call("echo", {"value": 1})["status"], carried.agent, flush=True)
data = os.pread(3, os.fstat(3).st_size, 0)
bare = subprocess.Popen([sys.argv[1], "channel", data[32:]], stdin=-1, stdout=-1, pass_fds=())
assert bare.stdout.read(1) == b"-"
own = client.Session(client.Channel(bare.stdout, bare.stdin), data[:32])
print(own.call("echo", {"value": "x" * 500000})["status"], own.number != carried.number, flush=True)
"#;
    let home = TestHome::new();
    let path = home.path();
    let token = home.token("a", &["--tool", "echo"]);
    let mut command = syscap();
    command.args(["ticket", &path, "--agent", "a", "--token", &token, "--"]);
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples");
    // `over` hands descriptor 3 on, as a shell does.
    let script = SCRIPT.replace(
        "import client\n",
        "import client\nos.set_inheritable(3, True)\n\
        popen = subprocess.Popen\n\
        client.subprocess.Popen = lambda *a, **k: popen(*a, **{'pass_fds': (3,), **k})\n",
    );
    command.args(["python3", "-B", "-c", &script, env!("CARGO_BIN_EXE_syscap")]);
    let output = command.env("PYTHONPATH", examples).output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), &*out), (Some(0), "ok a\nok True\n"), "{err}");
    // Neither a ticket nor a home; a home that nobody serves.
    until("no server is left", || home.server().is_none());
    assert_eq!(run(["channel"]).code, 2);
    assert_ne!(run(["channel", &path]).code, 0);
    assert_eq!(home.verify(), 0);
}

/// Each call of the contract is answered to the client in Python as the library answers it, and on record
/// by the same kinds.
#[test]
fn client_in_python_keeps_the_contract() {
    const SCRIPT: &str = r#"
import base64, json, sys
import client
KEPT = "kind", "reason", "field", "allowed", "retry", "output"

def value(given):
    """A value of JSON with its escapes, as CBOR has it: `$ref` and `$lit` are the server's to read."""
    if isinstance(given, dict) and list(given) == ["$bytes"]:
        return base64.b64decode(given["$bytes"])
    if isinstance(given, dict):
        return {key: value(one) for key, one in given.items()}
    return [value(one) for one in given] if isinstance(given, list) else given

def plain(given):
    if isinstance(given, bytes):
        return {"$bytes": base64.b64encode(given).decode()}
    if isinstance(given, dict) and list(given) in (["$bytes"], ["$ref"], ["$lit"]):
        return {"$lit": given}
    if isinstance(given, dict):
        return {key: plain(one) for key, one in given.items()}
    return [plain(one) for one in given] if isinstance(given, list) else given

session = client.join()
for line in json.load(open(sys.argv[1]))["calls"]:
    call = line["call"]
    envelope = {"tool_id": call["tool"], "args": value(call["args"])}
    if "key" in call:
        envelope["idempotency_key"] = call["key"]
    sent = {1: client.encode(envelope), 2: 1, 3: 2, 4: {1: 0, 2: [], 3: False}}
    answer, delivered = session.channel.ask(client.CALL, {1: session.number, 2: sent})
    said = {"status": answer["status"], "tx_outcome": answer["tx_outcome"]}
    if answer["status"] == "ok":
        said["result"] = plain(delivered)
    else:
        said["error"] = {name: plain(delivered[name]) for name in KEPT if name in delivered}
        if delivered.get("field") == "$ref.record":
            del said["error"]["allowed"]  # Numbers of records of this home.
    if said != line["answer"]:
        raise SystemExit(f"{json.dumps(call)[:300]}\\n{json.dumps(said)}\\n{json.dumps(line['answer'])}")
"#;
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let contract = format!("{root}/bindings/contract/calls.json");
    let read: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&contract).unwrap()).unwrap();
    let home = TestHome::new();
    let path = home.path();
    run(["policy", "set", &path, &home.file("policy.json", &read["policy"].to_string())]).fine();
    let tools: Vec<&str> =
        read["tools"].as_array().unwrap().iter().map(|tool| tool.as_str().unwrap()).collect();
    let tools = tools.join(",");
    let flags = ["--tool", &tools, "--read", "workspace", "--write", "workspace"];
    let token = home.token("a", &flags);
    let before = home.log().len();
    let mut command = syscap();
    command.args(["ticket", &path, "--agent", "a", "--token", &token, "--"]);
    command.args(["python3", "-B", "-c", SCRIPT, &contract]);
    let output = command.env("PYTHONPATH", format!("{root}/docs/examples")).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    until("no server is left", || home.server().is_none());
    // But for the beginning and the end of server and session.
    let kinds = home.log()[before..]
        .iter()
        .map(|record| record["kind"].as_str().unwrap().to_owned())
        .filter(|kind| !["boot", "session", "shutdown", "refusals"].contains(&&**kind))
        .collect::<Vec<_>>();
    let wanted = read["calls"].as_array().unwrap().iter().flat_map(|call| {
        call["records"].as_array().unwrap().iter().map(|kind| kind.as_str().unwrap().to_owned())
    });
    assert_eq!(kinds, wanted.collect::<Vec<_>>());
    assert_eq!(home.verify(), 0);
}
