//! One record of every kind, byte by byte.

use std::collections::BTreeSet;
use syscap::format::{
    AggregatePhase, Amounts, ApprovalAnswer, ApprovalBody, ApprovalChannel, ArgumentLabel,
    ArgumentSource, Ask, Body, CallFields, Cancel, CancelBody, Canonical, Charge, Checkpoint,
    ClockFlags, Confidentiality, ConfigChange, ConstraintId, Control, ControlBody, CreditChange,
    Decision, Declassify, Dimension, EffectClass, Enforcement, FactKey, Filled, Freeze,
    FreezeChange, FreezeTarget, Grants, IdempotencyKey, Input, Integrity, Intent, Issue, KeyChange,
    Label, Late, MapBuilder, ObjectId, Obligation, Outcome, OutcomeFlags, PolicyChange, Provenance,
    Prune, PruneBody, Reason, Record, RecordError, RecordKind, Recovered, Recovery, Redact,
    RedactBody, Refusal, RefusalKind, Refusals, RefusalsDigest, Repeat, Resolution, Revocation,
    Role, RoleSet, Roles, RunMode, Seq, SessionChange, SessionPhase, Shadow, SignedEvent, Snapshot,
    Source, StateChange, StateHash, Status, TextHash, ToolGrant, ToolId, ToolsChange, ToolsObject,
    TxOutcome, UnixMillis, Verdict, args_hash, call_hash, changes_hash, fact_id, leaf, result_hash,
    sent_hash, text_hash,
};
use syscap::kernel::object_of;
use syscap::policy::WithinToken;

use crate::spec::document::{code, dump, hex, table};
use crate::spec::examples::refusals_digest;
use crate::spec::world::{
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

/// What makes the records.
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
fn records() -> Vec<Record> {
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
        Body::Redact(Box::new(Redact { control: maker.signed(&redact) })),
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

/// The signed event of a record, if it is one.
fn control_of(body: &Body) -> Option<&Control> {
    match body {
        Body::Key(event)
        | Body::Revoke(event)
        | Body::Freeze(event)
        | Body::Policy(event)
        | Body::Tools(event)
        | Body::Config(event)
        | Body::Credit(event) => Some(&event.control),
        Body::Approval(approval) => Some(&approval.control),
        Body::Cancel(cancel) => cancel.control.as_ref(),
        Body::Recovery(recovery) => recovery.control.as_ref(),
        Body::Redact(redact) => Some(&redact.control),
        Body::Prune(prune) => Some(&prune.control),
        _ => None,
    }
}

#[test]
fn a_record_of_every_kind_stands_there() {
    let records = records();
    let log = Log::example();
    let mut made = records.iter();
    let mut kinds = Vec::new();
    for row in table("Kind | What it says | Bytes") {
        let name = code(&row[0])[0];
        kinds.push(name.to_owned());
        if row[2].starts_with("[An example]") {
            let place = ["genesis", "boot", "shutdown"].iter().position(|kind| *kind == name);
            assert_eq!(dump(name), log.records[place.expect(name)]);
            continue;
        }
        let record = made.next().expect(name);
        let (kind, bytes) = (record.body.kind(), record.encode());
        assert_eq!(kind.name(), name);
        assert_eq!(row[2], format!("`{}`", hex(&bytes)), "{name}");
        let read = Record::decode(&bytes);
        if kind.is_reserved() {
            assert_eq!(read, Err(RecordError::ReservedKind(kind)));
            assert!(read.unwrap_err().to_string().contains(name));
        } else {
            assert_eq!(read.as_ref(), Ok(record), "{name}");
        }
        if let Some(control) = control_of(&record.body) {
            assert!(control.is_sound(), "{name}");
            assert_eq!(control.verify(&log.home, kind), Ok(()), "{name}");
        }
    }
    assert_eq!(made.next(), None);
    kinds.dedup();
    assert_eq!(kinds, RecordKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>());
}

#[test]
fn bodies_read_back() {
    macro_rules! reads_back {
        ($control:ident: $($kind:ident $name:ident)*) => {
            match $control.0 {
                $( RecordKind::$kind => {
                    let body = $name::from_bytes(&$control.1.body).unwrap();
                    assert_eq!(body.to_bytes(), $control.1.body);
                } )*
                kind => panic!("{kind}"),
            }
        };
    }
    let mut kinds = BTreeSet::new();
    for record in records() {
        let Some(control) = control_of(&record.body) else { continue };
        let found = (record.body.kind(), control);
        reads_back! { found:
            Key KeyChange Revoke Revocation Freeze Freeze Policy PolicyChange Tools ToolsChange
            Config ConfigChange Approval ApprovalBody Cancel CancelBody Recovery Resolution
            Redact RedactBody Prune PruneBody Credit CreditChange
        }
        kinds.insert(found.0);
    }
    let signed = RecordKind::ALL.iter().filter(|kind| Role::of(**kind).is_some());
    assert_eq!(kinds, signed.copied().collect());
}

/// The keys of the revoker become two, both of which must sign; then the owner gives the issuer
/// another key.
#[test]
fn keys_change_as_it_says() {
    let home = Log::example().home;
    let before = Roles::new(Role::IN_USE.map(|role| public(seed(role))));
    let changes: Vec<KeyChange> = records()
        .iter()
        .filter(|record| record.body.kind() == RecordKind::Key)
        .map(|record| KeyChange::from_bytes(&control_of(&record.body).unwrap().body).unwrap())
        .collect();
    let [second, other] = &changes[..] else { panic!("two changes") };
    assert!(second.is_proved(&home, before.set(Role::Revoker).unwrap()));
    assert_eq!((second.set.threshold, second.set.keys().count()), (2, 2));
    assert!(other.is_proved(&home, before.set(Role::Issuer).unwrap()));
    assert_eq!(other.cut_off, Some(Seq::new(1)));
}

#[test]
fn sets_of_keys_keep_to_their_rules() {
    let set = |role, threshold, seeds: core::ops::Range<u8>| RoleSet {
        threshold,
        ..RoleSet::any_of(role, seeds.map(public))
    };
    for (role, threshold, seeds, sound) in [
        (Role::Revoker, 1, 1..2, true),
        (Role::Revoker, 16, 1..17, true),
        (Role::Revoker, 1, 1..18, false),
        (Role::Revoker, 0, 1..2, false),
        (Role::Revoker, 3, 1..3, false),
        (Role::Revoker, 1, 1..1, false),
        (Role::Issuer, 1, 1..17, true),
        (Role::Issuer, 2, 1..3, false),
        (Role::Issuer, 1, 1..1, false),
        (Role::Publisher, 1, 1..2, false),
    ] {
        assert_eq!(set(role, threshold, seeds.clone()).is_sound(), sound, "{role} {seeds:?}");
    }
    let mut turned = set(Role::Revoker, 1, 1..3);
    turned.keys.reverse();
    assert!(!turned.is_sound());
    turned.keys[1] = turned.keys[0].clone();
    assert!(!turned.is_sound());
}

/// What the record says once a field is used that must not be.
fn using(record: &Record, field: &str) -> Option<Record> {
    let mut record = record.clone();
    match (&mut record.body, field) {
        (Body::Session(session), "principal") => session.principal = Some(text(15, "Ada")),
        (Body::Intent(intent), "arguments") => intent.arguments.push(argument()),
        (Body::Ask(ask), "arguments") => ask.arguments.push(argument()),
        _ => return None,
    }
    Some(record)
}

#[test]
fn reserved_fields_are_refused_by_name() {
    let rows: BTreeSet<(String, String)> = table("Where | Reserved field | Must be")
        .iter()
        .map(|row| (code(&row[0])[0].to_owned(), code(&row[1])[0].to_owned()))
        .collect();
    let mut refused = BTreeSet::new();
    for record in records() {
        let kind = record.body.kind();
        for (place, field) in rows.iter().filter(|(place, _)| place == kind.name()) {
            let used = using(&record, field).unwrap_or_else(|| panic!("{place} {field}"));
            let Err(RecordError::ReservedField(name)) = Record::decode(&used.encode()) else {
                panic!("{place} {field}");
            };
            assert_eq!(name, field);
            refused.insert((place.clone(), field.clone()));
        }
    }
    assert_eq!(refused.len(), 3);
    // What else is reserved does not stand in records themselves: `tests/forged.rs` opens homes
    // that use it.
    let others = [("RoleSet", "role"), ("TokenBody", "caveats")];
    refused.extend(others.map(|(place, field)| (place.to_owned(), field.to_owned())));
    assert_eq!(rows, refused);
}
