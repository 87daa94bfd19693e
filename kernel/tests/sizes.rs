//! The largest of everything that stands in a record is refused or recorded, and never a halt.
//!
//! An approval with 250 path rules once made a record of 67,825 bytes: the kernel halted with
//! `RecordTooLarge`, for every agent, and then took no freeze either.

use ed25519_dalek::Signer as _;
use kernel_support::sim::keys::public;
use kernel_support::sim::{self, Sim, home, key, records, seated};
use syscap_format::{
    AgentId, Amounts, ApprovalChannel, ArgsHash, Ask, Body, BodyView, CHANGES_MAX,
    CONTROL_BODY_BYTES_MAX, CONTROL_CONTEXT, CallFields, CallHash, Cancel, ClockFlags,
    ConstraintId, Control, ControlBody, DETAIL_BYTES_MAX, Decision, Dimension, Durability,
    EffectClass, Enforcement, FactKey, Filled, FreezeChange, Head, IdempotencyKey, Intent, Label,
    Leaf, MATCHES_MAX, OBLIGATION_NAME_BYTES_MAX, OBLIGATIONS_MAX, ObjectId, Obligation, Outcome,
    OutcomeFlags, PROVENANCE_INPUTS_MAX, PolicyHash, Precondition, PreconditionKind, Provenance,
    RECORD_BYTES_MAX, ROLE_KEYS_MAX, Reason, RecordKind, RecordView, Recovered, Recovery, Refusal,
    RefusalKind, Repeat, ResultHash, RevocationList, Role, RunMode, SentHash, Seq, Shadow,
    Signature, Signed, SignedEvent, SnapshotId, Source, StateChange, Status, TRACE_BYTES_MAX,
    TextHash, TokenId, ToolId, TxOutcome, UnixMillis, Verdict, matches_digest, preimage,
};
use syscap_kernel::Event;

/// The kinds of signed events, and whose key signs each.
const SIGNED: [(RecordKind, Role); 8] = [
    (RecordKind::Key, Role::Operator),
    (RecordKind::Revoke, Role::Revoker),
    (RecordKind::Freeze, Role::Revoker),
    (RecordKind::Config, Role::Operator),
    (RecordKind::Approval, Role::Approver),
    (RecordKind::Cancel, Role::Revoker),
    (RecordKind::Recovery, Role::Operator),
    (RecordKind::Credit, Role::Operator),
];

const LARGEST: Seq = Seq::new(u64::MAX);
const HASH: [u8; 32] = [0xff; 32];

/// A body of so many bytes, signed as its kind must be.
fn signed(sim: &mut Sim, kind: RecordKind, role: Role, len: usize) -> Control {
    let (signer, key) = (key(role), public(role));
    let counter = sim.kernel.counter(&key) + 1;
    let (home, head) = (sim.kernel.home(), sim.kernel.durable().unwrap());
    let body = vec![0; len];
    let message = Control::message(&home, &head, &key, counter, kind, &body);
    let signature = signer.sign(&preimage(CONTROL_CONTEXT, &message)).to_bytes();
    let signature = Signature::from_bytes(signature);
    Control::by_one(head, body, Signed { key, counter, signature })
}

/// The largest control that is not refused for its size.
fn largest_control() -> Control {
    let signature = Signature::from_bytes([0xff; 64]);
    let signed = Signed { key: public(Role::Operator), counter: u64::MAX, signature };
    Control {
        head: Head { seq: LARGEST, leaf: Leaf::from_bytes(HASH) },
        body: vec![0; CONTROL_BODY_BYTES_MAX],
        signatures: vec![signed; ROLE_KEYS_MAX],
    }
}

fn amounts() -> Amounts {
    Dimension::ALL.iter().fold(Amounts::ZERO, |all, one| all.with(*one, u64::MAX))
}

fn constraint() -> ConstraintId {
    ConstraintId::new(&"c".repeat(ConstraintId::BYTES_MAX)).unwrap()
}

fn decision() -> Decision {
    let named = |n: usize| Obligation {
        max: Some(u64::MAX),
        ..Obligation::notify(&format!("{n:0>width$}", width = OBLIGATION_NAME_BYTES_MAX))
    };
    Decision {
        verdict: Verdict::Ask,
        deciding: Some(constraint()),
        matches: vec![constraint(); MATCHES_MAX],
        match_count: u64::MAX,
        matches_digest: Some(matches_digest(&[1])),
        obligations: (0..OBLIGATIONS_MAX).map(named).collect(),
    }
}

fn call() -> CallFields {
    let text = |len| Box::from("t".repeat(len));
    CallFields {
        agent_id: AgentId::new(&"a".repeat(AgentId::BYTES_MAX)),
        policy_hash: Some(PolicyHash::from_bytes(HASH)),
        state_snapshot_id: Some(SnapshotId::from_bytes(HASH)),
        capability_token_id: Some(TokenId::from_bytes(HASH)),
        tool_id: ToolId::new(&"t".repeat(ToolId::BYTES_MAX)),
        args_hash: Some(ArgsHash::from_bytes(HASH)),
        result_hash: Some(ResultHash::from_bytes(HASH)),
        provenance: Some(Provenance {
            source: Source::Observer,
            time: Some(UnixMillis::new(u64::MAX)),
            inputs: vec![LARGEST; PROVENANCE_INPUTS_MAX],
            trace: Some(text(TRACE_BYTES_MAX)),
            claimed: Some(Source::Observer),
        }),
        call_hash: Some(CallHash::from_bytes(HASH)),
        session: Some(LARGEST),
        decision: Some(decision()),
        manifest: Some(ObjectId::from_bytes(HASH)),
        held: amounts(),
        used: amounts(),
        enforcement: Some(Enforcement::None),
        head: Some(SnapshotId::from_bytes(HASH)),
        shadow: Some(Shadow { policy: PolicyHash::from_bytes(HASH), decision: decision() }),
    }
}

fn preconditions() -> Vec<Precondition> {
    let text = TextHash::from_bytes(HASH);
    let one = Precondition { kind: PreconditionKind::Digest, subject: text, seen: Some(text) };
    vec![one; 16]
}

fn len(body: BodyView<'_>) -> usize {
    let record = RecordView {
        seq: LARGEST,
        prev: Leaf::from_bytes(HASH),
        time: UnixMillis::new(u64::MAX),
        boot: u64::MAX,
        clock: ClockFlags::GAP,
        body,
    };
    record.encode().len()
}

/// No record of that kind is larger.
fn fits(body: BodyView<'_>) {
    let bytes = len(body);
    assert!(bytes <= RECORD_BYTES_MAX, "{:?}: {bytes}", body.kind());
}

#[test]
fn largest_record_of_each_kind_of_a_call_fits() {
    let call = call();
    let (effect, label) = (EffectClass::Irreversible, Label::PUBLIC);
    fits(BodyView::Intent(&Intent {
        call: call.clone(),
        effect,
        mode: RunMode::WithOutcome,
        key: IdempotencyKey::new(&"k".repeat(IdempotencyKey::BYTES_MAX)),
        sent_hash: Some(SentHash::from_bytes(HASH)),
        filled: Filled::KNOWN,
        label,
        call_effect: effect,
        arguments: Vec::new(),
        approval: Some(LARGEST),
        preconditions: preconditions(),
    }));
    fits(BodyView::Outcome(&Outcome {
        call: call.clone(),
        intent: LARGEST,
        status: Status::Error,
        tx: TxOutcome::Unknown,
        reason: Some(Reason::Panicked),
        flags: OutcomeFlags::KNOWN,
        label,
    }));
    fits(BodyView::Ask(&Ask {
        call: call.clone(),
        effect,
        call_effect: effect,
        arguments: Vec::new(),
        label,
        resources: vec![TextHash::from_bytes(HASH); 64],
        preconditions: preconditions(),
        eligible: vec![public(Role::Approver); ROLE_KEYS_MAX],
        threshold: u64::MAX,
        means: vec![ApprovalChannel::Signer; 6],
        expires: UnixMillis::new(u64::MAX),
    }));
    fits(BodyView::Refusal(&Refusal {
        call: call.clone(),
        refusal_kind: RefusalKind::Control,
        reason: Reason::Panicked,
    }));
    fits(BodyView::Repeat(&Repeat { call, intent: LARGEST, outcome: LARGEST, label }));
}

#[test]
fn largest_record_of_each_other_kind_fits() {
    let fact = |n: usize| FactKey::new(&format!("policy.{n:0>64}")).unwrap();
    let facts = |from| (from..from + CHANGES_MAX / 2).map(fact).collect();
    fits(BodyView::State(&StateChange {
        call: call(),
        snapshot: SnapshotId::from_bytes(HASH),
        number: u64::MAX,
        writer: Source::Observer,
        set: facts(0),
        removed: facts(CHANGES_MAX),
    }));
    let control = Some(largest_control());
    fits(BodyView::Cancel(&Cancel { intent: LARGEST, session: None, control: control.clone() }));
    let (verdict, used) = (Recovered::Unknown, amounts());
    fits(BodyView::Recovery(&Recovery { intent: LARGEST, verdict, used, control }));
    let event = SignedEvent { control: largest_control() };
    for body in [
        BodyView::Key(&event),
        BodyView::Revoke(&event),
        BodyView::Freeze(&event),
        BodyView::Policy(&event),
        BodyView::Tools(&event),
        BodyView::Config(&event),
        BodyView::Credit(&event),
        BodyView::Approval(&event),
    ] {
        fits(body);
    }
}

#[test]
fn oversized_control_body_is_refused_and_the_kernel_goes_on() {
    let (mut sim, session) = seated();
    for (kind, role) in SIGNED {
        for len in [CONTROL_BODY_BYTES_MAX, CONTROL_BODY_BYTES_MAX + 1, 2 * RECORD_BYTES_MAX] {
            let event = signed(&mut sim, kind, role, len);
            let ticket = sim.ticket();
            sim.event(Event::Control(ticket, kind, event, None, None));
            sim.commit();
            let refused = sim.acked(ticket).unwrap().as_ref().unwrap_err();
            assert_eq!(refused.reason(), Reason::BadControl, "{kind:?} {len}");
            assert_eq!(sim.kernel.halted(), None, "{kind:?} {len}");
        }
    }
    sim::ok(&mut sim, session);
    sim.freeze(FreezeChange::Freeze);
    sim.commit();
    assert_eq!(sim.kernel.frozen().len(), 1);
}

#[test]
fn longest_list_of_revocations_is_recorded() {
    let mut sim = home();
    let token = |n: u32| {
        let mut id = [0xff; 32];
        id[..4].copy_from_slice(&n.to_be_bytes());
        TokenId::from_bytes(id)
    };
    let list = RevocationList {
        version: u64::MAX,
        as_of: sim.kernel.now(),
        tokens: (0..1_024).map(token).collect(),
        cause: Some(TextHash::from_bytes(HASH)),
    };
    assert!(list.to_bytes().len() < CONTROL_BODY_BYTES_MAX);
    let ticket = sim.control(&list);
    sim.commit();
    assert!(sim.acked(ticket).unwrap().is_ok());
    assert_eq!(records(&mut sim).last().unwrap().body.kind(), RecordKind::Revoke);
}

#[test]
fn long_name_of_a_host_is_cut_and_the_home_boots() {
    let mut sim = home();
    sim.crash().unwrap();
    let (ticket, durability, probed) = (sim.ticket(), Durability::Memory, Vec::new());
    let software = Box::from("\u{e4}".repeat(70_000));
    sim.event(Event::Boot { ticket, id: [1; 16], software, durability, probed });
    sim.commit();
    assert_eq!(sim.kernel.halted(), None);
    let boot = records(&mut sim).into_iter().rev().find_map(|record| match record.body {
        Body::Boot(boot) => Some(boot),
        _ => None,
    });
    assert_eq!(boot.unwrap().software.len(), DETAIL_BYTES_MAX);
}
