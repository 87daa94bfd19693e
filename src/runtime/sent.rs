//! A call on its way to the kernel.

use syscap_format::field::{Field, shape};
use syscap_format::json::Escapes;
use syscap_format::{DecodeError, DecodeFault, Decoder, Encoder, Seq, Source};

/// How an envelope is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Canonical CBOR.
    Cbor,
    /// JSON.
    Json,
    /// Canonical CBOR whose `args` are a byte string: the text of
    /// [`Call::json`](crate::Call::json).
    Arguments(Escapes),
}

impl Written {
    const ALL: [Self; 4] =
        [Self::Cbor, Self::Json, Self::Arguments(Escapes::Data), Self::Arguments(Escapes::Read)];

    const fn code(self) -> u64 {
        match self {
            Self::Cbor => 1,
            Self::Json => 2,
            Self::Arguments(Escapes::Data) => 3,
            Self::Arguments(Escapes::Read) => 4,
        }
    }
}

impl Field for Written {
    const SHAPE: &'static str = "uint Written";

    fn put(&self, encoder: &mut Encoder) {
        encoder.uint(self.code());
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let fault = decoder.fault(DecodeFault::Value);
        let code = decoder.uint()?;
        Self::ALL.into_iter().find(|form| form.code() == code).ok_or(fault)
    }
}

/// Most calls that one can be made on behalf of.
const WITHIN_MAX: usize = 64;

shape! {
    /// The part of a call beside its envelope, for the server. None of it is recorded.
    #[derive(Default)]
    pub struct CallContext {
        /// The caller's own name for the call, which the tool's provider is told; 0 for none.
        1 => pub tag: u64,
        /// The intents of calls that this process made and runs, on whose behalf it asks a person
        /// by this one. While it runs their time stands still, for up to 600 s of each: it is
        /// neither measured nor counted toward their limit. A number that names no such call is
        /// ignored. Not on the agents' lane.
        2 => pub within: Vec<Seq> [..WITHIN_MAX],
    }
}

impl CallContext {
    /// Most intents in [`within`](Self::within).
    pub const WITHIN_MAX: usize = WITHIN_MAX;

    /// A name, and nothing else.
    pub const fn tag(tag: u64) -> Self {
        Self { tag, within: Vec::new() }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.tag == 0 && self.within.is_empty()
    }
}

shape! {
    /// An envelope on its way to the kernel.
    pub(crate) struct Sent {
        1 => pub(crate) envelope: Vec<u8>,
        2 => pub(crate) form: Written,
        /// The origin of the call, as the host states it.
        3 => pub(crate) source: Source,
        4 => pub(crate) context: CallContext,
    }
}
