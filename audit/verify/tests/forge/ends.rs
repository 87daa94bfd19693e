//! What ended for good, and what went on all the same.

use ed25519_dalek::SigningKey;
use syscap_format::{
    Body, Cancel, CancelBody, OutcomeFlags, Reason, Record, RecordKind, Revocation, RevocationList,
    Role, Seq, Status, TOKEN_CONTEXT, Token, TokenBody, TokenId, UnixMillis,
};
use syscap_kernel::{Ack, Event};
use syscap_verify::Fault;

use super::check;
use super::tools::{boxed, event, home, insert, issue, outcome};
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{call, small};
use kernel_support::driver::{Run, agent, body, key, public, sign};

/// A token of bob's at 14, and its session at 15.
fn base() -> Log {
    let log = Log::of(&small(|driver, _| {
        driver.pass(1);
        driver.agent("bob", 9);
    }));
    assert_eq!(log.places(RecordKind::Issue).last(), Some(&14));
    log
}

#[test]
fn a_revocation_names_what_there_is_and_never_goes_back() {
    let nobody = public(&SigningKey::from_bytes(&[99; 32]));
    let bad: &[(usize, Fault)] = &[(15, Fault::BadControl)];
    let revoke = |r: &mut Vec<Record>, revocation: &Revocation| {
        let control = event(&home(r), 1, revocation);
        insert(r, 15, Body::Revoke(boxed(control)));
    };
    check(
        &base(),
        &[
            ("no epoch", &|r| revoke(r, &Revocation::epoch(0)), bad),
            ("a key that nobody has", &|r| revoke(r, &Revocation::key(nobody)), bad),
            (
                "two things",
                &|r| {
                    let token = issue(&mut r[4]).token;
                    revoke(r, &Revocation { epoch: Some(1), ..Revocation::subtree(token) });
                },
                bad,
            ),
            (
                "children of nothing",
                &|r| {
                    let none = syscap_format::TokenId::from_bytes([1; 32]);
                    revoke(r, &Revocation::children(none));
                },
                &[(15, Fault::UnknownToken)],
            ),
        ],
    );
}

#[test]
fn token_issued_after_its_end_is_found() {
    let before = |r: &mut Vec<Record>, revocation: &Revocation| {
        let control = event(&home(r), 1, revocation);
        insert(r, 14, Body::Revoke(boxed(control)));
    };
    check(
        &base(),
        &[
            ("of an epoch", &|r| before(r, &Revocation::epoch(1)), &[(15, Fault::Revoked)]),
            (
                "by a key",
                &|r| before(r, &Revocation::key(public(&key(Role::Issuer)))),
                &[(15, Fault::Revoked)],
            ),
        ],
    );
}

fn list(version: u64, as_of: UnixMillis, tokens: &[TokenId]) -> RevocationList {
    RevocationList { version, as_of, tokens: tokens.to_vec(), cause: None }
}

#[test]
fn a_list_is_after_the_last_and_ends_what_comes() {
    let bad: &[(usize, Fault)] = &[(16, Fault::BadControl)];
    let base = base();
    let insert_list = |r: &mut Vec<Record>, place: usize, counter, list: &RevocationList| {
        let control = event(&home(r), counter, list);
        insert(r, place, Body::Revoke(boxed(control)));
    };
    let [one, two] = [1, 2].map(|n| TokenId::from_bytes([n; 32]));
    let both = |r: &mut Vec<Record>, second: &dyn Fn(UnixMillis) -> RevocationList| {
        let now = r[14].time;
        insert_list(r, 15, 1, &list(5, now, &[]));
        insert_list(r, 16, 2, &second(now));
    };
    check(
        &base,
        &[
            ("a newer one", &|r| both(r, &|now| list(6, now, &[one, two])), &[]),
            ("the same again", &|r| both(r, &|now| list(5, now, &[])), bad),
            ("an older one", &|r| both(r, &|now| list(4, now, &[])), bad),
            (
                "of an earlier time",
                &|r| both(r, &|now| list(6, UnixMillis::new(now.get() - 1), &[])),
                bad,
            ),
            ("out of order", &|r| both(r, &|now| list(6, now, &[two, one])), bad),
            (
                "of a token that comes after it",
                &|r| {
                    let token = issue(&mut r[14]).token;
                    let time = r[13].time;
                    insert_list(r, 14, 1, &list(1, time, &[token]));
                },
                &[(15, Fault::Revoked)],
            ),
        ],
    );
}

/// A token that needs a list, the list, and a call.
#[test]
fn a_token_that_needs_a_list_has_a_new_one() {
    let log = Log::of(&small(|driver, _| {
        let mut root = body(driver.kernel.home(), 7, &agent("ada"));
        (root.not_before, root.head) = (driver.kernel.now(), driver.kernel.durable());
        root.caveats = vec![TokenBody::fresh_within_caveat(1_000)];
        let token = driver.issue(&root);
        let now = driver.kernel.now();
        driver.control(Role::Revoker, &list(1, now, &[])).unwrap();
        let session = driver.session(&agent("ada"), token);
        driver.call(session, &call("post", 1));
    }));
    let (place, intent) =
        (log.places(RecordKind::Revoke)[0], *log.places(RecordKind::Intent).last().unwrap());
    let says = |r: &mut Vec<Record>, as_of: &dyn Fn(UnixMillis) -> u64| {
        let as_of = UnixMillis::new(as_of(r[intent].time));
        let control = event(&home(r), 1, &list(1, as_of, &[]));
        r[place].body = Body::Revoke(boxed(control));
    };
    let stale = Fault::StaleRevocations;
    check(
        &log,
        &[
            ("as old as may be", &|r| says(r, &|now| now.get() - 999), &[]),
            ("too old", &|r| says(r, &|now| now.get() - 1_000), &[(intent, stale)]),
            ("none", &|r| drop(super::tools::remove(r, place)), &[(intent - 1, stale)]),
        ],
    );
}

/// A token, one that is derived from it, and a call by that one.
#[test]
fn call_by_a_derived_token_after_the_end_is_found() {
    let log = Log::of(&small(|driver, _| {
        let holder = SigningKey::from_bytes(&[0x55; 32]);
        let mut root = body(driver.kernel.home(), 7, &agent("ada"));
        (root.holder, root.depth_max) = (Some(public(&holder)), 1);
        (root.not_before, root.head) = (driver.kernel.now(), driver.kernel.durable());
        let parent = driver.issue(&root);
        let mut child = root.clone();
        (child.nonce, child.issuer, child.parent) = ([8; 16], public(&holder), Some(parent));
        (child.depth, child.holder, child.head) = (1, None, None);
        let bytes = child.to_bytes();
        let wire = Token::wire(&bytes, &sign(&holder, TOKEN_CONTEXT, &bytes));
        let ticket = driver.ticket();
        driver.event(Event::Issue(ticket, wire, None));
        let Ack::Token(child) = driver.acked(ticket).unwrap() else { panic!("no token") };
        let session = driver.session(&agent("ada"), child);
        driver.call(session, &call("post", 1));
    }));
    let intent = *log.places(RecordKind::Intent).last().unwrap();
    let (revoked, flags) = (Fault::Revoked, Fault::OutcomeFlags);
    let before = |r: &mut Vec<Record>, revocation: &Revocation| {
        let control = event(&home(r), 1, revocation);
        insert(r, intent, Body::Revoke(boxed(control)));
    };
    let ended: &[(usize, Fault)] = &[(intent + 1, revoked), (intent + 2, flags)];
    check(
        &log,
        &[
            (
                "children",
                &|r| {
                    let token = issue(&mut r[14]).token;
                    before(r, &Revocation::children(token));
                },
                ended,
            ),
            ("epoch", &|r| before(r, &Revocation::epoch(1)), ended),
            (
                "key",
                &|r| {
                    let holder = SigningKey::from_bytes(&[0x55; 32]);
                    before(r, &Revocation::key(public(&holder)));
                },
                ended,
            ),
        ],
    );
}

/// A call that ran after it was cancelled by its session, at its place; the next is the outcome.
fn cancelled() -> (Log, usize) {
    let log = Log::of(&small(|driver, session| {
        driver.run = Run::Later;
        driver.call(session, &call("post", 1));
        let intent = driver.kernel.running().next().unwrap().0;
        let ticket = driver.ticket();
        driver.event(Event::Cancel(ticket, session, intent));
        driver.acked(ticket).unwrap();
        let job = driver.jobs.remove(0);
        driver.ran(job.run());
        driver.run = Run::AtOnce;
    }));
    let place = log.places(RecordKind::Cancel)[0];
    assert_eq!(log.record(place + 1).body.kind(), RecordKind::Outcome);
    (log, place)
}

#[test]
fn a_call_is_cancelled_once_while_it_is_out_by_whoever_may() {
    let (log, place) = cancelled();
    let cancel = |r: &mut Vec<Record>| match &mut r[place].body {
        Body::Cancel(cancel) => (**cancel).clone(),
        body => panic!("{body:?}"),
    };
    let put = |r: &mut Vec<Record>, change: &dyn Fn(&mut Cancel)| {
        let mut made = cancel(r);
        change(&mut made);
        r[place].body = Body::Cancel(Box::new(made));
    };
    let none: &[(usize, Fault)] = &[(place, Fault::NoIntent), (place + 1, Fault::OutcomeFlags)];
    check(
        &log,
        &[
            ("of none", &|r| put(r, &|cancel| cancel.intent = Seq::new(3)), none),
            (
                "by no session",
                &|r| put(r, &|cancel| cancel.session = Some(Seq::new(3))),
                &[(place, Fault::UnknownSession), (place, Fault::NotBound)],
            ),
            (
                "by nobody",
                &|r| put(r, &|cancel| cancel.session = None),
                &[(place, Fault::BadControl)],
            ),
            (
                "of another than was signed",
                &|r| {
                    let body = CancelBody { intent: Seq::new(3), cause: None };
                    let control = event(&home(r), 1, &body);
                    put(r, &|cancel| {
                        (cancel.session, cancel.control) = (None, Some(control.clone()));
                    });
                },
                &[(place, Fault::BadControl)],
            ),
            (
                "by a key of another role",
                &|r| {
                    let body = CancelBody { intent: cancel(r).intent, cause: None };
                    let by = super::tools::event_by(&home(r), &key(Role::Approver), 9, &body);
                    put(r, &|cancel| {
                        (cancel.session, cancel.control) = (None, Some(by.clone()));
                    });
                },
                &[(place, Fault::WrongRole)],
            ),
            (
                "twice",
                &|r| {
                    let again = Body::Cancel(Box::new(cancel(r)));
                    insert(r, place + 1, again);
                },
                &[(place + 1, Fault::NoIntent)],
            ),
            (
                "not flagged",
                &|r| outcome(&mut r[place + 1]).flags = OutcomeFlags::default(),
                &[(place + 1, Fault::OutcomeFlags)],
            ),
        ],
    );
}

/// A tool's own word that it failed comes with a result, and with nothing else.
#[test]
fn a_tool_says_that_it_failed_with_a_result() {
    let log = Log::of(&small(|driver, session| {
        driver.call(session, &call("post", 1));
    }));
    let place = *log.places(RecordKind::Outcome).last().unwrap();
    let says = |r: &mut Vec<Record>| outcome(&mut r[place]).flags = OutcomeFlags::TOOL_FAILED;
    check(
        &log,
        &[
            ("with a result", &|r| says(r), &[]),
            (
                "with an error",
                &|r| {
                    says(r);
                    let outcome = outcome(&mut r[place]);
                    (outcome.status, outcome.reason) = (Status::Error, Some(Reason::NotFound));
                },
                &[(place, Fault::OutcomeFlags)],
            ),
        ],
    );
}
