//! The runtime: many threads, tools that panic or hang, homes that can't be opened.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock, mpsc};
use std::time::Duration;

use host_support::{ample, end, new_home, records, verdict};
use kernel_support::fault::{FaultPoint, FaultStore};
use syscap::audit::{MemoryStore, SqliteReader, SqliteStore};
use syscap::format::{Body, Durability, EffectClass, Grants, Manifest, Record, Refused, TxOutcome};
use syscap::kernel::{Batch, Demands, Permit, Plan, Ran, Request, Store, StoreError, Tool};
use syscap::prelude::*;
use syscap::verify::{Options as VerifyOptions, Soundness, verify_home};

/// 16 threads race for one budget on a real database: exactly as many writes as it has calls.
#[test]
fn threads_race_for_one_budget() {
    let (_dir, home) = new_home();
    let rt = Runtime::create(&home).unwrap();
    let budget = Budget::standard().with(Dimension::Calls, 40).with(Dimension::Concurrent, 64);
    let grant = Grant::to("a").tools(["fs.write"]).workspace().budget(budget);
    let token = rt.issue(grant).unwrap();
    let agent = rt.session("a", token).unwrap();
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (agent, written) = (&agent, &written);
            scope.spawn(move || {
                for n in 0..8 {
                    let path = format!("{thread}-{n}.txt");
                    let args = args! { "path": &path, "text": "x" };
                    let result = agent.call("fs.write", args).unwrap();
                    match result.reason() {
                        None => drop(written.fetch_add(1, Ordering::SeqCst)),
                        Some(reason) => assert_eq!(reason, Reason::OverBudget),
                    }
                }
            });
        }
    });
    assert_eq!(written.load(Ordering::SeqCst), 40);
    let files = fs::read_dir(home.join("files/agents/a/workspace")).unwrap().count();
    assert_eq!(files, 40);
    assert_eq!(verdict(&home), Soundness::Sound, "live");
    rt.close().unwrap();
    assert_eq!(verdict(&home), Soundness::Sound, "closed");
    let outcomes = records(&home);
    let outcomes = outcomes.iter().filter(|r| matches!(r.body, Body::Outcome(_))).count();
    assert_eq!(outcomes, 40);
}

/// A tool of the host's: it does as its plan says.
struct Act {
    manifest: Manifest,
    act: Arc<dyn Fn() + Send + Sync>,
}

struct ActPlan {
    demands: Demands,
    act: Arc<dyn Fn() + Send + Sync>,
}

impl Tool for Act {
    type Plan = ActPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, _: &Request<'_>) -> Result<ActPlan, Refused> {
        Ok(ActPlan { demands: Demands::default(), act: Arc::clone(&self.act) })
    }
}

impl Plan for ActPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        (self.act)();
        permit.ok(syscap::format::Canonical::text("done"), TxOutcome::Committed)
    }
}

fn act(name: &str, limit_ms: Option<u64>, act: impl Fn() + Send + Sync + 'static) -> Act {
    let mut manifest = Manifest::new(ToolId::new(name).unwrap(), EffectClass::LocalWrite);
    manifest.wall_ms_max = limit_ms;
    Act { manifest, act: Arc::new(act) }
}

#[test]
fn a_tool_that_panics_ends_its_call_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new()
        .tool(act("bad", None, || panic!("a tool that panics")))
        .unwrap()
        .tool(act("worse", Some(10_000), || panic!("on a thread of its own")))
        .unwrap();
    let rt = options.create(dir.path().join("home")).unwrap();
    let token = rt.issue(Grant::to("a").tools(["bad", "worse", "echo"])).unwrap();
    let agent = rt.session("a", token).unwrap();
    for tool in ["bad", "worse"] {
        let result = agent.call(tool, args! {}).unwrap();
        assert_eq!(result.reason(), Some(Reason::Panicked));
        assert_eq!(result.tx_outcome(), TxOutcome::Unknown);
    }
    assert_eq!(agent.call("echo", args! { "value": 1_u64 }).unwrap().reason(), None);
    rt.close().unwrap();
    assert_eq!(verdict(&dir.path().join("home")), Soundness::Sound);
}

#[test]
fn a_tool_that_hangs_is_given_up_and_its_late_return_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let (release, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let options = Options::new()
        .tool(act("slow", Some(20), move || {
            // Waits for the test, not for a time.
            gate.lock().unwrap().recv().unwrap();
        }))
        .unwrap();
    let home = dir.path().join("home");
    let rt = options.create(&home).unwrap();
    let budget = Budget::standard().with(Dimension::Concurrent, 1);
    let grant = Grant::to("a").tools(["slow", "echo"]).budget(budget);
    let agent = rt.session("a", rt.issue(grant).unwrap()).unwrap();
    let result = agent.call("slow", args! {}).unwrap();
    assert_eq!(result.reason(), Some(Reason::TimedOut));
    // Its slot is held: the one that the budget has.
    let result = agent.call("echo", args! { "value": 1_u64 }).unwrap();
    assert_eq!(result.reason(), Some(Reason::ConcurrencyLimit));
    assert_eq!(result.retry(), Some(Retry::Wait));
    // Where there is no slot at all, waiting for one would be in vain.
    let none = Grant::to("b").tools(["echo"]).budget(budget.with(Dimension::Concurrent, 0));
    let other = rt.session("b", rt.issue(none).unwrap()).unwrap();
    let result = other.call("echo", args! { "value": 1_u64 }).unwrap();
    assert_eq!((result.reason(), result.retry()), (Some(Reason::OverBudget), Some(Retry::Ask)));
    release.send(()).unwrap();
    let freed = |rt: &Runtime| {
        rt.look(|kernel| kernel.tokens().all(|t| t.held.get(Dimension::Concurrent) == 0)).unwrap()
    };
    while !freed(&rt) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let result = agent.call("echo", args! { "value": 1_u64 }).unwrap();
    assert_eq!(result.reason(), None);
    rt.close().unwrap();
    assert!(records(&home).iter().any(|record| matches!(record.body, Body::Late(_))));
    assert_eq!(verdict(&home), Soundness::Sound);
}

/// A job that hangs keeps nobody from committing: whoever sleeps is woken, not who runs.
#[test]
fn a_job_that_hangs_holds_up_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let (release, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let options = Options::new().tool(act("slow", None, move || {
        gate.lock().unwrap().recv().unwrap();
    }));
    let rt = options.unwrap().create(dir.path().join("home")).unwrap();
    let token = rt.issue(Grant::to("a").tools(["slow", "echo"])).unwrap();
    let agent = rt.session("a", token).unwrap();
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| agent.call("slow", args! {}).unwrap());
        while rt.look(syscap::kernel::Kernel::in_flight).unwrap() == 0 {
            std::thread::yield_now();
        }
        let others: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..50 {
                        agent.call("echo", args! { "value": 1_u64 }).unwrap().value().unwrap();
                    }
                })
            })
            .collect();
        others.into_iter().for_each(|other| other.join().unwrap());
        release.send(()).unwrap();
        assert_eq!(slow.join().unwrap().reason(), None);
    });
    rt.close().unwrap();
}

/// A revocation takes effect while calls are in flight, and is durable when it is acknowledged.
#[test]
fn revocation_overtakes() {
    let (_dir, home) = new_home();
    let rt = Runtime::create(&home).unwrap();
    let token = rt.issue(Grant::to("a").tools(["fs.write"]).workspace()).unwrap();
    let agent = rt.session("a", token).unwrap();
    let start = Barrier::new(5);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (agent, start) = (&agent, &start);
            scope.spawn(move || {
                start.wait();
                for n in 0..50 {
                    let path = format!("{thread}-{n}");
                    let args = args! { "path": &path, "text": "x" };
                    let result = agent.call("fs.write", args).unwrap();
                    let there = result.reason().is_none();
                    assert!(
                        there || matches!(result.reason(), Some(Reason::Revoked | Reason::NotRun))
                    );
                    if there { continue } else { break }
                }
            });
        }
        start.wait();
        let seq = rt.revoke(token).unwrap();
        let result = agent.call("fs.write", args! { "path": "after", "text": "x" }).unwrap();
        assert_eq!(result.reason(), Some(Reason::Revoked));
        assert!(result.receipt().outcome_seq > seq);
    });
    assert!(!home.join("files/agents/a/workspace/after").exists());
    end(&rt, &home);
}

/// After the store has failed every call is an error, and the log holds what was acknowledged.
#[test]
fn a_failed_store_halts() {
    let dir = tempfile::tempdir().unwrap();
    let memory = MemoryStore::new();
    let store = FaultStore::new(memory.share(), FaultPoint::Before(12));
    let options = Options::new().store(store).durability(Durability::Memory);
    let rt = options.create(dir.path().join("home")).unwrap();
    let token = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
    let agent = rt.session("a", token).unwrap();
    let mut answered = Vec::new();
    let failed = loop {
        match agent.call("echo", args! { "value": 1_u64 }) {
            Ok(result) => answered.push(result.receipt().outcome_leaf),
            Err(error) => break error,
        }
    };
    assert!(matches!(failed, Error::Home(StoreError::Io(_))), "{failed:?}");
    assert!(agent.call("echo", args! { "value": 1_u64 }).is_err(), "halted for good");
    assert!(!answered.is_empty());
    let leaves: Vec<_> =
        memory.all_records().iter().map(|bytes| syscap::format::leaf(bytes)).collect();
    assert!(answered.iter().all(|leaf| leaves.contains(leaf)));
}

#[test]
fn homes_that_cannot_be_opened_say_why() {
    let (_dir, home) = new_home();
    let error = |result: Result<Runtime, Error>| match result {
        Err(Error::Home(error)) => error,
        other => panic!("{:?}", other.err()),
    };
    assert_eq!(error(Runtime::open(&home)), StoreError::Missing);
    let rt = Runtime::create(&home).unwrap();
    assert_eq!(error(Runtime::open(&home)), StoreError::Locked);
    assert_eq!(error(Runtime::create(&home)), StoreError::Locked);
    rt.close().unwrap();
    assert_eq!(error(Runtime::create(&home)), StoreError::Exists);
    Runtime::open(&home).unwrap().close().unwrap();
    let database = home.join("home.db");
    fs::write(&database, b"this is no database, and long enough to be looked at as one").unwrap();
    assert_eq!(error(Runtime::open(&home)), StoreError::Damaged);
}

/// Everything that a home knows survives being closed and opened.
#[test]
fn a_home_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let (home, base) = (dir.path().join("home"), dir.path().join("project"));
    fs::create_dir(&base).unwrap();
    let rt = Options::new().base(&base).create(&home).unwrap();
    let token = rt.issue(Grant::to("team/a").tools(["file_read", "fs.write"]).workspace()).unwrap();
    let agent = rt.session("team/a", token).unwrap();
    agent.call("fs.write", args! { "path": "n.txt", "text": "kept" }).unwrap().value().unwrap();
    rt.close().unwrap();
    let rt = Runtime::open(&home).unwrap();
    let agent = rt.session("team/a", token).unwrap();
    let read = agent.call("fs_read", args! { "path": "n.txt" }).unwrap();
    assert_eq!(read.text().unwrap(), "kept");
    assert!(base.join("agents/team+a/workspace/n.txt").exists());
    let used = rt.look(|kernel| kernel.token(&token).unwrap().used).unwrap();
    assert_eq!((used.get(Dimension::Calls), used.get(Dimension::DiskFiles)), (2, 1));
    rt.close().unwrap();
}

/// Counts fsyncs. Once it has a queue, each commit waits until nobody can add to the log before it
/// is done.
struct Gathering {
    inner: SqliteStore,
    commits: Arc<AtomicU64>,
    queue: Arc<OnceLock<Queue>>,
}

/// Callers of one mutating call each, which is two records.
struct Queue {
    head: Box<dyn Fn() -> u64 + Send + Sync>,
    /// The log's last record before they call.
    before: u64,
    callers: u64,
    intents: AtomicU64,
}

impl Queue {
    /// Every caller has its intent in the log, and its outcome where its intent is durable: who
    /// could still add a record waits for this commit.
    fn gather(&self) {
        let due = self.before + self.callers + self.intents.load(Ordering::SeqCst);
        while (self.head)() < due {
            std::thread::yield_now();
        }
    }

    fn durable(&self, batch: &Batch) {
        let bodies = batch.links().iter().map(|link| Record::decode(&link.bytes).unwrap().body);
        let intents = bodies.filter(|body| matches!(body, Body::Intent(_))).count();
        self.intents.fetch_add(intents as u64, Ordering::SeqCst);
    }
}

impl Store for Gathering {
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        if let Some(queue) = self.queue.get() {
            queue.gather();
            queue.durable(batch);
        }
        self.commits.fetch_add(1, Ordering::SeqCst);
        self.inner.commit(batch)
    }

    kernel_support::forward!(self.inner => records object vault room);
}

/// How many fsyncs so many queued callers cost, each making one mutating call.
fn fsyncs_of(callers: u64) -> u64 {
    let (_dir, home) = new_home();
    fs::create_dir(&home).unwrap();
    let (commits, queue) = (Arc::new(AtomicU64::new(0)), Arc::new(OnceLock::new()));
    let store = Gathering {
        inner: SqliteStore::create(&home, Durability::Full).unwrap(),
        commits: Arc::clone(&commits),
        queue: Arc::clone(&queue),
    };
    let options = Options::new().tool(act("touch", None, || {})).unwrap();
    let rt = Arc::new(options.store(store).create(&home).unwrap());
    let budget = Budget::standard().with(Dimension::Concurrent, 100);
    let token = rt.issue(Grant::to("a").tools(["touch"]).budget(budget)).unwrap();
    let agent = rt.session("a", token).unwrap();
    let head = |rt: &Runtime| rt.look(|kernel| kernel.head().seq.get()).unwrap();
    let (before, looked) = (head(&rt), Arc::downgrade(&rt));
    let head = Box::new(move || looked.upgrade().map_or(u64::MAX, |rt| head(&rt)));
    let fsyncs = commits.load(Ordering::SeqCst);
    let queued = Queue { head, before, callers, intents: AtomicU64::new(0) };
    assert!(queue.set(queued).is_ok());
    std::thread::scope(|scope| {
        for _ in 0..callers {
            scope.spawn(|| {
                agent.call("touch", args! {}).unwrap().value().unwrap();
            });
        }
    });
    commits.load(Ordering::SeqCst) - fsyncs
}

/// Two batches of intents at most, that of the first who came and that of all others, and two of
/// outcomes: whatever the machine's load.
#[test]
fn group_commit_shares_fsyncs() {
    for (callers, fsyncs_max) in [(1, 2), (16, 16 * 2 / 8), (64, 64 * 2 / 32)] {
        let fsyncs = fsyncs_of(callers);
        println!("{callers} callers: {fsyncs} fsyncs for {} records", callers * 2);
        assert!(fsyncs <= fsyncs_max, "{callers} callers: {fsyncs} fsyncs");
    }
}

/// A read's intent and outcome are one fsync.
#[test]
fn a_read_costs_one_fsync() {
    let (_dir, home) = new_home();
    fs::create_dir(&home).unwrap();
    let commits = Arc::new(AtomicU64::new(0));
    let store = Gathering {
        inner: SqliteStore::create(&home, Durability::Full).unwrap(),
        commits: Arc::clone(&commits),
        queue: Arc::default(),
    };
    let rt = Options::new().store(store).create(&home).unwrap();
    let token = rt.issue(Grant::to("a").tools(["fs.read", "fs.write"]).workspace()).unwrap();
    let agent = rt.session("a", token).unwrap();
    let before = commits.load(Ordering::SeqCst);
    agent.call("fs.write", args! { "path": "a", "text": "x" }).unwrap().value().unwrap();
    assert_eq!(commits.load(Ordering::SeqCst) - before, 2);
    for _ in 0..10 {
        agent.call("fs.read", args! { "path": "a" }).unwrap().value().unwrap();
    }
    assert_eq!(commits.load(Ordering::SeqCst) - before, 12);
}

/// Calls that are made together share two fsyncs: that of all intents, and that of all outcomes.
/// Each is decided, recorded and answered as if it were alone, in its place.
#[test]
fn calls_made_together_share_two_fsyncs() {
    let (_dir, home) = new_home();
    fs::create_dir(&home).unwrap();
    let commits = Arc::new(AtomicU64::new(0));
    let store = Gathering {
        inner: SqliteStore::create(&home, Durability::Full).unwrap(),
        commits: Arc::clone(&commits),
        queue: Arc::default(),
    };
    let rt = Options::new().store(store).create(&home).unwrap();
    let budget = Budget::standard().with(Dimension::Concurrent, 64);
    let grant = Grant::to("a").tools(["fs.read", "fs.write"]).workspace().budget(budget);
    let token = rt.issue(grant).unwrap();
    let agent = rt.session("a", token).unwrap();
    let before = commits.load(Ordering::SeqCst);
    let write = |n: u64| ("fs.write", args! { "path": n.to_string(), "text": "x" });
    let written = agent
        .wait_all((0..64).map(write).map(|(tool, args)| agent.request(tool).args(args)))
        .unwrap();
    assert!(written.iter().all(|answer| answer.reason().is_none()));
    assert_eq!(written.len(), 64);
    assert_eq!(commits.load(Ordering::SeqCst) - before, 2);
    let mixed = || {
        [
            ("fs.read", args! { "path": "7" }),
            ("nothing", args! {}),
            ("fs.write", args! { "path": "7", "text": "y" }),
            ("fs.read", args! { "path": "../7" }),
        ]
    };
    let expected = [None, Some(Reason::UnknownTool), None, Some(Reason::BadPath)];
    let attached = Runtime::connect(&home).unwrap();
    for agent in [agent, attached.session("a", token).unwrap()] {
        let answers = agent
            .wait_all(mixed().into_iter().map(|(tool, args)| agent.request(tool).args(args)))
            .unwrap();
        let reasons: Vec<_> = answers.iter().map(ToolResult::reason).collect();
        assert_eq!(reasons, expected);
        assert!(agent.wait_all([]).unwrap().is_empty());
    }
    // More than may be under way at once are refused, and nothing waits for a place.
    let budget = Budget::standard().with(Dimension::Concurrent, 2);
    let token = rt.issue(Grant::to("b").tools(["fs.write"]).workspace().budget(budget)).unwrap();
    let agent = rt.session("b", token).unwrap();
    let calls = (0..3).map(write).map(|(tool, args)| agent.request(tool).args(args));
    let answers = agent.wait_all(calls).unwrap();
    let reasons: Vec<_> = answers.iter().map(ToolResult::reason).collect();
    assert_eq!(reasons, [None, None, Some(Reason::ConcurrencyLimit)]);
    end(&rt, &home);
}

/// Where an agent's folder can't be made there is no session, and none stays open.
#[test]
fn a_session_that_cannot_be_prepared_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let rt = Runtime::create(dir.path().join("home")).unwrap();
    let token = rt.issue(Grant::to("a").tools(["fs.read"]).workspace()).unwrap();
    let open = || rt.look(|kernel| kernel.sessions().count()).unwrap();
    let (agents, workspace) = (dir.path().join("home/files/agents"), "a/workspace");
    fs::remove_dir(agents.join(workspace)).unwrap();
    fs::write(agents.join(workspace), "in the way").unwrap();
    for _ in 0..3 {
        assert!(matches!(rt.session("a", token), Err(Error::Base(_))));
        assert_eq!(open(), 0);
    }
    fs::remove_file(agents.join(workspace)).unwrap();
    let session = rt.session("a", token).unwrap();
    assert_eq!(open(), 1);
    session.close().unwrap();
    rt.close().unwrap();
}

/// A log whose head somebody took away is not sound, and is not exported.
#[test]
fn a_log_without_its_head_is_not_sound() {
    let (dir, home) = new_home();
    Runtime::create(&home).unwrap().close().unwrap();
    let database = rusqlite::Connection::open(home.join("home.db")).unwrap();
    // As somebody would who can write the file: the trigger goes, and comes back.
    let trigger = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' \
                   AND tbl_name = 'head' AND sql LIKE '%DELETE%'";
    let (name, sql): (String, String) =
        database.query_row(trigger, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    database.execute_batch(&format!("DROP TRIGGER {name}; DELETE FROM head; {sql};")).unwrap();
    drop(database);
    let options = VerifyOptions::default();
    assert!(verify_home(&home, &options).is_err());
    let mut reader = SqliteReader::open(&home).unwrap();
    assert!(syscap::audit::export::export(&mut reader, &dir.path().join("out")).is_err());
}

/// Whoever opens and closes a home while it is verified does not make it look tampered with.
#[test]
fn a_home_that_is_taken_meanwhile_is_no_less_sound() {
    let (_dir, home) = new_home();
    let rt = Options::new().durability(Durability::Memory).create(&home).unwrap();
    let token = rt.issue(Grant::to("a").tools(["echo"]).workspace().budget(ample())).unwrap();
    let agent = rt.session("a", token).unwrap();
    // A log that takes a while to verify.
    for n in 0..2_000 {
        agent.call("echo", args! { "value": n }).unwrap();
    }
    rt.close().unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..20 {
                // Long enough that a look begins while the home is free.
                std::thread::sleep(Duration::from_millis(40));
                let taken = Options::new().durability(Durability::Memory).open(&home);
                taken.unwrap().close().unwrap();
            }
            done.store(true, Ordering::SeqCst);
        });
        let mut looks = 0;
        while !done.load(Ordering::SeqCst) {
            assert_ne!(verdict(&home), Soundness::Tampered, "look {looks}");
            looks += 1;
        }
        assert!(looks > 0);
    });
}

/// The README's program prints what the README says of it.
#[test]
fn readme_program_prints_hello_record_9() {
    let readme = include_str!("../README.md");
    let (_dir, home) = new_home();
    let rt = Runtime::create(&home).unwrap();
    let grant = Grant::to("researcher").tools(["fs.read", "fs.write"]).workspace();
    let token = rt.issue(grant.budget(Budget::standard())).unwrap();
    let agent = rt.session("researcher", token).unwrap();
    agent.call("fs.write", args! { "path": "a.txt", "text": "hello" }).unwrap();
    let read = agent.call("fs.read", args! { "path": "a.txt" }).unwrap();
    let printed = format!("{} record {}", read.text().unwrap(), read.receipt().outcome_seq);
    assert!(readme.contains(&format!("This prints `{printed}`.")), "{printed}");
    rt.close().unwrap();
}

/// What goes on in the place of a token is of its line, gives no more and can be used; without such a
/// one it is what stands for it while it is replaced, and never what only renews a lease.
#[test]
fn successor_is_of_the_line_and_gives_no_more() {
    let (_folder, home) = new_home();
    let rt = Runtime::create(&home).unwrap();
    let grant = || Grant::to("a").tools(["echo", "fs.list"]).workspace();
    let whole = |token: TokenId| rt.tokens(&token.to_string()).unwrap().pop().unwrap();
    let next = |token: TokenId| rt.successor(token).unwrap().map(|next| next.info.id);
    let own = rt.issue(grant()).unwrap();
    rt.issue(grant()).unwrap();
    rt.issue(grant().tools(["fs.stat"]).renews(own)).unwrap();
    assert_eq!(next(own), None, "another line, and more than it");
    let nothing = whole(own).replaced_by(Grants::new()).unwrap().budget(Budget::none());
    let between = rt.issue(nothing).unwrap();
    rt.revoke(own).unwrap();
    assert_eq!(next(own), Some(between));
    let old = whole(own);
    let less = old.less(&[ToolId::new("fs.list").unwrap()], &[]).unwrap();
    let last = rt.issue(old.replaced_by(less).unwrap().renews(between)).unwrap();
    assert_eq!((next(own), next(between)), (Some(last), None));
    rt.revoke(between).unwrap();
    rt.revoke(last).unwrap();
    assert_eq!(next(own), None);
    // A lease that was renewed, and revoked: its renewal grants nothing, and is no other token.
    let lease = rt.issue(grant().renew_within(Duration::from_secs(60))).unwrap();
    let renewal = Grant::to("a").budget(Budget::none()).renews(lease);
    rt.issue(renewal.expires_in(Duration::from_secs(600))).unwrap();
    rt.revoke(lease).unwrap();
    assert_eq!(next(lease), None);
    rt.close().unwrap();
}
