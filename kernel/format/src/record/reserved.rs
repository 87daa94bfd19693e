//! Records of kinds whose encoding is settled and that no version writes yet: a home that holds
//! one is not opened.

use alloc::vec::Vec;

use crate::control::event::Control;
use crate::field::{code, shape};
use crate::id::{ConstraintId, Leaf, Seq, StateHash, TextHash};
use crate::label::Label;
use crate::manifest::EffectClass;
use crate::record::call::{ArgumentLabel, CallFields, Precondition};
use crate::sign::PublicKey;
use crate::time::UnixMillis;
use crate::token::Grants;

shape! {
    /// A result's label was lowered for its session, by a rule of the policy.
    pub struct Declassify {
        /// The session.
        10 => pub session: Seq,
        /// The outcome whose result it is.
        11 => pub outcome: Seq,
        /// The constraint that says so.
        12 => pub constraint: ConstraintId,
        /// The approval that it needed; null for none.
        13 => pub approval: Option<Seq>,
        /// The label before.
        14 => pub from: Label,
        /// The label from here on.
        15 => pub to: Label,
    }
}

shape! {
    /// A call waits for approval. The vault holds its envelope and its arguments.
    pub struct Ask {
        .. /// The call; its decision's deciding constraint is the one that asks.
        pub call: CallFields,
        /// The manifest's effect class.
        30 => pub effect: EffectClass,
        /// The call's own.
        31 => pub call_effect: EffectClass,
        /// The origins of its arguments.
        32 => pub arguments: Vec<ArgumentLabel>,
        /// The label of everything that its session was given before.
        33 => pub label: Label,
        /// Commitments to the resources that it would touch, in the plan's order.
        34 => pub resources: Vec<TextHash>,
        /// The conditions that must still hold when it continues.
        35 => pub preconditions: Vec<Precondition>,
        /// The keys that may answer, sorted.
        36 => pub eligible: Vec<PublicKey>,
        /// How many of them must approve.
        37 => pub threshold: u64,
        /// The means that count.
        38 => pub means: Vec<ApprovalChannel>,
        /// From then on it is expired.
        39 => pub expires: UnixMillis,
    }
}

code! {
    /// By which means a person answered.
    pub enum ApprovalChannel {
        /// At a terminal.
        Terminal = 1 "terminal",
        /// By a command.
        Command = 2 "command",
        /// By an elicitation of MCP.
        Elicitation = 3 "elicitation",
        /// By the prompt of an agent's client.
        ClientPrompt = 4 "client_prompt",
        /// By a signed file.
        File = 5 "file",
        /// By a signer elsewhere.
        Signer = 6 "signer",
    }
}

impl ApprovalChannel {
    /// True for a window of the agent's own client. It is the weakest channel: it counts only where
    /// the policy says so, once, for one call, and where one approval is enough.
    #[must_use]
    pub const fn is_a_clients(self) -> bool {
        matches!(self, Self::Elicitation | Self::ClientPrompt)
    }
}

code! {
    /// An approver's answer.
    pub enum ApprovalAnswer {
        /// Yes, once.
        Once = 1 "once",
        /// Yes, to a bounded set.
        Set = 2 "set",
        /// No.
        Deny = 3 "deny",
    }
}

shape! {
    /// Body of an `approval` event.
    pub struct ApprovalBody {
        /// The leaf of the `ask` record.
        1 => pub ask: Leaf,
        /// The answer.
        2 => pub answer: ApprovalAnswer,
        /// By which means.
        3 => pub means: ApprovalChannel,
        /// For a standing approval, the scopes covered besides the resources of the `ask`: scopes
        /// of its tool, none of which lists names. Null: nothing, and otherwise.
        4 => pub scopes: Option<Grants>,
        /// For a standing approval, the number of calls; null otherwise.
        5 => pub uses: Option<u64>,
        /// When the answer ends. Null: with what it answers, and a bounded set with the session.
        6 => pub expires: Option<UnixMillis>,
        /// Commitment to the reason that was given; null for none.
        7 => pub reason: Option<TextHash>,
    }
}

shape! {
    /// Body of a `redact` event.
    pub struct RedactBody {
        /// The records whose rows in the vault are gone, ascending.
        1 => pub records: Vec<Seq>,
        /// Commitment to the reason; null for none.
        2 => pub cause: Option<TextHash>,
    }
}

impl RedactBody {
    /// True if it names records that come before one, each once and in their order.
    #[must_use]
    pub fn is_sound(&self, at: Seq) -> bool {
        let pairs = self.records.iter().zip(self.records.iter().skip(1));
        !self.records.is_empty()
            && pairs.fold(true, |sound, (one, other)| sound && one < other)
            && self.records.last().is_some_and(|last| *last < at)
    }
}

shape! {
    /// Old records were dropped: the event's body is a [`PruneBody`].
    pub struct Prune {
        /// The signed event.
        10 => pub control: Control,
    }
}

shape! {
    /// Body of a `prune` event.
    pub struct PruneBody {
        /// The first record that is kept.
        1 => pub before: Seq,
        /// The Merkle tree's root over all records before it (RFC 6962).
        2 => pub root: [u8; 32],
        /// Digest of the state image after the last of them.
        3 => pub state: StateHash,
    }
}

shape! {
    /// The Merkle tree was signed.
    pub struct Checkpoint {
        /// How many records the tree has.
        10 => pub size: u64,
        /// Its root (RFC 6962).
        11 => pub root: [u8; 32],
        /// Digest of the state image after its last record; null where none was made.
        12 => pub state: Option<StateHash>,
        /// The signed note (C2SP).
        13 => pub note: Vec<u8>,
    }
}
