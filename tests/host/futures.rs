//! Futures that run calls: answered, panicking, aborted, given up.

use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use syscap::format::{EffectClass, Enforcement, ToolResult, TxOutcome};
use syscap::host::{ClosureTool, Failure, HostTool, Task, ToolCall};
use syscap::prelude::*;
use tokio::runtime::{Builder, Runtime as Tokio};

use super::world::{World, options};

fn tokio() -> Tokio {
    Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
}

fn spawner(tokio: &Tokio) -> impl Fn(Task) + Send + Sync + 'static {
    let handle = tokio.handle().clone();
    move |task| drop(handle.spawn(task))
}

fn write(name: &str) -> HostTool {
    HostTool::new(name, EffectClass::ExternalWrite).unwrap().hold(Dimension::EgressBytes, 10)
}

/// A world with one tool, and what calling it brings.
fn call(tool: ClosureTool) -> (World, ToolResult) {
    let world = World::with(options().tool(tool).unwrap(), &["far"]);
    let result = world.agent.call("far", args! {}).unwrap();
    (world, result)
}

fn egress(result: &ToolResult) -> u64 {
    result.receipt().used.get(Dimension::EgressBytes)
}

/// Says when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_future_answers() {
    let tokio = tokio();
    let (world, result) = call(write("far").run_async(spawner(&tokio), |call| async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        call.meter(Dimension::EgressBytes, 3)?;
        Ok("here")
    }));
    assert_eq!(result.text().unwrap(), "here");
    assert_eq!(result.receipt().enforcement, Enforcement::Delegated);
    assert_eq!((result.tx_outcome(), egress(&result)), (TxOutcome::Committed, 3));
    world.close();
}

#[test]
fn a_future_fails() {
    let tokio = tokio();
    let failing = |_| async { Err::<(), _>(Failure::new("no").without_effect()) };
    let (world, result) = call(write("far").run_async(spawner(&tokio), failing));
    assert_eq!(result.reason(), Some(Reason::ToolFailed));
    assert_eq!((result.tx_outcome(), egress(&result)), (TxOutcome::NoOp, 0));
    world.close();
}

/// As a closure's: whether the future panics, or what makes it does, or the executor.
#[test]
fn a_panic_is_the_runs() {
    let tokio = tokio();
    let inside = |_| async { if true { panic!("inside") } else { Ok(()) } };
    let making = |_: ToolCall| {
        assert!(std::hint::black_box(false), "while it is made");
        async { Ok(()) }
    };
    let tools = [
        write("far").run_async(spawner(&tokio), inside),
        write("far").run_async(spawner(&tokio), making),
        write("far").run_async(|_| panic!("an executor that panics"), |_| async { Ok(()) }),
    ];
    for tool in tools {
        let (world, result) = call(tool);
        assert_eq!(result.reason(), Some(Reason::Panicked));
        assert_eq!((result.tx_outcome(), egress(&result)), (TxOutcome::Unknown, 10));
        world.close();
    }
}

/// Aborted, never polled, or gone with its executor: what it did is not known.
#[test]
fn a_permit_that_is_dropped_is_charged_in_full() {
    let tokio = tokio();
    let handle = tokio.handle().clone();
    let aborted = write("far").run_async(
        move |task| handle.spawn(task).abort(),
        |call| async move {
            call.meter(Dimension::EgressBytes, 1)?;
            pending::<()>().await;
            Ok(())
        },
    );
    let unpolled = write("far").run_async(drop, |_| async { Ok(()) });
    let gone = Arc::new(Mutex::new(Some(self::tokio())));
    let shut = write("far").run_async(
        move |task| {
            let gone = gone.lock().unwrap().take().unwrap();
            drop(gone.spawn(task));
            gone.shutdown_background();
        },
        |_| async {
            pending::<()>().await;
            Ok(())
        },
    );
    for tool in [aborted, unpolled, shut] {
        let (world, result) = call(tool);
        assert_eq!(result.reason(), Some(Reason::ProviderGone));
        assert_eq!((result.tx_outcome(), egress(&result)), (TxOutcome::Unknown, 10));
        assert_eq!(result.receipt().enforcement, Enforcement::Delegated);
        world.close();
    }
}

#[test]
fn a_read_that_is_dropped_changed_nothing() {
    let read = HostTool::new("far", EffectClass::ExternalRead).unwrap();
    let read = read.hold(Dimension::IngressBytes, 10);
    let (world, result) = call(read.run_async(drop, |_| async { Ok(()) }));
    assert_eq!(result.reason(), Some(Reason::ProviderGone));
    assert_eq!(result.tx_outcome(), TxOutcome::NoOp);
    assert_eq!(result.receipt().used.get(Dimension::IngressBytes), 10);
    world.close();
}

/// One that listens ends by itself, and what it had is dropped with it.
#[test]
fn a_future_hears_that_it_was_given_up() {
    let (tokio, heard) = (tokio(), Arc::new(AtomicBool::new(false)));
    let note = Arc::clone(&heard);
    let tool =
        write("far").limit(Duration::from_millis(20)).run_async(spawner(&tokio), move |call| {
            let held = Dropped(Arc::clone(&note));
            async move {
                call.cancelled().await;
                assert!(call.is_cancelled());
                drop(held);
                Ok(())
            }
        });
    let (world, result) = call(tool);
    assert_eq!(
        (result.reason(), result.tx_outcome()),
        (Some(Reason::TimedOut), TxOutcome::Unknown)
    );
    world.until(World::is_back);
    assert!(heard.load(Ordering::SeqCst));
    world.close_after(1);
}

/// One that does not listen is dropped where it stands, and holds the home no longer.
#[test]
fn a_future_that_does_not_listen_is_dropped() {
    let (tokio, dropped) = (tokio(), Arc::new(AtomicBool::new(false)));
    let note = Arc::clone(&dropped);
    let tool =
        write("far").limit(Duration::from_millis(20)).run_async(spawner(&tokio), move |_| {
            let held = Dropped(Arc::clone(&note));
            async move {
                pending::<()>().await;
                drop(held);
                Ok(())
            }
        });
    let (world, result) = call(tool);
    assert_eq!(result.reason(), Some(Reason::TimedOut));
    world.until(World::is_back);
    assert!(dropped.load(Ordering::SeqCst), "before it was said to be back");
    world.close_after(1);
}

/// What goes on elsewhere after the run has ended can use nothing in its name.
#[test]
fn a_straggler_meters_nothing() {
    let (tokio, kept) = (tokio(), Arc::new(Mutex::new(None::<Arc<ToolCall>>)));
    let keep = Arc::clone(&kept);
    let tool = write("far").run_async(spawner(&tokio), move |call| {
        *keep.lock().unwrap() = Some(Arc::new(call));
        async { Ok(()) }
    });
    let (world, result) = call(tool);
    assert_eq!((result.reason(), egress(&result)), (None, 0));
    let straggler = kept.lock().unwrap().take().unwrap();
    straggler.meter(Dimension::EgressBytes, 1).unwrap_err();
    // Nobody gave it up: its future waits.
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(pin!(straggler.cancelled()).poll(&mut context), Poll::Pending);
    world.close();
}

use std::future::Future as _;
