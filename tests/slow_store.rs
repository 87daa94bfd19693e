//! A store that takes its time: what callers are told meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex, mpsc};
use std::time::Duration;

use syscap::audit::MemoryStore;
use syscap::format::{Durability, EffectClass, Retry};
use syscap::host::HostTool;
use syscap::kernel::{Batch, Store, StoreError};
use syscap::prelude::*;

/// How long a commit takes.
const COMMIT: Duration = Duration::from_millis(3);

struct SlowStore(MemoryStore);

impl Store for SlowStore {
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        std::thread::sleep(COMMIT);
        self.0.commit(batch)
    }

    kernel_support::forward!(self.0 => records object vault room);
}

/// Threads repeat each key until it is answered. They may be told to wait, and nothing else; then
/// each gets the first outcome, and the effect was made once.
#[test]
fn repeats_over_a_slow_store_wait_for_the_first_outcome() {
    const THREADS: u64 = 32;
    const KEYS: u64 = 100;
    let dir = tempfile::tempdir().unwrap();
    let effects = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&effects);
    let count = HostTool::new("count", EffectClass::LocalWrite)
        .unwrap()
        .run(move |_| Ok(counted.fetch_add(1, Ordering::SeqCst)));
    let options = Options::new().durability(Durability::Memory);
    let options = options.store(SlowStore(MemoryStore::new())).tool(count).unwrap();
    let rt = options.create(dir.path().join("home")).unwrap();
    let budget = Budget::standard().with(Dimension::Calls, 1 << 40);
    let budget = budget.with(Dimension::Concurrent, 64);
    let token = rt.issue(Grant::to("a").tools(["count"]).budget(budget)).unwrap();
    let agent = rt.session("a", token).unwrap();
    let start = Barrier::new(usize::try_from(THREADS).unwrap());
    // Whatever is no first outcome and no word to wait ends it: `None`.
    let ask = |key: &str, told: &mut BTreeMap<Reason, u64>| loop {
        let result = agent.request("count").args(args! {}).key(key).wait().unwrap();
        let Some(reason) = result.reason() else { break Some(result.delivered().clone()) };
        *told.entry(reason).or_default() += 1;
        if reason.retry() != Retry::Wait {
            break None;
        }
    };
    let answered = || {
        let (mut told, mut all) = (BTreeMap::new(), Vec::new());
        for key in 0..KEYS {
            start.wait();
            all.push(ask(&format!("k{key}"), &mut told));
        }
        (told, all)
    };
    let each: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(answered)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(effects.load(Ordering::SeqCst), KEYS, "each key made its effect once");
    for (told, all) in &each {
        assert!(told.keys().all(|reason| *reason == Reason::KeyInFlight), "{told:?}");
        assert_eq!(*all, each[0].1, "every thread got the first outcome");
    }
    // What is durable is given again, each time.
    for (key, first) in each[0].1.iter().enumerate() {
        for _ in 0..2 {
            let again =
                agent.request("count").args(args! {}).key(&format!("k{key}")).wait().unwrap();
            assert_eq!((again.reason(), Some(again.delivered())), (None, first.as_ref()));
        }
    }
    rt.close().unwrap();
}

/// A store whose commits can be held: how far it came, and whether one waits for leave.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<Gated>, Condvar)>);

#[derive(Default)]
struct Gated {
    closed: bool,
    waiting: bool,
    committed: u64,
}

impl Gate {
    fn with<T>(&self, change: impl FnOnce(&mut Gated) -> T) -> T {
        let changed = change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
        changed
    }

    fn until(&self, holds: impl Fn(&Gated) -> bool) {
        drop(self.0.1.wait_while(self.0.0.lock().unwrap(), |gated| !holds(gated)).unwrap());
    }
}

struct HeldStore(MemoryStore, Gate);

impl Store for HeldStore {
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.1.with(|gated| gated.waiting = true);
        self.1.until(|gated| !gated.closed);
        self.0.commit(batch)?;
        self.1.with(|gated| {
            gated.waiting = false;
            gated.committed += u64::try_from(batch.links().len()).unwrap();
        });
        Ok(())
    }

    kernel_support::forward!(self.0 => records object vault room);
}

/// What a run that had been given up came to waits for nobody's next call to be on record, also
/// where it came while others committed.
#[test]
fn late_outcome_joins_the_running_commit() {
    let dir = tempfile::tempdir().unwrap();
    let (gate, (go, goes)) = (Gate::default(), mpsc::channel::<()>());
    let goes = Mutex::new(goes);
    let slow = HostTool::new("slow", EffectClass::LocalWrite).unwrap();
    let slow = slow.limit(Duration::from_millis(20)).run(move |_| {
        goes.lock().unwrap().recv().unwrap();
        Ok("late")
    });
    let options = Options::new().durability(Durability::Memory).tool(slow).unwrap();
    let options = options.store(HeldStore(MemoryStore::new(), gate.clone()));
    let rt = options.create(dir.path().join("home")).unwrap();
    let token = rt.issue(Grant::to("a").tools(["slow"])).unwrap();
    let agent = rt.session("a", token).unwrap();
    let result = agent.call("slow", args! {}).unwrap();
    assert_eq!(result.reason(), Some(Reason::TimedOut));
    let before = gate.with(|gated| gated.committed);
    let held = || rt.look(|k| k.tokens().any(|t| t.held.get(Dimension::Concurrent) > 0)).unwrap();
    gate.with(|gated| gated.closed = true);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| rt.issue(Grant::to("b").tools(["slow"])));
        gate.until(|gated| gated.waiting);
        assert!(held());
        go.send(()).unwrap();
        while held() {
            std::thread::yield_now();
        }
        gate.with(|gated| gated.closed = false);
        other.join().unwrap().unwrap();
    });
    // The token of the other, and what came late: nothing was called since.
    assert_eq!(gate.with(|gated| gated.committed), before + 2);
    rt.close().unwrap();
}
