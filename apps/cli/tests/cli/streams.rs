//! Input and output that break.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::cli::support::{ECHO, TestHome, run, syscap, unheard};

/// Nobody reads: the command ends without a panic and without a word.
#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let home = TestHome::new();
    let id = home.worker("a");
    home.call("a", &id, format!("{ECHO}\n").repeat(300).as_bytes());
    for (args, code) in [
        (vec!["log", "show", &home.path(), "--json"], 1),
        (vec!["log", "show", &home.path()], 1),
        (vec!["verify", &home.path()], 0),
        (vec!["demo"], 1),
        (vec!["policy", "show", "preset:standard"], 1),
        (vec!["policy", "explain", "preset:standard", "--given", "{}"], 1),
        (vec!["state", "show", &home.path()], 1),
        (vec!["top", &home.path()], 1),
        (vec!["tools", "list", &home.path()], 1),
        // Their codes are verdicts.
        (vec!["policy", "check", "preset:standard"], 0),
        (vec!["policy", "test", "preset:standard", "--mutants"], 0),
        (vec!["policy", "diff", "preset:standard", "preset:standard"], 0),
        (vec!["policy", "diff", "preset:standard", "preset:coder"], 1),
        (vec!["policy", "diff", "preset:standard", "preset:coder", "--limit", "0"], 5),
        (vec!["policy", "who-can", &home.path(), "echo"], 0),
        (vec!["policy", "who-can", &home.path(), "echo", "--only", "a"], 1),
        (vec!["policy", "replay", &home.path(), "--against", "preset:standard"], 0),
    ] {
        let output = syscap().args(&args).stdout(unheard()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{args:?}");
    }
}

/// A `call` whose reader goes away stops, and its log ends properly.
#[test]
fn a_call_that_nobody_hears_stops() {
    let home = TestHome::new();
    let id = home.worker("a");
    let mut command = syscap();
    command.args(["call", &home.path(), "--agent", "a", "--token", &id]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    writeln!(stdin, "{ECHO}").unwrap();
    stdout.read_line(&mut String::new()).unwrap();
    drop(stdout);
    // Another test's process may have this end, too, until it becomes another program: one answer
    // may go into the pipe yet.
    while child.try_wait().unwrap().is_none() {
        if writeln!(stdin, "{ECHO}").is_err() {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*output.stderr), (Some(1), &b""[..]));
    assert_eq!(run(["verify", &home.path(), "--json"]).fine().one()["end"], "clean");
}

#[test]
fn a_full_disk_under_the_output_is_said() {
    let home = TestHome::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = syscap();
    let output = command.args(["log", "show", &home.path()]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
}

/// Answers come one by one: whoever asks can wait for each.
#[test]
fn answers_do_not_wait_for_the_end_of_input() {
    let home = TestHome::new();
    let id = home.worker("a");
    let mut holder = home.hold("a", &id);
    for _ in 0..3 {
        assert_eq!(holder.ask(ECHO)["status"], "ok");
    }
    assert_eq!(holder.end(), 0);
}
