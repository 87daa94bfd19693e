//! A call that comes alone is made by the thread that reads its connection: nobody else of the
//! process waits for that.

use std::{sync::Arc, sync::mpsc::channel, time::Duration};

use host_support::end;
use syscap::{Runtime, Session, format::Body, prelude::*};

use crate::attach::world::*;

/// A call that waits, and what it came to.
fn waits(caller: &Arc<Session>) -> std::sync::mpsc::Receiver<Result<Option<Reason>, Error>> {
    let (told, answer) = channel();
    let caller = Arc::clone(caller);
    std::thread::spawn(move || {
        let answer = call(&caller, "t.wait", args! {});
        told.send(answer.map(|answer| answer.reason())).unwrap();
    });
    answer
}

const LONG: Duration = Duration::from_secs(20);

/// The thread that made the call reads the answer of the tool, and whatever else comes.
#[test]
fn caller_reads_on_while_its_own_tool_runs() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    let (gate, open) = (Gate::new(WhenCancelled::GoesOn), Gate::opened());
    attached.provide(vec![manifest("t.wait")], gate.provider()).unwrap();
    attached.provide(vec![manifest("t.a")], open.provider()).unwrap();
    let caller = Arc::new(caller(&attached, &["t.wait", "t.a", "echo"]));
    // One alone, and more of them side by side.
    for others in 1..4 {
        let answers: Vec<_> = (0..others).map(|_| waits(&caller)).collect();
        let came = (1..=others).sum::<usize>();
        until("they wait", || gate.came().len() == came);
        for _ in 0..20 {
            assert_eq!(echo(&caller).unwrap().reason(), None);
            assert_eq!(call(&caller, "t.a", args! {}).unwrap().reason(), None);
        }
        gate.open();
        for answer in answers {
            assert_eq!(answer.recv_timeout(LONG).unwrap().unwrap(), None);
        }
        gate.shut();
    }
    attached.close().unwrap();
    end(&holder, &home);
}

/// Another thread reads on where the call's tool runs at the holder.
#[test]
fn a_call_that_runs_at_the_holder_keeps_no_other_waiting() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    let gate = Gate::new(WhenCancelled::Ends);
    holder.provide(vec![manifest("t.wait")], gate.provider()).unwrap();
    let caller = Arc::new(caller(&attached, &["t.wait", "echo"]));
    for round in 1..=5 {
        let answer = waits(&caller);
        until("it waits", || gate.came().len() == round);
        for _ in 0..20 {
            assert_eq!(echo(&caller).unwrap().reason(), None);
        }
        gate.open();
        assert_eq!(answer.recv_timeout(LONG).unwrap().unwrap(), None);
        gate.shut();
    }
    attached.close().unwrap();
    end(&holder, &home);
}

/// The thread that reads for its call finds that the process has gone, and sees both to their end.
#[test]
fn client_that_leaves_during_its_own_tool_leaves_nothing_open() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    for round in 1..=3 {
        let attached = Runtime::connect(&home).unwrap();
        let gate = Gate::new(WhenCancelled::GoesOn);
        attached.provide(vec![manifest("t.wait")], gate.provider()).unwrap();
        let caller = Arc::new(caller(&attached, &["t.wait"]));
        let answer = waits(&caller);
        until("it waits", || gate.came().len() == 1);
        attached.close().unwrap();
        assert!(answer.recv_timeout(LONG).unwrap().is_err());
        gate.open();
        let gone = |body: &Body| {
            matches!(body, Body::Outcome(outcome)
                if outcome.reason == Some(Reason::ProviderGone))
        };
        until("that is on record", || {
            records(&home).iter().filter(|record| gone(&record.body)).count() == round
        });
        until("it has left", || {
            let view = holder.view().unwrap();
            view.sessions.is_empty() && !view.tool(&tool("t.wait")).unwrap().provided
        });
    }
    end(&holder, &home);
}
