//! The call's envelope: decoded once, completed, kept as bytes.

use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::ops::Range;

use crate::{
    args::{kind_name, levels},
    cbor::{Canonical, DecodeError, Decoder, Encoder, Fault, Item, Kind, Profile},
    field::Field,
    id::{AgentId, IdempotencyKey, PolicyHash, SnapshotId, TokenId, ToolId},
    json::{self, JsonFault},
    limits::ENVELOPE_BYTES_MAX,
    provenance::{Provenance, Source},
    reason::{Reason, Refused},
};

/// How a call's bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Canonical CBOR.
    Cbor,
    /// JSON, converted once by [`json::to_cbor`].
    Json,
    /// JSON that the host has tried to convert, outside the kernel, and could not: it is refused
    /// for that reason.
    NotJson(json::JsonError),
}

/// Which fields the kernel filled in because the caller left them out: a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filled(u64);

impl Filled {
    /// `v`.
    pub const VERSION: Self = Self(1);
    /// `agent_id`.
    pub const AGENT: Self = Self(2);
    /// `capability_token_id`.
    pub const TOKEN: Self = Self(4);
    /// `state_snapshot_id`.
    pub const SNAPSHOT: Self = Self(8);
    /// `policy_hash`.
    pub const POLICY: Self = Self(16);
    /// `provenance`.
    pub const PROVENANCE: Self = Self(32);

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl Field for Filled {
    const SHAPE: &'static str = "uint bits";

    fn put(&self, encoder: &mut Encoder) {
        encoder.uint(self.0);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let fault = decoder.fault(Fault::Value);
        let bits = decoder.uint()?;
        if bits < 64 { Ok(Self(bits)) } else { Err(fault) }
    }
}

/// What the kernel fills in where the caller named nothing.
pub(crate) struct Defaults<'a> {
    pub(crate) agent: &'a AgentId,
    pub(crate) token: TokenId,
    pub(crate) snapshot: SnapshotId,
    pub(crate) policy: PolicyHash,
    pub(crate) provenance: Provenance,
}

/// A decoded call. Its canonical bytes, completed, are the truth; the fields are views.
#[derive(Clone, Debug)]
pub struct ToolCall {
    bytes: Vec<u8>,
    args: Range<usize>,
    pub(crate) tool: ToolId,
    pub(crate) agent: AgentId,
    pub(crate) token: TokenId,
    pub(crate) snapshot: SnapshotId,
    pub(crate) policy: PolicyHash,
    pub(crate) provenance: Provenance,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) filled: Filled,
}

impl ToolCall {
    /// The canonical envelope, with what was filled in.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The arguments as sent.
    #[must_use]
    pub fn args(&self) -> Item<'_> {
        Item::trusted(self.bytes.get(self.args.clone()).unwrap_or_default())
    }

    /// Decodes an envelope and fills in what it leaves out.
    pub(crate) fn decode(
        received: &[u8],
        form: Form,
        defaults: Defaults<'_>,
    ) -> Result<Self, Refused> {
        if received.len() > ENVELOPE_BYTES_MAX {
            return Err(Refused::new(Reason::TooLarge)
                .field("envelope")
                .got(&format!("{} bytes", received.len()))
                .allowed(&format!("at most {ENVELOPE_BYTES_MAX} bytes")));
        }
        let converted: Canonical;
        let bytes = match form {
            Form::NotJson(error) => return Err(from_json(error, received)),
            Form::Cbor => received,
            Form::Json => {
                converted = json::to_cbor(received).map_err(|error| from_json(error, received))?;
                converted.as_bytes()
            }
        };
        let seen = Seen::read(bytes, defaults.provenance.source)?;
        seen.complete(bytes, defaults)
    }
}

/// The fields of an envelope as far as they are present.
#[derive(Default)]
struct Seen {
    version: Option<u64>,
    tool: Option<ToolId>,
    args: Option<Range<usize>>,
    agent: Option<AgentId>,
    token: Option<TokenId>,
    snapshot: Option<SnapshotId>,
    policy: Option<PolicyHash>,
    provenance: Option<Provenance>,
    key: Option<IdempotencyKey>,
}

impl Seen {
    fn read(bytes: &[u8], source: Source) -> Result<Self, Refused> {
        let mut seen = Self::default();
        // Which field a schema fault belongs to: the last key that was read.
        let mut field: Option<Box<str>> = None;
        let mut decoder = Decoder::new(bytes, Profile::DATA);
        let walked = decoder.text_map(|key, decoder| {
            field = Some(Box::from(key));
            seen.take(key, decoder, source)
        });
        let walked = walked.and_then(|()| {
            field = None;
            decoder.finish()
        });
        walked.map_err(|error| from_decode(error, field.as_deref(), bytes))?;
        Ok(seen)
    }

    fn take<'a>(
        &mut self,
        key: &str,
        decoder: &mut Decoder<'a>,
        source: Source,
    ) -> Result<(), DecodeError> {
        let fault = decoder.fault(Fault::Value);
        match key {
            "v" => self.version = Some(decoder.uint()?),
            "tool_id" => self.tool = Some(ToolId::new(decoder.text()?).ok_or(fault)?),
            "args" => {
                let start = decoder.position();
                if decoder.item()?.kind() != Kind::Map {
                    return Err(fault);
                }
                self.args = Some(start..decoder.position());
            }
            "agent_id" => self.agent = Some(AgentId::new(decoder.text()?).ok_or(fault)?),
            "capability_token_id" => {
                self.token = Some(id(decoder, TokenId::from_bytes, TokenId::from_hex)?);
            }
            "state_snapshot_id" => {
                self.snapshot = Some(id(decoder, SnapshotId::from_bytes, SnapshotId::from_hex)?);
            }
            "policy_hash" => {
                self.policy = Some(id(decoder, PolicyHash::from_bytes, PolicyHash::from_hex)?);
            }
            "provenance" => {
                self.provenance = Some(Provenance::from_envelope(decoder.item()?, source)?);
            }
            "idempotency_key" => {
                self.key = Some(IdempotencyKey::new(decoder.text()?).ok_or(fault)?);
            }
            // A proof stands for a remote holder; there is none in process. It is refused
            // rather than ignored, so that nobody takes it for checked.
            "proof" => return Err(DecodeError { fault: Fault::Key, at: decoder.position() }),
            _ => drop(decoder.item()?),
        }
        Ok(())
    }

    fn complete(self, bytes: &[u8], defaults: Defaults<'_>) -> Result<ToolCall, Refused> {
        let missing =
            |field| Refused::new(Reason::MissingField).field(field).allowed(form_of(field));
        if self.version.is_some_and(|version| version != 1) {
            let got = self.version.unwrap_or_default();
            let refused = Refused::new(Reason::UnknownVersion).field("v");
            return Err(refused.got(&format!("{got}")).allowed("1"));
        }
        let tool = self.tool.clone().ok_or_else(|| missing("tool_id"))?;
        let args = self.args.clone().ok_or_else(|| missing("args"))?;
        let filled = self.absent();
        let mut call = ToolCall {
            bytes: Vec::new(),
            args,
            tool,
            agent: self.agent.unwrap_or_else(|| defaults.agent.clone()),
            token: self.token.unwrap_or(defaults.token),
            snapshot: self.snapshot.unwrap_or(defaults.snapshot),
            policy: self.policy.unwrap_or(defaults.policy),
            provenance: self.provenance.unwrap_or(defaults.provenance),
            key: self.key,
            filled,
        };
        if filled == Filled::default() {
            call.bytes = bytes.to_vec();
        } else {
            fill(&mut call, bytes);
        }
        Ok(call)
    }

    fn absent(&self) -> Filled {
        let mut filled = Filled::default();
        for (absent, bit) in [
            (self.version.is_none(), Filled::VERSION),
            (self.agent.is_none(), Filled::AGENT),
            (self.token.is_none(), Filled::TOKEN),
            (self.snapshot.is_none(), Filled::SNAPSHOT),
            (self.policy.is_none(), Filled::POLICY),
            (self.provenance.is_none(), Filled::PROVENANCE),
        ] {
            if absent {
                filled.add(bit);
            }
        }
        filled
    }
}

/// Writes the envelope anew with the absent fields in their places: nothing that was present
/// is encoded again, its bytes are copied.
fn fill(call: &mut ToolCall, bytes: &[u8]) {
    let encoded = |write: &dyn Fn(&mut Encoder)| {
        let mut encoder = Encoder::new();
        write(&mut encoder);
        encoder.into_bytes()
    };
    let provenance = call.provenance.to_envelope();
    let added: [(Filled, &str, Vec<u8>); 6] = [
        (Filled::VERSION, "v", encoded(&|e| e.uint(1))),
        (Filled::AGENT, "agent_id", encoded(&|e| e.text(call.agent.as_str()))),
        (Filled::PROVENANCE, "provenance", provenance.into_bytes()),
        (Filled::POLICY, "policy_hash", encoded(&|e| e.bytes(call.policy.as_bytes()))),
        (Filled::SNAPSHOT, "state_snapshot_id", encoded(&|e| e.bytes(call.snapshot.as_bytes()))),
        (Filled::TOKEN, "capability_token_id", encoded(&|e| e.bytes(call.token.as_bytes()))),
    ];
    let present = Item::trusted(bytes);
    let mut entries: Vec<(&str, &[u8])> =
        present.entries().map(|(key, value)| (key, value.as_bytes())).collect();
    for (bit, key, value) in &added {
        if call.filled.bits() & bit.bits() != 0 {
            entries.push((key, value));
        }
    }
    entries.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    let mut encoder = Encoder::with_capacity(bytes.len().saturating_add(320));
    encoder.map(entries.len());
    for (key, value) in entries {
        encoder.text(key);
        let start = encoder.len();
        encoder.raw(value);
        if key == "args" {
            call.args = start..encoder.len();
        }
    }
    call.bytes = encoder.into_bytes();
}

/// An id: 32 bytes, or 64 lower-case hexadecimal digits for those who write JSON.
fn id<T>(
    decoder: &mut Decoder<'_>,
    from_bytes: impl FnOnce([u8; 32]) -> T,
    from_hex: impl FnOnce(&str) -> Option<T>,
) -> Result<T, DecodeError> {
    let fault = decoder.fault(Fault::Value);
    match decoder.peek()? {
        Kind::Text => from_hex(decoder.text()?).ok_or(fault),
        _ => decoder.array_of().map(from_bytes),
    }
}

/// What a field of the envelope may be.
fn form_of(field: &str) -> &'static str {
    match field {
        "v" => "1, or left out",
        "tool_id" => "a tool's id: a-z, 0-9, _ and dots",
        "args" => "map",
        "agent_id" => "the session's agent, or left out",
        "capability_token_id" | "state_snapshot_id" | "policy_hash" => {
            "64 lower-case hexadecimal digits, or left out"
        }
        "provenance" => {
            "map of source (user, agent, tool, encoder, observer), time, inputs, trace, or left out"
        }
        "idempotency_key" => "text of 1 to 64 of A-Z, a-z, 0-9, '.', '_', ':', '-', or left out",
        "proof" => "left out",
        "envelope" => "map",
        _ => "one value that can be read",
    }
}

const NUMBERS: &str =
    "integers from -9223372036854775808 to 18446744073709551615 but -0, and finite floats";

/// What is said of a fault of bytes, by the field in which it lies.
fn from_decode(error: DecodeError, field: Option<&str>, bytes: &[u8]) -> Refused {
    let field = field.unwrap_or("envelope");
    let reason = match error.fault {
        Fault::Depth => Reason::TooDeep,
        Fault::DuplicateKey => Reason::DuplicateKey,
        Fault::IntRange | Fault::NotFinite => Reason::NumberRange,
        Fault::Type | Fault::Value => Reason::BadField,
        Fault::Key => Reason::BadProof,
        _ => Reason::Malformed,
    };
    let refused = Refused::new(reason).field(field);
    match reason {
        Reason::TooDeep => refused.allowed(&levels()),
        Reason::DuplicateKey => refused.got(&format!("{error}")).allowed("each key once"),
        Reason::NumberRange => refused.got(&format!("{error}")).allowed(NUMBERS),
        Reason::BadField | Reason::BadProof => {
            let refused = refused.allowed(form_of(field));
            match stood(bytes, field) {
                Some(got) => refused.got(&got),
                None => refused,
            }
        }
        _ => refused.got(&format!("{error}")).allowed("canonical CBOR"),
    }
}

/// What stands in a field: its text, or what it is. Everything before it was read without fault.
fn stood(bytes: &[u8], field: &str) -> Option<String> {
    let mut decoder = Decoder::new(bytes, Profile::DATA);
    if field == "envelope" {
        return decoder.peek().ok().map(|kind| String::from(kind_name(kind)));
    }
    let count = decoder.map_head().ok()?;
    for _ in 0..count {
        if decoder.text().ok()? == field {
            let item = decoder.item().ok()?;
            let named = || String::from(kind_name(item.kind()));
            return Some(item.as_text().map_or_else(named, String::from));
        }
        decoder.item().ok()?;
    }
    None
}

/// Most of a text that is shown from the place of a fault on, in bytes.
const EXCERPT_BYTES: usize = 40;

/// What is said of a fault of JSON: where it lies and what stands there. All of it is the
/// caller's own text.
fn from_json(error: json::JsonError, text: &[u8]) -> Refused {
    let (reason, allowed) = match error.fault {
        JsonFault::Depth => (Reason::TooDeep, levels()),
        JsonFault::DuplicateKey => (Reason::DuplicateKey, String::from("each key once")),
        JsonFault::IntRange | JsonFault::FloatRange | JsonFault::NegativeZero => {
            (Reason::NumberRange, String::from(NUMBERS))
        }
        _ => (Reason::Malformed, String::from("one JSON object")),
    };
    let behind = text.get(error.at..).unwrap_or_default();
    let behind = behind.get(..EXCERPT_BYTES).unwrap_or(behind);
    let excerpt = String::from_utf8_lossy(behind);
    let got = if behind.is_empty() { format!("{error}") } else { format!("{error}: {excerpt}") };
    Refused::new(reason).field("envelope").got(&got).allowed(&allowed)
}
