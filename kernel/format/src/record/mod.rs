//! Records: one for every call, answered or refused, and for every change of state.
//!
//! A record is a canonical CBOR map of fixed shape, at most
//! [`RECORD_BYTES_MAX`](crate::limits::RECORD_BYTES_MAX) bytes. Keys 0 to 6 are the same for
//! all, the rest depends on the kind; `docs/spec/log.md` has a table for each.

pub(crate) mod call;
pub(crate) mod head;
pub(crate) mod kind;
pub(crate) mod life;
pub(crate) mod reserved;
mod state;

pub use call::{
    AggregatePhase, ArgumentLabel, ArgumentSource, CallFields, Cancel, CancelBody, Intent, Late,
    LateReport, Outcome, OutcomeFlags, Precondition, PreconditionKind, Recovered, Recovery,
    Refusal, RefusalKind, Refusals, Repeat, RunMode,
};
pub use head::Head;
pub use kind::RecordKind;
pub use life::{
    Boot, Charge, ClockFlags, Durability, Genesis, HomeLimits, Issue, Opened, PreviousRun,
    SessionChange, SessionPhase, Shutdown, SignedEvent,
};

pub use reserved::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, Ask, Checkpoint, Declassify, Prune, PruneBody,
    RedactBody,
};
pub use state::{Input, StateChange};

use alloc::{boxed::Box, vec::Vec};

use crate::cbor::{DecodeError, DecodeFault, Decoder, Encoder, Item, Profile};
use crate::control::{
    Control, ControlBody, FreezeBecause, PolicyBecause, Revocation, RevocationList,
};
use crate::field::{Field, FieldSpec, Shape};
use crate::hash::leaf;
use crate::id::{Leaf, Seq, TextHash};
use crate::time::UnixMillis;

/// Declares the bodies: for each kind the version of its form, and whether it is written. A kind
/// whose form or meaning changes gets a new version here, and the one that it had is listed under
/// `besides`, where its decoder stays. So is a later version that is written only where more is said
/// than the first one has room for: a log without such a record is read by software of before.
macro_rules! bodies {
    (
        $($use:ident $kind:ident $version:literal $type:ty,)*
        ; besides $($old:ident $of:ident $before:literal $was:ty,)*
    ) => {
        /// The body of a record, by kind and version.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Body {
            $( #[doc = concat!("Of kind `", stringify!($kind), "`.")] $kind(Box<$type>), )*
            $( #[doc = concat!("Of kind `", stringify!($of), "`, version ", $before, ".")]
               $old(Box<$was>), )*
        }

        impl Body {
            /// The kind.
            #[must_use]
            pub const fn kind(&self) -> RecordKind {
                match self {
                    $( Self::$kind(_) => RecordKind::$kind, )*
                    $( Self::$old(_) => RecordKind::$of, )*
                }
            }

            /// A view of it.
            #[must_use]
            pub fn view(&self) -> BodyView<'_> {
                match self {
                    $( Self::$kind(body) => BodyView::$kind(body), )*
                    $( Self::$old(body) => BodyView::$old(body), )*
                }
            }

            /// The count of the own keys of a form; `None` where its version is not known.
            fn count_of(kind: RecordKind, version: u64) -> Option<usize> {
                const { assert!(true $(&& <$type>::WHOLE)* $(&& <$was>::WHOLE)*) };
                match (kind, version) {
                    $( (RecordKind::$kind, $version) => Some(<$type>::COUNT), )*
                    $( (RecordKind::$of, $before) => Some(<$was>::COUNT), )*
                    _ => None,
                }
            }

            fn take_fields(
                kind: RecordKind,
                version: u64,
                decoder: &mut Decoder<'_>,
            ) -> Result<Self, DecodeError> {
                match (kind, version) {
                    $( (RecordKind::$of, $before) =>
                        <$was>::take_fields(decoder).map(|body| Self::$old(Box::new(body))), )*
                    $( (RecordKind::$kind, _) =>
                        <$type>::take_fields(decoder).map(|body| Self::$kind(Box::new(body))), )*
                }
            }
        }

        /// A borrowed body of a record: it need not be boxed to be written.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum BodyView<'a> {
            $( #[doc = concat!("Of kind `", stringify!($kind), "`.")] $kind(&'a $type), )*
            $( #[doc = concat!("Of kind `", stringify!($of), "`, version ", $before, ".")]
               $old(&'a $was), )*
        }

        impl BodyView<'_> {
            /// The kind.
            #[must_use]
            pub const fn kind(self) -> RecordKind {
                match self {
                    $( Self::$kind(_) => RecordKind::$kind, )*
                    $( Self::$old(_) => RecordKind::$of, )*
                }
            }

            const fn version(self) -> u64 {
                match self { $( Self::$kind(_) => $version, )* $( Self::$old(_) => $before, )* }
            }

            const fn count(self) -> usize {
                match self {
                    $( Self::$kind(_) => <$type>::COUNT, )*
                    $( Self::$old(_) => <$was>::COUNT, )*
                }
            }

            fn put_fields(self, encoder: &mut Encoder) {
                match self {
                    $( Self::$kind(body) => body.put_fields(encoder), )*
                    $( Self::$old(body) => body.put_fields(encoder), )*
                }
            }
        }

        impl RecordKind {
            /// The keys of the kind's own part.
            #[must_use]
            pub fn fields(self) -> Vec<FieldSpec> {
                match self { $( Self::$kind => <$type>::fields(), )* }
            }

            /// The version of the kind's form that is written.
            #[must_use]
            pub const fn version(self) -> u64 {
                match self { $( Self::$kind => $version, )* }
            }

            /// True if the kind's form is settled and nothing writes it yet.
            #[must_use]
            pub const fn is_reserved(self) -> bool {
                match self { $( Self::$kind => bodies!(@$use), )* }
            }
        }
    };
    (@written) => { false };
    (@reserved) => { true };
}

bodies! {
    written Genesis 2 Genesis,
    written Key 2 SignedEvent,
    written Boot 2 Boot,
    written Shutdown 2 Shutdown,
    written Issue 2 Issue,
    written Session 3 SessionChange,
    written Revoke 2 SignedEvent,
    written Freeze 2 SignedEvent,
    written Policy 2 SignedEvent,
    written Tools 2 SignedEvent,
    written Config 2 SignedEvent,
    written Input 2 Input,
    written State 2 StateChange,
    reserved Declassify 2 Declassify,
    written Ask 2 Ask,
    written Approval 2 SignedEvent,
    written Charge 2 Charge,
    written Intent 2 Intent,
    written Outcome 2 Outcome,
    written Refusal 2 Refusal,
    written Refusals 2 Refusals,
    written Repeat 2 Repeat,
    written Cancel 2 Cancel,
    written Late 2 Late,
    written Recovery 2 Recovery,
    written Redact 2 SignedEvent,
    reserved Prune 2 Prune,
    reserved Checkpoint 2 Checkpoint,
    written Credit 2 SignedEvent,
    ; besides
    SessionAlone Session 2 SessionChange,
    FreezeBecause Freeze 3 SignedEvent,
    PolicyBecause Policy 3 SignedEvent,
    LateReport Late 3 LateReport,
}

/// The first version of any kind's form that homes keep; those before were never released.
const FIRST_VERSION: u64 = 2;

impl Body {
    /// True if a record with this body may have a row in the vault.
    #[must_use]
    pub const fn may_have_row(&self) -> bool {
        matches!(self, Self::FreezeBecause(_) | Self::PolicyBecause(_))
            || self.kind().may_have_row()
    }

    /// The signed event, where it is one's.
    #[must_use]
    pub const fn control(&self) -> Option<&Control> {
        match self {
            Self::Key(event)
            | Self::Revoke(event)
            | Self::Freeze(event)
            | Self::FreezeBecause(event)
            | Self::Policy(event)
            | Self::PolicyBecause(event)
            | Self::Tools(event)
            | Self::Config(event)
            | Self::Approval(event)
            | Self::Redact(event)
            | Self::Credit(event) => Some(&event.control),
            Self::Cancel(cancel) => cancel.control.as_ref(),
            Self::Recovery(recovery) => recovery.control.as_ref(),
            _ => None,
        }
    }

    /// The commitment to the reason of a signed event, where it has one. An event that can't be read
    /// has none here: it is a fault of its own to a verifier.
    #[must_use]
    pub fn cause(&self) -> Option<TextHash> {
        fn of<B: ControlBody>(bytes: &[u8]) -> Option<TextHash> {
            B::from_bytes(bytes).ok()?.cause()
        }
        let bytes = &self.control()?.body;
        match self {
            Self::Approval(_) => of::<ApprovalBody>(bytes),
            Self::Revoke(_) => of::<Revocation>(bytes).or_else(|| of::<RevocationList>(bytes)),
            Self::FreezeBecause(_) => of::<FreezeBecause>(bytes),
            Self::PolicyBecause(_) => of::<PolicyBecause>(bytes),
            Self::Cancel(_) => of::<CancelBody>(bytes),
            Self::Redact(_) => of::<RedactBody>(bytes),
            _ => None,
        }
    }

    /// A field that is settled and that nothing writes yet, where it is used.
    fn reserved(&self) -> Option<&'static str> {
        match self {
            Self::Session(change) | Self::SessionAlone(change) if change.principal.is_some() => {
                Some("principal")
            }
            Self::Intent(intent) if !intent.arguments.is_empty() => Some("arguments"),
            Self::Ask(ask) if !ask.arguments.is_empty() => Some("arguments"),
            _ => None,
        }
    }
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
    /// The oddities of the clocks.
    pub clock: ClockFlags,
    /// The body.
    pub body: Body,
}

/// A record whose body is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// Position in the log.
    pub seq: Seq,
    /// Leaf of the record before; zeros for genesis.
    pub prev: Leaf,
    /// Kernel time.
    pub time: UnixMillis,
    /// Which boot of the kernel wrote it; 0 for genesis.
    pub boot: u64,
    /// The oddities of the clocks.
    pub clock: ClockFlags,
    /// The body.
    pub body: BodyView<'a>,
}

impl RecordView<'_> {
    /// The canonical bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::with_capacity(768);
        encoder.map(COMMON_FIELDS.len().saturating_add(self.body.count()));
        encoder.uint(0);
        encoder.uint(self.body.version());
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
}

/// The keys that all records have.
pub const COMMON_FIELDS: [FieldSpec; 7] = [
    FieldSpec { key: 0, name: "v", shape: "uint", maybe: false },
    FieldSpec { key: 1, name: "seq", shape: "uint Seq", maybe: false },
    FieldSpec { key: 2, name: "prev", shape: "bstr of 32", maybe: false },
    FieldSpec { key: 3, name: "kind", shape: "uint RecordKind", maybe: false },
    FieldSpec { key: 4, name: "time", shape: "uint ms since 1970", maybe: false },
    FieldSpec { key: 5, name: "boot", shape: "uint", maybe: false },
    FieldSpec { key: 6, name: "clock", shape: "uint bits", maybe: false },
];

/// Why bytes are no record of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// They are not canonical, or not of the kind's shape.
    #[error(transparent)]
    Damaged(#[from] DecodeError),
    /// The form is older than any that homes keep.
    #[error("records of form {0} were written before the formats were settled")]
    TooOld(u64),
    /// The kind's form has a version that is not known: newer software wrote it.
    #[error("version {version} of record kind {kind} is not known")]
    UnknownVersion {
        /// The kind.
        kind: RecordKind,
        /// The version.
        version: u64,
    },
    /// The kind is not one that this version reads: newer software wrote it.
    #[error("record kind {0} is not known")]
    UnknownKind(u64),
    /// The kind is reserved: its form is settled, and newer software writes it.
    #[error("record kind {0} is reserved")]
    ReservedKind(RecordKind),
    /// A field is reserved: its form is settled, and newer software uses it.
    #[error("record field {0} is reserved")]
    ReservedField(&'static str),
}

impl Record {
    /// The canonical bytes.
    pub fn encode(&self) -> Vec<u8> {
        self.view().encode()
    }

    /// A view of it.
    pub fn view(&self) -> RecordView<'_> {
        let Self { seq, prev, time, boot, clock, body } = self;
        let (seq, prev, time, boot, clock) = (*seq, *prev, *time, *boot, *clock);
        RecordView { seq, prev, time, boot, clock, body: body.view() }
    }

    /// Reads the canonical bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut decoder = Decoder::new(bytes, Profile::CONTROL);
        // The count of keys depends on the kind, which comes fourth: it is checked there.
        let count = decoder.map_head()?;
        decoder.key(0)?;
        let version = decoder.uint()?;
        if version < FIRST_VERSION {
            return Err(RecordError::TooOld(version));
        }
        decoder.key(1)?;
        let seq = Seq::take(&mut decoder)?;
        decoder.key(2)?;
        let prev = Leaf::take(&mut decoder)?;
        decoder.key(3)?;
        let code = decoder.uint()?;
        let kind = RecordKind::from_code(code).ok_or(RecordError::UnknownKind(code))?;
        let own = Body::count_of(kind, version);
        let own = own.ok_or(RecordError::UnknownVersion { kind, version })?;
        if kind.is_reserved() {
            return Err(RecordError::ReservedKind(kind));
        }
        if count != crate::field::count(COMMON_FIELDS.len().saturating_add(own)) {
            return Err(decoder.fault(DecodeFault::Key).into());
        }
        decoder.key(4)?;
        let time = UnixMillis::take(&mut decoder)?;
        decoder.key(5)?;
        let boot = decoder.uint()?;
        decoder.key(6)?;
        let clock = ClockFlags::take(&mut decoder)?;
        let body = Body::take_fields(kind, version, &mut decoder)?;
        decoder.finish()?;
        match body.reserved() {
            Some(field) => Err(RecordError::ReservedField(field)),
            None => Ok(Self { seq, prev, time, boot, clock, body }),
        }
    }

    /// Reads where a record of any kind and version stands: its position, and the leaf before. They
    /// stand alike in all.
    ///
    /// # Errors
    /// [`DecodeError`] where the bytes are not canonical as a whole, or have no such keys.
    pub fn link(bytes: &[u8]) -> Result<(Seq, Leaf), DecodeError> {
        Item::check(bytes, Profile::CONTROL)?;
        let mut decoder = Decoder::new(bytes, Profile::CONTROL);
        decoder.map_head()?;
        decoder.key(0)?;
        decoder.uint()?;
        decoder.key(1)?;
        let seq = Seq::take(&mut decoder)?;
        decoder.key(2)?;
        Ok((seq, Leaf::take(&mut decoder)?))
    }

    /// The leaf of the record's bytes.
    pub fn leaf(&self) -> Leaf {
        leaf(&self.encode())
    }
}
