//! kill -9 of a process that sends messages and makes agents: each message is with all of its
//! recipients or with none, and what is said of each call afterwards is so.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, thread};

use host_support::{new_home, records, verdict};
use syscap::format::{Body, Canonical, Profile, Recovered, Scope, Seq, leaf};
use syscap::prelude::*;
use syscap::syscalls::org::nonce_of;
use syscap::verify::Soundness;

const SEND: &str = "org.send_message";
const MAKE: &str = "org.create_agent";

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Not a test: the process that is killed. Two threads send to four at once, each to its own, and
/// one makes agents; each says what was answered.
#[test]
fn child() {
    let Ok(home) = std::env::var(HOME) else { return };
    let rt = Runtime::open(&home).unwrap();
    let round = &std::env::var(ROUND).unwrap();
    println!("ready");
    thread::scope(|scope| {
        for (thread, tool) in [SEND, SEND, MAKE].into_iter().enumerate() {
            let rt = rt.clone();
            scope.spawn(move || {
                let agent = format!("team{thread}-{round}");
                let names = [0, 1, 2, 3].map(|n| format!("to{thread}-{n}"));
                let budget = [Dimension::Calls, Dimension::DiskFiles, Dimension::DiskWriteBytes]
                    .into_iter()
                    .fold(Budget::standard(), |budget, one| budget.with(one, 1 << 40));
                let grant = Grant::to(&agent).tools([SEND, MAKE, "org.list_messages"]);
                let grant = grant.scope("outbox", Scope::names(&names).unwrap()).budget(budget);
                let token = rt.issue(grant.delegable(1)).unwrap();
                let session = rt.session(&agent, token).unwrap();
                for n in 0.. {
                    let key = format!("{thread}-{round}-{n}");
                    let args = if tool == SEND {
                        format!(r#"{{"recipients": {names:?}, "kind": "note", "text": "{key}"}}"#)
                    } else {
                        format!(r#"{{"name": "{key}", "tools": ["list_messages"]}}"#)
                    };
                    let result = session.request(tool).json(&args, Escapes::Data).key(&key).wait();
                    let ok = result.unwrap().reason().is_none();
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "answered {key} {ok}").unwrap();
                    out.flush().unwrap();
                }
            });
        }
    });
}

const HOME: &str = "SYSCAP_ORG_CRASH_HOME";
const ROUND: &str = "SYSCAP_ORG_CRASH_ROUND";
const RECIPIENTS: usize = 4;

/// Runs the child, kills it in the middle of things, and says which calls were answered.
fn kill_one(home: &Path, round: u64) -> Vec<(String, bool)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "org_crash::child", "--nocapture"])
        .env(HOME, home)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut all: Vec<String> = lines.by_ref().take(6).map_while(Result::ok).collect();
    std::thread::sleep(Duration::from_micros(round * 7_919 % 80_000));
    child.kill().unwrap();
    child.wait().unwrap();
    all.extend(lines.map_while(Result::ok));
    let answer = |line: &String| match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["answered", key, ok @ ("true" | "false")] => Some((key.to_owned(), ok == "true")),
        _ => None,
    };
    all.iter().filter_map(answer).collect()
}

/// Each inbox holds whole messages; what is said to be done is done for all, and what is said not
/// to be done for nobody; an agent that is said to be made is there, and no other.
#[test]
fn kill_minus_nine_leaves_no_half_message() {
    let rounds = if std::env::var_os("SYSCAP_LONG").is_some() { 300 } else { 40 };
    let (_dir, home) = new_home();
    Runtime::create(&home).unwrap().close().unwrap();
    let mut said: BTreeMap<String, bool> = BTreeMap::new();
    for round in 0..rounds {
        said.extend(kill_one(&home, round));
    }
    let rt = Runtime::open(&home).unwrap();
    let nonces: BTreeSet<[u8; 16]> =
        rt.look(|kernel| kernel.tokens().map(|token| token.body.nonce).collect()).unwrap();
    rt.close().unwrap();
    let records = records(&home);
    let mut calls: BTreeMap<Seq, (String, [u8; 16], Option<Recovered>)> = BTreeMap::new();
    for record in &records {
        match &record.body {
            Body::Intent(intent) => {
                let key = intent.key.as_ref().map(|key| key.as_str().to_owned());
                let intent_leaf = leaf(&record.encode());
                let nonce = nonce_of(intent_leaf);
                calls.insert(record.seq, (key.unwrap_or_default(), nonce, None));
            }
            Body::Recovery(recovery) => {
                calls.get_mut(&recovery.intent).unwrap().2 = Some(recovery.verdict);
            }
            _ => {}
        }
    }
    // Who has which message, by the intent that sent it.
    let mut delivered: BTreeMap<u64, usize> = BTreeMap::new();
    for folder in files(&home.join("files/agents")) {
        assert_eq!(files(&folder.join("incoming")), Vec::<PathBuf>::new(), "left beside an inbox");
        for path in files(&folder.join("inbox")) {
            let file =
                Canonical::check(fs::read(&path).unwrap(), Profile::DATA).expect("half a message");
            assert_eq!(file.item().get("to").unwrap().count(), RECIPIENTS);
            let name = path.file_name().unwrap().to_str().unwrap();
            let intent: u64 = name.split_once('-').unwrap().0.parse().unwrap();
            *delivered.entry(intent).or_default() += 1;
        }
    }
    let mut counts: BTreeMap<(char, Option<Recovered>), usize> = BTreeMap::new();
    for (seq, (key, nonce, verdict)) in &calls {
        let kind = if key.starts_with('2') { 'c' } else { 'm' };
        *counts.entry((kind, *verdict)).or_default() += 1;
        let reached = delivered.get(&seq.get()).copied().unwrap_or(0);
        let made = nonces.contains(nonce);
        assert!(reached == RECIPIENTS || reached == 0, "{key}: {reached} of them have it");
        match (kind, verdict) {
            // What was not laid anywhere yet nothing can be told of.
            ('m', Some(verdict)) => {
                assert_eq!(reached == RECIPIENTS, *verdict == Recovered::Done, "{key}");
            }
            ('c', Some(verdict)) => {
                assert_ne!(*verdict, Recovered::Unknown, "{key}: it can always be told");
                assert_eq!(made, *verdict == Recovered::Done, "{key}");
            }
            _ => {}
        }
        if said.get(key) == Some(&true) {
            assert!(verdict.is_none(), "{key} was answered");
            assert!(if kind == 'm' { reached == RECIPIENTS } else { made }, "{key}");
        }
    }
    println!("{rounds} rounds: {} answered, {counts:?}", said.len());
    assert_eq!(verdict(&home), Soundness::Sound);
    let recovered = |kind| counts.iter().filter(|((k, v), _)| *k == kind && v.is_some()).count();
    assert!(recovered('m') > 0 && recovered('c') > 0, "no kill came in the middle of things");
}
