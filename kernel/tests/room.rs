//! As many as there is room for, and one more.

use kernel_support::driver::scenario::{self, ECHO};
use kernel_support::driver::{Driver, agent, body};
use syscap_audit::MemoryStore;
use syscap_format::{ApprovalAnswer, Dimension, RELEASED_MAX, Reason, SESSIONS_MAX, SETS_MAX, Seq};
use syscap_kernel::Event;

/// Requests of one agent that wait, and of all agents.
const ASKS_OF_AGENT_MAX: usize = 32;
const ASKS_MAX: usize = 1_024;

fn world() -> Driver<MemoryStore> {
    Driver::ready(MemoryStore::new())
}

fn seat(driver: &mut Driver<MemoryStore>, n: usize) -> Seq {
    driver.agent(&format!("a{n}"), u8::try_from(n % 251).unwrap()).1
}

/// Calls what a person is asked about; how many requests wait then.
fn ask(driver: &mut Driver<MemoryStore>, session: Seq, n: usize) -> usize {
    let args = format!(r#"{{"bytes": 17, "script": "{n}"}}"#);
    let ticket = driver.call(session, &format!(r#"{{"tool_id": "disk.write", "args": {args}}}"#));
    assert_eq!(driver.reply(ticket).reason(), Some(Reason::Asked));
    driver.kernel.asks().count()
}

#[test]
fn agent_has_32_requests_that_wait() {
    let mut driver = world();
    let session = seat(&mut driver, 1);
    for n in 1..=ASKS_OF_AGENT_MAX {
        assert_eq!(ask(&mut driver, session, n), n);
    }
    assert_eq!(ask(&mut driver, session, 99), ASKS_OF_AGENT_MAX);
    let other = seat(&mut driver, 2);
    assert_eq!(ask(&mut driver, other, 99), ASKS_OF_AGENT_MAX + 1);
}

#[test]
fn home_has_1024_requests_that_wait() {
    let mut driver = world();
    for n in 0..ASKS_MAX / ASKS_OF_AGENT_MAX {
        let session = seat(&mut driver, n);
        let before = n * ASKS_OF_AGENT_MAX;
        for n in 1..=ASKS_OF_AGENT_MAX {
            assert_eq!(ask(&mut driver, session, n), before + n);
        }
    }
    let session = seat(&mut driver, 99);
    assert_eq!(ask(&mut driver, session, 0), ASKS_MAX);
}

/// Of more approvals that stand the oldest goes: it is asked about again.
#[test]
fn approvals_that_stand_are_1024() {
    let mut driver = world();
    let mut first = None;
    for n in 0..=SETS_MAX {
        let session = seat(&mut driver, n);
        driver.call(session, &scenario::call("post", 17));
        scenario::answer_uses(&mut driver, ApprovalAnswer::Set, Some(2));
        let sets: Vec<Seq> = driver.kernel.sets().map(|set| set.set).collect();
        let oldest = *first.get_or_insert(sets[0]);
        assert_eq!(sets.len(), (n + 1).min(SETS_MAX));
        assert_eq!(sets.contains(&oldest), n < SETS_MAX);
    }
}

#[test]
fn session_refers_to_its_last_1024_results() {
    let mut driver = world();
    let mut token = body(driver.kernel.home(), 1, &agent("ada"));
    token.budget = token.budget.with(Dimension::Calls, 10_000);
    let token = driver.issue(&token);
    let session = driver.session(&agent("ada"), token);
    let answer = |driver: &mut Driver<MemoryStore>, json: &str| {
        let ticket = driver.call(session, json);
        driver.reply(ticket).clone()
    };
    let first = answer(&mut driver, ECHO).receipt().outcome_seq;
    let reference = format!(r#"{{"$ref": {{"record": {first}, "path": []}}}}"#);
    let refers = format!(r#"{{"tool_id": "echo", "args": {{"text": {reference}}}}}"#);
    for _ in 1..RELEASED_MAX {
        answer(&mut driver, ECHO);
    }
    // The result is no text, but it is there.
    assert_eq!(answer(&mut driver, &refers).reason(), Some(Reason::BadArgument));
    answer(&mut driver, ECHO);
    assert_eq!(answer(&mut driver, &refers).reason(), Some(Reason::UnknownReference));
}

#[test]
fn home_has_65536_sessions() {
    let mut driver = world();
    let (token, _) = driver.agent("ada", 1);
    let open = |driver: &mut Driver<MemoryStore>| {
        let ticket = driver.ticket();
        driver.kernel.handle(Event::OpenSession(ticket, agent("ada"), token, None), driver.reading);
        ticket
    };
    for _ in 1..SESSIONS_MAX {
        open(&mut driver);
    }
    driver.pump();
    driver.flush();
    assert_eq!(driver.kernel.sessions().count(), SESSIONS_MAX);
    let one_more = open(&mut driver);
    driver.pump();
    let refused = driver.acked(one_more).unwrap_err();
    assert_eq!(refused.reason(), Reason::TooManySessions);
    assert_eq!(driver.kernel.sessions().count(), SESSIONS_MAX);
}
