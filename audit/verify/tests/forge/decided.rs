//! Refused calls that no policy could have been asked about.

use syscap_audit::MemoryStore;
use syscap_format::{
    Amounts, Body, CallFields, ConfigChange, Decision, Dimension, Freeze, FreezeChange,
    FreezeTarget, Grants, ObjectId, Reason, Record, RecordKind, Revocation, Role, TokenFlags,
    ToolGrant, UnixMillis, Verdict,
};
use syscap_kernel::{ReadTool, Tool};
use syscap_verify::Fault;

use super::check;
use super::tools::{boxed, date, event, gap_from, home, insert, issue, refusal, remove};
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{ECHO, call, narrow, small, small_with};
use kernel_support::driver::tools::{Echo, Post};
use kernel_support::driver::{Driver, HOUR_MS, START_MS, agent, tool};

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
    assert_eq!(log.places(RecordKind::Refusal), ALL);
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
    let place = *log.places(RecordKind::Refusal).last().unwrap();
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
    let (config, place) = (log.places(RecordKind::Config)[0], log.places(RecordKind::Refusal)[0]);
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
    let echoes = |body: &mut syscap_format::TokenBody| {
        body.grants = Grants::new().with(tool("echo"), ToolGrant::new());
    };
    let reads = |body: &mut syscap_format::TokenBody| body.flags = TokenFlags::READ_ONLY;
    let granted = Log::of(&small_with(echoes, |_, _| {}));
    let read_only = Log::of(&small_with(reads, |_, _| {}));
    for (log, fault) in [(granted, Fault::NotGranted), (read_only, Fault::ReadOnlyToken)] {
        let place = log.places(RecordKind::Refusal)[0];
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
fn an_exhausted_token_is_one() {
    let store = small(|driver, session| {
        let ticket = driver.ticket();
        let amounts = Amounts::ZERO.with(Dimension::CreditsMicro, 1 << 40);
        driver.event(syscap_kernel::Event::Charge(ticket, session, amounts));
        driver.acked(ticket).unwrap();
        driver.call(session, ECHO);
    });
    let log = Log::of(&store);
    let place = log.places(RecordKind::Refusal)[0];
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
