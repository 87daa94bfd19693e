//! Calls as futures: begun when polled, ended whether or not anybody waits.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use syscap::format::EffectClass;
use syscap::host::{AsyncSession, ClosureTool, HostTool, Work, in_background};
use syscap::prelude::*;
use syscap::provide::Cancel;

use super::world::{World, options};

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// An executor of five lines: none is needed for a call.
fn block_on<F: Future>(future: F) -> F::Output {
    let (mut future, waker) = (pin!(future), Waker::from(Arc::new(Unpark(thread::current()))));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A world with a tool that waits for the test, and what lets it go.
fn gated() -> (World, mpsc::Sender<()>) {
    let (release, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let slow = HostTool::new("slow", EffectClass::LocalWrite).unwrap().run(move |_| {
        gate.lock().unwrap().recv()?;
        Ok("done")
    });
    (World::with(options().tool(slow).unwrap(), &["slow", "echo"]), release)
}

fn session(world: &World) -> Session {
    world.rt.session("a", world.agent.token()).unwrap()
}

#[test]
fn a_call_is_a_future() {
    let (world, _release) = gated();
    let agent = AsyncSession::new(session(&world));
    let answer = block_on(agent.call("echo", args! { "value": "hi" })).unwrap();
    assert_eq!(answer.reason(), None);
    let refused = block_on(agent.call("nothing", args! {})).unwrap();
    assert_eq!(refused.reason(), Some(Reason::UnknownTool));
    let again = || {
        let call = agent.request("echo").args(args! { "value": "hi" }).key("k");
        block_on(agent.make(call)).unwrap()
    };
    assert_eq!(again().delivered(), again().delivered());
    assert_eq!(world.outcomes().len(), 2, "the key's second call is a repeat");
    assert_eq!((agent.agent().as_str(), agent.token()), ("a", world.agent.token()));
    world.close();
}

#[test]
fn a_call_with_a_models_text_is_a_future() {
    let (world, _release) = gated();
    let agent = AsyncSession::new(session(&world));
    let call =
        |text| block_on(agent.make(agent.request("echo").json(text, Escapes::Data))).unwrap();
    assert_eq!(call(r#"{"value": {"$ref": 1}}"#).reason(), None);
    assert_eq!(call(r#"{"value": 1}, "idempotency_key": "k""#).reason(), Some(Reason::Malformed));
    let once = |text| {
        let call = agent.request("echo").json(text, Escapes::Data).key("k");
        block_on(agent.make(call)).unwrap()
    };
    let first = once(r#"{"value": 1}"#);
    assert_eq!(once(r#"{ "value": 1 }"#).delivered(), first.delivered());
    assert_eq!(world.outcomes().len(), 2, "the key's second call is a repeat");
    world.close();
}

#[test]
fn a_future_that_is_never_polled_sends_nothing() {
    let (world, _release) = gated();
    let agent = AsyncSession::new(session(&world));
    let before = world.records().len();
    drop(agent.call("echo", args! { "value": "hi" }));
    assert_eq!(world.records().len(), before);
    world.close();
}

/// Dropping is no undoing: what was begun ends, and is on record.
#[test]
fn a_future_that_is_dropped_leaves_its_call_to_end() {
    let (world, release) = gated();
    let agent = AsyncSession::new(session(&world));
    {
        let mut call = pin!(agent.call("slow", args! {}));
        assert!(poll(call.as_mut()).is_pending());
        world.until(|world| world.rt.look(syscap::kernel::Kernel::in_flight).unwrap() == 1);
    }
    assert_eq!(world.outcomes().len(), 0);
    release.send(()).unwrap();
    world.until(|world| world.outcomes().len() == 1);
    assert_eq!(world.outcome().reason, None);
    world.close();
}

#[test]
fn many_calls_wait_at_once() {
    let (world, release) = gated();
    let agent = AsyncSession::new(session(&world));
    let mut calls: Vec<_> = (0..8).map(|_| Box::pin(agent.call("slow", args! {}))).collect();
    calls.iter_mut().for_each(|call| assert!(poll(call.as_mut()).is_pending()));
    world.until(|world| world.rt.look(syscap::kernel::Kernel::in_flight).unwrap() == 8);
    (0..8).for_each(|_| release.send(()).unwrap());
    for call in calls {
        assert_eq!(block_on(call).unwrap().reason(), None);
    }
    world.close();
}

/// A pool that does not take what it is given, and one that panics with it.
#[test]
fn work_that_nobody_does_is_an_error() {
    let (world, _release) = gated();
    let agent = AsyncSession::on(session(&world), drop);
    let before = world.records().len();
    let answer = block_on(agent.call("echo", args! { "value": 1_u64 }));
    assert!(matches!(answer, Err(Error::NotStarted)));
    assert_eq!(world.records().len(), before);
    let pool: Arc<Mutex<Vec<Work>>> = Arc::default();
    let queue = Arc::clone(&pool);
    let agent = AsyncSession::on(session(&world), move |work| queue.lock().unwrap().push(work));
    let mut call = pin!(agent.call("echo", args! { "value": 1_u64 }));
    assert!(poll(call.as_mut()).is_pending());
    pool.lock().unwrap().clear();
    assert!(matches!(poll(call.as_mut()), Poll::Ready(Err(Error::NotStarted))));
    world.close();
}

#[test]
fn work_that_panics_is_an_error() {
    let broke = block_on(in_background(|| -> Result<(), Error> { panic!("work that panics") }));
    assert!(matches!(broke, Err(Error::BrokeOff)));
    assert_eq!(block_on(in_background(|| Ok(7))).unwrap(), 7);
}

/// A tool that ends when it is told that nobody waits, and says that it was.
fn patient(told: &Arc<AtomicBool>) -> ClosureTool {
    let told = Arc::clone(told);
    HostTool::new("patient", EffectClass::LocalWrite).unwrap().limit(LONG).run(move |call| {
        let since = Instant::now();
        while !call.is_cancelled() && since.elapsed() < LONG {
            thread::sleep(Duration::from_millis(1));
        }
        told.store(call.is_cancelled(), Ordering::SeqCst);
        Ok("done")
    })
}

const LONG: Duration = Duration::from_secs(60);

fn in_flight(world: &World) -> usize {
    world.rt.look(syscap::kernel::Kernel::in_flight).unwrap()
}

/// Whoever drops the future, here or in a process that is attached, does not wait any more.
#[test]
fn a_future_that_is_dropped_cancels_its_tool() {
    let told = Arc::new(AtomicBool::new(false));
    let world = World::with(options().tool(patient(&told)).unwrap(), &["patient", "echo"]);
    let rt = world.rt.clone();
    let attached = Runtime::connect(rt.home().folder()).unwrap();
    let theirs = attached.session("a", world.agent.token()).unwrap();
    for (ended, agent) in [(1, session(&world)), (2, theirs)] {
        let agent = AsyncSession::new(agent);
        {
            let mut call = pin!(agent.call("patient", args! {}));
            assert!(poll(call.as_mut()).is_pending());
            world.until(|world| in_flight(world) == 1);
            assert!(!told.load(Ordering::SeqCst));
        }
        world.until(|world| world.outcomes().len() == ended);
        assert!(told.swap(false, Ordering::SeqCst));
        // One that has ended cancels nothing, and the session is there for the next.
        assert_eq!(
            block_on(agent.call("nothing", args! {})).unwrap().reason(),
            Some(Reason::UnknownTool)
        );
        block_on(agent.close()).unwrap();
    }
    attached.close().unwrap();
    world.close();
}

/// Also by whoever has the call's own handle.
#[test]
fn a_call_is_cancelled_from_elsewhere() {
    let told = Arc::new(AtomicBool::new(false));
    let world = World::with(options().tool(patient(&told)).unwrap(), &["patient"]);
    let cancel = Cancel::new();
    thread::scope(|scope| {
        let call = scope.spawn(|| world.agent.request("patient").cancel(&cancel).wait().unwrap());
        world.until(|world| in_flight(world) == 1);
        cancel.cancel();
        assert_eq!(call.join().unwrap().text().unwrap(), "done", "what came of it is on record");
    });
    assert!(told.load(Ordering::SeqCst));
    world.close();
}

/// A home closes by any of its handles, and what runs hears of it.
#[test]
fn a_home_that_closes_cancels_what_runs() {
    let told = Arc::new(AtomicBool::new(false));
    let world = World::with(options().tool(patient(&told)).unwrap(), &["patient", "echo"]);
    let handle = world.rt.clone();
    thread::scope(|scope| {
        let call = scope.spawn(|| world.agent.call("patient", args! {}));
        world.until(|world| in_flight(world) == 1);
        handle.close().unwrap();
        assert_eq!(call.join().unwrap().unwrap().text().unwrap(), "done");
    });
    assert!(told.load(Ordering::SeqCst));
    assert!(matches!(world.rt.view(), Err(Error::Closed)));
    let called = world.agent.call("echo", args! { "value": 1_u64 });
    assert!(matches!(called, Err(Error::Closed)));
    assert_eq!(world.outcomes().len(), 1);
}

#[test]
fn a_session_ends_as_a_future() {
    let (world, _release) = gated();
    let agent = AsyncSession::new(session(&world));
    let open = || world.rt.look(|kernel| kernel.sessions().count()).unwrap();
    assert_eq!(open(), 2);
    block_on(agent.close()).unwrap();
    assert_eq!(open(), 1);
    let records = world.records().len();
    block_on(agent.close()).unwrap();
    assert_eq!(world.records().len(), records, "once is enough");
    let refused = block_on(agent.call("echo", args! { "value": 1_u64 })).unwrap();
    assert_eq!(refused.reason(), Some(Reason::NoSession));
    world.close();
}
