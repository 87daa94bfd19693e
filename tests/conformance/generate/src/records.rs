//! One record of every kind. They are forms, and not a log: session, intent and outcome are said to
//! be records that no log here has.

use syscap_format::{
    AggregatePhase, Amounts, ApprovalAnswer, ApprovalBody, ApprovalChannel, ArgumentLabel,
    ArgumentSource, Ask, Body, CallFields, Cancel, CancelBody, Canonical, Charge, Checkpoint,
    ClockFlags, Confidentiality, ConfigChange, ConstraintId, Control, ControlBody, CreditChange,
    Decision, Declassify, Dimension, Domain, EffectClass, Encoder, Enforcement, FactKey, Filled,
    Freeze, FreezeChange, FreezeTarget, Grants, IdempotencyKey, Input, Integrity, Intent, Issue,
    KeyChange, Label, Late, MapBuilder, ObjectId, Obligation, Outcome, OutcomeFlags, PolicyChange,
    Provenance, Prune, PruneBody, Reason, Record, Recovered, Recovery, RedactBody, Refusal,
    RefusalKind, Refusals, RefusalsDigest, Repeat, Resolution, Revocation, Role, RoleSet, RunMode,
    Seq, SessionChange, SessionPhase, Shadow, SignedEvent, Snapshot, Source, StateChange,
    StateHash, Status, TextHash, ToolGrant, ToolId, ToolsChange, ToolsObject, TxOutcome,
    UnixMillis, Verdict, args_hash, call_hash, changes_hash, fact_id, leaf, result_hash, sent_hash,
    text_hash,
};
use syscap_kernel::object_of;
use syscap_policy::WithinToken;

use crate::world::{
    ISSUER_NEXT, Log, RECOVERY, REVOKER_TOO, TIME, agent, event, proof, public, salts, seed,
};

/// Numbers of records that the others speak of.
const SESSION: Seq = Seq::new(4);
const INTENT: Seq = Seq::new(5);
const OUTCOME: Seq = Seq::new(6);

const NOTE: &[u8] = b"syscap\n3\nREREREREREREREREREREREREREREREREREREREREREQ=\n";

fn time() -> UnixMillis {
    UnixMillis::new(TIME + 3)
}

fn tool() -> ToolId {
    ToolId::new("echo").unwrap()
}

fn constraint(id: &str) -> ConstraintId {
    ConstraintId::new(id).unwrap()
}

/// The commitment to a text under a key of its shape.
fn text(field: u64, text: &str) -> TextHash {
    text_hash(&salts().args, field, text)
}

fn one_call() -> Amounts {
    Amounts::ZERO.with(Dimension::Calls, 1)
}

pub(crate) fn args() -> Canonical {
    MapBuilder::new().text("text", "hi").finish()
}

/// A label: a stranger's word, private, of category 0.
fn label() -> Label {
    Label::new(Integrity::Untrusted, Confidentiality::Private).with_categories(1)
}

/// The maker of the records.
struct Maker {
    log: Log,
}

impl Maker {
    /// The record after the example's log.
    fn record(&self, body: Body) -> Record {
        let head = self.log.head(2);
        let (seq, prev, clock) = (head.seq.next(), head.leaf, ClockFlags::default());
        Record { seq, prev, time: time(), boot: 1, clock, body }
    }

    fn signed<B: ControlBody>(&self, body: &B) -> Control {
        self.signed_by(body, &[seed(Role::of(B::KIND).unwrap())])
    }

    fn signed_by<B: ControlBody>(&self, body: &B, seeds: &[u8]) -> Control {
        event(&self.log.home, self.log.head(2), body, seeds)
    }

    fn event<B: ControlBody>(&self, body: &B, as_kind: fn(Box<SignedEvent>) -> Body) -> Body {
        as_kind(Box::new(SignedEvent { control: self.signed(body) }))
    }

    /// A call of `echo` as its intent has it.
    fn call(&self) -> CallFields {
        let (args, manifest) = (args(), ObjectId::from_bytes([0x22; 32]));
        let envelope = MapBuilder::new().text("tool_id", "echo").item("args", args.item()).finish();
        CallFields {
            agent_id: Some(agent()),
            policy_hash: Some(object_of(&WithinToken).hash()),
            state_snapshot_id: Some(Snapshot::genesis(agent()).id()),
            capability_token_id: Some(self.log.token_id()),
            tool_id: Some(tool()),
            args_hash: Some(args_hash(&salts().args, &tool(), &manifest, args.item())),
            provenance: Some(Provenance::new(Source::Agent, time())),
            call_hash: Some(call_hash(&salts().call, envelope.as_bytes())),
            session: Some(SESSION),
            decision: Some(Decision::plain(Verdict::Allow)),
            manifest: Some(manifest),
            held: one_call().with(Dimension::WallUs, 1_000).with(Dimension::Concurrent, 1),
            ..CallFields::unknown()
        }
    }

    /// The snapshot after `goal.topic` was set.
    fn next(&self) -> Snapshot {
        let key = FactKey::new("goal.topic").unwrap();
        let changes = changes();
        let value = changes.item().get("goal.topic").unwrap();
        let fact = fact_id(&salts().args, &key, value);
        Snapshot::genesis(agent()).next(&[(key, fact)].into())
    }
}

pub(crate) fn changes() -> Canonical {
    MapBuilder::new().text("goal.topic", "bees").finish()
}

/// In the order of their kinds, without genesis, boot and shutdown: those are the example's.
pub(crate) fn records() -> Vec<Record> {
    let maker = Maker { log: Log::example() };
    let mut bodies = keys(&maker);
    bodies.extend(control(&maker));
    bodies.extend(sources(&maker));
    bodies.extend(approvals(&maker));
    bodies.extend(calls(&maker));
    bodies.extend(ends(&maker));
    bodies.into_iter().map(|body| maker.record(body)).collect()
}

/// `key`, by the operator and by the recovery key; `issue`, `session`.
fn keys(maker: &Maker) -> Vec<Body> {
    let (home, revoker) = (maker.log.home, public(seed(Role::Revoker)));
    let mut set = RoleSet::any_of(Role::Revoker, [revoker, public(REVOKER_TOO)]);
    set.threshold = 2;
    let proofs = vec![proof(&home, Role::Revoker, REVOKER_TOO)];
    let second = KeyChange { set, proofs, cut_off: None };
    let other = KeyChange {
        set: RoleSet::any_of(Role::Issuer, [public(ISSUER_NEXT)]),
        proofs: vec![proof(&home, Role::Issuer, ISSUER_NEXT)],
        cut_off: Some(Seq::new(1)),
    };
    let by_recovery = SignedEvent { control: maker.signed_by(&other, &[RECOVERY]) };
    let token = maker.log.token_id();
    vec![
        maker.event(&second, Body::Key),
        Body::Key(Box::new(by_recovery)),
        Body::Issue(Box::new(Issue {
            token,
            issuer: public(seed(Role::Issuer)),
            parent: None,
            agent: agent(),
        })),
        Body::Session(Box::new(SessionChange {
            phase: SessionPhase::Open,
            session: None,
            agent: agent(),
            token,
            snapshot: Snapshot::genesis(agent()).id(),
            principal: None,
        })),
    ]
}

/// `revoke` by one key and by two, `freeze`, `policy`, `tools`, `config`.
fn control(maker: &Maker) -> Vec<Body> {
    let revocation = Revocation::subtree(maker.log.token_id());
    let both = [seed(Role::Revoker), REVOKER_TOO];
    let by_both = SignedEvent { control: maker.signed_by(&revocation, &both) };
    let freeze = Freeze {
        target: FreezeTarget::Agent,
        name: Box::from("team"),
        change: FreezeChange::Freeze,
    };
    let policy = PolicyChange { policy: object_of(&WithinToken).hash(), shadow: None };
    let tools = ToolsChange { tools: ToolsObject { tools: Vec::new() }.hash() };
    vec![
        maker.event(&revocation, Body::Revoke),
        Body::Revoke(Box::new(by_both)),
        maker.event(&freeze, Body::Freeze),
        maker.event(&policy, Body::Policy),
        maker.event(&tools, Body::Tools),
        maker.event(&ConfigChange { confirm_time: Some(time()) }, Body::Config),
    ]
}

/// `input`, `state`, `declassify`.
fn sources(maker: &Maker) -> Vec<Body> {
    let next = maker.next();
    let provenance = Provenance { source: Source::User, ..Provenance::new(Source::Agent, time()) };
    let call = CallFields {
        args_hash: Some(changes_hash(&salts().args, changes().item())),
        provenance: Some(provenance),
        used: one_call(),
        tool_id: None,
        call_hash: None,
        decision: None,
        manifest: None,
        held: Amounts::ZERO,
        ..maker.call()
    };
    vec![
        Body::Input(Box::new(Input {
            session: SESSION,
            agent: agent(),
            text: text(12, "Tell me about bees."),
            label: Label::PUBLIC,
        })),
        Body::State(Box::new(StateChange {
            call,
            snapshot: next.id(),
            number: next.number,
            writer: Source::User,
            set: vec![FactKey::new("goal.topic").unwrap()],
            removed: Vec::new(),
        })),
        Body::Declassify(Box::new(Declassify {
            session: SESSION,
            outcome: OUTCOME,
            constraint: constraint("bees-are-public"),
            approval: None,
            from: label(),
            to: Label::PUBLIC,
        })),
    ]
}

/// `ask`, `approval`, `charge`.
fn approvals(maker: &Maker) -> Vec<Body> {
    let decision = Decision {
        deciding: Some(constraint("ask-first")),
        matches: vec![constraint("ask-first")],
        match_count: 1,
        ..Decision::plain(Verdict::Ask)
    };
    let ask = Body::Ask(Box::new(Ask {
        call: CallFields { decision: Some(decision), held: Amounts::ZERO, ..maker.call() },
        effect: EffectClass::ExternalWrite,
        call_effect: EffectClass::ExternalWrite,
        arguments: Vec::new(),
        label: label(),
        resources: vec![text(34, "path: workspace/bees.txt")],
        preconditions: Vec::new(),
        eligible: vec![public(seed(Role::Approver))],
        threshold: 1,
        means: vec![ApprovalChannel::Terminal, ApprovalChannel::Signer],
        expires: UnixMillis::new(TIME + 600_000),
    }));
    let answer = ApprovalBody {
        ask: leaf(&maker.record(ask.clone()).encode()),
        answer: ApprovalAnswer::Set,
        means: ApprovalChannel::Terminal,
        scopes: Some(Grants::new().with(tool(), ToolGrant::new())),
        uses: Some(3),
        expires: Some(UnixMillis::new(TIME + 900_000)),
        reason: Some(text(7, "It may say that.")),
    };
    let amounts =
        Amounts::ZERO.with(Dimension::LlmTokens, 1_000).with(Dimension::CreditsMicro, 2_500);
    let charge = Charge { token: maker.log.token_id(), session: SESSION, amounts };
    let control = maker.signed(&answer);
    vec![ask, Body::Approval(Box::new(SignedEvent { control })), Body::Charge(Box::new(charge))]
}

fn argument() -> ArgumentLabel {
    let (source, record) = (ArgumentSource::Verified, Some(OUTCOME));
    ArgumentLabel { place: 0, source, record, label: label() }
}

/// `intent`, `outcome`, `refusal`, `refusals`, `repeat`.
fn calls(maker: &Maker) -> Vec<Body> {
    let call = maker.call();
    let held = call.held;
    let result = result_hash(&salts().result, Status::Ok.code(), args().item());
    let delivered = CallFields {
        result_hash: Some(result),
        used: one_call().with(Dimension::WallUs, 250),
        enforcement: Some(Enforcement::None),
        ..call.clone()
    };
    let paid = CallFields { held: Amounts::ZERO, used: one_call(), ..call.clone() };
    let denied = Decision {
        deciding: Some(constraint("no-bees")),
        matches: vec![constraint("no-bees")],
        match_count: 1,
        ..Decision::plain(Verdict::Deny)
    };
    let less = vec![Obligation::result_cap(100)];
    let less = Decision { obligations: less, ..Decision::plain(Verdict::Degrade) };
    let shadow = Shadow { policy: object_of(&WithinToken).hash(), decision: less };
    vec![
        Body::Intent(Box::new(Intent {
            call: CallFields { held, ..call },
            effect: EffectClass::Pure,
            mode: RunMode::WithOutcome,
            key: IdempotencyKey::new("turn-1:2"),
            sent_hash: Some(sent_hash(&salts().args, &tool(), args().item())),
            filled: Filled::POLICY,
            label: Label::PUBLIC,
            call_effect: EffectClass::Pure,
            arguments: Vec::new(),
            approval: None,
            preconditions: Vec::new(),
        })),
        Body::Outcome(Box::new(Outcome {
            call: delivered.clone(),
            intent: INTENT,
            status: Status::Ok,
            tx: TxOutcome::NoOp,
            reason: None,
            flags: OutcomeFlags::default(),
            label: label(),
        })),
        Body::Refusal(Box::new(Refusal {
            call: CallFields {
                result_hash: Some(result),
                decision: Some(denied),
                head: Some(maker.next().id()),
                shadow: Some(shadow),
                ..paid.clone()
            },
            refusal_kind: RefusalKind::Refused,
            reason: Reason::Denied,
        })),
        Body::Refusals(Box::new(Refusals {
            phase: AggregatePhase::Close,
            session: Some(SESSION),
            token: Some(maker.log.token_id()),
            opened: Some(Seq::new(20)),
            answers_max: 64,
            reserved: 32,
            count: Some(2),
            digest: Some(RefusalsDigest::from_bytes(refusals_digest())),
        })),
        Body::Repeat(Box::new(Repeat {
            call: CallFields { args_hash: None, result_hash: Some(result), decision: None, ..paid },
            intent: INTENT,
            outcome: OUTCOME,
            label: label(),
        })),
    ]
}

/// `cancel`, `late`, `recovery`, `redact`, `prune`, `checkpoint`, `credit`.
fn ends(maker: &Maker) -> Vec<Body> {
    let (root, state) = ([0x44; 32], StateHash::from_bytes([0x55; 32]));
    let cancel = CancelBody { intent: INTENT, cause: Some(text(2, "Not now.")) };
    let verdict = Recovered::Done;
    let control = maker.signed(&Resolution { intent: INTENT, verdict });
    let redact = RedactBody { records: vec![INTENT, OUTCOME], cause: None };
    let prune = PruneBody { before: Seq::new(3), root, state };
    vec![
        Body::Cancel(Box::new(Cancel {
            intent: INTENT,
            session: None,
            control: Some(maker.signed(&cancel)),
        })),
        Body::Late(Box::new(Late {
            intent: INTENT,
            status: Status::Ok,
            result_hash: Some(result_hash(&salts().result, 0, args().item())),
            tx: TxOutcome::Committed,
        })),
        Body::Recovery(Box::new(Recovery {
            intent: INTENT,
            verdict,
            used: Amounts::ZERO,
            control: Some(control),
        })),
        Body::Redact(Box::new(SignedEvent { control: maker.signed(&redact) })),
        Body::Prune(Box::new(Prune { control: maker.signed(&prune) })),
        Body::Checkpoint(Box::new(Checkpoint {
            size: 3,
            root,
            state: Some(state),
            note: NOTE.to_vec(),
        })),
        maker.event(&CreditChange { agent: agent(), added: 2_500_000 }, Body::Credit),
    ]
}

/// The digest of two refusals that were counted.
fn refusals_digest() -> [u8; 32] {
    let mut refusals = Encoder::new();
    for (time, reason) in [(TIME, Reason::OutOfScope), (TIME + 1, Reason::OverBudget)] {
        refusals.array(2);
        refusals.uint(time);
        refusals.uint(reason.code());
    }
    Domain::REFUSALS.hash(&[&refusals.into_bytes()])
}

/// A record that uses a field which is reserved.
pub(crate) fn reserved() -> Vec<Record> {
    records()
        .into_iter()
        .filter_map(|mut record| {
            match &mut record.body {
                Body::Session(session) => session.principal = Some(text(15, "Ada")),
                Body::Intent(intent) => intent.arguments.push(argument()),
                Body::Ask(ask) => ask.arguments.push(argument()),
                _ => return None,
            }
            Some(record)
        })
        .collect()
}
