//! The report of a verification.

use std::collections::BTreeMap;

use syscap_format::{Head, HomeId, RecordError, RecordKind, Seq, UnixMillis};

/// Most findings that a report lists; all are counted.
pub const FINDINGS_MAX: usize = 64;

/// The fault of a record. Faults of the chain end the verification: what comes after can't be
/// judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Fault {
    // The chain.
    /// There is no record.
    Empty,
    /// The bytes are no canonical record of this version.
    Undecodable,
    /// The record's version is one from before the formats were settled.
    UnknownForm,
    /// The bytes exceed the limit of a record.
    TooLarge,
    /// A record is missing, or stands twice or elsewhere.
    Gap,
    /// It does not name the leaf of the record before.
    Unchained,
    /// The first record is no genesis of the right form.
    NotGenesis,
    /// The store's head is not the last record, or a head that was noted is no record of the log.
    HeadMoved,
    /// The home is another than the trust file's, or began with other keys.
    Foreign,

    // The kernel's life.
    /// There is a second genesis.
    SecondGenesis,
    /// Time goes back.
    TimeBack,
    /// The number of the boot is not that of the last boot record.
    BootNumber,
    /// A boot record contradicts how the log stood.
    BootForm,
    /// The clock's flags contradict the clocks.
    ClockFlags,
    /// An intent that was open at boot was not closed first.
    RecoveryMissing,
    /// A recovery is of the wrong form, or of no intent that was open at boot.
    Recovery,
    /// A shutdown contradicts how the log stood.
    ShutdownForm,
    /// Something began before the boot or after the shutdown.
    Closed,

    // Objects and control events.
    /// A control document is missing.
    ObjectMissing,
    /// A control document is not what its name says.
    ObjectUnsound,
    /// A control event is not by the current key of its role.
    WrongRole,
    /// A control event's counter has not grown.
    StaleCounter,
    /// Fewer keys signed a control event than its role asks for.
    Threshold,
    /// A control event or a root token names a head that is no record before it.
    NamedHead,
    /// A control event or a root token names a head from before its key's last record, or an event
    /// one from before the last that replaced the same.
    StaleHead,
    /// A key that is new to a role does not prove to be held, or a set of keys is unsound.
    KeySet,
    /// A control event's signature does not verify.
    BadSignature,
    /// A control event's body is of the wrong form, or speaks of what there isn't.
    BadControl,

    // Tokens and sessions.
    /// A token's form or signature is wrong.
    BadToken,
    /// A token is not by the issuer's current key, or its parent's holder.
    WrongIssuer,
    /// A token is for another home.
    WrongAudience,
    /// A token was registered after it had ended.
    IssuedLate,
    /// A token was registered twice.
    IssuedTwice,
    /// A token gives more than its parent.
    Attenuation,
    /// A token renews what it may not.
    Renewal,
    /// An `issue` record and its token differ.
    IssueForm,
    /// A token is not registered.
    UnknownToken,
    /// A session is not open.
    UnknownSession,
    /// A session record is of the wrong form, or names another agent, token or snapshot.
    SessionForm,
    /// A charge is of the wrong form.
    ChargeForm,

    // Calls.
    /// An intent lacks a field or has one that it can't have yet.
    IntentForm,
    /// A call's agent or token is not its session's.
    NotBound,
    /// The token, or one above it, was revoked.
    Revoked,
    /// The agent, the tool or the kernel was frozen.
    Frozen,
    /// The token had ended.
    Expired,
    /// The token was not valid yet.
    NotYetValid,
    /// The time had not been confirmed.
    ClockUnconfirmed,
    /// The list of revocations was older than the token allows.
    StaleRevocations,
    /// The token does not grant the tool.
    NotGranted,
    /// The token is read only, the tool is not.
    ReadOnlyToken,
    /// The policy was not in force, or not the token's.
    Policy,
    /// The tool's manifest was not in force, or says otherwise.
    Tool,
    /// The snapshot is not the agent's, or does not follow the one before.
    Snapshot,
    /// The head that a call was decided on is not the agent's, or is left out.
    Head,
    /// The policy did not let it run, or its decision contradicts itself.
    Decision,
    /// The shadow policy's decision is missing, is by another one, or belongs to no question.
    Shadow,
    /// An obligation could not be kept, or was not.
    Obligation,
    /// Less was set aside than the tool's manifest wants.
    Hold,
    /// More was set aside than was left, or a policy was asked where no call was left.
    OverBudget,
    /// The token was exhausted, or is said to have been and was not.
    Exhausted,
    /// The idempotency key was used before.
    KeyReused,
    /// More calls were in flight than the home's limit.
    InFlight,
    /// An outcome has no open intent, or a cancel none that was not cancelled before.
    NoIntent,
    /// An outcome's call is not its intent's.
    OutcomeCall,
    /// An outcome's parts contradict each other.
    OutcomeForm,
    /// An outcome used more than was set aside.
    Overspent,
    /// An outcome charges less than it must.
    Undercharged,
    /// An outcome's flags contradict how the log stood.
    OutcomeFlags,
    /// A label is not what the tool's manifest, or what came before, makes it.
    Label,
    /// A run came back that was not out.
    LateForm,
    /// The call's origin is not as the kernel records it: a filled-in time is not the record's, or
    /// an input is no record before.
    Provenance,
    /// A reason that the kernel could not have given there, as the log stood.
    Reason,
    /// A refusal is of the wrong form, or lacks what a policy is asked about.
    RefusalForm,
    /// A refused or repeated call paid another fee than it owed.
    Fee,
    /// An aggregate of refusals is of the wrong form, or not opened, closed or counted as it
    /// must be.
    Aggregate,
    /// A repeat names no finished call with a key.
    RepeatForm,

    // Approvals.
    /// A call that waits for a person lacks something, or names others than may answer, or another
    /// time.
    AskForm,
    /// An answer is to nothing that waits, or by a key that may not; or a call went on by an
    /// approval that there isn't, or that was for another.
    Approval,

    // States.
    /// A change of a state lacks a field, or has one that it can't have.
    StateForm,
    /// The writer of a state change may not write these keys.
    Namespace,
    /// The facts are not those before, changed as the record says; or there are too many.
    Facts,
}

/// One fault and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The record.
    pub seq: Seq,
    /// The fault.
    pub fault: Fault,
}

/// A record that only newer software can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newer {
    /// The record.
    pub seq: Seq,
    /// Which kind, version or field of it is not known here.
    pub what: RecordError,
}

/// The anchor of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// On the log's own first record: whoever can write a whole log can pass.
    SelfAnchored,
    /// On a trust file that names the home and its first keys.
    TrustFile,
}

/// Decides if an anchor outside the log is required.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnchorNeed {
    /// It need not.
    #[default]
    Optional,
    /// It must.
    Required,
}

/// How the log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With a shutdown.
    Clean,
    /// Without, and nobody holds the home.
    Unclean,
    /// A process holds the home: the log goes on.
    Live,
}

/// The verdict on a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Soundness {
    /// All that can be checked is as it must be.
    Sound,
    /// Something is not.
    Tampered,
    /// Newer software wrote a record. All before it is sound, and so is the chain.
    Newer,
    /// Sound, but calls have no outcome or the end is missing.
    Incomplete,
    /// Sound, but without the required anchor outside the log.
    NotAnchored,
}

impl Soundness {
    /// The exit code of `syscap verify`.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Sound => 0,
            Self::Tampered => 10,
            Self::Incomplete => 11,
            Self::NotAnchored => 12,
            Self::Newer => 13,
        }
    }
}

/// The report of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The home that the log's first record names; `None` for an empty log.
    pub home: Option<HomeId>,
    /// Records that were verified.
    pub records: u64,
    /// Records of each kind.
    pub counts: BTreeMap<RecordKind, u64>,
    /// The last record that was verified.
    pub head: Option<Head>,
    /// The first record that only newer software can read: from there on only the chain was
    /// followed.
    pub newer: Option<Newer>,
    /// Time of the first record.
    pub first_time: UnixMillis,
    /// Time of the last record.
    pub last_time: UnixMillis,
    /// Intents without an outcome, in order.
    pub open_intents: Vec<Seq>,
    /// Intents that were found open at a boot and are not known to have run or not, and that no
    /// operator has resolved.
    pub unknown_intents: Vec<Seq>,
    /// How the log ends.
    pub end: End,
    /// The anchor of the report.
    pub anchor: Anchor,
    /// The required anchor.
    pub anchor_need: AnchorNeed,
    /// The head that was noted, if one was given. Without it nothing shows that records were cut off
    /// the end.
    pub noted: Option<Head>,
    /// The first [`FINDINGS_MAX`] faults, in order.
    pub findings: Vec<Finding>,
    /// How many faults there are in all.
    pub findings_count: u64,
    /// How many entries of its own tables the verifier has passed over, beside looking them up:
    /// tokens, requests, standing approvals, idempotency keys. It grows as the log does.
    pub passed_over: u64,
}

impl Report {
    /// The verdict. If several apply it is the first of these: tampered, newer, not anchored,
    /// incomplete.
    pub fn verdict(&self) -> Soundness {
        if self.findings_count > 0 {
            return Soundness::Tampered;
        }
        if self.newer.is_some() {
            return Soundness::Newer;
        }
        if self.anchor_need == AnchorNeed::Required && self.anchor == Anchor::SelfAnchored {
            return Soundness::NotAnchored;
        }
        match self.end {
            // Calls are in flight, and the log is not at its end.
            End::Live => Soundness::Sound,
            End::Clean if self.open_intents.is_empty() => Soundness::Sound,
            End::Clean | End::Unclean => Soundness::Incomplete,
        }
    }
}

/// Faults as they are found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) list: Vec<Finding>,
    pub(super) count: u64,
}

impl Findings {
    pub(super) fn add(&mut self, seq: Seq, fault: Fault) {
        self.count = self.count.saturating_add(1);
        if self.list.len() < FINDINGS_MAX {
            self.list.push(Finding { seq, fault });
        }
    }
}
