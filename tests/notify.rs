//! Telling somebody of a call that waits: the program that the operator named, what it is told, and
//! that nothing waits for it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{fs, thread};

use host_support::new_home;
use serde_json::{Value, json};
use syscap::Counts;
use syscap::format::{Confidentiality, EffectClass, Integrity, Label, Notify};
use syscap::host::HostTool;
use syscap::prelude::*;

/// Longer than any of this takes.
const LONG: Duration = Duration::from_secs(60);

struct World {
    folder: tempfile::TempDir,
    home: PathBuf,
    rt: Runtime,
}

impl World {
    fn new() -> Self {
        let (folder, home) = new_home();
        let send = HostTool::new("mail.send", EffectClass::ExternalWrite).unwrap();
        let private = Label::new(Integrity::Trusted, Confidentiality::Private);
        let read = HostTool::new("mail.read", EffectClass::Read).unwrap().labelled(private);
        let options = Options::new()
            .tool(send.text("to", "To whom.").run(|_| Ok("sent")))
            .unwrap()
            .tool(read.run(|_| Ok("a letter")))
            .unwrap();
        let rt = options.create(&home).unwrap();
        Self { folder, home, rt }
    }

    /// The operator names a program: a shell script of these lines.
    fn notify(&self, script: &str, limit_ms: u64) -> PathBuf {
        let program = self.folder.path().join("told");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        self.set(program.to_str().unwrap(), limit_ms).unwrap();
        program
    }

    fn set(&self, program: &str, limit_ms: u64) -> Result<(), Error> {
        let ceiling = Confidentiality::Internal;
        self.rt.control(&Notify { program: program.into(), ceiling, limit_ms }).map(drop)
    }

    fn agent(&self, name: &str) -> Session {
        let grant = Grant::to(name).tools(["mail.send", "mail.read"]);
        self.rt.session(name, self.rt.issue(grant).unwrap()).unwrap()
    }

    fn counts(&self) -> Counts {
        self.rt.counts().unwrap()
    }

    /// Waits until so many runs have ended, well or not.
    fn ended(&self, well: u64, not: u64) {
        until(|| (self.counts().notified, self.counts().unnotified) == (well, not));
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn until(mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < LONG, "it has not come to that");
        thread::sleep(Duration::from_millis(5));
    }
}

fn send(agent: &Session, to: &str) -> u64 {
    let answer = agent.call("mail.send", args! { "to": to }).unwrap();
    answer.ask().unwrap_or_else(|| panic!("{}", answer.to_json())).get()
}

/// The JSON lines of a file, as far as they are written.
fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn notify_program_gets_waiting_requests_only() {
    let world = World::new();
    let (told, seen) = (world.at("asks"), world.at("seen"));
    let program = world.notify(
        &format!("cat >> {}; {{ env; pwd; echo $#; }} >> {}", told.display(), seen.display()),
        5_000,
    );
    let agent = world.agent("a");
    let ask = send(&agent, "ada");
    world.ended(1, 0);
    let told = lines(&told);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["home"], json!(world.rt.id().to_string()));
    assert_eq!(told[0]["more"], json!(0));
    let one = &told[0]["asks"][0];
    assert_eq!((&one["ask"], &one["agent"]), (&json!(ask), &json!("a")));
    assert_eq!((&one["tool"], &one["args"]["to"]), (&json!("mail.send"), &json!("ada")));
    // No environment but what a shell makes itself, no arguments, `/` as its folder.
    let seen = fs::read_to_string(seen).unwrap();
    let own = |line: &str| {
        ["PWD=/", "OLDPWD=/", "SHLVL=0", "SHLVL=1", "_=/usr/bin/env", "_=/bin/env"].contains(&line)
    };
    let rest: Vec<&str> = seen.lines().filter(|line| !own(line)).collect();
    assert_eq!(rest, ["/", "0"], "{}", program.display());
    // The same call, made again while it waits, tells nobody; nor does one that is not asked about.
    assert_eq!(send(&agent, "ada"), ask);
    agent.call("mail.read", args! {}).unwrap().text().unwrap();
    // What carries more than the ceiling is told by its number.
    let secret = send(&agent, "bob");
    world.ended(2, 0);
    let second = &lines(&world.at("asks"))[1]["asks"];
    assert_eq!(*second, json!([{"ask": secret, "withheld": "label"}]));
    world.rt.close().unwrap();
}

/// What the host has opened without `O_CLOEXEC` is no program's that is started here.
#[test]
fn notify_program_gets_no_open_file_of_the_host() {
    let world = World::new();
    let secret = fs::File::open(world.home.join("keys/issuer.key")).unwrap();
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    let seen = world.at("seen");
    world.notify(&format!("ls -l /proc/$$/fd > {}", seen.display()), 5_000);
    send(&world.agent("a"), "ada");
    world.ended(1, 0);
    let seen = fs::read_to_string(seen).unwrap();
    assert!(seen.contains("/proc/") || seen.contains("null"), "{seen}");
    assert!(!seen.contains("issuer.key"), "{seen}");
    world.rt.close().unwrap();
}

#[test]
fn hanging_notify_program_is_killed_with_its_children() {
    let world = World::new();
    let pids = world.at("pids");
    world.notify(&format!("sleep 1000 & echo $! $$ >> {}; wait", pids.display()), 300);
    let agent = world.agent("a");
    send(&agent, "ada");
    until(|| fs::read_to_string(&pids).is_ok_and(|text| text.ends_with('\n')));
    // Others are served meanwhile.
    agent.call("mail.read", args! {}).unwrap().text().unwrap();
    world.ended(0, 1);
    for pid in fs::read_to_string(&pids).unwrap().split_whitespace() {
        let stat = format!("/proc/{pid}/stat");
        until(|| fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z ")));
    }
    // The next one is told all the same.
    world.notify("exit 0", 300);
    send(&agent, "bob");
    world.ended(1, 1);
    world.rt.close().unwrap();
}

/// One that ends at once, and leaves something behind, leaves nothing behind.
#[test]
fn children_of_an_ended_notify_program_are_killed() {
    let world = World::new();
    let pids = world.at("pids");
    world.notify(&format!("sleep 1000 & echo $! > {}", pids.display()), 5_000);
    send(&world.agent("a"), "ada");
    world.ended(1, 0);
    let pid = fs::read_to_string(&pids).unwrap();
    let stat = format!("/proc/{}/stat", pid.trim());
    until(|| fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z ")));
    world.rt.close().unwrap();
}

#[test]
fn flooding_notify_program_harms_no_call() {
    let world = World::new();
    let agent = world.agent("a");
    for (n, script) in ["yes", "yes >&2", "exec <&-; sleep 1000", "exit 3"].into_iter().enumerate()
    {
        world.notify(script, 200);
        send(&agent, &format!("{n}"));
        world.ended(0, u64::try_from(n).unwrap() + 1);
    }
    assert_eq!(world.counts().notified, 0);
    world.rt.close().unwrap();
}

/// What it prints is no answer.
#[test]
fn output_of_a_notify_program_approves_nothing() {
    let world = World::new();
    world.notify("cat; echo approve; exit 0", 5_000);
    let agent = world.agent("a");
    let ask = send(&agent, "ada");
    world.ended(1, 0);
    assert_eq!(send(&agent, "ada"), ask, "it waits still");
    world.rt.close().unwrap();
}

/// As many as may wait come at once: each is answered, and they are told in a few runs, one at a
/// time, the ones that had no room by their number.
#[test]
fn a_thousand_asks_are_told_in_a_few_runs() {
    let world = World::new();
    let (told, lock) = (world.at("asks"), world.at("lock"));
    let script = format!(
        "mkdir {lock} || exit 9; cat >> {told}; sleep 0.05; rmdir {lock}",
        lock = lock.display(),
        told = told.display()
    );
    world.notify(&script, 10_000);
    let agents: Vec<Session> = (0..32).map(|n| world.agent(&format!("a{n}"))).collect();
    let all = thread::scope(|scope| {
        let asked =
            |agent| scope.spawn(move || (0..32).map(|n| send(agent, &format!("{n}"))).count());
        let threads: Vec<_> = agents.iter().map(asked).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
    });
    assert_eq!(all, 1_024);
    let said = |lines: &[Value]| -> u64 {
        let asks = |line: &Value| u64::try_from(line["asks"].as_array().unwrap().len()).unwrap();
        lines.iter().map(|line| asks(line) + line["more"].as_u64().unwrap()).sum()
    };
    until(|| said(&lines(&told)) >= 1_024);
    let lines = lines(&told);
    assert_eq!(said(&lines), 1_024, "none is told twice");
    assert!(lines.len() <= 64, "{} runs", lines.len());
    assert_eq!(world.counts().unnotified, 0, "no two at a time");
    // One more of an agent is not asked about, and not told.
    assert_eq!(agents[0].call("mail.send", args! { "to": "x" }).unwrap().ask(), None);
    world.rt.close().unwrap();
}

#[test]
fn missing_notify_program_is_counted() {
    let world = World::new();
    let program = world.notify("exit 0", 100);
    fs::remove_file(&program).unwrap();
    let agent = world.agent("a");
    let ask = send(&agent, "ada");
    world.ended(0, 1);
    assert_eq!(send(&agent, "ada"), ask);
    // None is named any more: nobody is told.
    world.set("", 1).unwrap();
    send(&agent, "bob");
    thread::sleep(Duration::from_millis(50));
    assert_eq!((world.counts().notified, world.counts().unnotified), (0, 1));
    world.rt.close().unwrap();
}

/// A command that holds a home for one call: what it asked is told before it ends, all of it.
#[test]
fn last_requests_are_notified_before_the_home_closes() {
    let world = World::new();
    let told = world.at("asks");
    world.notify(&format!("sleep 0.1; cat >> {}", told.display()), 10_000);
    let agent = world.agent("a");
    for n in 0..20 {
        send(&agent, &format!("{n}"));
    }
    let World { folder, rt, .. } = world;
    rt.close().unwrap();
    let asks = |line: &Value| line["asks"].as_array().unwrap().len();
    assert_eq!(lines(&told).iter().map(asks).sum::<usize>(), 20);
    drop(folder);
}

/// A home closes though a program hangs, which is killed with it.
#[test]
fn home_closes_while_a_notify_program_hangs() {
    let world = World::new();
    let pids = world.at("pids");
    world.notify(&format!("echo $$ > {}; sleep 1000", pids.display()), 60_000);
    send(&world.agent("a"), "ada");
    until(|| fs::read_to_string(&pids).is_ok_and(|text| text.ends_with('\n')));
    let World { folder, home, rt } = world;
    rt.close().unwrap();
    let stat = format!("/proc/{}/stat", fs::read_to_string(&pids).unwrap().trim());
    assert!(fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z ")));
    let begun = Instant::now();
    let again = Runtime::open(&home).unwrap();
    assert!(begun.elapsed() < LONG);
    again.close().unwrap();
    drop(folder);
}

/// What the operator has not signed, or that is of another form, names nothing.
#[test]
fn only_a_sound_program_is_named() {
    let world = World::new();
    let long = format!("/{}", "a".repeat(4_096));
    for (program, limit) in
        [("told", 5), ("./told", 5), ("/told\0", 5), (&*long, 5), ("/told", 0), ("/told", 60_001)]
    {
        let refused = world.set(program, limit).unwrap_err();
        assert!(matches!(refused, Error::Refused(why) if why.reason() == Reason::BadControl));
    }
    assert!(world.rt.look(|kernel| kernel.notify().is_none()).unwrap());
    world.rt.close().unwrap();
}
