//! In memory: from the envelope's bytes to a chained intent; registering a token.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::as_conversions, reason = "bench")]
#![allow(dead_code, unreachable_pub, missing_docs, reason = "a part of the simulator is used")]

#[path = "admit_policy/mod.rs"]
mod document;
mod harness;
#[path = "harness/intents.rs"]
mod intents;

use document::policy;
use harness::{row, time};
use intents::{drain, to_intent};
use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::{self, Sim};
use syscap::audit::MemoryStore;
use syscap::format::{
    Canonical, Form, Item, MapBuilder, PolicyChange, Profile, Record, Seq, Source, Token, leaf,
};
use syscap::kernel::{Event, Next, Store};
use syscap::policy::Policy;

fn main() {
    let mut sim = Sim::new(FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere));
    let token = sim.issue("a0", 1 << 40, 1 << 40, 7_000_000_000);
    sim.open("a0", token);
    sim.commit();
    let session = sim.sessions[0];
    let args = MapBuilder::new().uint("units", 1).finish();
    let short = MapBuilder::new().text("tool_id", "spend").item("args", args.item()).finish();
    let whole = whole(&mut sim, session, &args);
    println!("envelope {} bytes", whole.as_bytes().len());

    for (what, envelope) in [("whole", &whole), ("short, filled in", &short)] {
        let figure = time(31, 2_000, || {
            let received = envelope.as_bytes().to_vec();
            let submit = sim.submission(Source::Agent, session, received, Form::Cbor);
            let reading = sim.reading();
            sim.kernel.handle(Event::Submit(submit), reading);
            drain(&mut sim);
        });
        row(&format!("submit to settled outcome, in memory ({what})"), figure);
        row(
            &format!("envelope to chained intent, in memory ({what})"),
            to_intent(&mut sim, session, envelope),
        );
    }

    for (all, applying) in [(10, 10), (10_000, 10), (10_000, 100)] {
        decided_by(&mut sim, policy("spend", all, applying));
        row(
            &format!("envelope to chained intent, {applying} of {all} constraints apply"),
            to_intent(&mut sim, session, &short),
        );
    }

    let wires: Vec<Vec<u8>> = (0..2_000)
        .map(|_| Sim::wire(&sim.token_body("a0", syscap::format::Budget::standard(), 1_000)))
        .collect();
    let mut next = 0;
    row(
        "token: read and verify one wire",
        time(15, 100, || {
            next = (next + 1) % wires.len();
            Token::read(&wires[next]).unwrap()
        }),
    );
    primitives(&mut sim, &whole);
}

/// Puts a policy in force.
fn decided_by(sim: &mut Sim, policy: Policy) {
    let change = PolicyChange { policy: policy.hash(), shadow: None };
    let (control, ticket) = (sim.signed(&change), sim.ticket());
    sim.event(Event::Policy(ticket, control, None, vec![Box::new(policy)], None));
    drain(sim);
}

/// An envelope that names everything.
fn whole(sim: &mut Sim, session: Seq, args: &Canonical) -> Canonical {
    let ticket = sim.submit_json(session, r#"{"tool_id": "look", "args": {"at": 1}}"#);
    while !sim.jobs.is_empty() {
        sim.end_job(0, sim::Ending::Runs);
    }
    sim.commit();
    let result = sim.reply_to(ticket).unwrap().to_canonical();
    let snapshot = result.item().get("state_snapshot_id").unwrap();
    let provenance = MapBuilder::new().text("source", "agent").uint("time", 1).finish();
    MapBuilder::new()
        .uint("v", 1)
        .text("tool_id", "spend")
        .item("args", args.item())
        .text("agent_id", "a0")
        .bytes("capability_token_id", sim.tokens[0].0.as_bytes())
        .item("state_snapshot_id", snapshot)
        .bytes("policy_hash", sim.kernel.policy_hash().unwrap().as_bytes())
        .item("provenance", provenance.item())
        .finish()
}

/// What the decision is made of.
fn primitives(sim: &mut Sim, envelope: &Canonical) {
    sim.commit();
    let mut records = Vec::new();
    sim.store
        .records(Seq::GENESIS, &mut |_, bytes| {
            records.push(bytes.to_vec());
            Next::More
        })
        .unwrap();
    let record = records.iter().max_by_key(|record| record.len()).unwrap().clone();
    println!("largest record {} bytes", record.len());
    let bytes = envelope.as_bytes();
    row("  check the envelope", time(31, 10_000, || Item::check(bytes, Profile::DATA).is_ok()));
    row("  decode a record", time(31, 10_000, || Record::decode(&record).is_ok()));
    let decoded = Record::decode(&record).unwrap();
    row("  encode a record", time(31, 10_000, || decoded.encode()));
    row("  leaf of a record", time(31, 10_000, || leaf(&record)));
}
