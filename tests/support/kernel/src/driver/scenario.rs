//! A log with every kind of record that this version writes.

use super::log::Log;
use super::tools::AllowAll;
use super::{Driver, HOUR_MS, Run, agent, body, key, new_home, parts, signed, start};
use ed25519_dalek::SigningKey;
use syscap_audit::MemoryStore;
use syscap_format::{
    AgentId, Amounts, ApprovalAnswer, ApprovalBody, ApprovalChannel, Budget, Confidentiality,
    ConfigChange, ControlBody, CreditChange, Dimension, Form, Freeze, FreezeBecause, FreezeChange,
    FreezeTarget, HomeLimits, Input, Integrity, Label, LateReport, PolicyBecause, PolicyChange,
    RecordKind, Recovered, RedactBody, Refused, Resolution, ResultHash, Revocation, Role, Salt,
    Seq, SnapshotId, Source, Status, TokenBody, TokenId, TxOutcome, UnixMillis, VaultText,
};
use syscap_kernel::{Ack, Event, Kernel, Lost, Store, Submit, Ticket, WithRows};

pub fn call(tool: &str, bytes: u64) -> String {
    format!(r#"{{"tool_id":"{tool}","args":{{"bytes":{bytes}}}}}"#)
}

pub fn keyed(tool: &str, bytes: u64, key: &str) -> String {
    format!(r#"{{"tool_id":"{tool}","args":{{"bytes":{bytes}}},"idempotency_key":"{key}"}}"#)
}

pub const ECHO: &str = r#"{"tool_id":"echo","args":{}}"#;

/// A home that admits four calls at a time.
pub fn narrow(store: MemoryStore) -> Driver<MemoryStore> {
    let mut home = new_home(7);
    home.limits = HomeLimits { in_flight_max: 4, ..HomeLimits::default() };
    let kernel = Kernel::create(home, parts(AllowAll::new(0)), start()).unwrap();
    let mut driver = Driver::with(kernel, store, start());
    driver.boot();
    driver.set_tools();
    driver.set_policy(0);
    driver
}

pub fn freeze(target: FreezeTarget, name: &str, change: FreezeChange) -> Freeze {
    Freeze { target, name: Box::from(name), change }
}

/// Runs everything once, but for what names records by their leaves.
pub fn everything() -> MemoryStore {
    everything_and(|_, _| {})
}

/// Runs everything once.
pub fn every_kind() -> MemoryStore {
    everything_and(|driver, session| {
        asks(driver, session);
        erases(driver);
        reasons(driver);
        let (intent, _) = driver.kernel.unreported().last().unwrap();
        report(driver, intent, TxOutcome::Committed).unwrap();
    })
}

/// Reports a run that was closed without its provider's word: a result with an effect.
pub fn report<S: Store>(
    driver: &mut Driver<S>,
    intent: Seq,
    tx: TxOutcome,
) -> Result<Ack, Refused> {
    let (status, label) = (Status::Ok, Label::PUBLIC);
    let result_hash = ResultHash::from_bytes([8; 32]);
    let ticket = driver.ticket();
    let report = LateReport { intent, status, result_hash, tx, label };
    driver.event(Event::Reported(ticket, report));
    driver.acked(ticket)
}

/// A freeze, its end and a policy, each for a reason.
fn reasons<S: Store>(driver: &mut Driver<S>) {
    let text = |field| VaultText { salt: Salt::from_bytes([9; 32]), field, text: "a fire".into() };
    for freeze in [Freeze::agent(&agent("bob")), Freeze::agent(&agent("bob")).thaw()] {
        let text = text(FreezeBecause::CAUSE);
        let body = FreezeBecause::new(freeze, text.hash()).to_bytes();
        // The revoker has another key by now.
        let signer = match driver.kernel.limits().role_of(RecordKind::Freeze, &body).unwrap() {
            Role::Revoker => SigningKey::from_bytes(&[77; 32]),
            role => key(role),
        };
        let control = driver.sign(&signer, RecordKind::Freeze, body);
        let ticket = driver.ticket();
        driver.event(Event::Control(ticket, RecordKind::Freeze, control, None, Some(text)));
        driver.acked(ticket).unwrap();
    }
    let (text, shadow) = (text(PolicyBecause::CAUSE), driver.kernel.shadow_hash());
    let change = PolicyChange { policy: driver.kernel.policy_hash().unwrap(), shadow };
    let body = PolicyBecause::new(change, text.hash()).to_bytes();
    let control = driver.sign(&key(Role::Policy), RecordKind::Policy, body);
    let ticket = driver.ticket();
    driver.event(Event::Policy(ticket, control, None, Vec::new(), Some(text)));
    driver.acked(ticket).unwrap();
}

fn everything_and(more: impl FnOnce(&mut Driver<MemoryStore>, Seq)) -> MemoryStore {
    let mut driver = narrow(MemoryStore::new());
    let (_, ada) = driver.agent("ada", 1);
    calls(&mut driver, ada);
    refusals(&mut driver);
    states(&mut driver);
    stops(&mut driver, ada);
    not_run(&mut driver);
    late(&mut driver, ada);
    overload(&mut driver, ada);
    control(&mut driver);
    let mut driver = crash(driver, ada);
    driver.pass(10);
    let (token, session) = driver.agent("ada", 9);
    driver.call(session, &call("disk.write", 5));
    more(&mut driver, session);
    charge(&mut driver, session);
    said(&mut driver, session, "ada");
    driver.call(session, &call("disk.write", 6));
    let ticket = driver.ticket();
    driver.event(Event::CloseSession(ticket, session));
    driver.acked(ticket).unwrap();
    driver.session(&agent("ada"), token);
    driver.shutdown();
    driver.flush();
    assert!(driver.error.is_none() && driver.kernel.halted().is_none());
    driver.crash()
}

fn calls<S: Store>(driver: &mut Driver<S>, session: Seq) {
    for json in [
        ECHO.into(),
        call("disk.write", 100),
        keyed("post", 40, "turn-1:0"),
        keyed("post", 40, "turn-1:0"),
        call("post", 13),
        r#"{"tool_id":"none","args":{}}"#.into(),
        r#"{"tool_id":"post","args":{"bytes":9,"fail":true}}"#.into(),
        "{".into(),
    ] {
        driver.pass(3);
        driver.call(session, &json);
    }
    let refused = driver.replies.iter().filter(|(_, reply)| reply.status() == Status::Error);
    assert_eq!(refused.count(), 4);
    charge(driver, session);
}

/// What a user says, in the session of an agent.
pub fn said<S: Store>(driver: &mut Driver<S>, session: Seq, agent: &str) {
    let ticket = driver.ticket();
    let text = VaultText { salt: Salt::from_bytes([7; 32]), field: 12, text: "bees".into() };
    let (agent, label) =
        (AgentId::new(agent).unwrap(), Label::new(Integrity::Trusted, Confidentiality::Internal));
    let input = Input { session, agent, text: text.hash(), label };
    driver.event(Event::Heard(ticket, Box::new(input), text));
    driver.acked(ticket).unwrap();
}

fn charge<S: Store>(driver: &mut Driver<S>, session: Seq) {
    let ticket = driver.ticket();
    let amounts = Amounts::ZERO.with(Dimension::CreditsMicro, 10);
    driver.event(Event::Charge(ticket, session, amounts));
    driver.acked(ticket).unwrap();
}

/// One call is approved and runs, another is refused.
fn asks<S: Store>(driver: &mut Driver<S>, session: Seq) {
    for (bytes, said) in [(17, ApprovalAnswer::Once), (33, ApprovalAnswer::Deny)] {
        driver.call(session, &call("post", bytes));
        driver.call(session, &call("post", bytes));
        answer(driver, said);
        driver.call(session, &call("post", bytes));
    }
}

/// An operator has the rows of the last call erased.
fn erases(driver: &mut Driver<MemoryStore>) {
    let kinds = [RecordKind::Intent, RecordKind::Outcome];
    let log = Log::of(&driver.store);
    let mut records = kinds.map(|kind| Seq::new(*log.places(kind).last().unwrap() as u64));
    records.sort_unstable();
    let rows = WithRows::find(&mut driver.store, &records).unwrap().unwrap();
    let body = RedactBody { records: records.to_vec(), cause: None };
    let control = driver.sign(&key(Role::Operator), RecordKind::Redact, body.to_bytes());
    let ticket = driver.ticket();
    driver.event(Event::Redact(ticket, control, None, rows, None));
    driver.flush();
    driver.acked(ticket).unwrap();
}

/// Answers the call that waits last.
pub fn answer<S: Store>(driver: &mut Driver<S>, answer: ApprovalAnswer) {
    answer_uses(driver, answer, None);
}

/// The same, for so many calls.
pub fn answer_uses<S: Store>(driver: &mut Driver<S>, answer: ApprovalAnswer, uses: Option<u64>) {
    answer_until(driver, answer, uses, None);
}

/// The same, to that end.
pub fn answer_until<S: Store>(
    driver: &mut Driver<S>,
    answer: ApprovalAnswer,
    uses: Option<u64>,
    expires: Option<UnixMillis>,
) {
    let ask = driver.kernel.asks().last().unwrap().leaf;
    let (scopes, reason) = (None, None);
    let means = ApprovalChannel::Signer;
    let body = ApprovalBody { ask, answer, means, scopes, uses, expires, reason };
    let control = driver.sign(&key(Role::Approver), RecordKind::Approval, body.to_bytes());
    let ticket = driver.ticket();
    driver.event(Event::Control(ticket, RecordKind::Approval, control, None, None));
    driver.acked(ticket).unwrap();
}

/// A flood, up to the second aggregate, broken by a call that is admitted.
fn refusals<S: Store>(driver: &mut Driver<S>) {
    let (_, bob) = driver.agent("bob", 2);
    for _ in 0..90 {
        driver.call(bob, &call("post", 13));
    }
    driver.call(bob, ECHO);
    for _ in 0..20 {
        driver.call(bob, "[]");
    }
    driver.pass(61_000);
    driver.event(Event::Tick);
    for _ in 0..20 {
        let ticket = driver.ticket();
        driver.event(Event::Issue(ticket, vec![0], None));
        driver.acked(ticket).unwrap_err();
    }
}

/// An agent's state, what is decided on it, and what a shadow says beside.
fn states<S: Store>(driver: &mut Driver<S>) {
    let (_, dan) = driver.agent("dan", 5);
    driver.call(dan, ECHO);
    let result = driver.replies.last().unwrap().1.receipt().outcome_seq;
    let first = driver.propose(dan, Source::Agent, r#"{"goal.a":1,"goal.b":"x"}"#).unwrap();
    let fact = r#"{"fact.seen":[1,2]}"#;
    driver.propose_from(dan, Source::Tool, vec![result], fact).unwrap();
    driver.set_policies(0, Some(9));
    for bytes in 1..8 {
        driver.call(dan, &call("trim", bytes));
    }
    driver.call(dan, &named("trim", 1, &first));
    driver.call(dan, &named("trim", 5, &first));
    driver.propose(dan, Source::User, r#"{"goal.a":null,"goal.b":2}"#).unwrap();
    driver.propose(dan, Source::Tool, r#"{"goal.a":1}"#).unwrap_err();
    driver.propose_from(dan, Source::Tool, vec![Seq::new(1)], fact).unwrap_err();
    driver.set_policy(0);
    driver.call(dan, &call("trim", 1));
}

/// A call that names a snapshot.
pub fn named(tool: &str, bytes: u64, snapshot: &SnapshotId) -> String {
    let json = call(tool, bytes);
    format!(r#"{},"state_snapshot_id":"{snapshot}"}}"#, &json[..json.len() - 1])
}

fn stops<S: Store>(driver: &mut Driver<S>, session: Seq) {
    for (target, name) in
        [(FreezeTarget::Agent, "ada"), (FreezeTarget::Tool, "echo"), (FreezeTarget::Kernel, "")]
    {
        driver.control(Role::Revoker, &freeze(target, name, FreezeChange::Freeze)).unwrap();
        driver.call(session, ECHO);
        driver.control(Role::Operator, &freeze(target, name, FreezeChange::Thaw)).unwrap();
    }
    driver.run = Run::Later;
    driver.call(session, &call("post", 30));
    let tool = |change| freeze(FreezeTarget::Tool, "post", change);
    driver.control(Role::Revoker, &tool(FreezeChange::Freeze)).unwrap();
    let ran = driver.jobs.remove(0).run();
    driver.ran(ran);
    driver.control(Role::Operator, &tool(FreezeChange::Thaw)).unwrap();
    driver.run = Run::AtOnce;
}

/// Two tokens are revoked: one before its call's permit, one during the run.
fn not_run<S: Store>(driver: &mut Driver<S>) {
    let (token, session) = driver.agent("carol", 3);
    submit(driver, session, &keyed("post", 20, "k"));
    revoke(driver, token);
    assert_eq!(driver.replies.last().unwrap().1.reason().unwrap().code(), 753);
    let (token, session) = driver.agent("carol", 4);
    driver.run = Run::Later;
    driver.call(session, &call("post", 30));
    revoke(driver, token);
    let ran = driver.jobs.remove(0).run();
    driver.ran(ran);
    driver.run = Run::AtOnce;
    driver.call(session, ECHO);
}

/// Hands a call in and leaves its records where they are.
pub fn submit<S: Store>(driver: &mut Driver<S>, session: Seq, json: &str) -> Ticket {
    let ticket = driver.ticket();
    let submit = Submit {
        proof: None,
        unasked: false,
        ticket,
        session,
        received: json.as_bytes().to_vec(),
        form: Form::Json,
        source: Source::Agent,
        salts: super::salts(ticket.0),
    };
    driver.kernel.handle(Event::Submit(submit), driver.reading);
    ticket
}

fn revoke<S: Store>(driver: &mut Driver<S>, token: TokenId) {
    driver.control(Role::Revoker, &Revocation::subtree(token)).unwrap();
}

fn late<S: Store>(driver: &mut Driver<S>, session: Seq) {
    driver.run = Run::Later;
    driver.call(session, &keyed("post", 50, "slow"));
    let job = driver.jobs.remove(0);
    driver.lost(job.intent(), Lost::TimedOut);
    driver.pass(5);
    driver.ran(job.run());
    driver.call(session, &call("post", 51));
    let job = driver.jobs.remove(0);
    driver.lost(job.intent(), Lost::Panicked);
    driver.call(session, ECHO);
    let job = driver.jobs.remove(0);
    driver.lost(job.intent(), Lost::Abandoned);
    driver.call(session, &call("post", 52));
    let job = driver.jobs.remove(0);
    let ticket = driver.ticket();
    driver.event(Event::Cancel(ticket, session, job.intent()));
    driver.ran(job.run());
    driver.run = Run::AtOnce;
}

fn overload<S: Store>(driver: &mut Driver<S>, session: Seq) {
    driver.run = Run::Later;
    for _ in 0..6 {
        driver.call(session, &call("disk.write", 2));
    }
    assert_eq!(driver.jobs.len(), 4);
    for job in std::mem::take(&mut driver.jobs) {
        driver.ran(job.run());
    }
    driver.run = Run::AtOnce;
}

/// Another policy, another revoker, the time confirmed, and a stale counter.
fn control<S: Store>(driver: &mut Driver<S>) {
    driver.set_policy(1);
    let other = SigningKey::from_bytes(&[77; 32]);
    let change = super::key_change(&driver.kernel.home(), Role::Revoker, &other);
    driver.control(Role::Operator, &change).unwrap();
    let kernel = |change| freeze(FreezeTarget::Kernel, "", change);
    driver.control(Role::Revoker, &kernel(FreezeChange::Freeze)).unwrap_err();
    driver.control_by(&other, &kernel(FreezeChange::Freeze)).unwrap();
    driver.control_by(&other, &kernel(FreezeChange::Thaw)).unwrap_err();
    driver.control(Role::Operator, &kernel(FreezeChange::Thaw)).unwrap();
    let confirm = ConfigChange { confirm_time: Some(driver.reading.wall) };
    driver.control(Role::Operator, &confirm).unwrap();
    let nobody = AgentId::new("nobody").unwrap();
    driver.control(Role::Operator, &CreditChange { agent: nobody, added: 5 }).unwrap();
    let stale = signed(
        &driver.kernel.home(),
        &key(Role::Operator),
        1,
        RecordKind::Config,
        confirm.to_bytes(),
    );
    let ticket = driver.ticket();
    driver.event(Event::Control(ticket, RecordKind::Config, stale, None, None));
    driver.acked(ticket).unwrap_err();
}

/// A crash with three calls running; an operator finds out about one.
fn crash(mut driver: Driver<MemoryStore>, session: Seq) -> Driver<MemoryStore> {
    driver.run = Run::Later;
    driver.call(session, &keyed("disk.write", 7, "lost"));
    driver.call(session, &call("disk.write", 8));
    driver.call(session, ECHO);
    driver.flush();
    let intent = driver.jobs[0].intent();
    let mut reading = driver.reading;
    reading.wall = reading.wall.plus(HOUR_MS / 60);
    reading.boottime_ms = 5;
    let mut driver = Driver::open(driver.crash(), reading, 1).unwrap();
    driver.boot();
    let resolution = Resolution { intent, verdict: Recovered::NotDone };
    driver.control(Role::Operator, &resolution).unwrap();
    driver
}

/// A small log: two agents, three calls of the first, then `more`; shut down.
///
/// | place | record |
/// |---|---|
/// | 0 to 3 | genesis, boot, tools, policy |
/// | 4, 5 | token and session of ada |
/// | 6, 7 | token and session of bob |
/// | 8, 9 | intent and outcome of `echo` |
/// | 10, 11 | of `post`, 100 bytes, key `first` |
/// | 12, 13 | of `disk.write`, 50 bytes |
/// | 14 .. | more, two closed sessions, shutdown |
pub fn small(more: impl FnOnce(&mut Driver<MemoryStore>, Seq)) -> MemoryStore {
    small_with(|_| {}, more)
}

/// The same, with another token for ada.
pub fn small_with(
    token: impl FnOnce(&mut TokenBody),
    more: impl FnOnce(&mut Driver<MemoryStore>, Seq),
) -> MemoryStore {
    let mut driver = narrow(MemoryStore::new());
    let mut body = body(driver.kernel.home(), 1, &agent("ada"));
    body.budget = Budget::standard()
        .with(Dimension::Calls, 40)
        .with(Dimension::EgressBytes, 1_000)
        .with(Dimension::Concurrent, 3);
    token(&mut body);
    let token = driver.issue(&body);
    let session = driver.session(&agent("ada"), token);
    driver.agent("bob", 2);
    driver.call(session, ECHO);
    driver.call(session, &keyed("post", 100, "first"));
    driver.call(session, &call("disk.write", 50));
    more(&mut driver, session);
    driver.shutdown();
    driver.flush();
    assert!(driver.error.is_none() && driver.kernel.halted().is_none());
    driver.crash()
}
