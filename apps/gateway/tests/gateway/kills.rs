//! Clients, servers and the process that holds the home are killed while eight clients write:
//! every effect has its intent, nothing is done twice, and what was said not to have run has not.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use std::{fs, thread};

use syscap::audit::SqliteReader;
use syscap::format::{Body, Commitment, Item, Recovered, Seq, TxOutcome};
use syscap::kernel::vault_entry;
use syscap::prelude::*;
use syscap::verify::{Options as VerifyOptions, Soundness, TrustSource, verify_home};

use crate::gateway::bench::{Bench, SOON, until};

const CLIENTS: usize = 8;

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Client,
    Server,
    Holder,
}

/// How often each is killed: a few times, ten with `SYSCAP_LONG`.
fn rounds() -> u64 {
    if std::env::var_os("SYSCAP_LONG").is_some() { 10 } else { 3 }
}

/// The clients, each with a gateway and a server of its own, on one home.
struct World {
    bench: Bench,
    clients: Vec<Child>,
    /// How many there have been: each has its own name.
    started: usize,
}

impl World {
    fn new() -> Self {
        let bench = Bench::new();
        let mut world = Self { bench, clients: Vec::new(), started: 0 };
        for place in 0..CLIENTS {
            fs::create_dir(world.dir(place)).unwrap();
            let client = world.start(place);
            world.clients.push(client);
            if place == 0 {
                // It has a token issued, by which the others call too.
                until("the first begins", || world.dir(0).join("ready").exists());
            }
        }
        world
    }

    fn dir(&self, place: usize) -> PathBuf {
        self.bench.server(&format!("c{place}"))
    }

    fn start(&mut self, place: usize) -> Child {
        self.started += 1;
        Command::new(env!("CARGO_BIN_EXE_syscap-gateway-harness"))
            .arg("client")
            .arg(self.bench.home())
            .arg(self.dir(place))
            .arg(format!("n{}", self.started))
            .args(["class=local_write=*", "limit=concurrent:64"])
            .spawn()
            .unwrap()
    }

    /// Starts those anew that have ended with their gateway.
    fn start_again(&mut self) {
        for place in 0..CLIENTS {
            if self.clients[place].try_wait().unwrap().is_some() {
                self.clients[place] = self.start(place);
            }
        }
    }

    /// How many calls were answered.
    fn answered(&self) -> usize {
        self.told().iter().filter(|line| line.starts_with("answer ")).count()
    }

    fn told(&self) -> Vec<String> {
        let file = |place| fs::read_to_string(self.dir(place).join("told")).unwrap_or_default();
        let all = (0..CLIENTS).map(file).collect::<String>();
        all.lines().map(String::from).collect()
    }

    /// The process that holds the home.
    fn holder(&self) -> Option<u32> {
        let inode = fs::metadata(self.bench.home().join("lock")).ok()?.ino();
        let locks = fs::read_to_string("/proc/locks").unwrap();
        let of_it = |line: &&str| line.contains("FLOCK") && line.contains(&format!(":{inode} "));
        let line = locks.lines().find(of_it)?;
        line.split_whitespace().nth(4)?.parse().ok()
    }

    fn kill(&mut self, victim: Victim, round: u64) {
        let place = usize::try_from(round).unwrap() % CLIENTS;
        let victim = match victim {
            Victim::Client => self.clients[place].id(),
            Victim::Server => {
                let pid = fs::read_to_string(self.dir(place).join("pid")).unwrap();
                pid.parse().unwrap()
            }
            Victim::Holder => {
                let mut holder = None;
                until("somebody holds the home", || {
                    holder = self.holder();
                    holder.is_some()
                });
                holder.unwrap()
            }
        };
        Command::new("kill").arg("-KILL").arg(victim.to_string()).status().unwrap();
    }

    /// Waits until so many more calls were answered, by whoever is left or comes again.
    fn goes_on(&mut self, more: usize) {
        let (before, since) = (self.answered(), Instant::now());
        while self.answered() < before + more {
            assert!(since.elapsed() < SOON, "nothing goes on");
            self.start_again();
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Lets all end by themselves.
    fn end(&mut self) {
        (0..CLIENTS).for_each(|place| fs::write(self.dir(place).join("stop"), "").unwrap());
        for client in &mut self.clients {
            let since = Instant::now();
            while client.try_wait().unwrap().is_none() {
                assert!(since.elapsed() < SOON, "a client does not end");
                thread::sleep(Duration::from_millis(10));
            }
        }
        // Who is still about to end holds the home, or has it recovered by the next.
        until("the home is free", || {
            Options::new().open(self.bench.home()).is_ok_and(|home| home.close().is_ok())
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for client in &mut self.clients {
            client.kill().ok();
            client.wait().ok();
        }
    }
}

/// What the log has of the calls.
#[derive(Default)]
struct Log {
    /// The intents of each line.
    intents: BTreeMap<String, Vec<Seq>>,
    /// Those of which it is not known what they did.
    unknown: BTreeSet<Seq>,
    /// Those that were done.
    done: BTreeSet<Seq>,
}

fn read(world: &World) -> Log {
    let mut log = Log::default();
    let mut reader = SqliteReader::open(&world.bench.home()).unwrap();
    for record in world.bench.records() {
        match &record.body {
            Body::Intent(intent) => {
                let entry = vault_entry(&mut reader, record.seq, record.seq).unwrap();
                let (tool, manifest) = (&intent.call.tool_id, &intent.call.manifest);
                let commitment = Commitment::Arguments(
                    intent.call.args_hash.unwrap(),
                    tool.as_ref().unwrap(),
                    manifest.as_ref().unwrap(),
                );
                let args = entry.committed(commitment).unwrap();
                let text = args.item().get("text").and_then(Item::as_text).unwrap().to_owned();
                log.intents.entry(text).or_default().push(record.seq);
            }
            Body::Outcome(outcome) if outcome.tx == TxOutcome::Unknown => {
                log.unknown.insert(outcome.intent);
            }
            Body::Outcome(outcome) if outcome.reason.is_none() => {
                log.done.insert(outcome.intent);
            }
            Body::Recovery(recovery) if recovery.verdict == Recovered::Unknown => {
                log.unknown.insert(recovery.intent);
            }
            _ => {}
        }
    }
    log
}

/// How the calls came out, for whoever reads the test's output.
#[derive(Debug, Default)]
struct Count {
    sent: usize,
    written: usize,
    ok: usize,
    unknown: usize,
    none: usize,
    /// Answers that were given again, to who sent a call again.
    repeated: usize,
}

fn check(world: &World) -> Count {
    let log = read(world);
    let mut written = BTreeSet::new();
    for place in 0..CLIENTS {
        let file = fs::read_to_string(world.dir(place).join("written")).unwrap_or_default();
        for line in file.lines() {
            assert!(written.insert(line.to_owned()), "{line} was written twice");
        }
    }
    for line in &written {
        assert_eq!(log.intents.get(line).map(Vec::len), Some(1), "{line}");
    }
    let mut count = Count { written: written.len(), ..Count::default() };
    count.repeated = world.bench.count("Repeat");
    for told in world.told() {
        let mut words = told.splitn(4, ' ');
        let (what, text) = (words.next().unwrap(), words.next().unwrap());
        let intents = log.intents.get(text);
        match (what, words.next()) {
            ("sent", None) => count.sent += 1,
            ("answer", Some("ok")) => {
                count.ok += 1;
                assert!(written.contains(text), "{text} was said to be written");
                assert!(log.done.contains(&intents.unwrap()[0]), "{text}");
            }
            ("answer", Some("none")) => {
                count.none += 1;
                assert!(!written.contains(text), "{told}");
            }
            ("answer", Some("unknown")) => {
                count.unknown += 1;
                let intent = intents.unwrap()[0];
                assert!(log.unknown.contains(&intent), "{told}");
                let rest = words.next().unwrap();
                // Where the holder went, its record is named.
                if rest.contains("outcome_unknown") {
                    assert!(rest.starts_with(&format!("{intent} ")), "{told} {intent}");
                }
            }
            other => panic!("{other:?}: {told}"),
        }
    }
    let trust = TrustSource::File(world.bench.home().join("trust.cbor"));
    let options = VerifyOptions { trust, ..VerifyOptions::default() };
    let verdict = verify_home(&world.bench.home(), &options).unwrap().verdict();
    assert_eq!(verdict, Soundness::Sound);
    assert!(count.ok <= count.written && count.written <= count.sent);
    count
}

fn killed(victim: Victim) -> Count {
    let mut world = World::new();
    for round in 0..rounds() {
        world.goes_on(200);
        thread::sleep(Duration::from_micros(round * 7_919 % 23_000));
        world.kill(victim, round);
    }
    world.goes_on(200);
    world.end();
    let count = check(&world);
    println!("{victim:?}, killed {} times: {count:?}", rounds());
    count
}

#[test]
fn a_killed_client_leaves_nothing_done_twice() {
    killed(Victim::Client);
}

#[test]
fn a_killed_server_leaves_nothing_done_twice() {
    killed(Victim::Server);
}

/// What was out at the holder is recovered under its key, or said to be unknown.
#[test]
fn a_killed_holder_leaves_nothing_done_twice() {
    killed(Victim::Holder);
}
