//! A call on its way to the kernel.

use syscap_format::{json::Escapes, provenance::Source};

use crate::provide::Cancel;

/// How an envelope is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Canonical CBOR.
    Cbor,
    /// JSON.
    Json,
    /// Canonical CBOR whose `args` are a byte string: the text of
    /// [`Session::call_json`](crate::Session::call_json).
    Arguments(Escapes),
}

/// What goes with a call.
#[derive(Clone, Debug, Default)]
pub struct CallWith {
    /// The idempotency key: a repeat with the same arguments gets the first answer. It stands in
    /// the log, and is of the form of [`syscap_format::id::IdempotencyKey`].
    pub key: Option<String>,
    /// The caller's trace id.
    pub trace: Option<String>,
    /// The caller's own name for the call, which the tool's provider is told; 0 for none.
    pub tag: u64,
    /// This call's own. Cancelled from elsewhere it tells the tool that nobody waits for the
    /// result: see [`ToolCall::is_cancelled`](crate::host::ToolCall::is_cancelled). What was begun
    /// is ended, metered and recorded all the same.
    pub cancel: Cancel,
}

impl CallWith {
    /// A key, and nothing else.
    #[must_use]
    pub fn key(key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..Self::default() }
    }
}

/// An envelope on its way to the kernel.
pub(crate) struct Sent {
    pub(crate) envelope: Vec<u8>,
    pub(crate) form: Written,
    /// Who brings it about, by the host's word.
    pub(crate) source: Source,
    pub(crate) tag: u64,
}
