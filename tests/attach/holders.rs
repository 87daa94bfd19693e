//! Servers that come and go: by turns, in order, and by a kill.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use host_support::last_label;
use syscap::format::{Body, Confidentiality, Integrity, Label, PreviousRun, Record, Seq};
use syscap::kernel::StoreError;
use syscap::prelude::*;
use syscap::verify::Soundness;
use syscap::{Connect, Runtime, Session, Starter, Until};

use crate::attach::world::*;

const HOME: &str = "SYSCAP_ATTACH_HOLDER_HOME";

const STARTED: &str = "SYSCAP_ATTACH_STARTED";

/// Not a test: a process that serves the home until it is killed, or its input ends; one that a client
/// has started, until the last client has gone.
#[test]
fn child_server() {
    let Ok(home) = std::env::var(HOME) else { return };
    let until = Until::LastOut(Duration::from_secs(60));
    let options = Options::new().serve_until(until);
    let Some(server) = options.open_unless_served(&home).unwrap() else {
        return println!("server another");
    };
    println!("server ready");
    if std::env::var_os(STARTED).is_none() {
        assert_eq!(std::io::stdin().read(&mut [0]).unwrap(), 0);
        return server.close().unwrap();
    }
    while !server.wait_unused(Duration::from_secs(1)).unwrap() {}
    server.close().unwrap();
}

fn child(home: &Path) -> (Child, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "attach::holders::child_server", "--nocapture"]).env(HOME, home);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command_started(command)
}

fn command_started(mut command: Command) -> (Child, String) {
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = lines.by_ref().map_while(Result::ok).find(|line| line.contains("server "));
    (child, said.unwrap_or_default())
}

/// A server that runs until it is killed, or its input ends.
fn start(home: &Path) -> Child {
    let (child, said) = child(home);
    assert!(said.ends_with("ready"), "{said}");
    child
}

/// A client that starts a server where there is none; how many were started is counted.
fn client(home: &Path, started: &Arc<AtomicU64>) -> Runtime {
    let (folder, started) = (home.to_path_buf(), Arc::clone(started));
    let starter = Starter::new(move || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "attach::holders::child_server", "--nocapture"]);
        command.env(HOME, &folder).env(STARTED, "").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let (mut child, said) = command_started(command);
        std::thread::spawn(move || child.wait());
        started.fetch_add(u64::from(said.ends_with("ready")), Ordering::SeqCst);
        Ok(())
    });
    Connect::to(home).stays().starting(starter).open().unwrap()
}

/// Calls until it is told to stop: none may be lost.
fn call_on(caller: &Session, name: &str, stop: &AtomicBool, answered: &AtomicU64) {
    for n in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let path = format!("{name}-{n}");
        let answer = call(caller, "fs.write", args! { "path": &path, "text": &path }).unwrap();
        assert_eq!(answer.reason(), None);
        answered.fetch_add(1, Ordering::SeqCst);
    }
}

/// Each outcome was answered, nothing was made twice or had to be recovered.
fn check_orderly(home: &Path, answered: u64, boots: usize) {
    let records = records(home);
    let count = |is: fn(&Body) -> bool| records.iter().filter(|record| is(&record.body)).count();
    let outcomes = count(|body| matches!(body, Body::Outcome(_)));
    assert_eq!(u64::try_from(outcomes).unwrap(), answered);
    assert_eq!(count(|body| matches!(body, Body::Recovery(_))), 0);
    assert_eq!(count(|body| matches!(body, Body::Boot(_))), boots);
    assert_eq!(verdict(home), Soundness::Sound);
}

/// Holders end in order while others call: no call is lost, none is made twice, and tools are
/// offered to each new holder by themselves.
#[test]
fn holders_take_turns() {
    const ROUNDS: usize = 4;
    let (_dir, home) = home();
    let mut holder = Runtime::open(&home).unwrap();
    let provides = Runtime::connect(&home).unwrap();
    let gate = Gate::opened();
    provides.provide(vec![manifest("t.a")], gate.provider()).unwrap();
    let grant = Grant::to("a").tools(["fs.write", "t.a"]).workspace().budget(budget(100_000));
    let token = holder.issue(grant).unwrap();
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let holder = std::thread::scope(|scope| {
        for process in 0..3 {
            let (home, stop, answered) = (&home, &stop, &answered);
            scope.spawn(move || {
                let attached = Runtime::connect(home).unwrap();
                let caller = attached.session("a", token).unwrap();
                call_on(&caller, &process.to_string(), stop, answered);
            });
        }
        for _ in 0..ROUNDS {
            let before = answered.load(Ordering::SeqCst);
            until("some calls are answered", || answered.load(Ordering::SeqCst) > before + 20);
            holder.close().unwrap();
            holder = Runtime::open(&home).unwrap();
        }
        stop.store(true, Ordering::SeqCst);
        holder
    });
    until("it is offered", || holder.view().unwrap().tool(&tool("t.a")).unwrap().provided);
    let caller = holder.session("a", token).unwrap();
    assert_eq!(call(&caller, "t.a", args! {}).unwrap().reason(), None);
    drop(provides);
    holder.close().unwrap();
    check_orderly(&home, answered.into_inner() + 1, ROUNDS + 2);
}

/// A server ends in order, and its clients start another, once.
#[test]
fn clients_of_a_server_that_ends_start_another() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let started = Arc::default();
    let attached = [(); 3].map(|()| client(&home, &started));
    let callers = attached.each_ref().map(|access| caller(access, &["fs.write"]));
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for (process, caller) in callers.iter().enumerate() {
            let (stop, answered) = (&stop, &answered);
            scope.spawn(move || call_on(caller, &process.to_string(), stop, answered));
        }
        until("some calls are answered", || answered.load(Ordering::SeqCst) > 20);
        holder.close().unwrap();
        let before = answered.load(Ordering::SeqCst);
        until("some more are", || answered.load(Ordering::SeqCst) > before + 20);
        stop.store(true, Ordering::SeqCst);
    });
    let view = attached[0].view().unwrap();
    assert!(attached.iter().all(|access| access.view().unwrap().sessions == view.sessions));
    assert_eq!(view.sessions.len(), 3);
    attached.into_iter().for_each(|access| access.close().unwrap());
    assert_eq!(started.load(Ordering::SeqCst), 1);
    check_orderly(&home, answered.into_inner(), 3);
}

/// What the callers of a round were told.
#[derive(Default)]
struct Told {
    /// Key and record of each call that was answered.
    answered: BTreeMap<String, Seq>,
    /// Keys of calls that were out when the holder went.
    lost: BTreeSet<String>,
}

/// Calls until it is told to stop, whoever holds the home.
fn keep_calling(caller: &Session, name: &str, stop: &AtomicBool, told: &Mutex<Told>) {
    for n in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let key = format!("{name}-{n}");
        let args = args! { "path": &key, "text": &key };
        match caller.request("fs.write").args(args).key(&key).wait() {
            Ok(answer) => {
                assert_eq!(answer.reason(), None, "{key}");
                told.lock().unwrap().answered.insert(key, answer.receipt().outcome_seq);
            }
            Err(Error::HolderGone) => assert!(told.lock().unwrap().lost.insert(key)),
            Err(error) => panic!("{key}: {error}"),
        }
    }
}

/// A server is killed while four clients call: one of them starts another, which recovers the home,
/// and all go on by themselves.
#[test]
fn a_killed_server_is_followed_by_another() {
    let rounds = std::env::var("SYSCAP_ATTACH_ROUNDS").map_or(6, |n| n.parse().unwrap());
    let (_dir, home) = home();
    let mut told = Told::default();
    for round in 0..rounds {
        let mut child = start(&home);
        let started = Arc::default();
        let all: Vec<Runtime> = (0..4).map(|_| client(&home, &started)).collect();
        let callers: Vec<Session> =
            all.iter().map(|access| caller(access, &["fs.write"])).collect();
        let (stop, now) = (AtomicBool::new(false), Mutex::new(Told::default()));
        let answered = || now.lock().unwrap().answered.len();
        std::thread::scope(|scope| {
            for (process, caller) in callers.iter().enumerate() {
                for thread in 0..2 {
                    let (stop, now) = (&stop, &now);
                    let name = format!("r{round}-p{process}-t{thread}");
                    scope.spawn(move || keep_calling(caller, &name, stop, now));
                }
            }
            until("some calls are answered", || answered() > 20);
            std::thread::sleep(Duration::from_micros(round * 7_919 % 23_000));
            child.kill().unwrap();
            child.wait().unwrap();
            let before = answered();
            until("calls are answered again", || answered() > before + 40);
            stop.store(true, Ordering::SeqCst);
        });
        assert_eq!(started.load(Ordering::SeqCst), 1);
        let view = all[0].view().unwrap();
        assert!(all.iter().all(|access| access.view().unwrap().sessions == view.sessions));
        assert_eq!(view.sessions.len(), callers.len());
        let now = now.into_inner().unwrap();
        assert!(!now.lost.is_empty(), "nothing was out when the holder was killed");
        told.answered.extend(now.answered);
        told.lost.extend(now.lost);
        all.into_iter().for_each(|access| access.close().unwrap());
    }
    check(&home, &told, rounds);
}

/// What a token's sessions were given holds for the session that is opened again and for those that
/// begin later, however the holder ended: in order, by a kill, or with all who were there.
#[test]
fn label_outlives_each_end_of_a_holder() {
    let untrusted = Label::new(Integrity::Untrusted, Confidentiality::Public);
    let (_dir, home) = home();
    for (in_order, all) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut child = start(&home);
        let started = Arc::default();
        let mut access = client(&home, &started);
        let token = access.issue(Grant::to("a").tools(["fs.write"]).workspace()).unwrap();
        let mut session = access.session("a", token).unwrap();
        let labelled = |session: &Session| {
            let written = call(session, "fs.write", args! { "path": "f", "text": "x" }).unwrap();
            assert_eq!(written.reason(), None);
            last_label(&home).is_untrusted()
        };
        assert!(!labelled(&session));
        session.heard("a stranger's word", untrusted).unwrap();
        match in_order {
            true => drop(child.stdin.take()),
            false => child.kill().unwrap(),
        }
        child.wait().unwrap();
        if all {
            access.close().unwrap();
            access = client(&home, &started);
            session = access.session("a", token).unwrap();
        }
        assert!(labelled(&session), "in order {in_order}, all {all}");
        assert!(labelled(&access.session("a", token).unwrap()), "in order {in_order}, all {all}");
        access.close().unwrap();
    }
}

/// No answered call is lost, none was made twice, and what was out is accounted for.
fn check(home: &Path, told: &Told, rounds: u64) {
    let records: Vec<Record> = records(home);
    let mut intents: BTreeMap<String, Seq> = BTreeMap::new();
    let mut open: BTreeSet<Seq> = BTreeSet::new();
    let (mut recovered, mut killed) = (0, 0);
    for record in &records {
        match &record.body {
            Body::Intent(intent) => {
                let key = intent.key.as_ref().unwrap().as_str().to_owned();
                assert!(intents.insert(key, record.seq).is_none(), "a call was made twice");
                open.insert(record.seq);
            }
            Body::Outcome(outcome) => assert!(open.remove(&outcome.intent)),
            Body::Recovery(recovery) => {
                assert!(open.remove(&recovery.intent));
                recovered += 1;
            }
            Body::Boot(boot) => killed += u64::from(boot.before == PreviousRun::Unclean),
            _ => {}
        }
    }
    assert!(open.is_empty());
    assert_eq!(killed, rounds);
    for (key, seq) in &told.answered {
        let record = &records[usize::try_from(seq.get()).unwrap()];
        let Body::Outcome(outcome) = &record.body else { panic!("{key}: {:?}", record.body) };
        assert_eq!(Some(&outcome.intent), intents.get(key));
        assert!(home.join("files/agents/a/workspace").join(key).exists(), "{key}");
    }
    for key in intents.keys() {
        assert!(told.answered.contains_key(key) || told.lost.contains(key), "{key}");
    }
    assert_eq!(verdict(home), Soundness::Sound);
    let (answered, lost) = (told.answered.len(), told.lost.len());
    println!("{rounds} rounds: {answered} answered, {lost} lost, {recovered} recovered");
}

/// A process that offers a tool, and does nothing else, starts a server where its own was killed, and
/// offers it there.
#[test]
fn an_idle_provider_has_another_server() {
    let (_dir, home) = home();
    let mut child = start(&home);
    let started = Arc::default();
    let provides = client(&home, &started);
    let gate = Gate::opened();
    provides.provide(vec![manifest("t.a")], gate.provider()).unwrap();
    let caller = caller(&provides, &["t.a"]);
    child.kill().unwrap();
    child.wait().unwrap();
    // Nobody asks it for anything.
    let looks = || Runtime::connect(&home);
    until("somebody serves the home", || looks().is_ok());
    until("the tool is there", || {
        looks().is_ok_and(|access| {
            access.view().unwrap().tool(&tool("t.a")).is_some_and(|info| info.provided)
        })
    });
    assert_eq!(started.load(Ordering::SeqCst), 1);
    assert_eq!(call(&caller, "t.a", args! {}).unwrap().reason(), None);
    assert_eq!(gate.came().len(), 1);
}

#[test]
fn a_command_serves_nobody_and_the_next_waits() {
    let (_dir, home) = home();
    let command = Runtime::command(&home).unwrap();
    assert!(command.is_holder());
    assert!(Runtime::connect(&home).is_err());
    std::thread::scope(|scope| {
        let next = scope.spawn(|| Runtime::command(&home).unwrap());
        std::thread::sleep(Duration::from_millis(200));
        let token = command.issue(Grant::to("a").tools(["echo"])).unwrap();
        command.close().unwrap();
        let next = next.join().unwrap();
        assert!(next.is_holder());
        assert_eq!(echo(&next.session("a", token).unwrap()).unwrap().reason(), None);
        next.close().unwrap();
        // Where there is a server a command connects to it.
        let server = Runtime::open(&home).unwrap();
        let command = Runtime::command(&home).unwrap();
        assert!(!command.is_holder());
        command.revoke(token).unwrap();
        assert!(server.view().unwrap().token(token).unwrap().revoked);
    });
}

#[test]
fn a_home_that_is_held_and_not_served() {
    let (_dir, home) = home();
    let alone = Options::new().alone().open(&home).unwrap();
    let is_none = |connected: Result<Runtime, Error>, at: &Path| matches!(connected, Err(Error::NoServer { home, why }) if home == at && why.is_empty());
    assert!(is_none(Runtime::connect(&home), &home) && !home.join("socket").exists());
    assert!(matches!(Runtime::command(&home), Err(Error::Unserved(folder)) if folder == home));
    assert!(matches!(Runtime::open(&home), Err(Error::Home(StoreError::Locked))));
    alone.close().unwrap();
    let none = home.join("no such home");
    assert!(is_none(Runtime::connect(&none), &none));
    assert!(matches!(Runtime::open(&none), Err(Error::Home(StoreError::Missing))));
}

/// A starter that fails is said, by its own words; and one that works is used once.
#[test]
fn starter_that_fails_is_said() {
    let (_dir, home) = home();
    let tried = Arc::new(AtomicU64::new(0));
    let (count, at) = (Arc::clone(&tried), home.clone());
    let starter = Starter::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
        Err(Error::NoServer { home: at.clone(), why: "it rains".to_owned() })
    });
    let connected = Connect::to(&home).starting(starter).open();
    assert!(matches!(connected, Err(Error::NoServer { why, .. }) if why == "it rains"));
    assert_eq!(tried.load(Ordering::SeqCst), 1);
}

/// What was closed here stays closed, whoever serves the home.
#[test]
fn closed_is_closed() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    let (ours, theirs) = (caller(&holder, &["echo"]), caller(&attached, &["echo"]));
    attached.close().unwrap();
    assert!(matches!(echo(&theirs), Err(Error::Closed)));
    assert!(theirs.close().is_ok());
    let other = Runtime::connect(&home).unwrap();
    holder.close().unwrap();
    assert!(matches!(echo(&ours), Err(Error::Closed)));
    let _next = Runtime::open(&home).unwrap();
    assert!(other.view().is_ok());
}

/// One that never holds the home itself, and offers a tool, waits for the next holder as long as
/// that takes.
#[test]
fn a_provider_waits_for_the_next_holder() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let provides = Runtime::connect(&home).unwrap();
    let gate = Gate::opened();
    provides.provide(vec![manifest("t.a")], gate.provider()).unwrap();
    holder.close().unwrap();
    // Longer than it looks for one at a time.
    std::thread::sleep(Duration::from_secs(11));
    assert!(!home.join("socket").exists());
    let holder = Runtime::open(&home).unwrap();
    until("the tool is there", || {
        holder.view().unwrap().tool(&tool("t.a")).is_some_and(|info| info.provided)
    });
    assert_eq!(call(&caller(&holder, &["t.a"]), "t.a", args! {}).unwrap().reason(), None);
    assert_eq!(holder.view().unwrap().counts.connections, 1);
    drop(provides);
    holder.close().unwrap();
}
