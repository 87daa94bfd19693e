//! A simulated home in which a call has the faults that are asked for, and what the kernel says.

use std::collections::BTreeSet;

use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::rule::Rule;
use kernel_support::sim::tokens::{budget, rows};
use kernel_support::sim::tools::Look;
use kernel_support::sim::{Ending, Policed, Shared, Sim, records, roles};
use serde_json::{Map, Value, json};
use syscap_audit::MemoryStore;
use syscap_format::{
    Amounts, ApprovalAnswer, Body, Dimension, Durability, Form, FreezeChange, Grants, HomeLimits,
    Leaf, Proof, REFERENCES_MAX, Reason, Role, Seq, Signature, Source, TokenBody, TokenFlags,
    TokenId, ToolGrant, ToolId, ToolsChange,
};
use syscap_kernel::{
    Anchor, Event, Kernel, NewHome, Parts, PolicyEngine, Registry, Room, Submit, ToolsDelta,
};
use syscap_policy::WithinToken;

use super::work::Work;

/// How much later the call is made where time must have passed, and how far the clock jumps over a
/// restart.
const LATER_MS: u64 = 1_000_000;
const GAP_MS: u64 = 8_000_000_000;
/// Calls that are in flight at most.
const IN_FLIGHT: u64 = 3;
/// Tokens of the model that a token has.
const LLM_TOKENS: u64 = 1_000;

/// The faults of one call.
pub(super) struct Faults<'a>(pub(super) &'a BTreeSet<&'a str>);

impl Faults<'_> {
    fn has(&self, fault: &str) -> bool {
        self.0.contains(fault)
    }

    fn any(&self, faults: &[&str]) -> bool {
        faults.iter().any(|fault| self.has(fault))
    }
}

fn tool(id: &str) -> ToolId {
    ToolId::new(id).expect(id)
}

/// The host's parts: a policy and tools, those on record or others.
fn parts(world: &Shared, faults: &Faults<'_>) -> Parts {
    let mut registry = Registry::new();
    registry.add(Work::new(world)).expect("a tool");
    registry.add_read(Look::new()).expect("a tool");
    if faults.has("other tools") {
        registry.add(kernel_support::sim::tools::Spend::new(world)).expect("a tool");
    }
    let engine: Box<dyn PolicyEngine> = match faults.has("other policy") {
        true => Box::new(WithinToken),
        false => Box::new(Rule(0)),
    };
    Parts { engine, registry }
}

fn none() -> BTreeSet<&'static str> {
    BTreeSet::new()
}

/// A home with tools and policy on record; or with no policy.
fn home(faults: &Faults<'_>) -> Sim {
    let limits = HomeLimits { in_flight_max: IN_FLIGHT, ..HomeLimits::default() };
    let store = || FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    let world = Shared::default();
    let sound = none();
    let own = || parts(&world, &Faults(&sound));
    let mut sim = Sim::of(store(), limits.clone(), Policed::ByRule, (Shared::clone(&world), own()));
    if !faults.has("no policy") {
        return sim;
    }
    let new = NewHome {
        entropy: [1; 32],
        origin: Box::from("bare"),
        limits,
        durability: Durability::Memory,
        roles: roles(),
        recovery: None,
    };
    sim.kernel = Kernel::create(new, own(), sim.reading()).expect("a home");
    sim.store = store();
    let ticket = sim.ticket();
    let software = Box::from("sim");
    let durability = Durability::Memory;
    sim.event(Event::Boot { ticket, id: [0; 16], software, durability, probed: Vec::new() });
    sim.commit();
    let tools = ToolsChange { tools: sim.kernel.registry_hash() };
    let (control, ticket) = (sim.signed(&tools), sim.ticket());
    sim.event(Event::Tools(ticket, control, None, ToolsDelta::default()));
    sim.commit();
    sim
}

/// The token of a call with these faults.
fn token(sim: &mut Sim, faults: &Faults<'_>) -> TokenBody {
    let has = |fault| faults.has(fault);
    let calls = if has("no call left") { 1 } else { 100 };
    let units = if has("budget") { 17 } else { 100 };
    let life = if has("expired") { LATER_MS } else { 7_000_000_000 };
    let mut body = sim.token_body("a0", budget(calls, units), life);
    if has("concurrency") {
        body.budget = body.budget.with(Dimension::Concurrent, 1);
    }
    if has("clock") && !has("expired") {
        body.not_before = body.not_before.plus(5_000_000_000);
    }
    if has("not yet valid") {
        body.not_before = body.not_before.plus(2 * GAP_MS);
    }
    body.expires = body.not_before.plus(life);
    if has("stale") {
        body.caveats = vec![TokenBody::fresh_within_caveat(LATER_MS / 2)];
    }
    let row = if has("scope") { rows(7, 8) } else { rows(0, 1 << 40) };
    body.grants = Grants::new().with(tool("look"), ToolGrant::new());
    if !has("not granted") {
        let work = ToolGrant::new().with("row", row);
        body.grants = body.grants.clone().with(tool("work"), work);
    }
    if has("read only") {
        body.flags = TokenFlags::READ_ONLY;
    }
    body
}

fn issue(sim: &mut Sim, body: &TokenBody) -> TokenId {
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(body), None));
    let id = TokenBody::id_of(&body.to_bytes());
    sim.tokens.push((id, body.budget.amounts().get(Dimension::DiskWriteBytes)));
    id
}

/// A session by another token of the same agent.
fn other(sim: &mut Sim) -> Seq {
    let mut body = sim.token_body("a0", budget(100, 100), LATER_MS);
    body.grants = Grants::new().with(tool("work"), ToolGrant::new().with("row", rows(0, 1)));
    let id = issue(sim, &body);
    sim.seat(id)
}

const LOOK: &str = r#"{"tool_id": "look", "args": {"at": 1}}"#;

/// A call that is admitted. Its run is the last of those that are held back.
fn begun(sim: &mut Sim, session: Seq, envelope: &str) {
    let (before, ticket) = (sim.jobs.len(), sim.submit_json(session, envelope));
    sim.commit();
    assert_eq!(sim.jobs.len(), before + 1, "{envelope}: {:?}", sim.reason_of(ticket));
}

/// One that is run as well. Its outcome's position.
fn made(sim: &mut Sim, session: Seq, envelope: &str) -> Seq {
    begun(sim, session, envelope);
    sim.end_job(sim.jobs.len() - 1, Ending::Runs);
    let outcome = sim.kernel.head().seq;
    sim.commit();
    outcome
}

/// The envelope of a call with these faults, which refers to these outcomes.
fn envelope(faults: &Faults<'_>, erased: Option<Seq>, in_flight: Option<Seq>) -> String {
    let has = |fault| faults.has(fault);
    let mut args = Map::new();
    let units = [
        ("denied", 32),
        ("deferred", 18),
        ("approval denied", 21),
        ("asked", 21),
        ("obligation", 19),
        ("reduced", 37),
    ];
    let units = units.iter().find(|(fault, _)| has(fault)).map_or(29, |(_, units)| *units);
    if !has("missing argument") {
        args.insert("units".to_owned(), json!(units));
    }
    let part = |record: Seq| json!({"$ref": {"record": record.get(), "path": ["saw"]}});
    let unknown = match (has("reference form"), has("reference")) {
        (true, _) => REFERENCES_MAX + 1,
        (false, true) => 1,
        (false, false) => 0,
    };
    let references = std::iter::repeat_n(Seq::new(1), unknown).chain(in_flight).chain(erased);
    let references: Vec<Value> = references.map(part).collect();
    if !references.is_empty() {
        args.insert("note".to_owned(), json!(references));
    }
    let (truth, zeros) = (json!(true), json!("0".repeat(64)));
    let arguments = [
        ("argument", "bcc", json!(1)),
        ("bad argument", "absent", json!("x")),
        ("tool", "absent", truth.clone()),
        ("too many", "many", truth.clone()),
        ("not compared", "careless", truth),
    ];
    for (_, name, value) in arguments.into_iter().filter(|(fault, ..)| has(fault)) {
        args.entry(name).or_insert(value);
    }
    let mut envelope = Map::new();
    envelope.insert("args".to_owned(), Value::Object(args));
    let name = if has("unknown tool") { "rm" } else { "work" };
    envelope.insert("tool_id".to_owned(), json!(name));
    let changes = [
        ("envelope", "v", json!(2)),
        ("inputs", "provenance", json!({"source": "user", "inputs": [1_u64 << 40]})),
        ("not bound", "agent_id", json!("a1")),
        ("policy hash", "policy_hash", zeros.clone()),
        ("snapshot", "state_snapshot_id", zeros),
    ];
    for (_, key, value) in changes.into_iter().filter(|(fault, ..)| has(fault)) {
        envelope.insert(key.to_owned(), value);
    }
    if faults.any(&super::KEYS) {
        envelope.insert("idempotency_key".to_owned(), json!("k"));
    }
    Value::Object(envelope).to_string()
}

/// The first call with the key. Its outcome, where it has one.
fn use_key(sim: &mut Sim, session: Seq, faults: &Faults<'_>) -> Option<Seq> {
    let first = json!({"tool_id": "work", "args": {"units": 7}, "idempotency_key": "k"});
    let first = first.to_string();
    if faults.has("key lost") {
        let alone = BTreeSet::from(["key lost"]);
        let same = envelope(&Faults(&alone), None, None);
        let same = if faults.has("key") { first } else { same };
        begun(sim, session, &same);
        sim.world.lock().expect("the world").probes = true;
        let (_, job) = sim.jobs.pop().expect("a run");
        drop(job.run());
        None
    } else if faults.any(&["key in flight", "key unknown"]) {
        begun(sim, session, &first);
        None
    } else {
        Some(made(sim, session, &first))
    }
}

/// The call waits for a person, who says no.
fn ask_and_deny(sim: &mut Sim, session: Seq) {
    let asked = json!({"tool_id": "work", "args": {"units": 21}}).to_string();
    let ticket = sim.submit_json(session, &asked);
    sim.commit();
    assert_eq!(sim.reason_of(ticket), Some(Reason::Asked));
    let ask: Leaf = sim.reply_to(ticket).expect("an answer").receipt().outcome_leaf;
    sim.answer(ask, ApprovalAnswer::Deny, Role::Approver);
    sim.commit();
}

/// The process dies, and another one opens the home, with what this host has.
fn restart(sim: &mut Sim, faults: &Faults<'_>) {
    let parts = parts(&sim.world, faults);
    sim.crash_into(|store| Kernel::open(store, parts, &Anchor::default()));
    if faults.has("clock") {
        sim.wall += GAP_MS;
    }
    sim.boot();
}

/// The state before the call: its session, and the results that it can refer to.
struct Before {
    session: Seq,
    erased: Option<Seq>,
    in_flight: Option<Seq>,
}

fn prepare(sim: &mut Sim, faults: &Faults<'_>) -> Before {
    let has = |fault| faults.has(fault);
    let body = token(sim, faults);
    let id = issue(sim, &body);
    let mut session = sim.seat(id);
    if has("stale") {
        sim.list(TokenId::from_bytes([9; 32]));
    }
    let mut outcome = None;
    if faults.any(&super::KEYS) {
        let by = if has("another's key") { other(sim) } else { session };
        outcome = use_key(sim, by, faults);
    }
    if has("approval denied") {
        ask_and_deny(sim, session);
    }
    let calls = sim.kernel.token(&id).expect("registered").left.get(Dimension::Calls);
    let later = ["reference in flight", "reference erased", "concurrency"];
    if has("no call left") && calls > 0 && !faults.any(&later) {
        made(sim, session, LOOK);
    }
    sim.commit();
    if faults.any(&["clock", "key unknown", "key lost", "other policy", "other tools"]) {
        restart(sim, faults);
        session = sim.seat(id);
    }
    // The result lies beside the outcome, the salts of the arguments beside the intent.
    for (fault, back) in [("answer erased", 0), ("arguments erased", 1)] {
        if let (true, Some(outcome)) = (has("key erased") || has(fault), outcome) {
            sim.store.erase(Seq::new(outcome.get() - back));
        }
    }
    let erased = has("reference erased").then(|| made(sim, session, LOOK));
    if let Some(erased) = erased {
        sim.store.erase(erased);
    }
    if has("overloaded") {
        let busy = other(sim);
        for _ in 0..IN_FLIGHT {
            sim.submit_json(busy, r#"{"tool_id": "work", "args": {"units": 7}}"#);
            sim.commit();
        }
    }
    let in_flight = has("reference in flight").then(|| {
        sim.submit_json(session, LOOK);
        sim.end_job(sim.jobs.len() - 1, Ending::Runs);
        sim.kernel.head().seq
    });
    if has("concurrency") && !has("key in flight") {
        sim.submit_json(session, LOOK);
        assert!(!sim.jobs.is_empty());
    }
    if has("exhausted") {
        let all = Amounts::ZERO.with(Dimension::LlmTokens, LLM_TOKENS);
        let ticket = sim.ticket();
        sim.event(Event::Charge(ticket, session, all));
        assert!(sim.kernel.token(&id).expect("registered").exhausted, "{:?}", sim.acked(ticket));
    }
    if has("revoked") {
        sim.revoke(id);
    }
    if has("frozen") {
        sim.freeze(FreezeChange::Freeze);
    }
    Before { session, erased, in_flight }
}

/// The kernel's answer to a call with these faults. It has no effect, unless it has none.
pub(super) fn answer(faults: &Faults<'_>) -> Option<Reason> {
    let has = |fault| faults.has(fault);
    let mut sim = home(faults);
    let Before { session, erased, in_flight } = prepare(&mut sim, faults);
    if has("expired") || has("stale") {
        sim.wall += LATER_MS;
        sim.boottime += LATER_MS;
    }
    if has("no room") {
        sim.event(Event::Room(Room::Reserve));
    }
    if has("closing") {
        let ticket = sim.ticket();
        sim.event(Event::Shutdown(ticket));
    }
    let session = if has("no session") { Seq::new(1 << 40) } else { session };
    let received = envelope(faults, erased, in_flight).into_bytes();
    let proof = Proof { counter: 1, signature: Signature::from_bytes([1; 64]) };
    let (ticket, salts) = (sim.ticket(), sim.salts());
    let (form, source, proof) = (Form::Json, Source::Agent, has("proof").then_some(proof));
    let before = sim.world.lock().expect("the world").spent.len();
    sim.event(Event::Submit(Submit {
        ticket,
        session,
        received,
        form,
        source,
        salts,
        proof,
        unasked: false,
    }));
    sim.commit();
    assert_eq!(sim.world.lock().expect("the world").spent.len(), before, "an effect");
    if faults.0.is_empty() {
        while !sim.jobs.is_empty() {
            sim.end_job(0, Ending::Runs);
        }
        sim.commit();
    }
    let reply = sim.reply_to(ticket).expect("an answer");
    let (reason, outcome) = (reply.reason(), reply.receipt().outcome_seq);
    // A call that was turned away for want of room is counted later.
    if let Some(reason) = reason.filter(|reason| *reason != Reason::Overloaded) {
        let record = records(&mut sim).into_iter().find(|record| record.seq == outcome);
        let recorded = match record.map(|record| record.body) {
            Some(Body::Refusal(refusal)) => refusal.reason,
            Some(Body::Ask(_)) => Reason::Asked,
            other => panic!("{:?}: {other:?}", faults.0),
        };
        assert_eq!(recorded, reason);
    }
    reason
}
