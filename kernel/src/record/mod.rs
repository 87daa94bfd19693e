//! Records: one for every call, answered or refused, and for every change of state.
//!
//! A record is a canonical CBOR map of fixed shape, at most
//! [`RECORD_BYTES_MAX`](crate::limits::RECORD_BYTES_MAX) bytes. Keys 0 to 6 are the same for
//! all, the rest depends on the kind; `docs/spec.md` section 5 has a table for each.

mod call;
mod life;
mod state;

pub use call::{
    CallFields, Intent, Late, Outcome, OutcomeFlags, Recovered, Recovery, Refusal, RefusalKind,
    Refusals, Repeat, RunMode, RunPhase,
};
pub use life::{
    Boot, Charge, ClockFlags, Durability, Ended, Genesis, HomeLimits, Issue, Opened, SessionChange,
    SessionPhase, Shutdown, SignedEvent,
};

pub use state::StateChange;

use alloc::{boxed::Box, vec::Vec};

use crate::{
    cbor::{DecodeError, Decoder, Encoder, Fault, Profile},
    field::{Field, FieldSpec, code},
    hash::leaf,
    id::{Leaf, Seq},
    time::UnixMillis,
};

/// Version of the record's form.
pub const RECORD_VERSION: u64 = 1;

code! {
    /// The kind of a record. Numbers of kinds that this version does not write are reserved: a
    /// home that holds one is not opened.
    pub enum Kind {
        /// The log begins.
        Genesis = 1 "genesis",
        /// A role gets another key.
        Key = 2 "key",
        /// A kernel opened the home.
        Boot = 3 "boot",
        /// A kernel closed the home.
        Shutdown = 4 "shutdown",
        /// A token was registered.
        Issue = 5 "issue",
        /// A session was opened or closed.
        Session = 6 "session",
        /// A token was revoked.
        Revoke = 7 "revoke",
        /// A freeze began or ended.
        Freeze = 8 "freeze",
        /// Another policy is in force.
        Policy = 9 "policy",
        /// The tools are others.
        Tools = 10 "tools",
        /// The configuration changed.
        Config = 11 "config",
        /// Reserved: input committed by a user.
        Input = 12 "input",
        /// An agent's state changed.
        State = 13 "state",
        /// Reserved: a label was lowered.
        Declassify = 14 "declassify",
        /// Reserved: a call waits for approval.
        Ask = 15 "ask",
        /// Reserved: an approval.
        Approval = 16 "approval",
        /// The host posted usage after the fact.
        Charge = 17 "charge",
        /// A call is about to run.
        Intent = 18 "intent",
        /// What came of a call.
        Outcome = 19 "outcome",
        /// A call, or a control event, was refused.
        Refusal = 20 "refusal",
        /// A run of refusals begins or ends, in one record each.
        Refusals = 21 "refusals",
        /// A call repeated an idempotency key and got the first outcome.
        Repeat = 22 "repeat",
        /// Reserved: a call was cancelled.
        Cancel = 23 "cancel",
        /// A run that was given up came back.
        Late = 24 "late",
        /// An intent was found open at boot, or an operator says what became of it.
        Recovery = 25 "recovery",
        /// Reserved: a payload was erased.
        Redact = 26 "redact",
        /// Reserved: old records were dropped.
        Prune = 27 "prune",
        /// Reserved: the tree was signed.
        Checkpoint = 28 "checkpoint",
    }
}

/// Declares the bodies that this version writes.
macro_rules! bodies {
    ($($kind:ident => $type:ty,)*) => {
        /// What a record says, by kind.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Body {
            $( #[doc = concat!("Of kind `", stringify!($kind), "`.")] $kind(Box<$type>), )*
        }

        impl Body {
            /// The kind.
            #[must_use]
            pub const fn kind(&self) -> Kind {
                match self { $( Self::$kind(_) => Kind::$kind, )* }
            }

            fn count(&self) -> usize {
                match self { $( Self::$kind(_) => <$type>::COUNT, )* }
            }

            fn put_fields(&self, encoder: &mut Encoder) {
                match self { $( Self::$kind(body) => body.put_fields(encoder), )* }
            }

            fn count_of(kind: Kind) -> Option<usize> {
                match kind { $( Kind::$kind => Some(<$type>::COUNT), )* _ => None }
            }

            fn take_fields(kind: Kind, decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                match kind {
                    $( Kind::$kind =>
                        <$type>::take_fields(decoder).map(|body| Self::$kind(Box::new(body))), )*
                    _ => Err(decoder.fault(Fault::Value)),
                }
            }
        }

        impl Kind {
            /// The keys of the kind's own part, `None` for kinds that this version doesn't
            /// write.
            #[must_use]
            pub fn fields(self) -> Option<Vec<FieldSpec>> {
                match self { $( Self::$kind => Some(<$type>::fields()), )* _ => None }
            }
        }
    };
}

bodies! {
    Genesis => Genesis,
    Key => SignedEvent,
    Boot => Boot,
    Shutdown => Shutdown,
    Issue => Issue,
    Session => SessionChange,
    Revoke => SignedEvent,
    Freeze => SignedEvent,
    Policy => SignedEvent,
    Tools => SignedEvent,
    Config => SignedEvent,
    State => StateChange,
    Charge => Charge,
    Intent => Intent,
    Outcome => Outcome,
    Refusal => Refusal,
    Refusals => Refusals,
    Repeat => Repeat,
    Late => Late,
    Recovery => Recovery,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Position in the log.
    pub seq: Seq,
    /// Leaf of the record before; zeros for genesis.
    pub prev: Leaf,
    /// Kernel time.
    pub time: UnixMillis,
    /// Which boot of the kernel wrote it; 0 for genesis.
    pub boot: u64,
    /// What was odd about the clocks.
    pub clock: ClockFlags,
    /// What it says.
    pub body: Body,
}

/// The keys that all records have.
pub const COMMON_FIELDS: [FieldSpec; 7] = [
    FieldSpec { key: 0, name: "v", shape: "uint" },
    FieldSpec { key: 1, name: "seq", shape: "uint Seq" },
    FieldSpec { key: 2, name: "prev", shape: "bstr of 32" },
    FieldSpec { key: 3, name: "kind", shape: "uint Kind" },
    FieldSpec { key: 4, name: "time", shape: "uint ms since 1970" },
    FieldSpec { key: 5, name: "boot", shape: "uint" },
    FieldSpec { key: 6, name: "clock", shape: "uint bits" },
];

/// Why bytes are no record of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// They are not canonical, or not of the kind's shape.
    #[error(transparent)]
    Damaged(#[from] DecodeError),
    /// The form has another version.
    #[error("record version {0} is not known")]
    UnknownVersion(u64),
    /// The kind is not one that this version reads.
    #[error("record kind {0} is not known")]
    UnknownKind(u64),
}

impl Record {
    /// The canonical bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::with_capacity(768);
        encoder.map(COMMON_FIELDS.len().saturating_add(self.body.count()));
        encoder.uint(0);
        encoder.uint(RECORD_VERSION);
        encoder.uint(1);
        self.seq.put(&mut encoder);
        encoder.uint(2);
        self.prev.put(&mut encoder);
        encoder.uint(3);
        self.body.kind().put(&mut encoder);
        encoder.uint(4);
        self.time.put(&mut encoder);
        encoder.uint(5);
        encoder.uint(self.boot);
        encoder.uint(6);
        self.clock.put(&mut encoder);
        self.body.put_fields(&mut encoder);
        encoder.into_bytes()
    }

    /// Reads the canonical bytes.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut decoder = Decoder::new(bytes, Profile::CONTROL);
        // The count of keys depends on the kind, which comes fourth: it is checked there.
        let count = decoder.map_head()?;
        decoder.key(0)?;
        let version = decoder.uint()?;
        if version != RECORD_VERSION {
            return Err(RecordError::UnknownVersion(version));
        }
        decoder.key(1)?;
        let seq = Seq::take(&mut decoder)?;
        decoder.key(2)?;
        let prev = Leaf::take(&mut decoder)?;
        decoder.key(3)?;
        let code = decoder.uint()?;
        let kind = Kind::from_code(code).ok_or(RecordError::UnknownKind(code))?;
        let own = Body::count_of(kind).ok_or(RecordError::UnknownKind(code))?;
        if count != crate::field::count(COMMON_FIELDS.len().saturating_add(own)) {
            return Err(decoder.fault(Fault::Key).into());
        }
        decoder.key(4)?;
        let time = UnixMillis::take(&mut decoder)?;
        decoder.key(5)?;
        let boot = decoder.uint()?;
        decoder.key(6)?;
        let clock = ClockFlags::take(&mut decoder)?;
        let body = Body::take_fields(kind, &mut decoder)?;
        decoder.finish()?;
        Ok(Self { seq, prev, time, boot, clock, body })
    }

    /// The leaf of the record's bytes.
    #[must_use]
    pub fn leaf(&self) -> Leaf {
        leaf(&self.encode())
    }
}
