//! Calls that were not to run.

use syscap_format::{
    Body, ConfigChange, EffectClass, Freeze, FreezeChange, FreezeTarget, ObjectId, OutcomeFlags,
    PolicyChange, PolicyHash, Record, RecordKind, Revocation, Role, RunMode, Shutdown, UnixMillis,
};
use syscap_kernel::object_of;
use syscap_verify::Fault;

use super::check;
use super::tools::{
    both, boxed, date, event, gap_from, home, insert, intent, issue, outcome, remove, shift,
};
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{ECHO, narrow, small, small_with};
use kernel_support::driver::{Driver, HOUR_MS, START_MS, agent, tool};
use syscap_audit::MemoryStore;

fn base() -> Log {
    Log::of(&small(|_, _| {}))
}

/// Intents have even places; each case changes the last of them, with its outcome.
const LAST: usize = 12;

/// Puts an event before the last intent, and gives its outcome the flags that follow.
fn stopped(records: &mut Vec<Record>, body: Body, flags: OutcomeFlags) {
    insert(records, LAST, body);
    outcome(&mut records[LAST + 2]).flags = flags;
}

fn freezes(records: &mut Vec<Record>, target: FreezeTarget, name: &str) {
    let freeze = Freeze { target, name: name.into(), change: FreezeChange::Freeze };
    let body = Body::Freeze(boxed(event(&home(records), 1, &freeze)));
    stopped(records, body, OutcomeFlags::FROZEN);
}

#[test]
fn an_intent_is_by_a_live_token() {
    let after = LAST + 1;
    let frozen: &[(usize, Fault)] = &[(after, Fault::Frozen)];
    check(
        &base(),
        &[
            (
                "revoked",
                &|r| {
                    let revocation = Revocation::subtree(issue(&mut r[4]).token);
                    let body = Body::Revoke(boxed(event(&home(r), 1, &revocation)));
                    stopped(r, body, OutcomeFlags::REVOKED);
                },
                &[(after, Fault::Revoked)],
            ),
            ("frozen agent", &|r| freezes(r, FreezeTarget::Agent, "ada"), frozen),
            ("frozen tool", &|r| freezes(r, FreezeTarget::Tool, "disk.write"), frozen),
            ("frozen kernel", &|r| freezes(r, FreezeTarget::Kernel, ""), frozen),
            (
                "expired",
                &|r| {
                    for record in &mut r[LAST..] {
                        date(record, UnixMillis::new(START_MS + HOUR_MS));
                    }
                },
                &[(LAST, Fault::Expired)],
            ),
            (
                "in the last moment",
                &|r| {
                    for record in &mut r[LAST..] {
                        date(record, UnixMillis::new(START_MS + HOUR_MS - 1));
                    }
                },
                &[],
            ),
        ],
    );
}

#[test]
fn a_token_begins_at_its_time() {
    let store = small_with(
        |body| body.not_before = UnixMillis::new(START_MS + 600),
        |driver, session| {
            driver.pass(600);
            driver.call(session, ECHO);
        },
    );
    let log = Log::of(&store);
    // Before it began the three calls were refused.
    let place = log.places(RecordKind::Intent)[0];
    check(
        &log,
        &[(
            "too early",
            &|r| {
                for record in &mut r[place..] {
                    date(record, UnixMillis::new(START_MS + 599));
                }
            },
            &[(place, Fault::NotYetValid)],
        )],
    );
}

/// Nobody confirms the time.
fn unconfirm(records: &mut Vec<Record>, config: usize) {
    drop(remove(records, config));
    gap_from(records, config);
}

#[test]
fn after_a_gap_the_time_is_confirmed_first() {
    let day = 24 * HOUR_MS;
    let mut driver = narrow(MemoryStore::new());
    let mut body = kernel_support::driver::body(driver.kernel.home(), 1, &agent("ada"));
    body.not_before = UnixMillis::new(START_MS + 60 * day);
    body.expires = UnixMillis::new(START_MS + 140 * day);
    let token = driver.issue(&body);
    driver.flush();
    let mut reading = driver.reading;
    reading.wall = reading.wall.plus(91 * day);
    let mut driver = Driver::open(driver.crash(), reading, 0).unwrap();
    driver.boot();
    let confirm = ConfigChange { confirm_time: Some(reading.wall) };
    driver.control(Role::Operator, &confirm).unwrap();
    let session = driver.session(&agent("ada"), token);
    driver.call(session, ECHO);
    driver.shutdown();
    driver.flush();
    let log = Log::of(&driver.store);
    let (config, place) = (log.places(RecordKind::Config)[0], log.places(RecordKind::Intent)[0]);
    let unconfirmed: &[(usize, Fault)] = &[(place - 1, Fault::ClockUnconfirmed)];
    check(
        &log,
        &[
            ("not confirmed", &|r| unconfirm(r, config), unconfirmed),
            (
                "a config that says nothing of the time",
                &|r| {
                    let nothing = ConfigChange { confirm_time: None };
                    r[config].body = Body::Config(boxed(event(&home(r), 2, &nothing)));
                    gap_from(r, config);
                },
                &[(place, Fault::ClockUnconfirmed)],
            ),
        ],
    );
}

#[test]
fn an_intent_is_for_a_tool_in_force() {
    let wrong: &[(usize, Fault)] = &[(LAST, Fault::Tool)];
    let other = ObjectId::from_bytes([1; 32]);
    check(
        &base(),
        &[
            ("another manifest", &|r| both(r, LAST, |c| c.manifest = Some(other)), wrong),
            (
                "another class",
                &|r| {
                    let intent = intent(&mut r[LAST]);
                    intent.effect = EffectClass::Irreversible;
                    intent.call_effect = intent.effect;
                },
                wrong,
            ),
            (
                "more than the manifest says",
                &|r| intent(&mut r[LAST]).call_effect = EffectClass::Irreversible,
                wrong,
            ),
            ("not durable first", &|r| intent(&mut r[LAST]).mode = RunMode::WithOutcome, wrong),
            (
                "no such tool",
                &|r| both(r, LAST, |c| c.tool_id = Some(tool("none"))),
                &[(LAST, Fault::NotGranted), (LAST, Fault::Tool)],
            ),
            (
                "no tools at all",
                &|r| drop(remove(r, 2)),
                &[
                    (3, Fault::NamedHead),
                    (5, Fault::NamedHead),
                    (7, Fault::Tool),
                    (9, Fault::Tool),
                    (11, Fault::Tool),
                ],
            ),
        ],
    );
}

#[test]
fn an_intent_is_under_the_policy_in_force() {
    let hash = |number| {
        let engine = kernel_support::driver::tools::AllowAll::new(number);
        object_of(&engine).hash()
    };
    let wrong: &[(usize, Fault)] = &[(LAST, Fault::Policy)];
    let other = PolicyHash::from_bytes([1; 32]);
    check(
        &base(),
        &[
            ("another", &|r| both(r, LAST, |c| c.policy_hash = Some(other)), wrong),
            (
                "none yet",
                &|r| drop(remove(r, 3)),
                // Both tokens name a head after it.
                &[
                    (3, Fault::NamedHead),
                    (5, Fault::NamedHead),
                    (7, Fault::Policy),
                    (9, Fault::Policy),
                    (11, Fault::Policy),
                ],
            ),
        ],
    );
    // A token that is bound to the first policy, and a second one in force.
    let store = small_with(|body| body.policy = Some(hash(0)), |driver, _| driver.set_policy(1));
    let swap = 14;
    check(
        &Log::of(&store),
        &[
            ("the one before", &|r| shift(r, swap, LAST), &[(LAST + 1, Fault::Policy)]),
            (
                "not the token's",
                &|r| {
                    shift(r, swap, LAST);
                    both(r, LAST + 1, |c| c.policy_hash = Some(hash(1)));
                },
                &[(LAST + 1, Fault::Policy)],
            ),
            (
                "one without an object",
                &|r| {
                    let change = PolicyChange { policy: hash(9), shadow: None };
                    let body = Body::Policy(boxed(event(&home(r), 3, &change)));
                    insert(r, swap + 1, body);
                },
                &[(swap + 1, Fault::ObjectMissing)],
            ),
        ],
    );
}

#[test]
fn record_after_the_shutdown_is_found() {
    let shut = |r: &mut Vec<Record>, place| {
        insert(r, place, Body::Shutdown(Box::new(Shutdown { open: 0 })));
    };
    check(
        &base(),
        &[
            (
                "a call",
                &|r| shut(r, LAST),
                &[
                    (LAST, Fault::ShutdownForm),
                    (LAST + 1, Fault::Closed),
                    (LAST + 5, Fault::ShutdownForm),
                ],
            ),
            (
                "tokens, sessions and calls",
                &|r| shut(r, 4),
                &[
                    (5, Fault::Closed),
                    (6, Fault::Closed),
                    (7, Fault::Closed),
                    // The second token names a head after the new record.
                    (7, Fault::NamedHead),
                    (8, Fault::Closed),
                    (9, Fault::Closed),
                    (11, Fault::Closed),
                    (13, Fault::Closed),
                    (17, Fault::ShutdownForm),
                ],
            ),
        ],
    );
}
