//! Runs that were closed without their providers' word, and are reported afterwards.

use kernel_support::driver::kin::World;
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{ECHO, call, keyed, narrow, report};
use kernel_support::driver::{Driver, Run, agent};
use syscap_audit::MemoryStore;
use syscap_format::{
    Body, Confidentiality, Dimension, Integrity, Label, LateReport, Reason, RecordKind, Recovered,
    Resolution, ResultHash, Role, Seq, Status, TokenId, TxOutcome,
};
use syscap_kernel::{Event, Lost};

/// The next kernel.
fn after_a_kill(mut driver: World) -> World {
    driver.flush();
    let (reading, next) = (driver.reading, driver.next);
    let mut again = Driver::open(driver.crash(), reading, 0).unwrap();
    again.next = next;
    again.boot();
    again
}

/// Calls that were running when the kernel died, and the token that paid.
fn lost(calls: &[String]) -> (World, TokenId, Vec<Seq>) {
    let mut driver = narrow(MemoryStore::new());
    let (token, session) = driver.agent("ada", 1);
    driver.run = Run::Later;
    for call in calls {
        driver.call(session, call);
    }
    let intents = driver.jobs.iter().map(|job| job.intent()).collect();
    (after_a_kill(driver), token, intents)
}

fn refused(driver: &mut World, intent: Seq) -> Reason {
    report(driver, intent, TxOutcome::Committed).unwrap_err().reason()
}

/// The verifier agrees, and the log makes the state again.
fn sound(mut driver: World) -> Log {
    driver.shutdown();
    driver.flush();
    let (live, reading) = (driver.kernel.state_image(), driver.reading);
    let store = driver.crash();
    let log = Log::of(&store);
    assert_eq!(log.faults(), []);
    assert_eq!(Driver::open(store, reading, 0).unwrap().kernel.state_image(), live);
    log
}

#[test]
fn closed_run_is_reported_once_and_stays_charged() {
    let (mut driver, token, intents) = lost(&[call("post", 10), ECHO.to_owned()]);
    let used = driver.kernel.token(&token).unwrap().used;
    assert_eq!(used.get(Dimension::EgressBytes), 10);
    assert_eq!(driver.kernel.unresolved(), intents[..1]);
    for intent in &intents {
        report(&mut driver, *intent, TxOutcome::Committed).unwrap();
        assert_eq!(refused(&mut driver, *intent), Reason::BadControl);
    }
    assert_eq!(driver.kernel.unresolved(), []);
    assert_eq!(driver.kernel.token(&token).unwrap().used, used);
    let log = sound(driver);
    let reports = log.places(RecordKind::Late).into_iter();
    let reports = reports.filter_map(|place| match log.record(place).body {
        Body::LateReport(report) => Some((report.intent, report.tx)),
        _ => None,
    });
    // What only reads makes no effect, whatever is reported.
    let expected = [(intents[0], TxOutcome::Committed), (intents[1], TxOutcome::NoOp)];
    assert_eq!(reports.collect::<Vec<_>>(), expected);
}

#[test]
fn answered_running_and_missing_calls_take_no_report() {
    let (mut driver, token, _) = lost(&[]);
    let session = driver.session(&agent("ada"), token);
    driver.call(session, &call("post", 10));
    let answered = driver.replies.last().unwrap().1.receipt().intent.unwrap().0;
    driver.run = Run::Later;
    driver.call(session, &call("post", 10));
    let running = driver.jobs[0].intent();
    for intent in [answered, running, Seq::GENESIS, Seq::new(1_000_000)] {
        assert_eq!(refused(&mut driver, intent), Reason::BadControl);
    }
    // It times out: whoever made it may report it, besides that its own run comes back.
    driver.lost(running, Lost::TimedOut);
    report(&mut driver, running, TxOutcome::Committed).unwrap();
    let job = driver.jobs.remove(0);
    driver.ran(job.run());
    sound(driver);
}

/// The key of a reported run is free where nothing was done, and used up where it was; the word of an
/// operator stands.
#[test]
fn key_follows_the_report_unless_an_operator_has_settled_it() {
    for (tx, operator, expected) in [
        (TxOutcome::NoOp, None, None),
        (TxOutcome::RolledBack, None, None),
        (TxOutcome::Committed, None, Some(Reason::OutcomeLost)),
        (TxOutcome::Unknown, None, Some(Reason::OutcomeUnknown)),
        (TxOutcome::NoOp, Some(Recovered::Done), Some(Reason::OutcomeLost)),
        (TxOutcome::Committed, Some(Recovered::NotDone), None),
    ] {
        let (mut driver, token, intents) = lost(&[keyed("post", 10, "k")]);
        if let Some(verdict) = operator {
            let resolution = Resolution { intent: intents[0], verdict };
            driver.control(Role::Operator, &resolution).unwrap();
        }
        report(&mut driver, intents[0], tx).unwrap();
        let session = driver.session(&agent("ada"), token);
        driver.call(session, &keyed("post", 10, "k"));
        assert_eq!(driver.replies.last().unwrap().1.reason(), expected, "{tx} {operator:?}");
        sound(driver);
    }
}

#[test]
fn label_of_a_report_is_that_of_the_sessions_that_follow() {
    let (mut driver, token, intents) = lost(&[ECHO.to_owned()]);
    let label = Label::new(Integrity::Untrusted, Confidentiality::Internal);
    let (status, tx) = (Status::Ok, TxOutcome::NoOp);
    let result_hash = ResultHash::from_bytes([8; 32]);
    let ticket = driver.ticket();
    let report = LateReport { intent: intents[0], status, result_hash, tx, label };
    driver.event(Event::Reported(ticket, report));
    driver.acked(ticket).unwrap();
    let session = driver.session(&agent("ada"), token);
    driver.call(session, ECHO);
    let log = sound(driver);
    let last = *log.places(RecordKind::Intent).last().unwrap();
    let Body::Intent(intent) = log.record(last).body else { unreachable!() };
    assert_eq!(intent.label, label);
}

/// As many are remembered as may be in flight at a time, over all boots.
#[test]
fn newest_closed_runs_are_remembered() {
    let (mut driver, token, first) = lost(&[ECHO.to_owned()]);
    let most = 4;
    let session = driver.session(&agent("ada"), token);
    driver.run = Run::Later;
    for _ in 0..most {
        driver.call(session, ECHO);
    }
    let last: Vec<Seq> = driver.jobs.iter().map(|job| job.intent()).collect();
    let mut driver = after_a_kill(driver);
    assert_eq!(driver.kernel.unreported().count(), most);
    assert_eq!(refused(&mut driver, first[0]), Reason::BadControl);
    report(&mut driver, last[0], TxOutcome::NoOp).unwrap();
    sound(driver);
}
