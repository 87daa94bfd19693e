//! `serve`, and what becomes of those who are attached.

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use syscap::audit::HomeLock;
use syscap::format::{Amounts, Canonical, EffectClass, Manifest, ToolId, TxOutcome};
use syscap::provide::{HostCall, HostRan, Provider};
use syscap::{Operator, Runtime};

use crate::cli::approvals::{asking, write};
use crate::cli::support::{ECHO, Serving, TestHome, run, syscap, until};

/// How the last run of a home ended.
fn end(home: &TestHome) -> serde_json::Value {
    run(["verify", &home.path(), "--json"]).fine().one()["end"].clone()
}

#[test]
fn serve_keeps_the_home_until_a_signal() {
    let home = TestHome::new();
    let socket = home.beside("home/socket");
    for signal in [Signal::TERM, Signal::INT] {
        let serving = Serving::of(&home.path(), &[]);
        assert!(socket.exists());
        let id = home.worker("a");
        assert_eq!(home.call("a", &id, ECHO.as_bytes())[0]["status"], "ok");
        assert_eq!(end(&home), "live");
        serving.signal(signal);
        assert_eq!(serving.end(), Some(0));
        assert_eq!(end(&home), "clean");
        assert!(!socket.exists());
    }
}

/// Who is connected when it ends goes on: it starts a server.
#[test]
fn connected_client_continues_after_serve_ends() {
    let home = TestHome::new();
    let serving = Serving::of(&home.path(), &[]);
    let id = home.worker("a");
    let mut caller = home.hold("a", &id);
    assert_eq!(caller.ask(ECHO)["status"], "ok");
    serving.stop();
    assert_eq!(caller.ask(ECHO)["status"], "ok");
    assert_eq!(caller.end(), 0);
    assert_eq!(end(&home), "clean");
}

#[test]
fn a_home_has_one_holder() {
    let home = TestHome::new();
    let serving = Serving::of(&home.path(), &[]);
    run(["serve", &home.path()]).failed(4);
    serving.stop();
    let id = home.worker("a");
    let mut holder = home.hold("a", &id);
    holder.ask(ECHO);
    run(["serve", &home.path()]).failed(4);
    assert_eq!(holder.end(), 0);
    assert_eq!(home.verify(), 0);
}

#[test]
fn idle_serve_ends_by_itself() {
    let home = TestHome::new();
    let id = home.worker("a");
    let (since, idle) = (Instant::now(), Duration::from_secs(2));
    let serving = Serving::of(&home.path(), &["--idle", "2s"]);
    // As long as somebody is attached it is not idle.
    let mut caller = home.hold("a", &id);
    assert_eq!(caller.ask(ECHO)["status"], "ok");
    std::thread::sleep(idle + Duration::from_secs(1));
    assert_eq!(caller.ask(ECHO)["status"], "ok");
    assert_eq!(end(&home), "live");
    assert_eq!(caller.end(), 0);
    let left = Instant::now();
    assert_eq!(serving.end(), Some(0));
    assert!(left.elapsed() >= Duration::from_secs(1) && since.elapsed() > idle * 2);
    assert_eq!(end(&home), "clean");
    let boots = home.log().into_iter().filter(|record| record["kind"] == "boot").count();
    assert_eq!(boots, 3, "one holder served all of it");
}

/// It is killed, and leaves its socket: the next command recovers.
#[test]
fn the_next_command_recovers() {
    let home = TestHome::new();
    let mut serving = Serving::of(&home.path(), &[]);
    let id = home.worker("a");
    serving.child.kill().unwrap();
    serving.child.wait().unwrap();
    assert_eq!(home.verify(), 11);
    assert!(home.beside("home/socket").exists());
    run(["revoke", &home.path(), &id]).fine();
    assert_eq!(end(&home), "clean");
    Serving::of(&home.path(), &[]).stop();
    assert_eq!(end(&home), "clean");
}

/// A tool that says when it is called, and comes back when it may.
struct Slow(mpsc::Sender<()>, std::sync::Mutex<mpsc::Receiver<()>>);

impl Provider for Slow {
    fn run(&self, _: HostCall) -> HostRan {
        self.0.send(()).unwrap();
        self.1.lock().unwrap().recv().unwrap_or(());
        HostRan::new(Ok(Canonical::null()), TxOutcome::Committed, Amounts::ZERO)
    }
}

/// The holder is killed while a call is out: what came of it nobody knows, and that is said.
#[test]
fn a_call_whose_holder_is_killed_is_4_and_on_record() {
    let home = TestHome::new();
    let mut serving = Serving::of(&home.path(), &[]);
    let provided = Runtime::connect(home.path()).unwrap();
    let (called, calls) = mpsc::channel();
    let (go_on, waits) = mpsc::channel();
    let manifest = Manifest::new(ToolId::new("slow.write").unwrap(), EffectClass::LocalWrite);
    let provider = Arc::new(Slow(called, std::sync::Mutex::new(waits)));
    provided.provide(vec![manifest], provider).unwrap();
    let id = home.token("a", &["--tool", "slow.write"]);
    let mut command = syscap();
    command.args(["call", &home.path(), "--agent", "a", "--token", &id]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"tool_id\":\"slow.write\",\"args\":{}}\n").unwrap();
    calls.recv().unwrap();
    let seen = run(["top", &home.path(), "--once", "--json"]).fine().one();
    assert_eq!(seen["running"][0]["tool"], "slow.write");
    assert!(seen["running"][0]["for_ms"].is_u64());
    assert_eq!(seen["tokens"][0]["held"]["calls"], 1);
    serving.child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(4), &b""[..]), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    drop(go_on);
    drop(provided);
    let recovered = |kind: &str| home.log().iter().filter(|r| r["kind"] == kind).count();
    run(["token", "issue", &home.path(), "--agent", "a", "--tool", "echo"]).fine();
    assert_eq!((recovered("intent"), recovered("outcome"), recovered("recovery")), (1, 0, 1));
    assert_eq!(home.verify(), 0);
}

/// A holder that speaks version 9 only: it turns away who says hello, says how things stand, and
/// calls everything else done by record 42.
fn other_version(listener: &UnixListener) {
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut length = [0; 4];
        while stream.read_exact(&mut length).is_ok() {
            let mut asked = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
            stream.read_exact(&mut asked).unwrap();
            let answer = match (asked[1], asked[2]) {
                (1, _) => vec![0x84, 3, 0x18, 106, 9, 9],
                (6, id) => {
                    let home = [&[0x8b, 11, id, 0x58, 0x20][..], &[0xaa; 32]].concat();
                    [home, vec![9, 9, 1, 5, 0x58, 0x20], vec![0xcc; 32], vec![0, 0, 0]].concat()
                }
                (_, id) => vec![0x83, 9, id, 0x18, 42],
            };
            let length = u32::try_from(answer.len()).unwrap().to_be_bytes();
            stream.write_all(&[&length[..], &answer].concat()).unwrap();
        }
    }
}

/// A holder of another version is said to be that, by all who would attach to it; and is stopped
/// all the same.
#[test]
fn a_holder_of_another_version_is_4() {
    let home = TestHome::new();
    let id = "0".repeat(64);
    let _lock = HomeLock::take(&home.beside("home")).unwrap();
    let listener = UnixListener::bind(home.beside("home/socket")).unwrap();
    std::thread::spawn(move || other_version(&listener));
    let path = home.path();
    for args in [
        &["call", &path, "--agent", "a", "--token", &id][..],
        &["serve", &path],
        &["tools", "list", &path],
        &["policy", "set", &path, "--no-shadow"],
    ] {
        let said = run(args).failed(4).err;
        assert!(said.contains("version 9") && said.contains("this program is older"), "{said}");
        assert!(said.contains(&format!("syscap serve {path} --stop")), "{said}");
    }
    for args in [
        &["revoke", &path, &id][..],
        &["token", "revoke", &path, &id],
        &["freeze", &path, "--all"],
        &["thaw", &path, "--agent", "a"],
    ] {
        assert_eq!(run([args, &["--json"]].concat()).fine().one()["record"], 42, "{args:?}");
    }
    // What only reads the log needs no holder.
    assert_eq!(run(["token", "list", &path]).code, 0);
    assert_eq!(home.verify(), 0);
}

/// After a second of silence a person is told which process has the home open.
#[test]
fn silent_server_is_named() {
    let home = TestHome::new();
    let serving = Serving::of(&home.path(), &[]);
    serving.signal(Signal::STOP);
    let mut command = syscap();
    command.args(["freeze", &home.path(), "--all"]).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut freeze = command.spawn().unwrap();
    let said = BufReader::new(freeze.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    serving.signal(Signal::CONT);
    assert!(freeze.wait().unwrap().success());
    let (process, line) = (serving.child.id(), format!("serve {}", home.path()));
    assert!(said.contains(&format!("process {process} (")) && said.contains(&line), "{said}");
    serving.stop();
}

/// A look that a server does not answer within a second is one at the log, and says so; it writes
/// nothing.
#[test]
fn look_beside_a_silent_server_is_at_the_log() {
    let (home, id) = asking();
    let serving = Serving::of(&home.path(), &[]);
    let asked = home.call("a", &id, write("a.txt", "hello").as_bytes()).remove(0);
    assert_eq!(asked["error"]["reason"], "asked", "{asked}");
    let list = || run(["approvals", "list", &home.path(), "--all", "--json"]);
    let told = list().fine().out;
    assert_eq!(told.lines().count(), 1);
    serving.signal(Signal::STOP);
    let bytes = || fs::read(home.beside("home/home.db")).unwrap();
    let before = bytes();
    let folded = list();
    assert_eq!(bytes(), before);
    serving.signal(Signal::CONT);
    assert_eq!((folded.code, &folded.out), (0, &told));
    assert!(folded.err.contains("no answer within a second"), "{}", folded.err);
    serving.stop();
    assert_eq!(list().fine().out, told);
}

/// A command line without a home means that of `SYSCAP_HOME`. `init` makes one, and takes none.
#[test]
fn syscap_home_names_the_home() {
    let home = TestHome::new();
    home.worker("a");
    let of = |args: &[&str]| {
        let output = syscap().args(args).env("SYSCAP_HOME", home.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(of(&["token", "list"]).0, Some(0));
    // The number is one, and no home.
    let (code, said) = of(&["approvals", "show", "99"]);
    assert!(code == Some(2) && said.contains("99: is no record"), "{said}");
    assert_eq!(of(&["init"]).0, Some(2));
    assert_eq!(of(&["token"]).0, Some(2));
}

/// An operator shuts the home down by its socket: the process that serves it ends as it should.
#[test]
fn serve_ends_when_the_home_is_shut_down() {
    let home = TestHome::new();
    for idle in [&["--idle", "1h"][..], &[]] {
        let serving = Serving::of(&home.path(), idle);
        Operator::open(home.path()).unwrap().shutdown().unwrap();
        assert_eq!(end(&home), "clean");
        assert_eq!(serving.end(), Some(0));
        assert!(!home.beside("home/socket").exists());
    }
}

/// Where the policy only records, whoever lets calls through says so.
#[test]
fn a_recording_is_said_loudly() {
    let home = TestHome::new();
    let id = home.worker("a");
    let is_said = |said: &str| said.lines().filter(|line| line.contains("recording")).count() == 1;
    let set = run(["policy", "set", &home.path(), "preset:recording"]);
    assert!(set.code == 0 && is_said(&set.err), "{}", set.err);
    let called = home.call_run("a", &id, ECHO.as_bytes());
    assert!(called.code == 0 && is_said(&called.err), "{}", called.err);
    let serving = Serving::of(&home.path(), &[]);
    assert!(is_said(&serving.said.join("\n")), "{:?}", serving.said);
    // Beside the holder, too.
    let called = home.call_run("a", &id, ECHO.as_bytes());
    assert!(called.code == 0 && is_said(&called.err), "{}", called.err);
    assert_eq!(run(["top", &home.path(), "--once", "--json"]).fine().one()["recording"], true);
    run(["policy", "set", &home.path(), "preset:standard"]).fine();
    home.call("a", &id, ECHO.as_bytes());
    serving.stop();
    Serving::of(&home.path(), &[]).stop();
    until("the socket is gone", || fs::metadata(home.beside("home/socket")).is_err());
}
