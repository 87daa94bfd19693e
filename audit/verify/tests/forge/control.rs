//! Control events that nobody may make, or nobody made.

use ed25519_dalek::SigningKey;
use syscap_format::{
    ControlBody as _, FreezeChange, FreezeTarget, Record, RecordKind, RedactBody, Role, Seq,
};
use syscap_kernel::{Event, WithRows};
use syscap_verify::Fault;

use super::check;
use super::tools::{control, event, event_by, home, insert};
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{ECHO, freeze, small};
use kernel_support::driver::{Run, key, key_change};

/// Freezes of bob and of eve at 14 and 15.
fn base() -> Log {
    let stop = |name| freeze(FreezeTarget::Agent, name, FreezeChange::Freeze);
    let log = Log::of(&small(|driver, _| {
        driver.control(Role::Revoker, &stop("bob")).unwrap();
        driver.control(Role::Revoker, &stop("eve")).unwrap();
    }));
    assert_eq!(log.places(RecordKind::Freeze), [14, 15]);
    log
}

/// Who may stop may not go on, in a home that was made so.
#[test]
fn a_freeze_is_ended_by_the_operator() {
    let bob = |change| freeze(FreezeTarget::Agent, "bob", change);
    let log = Log::of(&small(|driver, _| {
        driver.control(Role::Revoker, &bob(FreezeChange::Freeze)).unwrap();
        driver.control(Role::Operator, &bob(FreezeChange::Thaw)).unwrap();
    }));
    let thaw = bob(FreezeChange::Thaw);
    check(
        &log,
        &[(
            "by the revoker",
            &|r| *control(&mut r[15]) = event_by(&home(r), &key(Role::Revoker), 2, &thaw),
            &[(15, Fault::WrongRole)],
        )],
    );
}

#[test]
fn an_event_is_used_once() {
    check(
        &base(),
        &[
            (
                "the same again",
                &|r| {
                    let again = r[14].body.clone();
                    insert(r, 15, again);
                },
                &[(15, Fault::StaleCounter)],
            ),
            ("in another order", &|r| super::tools::shift(r, 14, 15), &[(15, Fault::StaleCounter)]),
            ("one left out", &|r| drop(super::tools::remove(r, 14)), &[]),
        ],
    );
}

#[test]
fn a_changed_key_takes_the_place_of_the_old_one() {
    let other = SigningKey::from_bytes(&[77; 32]);
    let bob = |change| freeze(FreezeTarget::Agent, "bob", change);
    let log = Log::of(&small(|driver, _| {
        let change = key_change(&driver.kernel.home(), Role::Revoker, &other);
        driver.control(Role::Operator, &change).unwrap();
        driver.control_by(&other, &bob(FreezeChange::Freeze)).unwrap();
    }));
    check(
        &log,
        &[
            (
                "the old key",
                &|r| *control(&mut r[15]) = event(&home(r), 1, &bob(FreezeChange::Freeze)),
                &[(15, Fault::WrongRole)],
            ),
            (
                "the new key before its time",
                &|r| super::tools::shift(r, 15, 14),
                &[(14, Fault::WrongRole)],
            ),
            (
                "a key that the revoker gave itself",
                &|r| {
                    let change = key_change(&home(r), Role::Revoker, &other);
                    *control(&mut r[14]) = event_by(&home(r), &key(Role::Revoker), 1, &change);
                },
                &[(14, Fault::WrongRole)],
            ),
        ],
    );
}

/// Rows of records that had none, or that a run still needed, or by somebody else.
#[test]
fn an_erasure_names_what_may_go() {
    let log = Log::of(&small(|driver, session| {
        driver.call(session, ECHO);
        driver.run = Run::Later;
        driver.call(session, ECHO);
        let records = vec![Seq::new(14), Seq::new(15)];
        let rows = WithRows::find(&mut driver.store, &records).unwrap().unwrap();
        let body = RedactBody { records, cause: None };
        let control = driver.sign(&key(Role::Operator), RecordKind::Redact, body.to_bytes());
        let ticket = driver.ticket();
        driver.event(Event::Redact(ticket, control, None, rows, None));
        driver.acked(ticket).unwrap();
        let job = driver.jobs.pop().unwrap();
        driver.ran(job.run());
    }));
    let at = log.places(RecordKind::Redact)[0];
    assert_eq!(log.places(RecordKind::Intent).last(), Some(&(at - 1)), "it is open");
    let named = |records: &[u64]| {
        let records: Vec<Seq> = records.iter().copied().map(Seq::new).collect();
        move |r: &mut Vec<Record>| {
            let counter = control(&mut r[at]).signatures[0].counter;
            let body = RedactBody { records: records.clone(), cause: None };
            let home = home(r);
            *control(&mut r[at]) = event(&home, counter, &body);
        }
    };
    let bad = [(at, Fault::BadControl)];
    let (open, later) = (at as u64 - 1, at as u64);
    check(
        &log,
        &[
            ("one of them", &named(&[14]), &[]),
            ("none", &named(&[]), &bad),
            ("out of order", &named(&[15, 14]), &bad),
            ("twice", &named(&[14, 14]), &bad),
            ("itself", &named(&[14, later]), &bad),
            ("one to come", &named(&[14, later + 1]), &bad),
            ("of a kind without rows", &named(&[0, 14]), &bad),
            ("of a call that runs", &named(&[14, open]), &bad),
            (
                "by another role",
                &|r| {
                    let home = home(r);
                    let signed = control(&mut r[at]).clone();
                    let counter = signed.signatures[0].counter;
                    let body = RedactBody::from_bytes(&signed.body).unwrap();
                    *control(&mut r[at]) = event_by(&home, &key(Role::Revoker), counter, &body);
                },
                &[(at, Fault::WrongRole)],
            ),
        ],
    );
}
