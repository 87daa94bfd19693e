//! Calls that were not to run.

use syscap_format::{
    budget::{Amounts, Dimension},
    control::{ConfigChange, Freeze, FreezeChange, FreezeTarget, PolicyChange, Revocation, Role},
    decision::{Decision, Verdict},
    envelope::Filled,
    id::{ArgsHash, IdempotencyKey, ObjectId, PolicyHash, ResultHash, SentHash, Seq, SnapshotId},
    label::Label,
    manifest::{EffectClass, Enforcement},
    obligation::Obligation,
    provenance::{Provenance, Source},
    record::{Body, Kind, OutcomeFlags, Record, RunMode, Shutdown},
    time::UnixMillis,
    token::{Grant, Grants, TokenFlags},
};
use syscap_kernel::policy::object_of;
use syscap_verify::Fault;

use super::{
    check,
    tools::{
        both, boxed, date, event, gap_from, home, insert, intent, issue, outcome, remove, shift,
    },
};
use kernel_support::driver::{
    Driver, HOUR_MS, START_MS, agent,
    log::Log,
    scenario::{ECHO, narrow, small, small_with},
    tool,
};
use syscap_audit::memory::MemoryStore;

fn base() -> Log {
    Log::of(&small(|_, _| {}))
}

/// Intents have even places; each case changes the last of them, with its outcome.
const LAST: usize = 12;

#[test]
fn an_intent_is_its_sessions() {
    check(
        &base(),
        &[
            (
                "another label",
                &|r| intent(&mut r[LAST]).label = Label::UNTRUSTED,
                &[(LAST, Fault::Label)],
            ),
            (
                "another agent",
                &|r| both(r, LAST, |c| c.agent_id = Some(agent("eve"))),
                &[(LAST, Fault::NotBound)],
            ),
            (
                "another's token",
                &|r| {
                    let token = issue(&mut r[6]).token;
                    both(r, LAST, |c| c.capability_token_id = Some(token));
                },
                &[(LAST, Fault::NotBound)],
            ),
            (
                "another's session",
                &|r| both(r, LAST, |c| c.session = Some(Seq::new(7))),
                &[(LAST, Fault::NotBound), (LAST, Fault::Snapshot)],
            ),
            (
                "no session",
                &|r| both(r, LAST, |c| c.session = Some(Seq::new(3))),
                &[(LAST, Fault::UnknownSession)],
            ),
            ("a closed session", &|r| shift(r, 14, LAST), &[(LAST + 1, Fault::UnknownSession)]),
            (
                "another snapshot",
                &|r| both(r, LAST, |c| c.state_snapshot_id = Some(SnapshotId::from_bytes([1; 32]))),
                &[(LAST, Fault::Snapshot)],
            ),
        ],
    );
}

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
    let place = log.places(Kind::Intent)[0];
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
    let (config, place) = (log.places(Kind::Config)[0], log.places(Kind::Intent)[0]);
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

/// Makes the last call one of `echo` into one of `post`.
fn as_post(records: &mut [Record], place: usize, manifest: ObjectId) {
    both(records, place, |c| {
        c.tool_id = Some(tool("post"));
        c.manifest = Some(manifest);
    });
    let intent = intent(&mut records[place]);
    intent.effect = EffectClass::ExternalWrite;
    intent.call_effect = intent.effect;
    intent.mode = RunMode::IntentFirst;
}

#[test]
fn an_intent_is_for_a_tool_that_the_token_grants() {
    let manifest = kernel_support::driver::tools::Post::new();
    let id = syscap_kernel::tool::Tool::manifest(&manifest).id();
    let grants = |names: &[&str]| {
        names.iter().fold(Grants::new(), |grants, name| grants.with(tool(name), Grant::new()))
    };
    let store = small_with(|body| body.grants = grants(&["echo"]), |_, _| {});
    let place = 8;
    let log = Log::of(&store);
    assert_eq!(log.places(Kind::Intent), [place]);
    check(&log, &[("not granted", &|r| as_post(r, place, id), &[(place, Fault::NotGranted)])]);
    let store = small_with(|body| body.flags = TokenFlags::READ_ONLY, |_, _| {});
    let log = Log::of(&store);
    check(&log, &[("read only", &|r| as_post(r, place, id), &[(place, Fault::ReadOnlyToken)])]);
    let log = base();
    check(&log, &[("both", &|r| as_post(r, place, id), &[])]);
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
fn an_intent_was_allowed() {
    let wrong: &[(usize, Fault)] = &[(LAST, Fault::Decision)];
    let said = |r: &mut Vec<Record>, decision: Decision| {
        both(r, LAST, |c| c.decision = Some(decision.clone()));
    };
    check(
        &base(),
        &[
            ("denied", &|r| said(r, Decision::plain(Verdict::Deny)), wrong),
            ("asked", &|r| said(r, Decision::plain(Verdict::Ask)), wrong),
            ("degraded", &|r| said(r, Decision::plain(Verdict::Degrade)), wrong),
            (
                "on a condition",
                &|r| {
                    let obligations = [Obligation::read_only()].into();
                    said(r, Decision { obligations, ..Decision::plain(Verdict::Degrade) });
                },
                &[(LAST, Fault::Obligation)],
            ),
            (
                "no decision",
                &|r| both(r, LAST, |c| c.decision = None),
                &[(LAST, Fault::IntentForm), (LAST, Fault::Decision)],
            ),
        ],
    );
}

/// Changes where the last call came from, in intent and outcome.
fn from(records: &mut [Record], change: impl Fn(&mut Provenance)) {
    both(records, LAST, |call| change(call.provenance.as_mut().unwrap()));
}

/// Of a provenance that was filled in the caller said nothing.
#[test]
fn what_was_filled_in_says_nothing_for_the_caller() {
    let form = |place| (place, Fault::IntentForm);
    let untrue = |place| (place, Fault::Provenance);
    check(
        &base(),
        &[
            ("a claim", &|r| from(r, |f| f.claimed = Some(Source::User)), &[form(LAST)]),
            ("a trace", &|r| from(r, |f| f.trace = Some("t".into())), &[untrue(LAST)]),
            ("an input", &|r| from(r, |f| f.inputs.push(Seq::new(9))), &[untrue(LAST)]),
            (
                "another time",
                &|r| from(r, |f| f.time = f.time.map(|at| at.plus(1))),
                &[untrue(LAST)],
            ),
            ("no time", &|r| from(r, |f| f.time = None), &[untrue(LAST)]),
            (
                "nothing filled in",
                &|r| intent(&mut r[LAST]).filled = Filled::default(),
                &[form(LAST)],
            ),
            (
                "an input that is no record",
                &|r| {
                    from(r, |f| (f.claimed, f.inputs) = (Some(Source::User), vec![Seq::new(99)]));
                    intent(&mut r[LAST]).filled = Filled::default();
                },
                &[untrue(LAST)],
            ),
            ("another source", &|r| from(r, |f| f.source = Source::User), &[]),
            (
                "a claim of its own",
                &|r| {
                    from(r, |f| f.claimed = Some(Source::User));
                    intent(&mut r[LAST]).filled = Filled::default();
                },
                &[],
            ),
        ],
    );
}

#[test]
fn an_intent_holds_all_that_it_must() {
    let form = |place| (place, Fault::IntentForm);
    check(
        &base(),
        &[
            (
                "a result",
                &|r| intent(&mut r[LAST]).call.result_hash = Some(ResultHash::from_bytes([1; 32])),
                &[form(LAST)],
            ),
            (
                "an enforcement",
                &|r| intent(&mut r[LAST]).call.enforcement = Some(Enforcement::Canonical),
                &[form(LAST)],
            ),
            (
                "something used",
                &|r| intent(&mut r[LAST]).call.used = Amounts::ZERO.with(Dimension::Calls, 1),
                &[form(LAST)],
            ),
            (
                "a key alone",
                &|r| intent(&mut r[LAST]).key = IdempotencyKey::new("k"),
                &[form(LAST)],
            ),
            (
                "a sent hash alone",
                &|r| intent(&mut r[LAST]).sent_hash = Some(SentHash::from_bytes([1; 32])),
                &[form(LAST)],
            ),
            ("no arguments", &|r| both(r, LAST, |c| c.args_hash = None), &[form(LAST)]),
            (
                "other arguments",
                &|r| both(r, LAST, |c| c.args_hash = Some(ArgsHash::from_bytes([1; 32]))),
                &[],
            ),
            ("no provenance", &|r| both(r, LAST, |c| c.provenance = None), &[form(LAST)]),
            ("no envelope", &|r| both(r, LAST, |c| c.call_hash = None), &[form(LAST)]),
            (
                "no agent",
                &|r| both(r, LAST, |c| c.agent_id = None),
                &[form(LAST), (LAST, Fault::NotBound)],
            ),
            (
                "no token",
                &|r| both(r, LAST, |c| c.capability_token_id = None),
                &[form(LAST), (LAST, Fault::NotBound)],
            ),
            ("no tool", &|r| both(r, LAST, |c| c.tool_id = None), &[form(LAST)]),
            (
                "no policy",
                &|r| both(r, LAST, |c| c.policy_hash = None),
                &[form(LAST), (LAST, Fault::Policy)],
            ),
            (
                "no snapshot",
                &|r| both(r, LAST, |c| c.state_snapshot_id = None),
                &[form(LAST), (LAST, Fault::Snapshot)],
            ),
            (
                "no session",
                &|r| both(r, LAST, |c| c.session = None),
                &[form(LAST), (LAST, Fault::UnknownSession)],
            ),
            (
                "no manifest",
                &|r| both(r, LAST, |c| c.manifest = None),
                &[form(LAST), (LAST, Fault::Tool)],
            ),
        ],
    );
}

#[test]
fn nothing_begins_after_the_shutdown() {
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
