//! Reasons that the kernel gives only after a crash, an erasure, a gap in time, on a full disk or
//! with other tools: the verifier takes each where the kernel gave it.

use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{ECHO, call, keyed, submit};
use kernel_support::driver::tools::{AllowAll, Post};
use kernel_support::driver::{
    Driver, HOUR_MS, Run, START_MS, agent, all_parts, body, key, new_home, parts, start,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use syscap_audit::MemoryStore;
use syscap_format::{
    Body, EffectClass, Grants, Manifest, Param, ParamType, Reason, Recovered, Refused, Resolution,
    RevocationList, Role, Seq, Source, TokenBody, TokenFlags, TokenId, UnixMillis,
};
use syscap_kernel::{
    Anchor, Demands, Effect, Event, Kernel, Lost, Measured, Parts, Permit, Plan, Ran, Registry,
    Request, Room, Store, StoreError, Tool,
};

/// A store of which rows of the vault can be erased.
struct Erasable {
    inner: MemoryStore,
    erased: Arc<Mutex<BTreeSet<Seq>>>,
}

impl Store for Erasable {
    fn vault(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        let erased = self.erased.lock().unwrap().contains(&seq);
        if erased { Ok(None) } else { self.inner.vault(seq) }
    }

    /// As it was before it was erased: a row may go between the look at its length and its read.
    fn vault_len(&mut self, seq: Seq) -> Result<Option<usize>, StoreError> {
        self.inner.vault_len(seq)
    }

    kernel_support::forward!(self.inner => commit records object room);
}

type World = Driver<Erasable>;

fn world() -> World {
    Driver::ready(Erasable { inner: MemoryStore::new(), erased: Arc::default() })
}

fn erase(driver: &World, rows: &[Seq]) {
    driver.store.erased.lock().unwrap().extend(rows);
}

fn answer(driver: &mut World, session: Seq, json: &str) -> Option<Reason> {
    let ticket = driver.call(session, json);
    driver.reply(ticket).reason()
}

fn outcome(driver: &World) -> Seq {
    driver.replies.last().unwrap().1.receipt().outcome_seq
}

/// A call that refers to a result.
fn refers(record: Seq) -> String {
    let reference = format!(r#"{{"$ref":{{"record":{record},"path":[]}}}}"#);
    format!(r#"{{"tool_id":"echo","args":{{"text":{reference}}}}}"#)
}

/// The log is sound, and these are the reasons of its last refusals.
fn is_sound(mut driver: World, reasons: &[Reason]) {
    driver.shutdown();
    driver.flush();
    assert!(driver.error.is_none() && driver.kernel.halted().is_none());
    let log = Log::of(&driver.crash().inner);
    assert_eq!(log.faults(), []);
    let refused = (0..log.records.len()).filter_map(|place| match log.record(place).body {
        Body::Refusal(refusal) => Some(refusal.reason),
        _ => None,
    });
    let refused: Vec<Reason> = refused.collect();
    assert!(refused.ends_with(reasons), "{refused:?}");
}

/// The process dies, and another opens the home so much later with these tools.
fn reopened(driver: World, ms: u64, parts: Parts) -> World {
    let mut reading = driver.reading;
    reading.wall = reading.wall.plus(ms);
    reading.boottime_ms = 5;
    let mut store = driver.crash();
    let kernel = Kernel::open(&mut store, parts, &Anchor::default()).unwrap();
    let mut driver = Driver::with(kernel, store, reading);
    driver.boot();
    driver
}

/// A call with a key that a crash broke off.
fn broken_off() -> (World, TokenId, Seq) {
    let mut driver = world();
    let (token, session) = driver.agent("ada", 1);
    driver.run = Run::Later;
    driver.call(session, &keyed("post", 40, "k"));
    let intent = driver.jobs[0].intent();
    (reopened(driver, 1_000, parts(AllowAll::new(0))), token, intent)
}

#[test]
fn key_of_unknown_outcome_is_refused_in_a_sound_log() {
    let (mut driver, token, _) = broken_off();
    let session = driver.session(&agent("ada"), token);
    assert_eq!(answer(&mut driver, session, &keyed("post", 40, "k")), Some(Reason::OutcomeUnknown));
    // So it is with a run that was given up, and with one that is in flight.
    driver.run = Run::Later;
    let slow = keyed("post", 41, "slow");
    driver.call(session, &slow);
    assert_eq!(answer(&mut driver, session, &slow), Some(Reason::KeyInFlight));
    driver.lost(driver.jobs[0].intent(), Lost::Abandoned);
    assert_eq!(answer(&mut driver, session, &slow), Some(Reason::OutcomeUnknown));
    is_sound(driver, &[Reason::OutcomeUnknown, Reason::KeyInFlight, Reason::OutcomeUnknown]);
}

#[test]
fn key_of_lost_outcome_is_refused_in_a_sound_log() {
    let (mut driver, token, intent) = broken_off();
    let resolution = Resolution { intent, verdict: Recovered::Done };
    driver.control(Role::Operator, &resolution).unwrap();
    let session = driver.session(&agent("ada"), token);
    assert_eq!(answer(&mut driver, session, &keyed("post", 40, "k")), Some(Reason::OutcomeLost));
    assert_eq!(answer(&mut driver, session, &keyed("post", 41, "k")), Some(Reason::KeyReused));
    is_sound(driver, &[Reason::OutcomeLost, Reason::KeyReused]);
}

#[test]
fn key_of_erased_outcome_is_refused_in_a_sound_log() {
    let mut driver = world();
    let (_, session) = driver.agent("ada", 1);
    let first = keyed("post", 40, "k");
    assert_eq!(answer(&mut driver, session, &first), None);
    let outcome = outcome(&driver);
    erase(&driver, &[outcome]);
    assert_eq!(answer(&mut driver, session, &first), Some(Reason::OutcomeErased));
    // The same without the salts of the first call.
    erase(&driver, &[Seq::new(outcome.get() - 1)]);
    assert_eq!(answer(&mut driver, session, &first), Some(Reason::OutcomeErased));
    is_sound(driver, &[Reason::OutcomeErased; 2]);
}

#[test]
fn reference_to_erased_result_is_refused_in_a_sound_log() {
    let mut driver = world();
    let (_, session) = driver.agent("ada", 1);
    driver.call(session, ECHO);
    let outcome = outcome(&driver);
    erase(&driver, &[outcome]);
    assert_eq!(answer(&mut driver, session, &refers(outcome)), Some(Reason::ReferenceErased));
    is_sound(driver, &[Reason::ReferenceErased]);
}

#[test]
fn reference_to_result_that_is_not_durable_is_refused_in_a_sound_log() {
    let mut driver = world();
    let (_, session) = driver.agent("ada", 1);
    driver.flush();
    // A read runs before its intent is durable.
    submit(&mut driver, session, ECHO);
    let Some(Effect::Run(_, job)) = driver.kernel.poll_effect() else { panic!("no run") };
    let ran = Event::Ran(job.run(), Measured { cpu_us: 1, wall_us: 1 });
    driver.kernel.handle(ran, driver.reading);
    let outcome = driver.kernel.head().seq;
    let early = submit(&mut driver, session, &refers(outcome));
    driver.pump();
    assert_eq!(driver.reply(early).reason(), Some(Reason::ReferenceInFlight));
    is_sound(driver, &[Reason::ReferenceInFlight]);
}

/// Calls, and changes of a state, of a session that may do neither.
fn is_stopped(driver: &mut World, session: Seq, reason: Reason) {
    assert_eq!(answer(driver, session, ECHO), Some(reason));
    assert_eq!(answer(driver, session, &call("post", 1)), Some(reason));
    assert_eq!(answer(driver, session, r#"{"tool_id":"none","args":{}}"#), Some(reason));
    let changed = driver.propose(session, Source::Agent, r#"{"goal.a":1}"#);
    assert_eq!(changed.unwrap_err().reason(), reason);
}

#[test]
fn token_without_a_fresh_list_is_stopped_in_a_sound_log() {
    let mut driver = world();
    let mut token = body(driver.kernel.home(), 7, &agent("ada"));
    token.caveats = vec![TokenBody::fresh_within_caveat(1_000)];
    let token = driver.issue(&token);
    let session = driver.session(&agent("ada"), token);
    is_stopped(&mut driver, session, Reason::StaleRevocations);
    let as_of = driver.kernel.now();
    let list = RevocationList { version: 1, as_of, tokens: Vec::new(), cause: None };
    driver.control(Role::Revoker, &list).unwrap();
    assert_eq!(answer(&mut driver, session, ECHO), None);
    driver.pass(1_000);
    is_stopped(&mut driver, session, Reason::StaleRevocations);
    is_sound(driver, &[Reason::StaleRevocations; 8]);
}

#[test]
fn token_from_before_a_gap_is_stopped_in_a_sound_log() {
    let day = 24 * HOUR_MS;
    let mut driver = world();
    let mut token = body(driver.kernel.home(), 1, &agent("ada"));
    token.not_before = UnixMillis::new(START_MS + 60 * day);
    token.expires = UnixMillis::new(START_MS + 140 * day);
    let token = driver.issue(&token);
    driver.flush();
    let mut driver = reopened(driver, 91 * day, parts(AllowAll::new(0)));
    let session = driver.session(&agent("ada"), token);
    is_stopped(&mut driver, session, Reason::ClockUnconfirmed);
    is_sound(driver, &[Reason::ClockUnconfirmed; 4]);
}

#[test]
fn call_without_room_is_refused_in_a_sound_log() {
    let mut driver = world();
    let (_, session) = driver.agent("ada", 1);
    driver.event(Event::Room(Room::Reserve));
    for json in [ECHO, &call("post", 1), &keyed("post", 1, "k")] {
        assert_eq!(answer(&mut driver, session, json), Some(Reason::NoRoom));
    }
    let changed = driver.propose(session, Source::Agent, r#"{"goal.a":1}"#);
    assert_eq!(changed.unwrap_err().reason(), Reason::NoRoom);
    driver.event(Event::Room(Room::Enough));
    assert_eq!(answer(&mut driver, session, ECHO), None);
    is_sound(driver, &[Reason::NoRoom; 4]);
}

/// A tool that is on record in another form, or not at all.
struct Other(Manifest);
struct OtherPlan(Demands);

impl Other {
    fn new(name: &str, effect: EffectClass) -> Self {
        let param = Param::optional("more", ParamType::Text, "anything");
        Self(Manifest::new(kernel_support::driver::tool(name), effect).param(param))
    }
}

impl Tool for Other {
    type Plan = OtherPlan;

    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn plan(&self, _: &Request<'_>) -> Result<OtherPlan, Refused> {
        Ok(OtherPlan(Demands::default()))
    }
}

impl Plan for OtherPlan {
    fn demands(&self) -> &Demands {
        &self.0
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        permit.ok(syscap_format::Canonical::null(), syscap_format::TxOutcome::NoOp)
    }
}

/// What the kernel has: `post` as on record, `disk.write` another, `extra` besides, the rest gone.
fn other_tools() -> Parts {
    let mut registry = Registry::new();
    registry.add(Post::new()).unwrap();
    registry.add(Other::new("disk.write", EffectClass::Pure)).unwrap();
    registry.add(Other::new("extra", EffectClass::LocalWrite)).unwrap();
    Parts { engine: Box::new(AllowAll::new(0)), registry }
}

fn mismatched(flags: TokenFlags) -> (World, Seq) {
    let mut driver = world();
    let mut token = body(driver.kernel.home(), 1, &agent("ada"));
    let tools = ["echo", "disk.write", "post", "extra"].map(kernel_support::driver::tool);
    token.grants = tools.into_iter().fold(Grants::new(), |all, it| all.with(it, all_parts()));
    token.flags = flags;
    let token = driver.issue(&token);
    driver.flush();
    let mut driver = reopened(driver, 1_000, other_tools());
    let session = driver.session(&agent("ada"), token);
    (driver, session)
}

#[test]
fn call_of_other_tools_than_on_record_is_refused_in_a_sound_log() {
    let (mut driver, session) = mismatched(TokenFlags::default());
    for json in [call("post", 1), call("disk.write", 1), call("extra", 1), keyed("post", 2, "k")] {
        assert_eq!(answer(&mut driver, session, &json), Some(Reason::ToolsMismatch));
    }
    assert_eq!(answer(&mut driver, session, ECHO), Some(Reason::UnknownTool));
    let mismatch = [Reason::ToolsMismatch; 4];
    is_sound(driver, &[&mismatch[..], &[Reason::UnknownTool]].concat());
    let (mut driver, session) = mismatched(TokenFlags::READ_ONLY);
    let first = [
        (call("post", 1), Reason::ReadOnlyToken),
        (call("disk.write", 1), Reason::ToolsMismatch),
        (call("extra", 1), Reason::ReadOnlyToken),
    ];
    for (json, reason) in &first {
        assert_eq!(answer(&mut driver, session, json), Some(*reason), "{json}");
    }
    is_sound(driver, &first.map(|(_, reason)| reason));
}

/// A change of the tools that the kernel does not have is refused.
#[test]
fn tools_that_the_kernel_has_not_are_refused_in_a_sound_log() {
    let mut driver = world();
    let other = Kernel::create(new_home(9), other_tools(), start()).unwrap();
    let change = syscap_format::ToolsChange { tools: other.registry_hash() };
    let bytes = syscap_format::ControlBody::to_bytes(&change);
    let kind = syscap_format::RecordKind::Tools;
    let control = driver.sign(&key(Role::Operator), kind, bytes);
    let ticket = driver.ticket();
    driver.event(Event::Tools(ticket, control, None, Default::default()));
    assert_eq!(driver.acked(ticket).unwrap_err().reason(), Reason::ToolsMismatch);
    is_sound(driver, &[Reason::ToolsMismatch]);
}
