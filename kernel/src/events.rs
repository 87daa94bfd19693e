//! Events from the host to the kernel, and effects from the kernel to the host.

use alloc::{boxed::Box, vec::Vec};

use crate::approvals::conditions::{Inspected, Inspecting};
use crate::call::fetch::{Fetched, Fetching};
use crate::call::links::{Found, Resolving};
use crate::lifecycle::probe::Probed;
use crate::policy::PolicyEngine;
use crate::registry::ToolsDelta;
use crate::store::{Ancestor, Room, Stored, WithRows};
use crate::tool::{Job, Ran, Ticket};
use syscap_format::{
    AgentId, Amounts, CallSalts, Canonical, Control, Durability, Form, Input, Label, LateReport,
    Opened, Opening, Proof, RecordKind, Refused, Seq, SnapshotId, Source, TokenId, ToolResult,
    VaultText,
};

/// A call as it comes in.
#[derive(Debug)]
pub struct Submit {
    /// The host's name for it.
    pub ticket: Ticket,
    /// The session that it comes through.
    pub session: Seq,
    /// The envelope's bytes.
    pub received: Vec<u8>,
    /// How they are written.
    pub form: Form,
    /// The source of the call, as the host states it: an agent by default. The envelope's own
    /// statement is recorded as a claim.
    pub source: Source,
    /// Random salts for its commitments.
    pub salts: CallSalts,
    /// The proof of a remote holder for these bytes, if one opened the session.
    pub proof: Option<Proof>,
    /// Nobody is there to be asked: where the call would wait for a person it is refused at once, as
    /// by a [headless](crate::Kernel::headless) kernel.
    pub unasked: bool,
}

/// Time that a run took, as the host measured it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Processor time of the thread, in microseconds.
    pub cpu_us: u64,
    /// Wall-clock time, in microseconds.
    pub wall_us: u64,
}

/// Why a run will not be reported, or not in time. The host says so of a job that it no longer
/// has, or that has not returned: to run it afterwards would be the host's own act, unrecorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// It panicked.
    Panicked,
    /// It has not returned in time; it may still run.
    TimedOut,
    /// The host dropped it.
    Abandoned,
}

/// An event from the host.
pub enum Event {
    /// The kernel starts on this home. Before this it takes [`Event::Stored`] and [`Event::Room`];
    /// any other event halts it, with [`Halt::NotBooted`](crate::halt::Halt::NotBooted), and
    /// nothing is recorded.
    Boot {
        /// Whom to tell.
        ticket: Ticket,
        /// 16 random bytes.
        id: [u8; 16],
        /// The version of the software.
        software: Box<str>,
        /// The failures that an acknowledged record survives from here on.
        durability: Durability,
        /// The results of the [probes](crate::Kernel::probing) of the open intents.
        probed: Vec<Probed>,
    },
    /// A call.
    Submit(Submit),
    /// The result of [`Effect::Fetch`].
    Fetched(Ticket, Fetched),
    /// The result of [`Effect::Resolve`].
    Resolved(Ticket, Result<Found, Refused>),
    /// The result of [`Effect::Inspect`]; `None` if the tool broke off.
    Inspected(Ticket, Option<Inspected>),
    /// A run came back.
    Ran(Ran<'static>, Measured),
    /// A run will not come back, or not in time.
    Lost(Seq, Lost, Measured),
    /// The provider of a run that was [closed](crate::Kernel::unreported) without it reports the run:
    /// its charge stands. The kernel joins the label of the tool's
    /// results into the one that is given here.
    Reported(Ticket, LateReport),
    /// A job that the host has not begun, and gives back with its permit: nothing of it ran. If
    /// [`Kernel::may_begin`](crate::Kernel::may_begin) says no it must be given back.
    GivenBack(Box<Job>),
    /// A batch is durable.
    Stored(Stored),
    /// A signed event: of kind `key`, `revoke`, `freeze`, `config`, `credit`, `cancel`, `recovery`
    /// or `approval`, which is what a person answers to a call that waits. If the kernel does not
    /// [remember](crate::Kernel::remembers) the head that it names, it needs the proof that the
    /// head is durable. The same holds for the variants below. With one that revokes, freezes,
    /// cancels or answers, the text that it commits to: it is kept in the vault, under the record.
    Control(Ticket, RecordKind, Control, Option<Ancestor>, Option<VaultText>),
    /// A signed event of kind `redact`, the proof that the records which it names may have rows, and
    /// the text that it commits to.
    Redact(Ticket, Control, Option<Ancestor>, WithRows, Option<VaultText>),
    /// A user's message to a session's agent, as the host reports it, and the text that it commits
    /// to.
    Heard(Ticket, Box<Input>, VaultText),
    /// A session cancels a call of its own: the session, the intent.
    Cancel(Ticket, Seq, Seq),
    /// A signed event of kind `policy`, those of the engines that it names which the kernel does not
    /// have, and the text that it commits to.
    Policy(Ticket, Control, Option<Ancestor>, Vec<Box<dyn PolicyEngine>>, Option<VaultText>),
    /// A policy document that no engine could be made of: where it is wrong, and how. It is
    /// refused on the record.
    BadPolicy(Ticket, Box<str>, Box<str>),
    /// A change to an agent's state.
    Propose(Box<Proposal>),
    /// A signed event of kind `tools`, for the tools that the kernel has, changed so.
    Tools(Ticket, Control, Option<Ancestor>, ToolsDelta),
    /// A token's wire.
    Issue(Ticket, Vec<u8>, Option<Ancestor>),
    /// The host opens a slot for an agent with a token: of its own, or for the token's holder, who
    /// signed a challenge that the host has drawn for this and takes once.
    OpenSession(Ticket, AgentId, TokenId, Option<Opening>),
    /// The host closes a slot.
    CloseSession(Ticket, Seq),
    /// The host posts model tokens and credits after the fact.
    Charge(Ticket, Seq, Amounts),
    /// The room on the disk.
    Room(Room),
    /// Time passed.
    Tick,
    /// The host closes the home.
    Shutdown(Ticket),
}

/// The result of a control event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ack {
    /// It is on record.
    Recorded(Seq),
    /// By this record that call is cancelled: the intent. Its run, if it is out, is to be told.
    Cancelled(Seq, Seq),
    /// A token is registered.
    Token(TokenId),
    /// A session is open.
    Session(Opened),
    /// An agent's state has changed: its head, and the record.
    State(SnapshotId, Seq),
}

/// A request of the kernel to the host.
#[derive(Debug)]
#[must_use = "an effect must be carried out"]
pub enum Effect {
    /// Read this from the vault.
    Fetch(Ticket, Box<Fetching>),
    /// Follow these links.
    Resolve(Ticket, Box<Resolving>),
    /// Look at what a call would change that a person will be asked about.
    Inspect(Ticket, Box<Inspecting>),
    /// Run this.
    Run(Ticket, Box<Job>),
    /// Answer this call.
    Reply(Ticket, Box<ToolResult>),
    /// Answer this control event.
    Ack(Ticket, Result<Ack, Refused>),
}

/// A change to the state of a session's agent: a map from keys to values, null to take a key
/// away. It is made whole or not at all, recorded either way, and pays one of `calls`.
#[derive(Debug)]
pub struct Proposal {
    /// The host's name for it.
    pub ticket: Ticket,
    /// The session whose agent's state it is.
    pub session: Seq,
    /// The writer, as the host states it: agents and users write `goal.*`, tools and encoders
    /// `fact.*`.
    pub writer: Source,
    /// Records that the values come from.
    pub inputs: Vec<Seq>,
    /// The head that it was made from; `None` for whatever is the head.
    pub base: Option<SnapshotId>,
    /// The changes.
    pub changes: Canonical,
    /// Random salts for its commitments.
    pub salts: CallSalts,
}

/// An open session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionView<'a> {
    /// The record that opened it.
    pub number: Seq,
    /// The agent.
    pub agent: &'a AgentId,
    /// The token.
    pub token: TokenId,
    /// The join of what was delivered to it.
    pub label: Label,
}
