//! Rows that an operator has erased: gone with the record that says so, and from what the kernel
//! itself knows.

use kernel_support::driver::kin::{World, root, seat, world};
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{ECHO, call, keyed};
use kernel_support::driver::{Driver, Run, key};
use syscap_format::{ControlBody as _, Reason, RecordKind, RedactBody, Refused, Role, Seq, Source};
use syscap_kernel::{Ack, Ancestor, Event, Store as _, WithRows};

fn erase_by(driver: &mut World, role: Role, records: &[u64]) -> Result<Ack, Refused> {
    let records: Vec<Seq> = records.iter().copied().map(Seq::new).collect();
    let body = RedactBody { records: records.clone(), cause: None };
    let rows = match WithRows::find(&mut driver.store, &records).unwrap() {
        Ok(rows) => rows,
        // The proof is of something else.
        Err(_) => WithRows::find(&mut driver.store, &[]).unwrap().unwrap(),
    };
    let control = driver.sign(&key(role), RecordKind::Redact, body.to_bytes());
    let ticket = driver.ticket();
    driver.event(Event::Redact(ticket, control, None, rows, None));
    driver.flush();
    driver.acked(ticket)
}

fn erase(driver: &mut World, records: &[u64]) -> Result<Ack, Refused> {
    erase_by(driver, Role::Operator, records)
}

fn session(driver: &mut World) -> Seq {
    let token = root(driver, |_| {});
    let token = driver.issue(&token);
    seat(driver, token)
}

fn last(driver: &World, kind: RecordKind) -> u64 {
    *Log::of(&driver.store).places(kind).last().unwrap() as u64
}

/// What the kernel knows is what the log makes again, and the log is sound.
fn sound(mut driver: World) -> World {
    driver.shutdown();
    driver.flush();
    let live = kernel_support::history::sound::seen(&driver.kernel);
    let (reading, next) = (driver.reading, driver.next);
    let store = driver.crash();
    assert_eq!(Log::of(&store).faults(), []);
    let mut again = Driver::open(store, reading, 0).unwrap();
    again.next = next;
    assert_eq!(kernel_support::history::sound::seen(&again.kernel), live);
    again.boot();
    again
}

#[test]
fn erased_outcome_is_neither_repeated_nor_referred_to() {
    let mut driver = world();
    let session = session(&mut driver);
    driver.call(session, &keyed("post", 40, "k"));
    let (intent, outcome) = (last(&driver, RecordKind::Intent), last(&driver, RecordKind::Outcome));
    let refers = format!(
        r#"{{"tool_id":"post","args":{{"bytes":{{"$ref":{{"record":{outcome},"path":[]}}}}}}}}"#
    );
    erase(&mut driver, &[outcome]).unwrap();
    assert_eq!(driver.store.vault(Seq::new(outcome)).unwrap(), None);
    assert!(driver.store.vault(Seq::new(intent)).unwrap().is_some());
    let reason = |driver: &mut World, json: &str| {
        let ticket = driver.call(session, json);
        driver.reply(ticket).reason()
    };
    assert_eq!(reason(&mut driver, &keyed("post", 40, "k")), Some(Reason::OutcomeErased));
    assert_eq!(reason(&mut driver, &refers), Some(Reason::ReferenceErased));
    assert_eq!(reason(&mut driver, ECHO), None);
    // Once more is no error.
    erase(&mut driver, &[intent, outcome]).unwrap();
    sound(driver);
}

/// What was read of the vault before the erasure was durable is read again.
#[test]
fn a_read_from_before_delivers_nothing() {
    let mut driver = world();
    let session = session(&mut driver);
    driver.call(session, &keyed("post", 40, "k"));
    let outcome = last(&driver, RecordKind::Outcome);
    driver.fetch = Run::Later;
    let ticket = driver.call(session, &keyed("post", 40, "k"));
    let fetched = driver.fetched.pop().unwrap();
    erase(&mut driver, &[outcome]).unwrap();
    driver.fetch = Run::AtOnce;
    driver.event(fetched);
    assert_eq!(driver.reply(ticket).reason(), Some(Reason::OutcomeErased));
    sound(driver);
}

#[test]
fn facts_and_requests_are_forgotten_at_once() {
    let mut driver = world();
    let session = session(&mut driver);
    driver.propose(session, Source::User, r#"{"goal.topic": "bees"}"#).unwrap();
    let state = last(&driver, RecordKind::State);
    let known = |driver: &World| {
        let (_, _, facts) = driver.kernel.states().next().unwrap();
        facts.clone()
    };
    let before = known(&driver);
    erase(&mut driver, &[state]).unwrap();
    assert_ne!(known(&driver), before);
    let again = sound(driver);
    assert_ne!(known(&again), before);
}

#[test]
fn only_an_operator_erases_what_may_go() {
    let mut driver = world();
    let session = session(&mut driver);
    driver.call(session, ECHO);
    let (intent, outcome) = (last(&driver, RecordKind::Intent), last(&driver, RecordKind::Outcome));
    driver.run = Run::Later;
    driver.call(session, &call("post", 40));
    let open = last(&driver, RecordKind::Intent);
    let opened = last(&driver, RecordKind::Session);
    let reason = |result: Result<Ack, Refused>| result.unwrap_err().reason();
    for records in
        [&[][..], &[outcome, intent], &[intent, intent], &[intent, 9_999], &[open], &[opened], &[0]]
    {
        assert_eq!(reason(erase(&mut driver, records)), Reason::BadControl, "{records:?}");
    }
    for role in [Role::Issuer, Role::Policy, Role::Revoker, Role::Approver] {
        assert_eq!(reason(erase_by(&mut driver, role, &[intent])), Reason::BadSignature);
    }
    // A proof of other records.
    let body = RedactBody { records: vec![Seq::new(intent)], cause: None };
    let rows = WithRows::find(&mut driver.store, &[Seq::new(outcome)]).unwrap().unwrap();
    let control = driver.sign(&key(Role::Operator), RecordKind::Redact, body.to_bytes());
    let ticket = driver.ticket();
    driver.event(Event::Redact(ticket, control, None::<Ancestor>, rows, None));
    assert_eq!(reason(driver.acked(ticket)), Reason::BadControl);
    for seq in [intent, outcome, open] {
        assert!(driver.store.vault(Seq::new(seq)).unwrap().is_some(), "{seq}");
    }
    let job = driver.jobs.pop().unwrap();
    driver.ran(job.run());
    erase(&mut driver, &[open]).unwrap();
    sound(driver);
}
