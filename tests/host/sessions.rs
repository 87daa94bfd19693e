//! Calls as futures: begun when polled, ended whether or not anybody waits.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{Arc, Mutex, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use syscap::{
    format::manifest::EffectClass,
    host::{AsyncSession, HostTool, Work, in_background},
    prelude::*,
};

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
    let again = || block_on(agent.call_once("k", "echo", args! { "value": "hi" })).unwrap();
    assert_eq!(again().delivered(), again().delivered());
    assert_eq!(world.outcomes().len(), 2, "the key's second call is a repeat");
    assert_eq!((agent.agent().as_str(), agent.token()), ("a", world.agent.token()));
    world.close();
}

#[test]
fn a_call_with_a_models_text_is_a_future() {
    let (world, _release) = gated();
    let agent = AsyncSession::new(session(&world));
    let call = |text| block_on(agent.call_json("echo", text, Escapes::Data)).unwrap();
    assert_eq!(call(r#"{"value": {"$ref": 1}}"#).reason(), None);
    assert_eq!(call(r#"{"value": 1}, "idempotency_key": "k""#).reason(), Some(Reason::Malformed));
    let once = |text| block_on(agent.call_json_once("k", "echo", text, Escapes::Data)).unwrap();
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
        world.until(|world| world.rt.look(syscap::kernel::kernel::Kernel::in_flight).unwrap() == 1);
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
    world.until(|world| world.rt.look(syscap::kernel::kernel::Kernel::in_flight).unwrap() == 8);
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
