//! Servers that a client starts: what they keep of it, and when they end.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, getuid, kill_process};
use serde_json::Value;
use syscap::Options;
use syscap::format::EffectClass;
use syscap::host::HostTool;

use crate::cli::support::{ECHO, Run, Serving, TestHome, lives, run, run_with, until};

/// How the last run of a home ended.
fn end(home: &TestHome) -> Value {
    let shown = run(["verify", &home.path(), "--json"]);
    shown.one()["end"].clone()
}

fn boots(home: &TestHome) -> usize {
    home.log().iter().filter(|record| record["kind"] == "boot").count()
}

/// A call that a shell starts, after it has done this.
fn call_after(home: &TestHome, token: &str, before: &str) -> Run {
    let script = format!("{before}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_syscap"), "call", &home.path()]);
    command.args(["--agent", "a", "--token", token]);
    let input = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = input.spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{ECHO}").unwrap();
    Run::of(child.wait_with_output().unwrap())
}

/// A line of a process's state.
fn state(process: Pid, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.unwrap().trim().to_owned()
}

/// Neither environment, folder, umask, session, descriptors nor ignored signals of the client are
/// the server's.
#[test]
fn started_server_keeps_nothing_of_its_client() {
    let home = TestHome::new();
    let id = home.worker("a");
    let script = "umask 0; trap '' USR1 TERM; ulimit -S -n 64; exec 9<\"$1/trust.cbor\"; exec \"$0\" \
                  call \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_syscap"), &home.path()]);
    command.args(["--agent", "a", "--token", &id]).env("AWS_SECRET_ACCESS_KEY", "hunter2");
    command.current_dir(home.folder.path()).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    until("it serves", || home.beside("home/socket").exists());
    let server = home.server().unwrap();
    assert_eq!(state(server, "Umask"), "0077");
    // The runtime of the language ignores SIGPIPE, and nothing else is; what is above 31 is of real
    // time.
    let ignored = u64::from_str_radix(&state(server, "SigIgn"), 16).unwrap();
    assert_eq!(ignored & 0x7fff_ffff, 1 << 12);
    assert_eq!(u64::from_str_radix(&state(server, "SigBlk"), 16).unwrap(), 0);
    let proc = format!("/proc/{}", server.as_raw_nonzero());
    let stat = fs::read_to_string(format!("{proc}/stat")).unwrap();
    let session = stat.rsplit(") ").next().unwrap().split(' ').nth(3).unwrap().to_owned();
    assert_eq!(session, server.as_raw_nonzero().to_string());
    let limits = fs::read_to_string(format!("{proc}/limits")).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let files: Vec<&str> = files.split_whitespace().skip(3).collect();
    assert_eq!(files[0], files[1], "the soft limit is the hard one");
    // A program that opens keys shows these to root alone.
    if getuid().is_root() {
        assert_eq!(fs::read_link(format!("{proc}/cwd")).unwrap().to_str(), Some("/"));
        let environ = fs::read_to_string(format!("{proc}/environ")).unwrap();
        let names = environ.split_terminator('\0').map(|one| one.split('=').next().unwrap());
        let known = ["PATH", "HOME", "LANG", "TZ"];
        assert!(names.into_iter().all(|name| known.contains(&name)), "{environ}");
        let open = fs::read_dir(format!("{proc}/fd")).unwrap().flatten();
        let open: Vec<_> = open.filter_map(|entry| fs::read_link(entry.path()).ok()).collect();
        assert!(open.iter().all(|path| !path.ends_with("trust.cbor")), "{open:?}");
        assert!(open.iter().any(|path| path.ends_with("server.log")), "{open:?}");
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(end(&home), "clean");
}

/// One that would end by a limit of its client is not started, and the limit is named.
#[test]
fn no_server_is_started_under_a_limit() {
    let home = TestHome::new();
    let id = home.worker("a");
    let before = boots(&home);
    let limits =
        [("-t 1000", "processor time"), ("-f 100000", "size of files"), ("-v 9000000", "memory")];
    for (limit, named) in limits {
        let said = call_after(&home, &id, &format!("ulimit {limit}")).failed(4).err;
        assert!(said.contains(named) && said.contains(limit.split(' ').next().unwrap()), "{said}");
    }
    assert_eq!((boots(&home), end(&home)), (before, "clean".into()));
}

/// What keeps a server from serving is said by the client that has started it.
#[test]
fn server_that_fails_says_why() {
    let home = TestHome::new();
    let id = home.worker("a");
    fs::write(home.beside("home/socket"), "no socket").unwrap();
    let said = home.call_run("a", &id, ECHO.as_bytes()).failed(4).err;
    assert!(said.contains("home/socket") && said.contains("none could be started"), "{said}");
    fs::remove_file(home.beside("home/socket")).unwrap();
    home.call("a", &id, ECHO.as_bytes());
    assert_eq!(end(&home), "clean");
}

/// Its words lie in the home, for its owner only, and have a bound.
#[test]
fn log_of_a_server_has_a_bound() {
    let home = TestHome::new();
    let id = home.worker("a");
    home.call("a", &id, ECHO.as_bytes());
    let (log, older) = (home.beside("home/server.log"), home.beside("home/server.log.1"));
    let said = fs::read_to_string(&log).unwrap();
    assert!(said.contains("serving ") && !older.exists(), "{said}");
    fs::write(&log, vec![b'.'; 1 << 20]).unwrap();
    home.call("a", &id, ECHO.as_bytes());
    assert_eq!(fs::metadata(&older).unwrap().len(), 1 << 20);
    assert!(fs::metadata(&log).unwrap().len() < 1_000);
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
}

/// A client that stays, and the end of its input is its end.
fn client(home: &TestHome, kind: &str, token: &str) -> Child {
    let (path, id) = (home.path(), ["--agent", "a", "--token", token]);
    let program = ["--", "/bin/cat"];
    let words = match kind {
        "call" => [&["call", &path][..], &id].concat(),
        "mcp" => [&["mcp", &path][..], &id, &program].concat(),
        "run" => {
            let place = home.text_beside("place");
            fs::create_dir_all(&place).unwrap();
            return command(&["run", &path, "--agent", "a"], &["--workspace", &place, "--", "cat"]);
        }
        other => panic!("{other}?"),
    };
    command(&words, &[])
}

fn command(words: &[&str], more: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_syscap"));
    command.args(words).args(more).stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The server of whatever client stays ends with it, by the time that the client has ended; if the
/// client is killed, soon; and where its home is removed.
#[test]
fn server_ends_with_the_last_that_stays() {
    for kind in ["call", "mcp", "run"] {
        let home = TestHome::new();
        let id = home.worker("a");
        for ends_by in ["itself", "a kill", "the home's end"] {
            let mut client = client(&home, kind, &id);
            until("it is served", || home.beside("home/socket").exists());
            let server = home.server().unwrap();
            until("the client is there", || {
                let seen = run(["top", &home.path(), "--once", "--json"]).fine().one();
                seen["counts"]["attached"].as_u64().unwrap() > 1
            });
            match ends_by {
                "itself" => {
                    drop(client.stdin.take());
                    client.wait().unwrap();
                    assert_eq!(end(&home), "clean", "{kind}");
                    until("the server has gone", || !lives(server));
                }
                "a kill" => {
                    client.kill().unwrap();
                    client.wait().unwrap();
                    until("the server of one that was killed ends", || !lives(server));
                }
                _ => {
                    fs::rename(home.beside("home"), home.beside("away")).unwrap();
                    until("the server ends", || !lives(server));
                    fs::rename(home.beside("away"), home.beside("home")).unwrap();
                    client.kill().unwrap();
                    client.wait().unwrap();
                    continue;
                }
            }
            assert_eq!(end(&home), "clean", "{kind}, by {ends_by}");
        }
        until("nobody serves it", || home.server().is_none());
    }
}

/// Clients that come while a server ends find the next one: none is turned away, and the log is
/// sound.
#[test]
fn clients_meet_the_end_of_a_server() {
    let home = TestHome::new();
    let id = home.worker("a");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (home, id) = (&home, &id);
            scope.spawn(move || {
                for _ in 0..8 {
                    assert_eq!(home.call("a", id, ECHO.as_bytes())[0]["status"], "ok");
                }
            });
        }
    });
    let outcomes = home.log().iter().filter(|record| record["kind"] == "outcome").count();
    assert_eq!((outcomes, end(&home), home.server()), (32, "clean".into(), None));
}

/// A program that was replaced while it ran starts what it is itself.
#[test]
fn replaced_program_starts_a_server_of_its_own() {
    let home = TestHome::new();
    let id = home.worker("a");
    let program = home.beside("syscap");
    fs::copy(env!("CARGO_BIN_EXE_syscap"), &program).unwrap();
    let mut command = Command::new(&program);
    command.args(["call", &home.path(), "--agent", "a", "--token", &id]);
    let mut holder = crate::cli::support::Holder::of(command);
    assert_eq!(holder.ask(ECHO)["status"], "ok");
    fs::remove_file(&program).unwrap();
    fs::write(&program, "#!/bin/false\n").unwrap();
    home.kill_server();
    assert_eq!(holder.ask(ECHO)["status"], "ok");
    assert_eq!(holder.end(), 0);
    assert_eq!(end(&home), "clean");
}

/// `serve --stop` ends whoever serves the home; a client that stays starts another once it needs one.
#[test]
fn server_is_stopped_by_a_command() {
    let home = TestHome::new();
    let id = home.worker("a");
    let stop = || run(["serve", &home.path(), "--stop"]);
    let serving = Serving::of(&home.path(), &[]);
    assert!(stop().err.contains("served no longer"));
    assert_eq!((serving.end(), end(&home)), (Some(0), "clean".into()));
    let none = stop();
    assert!(none.code == 0 && none.err.contains("no process serves"), "{}", none.err);
    let mut holder = home.hold("a", &id);
    assert_eq!(holder.ask(ECHO)["status"], "ok");
    assert_eq!(stop().code, 0);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!((home.server(), end(&home)), (None, "clean".into()));
    assert_eq!(holder.ask(ECHO)["status"], "ok");
    assert_eq!(holder.end(), 0);
    assert_eq!(end(&home), "clean");
}

/// What only asks and goes, as a hook does, leaves a server behind, for the next one. It is ended by
/// a command, and by a signal.
#[test]
fn hook_leaves_a_server_for_the_next() {
    let home = TestHome::new();
    let hook = ["hook", &home.path(), "--agent", "a", "--client", "claude-code"];
    assert_eq!(run([&hook[..], &["--setup", "--print"]].concat()).code, 0);
    let event = r#"{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"hello"}"#;
    run_with(hook, event.as_bytes()).fine();
    let server = home.server().expect("it stays");
    run_with(hook, event.as_bytes()).fine();
    assert_eq!(home.server(), Some(server));
    // One that stays takes it with it.
    let id = home.worker("a");
    home.call("a", &id, ECHO.as_bytes());
    until("it has gone", || !lives(server));
    run_with(hook, event.as_bytes()).fine();
    let server = home.server().unwrap();
    kill_process(server, Signal::TERM).unwrap();
    until("it ends", || !lives(server));
    assert_eq!(end(&home), "clean");
}

/// A home that a program serves with tools of its own has no other server: the program is named.
#[test]
fn no_server_takes_the_place_of_one_with_tools_of_its_own() {
    let home = TestHome::new();
    let id = home.worker("a");
    let tool = HostTool::new("mail.send", EffectClass::ExternalWrite).unwrap();
    let own = Options::new().tool(tool.run(|_| Ok("sent"))).unwrap().open(home.path()).unwrap();
    // Its clients are served.
    home.call("a", &id, ECHO.as_bytes());
    own.close().unwrap();
    let before = boots(&home);
    let said = home.call_run("a", &id, ECHO.as_bytes()).failed(4).err;
    assert!(said.contains("tools or keys of its own") && said.contains("cli-"), "{said}");
    assert_eq!(boots(&home), before);
    let said = fs::read_to_string(home.beside("home/server")).unwrap();
    assert!(said.starts_with("program cli-"), "{said}");
    fs::remove_file(home.beside("home/server")).unwrap();
    home.call("a", &id, ECHO.as_bytes());
}

/// A server of another version, as a client has started it: it speaks version 99 alone, and ends where
/// it is told to.
const OTHER: &str = r#"
import fcntl, os, socket, sys
home, sessions = sys.argv[1], int(sys.argv[3])
lock = open(home + "/lock", "a"); fcntl.flock(lock, fcntl.LOCK_EX)
server = socket.socket(socket.AF_UNIX); server.bind(home + "/socket"); server.listen(8)
print("ready", flush=True)
def framed(body): return len(body).to_bytes(4, "big") + body
while True:
    stream, _ = server.accept()
    with stream:
        while len(head := stream.recv(4)) == 4:
            asked = stream.recv(int.from_bytes(head, "big"))
            kind, number = asked[1], asked[2:3]
            if kind == 1: stream.sendall(framed(bytes([0x84, 3, 0x18, 106, 0x18, 99, 0x18, 99])))
            elif kind == 6: stream.sendall(framed(b"\x8b\x0b" + number + b"\x58\x20" + b"\xaa" * 32
                + b"\x18\x63\x18\x63\x01\x05\x58\x20" + b"\xcc" * 32 + bytes([sessions, 0, 0])))
            elif kind == 7:
                stream.sendall(framed(b"\x83\x09" + number + b"\x18\x2a")); os.unlink(home + "/socket"); sys.exit(0)
            else: sys.exit(1)
"#;

/// A started server of another version is ended and followed where nobody uses it; else it is named,
/// with the command that ends it.
#[test]
fn unused_server_of_another_version_is_followed() {
    let home = TestHome::new();
    let id = home.worker("a");
    for (sessions, code) in [("1", 4), ("0", 0)] {
        fs::write(home.beside("serve"), OTHER).unwrap();
        let mut other = Command::new("python3");
        other.current_dir(home.folder.path()).args(["serve", &home.path(), "--started", sessions]);
        let mut other = other.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(other.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n");
        let called = home.call_run("a", &id, ECHO.as_bytes());
        assert_eq!(called.code, code, "{}", called.err);
        if code == 4 {
            let stop = format!("syscap serve {} --stop", home.path());
            for named in ["version 99", &other.id().to_string(), &stop] {
                assert!(called.err.contains(named), "{named} in {}", called.err);
            }
            assert!(run(["serve", &home.path(), "--stop"]).err.contains("record 42"));
        }
        assert_eq!(other.wait().unwrap().code(), Some(0));
    }
    assert_eq!(end(&home), "clean");
}

/// The owner says how long such a server stays where only hooks come, and whether it asks people; what
/// is not known starts none.
#[test]
fn owner_says_how_a_started_server_serves() {
    let home = TestHome::new();
    let set = |more: &[&str]| run([&["config", &home.path()][..], more].concat());
    assert_eq!(set(&["--idle", "0s", "--headless", "yes"]).code, 0);
    let shown = set(&["--json"]).fine().one();
    assert_eq!(
        (&shown["server"]["idle_s"], &shown["server"]["headless"]),
        (&0.into(), &true.into())
    );
    let hook = ["hook", &home.path(), "--agent", "a", "--client", "claude-code"];
    assert_eq!(run([&hook[..], &["--setup", "--print"]].concat()).code, 0);
    let event = r#"{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"hello"}"#;
    run_with(hook, event.as_bytes()).fine();
    until("it ends with the hook", || home.server().is_none());
    assert_eq!(end(&home), "clean");
    assert_eq!(set(&["--headless", "no", "--idle", "2s"]).code, 0);
    run_with(hook, event.as_bytes()).fine();
    let server = home.server().expect("it stays");
    std::thread::sleep(Duration::from_secs(1));
    assert!(lives(server));
    until("it ends by itself", || !lives(server));
    fs::write(home.beside("home/server"), "idle 2\nmoon\n").unwrap();
    let said = home.call_run("a", &home.worker("a"), ECHO.as_bytes()).failed(4).err;
    assert!(said.contains("home/server") && said.contains("not known"), "{said}");
}

/// The first process of a container takes its server with it, and waits for the server's end: the log
/// ends clean, and nothing is killed by the end of the namespace.
#[test]
fn first_process_of_a_container_leaves_a_clean_log() {
    let home = TestHome::new();
    let id = home.worker("a");
    for kind in ["call", "mcp"] {
        let words = ["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_syscap"), kind];
        let mut command = Command::new("unshare");
        command.args(words).args([&home.path(), "--agent", "a", "--token", &id]);
        if kind == "mcp" {
            command.args(["--", "/bin/cat"]);
        }
        let input = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = input.spawn().unwrap();
        if kind == "call" {
            writeln!(child.stdin.take().unwrap(), "{ECHO}").unwrap();
        }
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if said.contains("unshare: ") {
            println!("skipped: {said}");
            return;
        }
        assert!(kind == "mcp" || output.status.success(), "{said}");
        assert_eq!(end(&home), "clean", "{kind}");
        assert!(fs::read_to_string(home.beside("home/server.log")).unwrap().contains("serving"));
    }
}
