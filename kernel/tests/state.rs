//! The agents' states: who may change them, how far, and what is known after.

mod durable;

use kernel_support::FromStore;
use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::tokens::budget;
use kernel_support::sim::{self, Ending, Policed, Sim, ok, records, refused_with, seated};
use std::collections::BTreeSet;
use syscap_audit::MemoryStore;
use syscap_format::{
    ANCESTORS_MAX, AgentId, Body, Budget, CHANGES_MAX, Canonical, Dimension, FACT_BYTES_MAX,
    FACTS_MAX, Fact, FactKey, Freeze, FreezeChange, FreezeTarget, Grants, HomeLimits, ObjectId,
    Reason, RecordKind, Seq, Snapshot, SnapshotId, Source, StateChange, TokenBody, TokenFlags,
    changes_hash, fact_id, json,
};
use syscap_kernel::{Ack, Event, Kernel, Next, Proposal, Room, Store as _, Ticket, vault_entry};
use syscap_verify::{Extent, Options, verify};

/// The head that an answer gives.
fn head_of(sim: &Sim, ticket: Ticket) -> Result<SnapshotId, Reason> {
    match sim.acked(ticket).expect("answered") {
        Ok(Ack::State(snapshot, _)) => Ok(*snapshot),
        Ok(other) => panic!("{other:?}"),
        Err(refused) => Err(refused.reason()),
    }
}

/// A child token that grants no tool says nothing of what its parent's agent is after: the policy
/// judges the parent's calls by that.
#[test]
fn child_token_without_grants_moves_no_goal_of_its_parents_agent() {
    let (mut sim, _) = seated();
    let mut body = sim.token_body("a0", budget(100, 100), 3_600_000);
    (body.holder, body.depth_max) = (Some(sim::keys::public_of(&sim::keys::holder())), 2);
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(&body), None));
    let parent = TokenBody::id_of(&body.to_bytes());
    sim.tokens.push((parent, 100));
    let session = sim.seat(parent);
    aim(&mut sim, session, r#"{"goal.a": 1}"#).unwrap();
    for (has_grants, wanted) in [(true, None), (false, Some(Reason::Namespace))] {
        let mut body = sim.derived(parent, budget(10, 10), 60_000).unwrap();
        if !has_grants {
            body.grants = Grants::new();
        }
        let (ticket, wire) = (sim.ticket(), Sim::wire_by(&sim::keys::holder(), &body));
        sim.event(Event::Issue(ticket, wire, None));
        let child = TokenBody::id_of(&body.to_bytes());
        sim.tokens.push((child, 0));
        let session = sim.seat(child);
        sim.commit();
        let set = aim(&mut sim, session, r#"{"goal.a": 2}"#);
        assert_eq!(set.err(), wanted);
        let removed = aim(&mut sim, session, r#"{"goal.a": null}"#);
        assert_eq!(removed.err(), wanted);
        // What a tool has found out is no goal.
        let fact = propose(&mut sim, session, Source::Tool, r#"{"fact.a": 1}"#);
        assert_eq!(fact.err(), None);
        verifies(&mut sim);
    }
}

/// Proposes and makes durable.
fn propose(sim: &mut Sim, session: Seq, writer: Source, json: &str) -> Result<SnapshotId, Reason> {
    let ticket = sim.propose(session, writer, json);
    sim.commit();
    head_of(sim, ticket)
}

/// By the agent.
fn aim(sim: &mut Sim, session: Seq, json: &str) -> Result<SnapshotId, Reason> {
    propose(sim, session, Source::Agent, json)
}

fn key(name: &str) -> FactKey {
    FactKey::new(name).unwrap()
}

/// What is known of the one agent's fact, as JSON.
fn known(kernel: &Kernel, name: &str) -> Option<String> {
    let (_, _, facts) = kernel.states().next().unwrap();
    match facts.get(&key(name)) {
        Fact::Missing => None,
        Fact::Erased => Some("erased".to_owned()),
        Fact::Known(value) => Some(json::from_data(value)),
    }
}

fn number(kernel: &Kernel) -> u64 {
    kernel.states().next().unwrap().1.number
}

fn last(sim: &mut Sim) -> Body {
    records(sim).pop().unwrap().body
}

fn change(sim: &mut Sim) -> StateChange {
    match last(sim) {
        Body::State(change) => *change,
        other => panic!("{:?}", other.kind()),
    }
}

fn verifies(sim: &mut Sim) {
    let mut source = FromStore(&mut sim.store);
    let report = verify(&mut source, Extent::AtRest, &Options::default()).unwrap();
    assert_eq!(report.findings, []);
}

/// The log makes the same state, and what is known of the facts is the same.
fn replays(sim: &mut Sim) {
    let replayed = sim.reopened().unwrap();
    assert_eq!(replayed.state_image(), sim.kernel.state_image());
    let all = |kernel: &Kernel| kernel.states().map(|s| format!("{s:?}")).collect::<Vec<_>>();
    assert_eq!(all(&replayed), all(&sim.kernel));
}

/// A new session for a new token of the agent.
fn another(sim: &mut Sim, agent: &str, calls: u64, life_ms: u64) -> Seq {
    let token = sim.issue(agent, calls, 100, life_ms);
    sim.open(agent, token);
    sim.commit();
    *sim.sessions.last().unwrap()
}

#[test]
fn a_change_moves_the_head() {
    let (mut sim, session) = seated();
    let genesis = sim.kernel.states().next().unwrap().1.id();
    let ticket = sim.propose(session, Source::Agent, r#"{"goal.a": [1, "x"], "goal.b": 2.5}"#);
    assert!(sim.acked(ticket).is_none(), "answered before its record was durable");
    sim.commit();
    let first = head_of(&sim, ticket).unwrap();
    let record = change(&mut sim);
    assert_eq!((record.snapshot, record.number), (first, 1));
    assert_eq!(record.call.state_snapshot_id, Some(genesis));
    assert_eq!(record.set, [key("goal.a"), key("goal.b")]);
    assert_eq!(record.call.used.get(Dimension::Calls), 1);
    assert_eq!(known(&sim.kernel, "goal.a").unwrap(), r#"[1,"x"]"#);
    // Commitments to the changes and to each fact open with what the vault has.
    let seq = records(&mut sim).pop().unwrap().seq;
    let entry = vault_entry(&mut sim.store, seq, seq).unwrap();
    let changes = json::to_cbor(br#"{"goal.a": [1, "x"], "goal.b": 2.5}"#).unwrap();
    assert_eq!(entry.args.as_deref(), Some(changes.as_bytes()));
    let salt = entry.salts.unwrap().args;
    assert_eq!(record.call.args_hash, Some(changes_hash(&salt, changes.item())));
    let object = sim.store.object(&ObjectId::from_bytes(*first.as_bytes())).unwrap().unwrap();
    let snapshot = Snapshot::from_bytes(&object.bytes).unwrap();
    assert_eq!((snapshot.parent, snapshot.number), (Some(genesis), 1));
    for (name, id) in snapshot.fact_ids().unwrap() {
        let value = changes.item().get(name.as_str()).unwrap();
        assert_eq!(fact_id(&salt, &name, value), id);
    }
    // A key is taken away, another one set anew; the rest stays.
    let second = aim(&mut sim, session, r#"{"goal.a": null, "goal.c": true}"#).unwrap();
    assert_eq!(change(&mut sim).removed, [key("goal.a")]);
    assert_eq!(known(&sim.kernel, "goal.a"), None);
    assert_eq!(known(&sim.kernel, "goal.b").unwrap(), "2.5");
    assert_eq!(known(&sim.kernel, "goal.c").unwrap(), "true");
    // To take away what is not there is a change too.
    let third = aim(&mut sim, session, r#"{"goal.a": null}"#).unwrap();
    assert_eq!(BTreeSet::from([genesis, first, second, third]).len(), 4);
    assert_eq!(number(&sim.kernel), 3);
    verifies(&mut sim);
    replays(&mut sim);
}

/// The log holds none of the values.
#[test]
fn no_value_stands_in_the_log() {
    let (mut sim, session) = seated();
    aim(&mut sim, session, r#"{"goal.a": "an unmistakable secret"}"#).unwrap();
    let mut all = Vec::new();
    sim.store
        .records(Seq::GENESIS, &mut |_, bytes| {
            all.extend_from_slice(bytes);
            Next::More
        })
        .unwrap();
    let head = change(&mut sim).snapshot;
    let object = sim.store.object(&ObjectId::from_bytes(*head.as_bytes())).unwrap().unwrap();
    all.extend_from_slice(&object.bytes);
    let secret = b"unmistakable";
    assert!(!all.windows(secret.len()).any(|window| window == secret));
}

#[test]
fn everybody_writes_their_own_keys() {
    let (mut sim, session) = seated();
    for writer in Source::ALL {
        for space in ["goal", "fact", "policy", "constraint"] {
            let mine = matches!(
                (space, writer),
                ("goal", Source::Agent | Source::User) | ("fact", Source::Tool | Source::Encoder)
            );
            for value in ["1", "null"] {
                let answer =
                    propose(&mut sim, session, *writer, &format!(r#"{{"{space}.x": {value}}}"#));
                let wanted = if mine { None } else { Some(Reason::Namespace) };
                assert_eq!(answer.err(), wanted, "{space} by {writer}");
                ok(&mut sim, session);
            }
        }
    }
    // Whole or not at all: one key of somebody else's spoils all.
    let before = number(&sim.kernel);
    let mixed = r#"{"goal.a": 1, "fact.a": 1}"#;
    assert_eq!(aim(&mut sim, session, mixed), Err(Reason::Namespace));
    assert_eq!((number(&sim.kernel), known(&sim.kernel, "goal.a")), (before, None));
    verifies(&mut sim);
}

#[test]
fn state_change_of_another_form_is_refused() {
    let (mut sim, session) = seated();
    let long = format!("goal.{}", "a".repeat(FactKey::NAME_BYTES_MAX + 1));
    let long = format!(r#"{{"{long}": 1}}"#);
    for bad in [
        "{}",
        "[]",
        "1",
        r#""goal.a""#,
        r#"{"goal": 1}"#,
        r#"{"goal.": 1}"#,
        r#"{".a": 1}"#,
        r#"{"goal.A": 1}"#,
        r#"{"goal.a.b": 1}"#,
        r#"{"other.a": 1}"#,
        r#"{"a": 1}"#,
        &long,
    ] {
        assert_eq!(aim(&mut sim, session, bad), Err(Reason::BadFact), "{bad}");
        let Body::Refusal(refusal) = last(&mut sim) else { panic!("{bad}") };
        assert_eq!(refusal.reason, Reason::BadFact);
        assert_eq!(refusal.call.used.get(Dimension::Calls), 1, "{bad}");
        ok(&mut sim, session);
    }
    let (ticket, salts) = (sim.ticket(), sim.salts());
    let mut numbers = syscap_format::Encoder::new();
    numbers.map(1);
    numbers.uint(1);
    numbers.uint(1);
    let changes = Canonical::check(numbers.into_bytes(), syscap_format::Profile::DATA);
    let proposal = Proposal {
        ticket,
        session,
        writer: Source::Agent,
        inputs: Vec::new(),
        base: None,
        changes: changes.unwrap(),
        salts,
    };
    sim.event(Event::Propose(Box::new(proposal)));
    sim.commit();
    assert_eq!(head_of(&sim, ticket), Err(Reason::BadFact), "keys that are numbers");
    verifies(&mut sim);
}

#[test]
fn a_fact_and_a_state_have_their_size() {
    let (mut sim, session) = seated();
    // The head of a text of that length has three bytes.
    let text = |bytes: usize| format!(r#"{{"goal.a": "{}"}}"#, "x".repeat(bytes - 3));
    aim(&mut sim, session, &text(FACT_BYTES_MAX)).unwrap();
    let over = aim(&mut sim, session, &text(FACT_BYTES_MAX + 1));
    assert_eq!(over, Err(Reason::BadFact));
    let keys = |range: std::ops::Range<usize>, value: &str| {
        let entries: Vec<String> = range.map(|n| format!(r#""goal.k{n}": {value}"#)).collect();
        format!("{{{}}}", entries.join(","))
    };
    aim(&mut sim, session, &keys(1..FACTS_MAX, "1")).unwrap();
    let one_more = r#"{"goal.more": 1}"#;
    assert_eq!(aim(&mut sim, session, one_more), Err(Reason::TooManyFacts));
    // A tool's facts count too. One in exchange for another is no more.
    assert_eq!(
        propose(&mut sim, session, Source::Tool, r#"{"fact.more": 1}"#),
        Err(Reason::TooManyFacts)
    );
    aim(&mut sim, session, r#"{"goal.k1": null, "goal.more": 1}"#).unwrap();
    aim(&mut sim, session, &keys(2..FACTS_MAX, "null")).unwrap();
    // What stands in one record has its limit, or it would not fit.
    let long = |count: usize| {
        let key = |n| format!(r#""goal.{}{n:04}": null"#, "x".repeat(FactKey::NAME_BYTES_MAX - 4));
        format!("{{{}}}", (0..count).map(key).collect::<Vec<_>>().join(","))
    };
    aim(&mut sim, session, &long(CHANGES_MAX)).unwrap();
    assert_eq!(aim(&mut sim, session, &long(CHANGES_MAX + 1)), Err(Reason::BadFact));
    assert_eq!(aim(&mut sim, session, &long(2_000)), Err(Reason::BadFact));
    assert_eq!(sim.kernel.halted(), None);
    aim(&mut sim, session, r#"{"goal.yet": 1}"#).unwrap();
    verifies(&mut sim);
    replays(&mut sim);
}

#[test]
fn a_change_is_made_from_the_head() {
    let (mut sim, session) = seated();
    let first = aim(&mut sim, session, r#"{"goal.a": 1}"#).unwrap();
    let from = |sim: &mut Sim, base| {
        let ticket = sim.propose_from(session, Source::Agent, base, r#"{"goal.a": 2}"#);
        sim.commit();
        head_of(sim, ticket)
    };
    let second = from(&mut sim, Some(first)).unwrap();
    assert_eq!(from(&mut sim, Some(first)), Err(Reason::StaleSnapshot));
    let Body::Refusal(refusal) = last(&mut sim) else { panic!() };
    assert_eq!(
        refusal.call.state_snapshot_id,
        Some(second),
        "the head is what it was held against"
    );
    assert_eq!(from(&mut sim, Some(SnapshotId::from_bytes([1; 32]))), Err(Reason::StaleSnapshot));
    from(&mut sim, None).unwrap();
    // Two sessions of one agent share its state.
    let other = another(&mut sim, "a0", 10, 1_000_000);
    aim(&mut sim, other, r#"{"goal.b": 1}"#).unwrap();
    assert_eq!(known(&sim.kernel, "goal.a").unwrap(), "2");
    verifies(&mut sim);
}

fn naming(snapshot: &SnapshotId) -> String {
    format!(r#"{{"tool_id": "look", "args": {{"at": 1}}, "state_snapshot_id": "{snapshot}"}}"#)
}

/// Calls a tool under a snapshot, and gives back what the intent says of named one and head.
fn named(sim: &mut Sim, session: Seq, json: &str) -> (Option<SnapshotId>, Option<SnapshotId>) {
    let ticket = sim.submit_json(session, json);
    sim.end_job(0, Ending::Runs);
    sim.commit();
    assert_eq!(sim.reason_of(ticket), None, "{json}");
    match last(sim) {
        Body::Outcome(outcome) => (outcome.call.state_snapshot_id, outcome.call.head),
        other => panic!("{:?}", other.kind()),
    }
}

#[test]
fn a_call_may_name_what_was_before() {
    let (mut sim, session) = seated();
    let genesis = sim.kernel.states().next().unwrap().1.id();
    let first = aim(&mut sim, session, r#"{"goal.a": 1}"#).unwrap();
    let look = r#"{"tool_id": "look", "args": {"at": 1}}"#;
    assert_eq!(named(&mut sim, session, look), (Some(first), None), "filled in with the head");
    assert_eq!(named(&mut sim, session, &naming(&first)), (Some(first), None));
    assert_eq!(named(&mut sim, session, &naming(&genesis)), (Some(genesis), Some(first)));
    // Another agent's is as unknown as one that nobody has.
    let other = another(&mut sim, "a1", 10, 1_000_000);
    let theirs = aim(&mut sim, other, r#"{"goal.a": 1}"#).unwrap();
    for foreign in [theirs, SnapshotId::from_bytes([1; 32])] {
        refused_with(&mut sim, session, &naming(&foreign), Reason::UnknownSnapshot);
        let Body::Refusal(refusal) = last(&mut sim) else { panic!() };
        assert_eq!((refusal.call.state_snapshot_id, refusal.call.head), (None, None));
    }
    refused_with(&mut sim, other, &naming(&first), Reason::UnknownSnapshot);
    verifies(&mut sim);
    replays(&mut sim);
}

#[test]
fn ancestors_are_known_for_a_while() {
    let mut sim = sim::home();
    let session = another(&mut sim, "a0", 10_000, 1_000_000);
    let genesis = sim.kernel.states().next().unwrap().1.id();
    let mut first = None;
    for n in 0..ANCESTORS_MAX {
        let ticket = sim.propose(session, Source::Agent, &format!(r#"{{"goal.a": {n}}}"#));
        if n == 0 {
            sim.commit();
            first = head_of(&sim, ticket).ok();
        }
    }
    sim.commit();
    named(&mut sim, session, &naming(&genesis));
    aim(&mut sim, session, r#"{"goal.a": 0}"#).unwrap();
    refused_with(&mut sim, session, &naming(&genesis), Reason::UnknownSnapshot);
    named(&mut sim, session, &naming(&first.unwrap()));
    verifies(&mut sim);
    replays(&mut sim);
}

/// The policy decides on the head, whatever a call names.
#[test]
fn the_policy_sees_the_heads_facts() {
    let store = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    let mut sim = Sim::with(store, HomeLimits::default(), Policed::ByRule);
    let session = another(&mut sim, "a0", 100, 1_000_000);
    let genesis = sim.kernel.states().next().unwrap().1.id();
    let spend = r#"{"tool_id": "spend", "args": {"units": 13}}"#;
    let run = |sim: &mut Sim, json: &str| {
        let ticket = sim.submit_json(session, json);
        sim.commit();
        sim.end_job(0, Ending::Runs);
        sim.commit();
        sim.reason_of(ticket)
    };
    assert_eq!(run(&mut sim, spend), None);
    // The rule adds what the agent is after to the units: 16 is a no.
    aim(&mut sim, session, r#"{"goal.aim": 3}"#).unwrap();
    assert_eq!(run(&mut sim, spend), Some(Reason::Denied));
    let old = format!(r#"{}, "state_snapshot_id": "{genesis}"}}"#, &spend[..spend.len() - 1]);
    assert_eq!(run(&mut sim, &old), Some(Reason::Denied), "an old snapshot is no way around");
    // A proposal that is queued counts for the call behind it.
    sim.propose(session, Source::Agent, r#"{"goal.aim": 0}"#);
    assert_eq!(run(&mut sim, spend), None);
    verifies(&mut sim);
}

#[test]
fn stopped_agent_changes_no_state() {
    let (mut sim, session) = seated();
    let goal = r#"{"goal.a": 1}"#;
    let freeze = |sim: &mut Sim, target, name: &str, change| {
        let control = sim.signed(&Freeze { target, name: Box::from(name), change });
        let ticket = sim.ticket();
        sim.event(Event::Control(ticket, RecordKind::Freeze, control, None, None));
        sim.commit();
    };
    for (target, name) in [(FreezeTarget::Agent, "a0"), (FreezeTarget::Kernel, "")] {
        freeze(&mut sim, target, name, FreezeChange::Freeze);
        assert_eq!(aim(&mut sim, session, goal), Err(Reason::Frozen));
        freeze(&mut sim, target, name, FreezeChange::Thaw);
    }
    // What stops a tool, or another agent, stops no change.
    freeze(&mut sim, FreezeTarget::Tool, "look", FreezeChange::Freeze);
    freeze(&mut sim, FreezeTarget::Agent, "a1", FreezeChange::Freeze);
    aim(&mut sim, session, goal).unwrap();
    sim.event(Event::Room(Room::Reserve));
    assert_eq!(aim(&mut sim, session, goal), Err(Reason::NoRoom));
    sim.event(Event::Room(Room::Enough));
    let brief = another(&mut sim, "a0", 10, 5_001);
    aim(&mut sim, brief, goal).unwrap();
    sim.wall += 6_000;
    sim.boottime += 6_000;
    assert_eq!(aim(&mut sim, brief, goal), Err(Reason::Expired));
    let token = sim.tokens[0].0;
    sim.revoke(token);
    assert_eq!(aim(&mut sim, session, goal), Err(Reason::Revoked));
    assert_eq!(aim(&mut sim, Seq::new(1), goal), Err(Reason::NoSession), "no such session");
    let ticket = sim.ticket();
    sim.event(Event::CloseSession(ticket, brief));
    assert_eq!(aim(&mut sim, brief, goal), Err(Reason::NoSession));
    verifies(&mut sim);
    replays(&mut sim);
}

/// A token for reading only changes nothing, whoever the host says writes.
#[test]
fn a_token_that_only_reads_changes_no_state() {
    let mut sim = sim::home();
    let mut body = sim.token_body("a0", Budget::standard(), 1_000_000);
    body.flags = TokenFlags::READ_ONLY;
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(&body), None));
    sim.open("a0", TokenBody::id_of(&body.to_bytes()));
    sim.commit();
    let session = sim.sessions[0];
    let goal = (r#"{"goal.a": 1}"#, [Source::Agent, Source::User]);
    let fact = (r#"{"fact.a": 1}"#, [Source::Tool, Source::Encoder]);
    for (json, writers) in [goal, fact] {
        for writer in writers {
            let refused = propose(&mut sim, session, writer, json);
            assert_eq!(refused, Err(Reason::ReadOnlyToken), "{writer}");
            let Body::Refusal(refusal) = last(&mut sim) else { panic!("not on record") };
            assert_eq!(refusal.reason, Reason::ReadOnlyToken);
            assert_eq!(refusal.call.used.get(Dimension::Calls), 1);
        }
    }
    assert_eq!((number(&sim.kernel), known(&sim.kernel, "goal.a")), (0, None));
    verifies(&mut sim);
    replays(&mut sim);
}

#[test]
fn a_change_pays_a_call() {
    let mut sim = sim::home();
    let session = another(&mut sim, "a0", 3, 1_000_000);
    let goal = r#"{"goal.a": 1}"#;
    aim(&mut sim, session, goal).unwrap();
    assert_eq!(aim(&mut sim, session, "{}"), Err(Reason::BadFact));
    aim(&mut sim, session, goal).unwrap();
    assert_eq!(aim(&mut sim, session, goal), Err(Reason::OverBudget));
    let token = sim.tokens[0].0;
    assert_eq!(sim.kernel.token(&token).unwrap().used.get(Dimension::Calls), 3);
    // Exhausted by what the host posts.
    let other = another(&mut sim, "a0", 10, 1_000_000);
    let ticket = sim.ticket();
    let amounts = syscap_format::Amounts::ZERO.with(Dimension::LlmTokens, 1_000);
    sim.event(Event::Charge(ticket, other, amounts));
    assert_eq!(aim(&mut sim, other, goal), Err(Reason::Exhausted));
    verifies(&mut sim);
}

/// Refused proposals gather like any refusals, and pay; good ones between them break no row.
#[test]
fn a_flood_of_proposals_is_counted_together() {
    let mut sim = sim::home();
    let session = another(&mut sim, "a0", 50, 1_000_000);
    let before = records(&mut sim).len();
    for n in 0..3_000 {
        aim(&mut sim, session, r#"{"fact.a": 1}"#).unwrap_err();
        if n % 100 == 99 {
            aim(&mut sim, session, r#"{"goal.a": 1}"#).ok();
        }
    }
    let grown = records(&mut sim).len() - before;
    assert!(grown < 130, "{grown} records");
    let token = sim.tokens[0].0;
    assert_eq!(sim.kernel.token(&token).unwrap().used.get(Dimension::Calls), 50);
    verifies(&mut sim);
    replays(&mut sim);
}

/// A change names the results that it comes from, if the session was given them.
#[test]
fn a_change_names_what_it_comes_from() {
    let (mut sim, session) = seated();
    ok(&mut sim, session);
    let result = records(&mut sim).pop().unwrap().seq;
    let other = another(&mut sim, "a1", 10, 1_000_000);
    let from = |sim: &mut Sim, session, inputs: Vec<Seq>| {
        let (ticket, salts) = (sim.ticket(), sim.salts());
        let changes = json::to_cbor(br#"{"fact.a": 1}"#).unwrap();
        let (writer, base) = (Source::Tool, None);
        let proposal = Proposal { ticket, session, writer, inputs, base, changes, salts };
        sim.event(Event::Propose(Box::new(proposal)));
        sim.commit();
        head_of(sim, ticket)
    };
    from(&mut sim, session, vec![result; 16]).unwrap();
    assert_eq!(change(&mut sim).call.provenance.unwrap().inputs, [result; 16]);
    assert_eq!(from(&mut sim, session, vec![result; 17]), Err(Reason::BadFact));
    for unknown in [Seq::new(0), Seq::new(result.get() - 1), Seq::new(1_000)] {
        let answer = from(&mut sim, session, vec![result, unknown]);
        assert_eq!(answer, Err(Reason::UnknownReference));
    }
    // Another session was never given that result.
    assert_eq!(from(&mut sim, other, vec![result]), Err(Reason::UnknownReference));
    verifies(&mut sim);
}

/// An agent that has never had a state changed has one without facts; its namespace aside, each
/// agent's is its own.
#[test]
fn each_agent_has_its_own_state() {
    let (mut sim, session) = seated();
    let other = another(&mut sim, "a0/sub", 10, 1_000_000);
    aim(&mut sim, session, r#"{"goal.a": 1}"#).unwrap();
    aim(&mut sim, other, r#"{"goal.a": 2}"#).unwrap();
    let states: Vec<(AgentId, u64, String)> = sim
        .kernel
        .states()
        .map(|(agent, head, facts)| {
            let Fact::Known(value) = facts.get(&key("goal.a")) else { panic!("{agent}") };
            (agent.clone(), head.number, json::from_data(value))
        })
        .collect();
    let agent = |name| AgentId::new(name).unwrap();
    assert_eq!(states, [(agent("a0"), 1, "1".to_owned()), (agent("a0/sub"), 1, "2".to_owned())]);
}
