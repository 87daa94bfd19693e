//! What goes wrong before a use is a no, and what goes wrong afterwards changes nothing.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::json;

use super::world::{Hooked, claude, terminate, with};
use crate::cli::support::{run_with, syscap, unheard};

fn read(id: &str) -> serde_json::Value {
    claude("PreToolUse", id, "Read", json!({ "file_path": "a" }))
}

#[test]
fn input_that_is_no_event_is_a_no() {
    let hooked = Hooked::new("claude-code", &[]);
    let giant = format!("{{\"hook_event_name\":\"PreToolUse\",\"x\":\"{}\"}}", "x".repeat(9 << 20));
    let deep = format!("{{\"hook_event_name\":\"PreToolUse\",\"x\":{}}}", "[".repeat(100_000));
    let events = [
        String::new(),
        "{".to_owned(),
        "[]".to_owned(),
        r#"{"hook_event_name":"PreToolUse"}"#.to_owned(),
        giant,
        deep,
        with(read("toolu_01"), "hook_event_name", json!("Stop")).to_string(),
        with(read("toolu_01"), "tool_input", json!("text")).to_string(),
        with(read("toolu_01"), "tool_use_id", json!(7)).to_string(),
        with(read("toolu_01"), "session_id", json!("")).to_string(),
        with(read("toolu_01"), "session_id", json!("x".repeat(10_000))).to_string(),
        with(read("toolu_01"), "tool_name", json!(format!("mcp__{}", "x".repeat(10_000))))
            .to_string(),
    ];
    for event in events {
        hooked.changes_nothing(2, |hooked| hooked.raw(event.as_bytes()));
    }
    hooked.changes_nothing(2, |hooked| hooked.raw(b"\xff\xfe"));
    hooked.hook(&read("toolu_02")).fine();
    hooked.end();
}

/// What a model wrote means nothing to the kernel, whatever it looks like, and stops no hook.
#[test]
fn an_input_that_looks_like_an_escape_is_data() {
    let hooked = Hooked::new("claude-code", &[]);
    let inputs = [
        json!({ "file_path": "a", "x": { "$ref": "https://x" } }),
        json!({ "file_path": "a", "x": { "$ref": { "record": 1, "path": [] } } }),
        json!({ "file_path": "a", "x": { "$bytes": "no base64" } }),
        json!({ "file_path": "a", "x": [{ "$lit": { "$lit": { "$ref": 1 } } }] }),
    ];
    for (n, input) in inputs.into_iter().enumerate() {
        let event = claude("PreToolUse", &format!("toolu_{n}"), "Read", input.clone());
        hooked.hook(&event).fine();
        assert_eq!(hooked.last()["kind"], "intent", "{input}");
        hooked.hook(&with(event, "hook_event_name", json!("PostToolUse"))).fine();
        assert_eq!(hooked.last()["status"], "ok", "{input}");
    }
    hooked.end();
}

/// An input that is larger than an envelope is refused by the kernel, on the record.
#[test]
fn a_call_that_is_too_large_is_refused_on_the_record() {
    let hooked = Hooked::new("claude-code", &[]);
    let large = json!({ "file_path": "a", "content": "x".repeat(2 << 20) });
    let reason = super::claude::denied(hooked.hook(&claude("PreToolUse", "t1", "Write", large)));
    assert!(reason.contains("too_large (102)"), "{reason}");
    assert_eq!(hooked.last()["kind"], "refusal");
    // And a result that is: the use was made, and what it brought is not kept.
    hooked.hook(&read("t2")).fine();
    let after = with(read("t2"), "hook_event_name", json!("PostToolUse"));
    hooked.hook(&with(after, "tool_response", json!("x".repeat(5 << 20)))).fine();
    assert_eq!(hooked.last()["reason"], "result_too_large");
    hooked.end();
}

#[test]
fn a_home_that_is_not_there_is_a_no() {
    let hooked = Hooked::loose("claude-code", &[]);
    let args = |home: &str, agent: &str, client: &str| {
        ["hook", home, "--agent", agent, "--client", client].map(str::to_owned)
    };
    let event = read("toolu_01").to_string();
    let nowhere = hooked.home.text_beside("nowhere");
    run_with(args(&nowhere, "coder", "claude-code"), event.as_bytes()).failed(2);
    assert!(!hooked.home.beside("nowhere").exists());
    // Nor is a command line that is wrong.
    let run = run_with(args(&hooked.home.path(), "coder", "emacs"), event.as_bytes());
    assert_eq!((run.code, &*run.out), (2, ""));
    let run = run_with(args(&hooked.home.path(), "Co der", "claude-code"), event.as_bytes());
    assert_eq!((run.code, &*run.out), (2, ""));
}

/// Where nobody is there to be asked the holder that is started asks nobody.
#[test]
fn a_hook_without_a_head_starts_a_holder_without_one() {
    let hooked = Hooked::loose("claude-code", &["--headless"]);
    let settings = hooked.set_up(&[]).out;
    assert!(settings.contains("--headless"), "{settings}");
    let bash = claude("PreToolUse", "toolu_01", "Bash", json!({ "command": "ls" }));
    assert!(hooked.hook(&bash).out.contains("asked (403)"));
    assert_eq!(hooked.last()["kind"], "refusal");
    assert_eq!(hooked.of_kind("ask").len(), 0);
    serving(&hooked.home.path()).iter().for_each(|pid| terminate(*pid));
    while !serving(&hooked.home.path()).is_empty() {
        thread::yield_now();
    }
    hooked.end();
}

#[test]
fn an_agent_without_a_token_that_lives_is_a_no() {
    let hooked = Hooked::new("claude-code", &[]);
    let event = read("toolu_01").to_string();
    let home = hooked.home.path();
    let as_agent = |agent: &str, more: &[&str]| {
        let mut args = vec!["hook", &home, "--agent", agent, "--client", "claude-code"];
        args.extend(more);
        run_with(args, event.as_bytes())
    };
    as_agent("stranger", &[]).failed(2);
    as_agent("coder", &["--token", &"0".repeat(64)]).failed(2);
    let token = hooked.of_kind("issue")[0]["token"].as_str().map(str::to_owned);
    let token = token.unwrap_or_else(|| {
        let list = crate::cli::support::run(["token", "list", &home, "--json"]).fine().json();
        list[0]["id"].as_str().unwrap().to_owned()
    });
    // It is another agent's.
    as_agent("stranger", &["--token", &token]).failed(2);
    crate::cli::support::run(["token", "revoke", &home, &token]).fine();
    as_agent("coder", &[]).failed(2);
    assert_eq!(hooked.of_kind("intent").len(), 0);
    hooked.end();
}

/// Nobody holds the home: one is started that outlives the hook, once, and serves both.
#[test]
fn a_holder_is_started_where_there_is_none() {
    let hooked = Hooked::loose("claude-code", &[]);
    // What the client has opened without `O_CLOEXEC` is not held open by it.
    let clients = fs::File::open(hooked.home.beside("home/keys/issuer.key")).unwrap();
    rustix::io::fcntl_setfd(&clients, rustix::io::FdFlags::empty()).unwrap();
    thread::scope(|scope| {
        for id in ["toolu_01", "toolu_02", "toolu_03"] {
            let hooked = &hooked;
            scope.spawn(move || hooked.hook(&read(id)).fine());
        }
    });
    assert_eq!(hooked.of_kind("intent").len(), 3);
    for id in ["toolu_01", "toolu_02", "toolu_03"] {
        hooked.hook(&with(read(id), "hook_event_name", json!("PostToolUse"))).fine();
    }
    // Those that were not quick enough see that one serves, and end.
    let mut started = serving(&hooked.home.path());
    assert!(!started.is_empty());
    while started.len() > 1 {
        thread::yield_now();
        started = serving(&hooked.home.path());
    }
    for pid in &started {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        let open: Vec<_> = open.filter_map(|entry| fs::read_link(entry.path()).ok()).collect();
        assert!(open.iter().all(|path| !path.ends_with("issuer.key")), "{open:?}");
    }
    started.iter().for_each(|pid| terminate(*pid));
    while !serving(&hooked.home.path()).is_empty() {
        thread::yield_now();
    }
    assert_eq!(hooked.of_kind("boot").len(), 3, "made, set up, and served");
    // A report starts one, which may have let the use through before it ended. This one was not.
    let after = with(read("toolu_04"), "hook_event_name", json!("PostToolUse"));
    assert_eq!(hooked.hook(&after).code, 1);
    assert_eq!((hooked.of_kind("boot").len(), hooked.of_kind("late").len()), (4, 0));
    hooked.end();
}

/// The processes that serve a home.
fn serving(home: &str) -> Vec<u32> {
    let words = [b"serve".as_slice(), home.as_bytes()].join(&0);
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let serves = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(words.len()).any(|window| window == words)
    };
    pids.filter(serves).collect()
}

/// A reader of the answer that has gone is a no: nobody would know.
#[test]
fn an_answer_that_nobody_reads_is_a_no() {
    let hooked = Hooked::new("claude-code", &[]);
    let event = claude("PreToolUse", "toolu_01", "Bash", json!({ "command": "ls" })).to_string();
    let mut command = syscap();
    command.args(["hook", &hooked.home.path(), "--agent", "coder", "--client", "claude-code"]);
    command.args(["--patience", "6s"]);
    command.stdin(std::process::Stdio::piped()).stdout(unheard());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), event.as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    hooked.end();
}

/// Long before the client would give the hook up, and take that for no objection.
#[test]
fn a_hook_that_is_kept_waiting_is_a_no() {
    let hooked = Hooked::loose("claude-code", &["--patience", "2s"]);
    let settings = hooked.set_up(&[]).one();
    assert_eq!(settings["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"], 22);
    let since = Instant::now();
    // By a client that does not say what it wants,
    let mut command = syscap();
    command.args(["hook", &hooked.home.path(), "--agent", "coder", "--client", "claude-code"]);
    command.args(["--patience", "2s"]).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let input = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    drop(input);
    // by a holder that does not say hello, and by one that says no more than that.
    let socket = hooked.home.beside("home").join("socket");
    let greeted = AtomicUsize::new(0);
    for says_hello in [false, true] {
        drop(fs::remove_file(&socket));
        let listener = UnixListener::bind(&socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let ended = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut streams = Vec::new();
                while ended.load(Ordering::SeqCst) == 0 {
                    if let Ok((mut stream, _)) = listener.accept() {
                        stream.set_nonblocking(false).unwrap();
                        if says_hello && stream.read(&mut [0; 1_000]).unwrap() > 0 {
                            stream.write_all(&hello()).unwrap();
                            greeted.fetch_add(1, Ordering::SeqCst);
                        }
                        streams.push(stream);
                    }
                    thread::sleep(Duration::from_millis(5));
                }
            });
            hooked.changes_nothing(2, |hooked| hooked.hook(&read("toolu_01")));
            let after = with(read("toolu_01"), "hook_event_name", json!("PostToolUse"));
            hooked.changes_nothing(1, |hooked| hooked.hook(&after));
            ended.store(1, Ordering::SeqCst);
        });
    }
    assert!(greeted.load(Ordering::SeqCst) >= 2);
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    hooked.end();
}

/// How a holder greets: in version 1, at the home of this id.
fn hello() -> Vec<u8> {
    let head = b"\x00\x00\x00\x25\x83\x02\x01\x58\x20";
    [&head[..], &[0; 32]].concat()
}
