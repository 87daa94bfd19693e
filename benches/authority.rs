//! Links of delegation, decisions under them and among many tokens, an approval's round trip.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::as_conversions, reason = "bench")]
#![allow(dead_code, unreachable_pub, missing_docs, reason = "a part of the simulator is used")]

mod harness;
#[path = "harness/intents.rs"]
mod intents;

use std::time::Instant;

use harness::{Figure, figure, row, time};
use intents::{drain, to_intent};
use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::keys::{holder, public_of};
use kernel_support::sim::tokens::budget;
use kernel_support::sim::{self, Policed, Sim};
use syscap::audit::MemoryStore;
use syscap::format::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, Canonical, HomeLimits, MapBuilder, RecordKind,
    Role, Seq, TokenBody, TokenId,
};
use syscap::kernel::Event;
use syscap::policy::Policy;
use syscap::prelude::*;

const LIFE: u64 = 7_000_000_000;
/// Enough for all calls of a bench.
const MANY: u64 = 1 << 40;

fn main() {
    let mut sim = Sim::new(FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere));
    let root = root(&mut sim);
    drain(&mut sim);
    row("register a link, in memory", link(&mut sim, root));

    let call = envelope("spend");
    let mut token = root;
    for depth in 1..=16 {
        token = derive(&mut sim, token);
        if [1, 4, 16].contains(&depth) {
            let session = seat(&mut sim, token);
            let figure = to_intent(&mut sim, session, &call);
            row(&format!("envelope to chained intent, at depth {depth}"), figure);
        }
    }

    let most = if std::env::var_os("SYSCAP_LONG").is_some() { 1_000_000 } else { 100_000 };
    let session = seat(&mut sim, root);
    for tokens in [1_000, most] {
        while sim.kernel.token_count() < tokens {
            derive(&mut sim, root);
        }
        let figure = to_intent(&mut sim, session, &call);
        row(&format!("envelope to chained intent, among {tokens} tokens"), figure);
    }
    row("approval round trip, in memory", asked());
    durable();
}

fn root(sim: &mut Sim) -> TokenId {
    let mut body = sim.token_body("a0", budget(MANY, MANY), LIFE);
    (body.holder, body.depth_max) = (Some(public_of(&holder())), 16);
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(&body), None));
    TokenBody::id_of(&body.to_bytes())
}

fn derive(sim: &mut Sim, parent: TokenId) -> TokenId {
    let body = sim.derived(parent, budget(MANY, MANY), LIFE / 2).unwrap();
    let body = TokenBody { expires: body.expires.min(sim.kernel.now().plus(LIFE / 4)), ..body };
    register(sim, Sim::wire_by(&holder(), &body));
    TokenBody::id_of(&body.to_bytes())
}

fn seat(sim: &mut Sim, token: TokenId) -> Seq {
    sim.open("a0", token);
    drain(sim);
    sim.kernel.sessions().last().unwrap().number
}

fn envelope(tool: &str) -> Canonical {
    let args = MapBuilder::new().uint("units", 1).finish();
    MapBuilder::new().text("tool_id", tool).item("args", args.item()).finish()
}

/// Registering what was signed before: the wire is read, verified and recorded.
fn link(sim: &mut Sim, parent: TokenId) -> Figure {
    let wires: Vec<Vec<u8>> = (0..2_000)
        .map(|_| Sim::wire_by(&holder(), &sim.derived(parent, budget(1, 1), 1_000).unwrap()))
        .collect();
    let mut wires = wires.into_iter();
    time(15, 100, || register(sim, wires.next().unwrap()))
}

/// Past the simulator, which looks at every token after each event.
fn register(sim: &mut Sim, wire: Vec<u8>) {
    let (ticket, reading) = (sim.ticket(), sim.reading());
    sim.kernel.handle(Event::Issue(ticket, wire, None), reading);
    drain(sim);
}

/// A call is asked about, approved by a signed answer, made again and run.
fn asked() -> Figure {
    let store = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    let mut sim = Sim::with(store, HomeLimits::default(), Policed::ByRule);
    let token = sim.issue("a0", MANY, MANY, LIFE);
    let session = sim.seat(token);
    let mut times = Vec::new();
    for _ in 0..301 {
        let start = Instant::now();
        // The rule asks about so many units.
        let call = r#"{"tool_id": "trim", "args": {"units": 21}}"#;
        sim.submit_json(session, call);
        sim.commit();
        let ask = sim.kernel.asks().next().unwrap().leaf;
        let (answer, means) = (ApprovalAnswer::Once, ApprovalChannel::Signer);
        let (scopes, uses, expires, reason) = (None, None, None, None);
        let body = ApprovalBody { ask, answer, means, scopes, uses, expires, reason };
        let control = sim.signed_by(&body, Role::Approver);
        let ticket = sim.ticket();
        sim.event(Event::Control(ticket, RecordKind::Approval, control, None, None));
        sim.commit();
        sim.submit_json(session, call);
        sim.commit();
        sim.commit();
        while !sim.jobs.is_empty() {
            sim.end_job(0, sim::Ending::Runs);
        }
        sim.commit();
        times.push(start.elapsed().as_nanos() as f64);
    }
    figure(&mut times)
}

/// The same in a SQLite home, through the runtime: each record by an fsync of its own.
fn durable() {
    let policy = r#"{"v": 1, "constraints": [{"id": "all", "effect": "allow",
        "subject": null, "when": {"op": "eq", "args": ["args.value", 0]}, "on_fail": "ask",
        "reason": "Somebody looks at it."}]}"#;
    let folder = tempfile::tempdir().unwrap();
    let policy = Policy::from_json(policy.as_bytes()).unwrap();
    let rt = Options::new().policy(policy).create(folder.path().join("home")).unwrap();
    let budget = Budget::standard().with(Dimension::Calls, 1_000_000);
    let grant = Grant::to("a").tools(["echo"]).delegable(2).budget(budget);
    let token = rt.issue(grant).unwrap();
    let agent = rt.session("a", token).unwrap();
    let (mut alone, mut round) = (Vec::new(), Vec::new());
    for n in 0..101_u64 {
        let call = |value: u64| agent.call("echo", args! { "value": value }).unwrap();
        let start = Instant::now();
        call(0).value().unwrap();
        alone.push(start.elapsed().as_nanos() as f64);
        let start = Instant::now();
        let ask = call(n + 1).ask().unwrap();
        rt.answer(ask, ApprovalAnswer::Once, None).unwrap();
        call(n + 1).value().unwrap();
        round.push(start.elapsed().as_nanos() as f64);
    }
    let part = || rt.attenuate(token, Grant::to("a/b").tools(["echo"])).unwrap();
    row("register a link, durable (SQLite)", time(15, 5, part));
    row("a call that is allowed, durable (SQLite)", figure(&mut alone));
    row("approval round trip, durable (SQLite)", figure(&mut round));
    rt.close().unwrap();
}
