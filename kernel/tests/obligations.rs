//! What a policy asks of a run that it lets through: kept, or the call is refused.

use kernel_support::FromStore;
use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::rule::{Rule, Trim};
use kernel_support::sim::{self, Ending, Policed, Sim, records};
use syscap_audit::MemoryStore;
use syscap_format::{
    Body, CallFields, ConstraintId, Decision, Dimension, HomeLimits, Item, Obligation,
    ObligationKind, PolicyChange, Reason, Refusal, Seq, ToolId, ToolResult, ToolsChange, TxOutcome,
    Verdict,
};
use syscap_kernel::{
    Ack, Anchor, Event, Kernel, PolicyEngine, Registry, ToolsDelta, object_of, vault_entry,
};
use syscap_verify::{Extent, Options, verify};

/// A home that a rule governs, and a session. What the rule says of a call is by its units.
fn ruled() -> (Sim, Seq) {
    let store = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    let mut sim = Sim::with(store, HomeLimits::default(), Policed::ByRule);
    let token = sim.issue("a0", 100, 1_000, 1_000_000);
    sim.open("a0", token);
    sim.commit();
    let session = sim.sessions[0];
    (sim, session)
}

/// Calls a tool, and runs it if it may run.
fn call(sim: &mut Sim, session: Seq, tool: &str, units: u64, more: &str) -> ToolResult {
    let args = format!(r#"{{"units": {units}{more}}}"#);
    let ticket = sim.submit_json(session, &format!(r#"{{"tool_id": "{tool}", "args": {args}}}"#));
    sim.commit();
    while !sim.jobs.is_empty() {
        sim.end_job(0, Ending::Runs);
    }
    sim.commit();
    sim.reply_to(ticket).unwrap().clone()
}

const GREEDY: &str = r#", "greedy": true"#;
const LONG: &str = r#", "long": true"#;

/// The call of the last record, and the refusal if it is one.
fn last(sim: &mut Sim) -> (CallFields, Option<Refusal>) {
    match records(sim).pop().unwrap().body {
        Body::Outcome(outcome) => (outcome.call, None),
        Body::Refusal(refusal) => (refusal.call.clone(), Some(*refusal)),
        Body::Ask(ask) => (ask.call, None),
        other => panic!("{:?}", other.kind()),
    }
}

fn decided(sim: &mut Sim) -> Decision {
    last(sim).0.decision.unwrap()
}

/// A call is refused for this reason, and nothing came of it.
fn refused(sim: &mut Sim, session: Seq, tool: &str, units: u64, reason: Reason) -> Refusal {
    let spent = sim.world.lock().unwrap().spent.len();
    let result = call(sim, session, tool, units, "");
    assert_eq!(result.reason(), Some(reason), "{tool} {units}");
    assert_eq!(sim.world.lock().unwrap().spent.len(), spent);
    last(sim).1.unwrap()
}

fn spent(sim: &Sim) -> usize {
    sim.world.lock().unwrap().spent.len()
}

fn verifies(sim: &mut Sim) {
    let mut source = FromStore(&mut sim.store);
    let report = verify(&mut source, Extent::AtRest, &Options::default()).unwrap();
    assert_eq!(report.findings, []);
}

#[test]
fn a_result_is_capped_by_the_permit() {
    let (mut sim, session) = ruled();
    let kept = call(&mut sim, session, "trim", 4, "");
    assert_eq!(kept.reason(), None);
    assert!(kept.delivered().as_bytes().len() <= 40);
    assert_eq!(kept.degraded(), [Obligation::result_cap(40)]);
    let object = kept.to_canonical();
    let told = object.item().get("degraded").unwrap();
    let told: Vec<&str> = told.elements().filter_map(Item::as_text).collect();
    assert_eq!(told, ["result_cap 40"]);
    // A tool that says that it keeps to a cap and does not: its result goes nowhere.
    let lied = call(&mut sim, session, "trim", 4, LONG);
    assert_eq!(lied.reason(), Some(Reason::ResultTooLarge));
    assert!(lied.delivered().item().get("text").is_none());
    // Nothing is taken away from a call that nothing is asked of.
    let plain = call(&mut sim, session, "trim", 13, "");
    assert!(plain.degraded().is_empty());
    assert!(plain.delivered().as_bytes().len() > 40);
    assert!(plain.to_canonical().item().get("degraded").is_none());
    // A tool that does not honour a cap is not called.
    let refusal = refused(&mut sim, session, "spend", 4, Reason::Obligation);
    assert_eq!(refusal.call.decision.unwrap().verdict, Verdict::Degrade);
    verifies(&mut sim);
}

/// A policy takes from what a tool may give and adds nothing to it.
#[test]
fn cap_above_the_tools_own_limit_raises_nothing() {
    let (mut sim, session) = ruled();
    let kept = call(&mut sim, session, "trim", 22, LONG);
    assert_eq!(kept.reason(), None);
    let given = u64::try_from(kept.delivered().as_bytes().len()).unwrap();
    let mut add = Registry::new();
    add.add(Trim::giving_at_most(&sim.world, given - 1)).unwrap();
    let delta = ToolsDelta { remove: vec![ToolId::new("trim").unwrap()], add };
    let tools = sim.kernel.registry_hash_after(&delta).unwrap();
    let (control, ticket) = (sim.signed(&ToolsChange { tools }), sim.ticket());
    sim.event(Event::Tools(ticket, control, None, delta));
    sim.commit();
    let more = call(&mut sim, session, "trim", 22, LONG);
    assert_eq!(more.reason(), Some(Reason::ResultTooLarge));
    assert_eq!(decided(&mut sim).obligations, [Obligation::result_cap(1_000)]);
    verifies(&mut sim);
}

#[test]
fn read_only_is_for_readers_and_for_tools_that_declare_it() {
    let (mut sim, session) = ruled();
    let before = spent(&sim);
    let result = call(&mut sim, session, "trim", 3, "");
    assert_eq!(result.reason(), None);
    let saw = result.delivered().item().get("read_only").and_then(Item::as_bool);
    assert_eq!(saw, Some(true), "the permit says so");
    assert_eq!((result.tx_outcome(), spent(&sim)), (TxOutcome::NoOp, before));
    assert_eq!(result.degraded(), [Obligation::read_only()], "a notice takes nothing away");
    let free = call(&mut sim, session, "trim", 13, "");
    assert_eq!(free.delivered().item().get("read_only").and_then(Item::as_bool), Some(false));
    refused(&mut sim, session, "spend", 3, Reason::Obligation);
    // A tool that only reads can be asked to only read. The rule asks it of every call of it.
    sim::ok(&mut sim, session);
    assert_eq!(decided(&mut sim).obligations, [Obligation::read_only()]);
    verifies(&mut sim);
}

#[test]
fn a_cut_budget_is_a_smaller_hold() {
    let (mut sim, session) = ruled();
    // 13 units are as many as the plan needs, and five are set aside besides.
    call(&mut sim, session, "trim", 13, "");
    let held = |call: &CallFields| call.held.get(Dimension::DiskWriteBytes);
    assert_eq!(held(&last(&mut sim).0), 13 + Trim::SPARE);
    // Of two cuts the smaller one holds: all that the plan needs, and nothing spare.
    let result = call(&mut sim, session, "trim", 6, "");
    assert_eq!((result.reason(), held(&last(&mut sim).0)), (None, 6));
    let before = spent(&sim);
    let greedy = call(&mut sim, session, "trim", 6, GREEDY);
    assert_eq!(greedy.reason(), Some(Reason::OverHold));
    assert_eq!(spent(&sim) - before, 6, "not one unit more");
    // A cut below what the plan needs is no way to run it.
    let result = call(&mut sim, session, "trim", 5, "");
    assert_eq!(result.reason(), Some(Reason::Reduced));
    let object = result.delivered().item();
    assert_eq!(object.get("field").and_then(Item::as_text), Some("disk_write_bytes"));
    assert_eq!(object.get("got").and_then(Item::as_text), Some("5"));
    assert_eq!(object.get("allowed").and_then(Item::as_text), Some("at most 2"));
    verifies(&mut sim);
}

/// A notice stands in the record of a call, whatever became of it.
#[test]
fn notices_are_recorded() {
    let (mut sim, session) = ruled();
    let notify = Obligation::notify("rule");
    let is_notified = |sim: &mut Sim| decided(sim).obligations.contains(&notify);
    assert_eq!(call(&mut sim, session, "spend", 7, "").reason(), None);
    assert!(is_notified(&mut sim), "allowed");
    assert_eq!(call(&mut sim, session, "trim", 3, "").reason(), None);
    assert!(is_notified(&mut sim), "degraded");
    refused(&mut sim, session, "spend", 16, Reason::Denied);
    assert!(is_notified(&mut sim), "denied");
    refused(&mut sim, session, "spend", 3, Reason::Obligation);
    assert!(is_notified(&mut sim), "not kept");
    let kinds: Vec<ObligationKind> =
        decided(&mut sim).obligations.iter().map(|asked| asked.kind).collect();
    assert_eq!(kinds, [ObligationKind::ReadOnly, ObligationKind::Notify]);
    verifies(&mut sim);
}

/// There is nobody to approve yet: what asks for it runs nowhere.
#[test]
fn approval_is_not_taken_for_granted() {
    let (mut sim, session) = ruled();
    for tool in ["trim", "spend"] {
        let refusal = refused(&mut sim, session, tool, 8, Reason::Obligation);
        assert_eq!(refusal.call.decision.unwrap().verdict, Verdict::Allow);
    }
    refused(&mut sim, session, "trim", 1, Reason::Asked);
    refused(&mut sim, session, "trim", 2, Reason::Deferred);
    verifies(&mut sim);
}

/// An engine that contradicts itself, or says more than a record holds, says no.
#[test]
fn an_engine_that_says_nonsense_denies() {
    let (mut sim, session) = ruled();
    for units in [9, 10, 11] {
        let refusal = refused(&mut sim, session, "trim", units, Reason::Denied);
        assert_eq!(refusal.call.decision, Some(Decision::plain(Verdict::Deny)), "{units}");
    }
    // So does a shadow, for the record only.
    let ticket = sim.rule(0, Some(1));
    sim.commit();
    assert!(matches!(sim.acked(ticket), Some(Ok(Ack::Recorded(_)))));
    assert_eq!(call(&mut sim, session, "trim", 13, "").reason(), None);
    refused(&mut sim, session, "trim", 8, Reason::Obligation);
    let shadow = last(&mut sim).0.shadow.unwrap();
    assert_eq!(shadow.decision, Decision::plain(Verdict::Deny), "it said that it degrades");
    verifies(&mut sim);
}

#[test]
fn matches_beyond_the_list_are_counted() {
    let (mut sim, session) = ruled();
    assert_eq!(call(&mut sim, session, "trim", 12, "").reason(), None);
    let decision = decided(&mut sim);
    assert_eq!((decision.matches.len(), decision.match_count), (16, 20));
    assert_eq!(decision.deciding, ConstraintId::new("c/03"));
    assert!(decision.matches_digest.is_some());
    verifies(&mut sim);
}

/// A shadow is asked, and nothing follows from what it says.
#[test]
fn a_shadow_changes_nothing() {
    let (mut plain, session) = ruled();
    let (mut beside, _) = ruled();
    beside.rule(0, Some(3));
    plain.rule(0, None);
    for units in 0..32 {
        let one = call(&mut plain, session, "trim", units, "");
        let other = call(&mut beside, session, "trim", units, "");
        assert_eq!(one.delivered(), other.delivered(), "{units}");
        let (one, other) = (last(&mut plain).0, last(&mut beside).0);
        assert_eq!((one.decision, one.held, one.used), (other.decision, other.held, other.used));
        assert!(one.shadow.is_none() && other.shadow.is_some());
    }
    verifies(&mut beside);
    // After a restart nothing runs until both are there again, and then both are asked.
    let token = beside.tokens[0].0;
    beside.crash().unwrap();
    beside.boot();
    beside.open("a0", token);
    beside.commit();
    let session = *beside.sessions.last().unwrap();
    assert_eq!(call(&mut beside, session, "trim", 13, "").reason(), None);
    assert!(last(&mut beside).0.shadow.is_some());
    // One policy may be both.
    beside.rule(3, Some(3));
    beside.commit();
    let token = beside.tokens[0].0;
    beside.crash().unwrap();
    beside.kernel = beside.reopened().unwrap();
    assert!(beside.kernel.adopt(Box::new(Rule(3))), "once for each");
    beside.boot();
    beside.open("a0", token);
    beside.commit();
    let session = *beside.sessions.last().unwrap();
    call(&mut beside, session, "trim", 10, "");
    let last = last(&mut beside).0;
    assert_eq!(Some(last.shadow.unwrap().decision), last.decision);
    verifies(&mut beside);
}

/// Only what is on record can be adopted.
#[test]
fn an_engine_is_adopted_only_if_it_is_on_record() {
    let (mut sim, _) = ruled();
    sim.rule(1, Some(2));
    sim.commit();
    let adopted = |kernel: &mut Kernel| {
        Rule::ALL.map(|number| kernel.adopt(Box::new(Rule(number)))).collect::<Vec<_>>()
    };
    let opened = |sim: &mut Sim| {
        Kernel::open(&mut sim.store, sim::parts_of(&sim.world, Policed::ByRule), &Anchor::default())
            .unwrap()
    };
    assert_eq!(adopted(&mut opened(&mut sim)), [false, true, true, false]);
    // A kernel that runs takes none: what it has is changed by a record.
    assert_eq!(adopted(&mut sim.kernel), [false; 4]);
    // Before the shadow is there again nothing runs.
    let token = sim.tokens[0].0;
    let mut kernel = opened(&mut sim);
    assert!(kernel.adopt(Box::new(Rule(1))));
    sim.kernel = kernel;
    sim.boot();
    let session = sim.seat(token);
    let refusal = refused(&mut sim, session, "trim", 12, Reason::PolicyNotInForce);
    assert_eq!((refusal.call.decision, refusal.call.shadow), (None, None));
    verifies(&mut sim);
}

/// A change of policy that can't be made is refused on the record, and changes nothing.
#[test]
fn a_policy_that_is_not_there_is_refused() {
    let (mut sim, session) = ruled();
    let hash = |number| object_of(&Rule(number)).hash();
    let boxed = |number| Box::new(Rule(number)) as Box<dyn PolicyEngine>;
    let before = (sim.kernel.policy_hash(), sim.kernel.shadow_hash());
    for (policy, shadow, engines) in [
        (1, None, vec![]),
        (1, None, vec![2]),
        (1, Some(2), vec![1]),
        (1, Some(2), vec![2]),
        (0, Some(1), vec![]),
    ] {
        let change = PolicyChange { policy: hash(policy), shadow: shadow.map(hash) };
        let (control, ticket) = (sim.signed(&change), sim.ticket());
        sim.event(Event::Policy(
            ticket,
            control,
            None,
            engines.into_iter().map(boxed).collect(),
            None,
        ));
        sim.commit();
        let refused = sim.acked(ticket).unwrap().as_ref().unwrap_err();
        assert_eq!(refused.reason(), Reason::WrongPolicy);
    }
    let ticket = sim.ticket();
    sim.event(Event::BadPolicy(ticket, "constraints[3].when".into(), "no such op".into()));
    sim.commit();
    let refused = sim.acked(ticket).unwrap().as_ref().unwrap_err().clone();
    assert_eq!(refused.reason(), Reason::BadPolicy);
    assert!(refused.to_string().contains("constraints[3].when"), "{refused}");
    let (_, refusal) = last(&mut sim);
    assert_eq!(refusal.unwrap().reason, Reason::BadPolicy);
    assert_eq!((sim.kernel.policy_hash(), sim.kernel.shadow_hash()), before);
    assert_eq!(call(&mut sim, session, "trim", 13, "").reason(), None);
    // Those that the kernel has need not be brought along, those that it had must be.
    sim.rule(1, Some(2));
    let change = PolicyChange { policy: hash(1), shadow: Some(hash(2)) };
    let (control, ticket) = (sim.signed(&change), sim.ticket());
    sim.event(Event::Policy(ticket, control, None, Vec::new(), None));
    sim.commit();
    assert!(sim.acked(ticket).unwrap().is_ok());
    let change = PolicyChange { policy: hash(0), shadow: None };
    let (control, ticket) = (sim.signed(&change), sim.ticket());
    sim.event(Event::Policy(ticket, control, None, Vec::new(), None));
    sim.commit();
    assert_eq!(sim.acked(ticket).unwrap().as_ref().unwrap_err().reason(), Reason::WrongPolicy);
    verifies(&mut sim);
}

/// The arguments of a call that the policy refused are kept, so that another policy can be asked.
#[test]
fn arguments_of_a_denied_call_are_kept() {
    let (mut sim, session) = ruled();
    let refusal = refused(&mut sim, session, "trim", 16, Reason::Denied);
    let seq = records(&mut sim).pop().unwrap().seq;
    let entry = vault_entry(&mut sim.store, seq, seq).unwrap();
    let (salts, args) = (entry.salts.unwrap(), entry.args.unwrap());
    let args = Item::check(&args, syscap_format::Profile::DATA).unwrap();
    assert_eq!(args.get("units").and_then(Item::as_uint), Some(16));
    let manifest = refusal.call.manifest.unwrap();
    let tool = refusal.call.tool_id.unwrap();
    let hash = syscap_format::args_hash(&salts.args, &tool, &manifest, args);
    assert_eq!(refusal.call.args_hash, Some(hash));
    // One that was refused before the policy was asked leaves nothing.
    sim.submit_json(session, r#"{"tool_id": "trim", "args": {"units": -1}}"#);
    sim.commit();
    let seq = records(&mut sim).pop().unwrap().seq;
    assert_eq!(vault_entry(&mut sim.store, seq, seq).unwrap().args, None);
}
