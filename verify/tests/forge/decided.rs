//! Refused calls that no policy could have been asked about.

use syscap_audit::memory::MemoryStore;
use syscap_format::{
    budget::{Amounts, Dimension},
    control::{ConfigChange, Freeze, FreezeChange, FreezeTarget, PolicyChange, Revocation, Role},
    decision::{Decision, Verdict},
    id::{ObjectId, PolicyHash, SnapshotId},
    manifest::Enforcement,
    reason::Reason,
    record::{Body, CallFields, Kind, Record},
    time::UnixMillis,
    token::{Grant, Grants, TokenFlags},
};
use syscap_kernel::{
    policy::object_of,
    tool::{ReadTool, Tool},
};
use syscap_verify::Fault;

use super::{
    check,
    tools::{boxed, date, event, gap_from, home, insert, issue, refusal, remove, shift},
};
use kernel_support::driver::{
    Driver, HOUR_MS, START_MS, agent,
    log::Log,
    scenario::{ECHO, call, narrow, small, small_with},
    tool,
    tools::{AllowAll, Echo, Post},
};

/// A call that was denied, one that needs more than a cut leaves it, and one that exceeds what is
/// left of the budget.
const DENIED: usize = 14;
const REDUCED: usize = 15;
const OVER: usize = 16;
const ALL: [usize; 3] = [DENIED, REDUCED, OVER];

fn base() -> Log {
    let log = Log::of(&small(|driver, session| {
        driver.call(session, &call("post", 13));
        driver.call(session, &call("trim", 3));
        driver.call(session, &call("post", 5_000));
    }));
    assert_eq!(log.places(Kind::Refusal), ALL);
    let reasons = ALL.map(|place| match log.record(place).body {
        Body::Refusal(refusal) => refusal.reason,
        other => panic!("{:?}", other.kind()),
    });
    assert_eq!(reasons, [Reason::Denied, Reason::Reduced, Reason::OverBudget]);
    log
}

fn of(records: &mut [Record], place: usize) -> &mut CallFields {
    &mut refusal(&mut records[place]).call
}

fn hash(number: u8) -> PolicyHash {
    object_of(&AllowAll::new(number)).hash()
}

#[test]
fn all_is_there_that_a_policy_is_asked_about() {
    let log = base();
    for place in ALL {
        let form = (place, Fault::RefusalForm);
        let with = |name: &str, change: &dyn Fn(&mut CallFields), more: &[Fault]| {
            let more = more.iter().map(|fault| (place, *fault));
            let faults: Vec<(usize, Fault)> = [form].into_iter().chain(more).collect();
            check(&log, &[(name, &|r| change(of(r, place)), &faults)]);
        };
        with("agent", &|c| c.agent_id = None, &[Fault::NotBound]);
        with("policy", &|c| c.policy_hash = None, &[Fault::Policy]);
        with("snapshot", &|c| c.state_snapshot_id = None, &[]);
        with("token", &|c| c.capability_token_id = None, &[Fault::NotBound]);
        with("tool", &|c| c.tool_id = None, &[]);
        with("arguments", &|c| c.args_hash = None, &[]);
        with("provenance", &|c| c.provenance = None, &[]);
        with("envelope", &|c| c.call_hash = None, &[]);
        with("manifest", &|c| c.manifest = None, &[Fault::Tool]);
        with("a run", &|c| c.enforcement = Some(Enforcement::None), &[]);
        with("all", &|c| *c = none_of(c), &[Fault::NotBound, Fault::Policy]);
        let invented = Some(SnapshotId::from_bytes([3; 32]));
        with("a head", &|c| (c.state_snapshot_id, c.head) = (None, invented), &[]);
    }
}

/// What is left is that somebody of the session called, and what the policy said.
fn none_of(call: &CallFields) -> CallFields {
    CallFields {
        agent_id: call.agent_id.clone(),
        session: call.session,
        decision: call.decision.clone(),
        result_hash: call.result_hash,
        used: call.used,
        ..CallFields::unknown()
    }
}

#[test]
fn it_is_its_sessions_under_the_policy_in_force() {
    let log = base();
    let other = PolicyHash::from_bytes([9; 32]);
    for place in ALL {
        check(
            &log,
            &[
                (
                    "never in force",
                    &|r| of(r, place).policy_hash = Some(other),
                    &[(place, Fault::Policy)],
                ),
                (
                    "not yet in force",
                    &|r| {
                        let change = PolicyChange { policy: hash(0), shadow: None };
                        insert(r, 17, Body::Policy(boxed(event(&home(r), 9, &change))));
                        of(r, place).policy_hash = Some(hash(1));
                    },
                    &[(place, Fault::Policy)],
                ),
                (
                    "another's token",
                    &|r| of(r, place).capability_token_id = Some(issue(&mut r[6]).token),
                    &[(place, Fault::NotBound)],
                ),
            ],
        );
    }
    // A token that is bound to the first policy, and a second one in force.
    let store = small_with(
        |body| body.policy = Some(hash(0)),
        |driver, session| {
            driver.call(session, &call("post", 13));
            driver.set_policy(1);
        },
    );
    let after = DENIED + 1;
    check(
        &Log::of(&store),
        &[
            ("the one before", &|r| shift(r, after, DENIED), &[(after, Fault::Policy)]),
            (
                "not the token's",
                &|r| {
                    shift(r, after, DENIED);
                    of(r, after).policy_hash = Some(hash(1));
                },
                &[(after, Fault::Policy)],
            ),
        ],
    );
}

fn freezes(records: &mut Vec<Record>, target: FreezeTarget, name: &str) {
    let freeze = Freeze { target, name: name.into(), change: FreezeChange::Freeze };
    let body = Body::Freeze(boxed(event(&home(records), 1, &freeze)));
    insert(records, DENIED, body);
}

fn ends(records: &mut [Record], place: usize, time: u64) {
    for record in &mut records[place..] {
        date(record, UnixMillis::new(time));
    }
}

#[test]
fn its_token_was_live() {
    let all = |fault| ALL.map(|place| (place + 1, fault));
    let frozen = all(Fault::Frozen);
    check(
        &base(),
        &[
            (
                "revoked",
                &|r| {
                    let revocation = Revocation::subtree(issue(&mut r[4]).token);
                    insert(r, DENIED, Body::Revoke(boxed(event(&home(r), 1, &revocation))));
                },
                &all(Fault::Revoked),
            ),
            ("frozen agent", &|r| freezes(r, FreezeTarget::Agent, "ada"), &frozen),
            (
                "frozen tool",
                &|r| freezes(r, FreezeTarget::Tool, "post"),
                &[(DENIED + 1, Fault::Frozen), (OVER + 1, Fault::Frozen)],
            ),
            ("frozen kernel", &|r| freezes(r, FreezeTarget::Kernel, ""), &frozen),
            ("expired", &|r| ends(r, OVER, START_MS + HOUR_MS), &[(OVER, Fault::Expired)]),
            ("in the last moment", &|r| ends(r, OVER, START_MS + HOUR_MS - 1), &[]),
        ],
    );
    let later = small_with(
        |body| body.not_before = UnixMillis::new(START_MS + 600),
        |driver, session| {
            driver.pass(600);
            driver.call(session, &call("post", 13));
        },
    );
    let log = Log::of(&later);
    let place = *log.places(Kind::Refusal).last().unwrap();
    check(&log, &[("early", &|r| ends(r, place, START_MS + 599), &[(place, Fault::NotYetValid)])]);
}

/// Nobody confirms the time.
fn unconfirm(records: &mut Vec<Record>, config: usize) {
    drop(remove(records, config));
    gap_from(records, config);
}

#[test]
fn the_time_was_confirmed() {
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
    driver.call(session, &call("post", 13));
    driver.shutdown();
    driver.flush();
    let log = Log::of(&driver.store);
    let (config, place) = (log.places(Kind::Config)[0], log.places(Kind::Refusal)[0]);
    let unconfirmed: &[(usize, Fault)] = &[(place - 1, Fault::ClockUnconfirmed)];
    check(&log, &[("not confirmed", &|r| unconfirm(r, config), unconfirmed)]);
}

#[test]
fn its_token_granted_the_tool() {
    let log = base();
    let names = |place: usize, name: &'static str, id: Option<ObjectId>| {
        move |r: &mut Vec<Record>| {
            let call = of(r, place);
            call.tool_id = Some(tool(name));
            call.manifest = id.or(call.manifest);
        }
    };
    let none = |place| [(place, Fault::NotGranted), (place, Fault::Tool)];
    let post = Tool::manifest(&Post::new()).id();
    let echo = ReadTool::manifest(&Echo::new()).id();
    for place in ALL {
        check(
            &log,
            &[
                ("no such tool", &names(place, "none", None), &none(place)),
                ("another's manifest", &names(place, "echo", None), &[(place, Fault::Tool)]),
            ],
        );
    }
    check(&log, &[("both", &names(DENIED, "echo", Some(echo)), &[])]);
    // A token for `echo` alone, and one that is read only: what of `post` was refused before a
    // policy was asked is said to have been denied by one.
    let echoes = |body: &mut syscap_format::token::TokenBody| {
        body.grants = Grants::new().with(tool("echo"), Grant::new());
    };
    let reads = |body: &mut syscap_format::token::TokenBody| body.flags = TokenFlags::READ_ONLY;
    let granted = Log::of(&small_with(echoes, |_, _| {}));
    let read_only = Log::of(&small_with(reads, |_, _| {}));
    for (log, fault) in [(granted, Fault::NotGranted), (read_only, Fault::ReadOnlyToken)] {
        let place = log.places(Kind::Refusal)[0];
        let denied = |r: &mut Vec<Record>| {
            refusal(&mut r[place]).reason = Reason::Denied;
            let args_hash = super::tools::intent(&mut r[8]).call.args_hash;
            let call = of(r, place);
            assert_eq!(call.manifest, Some(post));
            call.args_hash = args_hash;
            call.decision = Some(Decision::plain(Verdict::Deny));
        };
        check(&log, &[("decided", &denied, &[(place, fault)])]);
    }
}

#[test]
fn no_policy_is_asked_where_no_call_is_left() {
    let log = Log::of(&small(|driver, session| {
        for _ in 0..38 {
            driver.call(session, ECHO);
        }
    }));
    let place = log.places(Kind::Refusal)[0];
    let denied = |r: &mut Vec<Record>| {
        refusal(&mut r[place]).reason = Reason::Denied;
        let args_hash = super::tools::intent(&mut r[8]).call.args_hash;
        let call = of(r, place);
        assert_eq!(call.used, Amounts::ZERO);
        (call.args_hash, call.decision) = (args_hash, Some(Decision::plain(Verdict::Deny)));
    };
    check(&log, &[("decided", &denied, &[(place, Fault::OverBudget)])]);
}

#[test]
fn an_exhausted_token_is_one() {
    let store = small(|driver, session| {
        let ticket = driver.ticket();
        let amounts = Amounts::ZERO.with(Dimension::CreditsMicro, 1 << 40);
        driver.event(syscap_kernel::kernel::Event::Charge(ticket, session, amounts));
        driver.acked(ticket).unwrap();
        driver.call(session, ECHO);
    });
    let log = Log::of(&store);
    let place = log.places(Kind::Refusal)[0];
    check(
        &log,
        &[
            (
                "over its budget",
                &|r| refusal(&mut r[place]).reason = Reason::OverBudget,
                &[(place, Fault::Exhausted)],
            ),
            ("not charged", &|r| drop(remove(r, place - 1)), &[(place - 1, Fault::Exhausted)]),
        ],
    );
}
