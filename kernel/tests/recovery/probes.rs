//! The kernel's side: probes, charges, keys.

use kernel_support::FromStore;
use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::tools::Spend;
use kernel_support::sim::{self, Ending, Sim, records, refused_with, seated};
use syscap_audit::MemoryStore;
use syscap_format::{
    Amounts, Body, Dimension, Durability, HomeLimits, Reason, RecordKind, Recovered, Recovery,
    Resolution, Seq, TokenId,
};
use syscap_kernel::{Anchor, Event, Kernel, Registry, Store, StoreError, Ticket};
use syscap_verify::{Extent, Options as VerifyOptions, verify};

/// A call of ten units with a key.
fn spend(key: &str, tries: u64) -> String {
    format!(
        r#"{{"tool_id": "spend", "args": {{"units": 10, "tries": {tries}}},
            "idempotency_key": "{key}"}}"#
    )
}

/// Three calls, of which one has not begun, one has done half and one all when the process dies.
fn broken_off() -> (Sim, TokenId) {
    let (mut sim, session) = seated();
    sim.world.lock().unwrap().probes = true;
    for (key, tries) in [("none", 10), ("half", 5), ("all", 10)] {
        sim.submit_json(session, &spend(key, tries));
    }
    sim.commit();
    // Their outcomes are never durable.
    sim.end_job(2, Ending::Runs);
    sim.end_job(1, Ending::Runs);
    let token = sim.tokens[0].0;
    sim.crash().unwrap();
    (sim, token)
}

fn recoveries(sim: &mut Sim) -> Vec<Recovery> {
    let recovery = |body| match body {
        Body::Recovery(recovery) => Some(*recovery),
        _ => None,
    };
    records(sim).into_iter().filter_map(|record| recovery(record.body)).collect()
}

pub(crate) fn spent(sim: &Sim) -> usize {
    sim.world.lock().unwrap().spent.len()
}

fn used(sim: &Sim, token: TokenId) -> Amounts {
    sim.kernel.token(&token).unwrap().used
}

/// The verifier agrees, and the log makes the state again.
pub(crate) fn sound(sim: &mut Sim) {
    let mut source = FromStore(&mut sim.store);
    let report = verify(&mut source, Extent::AtRest, &VerifyOptions::default()).unwrap();
    assert_eq!(report.findings, []);
    let live = sim.kernel.state_image();
    assert_eq!(sim.reopened().unwrap().state_image(), live);
}

pub(crate) fn run(sim: &mut Sim, session: Seq, json: &str) -> Ticket {
    let ticket = sim.submit_json(session, json);
    sim.commit();
    while !sim.jobs.is_empty() {
        sim.end_job(0, Ending::Runs);
    }
    sim.commit();
    ticket
}

fn resolve(sim: &mut Sim, intent: Seq, verdict: Recovered) -> Result<(), Reason> {
    let signed = sim.signed(&Resolution { intent, verdict });
    let ticket = sim.ticket();
    sim.event(Event::Control(ticket, RecordKind::Recovery, signed, None, None));
    sim.commit();
    match sim.acked(ticket).unwrap() {
        Ok(_) => Ok(()),
        Err(refused) => Err(refused.reason()),
    }
}

#[test]
fn probe_result_is_recorded_and_charged() {
    let (mut sim, token) = broken_off();
    sim.boot();
    let said = recoveries(&mut sim);
    let verdicts: Vec<Recovered> = said.iter().map(|recovery| recovery.verdict).collect();
    assert_eq!(verdicts, [Recovered::NotDone, Recovered::Unknown, Recovered::Done]);
    let calls = Amounts::ZERO.with(Dimension::Calls, 1);
    assert_eq!(said[0].used, calls, "no more than was set aside, however much a probe names");
    for full in &said[1..] {
        assert_eq!(full.used.get(Dimension::DiskWriteBytes), 10, "in full");
        assert_eq!(full.used.get(Dimension::WallUs), 1_000);
        assert_eq!(full.used.get(Dimension::Concurrent), 0);
    }
    let sum = said.iter().fold(Amounts::ZERO, |sum, recovery| sum.plus(&recovery.used));
    assert_eq!(used(&sim, token), sum);
    sound(&mut sim);
}

#[test]
fn a_key_follows_what_a_probe_proves() {
    let (mut sim, token) = broken_off();
    sim.boot();
    let session = sim.seat(token);
    assert_eq!(spent(&sim), 15);
    // Done: it is not run again, and what it brought is lost; of other arguments nothing is said.
    refused_with(&mut sim, session, &spend("all", 10), Reason::OutcomeLost);
    refused_with(&mut sim, session, &spend("all", 9), Reason::KeyReused);
    refused_with(&mut sim, session, &spend("half", 5), Reason::OutcomeUnknown);
    assert_eq!(spent(&sim), 15);
    // Not done: the same call runs, once.
    let ticket = run(&mut sim, session, &spend("none", 10));
    assert_eq!(sim.reason_of(ticket), None);
    run(&mut sim, session, &spend("none", 10));
    assert_eq!(spent(&sim), 25);
    sound(&mut sim);
}

/// What was found in another home, of an intent at the same place, counts for nothing.
#[test]
fn a_finding_counts_in_its_own_home_only() {
    let (mut sim, _) = broken_off();
    let store = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    let limits = HomeLimits { key_life_ms: 5_000, ..HomeLimits::default() };
    let mut other = Sim::with_limits(store, limits);
    other.world.lock().unwrap().probes = true;
    let token = other.issue("a0", 100, 100, 1_000_000);
    let session = other.seat(token);
    for key in ["none", "half", "all"] {
        other.submit_json(session, &spend(key, 10));
    }
    other.commit();
    other.crash().unwrap();
    let open = other.kernel.open_intents();
    assert_eq!(open, sim.kernel.open_intents());
    let found = open.iter().map(|seq| other.kernel.probing(*seq, &mut other.store));
    let probed = found.map(|probing| probing.unwrap().unwrap().run()).collect();
    let (ticket, software) = (sim.ticket(), Box::from("sim"));
    sim.event(Event::Boot {
        ticket,
        id: [9; 16],
        software,
        durability: Durability::Memory,
        probed,
    });
    sim.commit();
    let said = recoveries(&mut sim);
    assert!(said.iter().all(|recovery| recovery.verdict == Recovered::Unknown), "{said:?}");
    // What is closed is not asked about.
    assert!(sim.kernel.probing(open[0], &mut sim.store).unwrap().is_none());
}

/// A tool that is another now than the intent names says nothing about it.
#[test]
fn another_definition_is_not_asked() {
    let (mut sim, _) = broken_off();
    let open = |sim: &mut Sim, spend| {
        let mut parts = sim::parts(&sim.world);
        parts.registry = Registry::new();
        parts.registry.add(spend).unwrap();
        let kernel = Kernel::open(&mut sim.store, parts, &Anchor::default()).unwrap();
        let mut asked = Vec::new();
        for intent in kernel.open_intents() {
            asked.push(kernel.probing(intent, &mut sim.store).unwrap().is_some());
        }
        asked
    };
    let world = sim.world.clone();
    assert_eq!(open(&mut sim, Spend::new(&world)), [true; 3]);
    assert_eq!(open(&mut sim, Spend::described(&world, "another")), [false; 3]);
}

/// What the vault has must be what was recorded.
#[test]
fn a_tool_is_asked_about_the_recorded_arguments_only() {
    let (mut sim, _) = broken_off();
    let open = sim.kernel.open_intents();
    let mut erased = Erased(&mut sim.store, open[0]);
    assert!(sim.kernel.probing(open[0], &mut erased).unwrap().is_none());
    assert!(sim.kernel.probing(open[1], &mut erased).unwrap().is_some());
}

/// A store that gives another row for one record.
struct Erased<'a>(&'a mut FaultStore<MemoryStore>, Seq);

impl Store for Erased<'_> {
    fn vault(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        let row = if seq == self.1 { seq.next() } else { seq };
        self.0.vault(row)
    }

    kernel_support::forward!(self.0 => commit records object room);
}

#[test]
fn an_operators_word_settles_the_key() {
    for verdict in [Recovered::NotDone, Recovered::Done] {
        let (mut sim, token) = broken_off();
        sim.boot();
        let half = recoveries(&mut sim)[1].intent;
        let before = used(&sim, token);
        resolve(&mut sim, half, Recovered::Unknown).unwrap();
        resolve(&mut sim, half, verdict).unwrap();
        assert_eq!(used(&sim, token), before, "the charge stands");
        assert_eq!(resolve(&mut sim, half, verdict), Err(Reason::BadControl), "once");
        let session = sim.seat(token);
        if verdict == Recovered::NotDone {
            run(&mut sim, session, &spend("half", 5));
            assert_eq!(spent(&sim), 20);
        } else {
            refused_with(&mut sim, session, &spend("half", 5), Reason::OutcomeLost);
            assert_eq!(spent(&sim), 15);
        }
        sound(&mut sim);
    }
}

/// What is known is not for an operator to say.
#[test]
fn probed_outcome_is_not_resolved_by_hand() {
    let (mut sim, _) = broken_off();
    sim.boot();
    let said = recoveries(&mut sim);
    for known in [&said[0], &said[2]] {
        assert_eq!(resolve(&mut sim, known.intent, Recovered::NotDone), Err(Reason::BadControl));
    }
}
