//! Histories: bytes that choose what happens to a simulated home, in any order. No effect comes
//! before its intent is durable, no answer before its record, and nothing is overspent (the
//! simulator looks after every step); what was revoked or frozen begins no run; what was done is on
//! record and charged; nothing answered is lost; and the log makes the same state again.

mod bytes;
pub mod sound;
mod steps;

use std::collections::{BTreeMap, BTreeSet};

use syscap_format::{
    Amounts, Body, Canonical, ControlBody as _, Dimension, Freeze, FreezeTarget, Item, Label,
    Object, Profile, RedactBody, Seq, TokenId, args_hash, leaf,
};
use syscap_kernel::{Kernel, Next, Store as _, vault_entry};

use crate::sim::{self, Sim};

pub use self::{
    bytes::{Bytes, parts},
    steps::{begin, history, step, stream},
};

/// Most steps of a history: what comes back in reasonable time.
const STEPS_MAX: usize = 200;

/// Lets the bytes choose, and looks.
pub fn run(data: &[u8]) {
    let mut input = Bytes(data);
    let mut sim = begin(&mut input);
    for _ in 0..STEPS_MAX {
        if input.is_empty() || sim.kernel.halted().is_some() {
            break;
        }
        let (stopped, running) = (Stopped::of(&sim.kernel), intents(&sim));
        step(&mut sim, &mut input);
        stopped.holds(&sim, &running);
    }
    // The store may fail as late as here.
    sound::settled(&mut sim);
    let live = sim.kernel.halted().is_none().then(|| sound::seen(&sim.kernel));
    assert!(live.is_some() || sim.store.is_down(), "halted: {:?}", sim.kernel.halted());
    sim.crash().unwrap();
    if let Some(live) = live {
        assert_eq!(sound::seen(&sim.kernel), live, "the log makes another state");
    }
    // Whatever was in flight is on the books again, and nothing answered is lost.
    sim.boot();
    let leaves: Vec<_> = records(&mut sim).iter().map(|bytes| leaf(bytes)).collect();
    for (_, result) in &sim.replies {
        let place = usize::try_from(result.receipt().outcome_seq.get()).unwrap();
        assert_eq!(leaves[place], result.receipt().outcome_leaf);
    }
    sound::sound(&mut sim);
    charged(&mut sim);
    labels_stay(&mut sim);
    opened_as_recorded(&mut sim);
}

/// What may not begin a run, as it stood before a step.
struct Stopped {
    tokens: BTreeSet<TokenId>,
    frozen: Vec<Freeze>,
}

impl Stopped {
    fn of(kernel: &Kernel) -> Self {
        let revoked = kernel.tokens().filter(|view| view.revoked).map(|view| view.id);
        Self { tokens: revoked.collect(), frozen: kernel.frozen() }
    }

    /// No job that is new belongs to what was stopped before the step, and still is.
    fn holds(&self, sim: &Sim, running: &BTreeSet<Seq>) {
        let still = sim.kernel.frozen();
        let new: BTreeSet<Seq> = intents(sim).difference(running).copied().collect();
        for (_, _, call) in sim.kernel.running().filter(|(intent, ..)| new.contains(intent)) {
            let token = call.capability_token_id.unwrap();
            assert!(!self.tokens.contains(&token), "a run by a revoked token");
            for freeze in self.frozen.iter().filter(|freeze| still.contains(freeze)) {
                let name = Some(&*freeze.name);
                assert!(
                    match freeze.target {
                        FreezeTarget::Kernel => false,
                        FreezeTarget::Agent => call.agent_id.as_ref().map(|a| a.as_str()) != name,
                        FreezeTarget::Tool => call.tool_id.as_ref().map(|t| t.as_str()) != name,
                    },
                    "a run of what is frozen"
                );
            }
        }
    }
}

/// The intents of the jobs that are in hand.
fn intents(sim: &Sim) -> BTreeSet<Seq> {
    sim.jobs.iter().map(|(_, job)| job.intent()).collect()
}

/// All that the tools really did is on record and charged, by call and by token.
fn charged(sim: &mut Sim) {
    let mut spent: BTreeMap<Seq, u64> = BTreeMap::new();
    for (intent, units) in &sim.world.lock().unwrap().spent {
        *spent.entry(*intent).or_default() += units;
    }
    let mut by_token: BTreeMap<TokenId, u64> = BTreeMap::new();
    let mut intents = BTreeSet::new();
    for record in sim::records(sim) {
        match &record.body {
            Body::Intent(intent) => {
                intents.insert(record.seq);
                let units = spent.get(&record.seq).copied().unwrap_or(0);
                assert!(units <= held(&intent.call.held), "{record:?} did more than it held");
                *by_token.entry(intent.call.capability_token_id.unwrap()).or_default() += units;
            }
            Body::Outcome(outcome) => {
                let units = spent.get(&outcome.intent).copied().unwrap_or(0);
                assert!(units <= held(&outcome.call.used), "{record:?} is not charged");
            }
            _ => {}
        }
    }
    assert!(spent.keys().all(|intent| intents.contains(intent)), "an effect without an intent");
    for (token, spent) in by_token {
        let view = sim.kernel.token(&token).unwrap();
        assert!(spent <= held(view.body.budget.amounts()), "a token is overspent");
    }
}

/// Whoever was given a result acts with its label from then on, and with that of what the call may
/// have been made from: whatever the session, and also where the result is given again.
fn labels_stay(sim: &mut Sim) {
    let mut given: BTreeMap<TokenId, Label> = BTreeMap::new();
    let (mut intents, mut outcomes) = (BTreeMap::new(), BTreeMap::new());
    for record in sim::records(sim) {
        match record.body {
            Body::Intent(intent) => {
                let token = intent.call.capability_token_id.unwrap();
                let least = given.get(&token).copied().unwrap_or_default();
                assert!(least.leq(intent.label), "{}: what was read is forgotten", record.seq);
                intents.insert(record.seq, (token, intent.label));
            }
            Body::Outcome(outcome) => {
                let (token, _) = intents[&outcome.intent];
                let label = given.entry(token).or_default();
                *label = label.join(outcome.label);
                outcomes.insert(record.seq, outcome.label);
            }
            Body::Repeat(repeat) => {
                let (_, before) = intents[&repeat.intent];
                let token = repeat.call.capability_token_id.unwrap();
                let label = given.entry(token).or_default();
                *label = label.join(before).join(outcomes[&repeat.outcome]);
            }
            _ => {}
        }
    }
}

/// The records whose rows were erased. None of them has one.
fn erased(sim: &mut Sim) -> BTreeSet<Seq> {
    let mut all = BTreeSet::new();
    for record in sim::records(sim) {
        if let Body::Redact(event) = record.body {
            all.extend(RedactBody::from_bytes(&event.control.body).unwrap().records);
        }
    }
    for seq in &all {
        assert_eq!(sim.store.vault(*seq).unwrap(), None, "{seq} was erased");
    }
    all
}

/// What was opened is what its record names: the path that the vault keeps, and it commits to.
fn opened_as_recorded(sim: &mut Sim) {
    let opened = sim.world.lock().unwrap().opened.clone();
    let erased = erased(sim);
    let calls = sim::records(sim).into_iter().filter_map(|record| match record.body {
        Body::Intent(intent) => Some((record.seq, intent.call)),
        _ => None,
    });
    let intents: BTreeMap<_, _> = calls.collect();
    for (intent, path) in &opened {
        let call = intents.get(intent).expect("on record");
        if erased.contains(intent) {
            continue;
        }
        let entry = vault_entry(&mut sim.store, *intent, *intent).unwrap();
        let args = Canonical::check(entry.args.unwrap(), Profile::DATA).unwrap();
        let (tool, manifest) = (call.tool_id.as_ref().unwrap(), call.manifest.unwrap());
        let hash = args_hash(&entry.salts.unwrap().args, tool, &manifest, args.item());
        assert_eq!(call.args_hash, Some(hash));
        assert_eq!(args.item().get("at").and_then(Item::as_text), Some(path.as_str()));
    }
}

fn held(amounts: &Amounts) -> u64 {
    amounts.get(Dimension::DiskWriteBytes)
}

/// The records and documents that a history leaves, closed.
pub fn log(data: &[u8]) -> (Vec<Vec<u8>>, Vec<Object>) {
    let mut input = Bytes(data);
    let mut sim = begin(&mut Bytes(&[0]));
    while !input.is_empty() {
        step(&mut sim, &mut input);
    }
    sim.commit();
    let store = sim.store.into_inner();
    (store.all_records(), store.all_objects())
}

fn records(sim: &mut Sim) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    let mut each = |_, bytes: &[u8]| {
        records.push(bytes.to_vec());
        Next::More
    };
    sim.store.records(Seq::GENESIS, &mut each).unwrap();
    records
}
