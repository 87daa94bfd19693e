//! A console beside what else there is: another console, a home that is newer, keys that go, processes
//! that look.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use super::{Console, entered, opened};
use crate::cli::approvals::{ask, asking, write};
use crate::cli::liar::{LIES, Liar, Lie};
use crate::cli::support::{TestHome, run};
use crate::cli::terminal;

/// Newer software's record is a line with its fields as they stand; nothing can be signed.
#[test]
fn log_of_a_home_that_is_newer_is_shown_alone() {
    if !terminal::is_there() {
        return;
    }
    let home = TestHome::new();
    let path = home.path();
    let token = home.token("a", &["--tool", "echo"]);
    home.call("a", &token, br#"{"tool_id": "echo", "args": {"value": 1}}"#);
    let last = home.log().last().unwrap()["seq"].as_i64().unwrap();
    let base = rusqlite::Connection::open(home.beside("home/home.db")).unwrap();
    let newer = b"\xa2\x00\x19\x03\xe7\x18\x5a\x66<b>odd";
    let put = "INSERT INTO records (seq, body) VALUES (?1, ?2)";
    assert_eq!(base.execute(put, rusqlite::params![last + 1, newer]), Ok(1));
    assert_eq!(base.execute("UPDATE head SET seq = ?1", [last + 1]), Ok(1));
    drop(base);
    let (mut person, mut page) = opened(&path, &[]);
    person.sees("only the log can be read: ");
    page.bearer = entered(&mut person, &page);
    let status = page.get("status").json();
    assert_eq!((&status["log_alone"], &status["head"]), (&json!(true), &json!(last + 1)));
    let shown = page.post("timeline", &json!({})).json();
    let line = &shown["lines"][0];
    assert_eq!((&line["seq"], &line["agent"]), (&json!(last + 1), &json!(null)));
    assert!(line["unknown"].to_string().contains("<b>odd"), "{line}");
    assert!(shown["lines"].to_string().contains("echo(value: 1)"), "{shown}");
    let whole = page.get(&format!("log/{}", last + 1));
    assert!(whole.status == 200 && whole.body.contains("<b>odd"), "{}", whole.body);
    for panel in ["approvals", "agents", "tools", "home"] {
        assert_eq!(page.get(panel).status, 503, "{panel}");
    }
    assert_eq!(page.post("freeze", &json!({ "agent": "a" })).status, 403);
    person.press(b"q");
    assert_eq!(person.end().code, Some(0));
    assert!(home.server().is_none());
}

/// A request is answered once, whoever has it on the screen: two consoles, and a terminal.
#[test]
fn request_is_answered_once_by_many() {
    if !terminal::is_there() {
        return;
    }
    let mut console = Console::of(&[], None);
    let (mut other, mut page) = opened(&console.home.path(), &[]);
    page.bearer = entered(&mut other, &page);
    let asks = ["a.txt", "b.txt"].map(|file| console.waits(file));
    let cards = asks.map(|ask| {
        let theirs = page.get(&format!("approvals/{ask}")).json()["card"].clone();
        (console.card(ask), theirs)
    });
    let wish = |card| json!({ "card": card, "answer": "once" });
    // The other says yes while the first is asked.
    let (mine, theirs) = (wish(&cards[0].0), wish(&cards[0].1));
    let (first, second) = std::thread::scope(|scope| {
        let (here, there) = (console.page.clone(), page.clone());
        let first = scope.spawn(move || here.post("answer", &mine));
        console.person.sees(&format!("approve once {}: ", asks[0]));
        let second = scope.spawn(move || there.post("answer", &theirs));
        other.sees(&format!("approve once {}: ", asks[0])).press(b"y").sees("done by record ");
        let second = second.join().unwrap();
        console.person.press(b"y");
        (first.join().unwrap(), second)
    });
    assert_eq!((first.status, second.status), (409, 200), "{} {}", first.body, second.body);
    assert_eq!(console.of_kind("approval"), 1);
    // Answered at a terminal, it is another on both.
    run(["approvals", "deny", &console.home.path(), &asks[1].to_string()]).fine();
    let late =
        [console.page.post("answer", &wish(&cards[1].0)), page.post("answer", &wish(&cards[1].1))];
    assert_eq!(late.map(|said| said.status), [409, 409]);
    assert_eq!(console.of_kind("approval"), 2);
    assert_eq!(console.call("a.txt")["status"], "ok");
    other.press(b"q");
    assert_eq!(other.end().code, Some(0));
    console.ends();
}

/// A key that is removed between the card and the yes signs nothing.
#[test]
fn removed_key_signs_nothing() {
    if !terminal::is_there() {
        return;
    }
    let mut console = Console::of(&[], None);
    let ask = console.waits("a.txt");
    let wish = json!({ "card": console.card(ask), "answer": "once" });
    let key = console.home.beside("home/keys/approver.key");
    let said = std::thread::scope(|scope| {
        let page = console.page.clone();
        let wished = scope.spawn(move || page.post("answer", &wish));
        console.person.sees(&format!("approve once {ask}: "));
        fs::remove_file(&key).unwrap();
        console.person.press(b"y");
        wished.join().unwrap()
    });
    assert_ne!(said.status, 200, "{}", said.body);
    let shown = console.page.get(&format!("approvals/{ask}")).json();
    assert_eq!(shown["call"]["can_sign"], json!(false), "{shown}");
    assert_eq!(console.of_kind("approval"), 0);
    console.ends();
}

/// The bearer and the passphrase are in no process's arguments or environment, and in no file of the
/// home; nor is the code, while it can be used.
#[test]
fn secrets_of_the_page_are_in_no_process_and_no_file() {
    if !terminal::is_there() {
        return;
    }
    const PASSPHRASE: &str = "mark-1f0c-of-the-passphrase";
    let (is_over, seen) = (AtomicBool::new(false), std::sync::Mutex::new(BTreeSet::new()));
    let home = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                seen.lock().unwrap().extend(processes());
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let mut console = Console::of(&[], Some(PASSPHRASE));
        let ask = console.waits("a.txt");
        let wish = json!({ "card": console.card(ask), "answer": "once" });
        let page = console.page.clone();
        let wished = scope.spawn(move || page.post("answer", &wish));
        console.person.sees(&format!("approve once {ask}: ")).press(b"y");
        console.person.sees("Enter passphrase for the approver key: ").types(PASSPHRASE);
        let said = wished.join().unwrap();
        assert_eq!(said.status, 200, "{}", said.body);
        assert!(!said.body.contains(PASSPHRASE));
        let bearer = console.page.bearer.clone();
        let home = console.ends();
        is_over.store(true, Ordering::Relaxed);
        (home, bearer)
    });
    let (home, bearer) = home;
    let seen = seen.into_inner().unwrap();
    assert!(seen.iter().any(|text| holds(text, "console")), "{} texts", seen.len());
    for secret in [PASSPHRASE, &bearer] {
        assert!(!seen.iter().any(|text| holds(text, secret)), "a process shows it");
        assert_eq!(files_with(&home.beside("home"), secret), Vec::<String>::new());
    }
}

fn holds(text: &[u8], part: &str) -> bool {
    text.windows(part.len()).any(|window| window == part.as_bytes())
}

/// Arguments and environment of all processes.
fn processes() -> Vec<Vec<u8>> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let all = all.flat_map(|one| ["cmdline", "environ"].map(|name| one.path().join(name)));
    all.filter_map(|path| fs::read(path).ok()).filter(|text| !text.is_empty()).collect()
}

/// The files below a folder that have a text in them.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let below = fs::read_dir(folder).unwrap().flatten().map(|one| one.path());
    let found = below.flat_map(|path| match path.is_dir() {
        true => files_with(&path, text),
        false => {
            let has = fs::read(&path).is_ok_and(|bytes| holds(&bytes, text));
            has.then(|| path.display().to_string()).into_iter().collect()
        }
    });
    found.collect()
}

/// A server that lies has the console sign over nothing but the call of the card, whose words are the
/// rows'.
#[test]
fn liar_has_nothing_answered_but_the_call_of_the_card() {
    if !terminal::is_there() {
        return;
    }
    let (home, _) = asking();
    let path = home.path();
    let served = syscap::Runtime::open(&path).unwrap();
    let liar = Liar::before(&home);
    let (mut person, mut page) = opened(&path, &[]);
    page.bearer = entered(&mut person, &page);
    let mut denied = 0;
    for (number, lie) in LIES.into_iter().enumerate() {
        liar.tells(Lie::Honest);
        let agent = format!("a{number}");
        let token = home.token(&agent, &["--tool", "fs.write", "--write", "workspace"]);
        let asks = |name| ask(&home.call(&agent, &token, write(name, "x").as_bytes())[0]);
        let (_, one, _) = (asks("first"), asks("one"), asks("last"));
        let from = home.log().len();
        liar.tells(lie);
        let shown = page.get(&format!("approvals/{one}"));
        std::thread::sleep(Duration::from_millis(1_100));
        if shown.status == 200 {
            let card = shown.json();
            assert_eq!(card["call"]["arguments"]["path"], "one", "{lie:?}: {card}");
            let wish = json!({ "card": card["card"], "answer": "deny" });
            denied += usize::from(page.post("answer", &wish).status == 200);
        }
        liar.tells(Lie::Honest);
        for record in home.log().split_off(from) {
            let is_it = record["answers"]["ask"] == one.parse::<u64>().unwrap();
            let is_deny = record["control"]["says"]["answer"] == "deny";
            assert!(record["control"].is_null() || is_it && is_deny, "{lie:?}: {record}");
        }
    }
    assert!(denied > 0, "nothing was answered at all");
    person.press(b"q");
    assert_eq!(person.end().code, Some(0));
    served.close().unwrap();
    assert_eq!(home.verify(), 0);
}
