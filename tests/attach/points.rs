//! A server that is killed at each of ten points of a call, while a process beside it calls too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use syscap::format::{Body, Decision, EffectClass, EngineIdentity, Item, Seq};
use syscap::host::HostTool;
use syscap::kernel::{Advice, Clock, Level, PolicyEngine, Question, Reading, Tool};
use syscap::policy::{Policy, Preset};
use syscap::prelude::*;
use syscap::verify::Soundness;
use syscap::{Runtime, SystemClock};

use crate::attach::world::*;

const HOME: &str = "SYSCAP_POINTS_HOME";
const ROLE: &str = "SYSCAP_POINTS_ROLE";
const POINTS: [&str; 10] = [
    "sent", "decided", "durable", "begins", "half", "ends", "brought", "outcome", "answered",
    "closing",
];
const VICTIM: &str = "victim";

/// How often the kernel is entered before the process ends; 0 for never.
static ENTERED: AtomicU64 = AtomicU64::new(0);

fn die() -> ! {
    kill_process(getpid(), Signal::KILL).unwrap();
    unreachable!("the process goes on after SIGKILL");
}

/// The clock is read each time that the kernel is entered.
struct Counting;

impl Clock for Counting {
    fn read(&self) -> Reading {
        if ENTERED.load(Ordering::SeqCst) > 0 && ENTERED.fetch_sub(1, Ordering::SeqCst) == 1 {
            die();
        }
        SystemClock.read()
    }
}

/// A policy that ends the process over one agent's call.
struct Dying {
    policy: Policy,
    point: String,
}

impl PolicyEngine for Dying {
    fn identity(&self) -> EngineIdentity {
        self.policy.identity()
    }

    fn document(&self) -> Vec<u8> {
        self.policy.document()
    }

    fn decide(&self, question: &Question<'_>) -> Decision {
        if question.agent.as_str() == VICTIM {
            match self.point.as_str() {
                "decided" => die(),
                "durable" => ENTERED.store(1, Ordering::SeqCst),
                _ => {}
            }
        }
        self.policy.decide(question)
    }

    fn tools(&self) -> Vec<ToolId> {
        PolicyEngine::tools(&self.policy)
    }

    fn level(&self, name: &str) -> Option<Level> {
        self.policy.level(name)
    }

    fn advise(&self, question: &Question<'_>, decision: &Decision) -> Advice {
        self.policy.advise(question, decision)
    }
}

/// Leaves two lines for each run, and ends the process where it is told to.
fn mark(home: &Path, point: &str, ends: Sender<()>) -> impl Tool + 'static {
    let (marks, point) = (home.with_extension("marks"), point.to_owned());
    let mark = HostTool::new("mark", EffectClass::LocalWrite).unwrap().text("key", "Whose.");
    mark.run(move |call| {
        let key = call.args().get("key").and_then(Item::as_text).unwrap().to_owned();
        let is_at = |at: &str| point == at && key.starts_with(VICTIM);
        let line = |what: &str| {
            let mut file = OpenOptions::new().create(true).append(true).open(&marks).unwrap();
            file.write_all(format!("{what} {key}\n").as_bytes()).unwrap();
        };
        if is_at("begins") {
            die();
        }
        line("begin");
        if is_at("half") {
            die();
        }
        line("end");
        if is_at("ends") {
            die();
        }
        if is_at("closing") {
            ends.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            die();
        }
        if is_at("brought") {
            ENTERED.store(1, Ordering::SeqCst);
        }
        if is_at("outcome") {
            ENTERED.store(2, Ordering::SeqCst);
        }
        Ok("marked")
    })
}

/// Not a test: a server that dies at a point, or a client that calls until its input ends.
#[test]
fn child() {
    let (Ok(home), Ok(role)) = (std::env::var(HOME), std::env::var(ROLE)) else { return };
    match role.as_str() {
        "neighbour" => neighbour(Path::new(&home)),
        point => serve(Path::new(&home), point),
    }
}

fn serve(home: &Path, point: &str) {
    let (ends, told) = channel();
    let policy = Policy::preset(Preset::Recording).unwrap();
    let options = Options::new().policy(Dying { policy, point: point.to_owned() });
    let options = options.clock(Counting).tool(mark(home, point, ends.clone())).unwrap();
    let server = options.open(home).unwrap();
    println!("child ready");
    std::thread::spawn(move || {
        assert_eq!(std::io::stdin().read(&mut [0]).unwrap(), 0);
        ends.send(()).unwrap();
    });
    told.recv().unwrap();
    server.close().unwrap();
}

fn neighbour(home: &Path) {
    let access = Runtime::connect(home).unwrap();
    let token = access
        .view()
        .unwrap()
        .tokens
        .iter()
        .find(|one| one.agent.as_str() == "b")
        .map(|one| one.id);
    let session = access.session("b", token.unwrap()).unwrap();
    println!("child ready");
    std::thread::spawn(move || {
        for n in 0.. {
            let key = format!("b-{}-{n}", std::process::id());
            match session.request("mark").args(args! { "key": &key }).key(&key).wait() {
                Ok(answer) => println!("child answered {key} {}", answer.receipt().outcome_seq),
                Err(Error::HolderGone) => println!("child lost {key}"),
                Err(error) => panic!("{key}: {error}"),
            }
        }
    });
    assert_eq!(std::io::stdin().read(&mut [0]).unwrap(), 0);
}

type Lines = BufReader<ChildStdout>;

fn start(home: &Path, role: &str) -> (Child, Lines) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "attach::points::child", "--nocapture"])
        .env(HOME, home)
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    assert!(out.by_ref().lines().any(|line| line.unwrap() == "child ready"), "{role}");
    (child, out)
}

/// What a client was told.
#[derive(Default)]
struct Told {
    answered: BTreeMap<String, Seq>,
    lost: BTreeSet<String>,
}

impl Told {
    fn read(&mut self, out: Lines) {
        for line in out.lines().map_while(Result::ok) {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["child", "answered", key, seq] => {
                    self.answered.insert(key.to_owned(), Seq::new(seq.parse().unwrap()));
                }
                ["child", "lost", key] => assert!(self.lost.insert(key.to_owned())),
                _ => {}
            }
        }
    }
}

fn round(home: &Path, token: TokenId, key: &str, point: &str, told: &mut Told) {
    let (mut server, _out) = start(home, point);
    // Waiting for a child closes its input, which ends it in order.
    let _input = server.stdin.take();
    let (mut beside, out) = start(home, "neighbour");
    let access = Runtime::connect(home).unwrap();
    let session = access.session(VICTIM, token).unwrap();
    let call = || session.request("mark").args(args! { "key": key }).key(key);
    let (says, heard) = channel();
    call().submit(move |answer| says.send(answer).unwrap());
    if point == "sent" {
        server.kill().unwrap();
    }
    let first = match point {
        // Its answer is taken first.
        "answered" => Some(heard.recv().unwrap()),
        _ => None,
    };
    if point == "answered" {
        server.kill().unwrap();
    }
    assert!(!server.wait().unwrap().success(), "{point}");
    let (mut server, _out) = start(home, "");
    let first = first.unwrap_or_else(|| heard.recv().unwrap());
    match first {
        Ok(answer) => {
            assert_eq!(answer.reason(), None, "{point}");
            told.answered.insert(key.to_owned(), answer.receipt().outcome_seq);
        }
        Err(Error::HolderGone) => assert!(told.lost.insert(key.to_owned())),
        Err(error) => panic!("{point}: {error}"),
    }
    // Made again under its key it is answered by what it came to; it runs where it had not.
    let again = call().wait().unwrap();
    assert!(matches!(again.reason(), None | Some(Reason::OutcomeUnknown)), "{point}: {again:?}");
    session.close().unwrap();
    access.close().unwrap();
    drop(beside.stdin.take());
    assert!(beside.wait().unwrap().success());
    told.read(out);
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
}

/// Nothing that was answered is lost, and nothing runs twice, wherever a call is when its server is
/// killed.
#[test]
fn server_killed_at_each_point_of_a_call() {
    let rounds = if std::env::var_os("SYSCAP_LONG").is_some() { 100 } else { 6 };
    let (_dir, home) = new_home();
    let (ends, _told) = channel();
    let rt = Options::new().tool(mark(&home, "", ends)).unwrap().create(&home).unwrap();
    rt.set_policy(Policy::preset(Preset::Recording).unwrap()).unwrap();
    let issue =
        |agent: &str| rt.issue(Grant::to(agent).tools(["mark"]).budget(budget(100_000))).unwrap();
    let (victim, _) = (issue(VICTIM), issue("b"));
    rt.close().unwrap();
    let mut told = Told::default();
    for n in 0..rounds {
        for point in POINTS {
            let before = (told.answered.len(), told.lost.len());
            round(&home, victim, &format!("{VICTIM}-{point}-{n}"), point, &mut told);
            let (answered, lost) = (told.answered.len() - before.0, told.lost.len() - before.1);
            println!("{point}: {answered} answered, {lost} lost");
        }
    }
    let (mut intents, mut open) = (BTreeMap::new(), BTreeSet::new());
    let all = records(&home);
    for record in &all {
        match &record.body {
            Body::Intent(intent) => {
                let key = intent.key.as_ref().unwrap().as_str().to_owned();
                assert!(intents.insert(key, record.seq).is_none(), "a call was made twice");
                open.insert(record.seq);
            }
            Body::Outcome(outcome) => assert!(open.remove(&outcome.intent)),
            Body::Recovery(recovery) => assert!(open.remove(&recovery.intent)),
            _ => {}
        }
    }
    assert!(open.is_empty());
    let marks: PathBuf = home.with_extension("marks");
    let marks = fs::read_to_string(marks).unwrap();
    let mut lines = BTreeSet::new();
    assert!(marks.lines().all(|line| lines.insert(line)), "something ran twice");
    for (key, seq) in &told.answered {
        let Body::Outcome(outcome) = &all[usize::try_from(seq.get()).unwrap()].body else {
            panic!("{key}: no outcome");
        };
        assert_eq!(Some(&outcome.intent), intents.get(key));
        assert!(lines.contains(format!("end {key}").as_str()), "{key}: no effect");
    }
    assert!(!told.lost.is_empty());
    assert_eq!(verdict(&home), Soundness::Sound);
}
