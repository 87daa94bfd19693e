//! Boots, recoveries, shutdowns, time.

use syscap_audit::MemoryStore;
use syscap_format::{
    Amounts, Body, ClockFlags, Dimension, PreviousRun, Record, RecordKind, Recovered, Resolution,
    Role, Seq, UnixMillis,
};
use syscap_kernel::Event;
use syscap_verify::Fault;

use super::check;
use super::tools::{
    boot, date, gap_from, insert, like, recovery, remove, session, shift, shutdown,
};
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{ECHO, call, keyed, narrow, small};
use kernel_support::driver::{Driver, HOUR_MS, Run, START_MS};

fn base() -> Log {
    Log::of(&small(|_, _| {}))
}

/// A log with a crash: an `echo`, a `post` with a key and a `disk.write` were running.
///
/// | place | record |
/// |---|---|
/// | 6, 7, 8 | the three intents |
/// | 9 | boot |
/// | 10, 11, 12 | their recoveries |
/// | 13 | the operator's word about the second |
/// | 14, 15 | session, intent of `echo` |
fn crashed() -> Log {
    let mut driver = narrow(MemoryStore::new());
    let (token, session) = driver.agent("ada", 1);
    driver.run = Run::Later;
    driver.call(session, ECHO);
    driver.call(session, &keyed("post", 10, "k"));
    driver.call(session, &call("disk.write", 20));
    driver.flush();
    let mut reading = driver.reading;
    reading.boottime_ms = 3;
    let mut driver = Driver::open(driver.crash(), reading, 0).unwrap();
    driver.boot();
    let resolution = Resolution { intent: Seq::new(7), verdict: Recovered::Done };
    driver.control(Role::Operator, &resolution).unwrap();
    let session = driver.session(&kernel_support::driver::agent("ada"), token);
    driver.call(session, ECHO);
    driver.shutdown();
    driver.flush();
    Log::of(&driver.store)
}

#[test]
fn every_open_intent_is_recovered_first() {
    let log = crashed();
    assert_eq!(log.places(RecordKind::Recovery), [10, 11, 12, 13]);
    let wrong: &[(usize, Fault)] = &[(11, Fault::Recovery)];
    check(
        &log,
        &[
            (
                "one is not",
                &|r| drop(remove(r, 12)),
                // The intent stays open, so the shutdown's count is wrong too.
                &[(12, Fault::RecoveryMissing), (17, Fault::ShutdownForm)],
            ),
            (
                "one is, but later",
                &|r| shift(r, 12, 15),
                &[(12, Fault::RecoveryMissing), (15, Fault::Recovery)],
            ),
            ("twice", &|r| insert_copy(r, 11), &[(12, Fault::Recovery)]),
            (
                "a read, done",
                &|r| recovery(&mut r[10]).verdict = Recovered::Done,
                &[(10, Fault::Recovery)],
            ),
            ("charged less", &|r| recovery(&mut r[11]).used = Amounts::ZERO, wrong),
            (
                "charged more",
                &|r| {
                    let recovery = recovery(&mut r[11]);
                    recovery.used = recovery.used.with(Dimension::Concurrent, 1);
                },
                wrong,
            ),
            (
                "of no intent",
                &|r| recovery(&mut r[11]).intent = Seq::new(2),
                &[
                    (11, Fault::Recovery),
                    // So the second is still open when the operator speaks.
                    (13, Fault::RecoveryMissing),
                    (13, Fault::BadControl),
                    (18, Fault::ShutdownForm),
                ],
            ),
        ],
    );
}

/// What a probe can have said.
#[test]
fn recovery_that_overcharges_is_found() {
    check(
        &crashed(),
        &[
            (
                "not done, for no call",
                &|r| {
                    let recovery = recovery(&mut r[11]);
                    (recovery.verdict, recovery.used) = (Recovered::NotDone, Amounts::ZERO);
                },
                // And what is known is not for an operator to say.
                &[(11, Fault::Recovery), (13, Fault::BadControl)],
            ),
            (
                "not done, for more than was set aside",
                &|r| {
                    let recovery = recovery(&mut r[11]);
                    let used = recovery.used.with(Dimension::EgressBytes, 1 << 40);
                    (recovery.verdict, recovery.used) = (Recovered::NotDone, used);
                },
                &[(11, Fault::Recovery), (13, Fault::BadControl)],
            ),
            (
                "done, for less than was set aside",
                &|r| {
                    let recovery = recovery(&mut r[11]);
                    let calls = Amounts::ZERO.with(Dimension::Calls, 1);
                    (recovery.verdict, recovery.used) = (Recovered::Done, calls);
                },
                &[(11, Fault::Recovery), (13, Fault::BadControl)],
            ),
            (
                "not done, and yet resolved",
                &|r| recovery(&mut r[11]).verdict = Recovered::NotDone,
                &[(13, Fault::BadControl)],
            ),
        ],
    );
}

fn insert_copy(records: &mut Vec<Record>, place: usize) {
    let copy = Body::Recovery(Box::new(recovery(&mut records[place]).clone()));
    insert(records, place + 1, copy);
}

/// A boot cut off by another crash is no fault: the next one recovers the rest.
#[test]
fn recoveries_go_on_at_the_next_boot() {
    let log = crashed();
    check(
        &log,
        &[(
            "two boots",
            &|r| {
                let mut again = boot(&mut r[9]).clone();
                (again.open, again.before) = (1, PreviousRun::Unclean);
                insert(r, 12, Body::Boot(Box::new(again)));
                for record in &mut r[12..] {
                    record.boot = 3;
                }
            },
            &[],
        )],
    );
}

#[test]
fn time_does_not_go_back_and_begins_at_the_clock() {
    let later = |ms| UnixMillis::new(START_MS + ms);
    let clock: &[(usize, Fault)] = &[(9, Fault::ClockFlags)];
    check(
        &crashed(),
        &[
            ("back", &|r| r[5].time = UnixMillis::new(START_MS - 1), &[(5, Fault::TimeBack)]),
            ("a moment ahead", &|r| ahead(r), &[]),
        ],
    );
    check(
        &crashed(),
        &[
            ("the boot does not follow the clock", &|r| boot(&mut r[9]).wall = later(1), clock),
            (
                "the clock was far back",
                &|r| boot(&mut r[9]).wall = UnixMillis::new(START_MS - 300_001),
                clock,
            ),
            (
                "the clock was back within the limit",
                &|r| boot(&mut r[9]).wall = UnixMillis::new(START_MS - 300_000),
                &[],
            ),
            ("a skew that is none", &|r| r[9].clock = ClockFlags::SKEWED, clock),
            (
                "a gap that is none",
                &|r| gap_from(r, 9),
                &[(9, Fault::ClockFlags), (15, Fault::ClockUnconfirmed)],
            ),
            (
                "a gap that no boot began",
                &|r| r[12].clock = ClockFlags::GAP,
                &[(12, Fault::ClockFlags)],
            ),
            (
                "a gap that is not flagged",
                &|r| {
                    let gap = later(90 * 24 * HOUR_MS + 1);
                    boot(&mut r[9]).wall = gap;
                    r[9..].iter_mut().for_each(|record| date(record, gap));
                },
                &[(9, Fault::ClockFlags), (15, Fault::Expired)],
            ),
        ],
    );
}

fn ahead(records: &mut [Record]) {
    records[5..].iter_mut().for_each(|record| date(record, record.time.plus(1)));
    let time = records[9].time;
    boot(&mut records[9]).wall = time;
}

#[test]
fn a_session_is_opened_and_closed_as_it_must_be() {
    let log = base();
    let close = log.places(RecordKind::Session)[2];
    // A snapshot that is there, but not ada's.
    let bobs = session(&mut log.record(7)).snapshot;
    let form = |place| (place, Fault::SessionForm);
    check(
        &log,
        &[
            (
                "closed as another agent's",
                &|r| session(&mut r[close]).agent = kernel_support::driver::agent("bob"),
                &[form(close)],
            ),
            (
                "closed with another snapshot",
                &|r| session(&mut r[close]).snapshot = bobs,
                &[form(close)],
            ),
            (
                "closed without a name",
                &|r| session(&mut r[close]).session = None,
                &[form(close), (close + 2, Fault::ShutdownForm)],
            ),
            (
                "closed twice",
                &|r| {
                    let again = session(&mut r[close]).clone();
                    insert(r, close + 1, Body::Session(Box::new(again)));
                },
                &[(close + 1, Fault::UnknownSession)],
            ),
            (
                "opened with another's token",
                &|r| {
                    let token = session(&mut r[5]).token;
                    session(&mut r[7]).token = token;
                    session(&mut r[close + 1]).token = token;
                },
                &[form(7)],
            ),
            (
                "opened with no token",
                &|r| {
                    let token = syscap_format::TokenId::from_bytes([1; 32]);
                    session(&mut r[7]).token = token;
                },
                &[(7, Fault::UnknownToken), (close + 1, Fault::UnknownSession)],
            ),
            (
                "opened with another's snapshot",
                &|r| {
                    session(&mut r[7]).snapshot = session(&mut r[5]).snapshot;
                    session(&mut r[close + 1]).snapshot = session(&mut r[5]).snapshot;
                },
                &[(7, Fault::Snapshot)],
            ),
        ],
    );
}

#[test]
fn a_second_session_has_the_same_head() {
    let bobs = session(&mut base().record(7)).snapshot;
    let log = Log::of(&small(|driver, session| {
        let token = driver.kernel.tokens().next().unwrap().id;
        let ticket = driver.ticket();
        driver.event(Event::CloseSession(ticket, session));
        driver.session(&kernel_support::driver::agent("ada"), token);
    }));
    let again = log.places(RecordKind::Session)[3];
    check(
        &log,
        &[(
            "another head",
            &|r| {
                session(&mut r[again]).snapshot = bobs;
                let close = r.len() - 2;
                session(&mut r[close]).snapshot = bobs;
            },
            &[(again, Fault::Snapshot)],
        )],
    );
}

#[test]
fn a_shutdown_says_how_the_log_stood() {
    let log = base();
    let place = log.records.len() - 1;
    let form: &[(usize, Fault)] = &[(place, Fault::ShutdownForm)];
    check(
        &log,
        &[
            ("one open", &|r| shutdown(&mut r[place]).open = 1, form),
            (
                "an open session",
                &|r| drop(remove(r, place - 1)),
                &[(place - 1, Fault::ShutdownForm)],
            ),
            (
                "a second genesis",
                &|r| r[place] = like(&r[place], r[0].body.clone()),
                &[(place, Fault::SecondGenesis)],
            ),
        ],
    );
}
