//! Vectors of `calls.md`, Admission: calls with one fault and with every two of them that one call
//! can have, made in a simulated home and brought before the kernel.

use std::collections::BTreeSet;

use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::tokens::{budget, rows};
use kernel_support::sim::{Ending, Policed, Sim};
use serde_json::{Map, Value, json};
use syscap_audit::MemoryStore;
use syscap_format::{
    Dimension, Form, FreezeChange, HomeLimits, Reason, Seq, TokenBody, TokenFlags, TokenId,
    ToolGrant, ToolId,
};
use syscap_kernel::{Event, Room};

use crate::case::{Cases, Of};

/// A fault, the requirement that names it, and its reason. In the order of admission.
const FAULTS: [(&str, &str, Reason); 22] = [
    ("overloaded", "SYSCAP-CALL-021", Reason::Overloaded),
    ("no session", "SYSCAP-CALL-022", Reason::NoSession),
    ("envelope", "SYSCAP-CALL-023", Reason::UnknownVersion),
    ("inputs", "SYSCAP-CALL-024", Reason::BadField),
    ("not bound", "SYSCAP-CALL-025", Reason::NotBound),
    ("revoked", "SYSCAP-CALL-026", Reason::Revoked),
    ("frozen", "SYSCAP-CALL-027", Reason::Frozen),
    ("expired", "SYSCAP-CALL-028", Reason::Expired),
    ("not yet valid", "SYSCAP-CALL-029", Reason::NotYetValid),
    ("stale", "SYSCAP-CALL-030", Reason::StaleRevocations),
    ("clock", "SYSCAP-CALL-031", Reason::ClockUnconfirmed),
    ("unknown tool", "SYSCAP-CALL-032", Reason::UnknownTool),
    ("not granted", "SYSCAP-CALL-033", Reason::NotGranted),
    ("read only", "SYSCAP-CALL-034", Reason::ReadOnlyToken),
    ("no room", "SYSCAP-CALL-035", Reason::NoRoom),
    ("no call left", "SYSCAP-CALL-036", Reason::OverBudget),
    ("key", "SYSCAP-CALL-037", Reason::KeyReused),
    ("reference", "SYSCAP-CALL-038", Reason::UnknownReference),
    ("argument", "SYSCAP-CALL-039", Reason::UnknownArgument),
    ("scope", "SYSCAP-CALL-040", Reason::OutOfScope),
    ("policy hash", "SYSCAP-CALL-041", Reason::PolicyMismatch),
    ("snapshot", "SYSCAP-CALL-042", Reason::UnknownSnapshot),
];

/// What the policy says and what the budget lacks: the last two steps.
const LAST: [(&str, &str, Reason); 2] = [
    ("denied", "SYSCAP-CALL-043", Reason::Denied),
    ("budget", "SYSCAP-CALL-044", Reason::OverBudget),
];

/// Pairs that no call has. Who has no tool has nothing that depends on one; what makes a token
/// useless from its start leaves no call to be made before.
fn excluded(first: &str, then: &str) -> bool {
    let by_tool = ["key", "argument", "scope", "denied", "budget", "not granted", "read only"];
    let before = ["no call left", "key"];
    match first {
        "unknown tool" => by_tool.contains(&then),
        "not granted" => ["read only", "key", "scope", "denied"].contains(&then),
        "read only" => then == "key",
        "expired" => then == "not yet valid",
        "not yet valid" => then == "stale" || before.contains(&then),
        "clock" => before.contains(&then),
        _ => false,
    }
}

fn tool(id: &str) -> ToolId {
    ToolId::new(id).expect(id)
}

/// How much later the call is made where time must have passed, and how far the clock jumps over a
/// restart.
const LATER_MS: u64 = 1_000_000;
const GAP_MS: u64 = 8_000_000_000;

/// The token of a call with these faults.
fn token(sim: &mut Sim, has: &dyn Fn(&str) -> bool) -> TokenBody {
    let calls = if has("no call left") { 1 } else { 100 };
    let units = if has("budget") { 20 } else { 100 };
    let life = if has("expired") { LATER_MS } else { 7_000_000_000 };
    let mut body = sim.token_body("a0", budget(calls, units), life);
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
    if has("scope") {
        body.grants =
            body.grants.clone().with(tool("spend"), ToolGrant::new().with("row", rows(7, 8)));
    }
    if has("not granted") {
        body.grants = syscap_format::Grants::new().with(tool("look"), ToolGrant::new());
    }
    if has("read only") {
        body.flags = TokenFlags::READ_ONLY;
    }
    body
}

fn issue(sim: &mut Sim, body: &TokenBody) -> (TokenId, Seq) {
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(body), None));
    let id = TokenBody::id_of(&body.to_bytes());
    sim.tokens.push((id, body.budget.amounts().get(Dimension::DiskWriteBytes)));
    (id, sim.seat(id))
}

/// A call that is admitted and run.
fn made(sim: &mut Sim, session: Seq, envelope: &Value) {
    let ticket = sim.submit_json(session, &envelope.to_string());
    sim.commit();
    while !sim.jobs.is_empty() {
        sim.end_job(0, Ending::Runs);
    }
    sim.commit();
    assert_eq!(sim.reason_of(ticket), None, "{envelope}");
}

/// The envelope of a call with these faults.
fn envelope(has: &dyn Fn(&str) -> bool) -> Value {
    let mut args = json!({"units": if has("denied") { 32 } else { 29 }});
    let args_of = args.as_object_mut().expect("a map");
    if has("reference") {
        args_of.insert("note".to_owned(), json!({"$ref": {"record": 1, "path": []}}));
    }
    if has("argument") {
        args_of.insert("bcc".to_owned(), json!(1));
    }
    let mut envelope = Map::new();
    let mut set = |key: &str, value| drop(envelope.insert(key.to_owned(), value));
    set("args", args);
    set("tool_id", json!(if has("unknown tool") { "rm" } else { "spend" }));
    let zeros = "0".repeat(64);
    let changes = [
        ("envelope", "v", json!(2)),
        ("inputs", "provenance", json!({"source": "user", "inputs": [1_u64 << 40]})),
        ("not bound", "agent_id", json!("a1")),
        ("key", "idempotency_key", json!("k")),
        ("policy hash", "policy_hash", json!(zeros)),
        ("snapshot", "state_snapshot_id", json!(zeros)),
    ];
    for (fault, key, value) in changes {
        if has(fault) {
            set(key, value);
        }
    }
    Value::Object(envelope)
}

/// What the kernel says of a call with these faults.
fn answer(faults: &BTreeSet<&str>) -> Option<Reason> {
    let has = |fault: &str| faults.contains(fault);
    let limits = HomeLimits { in_flight_max: 2, ..HomeLimits::default() };
    let store = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    let mut sim = Sim::with(store, limits, Policed::ByRule);
    let body = token(&mut sim, &has);
    let (id, mut session) = issue(&mut sim, &body);
    if has("stale") {
        sim.list(TokenId::from_bytes([9; 32]));
    }
    match (has("key"), has("no call left")) {
        (true, _) => {
            let first = json!({"tool_id": "spend", "args": {"units": 13}, "idempotency_key": "k"});
            made(&mut sim, session, &first);
        }
        (false, true) => {
            made(&mut sim, session, &json!({"tool_id": "look", "args": {"at": 1}}));
        }
        (false, false) => {}
    }
    if has("revoked") {
        sim.revoke(id);
    }
    sim.commit();
    let mut busy = None;
    if has("overloaded") {
        let other = sim.token_body("a0", budget(100, 100), LATER_MS);
        busy = Some(issue(&mut sim, &other).1);
    }
    if has("clock") {
        sim.crash().expect("opens");
        sim.wall += GAP_MS;
        sim.boot();
        session = sim.seat(id);
        let other = sim.token_body("a0", budget(100, 100), LATER_MS);
        busy = has("overloaded").then(|| issue(&mut sim, &other).1);
    }
    for session in busy.into_iter().chain(busy) {
        let held = json!({"tool_id": "spend", "args": {"units": 13}});
        sim.submit_json(session, &held.to_string());
        sim.commit();
    }
    if has("frozen") {
        sim.freeze(FreezeChange::Freeze);
    }
    if has("expired") || has("stale") {
        sim.wall += LATER_MS;
        sim.boottime += LATER_MS;
    }
    if has("no room") {
        sim.event(Event::Room(Room::Reserve));
    }
    let session = if has("no session") { Seq::new(1 << 40) } else { session };
    let before = sim.world.lock().expect("the world").spent.len();
    let ticket = sim.submit(session, envelope(&has).to_string().into_bytes(), Form::Json);
    sim.commit();
    assert_eq!(sim.world.lock().expect("the world").spent.len(), before, "{faults:?}: an effect");
    if faults.is_empty() {
        while !sim.jobs.is_empty() {
            sim.end_job(0, Ending::Runs);
        }
        sim.commit();
    }
    assert!(sim.reply_to(ticket).is_some(), "{faults:?}: no answer");
    sim.reason_of(ticket)
}

pub(crate) fn cases() -> Cases {
    let mut cases = Cases::default();
    let mut ask = |requirement, catches, faults: &[&str], wanted: Option<Reason>| {
        assert_eq!(answer(&faults.iter().copied().collect()), wanted, "{faults:?}");
        let mut given = json!({"kind": "admission", "faults": faults});
        if let Some(reason) = wanted {
            given["reason"] = json!(reason.name());
        }
        let comment = if faults.is_empty() { "no fault".to_owned() } else { faults.join(", ") };
        cases.add(Of(requirement, catches), wanted.is_none(), comment, given);
    };
    ask("SYSCAP-CALL-045", "a call that may be made is refused", &[], None);
    let all: Vec<_> = FAULTS.into_iter().chain(LAST).collect();
    for (n, &(fault, requirement, reason)) in all.iter().enumerate() {
        ask(requirement, "a call is made that no step may let through", &[fault], Some(reason));
        for &(then, other, late) in
            all.iter().skip(n + 1).filter(|(then, _, _)| !excluded(fault, then))
        {
            // For a key that was used what the call names is held against what is in force first.
            let named = fault == "key" && ["policy hash", "snapshot"].contains(&then);
            let (of, reason) = if named { (other, late) } else { (requirement, reason) };
            ask(of, "which of two reasons is told tells who decided", &[fault, then], Some(reason));
        }
    }
    cases
}
