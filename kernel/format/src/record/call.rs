//! Records of calls.

use alloc::vec::Vec;

use crate::budget::Amounts;
use crate::control::event::Control;
use crate::decision::{Decision, Shadow, Verdict};
use crate::envelope::{Filled, Status, TxOutcome};
use crate::field::{code, flags, shape};
use crate::id::{
    AgentId, ArgsHash, CallHash, IdempotencyKey, ObjectId, PolicyHash, RefusalsDigest, ResultHash,
    SentHash, Seq, SnapshotId, TextHash, TokenId, ToolId,
};
use crate::label::Label;
use crate::manifest::{EffectClass, Enforcement};
use crate::obligation::Obligation;
use crate::provenance::Provenance;
use crate::reason::Reason;

shape! {
    /// The fields of every record of a call: the eight that the requirement names, null where not
    /// known yet or not parsed, and the kernel's additions.
    pub struct CallFields {
        /// The calling agent.
        10 => pub agent_id: Option<AgentId>,
        /// The policy in force.
        11 => pub policy_hash: Option<PolicyHash>,
        /// The snapshot that the call named.
        12 => pub state_snapshot_id: Option<SnapshotId>,
        /// The token.
        13 => pub capability_token_id: Option<TokenId>,
        /// The tool, where one of that name is registered.
        14 => pub tool_id: Option<ToolId>,
        /// Commitment to the resolved arguments.
        15 => pub args_hash: Option<ArgsHash>,
        /// Commitment to what was delivered.
        16 => pub result_hash: Option<ResultHash>,
        /// The call's origin, as the host and the caller state it.
        17 => pub provenance: Option<Provenance>,
        /// Commitment to the envelope's bytes.
        18 => pub call_hash: Option<CallHash>,
        /// The session.
        19 => pub session: Option<Seq>,
        /// The policy's decision.
        20 => pub decision: Option<Decision>,
        /// The tool's manifest.
        21 => pub manifest: Option<ObjectId>,
        /// The amounts reserved.
        22 => pub held: Amounts,
        /// The amounts used.
        23 => pub used: Amounts,
        /// How the scope was enforced.
        24 => pub enforcement: Option<Enforcement>,
        /// The agent's head snapshot, on which the policy decided; null where it is the one
        /// that the call named, or where nothing was decided.
        25 => pub head: Option<SnapshotId>,
        /// The decision of a shadow policy.
        26 => pub shadow: Option<Shadow>,
    }
}

impl CallFields {
    /// Nothing known.
    pub const fn unknown() -> Self {
        Self {
            agent_id: None,
            policy_hash: None,
            state_snapshot_id: None,
            capability_token_id: None,
            tool_id: None,
            args_hash: None,
            result_hash: None,
            provenance: None,
            call_hash: None,
            session: None,
            decision: None,
            manifest: None,
            held: Amounts::ZERO,
            used: Amounts::ZERO,
            enforcement: None,
            head: None,
            shadow: None,
        }
    }

    /// The obligations by which the policy degraded an allowed call.
    pub fn degraded(&self) -> Vec<Obligation> {
        let decision = self.decision.as_ref().filter(|d| d.verdict <= Verdict::Degrade);
        let asked = decision.map_or(&[][..], |decision| &decision.obligations);
        asked.iter().filter(|asked| asked.kind.takes_away()).cloned().collect()
    }
}

code! {
    /// When an intent was durable.
    pub enum RunMode {
        /// Before the run.
        IntentFirst = 1 "intent_first",
        /// With the outcome, before the answer.
        WithOutcome = 2 "with_outcome",
    }
}

code! {
    /// How it is known where an argument came from, the strongest first.
    pub enum ArgumentSource {
        /// It was put in for a reference.
        Resolved = 1 "resolved",
        /// Its literal value is found in what the record names.
        Verified = 2 "verified",
        /// It may come from anything that the agent has seen.
        Joined = 3 "joined",
    }
}

shape! {
    /// The origin of an argument.
    pub struct ArgumentLabel {
        /// Its place among the resolved arguments in their canonical order, from 0.
        1 => pub place: u64,
        /// How that is known.
        2 => pub source: ArgumentSource,
        /// The record that it came from; null where there is no single one.
        3 => pub record: Option<Seq>,
        /// The argument's label.
        4 => pub label: Label,
    }
}

code! {
    /// The kind of a precondition.
    pub enum PreconditionKind {
        /// The digest of a content.
        Digest = 1 "digest",
        /// The name of a version.
        Version = 2 "version",
        /// That a thing is not there.
        Absent = 3 "absent",
    }
}

shape! {
    /// A condition that must still hold when an approved call runs.
    pub struct Precondition {
        /// The kind.
        1 => pub kind: PreconditionKind,
        /// Commitment to the name of what it is about.
        2 => pub subject: TextHash,
        /// Commitment to what was seen, in hexadecimal digits; null where it is absence.
        3 => pub seen: Option<TextHash>,
    }
}

shape! {
    /// A call is about to run. This record reserves its hold.
    pub struct Intent {
        .. /// The call.
        pub call: CallFields,
        /// The effect class of the tool, by its manifest.
        30 => pub effect: EffectClass,
        /// When this record is durable.
        31 => pub mode: RunMode,
        /// The caller's idempotency key.
        32 => pub key: Option<IdempotencyKey>,
        /// Commitment to the arguments as sent, where there is a key.
        33 => pub sent_hash: Option<SentHash>,
        /// Which fields the caller left out.
        34 => pub filled: Filled,
        /// The label of everything that the session was given before: the join of its results'
        /// labels.
        35 => pub label: Label,
        /// The effect class of this call. Reserved: the manifest's.
        36 => pub call_effect: EffectClass,
        /// The origins of its arguments, by place. Reserved: empty.
        37 => pub arguments: Vec<ArgumentLabel>,
        /// The approval that it uses up; null where the policy asked nobody.
        38 => pub approval: Option<Seq>,
        /// The preconditions of the approval. Reserved: empty.
        39 => pub preconditions: Vec<Precondition>,
    }
}

flags! {
    /// Further facts about an outcome: a set of bits.
    pub struct OutcomeFlags {
        /// Measured time exceeded what was set aside: the token is exhausted.
        OVERRUN = 1,
        /// The token was revoked during the run, or before it.
        REVOKED = 2,
        /// A freeze began during the run.
        FROZEN = 4,
        /// The run had not come back: its slot of `concurrent` is still held.
        RUNNING = 8,
        /// The run was abandoned, or the home closed, before it began: the host gave its permit
        /// back.
        GIVEN_BACK = 16,
        /// The call was cancelled during the run, or before it.
        CANCELLED = 32,
        /// The delivered result tells of a failure: a program's exit code, a server's status. In
        /// records of before [`Reason::ToolFailed`] also the tool's own failure.
        TOOL_FAILED = 64,
    }
}

shape! {
    /// The outcome of a call. Its hold is freed, and the amounts used are charged.
    pub struct Outcome {
        .. /// The call.
        pub call: CallFields,
        /// The intent.
        30 => pub intent: Seq,
        /// The status: a result or an error.
        31 => pub status: Status,
        /// The outcome of the effect.
        32 => pub tx: TxOutcome,
        /// Why there is no result.
        33 => pub reason: Option<Reason>,
        /// Further facts about it.
        34 => pub flags: OutcomeFlags,
        /// The label of the delivered result or error.
        35 => pub label: Label,
    }
}

code! {
    /// Why nothing ran.
    pub enum RefusalKind {
        /// It was refused.
        Refused = 1 "refused",
        /// A person must approve it first.
        Asked = 2 "asked",
        /// It can be sent again on a condition.
        Deferred = 3 "deferred",
        /// It was a control event, a token or a session.
        Control = 4 "control",
    }
}

shape! {
    /// A call, or a control event, was refused: nothing ran. A bound token paid `used`.
    pub struct Refusal {
        .. /// The call, as far as it was parsed.
        pub call: CallFields,
        /// Why nothing ran.
        30 => pub refusal_kind: RefusalKind,
        /// The reason.
        31 => pub reason: Reason,
    }
}

code! {
    /// The beginning or the end of a run of refusals.
    pub enum AggregatePhase {
        /// It begins: the reserve is charged.
        Open = 1 "open",
        /// It ends: what was not needed is given back.
        Close = 2 "close",
        /// A count of calls that were turned away while the queue was full.
        Overload = 3 "overload",
    }
}

shape! {
    /// A run of refusals in one session, answered at once and counted together.
    pub struct Refusals {
        /// The beginning or the end.
        10 => pub phase: AggregatePhase,
        /// The session; null for calls of no session.
        11 => pub session: Option<Seq>,
        /// The token that pays.
        12 => pub token: Option<TokenId>,
        /// The record that opened it; null where this one does.
        13 => pub opened: Option<Seq>,
        /// How many calls it answers at the most.
        14 => pub answers_max: u64,
        /// How many `calls` are set aside for it.
        15 => pub reserved: u64,
        /// How many it answered; null where it begins.
        16 => pub count: Option<u64>,
        /// Digest of [time, reason] of each.
        17 => pub digest: Option<RefusalsDigest>,
    }
}

shape! {
    /// A call repeated an idempotency key and was answered by the first outcome.
    pub struct Repeat {
        .. /// The call.
        pub call: CallFields,
        /// The first intent.
        30 => pub intent: Seq,
        /// The first outcome.
        31 => pub outcome: Seq,
        /// The label of the first outcome.
        32 => pub label: Label,
    }
}

shape! {
    /// A call was cancelled: by the revoker, signed, or by the session that it is of. A call that
    /// has not begun does not run; a running call is notified, and its outcome says so.
    pub struct Cancel {
        /// The intent.
        10 => pub intent: Seq,
        /// The session; null where it is signed.
        11 => pub session: Option<Seq>,
        /// The signed event, a [`CancelBody`]; null where its own caller cancels.
        12 => pub control: Option<Control>,
    }
}

shape! {
    /// Body of a `cancel` event.
    pub struct CancelBody {
        /// The intent.
        1 => pub intent: Seq,
        /// Why: a salted commitment, the text in the vault; null where nothing was said.
        2 => pub cause: Option<TextHash>,
    }
}

shape! {
    /// A run that had been given up came back. Its slot is free; its charge stands.
    pub struct Late {
        /// The intent.
        10 => pub intent: Seq,
        /// The status: a result or an error.
        11 => pub status: Status,
        /// Commitment to what it brought; it is delivered to nobody. Null where it broke off.
        12 => pub result_hash: Option<ResultHash>,
        /// The outcome of the effect, by the tool's word.
        13 => pub tx: TxOutcome,
    }
}

shape! {
    /// The provider of a run reports it after the run was given up, or closed by a boot. What was
    /// charged stands.
    pub struct LateReport {
        /// The intent.
        10 => pub intent: Seq,
        /// The status: a result or an error.
        11 => pub status: Status,
        /// Commitment to the result or the error, by the intent's salt; it is delivered to nobody.
        12 => pub result_hash: ResultHash,
        /// The outcome of the effect, by the provider's word.
        13 => pub tx: TxOutcome,
        /// The label of the result: whoever ran the tool has it.
        14 => pub label: Label,
    }
}

impl LateReport {
    /// What it makes of the call.
    #[must_use]
    pub const fn verdict(&self) -> Recovered {
        match self.tx {
            TxOutcome::Committed => Recovered::Done,
            TxOutcome::RolledBack | TxOutcome::NoOp => Recovered::NotDone,
            TxOutcome::Unknown => Recovered::Unknown,
        }
    }
}

impl Outcome {
    /// True if the run may be [reported](LateReport) afterwards: it was given up.
    #[must_use]
    pub fn may_be_reported(&self) -> bool {
        let reasons =
            [Reason::Cancelled, Reason::TimedOut, Reason::Abandoned, Reason::ProviderGone];
        self.reason.is_some_and(|reason| reasons.contains(&reason))
    }

    /// True if what it delivered is the tool's: a result, or what a tool gave that failed by its own
    /// word. Later calls of its session can refer to it.
    #[must_use]
    pub fn is_of_the_tool(&self) -> bool {
        self.status == Status::Ok || self.reason == Some(Reason::ToolFailed)
    }
}

code! {
    /// The recovered outcome of an intent that was found open.
    pub enum Recovered {
        /// Its effect was made.
        Done = 1 "done",
        /// Its effect was not made.
        NotDone = 2 "not_done",
        /// Not known.
        Unknown = 3 "unknown",
    }
}

shape! {
    /// An intent was found open at boot: all that it held is charged, unless its tool has proved
    /// that it was not done. Or an operator says,
    /// signed, what became of it; the charge stands.
    pub struct Recovery {
        /// The intent.
        10 => pub intent: Seq,
        /// The outcome.
        11 => pub verdict: Recovered,
        /// The amounts charged.
        12 => pub used: Amounts,
        /// The operator's word; null at boot.
        13 => pub control: Option<Control>,
    }
}
