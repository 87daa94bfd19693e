//! Calls that are made together run one after the other: what happens while one runs, and is to
//! stop the others, stops them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use host_support::{ample, end, new_home, records, verdict};
use syscap::format::{Body, EffectClass, Freeze, FreezeChange, FreezeTarget, OutcomeFlags};
use syscap::host::HostTool;
use syscap::prelude::*;
use syscap::provide::Cancel;
use syscap::verify::Soundness;

/// What the first run does, and how many runs there were.
struct World {
    _dir: tempfile::TempDir,
    home: PathBuf,
    rt: Runtime,
    token: TokenId,
    runs: Arc<AtomicU64>,
    first: Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>,
}

fn world() -> World {
    let (dir, home) = new_home();
    let (runs, first) =
        (Arc::<AtomicU64>::default(), Arc::<OnceLock<Box<dyn Fn() + Send + Sync>>>::default());
    let (counted, act) = (Arc::clone(&runs), Arc::clone(&first));
    let tool = HostTool::new("t.act", EffectClass::LocalWrite).unwrap().run(move |_| {
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            act.get().unwrap()();
        }
        Ok(true)
    });
    let rt = Options::new().tool(tool).unwrap().create(&home).unwrap();
    let budget = Budget::standard().with(Dimension::Concurrent, 64);
    let token = rt.issue(Grant::to("a").tools(["t.act"]).budget(budget)).unwrap();
    World { _dir: dir, home, rt, token, runs, first }
}

impl World {
    /// Calls ten times together; the first run does this.
    fn call(&self, first: impl Fn() + Send + Sync + 'static) -> Vec<Option<Reason>> {
        assert!(self.first.set(Box::new(first)).is_ok());
        let agent = self.rt.session("a", self.token).unwrap();
        let answers = agent
            .wait_all(
                (0..10)
                    .map(|_| ("t.act", args! {}))
                    .map(|(tool, args)| agent.request(tool).args(args)),
            )
            .unwrap();
        answers.iter().map(|answer| answer.reason()).collect()
    }

    /// Nine did not run, and paid nothing; the log says so, and why.
    fn one_ran(&self, reasons: &[Option<Reason>], why: OutcomeFlags) {
        assert_eq!(self.runs.load(Ordering::SeqCst), 1);
        assert_eq!(reasons[0], None);
        assert_eq!(reasons[1..], [Some(Reason::NotRun); 9]);
        let outcomes: Vec<_> = records(&self.home)
            .into_iter()
            .filter_map(|record| match record.body {
                Body::Outcome(outcome) if outcome.reason == Some(Reason::NotRun) => Some(outcome),
                _ => None,
            })
            .collect();
        assert_eq!(outcomes.len(), 9);
        for outcome in outcomes {
            assert_eq!(outcome.flags, why);
            assert!(outcome.call.used.iter().all(|(_, used)| used == 0));
        }
    }
}

#[test]
fn call_frozen_before_its_start_does_not_begin() {
    let world = world();
    let rt = world.rt.clone();
    let reasons = world.call(move || {
        let (target, change) = (FreezeTarget::Kernel, FreezeChange::Freeze);
        rt.freeze(&Freeze { target, name: Box::from(""), change }).unwrap();
    });
    world.rt.close().unwrap();
    world.one_ran(&reasons, OutcomeFlags::FROZEN);
    assert_eq!(verdict(&world.home), Soundness::Sound);
}

#[test]
fn call_revoked_before_its_start_does_not_begin() {
    let world = world();
    let (rt, token) = (world.rt.clone(), world.token);
    let reasons = world.call(move || {
        rt.revoke(token).unwrap();
    });
    world.rt.close().unwrap();
    world.one_ran(&reasons, OutcomeFlags::REVOKED);
    assert_eq!(verdict(&world.home), Soundness::Sound);
}

#[test]
fn call_waiting_at_close_does_not_begin() {
    let world = world();
    let (rt, closing) = (world.rt.clone(), Arc::new(Mutex::new(None)));
    let begun = Arc::clone(&closing);
    let reasons = world.call(move || {
        let closes = rt.clone();
        *begun.lock().unwrap() = Some(thread::spawn(move || closes.close()));
        // Longer than a home that closes waits before it gives up what runs.
        thread::sleep(Duration::from_secs(4));
    });
    closing.lock().unwrap().take().unwrap().join().unwrap().unwrap();
    world.one_ran(&reasons, OutcomeFlags::GIVEN_BACK);
    assert_eq!(verdict(&world.home), Soundness::Sound);
}

/// Calls of two sessions are not made together: none is made.
#[test]
fn calls_of_another_session_are_an_error_before_any_is_made() {
    let world = world();
    let [one, other] = [(); 2].map(|()| world.rt.session("a", world.token).unwrap());
    let made = one.wait_all([one.request("t.act"), other.request("t.act")]);
    assert!(matches!(made, Err(Error::Refused(why)) if why.reason() == Reason::NotBound));
    assert_eq!(world.runs.load(Ordering::SeqCst), 0);
    end(&world.rt, &world.home);
}

/// Nor does a call that was given up before it began; it is on record, and costs nothing.
#[test]
fn call_timed_out_before_its_start_does_not_begin() {
    let world = world();
    let agent = world.rt.session("a", world.token).unwrap();
    let cancel = Cancel::new();
    cancel.cancel();
    let answer = agent.request("t.act").cancel(&cancel).wait().unwrap();
    assert_eq!(answer.reason(), Some(Reason::NotRun));
    assert_eq!(world.runs.load(Ordering::SeqCst), 0);
    end(&world.rt, &world.home);
}

/// One that takes too long is given up, and tells the others nothing; nor what the caller gave.
#[test]
fn one_that_is_given_up_tells_the_others_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let cancelled = Arc::<Mutex<Vec<bool>>>::default();
    let seen = Arc::clone(&cancelled);
    let limit = Duration::from_millis(100);
    let tool = HostTool::new("t.act", EffectClass::LocalWrite).unwrap().limit(limit);
    let tool = tool.run(move |call| {
        let first = {
            let mut seen = seen.lock().unwrap();
            seen.push(call.is_cancelled());
            seen.len() == 1
        };
        if first {
            thread::sleep(4 * limit);
        }
        Ok(true)
    });
    let rt = Options::new().tool(tool).unwrap().create(dir.path().join("home")).unwrap();
    let token = rt.issue(Grant::to("a").tools(["t.act"])).unwrap();
    let agent = rt.session("a", token).unwrap();
    let answers = agent
        .wait_all(
            (0..3).map(|_| ("t.act", args! {})).map(|(tool, args)| agent.request(tool).args(args)),
        )
        .unwrap();
    let reasons: Vec<_> = answers.iter().map(|answer| answer.reason()).collect();
    assert_eq!(reasons, [Some(Reason::TimedOut), None, None]);
    assert_eq!(*cancelled.lock().unwrap(), [false; 3]);
    rt.close().unwrap();
}

/// From another process more are made together than it may have out at once: each has its answer,
/// and was carried out once.
#[test]
fn more_than_a_connection_may_ask_for_are_all_answered() {
    let (_dir, home) = new_home();
    Runtime::create(&home).unwrap().close().unwrap();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    assert!(!attached.is_holder());
    let budget = ample().with(Dimension::Concurrent, 900);
    let grant = Grant::to("a").tools(["fs.write"]).workspace().budget(budget);
    let agent = attached.session("a", attached.issue(grant).unwrap()).unwrap();
    let write = |n: u64| ("fs.write", args! { "path": format!("{n}.txt"), "text": "x" });
    let answers = agent
        .wait_all((0..600).map(write).map(|(tool, args)| agent.request(tool).args(args)))
        .unwrap();
    assert!(answers.iter().all(|answer| answer.reason().is_none()));
    let written = std::fs::read_dir(home.join("files/agents/a/workspace")).unwrap();
    assert_eq!((answers.len(), written.count()), (600, 600));
    // One that can't be sent is told before any is.
    let long = || ("fs.write", args! { "path": "long.txt", "text": "x".repeat(17 << 20) });
    let refused = agent
        .wait_all(
            [write(700), long()].into_iter().map(|(tool, args)| agent.request(tool).args(args)),
        )
        .unwrap_err();
    assert!(matches!(refused, Error::Refused(refused) if refused.reason() == Reason::TooLarge));
    assert!(!home.join("files/agents/a/workspace/700.txt").exists());
    attached.close().unwrap();
    holder.close().unwrap();
}
