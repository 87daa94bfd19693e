//! Hosts whose parts panic, and runs that outlive their home: nobody waits for ever, nothing runs
//! unrecorded, and nothing is recovered while it runs.

use host_support::{end, new_home, records, verdict};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use syscap::Written;
use syscap::audit::MemoryStore;
use syscap::format::{
    Body, Canonical, Decision, Durability, EffectClass, EngineIdentity, Manifest, Object, ObjectId,
    PreviousRun, Record, Refused, Seq, TxOutcome, Verdict as PolicyVerdict,
};
use syscap::kernel::{
    Batch, Clock, Demands, Kernel, Next, Permit, Plan, PolicyEngine, Question, Ran, ReadPermit,
    ReadPlan, ReadTool, Reading, Request, Room, Store, StoreError, Tool, object_of,
};
use syscap::prelude::*;
use syscap::verify::Soundness;
use syscap::{Inspection, SystemClock};

/// Long beyond all that these tests do: who has not answered by then never will.
const FOR_EVER: Duration = Duration::from_secs(20);

/// What `ask` came to; a panic of its own, or silence, fails the test.
fn answer<T: Send + 'static>(ask: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(ask()));
    told
}

fn await_that(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < FOR_EVER, "it never came about that {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn halted<T>(answer: Result<T, Error>) -> bool {
    matches!(answer, Err(Error::Halted(_)))
}

fn closed<T>(answer: Result<T, Error>) -> bool {
    matches!(answer, Err(Error::Closed))
}

/// Where a host panics, once it is told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Commit,
    Room,
    Clock,
    Vault,
}

/// The switch of all that can panic, and the gate before a commit.
struct Switch {
    at: At,
    armed: AtomicBool,
    /// Closed while a commit is to wait.
    gate: Mutex<()>,
    commits: AtomicU64,
}

impl Switch {
    fn new(at: At) -> Arc<Self> {
        let (armed, gate, commits) = (AtomicBool::new(false), Mutex::new(()), AtomicU64::new(0));
        Arc::new(Self { at, armed, gate, commits })
    }

    fn pass(&self, at: At) {
        assert!(self.at != at || !self.armed.load(Ordering::SeqCst), "a panic at {at:?}");
    }
}

struct PanicStore(MemoryStore, Arc<Switch>);

impl Store for PanicStore {
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.1.commits.fetch_add(1, Ordering::SeqCst);
        drop(self.1.gate.lock().unwrap());
        self.1.pass(At::Commit);
        self.0.commit(batch)
    }
    fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError> {
        self.0.records(from, each)
    }
    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        self.0.object(id)
    }
    fn vault(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        self.1.pass(At::Vault);
        self.0.vault(seq)
    }
    fn room(&mut self) -> Result<Room, StoreError> {
        self.1.pass(At::Room);
        self.0.room()
    }
}

struct PanicClock(Arc<Switch>);

impl Clock for PanicClock {
    fn read(&self) -> Reading {
        self.0.pass(At::Clock);
        SystemClock.read()
    }
}

/// A tool of the host's: it does as it is told where it plans, where it says what it would touch,
/// and where it runs.
#[derive(Clone)]
struct Act {
    manifest: Manifest,
    plan: fn(),
    demands: fn(),
    untouched: fn(),
    effect: fn(),
    location: fn(),
    run: Arc<dyn Fn() + Send + Sync>,
}

struct ActPlan(Act, Demands);

fn act(name: &str, limit_ms: Option<u64>, run: impl Fn() + Send + Sync + 'static) -> Act {
    let mut manifest = Manifest::new(ToolId::new(name).unwrap(), EffectClass::LocalWrite);
    manifest.wall_ms_max = limit_ms;
    let nothing: fn() = || {};
    let [plan, demands, untouched, effect, location] = [nothing; 5];
    Act { manifest, plan, demands, untouched, effect, location, run: Arc::new(run) }
}

impl Tool for Act {
    type Plan = ActPlan;
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }
    fn plan(&self, _: &Request<'_>) -> Result<ActPlan, Refused> {
        (self.plan)();
        Ok(ActPlan(self.clone(), Demands::default()))
    }
}

impl Plan for ActPlan {
    fn demands(&self) -> &Demands {
        (self.0.demands)();
        &self.1
    }
    fn untouched(&self) -> &[&'static str] {
        (self.0.untouched)();
        &[]
    }
    fn effect(&self) -> Option<EffectClass> {
        (self.0.effect)();
        None
    }
    fn location(&self) -> Option<&str> {
        (self.0.location)();
        None
    }
    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        (self.0.run)();
        permit.ok(Canonical::null(), TxOutcome::Committed)
    }
}

/// The same as a read that is trusted.
struct Look(Act);

impl ReadTool for Look {
    type Plan = ActPlan;
    fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }
    fn plan(&self, request: &Request<'_>) -> Result<ActPlan, Refused> {
        Tool::plan(&self.0, request)
    }
}

impl ReadPlan for ActPlan {
    fn demands(&self) -> &Demands {
        Plan::demands(self)
    }
    fn run(self, permit: ReadPermit<'_, Self>) -> Ran<'_> {
        (self.0.run)();
        permit.ok(Canonical::null(), TxOutcome::NoOp)
    }
}

/// A run that ends when the test says so, and counts itself at its beginning and at its end.
struct Slow {
    begun: Arc<AtomicU64>,
    ended: Arc<AtomicU64>,
    release: mpsc::Sender<()>,
}

fn slow(limit_ms: Option<u64>) -> (Act, Slow) {
    let (release, gate) = mpsc::channel();
    let gate = Mutex::new(gate);
    let (begun, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counts = (Arc::clone(&begun), Arc::clone(&ended));
    let tool = act("slow", limit_ms, move || {
        counts.0.fetch_add(1, Ordering::SeqCst);
        gate.lock().unwrap().recv().unwrap();
        counts.1.fetch_add(1, Ordering::SeqCst);
    });
    (tool, Slow { begun, ended, release })
}

fn decoded(store: &mut dyn Store) -> Vec<Record> {
    let mut records = Vec::new();
    let each = &mut |_, bytes: &[u8]| {
        records.push(Record::decode(bytes).unwrap());
        Next::More
    };
    store.records(Seq::GENESIS, each).unwrap();
    records
}

/// Several wait for one commit, and whoever makes it panics: all are told, the one included, and
/// so is everybody who comes later.
#[test]
fn waiters_are_told_when_their_leader_panics() {
    for at in [At::Commit, At::Room, At::Clock] {
        let dir = tempfile::tempdir().unwrap();
        let switch = Switch::new(at);
        let memory = MemoryStore::new();
        let options = Options::new()
            .store(PanicStore(memory.share(), Arc::clone(&switch)))
            .clock(PanicClock(Arc::clone(&switch)))
            .durability(Durability::Memory);
        let rt = options.create(dir.path().join("home")).unwrap();
        let token = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
        let agent = Arc::new(rt.session("a", token).unwrap());
        let call = || {
            let agent = Arc::clone(&agent);
            answer(move || agent.call("echo", args! { "value": 1_u64 }))
        };
        let (commits, head) =
            (switch.commits.load(Ordering::SeqCst), rt.look(Kernel::head).unwrap());
        let before = memory.all_records().len();
        let gate = switch.gate.lock().unwrap();
        let leader = call();
        await_that("one commits", || switch.commits.load(Ordering::SeqCst) > commits);
        let others: Vec<_> = (0..4).map(|_| call()).collect();
        // The leader's intent and outcome, then those of the four that wait for it.
        await_that("the others are queued", || {
            rt.look(Kernel::head).unwrap().seq.get() == head.seq.get() + 10
        });
        switch.armed.store(true, Ordering::SeqCst);
        drop(gate);
        for waiting in others.into_iter().chain([call()]) {
            assert!(halted(waiting.recv_timeout(FOR_EVER).expect("an answer")), "{at:?}");
        }
        // What the leader asked for itself was durable before the store was asked for its room.
        let led = leader.recv_timeout(FOR_EVER).expect("an answer");
        assert_eq!(halted(led), at != At::Room, "{at:?}");
        assert!(halted(rt.issue(Grant::to("b").tools(["echo"]))), "{at:?}");
        let durable = if at == At::Commit { 0 } else { 2 };
        assert_eq!(memory.all_records().len() - before, durable, "{at:?}: the leader's batch");
        assert!(halted(answer(move || rt.close()).recv_timeout(FOR_EVER).expect("closed")));
    }
}

/// A vault that panics where a reference is fetched ends no thread and leaves none waiting.
#[test]
fn a_vault_that_panics_halts() {
    let dir = tempfile::tempdir().unwrap();
    let switch = Switch::new(At::Vault);
    let store = PanicStore(MemoryStore::new(), Arc::clone(&switch));
    let options = Options::new().store(store).durability(Durability::Memory);
    let rt = options.create(dir.path().join("home")).unwrap();
    let token = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
    let agent = Arc::new(rt.session("a", token).unwrap());
    let once = || {
        let agent = Arc::clone(&agent);
        answer(move || agent.request("echo").args(args! { "value": 1_u64 }).key("k").wait())
    };
    once().recv_timeout(FOR_EVER).unwrap().unwrap().value().unwrap();
    switch.armed.store(true, Ordering::SeqCst);
    assert!(once().recv_timeout(FOR_EVER).expect("an answer").is_err());
    assert!(once().recv_timeout(FOR_EVER).expect("an answer").is_err());
}

/// A host that panics with the kernel lent to it.
#[test]
fn a_poisoned_lock_halts() {
    let dir = tempfile::tempdir().unwrap();
    let rt = Arc::new(Runtime::create(dir.path().join("home")).unwrap());
    let token = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
    let agent = rt.session("a", token).unwrap();
    let other = Arc::clone(&rt);
    let looked = std::thread::spawn(move || other.look(|_| panic!("a look that panics")).unwrap());
    looked.join().unwrap_err();
    let called = answer(move || agent.call("echo", args! { "value": 1_u64 }));
    assert!(halted(called.recv_timeout(FOR_EVER).expect("an answer")));
    assert!(halted(rt.issue(Grant::to("b").tools(["echo"]))));
}

/// A plan that panics is a call refused on record, and nothing else.
#[test]
fn a_plan_that_panics_is_refused() {
    let (_dir, home) = new_home();
    let effects = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&effects);
    let fine = act("fine", None, move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let bad = Act { plan: || panic!("a plan"), ..act("bad", None, || {}) };
    let mut read = Act { plan: || panic!("a read's plan"), ..act("read", None, || {}) };
    read.manifest.effect = EffectClass::Read;
    let options = Options::new().tool(fine).unwrap().tool(bad).unwrap();
    let rt = options.trusted_read(Look(read)).unwrap().create(&home).unwrap();
    let token = rt.issue(Grant::to("a").tools(["fine", "bad", "read"])).unwrap();
    let agent = Arc::new(rt.session("a", token).unwrap());
    for tool in ["bad", "read"] {
        let other = Arc::clone(&agent);
        let called = answer(move || other.call(tool, args! {}));
        let result = called.recv_timeout(FOR_EVER).expect("an answer").unwrap();
        assert_eq!(result.reason(), Some(Reason::Panicked));
        assert_eq!(result.receipt().intent, None, "nothing ran");
        assert_eq!(agent.call("fine", args! {}).unwrap().reason(), None);
    }
    assert_eq!(effects.load(Ordering::SeqCst), 2);
    rt.close().unwrap();
    let refusals: Vec<Reason> = records(&home)
        .iter()
        .filter_map(|record| match &record.body {
            Body::Refusal(refusal) => Some(refusal.reason),
            _ => None,
        })
        .collect();
    assert_eq!(refusals, [Reason::Panicked; 2]);
    assert_eq!(verdict(&home), Soundness::Sound);
}

/// A policy that panics where it is asked about one tool.
struct Moody;

impl PolicyEngine for Moody {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from("moody"), version: 1 }
    }
    fn document(&self) -> Vec<u8> {
        Vec::new()
    }
    fn decide(&self, question: &Question<'_>) -> Decision {
        assert_ne!(question.manifest.tool.as_str(), "bad", "a policy that panics");
        Decision::plain(PolicyVerdict::Allow)
    }
}

#[test]
fn a_policy_that_panics_denies() {
    for swapped in [false, true] {
        let (_dir, home) = new_home();
        let effects = Arc::new(AtomicU64::new(0));
        let count = || {
            let effects = Arc::clone(&effects);
            move || {
                effects.fetch_add(1, Ordering::SeqCst);
            }
        };
        let options = Options::new().tool(act("bad", None, count())).unwrap();
        let options = options.tool(act("fine", None, count())).unwrap();
        let options = if swapped { options } else { options.policy(Moody) };
        let rt = options.create(&home).unwrap();
        if swapped {
            rt.set_policy(Moody).unwrap();
        }
        let hash = object_of(&Moody).hash();
        assert_eq!(
            rt.look(Kernel::policy_hash).unwrap(),
            Some(hash),
            "it is in force under its own hash"
        );
        let token = rt.issue(Grant::to("a").tools(["fine", "bad"])).unwrap();
        let agent = Arc::new(rt.session("a", token).unwrap());
        let other = Arc::clone(&agent);
        let called = answer(move || other.call("bad", args! {}));
        let result = called.recv_timeout(FOR_EVER).expect("an answer").unwrap();
        assert_eq!(result.reason(), Some(Reason::Denied));
        assert_eq!(agent.call("fine", args! {}).unwrap().reason(), None);
        assert_eq!(effects.load(Ordering::SeqCst), 1);
        end(&rt, &home);
    }
}

/// What the kernel calls of a host's and no adapter can catch: it halts, with an answer for all.
#[test]
fn plan_that_panics_when_it_is_asked_halts() {
    let fine = || act("bad", None, || {});
    halts(Act { demands: || panic!("demands"), ..fine() });
    halts(Act { untouched: || panic!("untouched"), ..fine() });
    halts(Act { effect: || panic!("effect"), ..fine() });
}

fn halts(bad: Act) {
    let dir = tempfile::tempdir().unwrap();
    let (slow, run) = slow(None);
    let options = Options::new().tool(bad).unwrap().tool(slow).unwrap();
    let rt = options.create(dir.path().join("home")).unwrap();
    let token = rt.issue(Grant::to("a").tools(["bad", "slow"])).unwrap();
    let agent = Arc::new(rt.session("a", token).unwrap());
    let call = |tool: &'static str| {
        let agent = Arc::clone(&agent);
        answer(move || agent.call(tool, args! {}))
    };
    let running = call("slow");
    await_that("it runs", || run.begun.load(Ordering::SeqCst) == 1);
    assert!(halted(call("bad").recv_timeout(FOR_EVER).expect("an answer")));
    assert!(halted(call("slow").recv_timeout(FOR_EVER).expect("an answer")));
    assert_eq!(run.begun.load(Ordering::SeqCst), 1, "nothing begins any more");
    run.release.send(()).unwrap();
    assert!(halted(running.recv_timeout(FOR_EVER).expect("an answer")));
}

fn is_locked(home: &Path) -> bool {
    match Runtime::open(home) {
        Ok(rt) => rt.close().map(|()| false).unwrap(),
        Err(Error::Home(StoreError::Locked)) => true,
        Err(other) => panic!("{other}"),
    }
}

/// How often the bodies of a log are of one kind.
fn count(records: &[Record], is: fn(&Body) -> bool) -> usize {
    records.iter().filter(|record| is(&record.body)).count()
}

/// A home that was closed over a run that was given up is nobody else's before that is back.
#[test]
fn a_closed_home_waits_for_what_was_given_up() {
    let (_dir, home) = new_home();
    let (tool, run) = slow(Some(20));
    let rt = Options::new().tool(tool).unwrap().create(&home).unwrap();
    let token = rt.issue(Grant::to("a").tools(["slow", "echo"])).unwrap();
    let agent = rt.session("a", token).unwrap();
    let result = agent.call("slow", args! {}).unwrap();
    assert_eq!(result.reason(), Some(Reason::TimedOut));
    rt.close().unwrap();
    assert!(is_locked(&home), "it still runs");
    assert!(closed(agent.call("echo", args! { "value": 1_u64 })), "closed is closed");
    assert_eq!(run.ended.load(Ordering::SeqCst), 0);
    run.release.send(()).unwrap();
    await_that("the home is free", || !is_locked(&home));
    assert_eq!(run.ended.load(Ordering::SeqCst), 1, "not before it ended");
    let records = records(&home);
    let shut = records.iter().position(|r| matches!(r.body, Body::Shutdown(_))).unwrap();
    assert!(matches!(records[shut + 1].body, Body::Late(_)), "its return is on record");
    assert!(records[shut + 1..].iter().all(|record| match &record.body {
        Body::Boot(boot) => boot.before == PreviousRun::Clean && boot.open == 0,
        _ => true,
    }));
    assert_eq!(count(&records, |body| matches!(body, Body::Refusal(_))), 0);
    assert_eq!(verdict(&home), Soundness::Sound);
}

/// The same for a run on its caller's thread, and for one whose caller waits: they are answered,
/// and their intents are not recovered.
#[test]
fn a_closed_home_waits_for_what_runs() {
    for limit in [None, Some(3_600_000)] {
        let (_dir, home) = new_home();
        let (tool, run) = slow(limit);
        let rt = Options::new().tool(tool).unwrap().create(&home).unwrap();
        let token = rt.issue(Grant::to("a").tools(["slow"])).unwrap();
        let agent = Arc::new(rt.session("a", token).unwrap());
        let other = Arc::clone(&agent);
        let called = answer(move || other.call("slow", args! {}));
        await_that("it runs", || run.begun.load(Ordering::SeqCst) == 1);
        rt.close().unwrap();
        assert!(is_locked(&home), "it still runs");
        run.release.send(()).unwrap();
        let result = called.recv_timeout(FOR_EVER).expect("an answer").unwrap();
        assert_eq!(result.reason(), None);
        // A session that is left over holds nothing.
        await_that("the home is free", || !is_locked(&home));
        assert!(closed(agent.call("slow", args! {})));
        let records = records(&home);
        assert_eq!(count(&records, |body| matches!(body, Body::Outcome(_))), 1);
        assert_eq!(count(&records, |body| matches!(body, Body::Recovery(_))), 0);
        assert_eq!(run.ended.load(Ordering::SeqCst), 1);
        assert_eq!(verdict(&home), Soundness::Sound);
    }
}

/// A kernel that has halted records nothing more, but keeps the home as long as something runs.
#[test]
fn a_halted_home_waits_for_what_runs() {
    let (_dir, home) = new_home();
    let (tool, run) = slow(None);
    let bad = Act { demands: || panic!("demands"), ..act("bad", None, || {}) };
    let rt = Options::new().tool(tool).unwrap().tool(bad).unwrap().create(&home).unwrap();
    let token = rt.issue(Grant::to("a").tools(["slow", "bad"])).unwrap();
    let agent = Arc::new(rt.session("a", token).unwrap());
    let other = Arc::clone(&agent);
    let called = answer(move || other.call("slow", args! {}));
    await_that("it runs", || run.begun.load(Ordering::SeqCst) == 1);
    let other = Arc::clone(&agent);
    let bad = answer(move || other.call("bad", args! {}));
    assert!(halted(bad.recv_timeout(FOR_EVER).expect("an answer")));
    assert!(halted(rt.close()));
    assert!(is_locked(&home), "it still runs");
    run.release.send(()).unwrap();
    assert!(halted(called.recv_timeout(FOR_EVER).expect("an answer")));
    await_that("the home is free", || !is_locked(&home));
    drop(agent);
    let records = records(&home);
    assert_eq!(count(&records, |body| matches!(body, Body::Recovery(_))), 1, "after its end");
    assert_eq!(verdict(&home), Soundness::Sound);
}

/// Nobody waits for a late return, and nothing else is going on: it is made durable all the same.
#[test]
fn a_late_return_is_durable_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let memory = MemoryStore::new();
    let (tool, run) = slow(Some(20));
    let options = Options::new().tool(tool).unwrap();
    let options = options.store(memory.share()).durability(Durability::Memory);
    let rt = options.create(dir.path().join("home")).unwrap();
    let token = rt.issue(Grant::to("a").tools(["slow"])).unwrap();
    let agent = rt.session("a", token).unwrap();
    let result = agent.call("slow", args! {}).unwrap();
    assert_eq!(result.reason(), Some(Reason::TimedOut));
    run.release.send(()).unwrap();
    await_that("its return is durable", || {
        count(&decoded(&mut memory.share()), |body| matches!(body, Body::Late(_))) == 1
    });
    rt.close().unwrap();
    let late = count(&decoded(&mut memory.share()), |body| matches!(body, Body::Late(_)));
    assert_eq!(late, 1, "once");
}

/// JSON is answered as before, whoever reads it.
#[test]
fn json_is_answered_by_what_is_wrong_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let rt = Runtime::create(dir.path().join("home")).unwrap();
    let token = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
    let agent = rt.session("a", token).unwrap();
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let long = format!("{{\"tool_id\": \"echo\", \"args\": {{\"value\": \"{}\"}}}}", {
        "x".repeat(1 << 20)
    });
    for (text, reason) in [
        (r#"{"tool_id": "echo", "args": {"value": [1, 2]}}"#, None),
        (r#"{"tool_id": "echo""#, Some(Reason::Malformed)),
        (r#"{"tool_id": "echo", "tool_id": "echo"}"#, Some(Reason::DuplicateKey)),
        (r#"{"tool_id": 1e999}"#, Some(Reason::NumberRange)),
        (r#"{"tool_id": "echo"}"#, Some(Reason::MissingField)),
        (r#"{"tool_id": 1, "args": {}}"#, Some(Reason::BadField)),
        (&deep, Some(Reason::TooDeep)),
        (&long, Some(Reason::TooLarge)),
    ] {
        let result = agent.envelope(text.as_bytes(), Written::Json).wait().unwrap();
        assert_eq!(result.reason(), reason, "{}", &text[..text.len().min(60)]);
    }
    rt.close().unwrap();
    assert_eq!(verdict(&dir.path().join("home")), Soundness::Sound);
}

/// Who looks at a home is lent its kernel, and can't drive it.
#[test]
fn an_inspection_lends() {
    let (_dir, home) = new_home();
    let rt = Runtime::create(&home).unwrap();
    let token = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
    let inspection: Inspection = Options::new().inspect(&home).unwrap();
    let kernel: &Kernel = inspection.kernel();
    assert_eq!(kernel.token(&token).unwrap().body.agent.as_str(), "a");
    assert_eq!(kernel.head(), rt.look(Kernel::head).unwrap());
    rt.close().unwrap();
}
