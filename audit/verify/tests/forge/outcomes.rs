//! Outcomes that are not what came of their calls.

use syscap_audit::MemoryStore;
use syscap_format::{
    Body, Confidentiality, Dimension, Enforcement, Integrity, Label, OutcomeFlags, Reason, Record,
    RecordKind, Revocation, Seq, Status, TxOutcome,
};
use syscap_kernel::Lost;
use syscap_verify::Fault;

use super::check;
use super::tools::{
    as_outcome, boxed, event, home, insert, issue, late, like, outcome, remove, report,
};
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::report as report_of;
use kernel_support::driver::scenario::{ECHO, call, everything, keyed, narrow, small};
use kernel_support::driver::{Driver, Run, agent};

/// The outcome of `post`: 99 of 100 bytes used.
const POST: usize = 11;

fn base() -> Log {
    Log::of(&small(|_, _| {}))
}

#[test]
fn an_outcome_has_an_open_intent() {
    check(
        &base(),
        &[
            ("none", &|r| drop(remove(r, POST - 1)), &[(POST - 1, Fault::NoIntent)]),
            (
                "a second one",
                &|r| {
                    let again = outcome(&mut r[POST]).clone();
                    insert(r, POST + 1, as_outcome(again));
                },
                &[(POST + 1, Fault::NoIntent)],
            ),
            (
                "another's",
                &|r| outcome(&mut r[POST]).intent = Seq::new(8),
                &[(POST, Fault::NoIntent), (16, Fault::ShutdownForm)],
            ),
        ],
    );
    // Without its outcome a call is open.
    let mut log = base();
    log.forge(|r| drop(remove(r, POST)));
    let report = log.verify(log.trust());
    assert_eq!(report.open_intents, [Seq::new(10)]);
}

fn use_up(records: &mut [Record], dimension: Dimension, amount: u64) {
    let call = &mut outcome(&mut records[POST]).call;
    call.used = call.used.with(dimension, amount);
}

#[test]
fn an_outcome_charges_what_it_must() {
    let (over, under): (&[_], &[_]) = (&[(POST, Fault::Overspent)], &[(POST, Fault::Undercharged)]);
    check(
        &base(),
        &[
            ("all that was held", &|r| use_up(r, Dimension::EgressBytes, 100), &[]),
            ("one byte more", &|r| use_up(r, Dimension::EgressBytes, 101), over),
            ("a dimension not held", &|r| use_up(r, Dimension::DiskFiles, 1), over),
            ("the gauge", &|r| use_up(r, Dimension::Concurrent, 1), over),
            (
                "two calls",
                &|r| use_up(r, Dimension::Calls, 2),
                &[(POST, Fault::Overspent), (POST, Fault::Undercharged)],
            ),
            ("no call", &|r| use_up(r, Dimension::Calls, 0), under),
            ("unknown, not in full", &|r| outcome(&mut r[POST]).tx = TxOutcome::Unknown, under),
            (
                "unknown, in full",
                &|r| {
                    outcome(&mut r[POST]).tx = TxOutcome::Unknown;
                    use_up(r, Dimension::EgressBytes, 100);
                },
                &[],
            ),
            (
                "broken off, not in full",
                &|r| {
                    let outcome = outcome(&mut r[POST]);
                    outcome.status = Status::Error;
                    outcome.reason = Some(Reason::Panicked);
                    outcome.tx = TxOutcome::Unknown;
                    outcome.call.enforcement = Some(Enforcement::None);
                },
                under,
            ),
        ],
    );
}

#[test]
fn an_outcomes_flags_are_true() {
    let wrong: &[(usize, Fault)] = &[(POST, Fault::OutcomeFlags)];
    let flag = |r: &mut Vec<Record>, flags| outcome(&mut r[POST]).flags = flags;
    check(
        &base(),
        &[
            ("no overrun", &|r| use_up(r, Dimension::WallUs, 10_000_001), wrong),
            (
                "a false overrun",
                &|r| flag(r, OutcomeFlags::OVERRUN),
                &[(POST, Fault::OutcomeFlags), (POST + 1, Fault::Exhausted)],
            ),
            ("revoked", &|r| flag(r, OutcomeFlags::REVOKED), wrong),
            ("frozen", &|r| flag(r, OutcomeFlags::FROZEN), wrong),
            (
                "running",
                &|r| flag(r, OutcomeFlags::RUNNING),
                &[(POST, Fault::Undercharged), (POST, Fault::OutcomeFlags)],
            ),
            (
                "not flagged",
                &|r| {
                    let revocation = Revocation::subtree(issue(&mut r[4]).token);
                    insert(r, 13, Body::Revoke(boxed(event(&home(r), 1, &revocation))));
                },
                &[(14, Fault::OutcomeFlags)],
            ),
        ],
    );
}

#[test]
fn a_run_comes_back_once_and_after_it_was_given_up() {
    let log = Log::of(&everything());
    let place = log.places(RecordKind::Late)[0];
    let given_up = place - 1;
    assert_eq!(log.record(given_up).body.kind(), RecordKind::Outcome);
    let next = place + 1;
    // A later token names a head after it.
    let after = *log.places(RecordKind::Issue).last().unwrap();
    check(
        &log,
        &[
            (
                "twice",
                &|r| {
                    let again = Body::Late(Box::new(late(&mut r[place]).clone()));
                    r[next] = like(&r[next], again);
                },
                // What stood there was an intent.
                &[(next, Fault::LateForm), (next + 1, Fault::NoIntent), (after, Fault::NamedHead)],
            ),
            (
                "another",
                &|r| late(&mut r[place]).intent = Seq::new(1),
                &[(place, Fault::LateForm), (after, Fault::NamedHead)],
            ),
        ],
    );
}

/// While a run has not come back its slot is taken.
#[test]
fn a_slot_is_taken_until_the_run_comes_back() {
    let store = small(|driver, session| {
        driver.run = Run::Later;
        for _ in 0..3 {
            driver.call(session, &call("post", 1));
        }
        let jobs = std::mem::take(&mut driver.jobs);
        for job in &jobs {
            driver.lost(job.intent(), Lost::TimedOut);
        }
        driver.run = Run::AtOnce;
        for job in jobs {
            driver.ran(job.run());
        }
        driver.call(session, ECHO);
    });
    let log = Log::of(&store);
    let lates = log.places(RecordKind::Late);
    let last = *log.places(RecordKind::Intent).last().unwrap();
    assert_eq!(lates.len(), 3);
    check(
        &log,
        &[
            (
                "none came back",
                &|r| {
                    for place in lates.iter().rev() {
                        remove(r, *place);
                    }
                },
                &[(last - 3, Fault::OverBudget)],
            ),
            ("one came back", &|r| drop(remove(r, lates[0])), &[]),
        ],
    );
}

/// The key of a call that did not run is free; that of one that ran is not.
#[test]
fn a_key_is_free_again_only_if_nothing_ran() {
    let store = small(|driver, session| {
        driver.call(session, &keyed("post", 5, "other"));
    });
    let again = |r: &mut Vec<Record>| {
        super::tools::intent(&mut r[14]).key = syscap_format::IdempotencyKey::new("first");
    };
    check(
        &Log::of(&store),
        &[
            ("ran", &|r| again(r), &[(14, Fault::KeyReused)]),
            (
                "said not to have run",
                &|r| {
                    again(r);
                    let outcome = outcome(&mut r[POST]);
                    outcome.status = Status::Error;
                    outcome.reason = Some(Reason::NotRun);
                },
                &[(POST, Fault::OutcomeForm), (POST, Fault::Undercharged)],
            ),
        ],
    );
}

/// A run that was given up comes back and says that nothing was done: its key is free.
#[test]
fn key_of_a_run_that_came_late_follows_its_effect() {
    let keyed = r#"{"tool_id":"post","args":{"bytes":9,"fail":true},"idempotency_key":"late"}"#;
    let store = small(|driver, session| {
        driver.run = Run::Later;
        driver.call(session, keyed);
        let job = driver.jobs.pop().unwrap();
        driver.lost(job.intent(), Lost::TimedOut);
        driver.ran(job.run());
        driver.run = Run::AtOnce;
        driver.call(session, keyed);
    });
    let log = Log::of(&store);
    let (place, again) =
        (log.places(RecordKind::Late)[0], *log.places(RecordKind::Intent).last().unwrap());
    assert!(place < again);
    let tx = |tx: TxOutcome| move |r: &mut Vec<Record>| late(&mut r[place]).tx = tx;
    let faults = [(again, Fault::KeyReused)];
    check(
        &log,
        &[
            ("rolled back", &tx(TxOutcome::RolledBack), &[]),
            ("nothing was done", &tx(TxOutcome::NoOp), &[]),
            ("it was done", &tx(TxOutcome::Committed), &faults),
            ("nobody knows", &tx(TxOutcome::Unknown), &faults),
        ],
    );
}

/// A boot closes a run, and its provider reports it: once, and its key follows the effect.
#[test]
fn late_report_is_of_a_closed_run_and_settles_its_key() {
    let mut driver = narrow(MemoryStore::new());
    let (token, session) = driver.agent("ada", 1);
    driver.run = Run::Later;
    driver.call(session, ECHO);
    driver.call(session, &keyed("post", 10, "k"));
    driver.flush();
    let intents: Vec<Seq> = driver.jobs.iter().map(|job| job.intent()).collect();
    let reading = driver.reading;
    let mut driver = Driver::open(driver.crash(), reading, 0).unwrap();
    driver.boot();
    report_of(&mut driver, intents[0], TxOutcome::Unknown).unwrap();
    report_of(&mut driver, intents[1], TxOutcome::RolledBack).unwrap();
    let session = driver.session(&agent("ada"), token);
    driver.call(session, &keyed("post", 10, "k"));
    driver.call(session, ECHO);
    driver.shutdown();
    driver.flush();
    let log = Log::of(&driver.store);
    let &[read, post] = &log.places(RecordKind::Late)[..] else { panic!("two reports") };
    let [.., again, last] = log.places(RecordKind::Intent)[..] else { panic!("two more calls") };
    let label = Label::new(Integrity::Trusted, Confidentiality::Internal);
    let tx = |tx: TxOutcome| move |r: &mut Vec<Record>| report(&mut r[post]).tx = tx;
    let used = [(again, Fault::KeyReused)];
    check(
        &log,
        &[
            ("nothing was done", &tx(TxOutcome::NoOp), &[]),
            ("it was done", &tx(TxOutcome::Committed), &used),
            ("nobody knows", &tx(TxOutcome::Unknown), &used),
            (
                "a read has an effect",
                &|r| report(&mut r[read]).tx = TxOutcome::Committed,
                &[(read, Fault::LateForm)],
            ),
            (
                "twice",
                &|r| report(&mut r[read]).intent = intents[1],
                &[(post, Fault::LateForm), (again, Fault::KeyReused)],
            ),
            (
                "of a call that has its outcome",
                &|r| report(&mut r[read]).intent = Seq::new(again as u64),
                &[(read, Fault::LateForm)],
            ),
            (
                "of a label that the next session lacks",
                &|r| report(&mut r[read]).label = label,
                &[(again, Fault::Label), (last, Fault::Label)],
            ),
        ],
    );
}
