//! Records of the kernel's own life: genesis, boots, tokens, sessions, control events.

use alloc::boxed::Box;

use crate::budget::Amounts;
use crate::control::event::Control;
use crate::control::roles::{Role, Roles};
use crate::control::{ControlBody as _, Freeze, FreezeBecause, FreezeChange};
use crate::field::{code, flags, shape};
use crate::id::{AgentId, RecoveryHash, Seq, SnapshotId, TextHash, TokenId};
use crate::limits::{SKEW_MS_MAX, TOKEN_LIFE_MS_MAX};
use crate::record::kind::RecordKind;
use crate::sign::PublicKey;
use crate::time::UnixMillis;

flags! {
    /// Oddities of the clocks when a record was made: a set of bits.
    pub struct ClockFlags {
        /// The wall clock lies beyond the skew limit and is not followed.
        SKEWED = 1,
        /// At boot the wall clock lay further ahead than any token lives: tokens issued before are
        /// refused until an operator confirms the time.
        GAP = 2,
    }
}

code! {
    /// The failures that an acknowledged record survives.
    pub enum Durability {
        /// A power cut.
        Full = 1 "full",
        /// A crash of the process, not a power cut.
        Process = 2 "process",
        /// None: the log lives in memory.
        Memory = 3 "memory",
    }
}

shape! {
    /// Limits that are fixed for a home when it is made.
    pub struct HomeLimits {
        /// How far the wall clock may deviate within one boot, in milliseconds.
        1 => pub skew_ms_max: u64,
        /// Calls in flight at once.
        2 => pub in_flight_max: u64,
        /// How long an idempotency key is kept after its intent, in milliseconds.
        3 => pub key_life_ms: u64,
        maybe {
            /// The role that ends a freeze. Absent in homes made before it was settled: the
            /// revoker there.
            4 => pub thaws: Role,
        }
    }
}

impl Default for HomeLimits {
    fn default() -> Self {
        Self {
            skew_ms_max: SKEW_MS_MAX,
            in_flight_max: crate::field::count(crate::limits::IN_FLIGHT_MAX),
            // No token outlives it.
            key_life_ms: TOKEN_LIFE_MS_MAX,
            // A stop is to be easy; to go on takes a person, where the key is sealed.
            thaws: Some(Role::Operator),
        }
    }
}

impl HomeLimits {
    /// The role that must sign a control event of that kind and body; `None` for kinds that are
    /// not signed.
    pub fn role_of(&self, kind: RecordKind, body: &[u8]) -> Option<Role> {
        let change = match Freeze::from_bytes(body) {
            Ok(freeze) => Some(freeze.change),
            Err(_) => FreezeBecause::from_bytes(body).ok().map(|freeze| freeze.change),
        };
        match self.thaws {
            Some(_) if kind == RecordKind::Freeze && change == Some(FreezeChange::Thaw) => {
                self.thaws
            }
            _ => Role::of(kind),
        }
    }
}

shape! {
    /// The log begins. Its leaf is the home's id.
    pub struct Genesis {
        /// 32 random bytes: no two homes are alike.
        10 => pub entropy: [u8; 32],
        /// A name for people; it is no audience.
        11 => pub origin: Box<str>,
        /// The limits that are fixed for the home.
        12 => pub limits: HomeLimits,
        /// The failures that an acknowledged record survives.
        13 => pub durability: Durability,
        /// The keys of issuer, policy, revoker, approver and operator.
        14 => pub roles: Roles,
        /// Hash of the key by which its owner can give every role other keys, whoever has stolen
        /// the operator's; null for none.
        15 => pub recovery: Option<RecoveryHash>,
    }
}

code! {
    /// How the boot before ended.
    pub enum PreviousRun {
        /// This is the first boot.
        First = 0 "first",
        /// With a shutdown record.
        Clean = 1 "clean",
        /// Without.
        Unclean = 2 "unclean",
    }
}

shape! {
    /// A kernel opened the home.
    pub struct Boot {
        /// 16 random bytes that name the boot.
        10 => pub id: [u8; 16],
        /// How the boot before ended.
        11 => pub before: PreviousRun,
        /// The wall clock as it was read.
        12 => pub wall: UnixMillis,
        /// The version of the software.
        13 => pub software: Box<str>,
        /// The failures that an acknowledged record survives from here on.
        14 => pub durability: Durability,
        /// Intents found open.
        15 => pub open: u64,
    }
}

shape! {
    /// A kernel closed the home.
    pub struct Shutdown {
        /// Intents left open, because their runs had not come back.
        10 => pub open: u64,
    }
}

shape! {
    /// A token was registered. Its wire is stored with the record.
    pub struct Issue {
        /// The token.
        10 => pub token: TokenId,
        /// The issuer that signed it.
        11 => pub issuer: PublicKey,
        /// The token it was derived from.
        12 => pub parent: Option<TokenId>,
        /// The agent it is for.
        13 => pub agent: AgentId,
    }
}

code! {
    /// The beginning or the end of a session.
    pub enum SessionPhase {
        /// It begins.
        Open = 1 "open",
        /// It ends.
        Close = 2 "close",
    }
}

shape! {
    /// A session was opened or closed. A session is a slot of the host's, bound to one agent
    /// and one token; its number is the position of the record that opened it. One that version 3
    /// opens has the label of its token's family; of version 2, a label of its own.
    pub struct SessionChange {
        /// The beginning or the end.
        10 => pub phase: SessionPhase,
        /// The session; null where it begins.
        11 => pub session: Option<Seq>,
        /// The agent.
        12 => pub agent: AgentId,
        /// The token.
        13 => pub token: TokenId,
        /// The agent's head snapshot.
        14 => pub snapshot: SnapshotId,
        /// The principal behind it: a salted commitment, the text in the vault. Reserved: null.
        15 => pub principal: Option<TextHash>,
    }
}

/// The binding of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The session.
    pub session: Seq,
    /// The agent's head snapshot.
    pub snapshot: SnapshotId,
}

shape! {
    /// A control event, in full: `key`, `revoke`, `freeze`, `policy`, `tools` and `config`
    /// records have this shape. The body's form depends on the kind.
    pub struct SignedEvent {
        /// The event.
        10 => pub control: Control,
    }
}

shape! {
    /// The host posted usage after the fact: model tokens and credits, upwards only.
    pub struct Charge {
        /// The token that pays, with all its ancestors.
        10 => pub token: TokenId,
        /// The session that it was posted through.
        11 => pub session: Seq,
        /// How much.
        12 => pub amounts: Amounts,
    }
}
