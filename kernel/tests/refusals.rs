//! Every malformed, oversized, unknown or mismatched thing: a stable reason, a record, no effect.

use ed25519_dalek::Signer as _;
use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::{self, Ending, Sim, home, ok, records, refused_with, seated};
use syscap_audit::MemoryStore;
use syscap_format::{
    AgentId, AggregatePhase, Amounts, Body, Budget, ConfigChange, ControlBody, Dimension, Encoder,
    Form, Freeze, FreezeChange, FreezeTarget, HomeLimits, Item, KeyChange, Opening,
    POSSESSION_CONTEXT, PolicyChange, Possession, PublicKey, Reason, RecordKind, Recovered,
    RefusalKind, Resolution, Revocation, Role, RoleSet, Seq, Signature, Source, Status, TokenBody,
    TokenId, ToolsChange, possession, preimage,
};
use syscap_kernel::{Ack, Event, Room, ToolsDelta};

/// The last record is the refusal, for this reason; the answer points to it; nothing happened.
fn refused(sim: &mut Sim, session: Seq, envelope: &[u8], form: Form, reason: Reason) {
    let effects = sim.world.lock().unwrap().spent.len();
    let ticket = sim.submit(session, envelope.to_vec(), form);
    assert_eq!(sim.reason_of(ticket), None, "answered before its record was durable");
    sim.commit();
    let shown = String::from_utf8_lossy(&envelope[..envelope.len().min(80)]).into_owned();
    let result = sim.reply_to(ticket).unwrap_or_else(|| panic!("unanswered: {shown}")).clone();
    assert_eq!(result.reason(), Some(reason), "{shown}");
    assert_eq!(result.status(), Status::Error);
    let object = result.delivered().item();
    assert_eq!(object.get("code").and_then(Item::as_uint), Some(reason.code()));
    assert_eq!(object.get("hint").and_then(Item::as_text), Some(reason.hint()));
    let last = records(sim).pop().unwrap();
    assert_eq!(last.seq, result.receipt().outcome_seq);
    assert_eq!(last.leaf(), result.receipt().outcome_leaf);
    let Body::Refusal(refusal) = last.body else { panic!("{shown}: no refusal on record") };
    assert_eq!(refusal.reason, reason);
    assert_eq!(refusal.call.session, Some(session));
    assert_eq!(refusal.call.result_hash, Some(result.result_hash()));
    assert_eq!(refusal.call.used.get(Dimension::Calls), 1, "the bound token pays");
    assert_eq!(sim.world.lock().unwrap().spent.len(), effects, "{shown}: an effect");
    // An admitted call in between, so that refusals don't gather into an aggregate here.
    ok(sim, session);
}

/// One of each kind of step; the vectors of `calls.md` have all of them.
#[test]
fn every_refused_envelope_is_on_record() {
    let (mut sim, session) = seated();
    let large = vec![b' '; (1 << 20) + 1];
    let zeros = "0".repeat(64);
    let policy = format!(r#"{{"tool_id": "look", "args": {{"at": 1}}, "policy_hash": "{zeros}"}}"#);
    let table: Vec<(&[u8], Reason)> = vec![
        (b"\xff\xfe", Reason::Malformed),
        (&large, Reason::TooLarge),
        (br#"{"tool_id": "look", "args": {"at": 1}, "agent_id": "a1"}"#, Reason::NotBound),
        (br#"{"tool_id": "rm", "args": {}}"#, Reason::UnknownTool),
        (br#"{"tool_id": "look", "args": {"at": 1, "bcc": 1}}"#, Reason::UnknownArgument),
        (br#"{"tool_id": "spend", "args": {"units": 101}}"#, Reason::OverBudget),
        (policy.as_bytes(), Reason::PolicyMismatch),
    ];
    for (envelope, reason) in table {
        refused(&mut sim, session, envelope, Form::Json, reason);
    }
}

#[test]
fn a_clock_set_back_revives_nothing() {
    let (mut sim, session) = seated();
    sim.boottime += 2_000_000;
    sim.wall -= 3_000_000;
    let ticket = sim.submit_json(session, r#"{"tool_id": "look", "args": {"at": 1}}"#);
    sim.commit();
    assert_eq!(sim.reason_of(ticket), Some(Reason::Expired));
    let last = records(&mut sim).pop().unwrap();
    assert!(last.clock.has(syscap_format::ClockFlags::SKEWED));
}

#[test]
fn a_gap_at_boot_waits_for_an_operator() {
    let (mut sim, _) = seated();
    let token = sim.issue("a0", 10, 10, 7_000_000_000);
    sim.commit();
    sim.crash().unwrap();
    sim.wall += 8_000_000_000;
    sim.boottime = 10;
    sim.boot();
    let session = sim.seat(token);
    let look = r#"{"tool_id": "look", "args": {"at": 1}}"#;
    // That token has ended by the clock that is not believed; a new one is good at once.
    let ticket = sim.submit_json(session, look);
    sim.commit();
    assert_eq!(sim.reason_of(ticket), Some(Reason::Expired));
    let fresh = sim.issue("a0", 10, 10, 1_000_000);
    sim.open("a0", fresh);
    sim.commit();
    let session = *sim.sessions.last().unwrap();
    ok(&mut sim, session);
}

/// Tokens issued after a gap are good, and stay so over the next restart.
#[test]
fn a_restart_after_a_gap_suspends_nobody_else() {
    let mut sim = home();
    sim.crash().unwrap();
    sim.wall += 8_000_000_000;
    sim.boot();
    let fresh = sim.issue("a0", 10, 10, 1_000_000);
    sim.commit();
    sim.crash().unwrap();
    sim.wall += 1_000;
    sim.boot();
    let session = sim.seat(fresh);
    ok(&mut sim, session);
}

/// A token that would be valid after the gap waits until an operator confirms the time.
#[test]
fn a_token_from_before_a_gap_waits_for_confirmation() {
    let mut sim = home();
    let mut body = sim.token_body("a0", Budget::standard(), 1_000);
    body.not_before = body.not_before.plus(5_000_000_000);
    body.expires = body.not_before.plus(7_000_000_000);
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(&body), None));
    sim.commit();
    sim.crash().unwrap();
    sim.wall += 8_000_000_000;
    sim.boot();
    let session = sim.seat(TokenBody::id_of(&body.to_bytes()));
    let look = r#"{"tool_id": "look", "args": {"at": 1}}"#;
    refused_with(&mut sim, session, look, Reason::ClockUnconfirmed);
    let now = sim.kernel.now();
    let control = sim.signed(&ConfigChange { confirm_time: Some(now) });
    let ticket = sim.ticket();
    sim.event(Event::Control(ticket, RecordKind::Config, control, None, None));
    ok(&mut sim, session);
}

/// Control events, tokens and sessions that must be refused: on record, and without effect.
#[test]
fn bad_control_events_are_refused_on_record() {
    let mut sim = home();
    let token = sim.issue("a0", 5, 5, 1_000_000);
    sim.commit();
    let good = sim.signed(&Revocation::subtree(token));
    let mut cases: Vec<(Event, Reason)> = Vec::new();
    let mut forged = good.clone();
    forged.signatures[0].signature = Signature::from_bytes([1; 64]);
    let ticket = sim.ticket();
    cases.push((
        Event::Control(ticket, RecordKind::Revoke, forged, None, None),
        Reason::BadSignature,
    ));
    cases.push((
        Event::Control(ticket, RecordKind::Freeze, good.clone(), None, None),
        Reason::BadSignature,
    ));
    cases.push((
        Event::Control(ticket, RecordKind::Key, good.clone(), None, None),
        Reason::BadSignature,
    ));
    cases.push((
        Event::Control(ticket, RecordKind::Intent, good.clone(), None, None),
        Reason::BadControl,
    ));
    let mut stale = good.clone();
    stale.signatures[0].counter = 0;
    cases.push((
        Event::Control(ticket, RecordKind::Revoke, stale, None, None),
        Reason::StaleCounter,
    ));
    let missing = sim.signed(&Revocation::subtree(TokenId::from_bytes([3; 32])));
    cases.push((
        Event::Control(ticket, RecordKind::Revoke, missing, None, None),
        Reason::UnknownToken,
    ));
    // What would stop, confirm or resolve nothing is refused rather than acknowledged.
    let alias = Freeze {
        target: FreezeTarget::Tool,
        name: Box::from("no_such_tool"),
        change: FreezeChange::Freeze,
    };
    cases.push((
        Event::Control(ticket, RecordKind::Freeze, sim.signed(&alias), None, None),
        Reason::BadControl,
    ));
    let nothing = sim.signed(&ConfigChange { confirm_time: None });
    cases.push((
        Event::Control(ticket, RecordKind::Config, nothing, None, None),
        Reason::BadControl,
    ));
    let boot = Resolution { intent: Seq::new(1), verdict: Recovered::Done };
    cases.push((
        Event::Control(ticket, RecordKind::Recovery, sim.signed(&boot), None, None),
        Reason::BadControl,
    ));

    let body = sim.token_body("a0", Budget::standard(), 1_000_000);
    let wire = Sim::wire(&body);
    let mut flipped = wire.clone();
    *flipped.last_mut().unwrap() ^= 1;
    cases.push((Event::Issue(ticket, flipped, None), Reason::BadSignature));
    cases.push((Event::Issue(ticket, wire[..40].to_vec(), None), Reason::BadToken));
    cases.push((Event::Issue(ticket, vec![0; 70_000], None), Reason::TooLarge));
    let mut other = body.clone();
    other.audience = syscap_format::HomeId::from_bytes([1; 32]);
    cases.push((Event::Issue(ticket, Sim::wire(&other), None), Reason::WrongAudience));
    let mut long = body.clone();
    long.expires = long.not_before.plus(91 * 24 * 3_600_000);
    cases.push((Event::Issue(ticket, Sim::wire(&long), None), Reason::LifeTooLong));
    let mut child = body.clone();
    (child.parent, child.depth, child.depth_max) = (Some(token), 1, 1);
    child.head = None;
    // By the issuer, and not by who holds it.
    cases.push((Event::Issue(ticket, Sim::wire(&child), None), Reason::WrongIssuer));
    let agent = syscap_format::AgentId::new("a1").unwrap();
    cases.push((Event::OpenSession(ticket, agent.clone(), token, None), Reason::NotBound));
    let unknown = TokenId::from_bytes([4; 32]);
    cases.push((Event::OpenSession(ticket, agent, unknown, None), Reason::NotBound));
    cases.push((Event::CloseSession(ticket, Seq::new(1)), Reason::NoSession));
    let amounts = Amounts::ZERO.with(Dimension::Calls, 1);
    cases.push((Event::Charge(ticket, Seq::new(1), amounts), Reason::BadControl));
    for (event, reason) in cases {
        sim.acks.clear();
        sim.event(event);
        sim.commit();
        let (_, ack) = sim.acks.pop().unwrap();
        assert_eq!(ack.unwrap_err().reason(), reason);
        if let Body::Refusal(refusal) = records(&mut sim).pop().unwrap().body {
            assert_eq!((refusal.refusal_kind, refusal.reason), (RefusalKind::Control, reason));
        }
    }
    // Not revoked by any of them.
    sim.acks.clear();
    assert!(!sim.kernel.token(&token).unwrap().revoked);
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(&body), None));
    sim.event(Event::Issue(ticket, Sim::wire(&body), None));
    sim.commit();
    let acks: Vec<_> = sim.acks.iter().map(|(_, ack)| ack.clone()).collect();
    assert!(acks.iter().any(|ack| matches!(ack, Ok(Ack::Token(_)))));
    let refused = acks.iter().find_map(|ack| ack.as_ref().err());
    assert_eq!(refused.unwrap().reason(), Reason::AlreadyIssued);
}

/// A role gets the key of another one instead of its own.
fn key_change(sim: &Sim, role: Role, of: Role) -> KeyChange {
    let key = sim::key(of);
    let public = PublicKey::new(key.verifying_key().to_bytes()).unwrap();
    let message = possession(&sim.kernel.home(), role, &public);
    let signature = key.sign(&preimage(POSSESSION_CONTEXT, &message)).to_bytes();
    let proof = Possession { key: public, signature: Signature::from_bytes(signature) };
    let set = RoleSet::any_of(role, [public]);
    KeyChange { set, proofs: vec![proof], cut_off: None }
}

/// A role's key is replaced: the old one signs nothing any more.
#[test]
fn a_replaced_key_signs_nothing() {
    let mut sim = home();
    let token = sim.issue("a0", 5, 5, 1_000_000);
    let change = key_change(&sim, Role::Revoker, Role::Approver);
    let control = sim.signed(&change);
    let ticket = sim.ticket();
    sim.event(Event::Control(ticket, KeyChange::KIND, control, None, None));
    sim.commit();
    sim.revoke(token);
    sim.commit();
    let (_, ack) = sim.acks.last().unwrap();
    assert_eq!(ack.as_ref().unwrap_err().reason(), Reason::BadSignature);
    assert!(!sim.kernel.token(&token).unwrap().revoked);
}

#[test]
fn a_full_disk_stops_admission_and_keeps_room_for_the_rest() {
    let (mut sim, session) = seated();
    let ticket = sim.submit_json(session, r#"{"tool_id": "spend", "args": {"units": 1}}"#);
    sim.commit();
    sim.event(Event::Room(Room::Reserve));
    let late = sim.submit_json(session, r#"{"tool_id": "look", "args": {"at": 1}}"#);
    sim.end_job(0, Ending::Runs);
    let token = sim.tokens[0].0;
    sim.revoke(token);
    sim.commit();
    assert_eq!(sim.reply_to(ticket).unwrap().status(), Status::Ok);
    assert_eq!(sim.reason_of(late), Some(Reason::NoRoom));
    assert!(sim.kernel.token(&token).unwrap().revoked);
}

#[test]
fn too_many_in_flight_are_turned_away_and_counted() {
    let limits = HomeLimits { in_flight_max: 4, ..HomeLimits::default() };
    let mut sim =
        Sim::with_limits(FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere), limits);
    let token = sim.issue("a0", 100, 100, 1_000_000);
    sim.open("a0", token);
    sim.commit();
    let session = sim.sessions[0];
    let tickets: Vec<_> = (0..7)
        .map(|_| sim.submit_json(session, r#"{"tool_id": "spend", "args": {"units": 1}}"#))
        .collect();
    let turned_away: Vec<_> = tickets.iter().filter_map(|t| sim.reason_of(*t)).collect();
    assert_eq!(turned_away, [Reason::Overloaded; 3]);
    sim.commit();
    while !sim.jobs.is_empty() {
        sim.end_job(0, Ending::Runs);
    }
    sim.commit();
    let counted = records(&mut sim).into_iter().find_map(|record| match record.body {
        Body::Refusals(refusals) if refusals.phase == AggregatePhase::Overload => refusals.count,
        _ => None,
    });
    assert_eq!(counted, Some(3));
    // Being turned away is in no record until then, and so in no state.
    let replayed = sim.reopened().unwrap();
    assert_eq!(replayed.state_image(), sim.kernel.state_image());
}

/// A million malformed and refused calls: the log grows by a bounded amount, the flooded token
/// pays, and another session is served as before.
#[test]
fn a_flood_is_bounded() {
    let calls: u64 = 1_000_000;
    let (mut sim, flooder) = seated();
    let token = sim.issue("a1", 10, 10, 1_000_000);
    sim.open("a1", token);
    sim.commit();
    let served = *sim.sessions.last().unwrap();
    let before = records(&mut sim).len();
    let bad: [&[u8]; 3] = [b"{", b"{\"tool_id\": \"rm\", \"args\": {}}", b"\xff"];
    let mut answered = 0_u64;
    for n in 0..calls {
        let received = bad[usize::try_from(n % 3).unwrap()].to_vec();
        let submit = sim.submission(Source::Agent, flooder, received, Form::Json);
        let reading = sim.reading();
        sim.kernel.handle(Event::Submit(submit), reading);
        while sim.kernel.wants_commit() {
            let batch = sim.kernel.take_batch().unwrap();
            let stored = batch.commit(&mut sim.store).unwrap();
            sim.kernel.handle(Event::Stored(stored), reading);
        }
        while let Some(effect) = sim.kernel.poll_effect() {
            if let syscap_kernel::Effect::Reply(_, result) = effect {
                assert!(result.reason().is_some());
                answered += 1;
            }
        }
        if n == calls / 2 {
            ok(&mut sim, served);
            ok(&mut sim, served);
        }
    }
    assert_eq!(answered, calls);
    let grown = records(&mut sim).len() - before;
    // 16 single refusals, then aggregates of 64, 256 ... 65,536, two records each.
    assert!(grown < 80, "{grown} records for {calls} refused calls");
    let used = |sim: &Sim, place: usize| {
        sim.kernel.token(&sim.tokens[place].0).unwrap().used.get(Dimension::Calls)
    };
    assert_eq!(used(&sim, 0), 100, "the flooder pays up to its limit");
    assert_eq!(used(&sim, 1), 2, "nobody else pays");
    sim.commit();
    let counted: u64 = records(&mut sim)
        .into_iter()
        .filter_map(|record| match record.body {
            Body::Refusals(refusals) if refusals.phase == AggregatePhase::Close => refusals.count,
            _ => None,
        })
        .sum();
    assert!(counted > calls / 2, "closed aggregates count what they answered");
}

/// Refusals set calls aside for more of them; a good call gets what they have not used.
#[test]
fn a_flood_locks_nobody_out() {
    let mut sim = home();
    let token = sim.issue("a0", 60, 10, 1_000_000);
    sim.open("a0", token);
    sim.commit();
    let session = sim.sessions[0];
    for _ in 0..30 {
        sim.submit_json(session, "{");
        sim.commit();
    }
    ok(&mut sim, session);
    let used = sim.kernel.token(&token).unwrap().used.get(Dimension::Calls);
    assert_eq!(used, 31, "each refusal paid, and the call");
}

/// Before policy and tools are on record, nothing runs; which of them is missing is said.
#[test]
fn home_without_policy_runs_nothing() {
    let world = sim::Shared::default();
    let new = syscap_kernel::NewHome {
        entropy: [1; 32],
        origin: Box::from("bare"),
        limits: HomeLimits::default(),
        durability: syscap_format::Durability::Memory,
        roles: sim::roles(),
        recovery: None,
    };
    let mut sim = home();
    sim.kernel = syscap_kernel::Kernel::create(new, sim::parts(&world), sim.reading()).unwrap();
    sim.store = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    let ticket = sim.ticket();
    sim.event(Event::Boot {
        ticket,
        id: [0; 16],
        software: Box::from("x"),
        durability: syscap_format::Durability::Memory,
        probed: Vec::new(),
    });
    sim.tokens.clear();
    sim.sessions.clear();
    let token = sim.issue("a0", 5, 5, 1_000);
    sim.open("a0", token);
    sim.commit();
    let session = sim.sessions[0];
    let ticket = sim.submit_json(session, r#"{"tool_id": "look", "args": {"at": 1}}"#);
    sim.commit();
    assert_eq!(sim.reason_of(ticket), Some(Reason::PolicyNotInForce));
    // What else was left out has another reason.
    let policy = PolicyChange { policy: sim.kernel.engine_hash(), shadow: None };
    let (control, ticket) = (sim.signed(&policy), sim.ticket());
    sim.event(Event::Policy(ticket, control, None, Vec::new(), None));
    sim.commit();
    let look = r#"{"tool_id": "look", "args": {"at": 1}}"#;
    let ticket = sim.submit_json(session, look);
    sim.commit();
    assert_eq!(sim.reason_of(ticket), Some(Reason::ToolsMismatch));
    let ticket = sim.submit_json(Seq::new(9_999), look);
    sim.commit();
    assert_eq!(sim.reason_of(ticket), Some(Reason::NoSession));
    let tools = ToolsChange { tools: sim.kernel.registry_hash() };
    let (control, ticket) = (sim.signed(&tools), sim.ticket());
    sim.event(Event::Tools(ticket, control, None, ToolsDelta::default()));
    sim.commit();
    let ticket = sim.submit_json(session, look);
    sim.commit();
    assert_eq!(sim.reason_of(ticket), None);
}

/// The registry of reasons: numbers are unique, and each is its own name.
#[test]
fn reasons_are_a_registry() {
    for (place, reason) in Reason::ALL.iter().enumerate() {
        assert_eq!(Reason::from_code(reason.code()), Some(*reason));
        let later = &Reason::ALL[place + 1..];
        assert!(later.iter().all(|r| r.code() > reason.code() && r.name() != reason.name()));
    }
    let mut encoder = Encoder::new();
    encoder.uint(0);
    assert_eq!(Reason::from_code(0), None);
}

/// A holder's word for one session opens no second one while that one lives.
#[test]
fn a_challenge_opens_one_session() {
    let (mut sim, _) = seated();
    let (token, _) = sim.tokens[0];
    let holder = sim::keys::holder();
    let mut opens = |challenge: [u8; 32]| {
        let message = Opening::message(&sim.kernel.home(), &token, &challenge);
        let signature = holder.sign(&preimage(Opening::CONTEXT, &message)).to_bytes();
        let opening = Opening { challenge, signature: Signature::from_bytes(signature) };
        let (agent, ticket) = (AgentId::new("a0").unwrap(), sim.ticket());
        sim.event(Event::OpenSession(ticket, agent, token, Some(opening)));
        sim.commit();
        sim.acked(ticket).unwrap().as_ref().map(drop).map_err(|refused| refused.reason())
    };
    assert_eq!(opens([1; 32]), Ok(()));
    assert_eq!(opens([1; 32]), Err(Reason::BadProof));
    assert_eq!(opens([2; 32]), Ok(()));
}
