//! Calls that are cancelled: by the revoker, or by the session that they are of.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use host_support::new_home;
use syscap::format::{Amounts, Body, CancelBody, EffectClass, Outcome, OutcomeFlags, Reason, Seq};
use syscap::host::HostTool;
use syscap::kernel::{Ack, Event, Lost, Measured};
use syscap::prelude::*;
use syscap::verify::Soundness;

use super::{SPEND, logged, records, refused, seated, sim::Sim, sound, verdict};
use crate::revocation::sim::Ending;

/// The intent of the last call that was submitted.
fn intent(sim: &Sim) -> Seq {
    sim.kernel.head().seq
}

fn last_outcome(sim: &mut Sim) -> Outcome {
    let outcomes = logged(sim).into_iter().rev().find_map(|record| match record.body {
        Body::Outcome(outcome) => Some(*outcome),
        _ => None,
    });
    outcomes.unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Revoker,
    Session,
}

impl By {
    fn cancels(self, sim: &mut Sim, session: Seq, intent: Seq) -> syscap::kernel::Ticket {
        match self {
            Self::Revoker => sim.cancel(intent),
            Self::Session => sim.cancel_by(session, intent),
        }
    }
}

/// Before its permit it does not run, nor after it where it has not begun; what runs is flagged.
#[test]
fn cancelled_call_does_not_begin_or_is_flagged() {
    for by in [By::Revoker, By::Session] {
        for when in ["before", "waits", "runs", "late"] {
            let (mut sim, session) = seated();
            let (token, _) = sim.tokens[0];
            // So that nothing has to become durable in between.
            sim.commit();
            let ticket = sim.submit_json(session, SPEND);
            let intent = intent(&sim);
            if when != "before" {
                sim.commit();
            }
            let asked = by.cancels(&mut sim, session, intent);
            sim.commit();
            sim.commit();
            assert!(
                matches!(sim.acked(asked), Some(Ok(Ack::Cancelled(_, told))) if *told == intent)
            );
            let ran = match when {
                "before" => 0,
                "waits" => {
                    let (_, job) = sim.jobs.remove(0);
                    assert!(!sim.kernel.may_begin(&job));
                    sim.event(Event::GivenBack(job));
                    0
                }
                "runs" => {
                    sim.end_job(0, Ending::Runs);
                    1
                }
                _ => {
                    let (_, job) = sim.jobs.remove(0);
                    let lost = Lost::Abandoned;
                    sim.event(Event::Lost(job.intent(), lost, Measured::default()));
                    2
                }
            };
            sim.commit();
            assert!(sim.jobs.is_empty(), "{when}");
            let outcome = last_outcome(&mut sim);
            assert_eq!(outcome.flags, OutcomeFlags::CANCELLED, "{by:?} {when}");
            let spent = sim.world.lock().unwrap().spent.len();
            assert_eq!(spent, if ran == 1 { 3 } else { 0 });
            let reasons = [Some(Reason::NotRun), None, Some(Reason::Abandoned)];
            assert_eq!(sim.reason_of(ticket), reasons[ran]);
            let view = sim.kernel.token(&token).unwrap();
            assert_eq!(view.held, Amounts::ZERO);
            assert_eq!(view.used == Amounts::ZERO, ran == 0);
            sound(&mut sim);
        }
    }
}

/// Revoked and cancelled, it says both.
#[test]
fn an_outcome_says_all_that_stopped_it() {
    let (mut sim, session) = seated();
    let (token, _) = sim.tokens[0];
    sim.submit_json(session, SPEND);
    let intent = intent(&sim);
    sim.cancel_by(session, intent);
    sim.revoke(token);
    sim.commit();
    sim.commit();
    let flags = OutcomeFlags::REVOKED.and(OutcomeFlags::CANCELLED);
    assert_eq!(last_outcome(&mut sim).flags, flags);
    sound(&mut sim);
}

/// What is not out, and not one's own, is not cancelled; the same is said of all.
#[test]
fn call_not_in_flight_is_not_cancelled() {
    let (mut sim, session) = seated();
    let (token, _) = sim.tokens[0];
    let other = sim.seat(token);
    sim.submit_json(session, SPEND);
    let done = intent(&sim);
    sim.commit();
    sim.end_job(0, Ending::Runs);
    sim.commit();
    sim.submit_json(session, SPEND);
    let open = intent(&sim);
    sim.commit();
    let closed = sim.seat(token);
    sim.submit_json(closed, SPEND);
    let orphan = intent(&sim);
    sim.commit();
    let ticket = sim.ticket();
    sim.event(Event::CloseSession(ticket, closed));
    sim.commit();
    let said = (Reason::NotOpen, "intent".to_owned());
    for by in [None, Some(session)] {
        for intent in [done, Seq::GENESIS, session, Seq::new(9_999)] {
            let ticket = match by {
                None => sim.cancel(intent),
                Some(session) => sim.cancel_by(session, intent),
            };
            assert_eq!(refused(&mut sim, ticket), said, "{by:?} {intent}");
        }
    }
    // Another session's, one that is closed or never was.
    for (by, intent) in [(other, open), (closed, orphan), (Seq::new(9_999), open)] {
        let ticket = sim.cancel_by(by, intent);
        assert_eq!(refused(&mut sim, ticket), said);
    }
    // Once is enough.
    sim.cancel_by(session, open);
    let ticket = sim.cancel(open);
    assert_eq!(refused(&mut sim, ticket), said);
    // The revoker cancels any.
    let ticket = sim.cancel(orphan);
    sim.commit();
    assert!(matches!(sim.acked(ticket), Some(Ok(Ack::Cancelled(..)))));
    while !sim.jobs.is_empty() {
        sim.end_job(0, Ending::Runs);
    }
    sim.commit();
    sound(&mut sim);
}

/// What was cancelled and never came back is found open like any other.
#[test]
fn cancelled_call_is_recovered_after_a_crash() {
    let (mut sim, session) = seated();
    sim.submit_json(session, SPEND);
    let intent = intent(&sim);
    sim.commit();
    sim.cancel_by(session, intent);
    sim.commit();
    sim.crash().unwrap();
    sim.boot();
    let ticket = sim.cancel(intent);
    assert_eq!(refused(&mut sim, ticket).0, Reason::NotOpen);
    sound(&mut sim);
}

struct World {
    _dir: tempfile::TempDir,
    home: std::path::PathBuf,
    rt: Runtime,
    token: TokenId,
    /// The intents of runs that have begun.
    begun: Receiver<Seq>,
}

/// A tool that runs until it is told, or 20 seconds.
fn world() -> World {
    let (dir, home) = new_home();
    let (begin, begun): (Sender<Seq>, _) = channel();
    let begin = Mutex::new(begin);
    let tool = HostTool::new("t.wait", EffectClass::LocalWrite).unwrap();
    let tool = tool.limit(Duration::from_secs(60)).run(move |call| {
        begin.lock().unwrap().send(call.intent()).unwrap();
        let since = Instant::now();
        while !call.is_cancelled() && since.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(call.is_cancelled())
    });
    let rt = Options::new().tool(tool).unwrap().create(&home).unwrap();
    let token = rt.issue(Grant::to("a").tools(["t.wait"])).unwrap();
    World { _dir: dir, home, rt, token, begun }
}

/// One that runs is told, alone; and its outcome says that it was cancelled.
#[test]
fn a_run_that_is_cancelled_is_told() {
    let world = world();
    let agent = Arc::new(world.rt.session("a", world.token).unwrap());
    let call = |agent: &Arc<Session>| {
        let agent = Arc::clone(agent);
        thread::spawn(move || agent.call("t.wait", args! {}).unwrap())
    };
    let (first, second) = (call(&agent), call(&agent));
    let [a, b] = [(); 2].map(|()| world.begun.recv().unwrap());
    world.rt.control(&CancelBody { intent: a, cause: None }).unwrap();
    thread::sleep(Duration::from_millis(50));
    assert_eq!(
        [&first, &second].map(thread::JoinHandle::is_finished).iter().filter(|f| **f).count(),
        1
    );
    agent.cancel(b).unwrap();
    let again = agent.cancel(b).unwrap_err();
    assert!(matches!(again, Error::Refused(refused) if refused.reason() == Reason::NotOpen));
    for call in [first, second] {
        let answer = call.join().unwrap();
        assert_eq!(answer.value().unwrap().as_bool(), Some(true));
    }
    // From another process the same, on the operator's lane.
    let attached = Runtime::connect(&world.home).unwrap();
    assert!(!attached.is_holder());
    let agent = Arc::new(attached.session("a", world.token).unwrap());
    let third = call(&agent);
    agent.cancel(world.begun.recv().unwrap()).unwrap();
    assert_eq!(third.join().unwrap().value().unwrap().as_bool(), Some(true));
    attached.close().unwrap();
    world.rt.close().unwrap();
    let flags: Vec<OutcomeFlags> = records(&world.home)
        .into_iter()
        .filter_map(|record| match record.body {
            Body::Outcome(outcome) => Some(outcome.flags),
            _ => None,
        })
        .collect();
    assert_eq!(flags, [OutcomeFlags::CANCELLED; 3]);
    assert_eq!(verdict(&world.home), Soundness::Sound);
}
