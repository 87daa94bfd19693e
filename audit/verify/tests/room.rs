//! As many as there is room for are sound, and one more is found.

use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{self, ECHO, named};
use kernel_support::driver::{Driver, agent, body};
use syscap_audit::MemoryStore;
use syscap_format::{
    ANCESTORS_MAX, ApprovalAnswer, Dimension, RELEASED_MAX, RecordKind, SETS_MAX, Seq, Source,
};
use syscap_verify::Fault;

type World = Driver<MemoryStore>;

fn seat(driver: &mut World, name: &str, nonce: usize) -> Seq {
    let nonce = u8::try_from(nonce % 251).unwrap();
    let mut token = body(driver.kernel.home(), nonce, &agent(name));
    token.budget = token.budget.with(Dimension::Calls, 10_000);
    let token = driver.issue(&token);
    driver.session(&agent(name), token)
}

fn log(mut driver: World) -> Log {
    driver.flush();
    assert!(driver.error.is_none());
    Log::of(&driver.crash())
}

/// A state rests on the oldest of the results that the session remembers.
#[test]
fn state_rests_on_the_last_1024_results() {
    let mut driver = Driver::ready(MemoryStore::new());
    let session = seat(&mut driver, "ada", 1);
    driver.call(session, ECHO);
    let first = driver.replies.last().unwrap().1.receipt().outcome_seq;
    for _ in 1..RELEASED_MAX {
        driver.call(session, ECHO);
    }
    let fact = r#"{"fact.seen":1}"#;
    driver.propose_from(session, Source::Tool, vec![first], fact).unwrap();
    assert_eq!(log(driver).faults(), []);
}

/// A call names the oldest snapshot that its agent's state knows.
#[test]
fn call_names_one_of_the_last_1024_snapshots() {
    let mut driver = Driver::ready(MemoryStore::new());
    let session = seat(&mut driver, "ada", 1);
    let first = driver.propose(session, Source::Agent, r#"{"goal.n":0}"#).unwrap();
    for n in 1..=ANCESTORS_MAX {
        driver.propose(session, Source::Agent, &format!(r#"{{"goal.n":{n}}}"#)).unwrap();
    }
    let ticket = driver.call(session, &named("trim", 8, &first));
    assert_eq!(driver.reply(ticket).reason(), None);
    assert_eq!(log(driver).faults(), []);
}

/// A call runs under the oldest of the approvals that stand.
#[test]
fn call_runs_under_one_of_1024_approvals() {
    let mut driver = Driver::ready(MemoryStore::new());
    let mut sessions = Vec::new();
    for n in 0..SETS_MAX {
        let session = seat(&mut driver, &format!("a{n}"), n);
        driver.call(session, &scenario::call("post", 17));
        scenario::answer_uses(&mut driver, ApprovalAnswer::Set, Some(2));
        sessions.push(session);
    }
    let ticket = driver.call(sessions[0], &scenario::call("post", 17));
    assert_eq!(driver.reply(ticket).reason(), None);
    assert_eq!(log(driver).faults(), []);
}

/// Of 1,024 requests that wait no agent has as many as it may.
#[test]
fn request_beyond_1024_is_found() {
    let mut driver = Driver::ready(MemoryStore::new());
    for n in 0..1_024 {
        let session = match n % 31 {
            0 => seat(&mut driver, &format!("a{n}"), n),
            _ => driver.kernel.sessions().last().unwrap().number,
        };
        let args = format!(r#"{{"bytes": 17, "script": "{n}"}}"#);
        driver.call(session, &format!(r#"{{"tool_id": "disk.write", "args": {args}}}"#));
    }
    let mut log = log(driver);
    let asks = log.places(RecordKind::Ask);
    assert_eq!((asks.len(), log.faults()), (1_024, vec![]));
    let last = *asks.last().unwrap();
    log.forge(|records| records.push(records[last].clone()));
    assert_eq!(log.faults(), [(last + 1, Fault::AskForm)]);
}
