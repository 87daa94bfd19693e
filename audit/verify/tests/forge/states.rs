//! Changes of an agent's state that were not to be, or lead to another state than they say.

use std::collections::BTreeMap;

use syscap_format::{
    Amounts, Body, Charge, Dimension, FactId, FactKey, Freeze, FreezeChange, FreezeTarget,
    MapBuilder, Object, ObjectId, ObjectKind, Provenance, Record, RecordKind, Revocation, Seq,
    Snapshot, SnapshotId, Source, StateChange, TokenBody, TokenFlags, UnixMillis,
};
use syscap_verify::Fault;

use super::check;
use super::tools::{boxed, event, home, insert, issue, remove, session, state};
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{ECHO, call, small, small_with};
use kernel_support::driver::{HOUR_MS, START_MS, agent};

/// The first change, and one of a tool, of what came of the call before.
const FIRST: usize = 14;
const SEEN: usize = 15;
/// The last change, after a call that was refused.
const LAST: usize = 17;

fn base() -> Log {
    let log = Log::of(&small(|driver, session| {
        driver.propose(session, Source::Agent, r#"{"goal.a":1,"goal.b":2}"#).unwrap();
        let inputs = vec![Seq::new(13)];
        driver.propose_from(session, Source::Tool, inputs, r#"{"fact.x":[1]}"#).unwrap();
        driver.call(session, "{");
        driver.propose(session, Source::User, r#"{"goal.a":null,"goal.b":3}"#).unwrap();
    }));
    assert_eq!(log.places(RecordKind::State), [FIRST, SEEN, LAST]);
    log
}

fn one(fault: Fault) -> [(usize, Fault); 1] {
    [(LAST, fault)]
}

fn fact(key: &str) -> FactKey {
    FactKey::new(key).unwrap()
}

fn last(records: &mut [Record]) -> &mut StateChange {
    state(&mut records[LAST])
}

/// The source of the last change.
fn from(records: &mut [Record]) -> &mut Provenance {
    last(records).call.provenance.as_mut().unwrap()
}

/// A change under a token of the same agent that only reads.
#[test]
fn a_token_that_only_reads_changes_nothing() {
    let only_reads = |body: &mut TokenBody| body.flags = TokenFlags::READ_ONLY;
    let log = Log::of(&small_with(only_reads, |driver, _| {
        let (_, other) = driver.agent("ada", 3);
        driver.propose(other, Source::Agent, r#"{"goal.a":1}"#).unwrap();
    }));
    let [place] = log.places(RecordKind::State)[..] else { panic!("one change") };
    let (issued, opened) = (log.places(RecordKind::Issue)[0], log.places(RecordKind::Session)[0]);
    let by_reader = |r: &mut Vec<Record>| {
        let (token, session) = (issue(&mut r[issued]).token, r[opened].seq);
        let call = &mut state(&mut r[place]).call;
        (call.capability_token_id, call.session) = (Some(token), Some(session));
    };
    check(&log, &[("a reader", &by_reader, &[(place, Fault::ReadOnlyToken)])]);
}

fn freeze(records: &mut Vec<Record>, target: FreezeTarget, name: &str) {
    let freeze = Freeze { target, name: name.into(), change: FreezeChange::Freeze };
    let body = Body::Freeze(boxed(event(&home(records), 1, &freeze)));
    insert(records, LAST, body);
}

#[test]
fn a_change_is_by_a_live_token() {
    let after = |fault| [(LAST + 1, fault)];
    check(
        &base(),
        &[
            (
                "revoked",
                &|r| {
                    let revocation = Revocation::subtree(issue(&mut r[4]).token);
                    let body = Body::Revoke(boxed(event(&home(r), 1, &revocation)));
                    insert(r, LAST, body);
                },
                &after(Fault::Revoked),
            ),
            ("frozen", &|r| freeze(r, FreezeTarget::Agent, "ada"), &after(Fault::Frozen)),
            ("all frozen", &|r| freeze(r, FreezeTarget::Kernel, ""), &after(Fault::Frozen)),
            ("another is frozen", &|r| freeze(r, FreezeTarget::Agent, "bob"), &[]),
            ("a tool is frozen", &|r| freeze(r, FreezeTarget::Tool, "echo"), &[]),
            (
                "expired",
                &|r| {
                    let end = UnixMillis::new(START_MS + HOUR_MS);
                    r[LAST..].iter_mut().for_each(|record| record.time = end);
                    from(r).time = Some(end);
                },
                &one(Fault::Expired),
            ),
            (
                "exhausted",
                &|r| {
                    let (token, session) = (issue(&mut r[4]).token, Seq::new(5));
                    let amounts = Amounts::ZERO.with(Dimension::LlmTokens, u64::MAX);
                    insert(r, LAST, Body::Charge(Box::new(Charge { token, session, amounts })));
                },
                &after(Fault::Exhausted),
            ),
        ],
    );
}

#[test]
fn a_change_costs_a_call() {
    let fee = &one(Fault::Fee);
    let used = |r: &mut Vec<Record>, amounts| last(r).call.used = amounts;
    let calls = |n| Amounts::ZERO.with(Dimension::Calls, n);
    check(
        &base(),
        &[
            ("nothing", &|r| used(r, calls(0)), fee),
            ("two", &|r| used(r, calls(2)), fee),
            ("something else", &|r| used(r, calls(1).with(Dimension::CpuUs, 1)), fee),
        ],
    );
    // Three calls, one refusal and two changes: the last takes the sixth and last call.
    let store = small_with(
        |body| body.budget = body.budget.with(Dimension::Calls, 6),
        |driver, session| {
            driver.propose(session, Source::Agent, r#"{"goal.a":1}"#).unwrap();
            driver.call(session, "{");
            driver.propose(session, Source::Agent, r#"{"goal.a":2}"#).unwrap();
            driver.propose(session, Source::Agent, r#"{"goal.a":3}"#).unwrap_err();
        },
    );
    let log = Log::of(&store);
    assert_eq!(log.places(RecordKind::State), [14, 16]);
    check(
        &log,
        &[(
            "one more before",
            &|r| {
                let body = r[15].body.clone();
                insert(r, 16, body);
            },
            &[(17, Fault::OverBudget)],
        )],
    );
}

#[test]
fn everybody_writes_their_own_keys() {
    let by = |r: &mut Vec<Record>, place: usize, writer| {
        let change = state(&mut r[place]);
        change.writer = writer;
        change.call.provenance.as_mut().unwrap().source = writer;
    };
    let wrong = |place| [(place, Fault::Namespace)];
    check(
        &base(),
        &[
            ("a goal by a tool", &|r| by(r, FIRST, Source::Tool), &wrong(FIRST)),
            ("a goal by an encoder", &|r| by(r, FIRST, Source::Encoder), &wrong(FIRST)),
            ("a goal by an observer", &|r| by(r, FIRST, Source::Observer), &wrong(FIRST)),
            ("a goal by a user", &|r| by(r, FIRST, Source::User), &[]),
            ("a fact by an agent", &|r| by(r, SEEN, Source::Agent), &wrong(SEEN)),
            ("a fact by a user", &|r| by(r, SEEN, Source::User), &wrong(SEEN)),
            ("a fact by an observer", &|r| by(r, SEEN, Source::Observer), &wrong(SEEN)),
            ("a fact by an encoder", &|r| by(r, SEEN, Source::Encoder), &[]),
            (
                "a fact taken away by an agent",
                &|r| last(r).removed.insert(0, fact("fact.y")),
                &wrong(LAST),
            ),
            (
                "a goal that was not there taken away",
                &|r| last(r).removed.push(fact("goal.c")),
                &[],
            ),
        ],
    );
    for space in ["policy", "constraint"] {
        for writer in Source::ALL {
            let (log, snapshot) = led_to(&base(), |next| {
                let mut ids = next.fact_ids().unwrap();
                ids.insert(fact(&format!("{space}.x")), FactId::from_bytes([1; 32]));
                next.facts = facts(&ids);
            });
            let change = |r: &mut Vec<Record>| {
                by(r, LAST, *writer);
                last(r).set.push(fact(&format!("{space}.x")));
                last(r).set.sort();
                last(r).snapshot = snapshot;
            };
            check(&log, &[("the policy's", &change, &wrong(LAST))]);
        }
    }
}

fn facts(ids: &BTreeMap<FactKey, FactId>) -> syscap_format::Canonical {
    ids.iter()
        .fold(MapBuilder::new(), |map, (key, id)| map.bytes(key.as_str(), id.as_bytes()))
        .finish()
}

/// A log that also has another snapshot for the last change, and its id.
fn led_to(log: &Log, change: impl FnOnce(&mut Snapshot)) -> (Log, SnapshotId) {
    let mut log = log.clone();
    let snapshot = state(&mut log.record(LAST)).snapshot;
    let object = log.objects.iter().find(|object| object.id.as_bytes() == snapshot.as_bytes());
    let mut next = Snapshot::from_bytes(&object.unwrap().bytes).unwrap();
    change(&mut next);
    let id = next.id();
    log.objects.push(Object {
        kind: ObjectKind::Snapshot,
        id: ObjectId::from_bytes(*id.as_bytes()),
        bytes: next.to_bytes(),
    });
    (log, id)
}

/// Forges the last change so that it leads to another snapshot.
fn leads_to(change: impl FnOnce(&mut Snapshot)) -> Vec<(usize, Fault)> {
    let (mut log, id) = led_to(&base(), change);
    log.forge(|r| last(r).snapshot = id);
    log.faults()
}

#[test]
fn facts_follow_from_what_was_changed() {
    let wrong = one(Fault::Facts);
    let ids = |change: &dyn Fn(&mut BTreeMap<FactKey, FactId>)| {
        leads_to(|next| {
            let mut ids = next.fact_ids().unwrap();
            change(&mut ids);
            next.facts = facts(&ids);
        })
    };
    let other = FactId::from_bytes([1; 32]);
    assert_eq!(ids(&|_| {}), []);
    assert_eq!(ids(&|ids| _ = ids.remove(&fact("fact.x"))), wrong, "one is skipped");
    assert_eq!(ids(&|ids| _ = ids.insert(fact("fact.x"), other)), wrong, "one is changed");
    assert_eq!(ids(&|ids| _ = ids.insert(fact("fact.y"), other)), wrong, "one is added");
    assert_eq!(ids(&|ids| _ = ids.insert(fact("goal.a"), other)), wrong, "one is kept");
    assert_eq!(ids(&|ids| _ = ids.remove(&fact("goal.b"))), wrong, "one is not set");
    // What stands for the value that was set is not in the log.
    assert_eq!(ids(&|ids| _ = ids.insert(fact("goal.b"), other)), []);
    let no_map = |next: &mut Snapshot| next.facts = syscap_format::Canonical::null();
    assert_eq!(leads_to(no_map), wrong);
    let no_key = |next: &mut Snapshot| next.facts = MapBuilder::new().bytes("a", &[0; 32]).finish();
    assert_eq!(leads_to(no_key), wrong);
    let no_id = |next: &mut Snapshot| {
        next.facts = MapBuilder::new().bytes("goal.b", &[0; 31]).finish();
    };
    assert_eq!(leads_to(no_id), wrong);
    check(
        &base(),
        &[
            ("nothing is said of what was taken away", &|r| last(r).removed.clear(), &wrong),
            ("of what was set", &|r| last(r).set.clear(), &wrong),
            (
                "nothing at all",
                &|r| {
                    last(r).set.clear();
                    last(r).removed.clear();
                },
                &[(LAST, Fault::StateForm), (LAST, Fault::Facts)],
            ),
        ],
    );
}

#[test]
fn an_agent_has_so_many_facts() {
    let keys = |range: std::ops::Range<u32>| -> Vec<FactKey> {
        range.map(|n| fact(&format!("goal.k{n:03}"))).collect()
    };
    // Besides the two facts that are there so many may be set.
    for (set, fault) in [(253, None), (254, None), (255, Some(Fault::Facts))] {
        let keys = keys(0..set);
        let (mut log, id) = led_to(&base(), |next| {
            let mut ids = next.fact_ids().unwrap();
            ids.extend(keys.iter().map(|key| (key.clone(), FactId::from_bytes([1; 32]))));
            next.facts = facts(&ids);
        });
        log.forge(|r| {
            last(r).snapshot = id;
            last(r).set.extend(keys);
            last(r).set.sort();
        });
        let wanted: Vec<_> = fault.into_iter().map(|fault| (LAST, fault)).collect();
        assert_eq!(log.faults(), wanted, "{set} more");
    }
}

/// An aggregate of refusals is closed before a change, and the row goes on after it.
#[test]
fn a_change_closes_an_aggregate_and_breaks_no_row() {
    let log = Log::of(&small(|driver, session| {
        for _ in 0..17 {
            driver.propose(session, Source::Agent, r#"{"fact.a":1}"#).unwrap_err();
        }
        driver.propose(session, Source::Agent, r#"{"goal.a":1}"#).unwrap();
        driver.propose(session, Source::Agent, r#"{"fact.a":1}"#).unwrap_err();
    }));
    let (state, rows) = (log.places(RecordKind::State)[0], log.places(RecordKind::Refusals));
    assert_eq!((state, &rows[..]), (32, &[30, 31, 33, 34][..]));
    check(
        &log,
        &[
            (
                "not closed",
                &|r| drop(remove(r, 31)),
                &[(31, Fault::Aggregate), (32, Fault::Aggregate)],
            ),
            (
                "a record of its own",
                &|r| {
                    let body = r[29].body.clone();
                    insert(r, 33, body);
                },
                // It pays a call, so that half of what is left is another number.
                &[(33, Fault::Snapshot), (33, Fault::Aggregate), (34, Fault::Aggregate)],
            ),
        ],
    );
}

/// A session that opens later begins on the head.
#[test]
fn a_session_begins_on_the_head() {
    let log = Log::of(&small(|driver, first| {
        driver.propose(first, Source::Agent, r#"{"goal.a":1}"#).unwrap();
        let body = kernel_support::driver::body(driver.kernel.home(), 9, &agent("ada"));
        let token = driver.issue(&body);
        let second = driver.session(&agent("ada"), token);
        driver.call(second, ECHO);
        driver.call(first, &call("post", 1));
    }));
    let second = 16;
    let token = session(&mut log.record(second)).token;
    check(
        &log,
        &[(
            "on the first",
            &|r| {
                let genesis = session(&mut r[5]).snapshot;
                for record in &mut r[second..] {
                    if let Body::Session(change) = &mut record.body
                        && change.token == token
                    {
                        change.snapshot = genesis;
                    }
                }
            },
            &[(second, Fault::Snapshot)],
        )],
    );
}
