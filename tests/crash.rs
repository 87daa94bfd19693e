//! kill -9 of a real process: no effect without an intent, no answered call lost, every open
//! intent visible and charged after the restart. (Every write point of a store that stops is in
//! `kernel/tests/properties.rs`.)

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use host_support::{new_home, records};
use syscap::format::{Body, Recovered, Seq};
use syscap::prelude::*;
use syscap::verify::{Options as VerifyOptions, Soundness, TrustSource, verify_home};

const HOME: &str = "SYSCAP_CRASH_HOME";
const ROUND: &str = "SYSCAP_CRASH_ROUND";

/// Not a test: the process that is killed. It writes files from four threads, each file under a
/// key that names it, and says so when a call was answered.
#[test]
fn child() {
    let (Ok(home), Ok(round)) = (std::env::var(HOME), std::env::var(ROUND)) else { return };
    let rt = Runtime::open(&home).unwrap();
    let budget = Budget::standard().with(Dimension::Calls, 100_000);
    let budget = budget.with(Dimension::DiskFiles, 100_000);
    let grant = Grant::to("a").tools(["fs.write", "fs.read"]).workspace().budget(budget);
    let agent = rt.session("a", rt.issue(grant).unwrap()).unwrap();
    println!("ready");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (agent, round) = (&agent, &round);
            scope.spawn(move || {
                for n in 0.. {
                    let name = format!("r{round}-t{thread}-n{n}");
                    let args = args! { "path": &name, "text": &name };
                    let result = agent.request("fs.write").args(args).key(&name).wait().unwrap();
                    let seq = result.value().map(|_| result.receipt().outcome_seq).unwrap();
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "answered {name} {seq}").unwrap();
                    out.flush().unwrap();
                    drop(out);
                    agent.call("fs.read", args! { "path": &name }).unwrap().value().unwrap();
                }
            });
        }
    });
}

/// Runs the child until it has answered a few calls, and kills it.
fn kill_one(home: &Path, round: u64) -> Vec<(String, u64)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child", "--nocapture"])
        .env(HOME, home)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answered = Vec::new();
    let mut note = |line: &str| {
        let mut words = line.split_whitespace();
        if words.next() == Some("answered") {
            let name = words.next().unwrap().to_owned();
            // A line that the kill cut short counts for nothing.
            if let Some(Ok(seq)) = words.next().map(str::parse) {
                answered.push((name, seq));
            }
        }
    };
    for line in lines.by_ref() {
        let line = line.unwrap();
        if line.ends_with("ready") {
            break;
        }
    }
    // Somewhere in the middle of things: after so many answers, and a little more, which differs
    // from round to round.
    for line in lines.by_ref().take(usize::try_from(round % 4).unwrap()) {
        note(&line.unwrap_or_default());
    }
    std::thread::sleep(Duration::from_micros(round * 7_919 % 3_000));
    child.kill().unwrap();
    child.wait().unwrap();
    lines.for_each(|line| note(&line.unwrap_or_default()));
    answered
}

#[test]
fn kill_minus_nine_loses_nothing_answered() {
    let rounds: u64 = if std::env::var_os("SYSCAP_LONG").is_some() { 1_000 } else { 60 };
    let (_dir, home) = new_home();
    Runtime::create(&home).unwrap().close().unwrap();
    let mut answered: BTreeMap<String, u64> = BTreeMap::new();
    for round in 0..rounds {
        answered.extend(kill_one(&home, round));
        if round % 50 == 49 {
            // The log is sound as it stands, and says that its end is not clean.
            let trust = TrustSource::File(home.join("trust.cbor"));
            let options = VerifyOptions { trust, ..VerifyOptions::default() };
            assert_eq!(verify_home(&home, &options).unwrap().verdict(), Soundness::Incomplete);
        }
    }
    Runtime::open(&home).unwrap().close().unwrap();

    let records = records(&home);
    let mut intents: BTreeMap<String, Seq> = BTreeMap::new();
    let mut open: BTreeSet<Seq> = BTreeSet::new();
    let (mut unknown, mut recovered) = (0, 0);
    let mut not_done: BTreeSet<Seq> = BTreeSet::new();
    for record in &records {
        match &record.body {
            Body::Intent(intent) => {
                open.insert(record.seq);
                if let Some(key) = &intent.key {
                    intents.insert(key.as_str().to_owned(), record.seq);
                }
            }
            Body::Outcome(outcome) => assert!(open.remove(&outcome.intent)),
            Body::Recovery(recovery) => {
                assert!(open.remove(&recovery.intent), "recovered once, and only if open");
                recovered += 1;
                unknown += u64::from(recovery.verdict == Recovered::Unknown);
                if recovery.verdict == Recovered::NotDone {
                    not_done.insert(recovery.intent);
                }
                assert_eq!(recovery.used.get(Dimension::Calls), 1, "each pays its call");
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "every open intent was closed by a recovery");
    // No effect without an intent.
    let workspace = home.join("files/agents/a/workspace");
    let mut files = 0;
    for entry in std::fs::read_dir(workspace).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // Of a write that was cut off the temporary file was taken away, and nothing else is there.
        assert!(!name.starts_with(".syscap-"), "{name} was left");
        let intent = intents.get(&name).unwrap_or_else(|| panic!("{name}: without an intent"));
        assert!(!not_done.contains(intent), "{name} is there, and is said not to be done");
        files += 1;
    }
    // No answered call lost: its outcome stands where the answer said, and its file is there.
    for (name, seq) in &answered {
        let record = &records[usize::try_from(*seq).unwrap()];
        let Body::Outcome(outcome) = &record.body else { panic!("{name}: no outcome at {seq}") };
        assert_eq!(Some(&outcome.intent), intents.get(name));
        assert!(home.join("files/agents/a/workspace").join(name).exists());
    }
    let trust = TrustSource::File(home.join("trust.cbor"));
    let options = VerifyOptions { trust, ..VerifyOptions::default() };
    assert_eq!(verify_home(&home, &options).unwrap().verdict(), Soundness::Sound);
    println!(
        "{rounds} rounds: {} records, {} answered, {files} files, {recovered} open intents \
         recovered ({unknown} unknown, {} writes not done)",
        records.len(),
        answered.len(),
        not_done.len(),
    );
    assert!(answered.len() > 100 && unknown > 10, "the kills came too early or too late");
    assert!(not_done.len() > 10, "no kill came between temporary file and rename");
}
