//! The call's envelope: decoded once, completed, kept as bytes.

use alloc::{borrow::Cow, boxed::Box, format, string::String};
use core::ops::Range;

use crate::cbor::{DecodeError, DecodeFault, Decoder, Encoder, Item, ItemKind, Profile};
use crate::field::flags;
use crate::id::{AgentId, IdempotencyKey, PolicyHash, SnapshotId, TokenId, ToolId};
use crate::json::{self, JsonFault};
use crate::limits::ENVELOPE_BYTES_MAX;
use crate::provenance::Provenance;
use crate::reason::{Reason, Refused};

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
    /// Canonical CBOR whose `args` are a text that the host has tried to read as a caller's
    /// arguments ([`json::arguments`]), outside the kernel, and could not: it is refused for that
    /// reason.
    NotArguments(json::JsonError),
}

flags! {
    /// Which fields the kernel filled in because the caller left them out: a set of bits.
    pub struct Filled {
        /// `v`.
        VERSION = 1,
        /// `agent_id`.
        AGENT = 2,
        /// `capability_token_id`.
        TOKEN = 4,
        /// `state_snapshot_id`.
        SNAPSHOT = 8,
        /// `policy_hash`.
        POLICY = 16,
        /// `provenance`.
        PROVENANCE = 32,
    }
}

/// The defaults for fields that the caller left out.
#[derive(Clone, Debug)]
pub struct Defaults<'a> {
    /// The session's agent.
    pub agent: &'a AgentId,
    /// The session's token.
    pub token: TokenId,
    /// The agent's head snapshot.
    pub snapshot: SnapshotId,
    /// The policy in force.
    pub policy: PolicyHash,
    /// The call's origin, as the host states it; the caller's claim is kept beside it.
    pub provenance: Provenance,
}

/// A decoded call. Its canonical bytes, completed, are the truth; the fields are views.
#[derive(Clone, Debug)]
pub struct ToolCall<'a> {
    bytes: Cow<'a, [u8]>,
    args: Range<usize>,
    tool: Range<usize>,
    agent: AgentId,
    token: TokenId,
    snapshot: SnapshotId,
    policy: PolicyHash,
    provenance: Provenance,
    key: Option<IdempotencyKey>,
    filled: Filled,
}

impl<'a> ToolCall<'a> {
    /// The canonical envelope, with what was filled in.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The arguments as sent.
    pub fn args(&self) -> Item<'_> {
        Item::trusted(self.bytes.get(self.args.clone()).unwrap_or_default())
    }

    /// The tool, by its id or an alias.
    pub fn tool(&self) -> &str {
        text_at(&self.bytes, &self.tool)
    }

    /// The agent.
    pub const fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// The token.
    pub const fn token(&self) -> TokenId {
        self.token
    }

    /// The snapshot that it was made on.
    pub const fn snapshot(&self) -> SnapshotId {
        self.snapshot
    }

    /// The policy that it counts on.
    pub const fn policy(&self) -> PolicyHash {
        self.policy
    }

    /// The call's origin.
    pub const fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// Its idempotency key.
    pub const fn key(&self) -> Option<&IdempotencyKey> {
        self.key.as_ref()
    }

    /// The defaults that were filled in.
    pub const fn filled(&self) -> Filled {
        self.filled
    }

    /// The names in the envelope.
    pub fn named(&self) -> Named<'_> {
        Named {
            tool: Some(self.tool()),
            token: Some(self.token),
            snapshot: Some(self.snapshot),
            provenance: Some(&self.provenance),
        }
    }

    /// Decodes an envelope and fills in what it leaves out.
    ///
    /// # Errors
    /// [`Faulty`]: what is wrong with it, and what can be read all the same.
    pub fn decode(
        received: &'a [u8],
        form: Form,
        defaults: Defaults<'_>,
    ) -> Result<Self, Box<Faulty>> {
        if received.len() > ENVELOPE_BYTES_MAX {
            return Err(Faulty::unread(
                Refused::new(Reason::TooLarge)
                    .field("envelope")
                    .got(&format!("{} bytes", received.len()))
                    .allowed(&format!("at most {ENVELOPE_BYTES_MAX} bytes")),
            ));
        }
        let bytes = match form {
            Form::NotJson(error) => {
                return Err(Faulty::unread(from_json("envelope", error, received)));
            }
            Form::Cbor | Form::NotArguments(_) => Cow::Borrowed(received),
            Form::Json => {
                let converted = json::to_cbor(received)
                    .map_err(|error| Faulty::unread(from_json("envelope", error, received)))?;
                Cow::Owned(converted.into_bytes())
            }
        };
        let mut seen = Seen::read(&bytes, &defaults).map_err(Faulty::unread)?;
        if let Form::NotArguments(error) = form {
            let text = Item::trusted(&bytes).get("args").and_then(Item::as_byte_string);
            seen.fault = Some(from_json("args", error, text.unwrap_or_default()));
        }
        seen.complete(bytes, defaults)
    }
}

/// The names in an envelope, as far as its fields could be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Named<'a> {
    /// The tool, by its id or an alias.
    pub tool: Option<&'a str>,
    /// The token.
    pub token: Option<TokenId>,
    /// The snapshot.
    pub snapshot: Option<SnapshotId>,
    /// The call's origin.
    pub provenance: Option<&'a Provenance>,
}

/// An envelope that is no call: why, and what could be read of it. A fault in one field takes no
/// other that is well-formed out of answer and record.
#[derive(Clone, Debug)]
pub struct Faulty {
    refused: Refused,
    tool: Option<Box<str>>,
    token: Option<TokenId>,
    snapshot: Option<SnapshotId>,
    provenance: Option<Provenance>,
}

impl Faulty {
    /// Bytes of which nothing could be read.
    fn unread(refused: Refused) -> Box<Self> {
        let (tool, token, snapshot, provenance) = (None, None, None, None);
        Box::new(Self { refused, tool, token, snapshot, provenance })
    }

    /// The fault of the envelope.
    pub const fn refused(&self) -> &Refused {
        &self.refused
    }

    /// The names in the envelope.
    pub fn named(&self) -> Named<'_> {
        Named {
            tool: self.tool.as_deref(),
            token: self.token,
            snapshot: self.snapshot,
            provenance: self.provenance.as_ref(),
        }
    }
}

/// The fields of an envelope as far as they are present and well-formed.
#[derive(Default)]
struct Seen {
    version: Option<u64>,
    tool: Option<Range<usize>>,
    args: Option<Range<usize>>,
    agent: Option<AgentId>,
    token: Option<TokenId>,
    snapshot: Option<SnapshotId>,
    policy: Option<PolicyHash>,
    provenance: Option<Provenance>,
    key: Option<IdempotencyKey>,
    /// The missing fields.
    absent: Filled,
    /// The first field that is not well-formed.
    fault: Option<Refused>,
}

impl Seen {
    /// Reads all fields. Bytes that are no canonical map have none.
    fn read(bytes: &[u8], defaults: &Defaults<'_>) -> Result<Self, Refused> {
        let mut seen = Self { absent: Filled::KNOWN, ..Self::default() };
        // Which field a fault of the bytes lies in: the last key that was read.
        let mut field: Option<&str> = None;
        let mut decoder = Decoder::new(bytes, Profile::DATA);
        let walked = decoder.text_map(|key, decoder| {
            field = Some(key);
            let start = decoder.position();
            let item = decoder.item()?;
            if !seen.take(key, item, start..decoder.position(), defaults) {
                seen.fault.get_or_insert_with(|| bad_field(key, item));
            }
            Ok(())
        });
        let walked = walked.and_then(|()| {
            field = None;
            decoder.finish()
        });
        walked.map_err(|error| from_decode(error, field, bytes))?;
        Ok(seen)
    }

    /// Takes one field; says whether it is well-formed.
    fn take(
        &mut self,
        key: &str,
        item: Item<'_>,
        at: Range<usize>,
        defaults: &Defaults<'_>,
    ) -> bool {
        fn set<T>(place: &mut Option<T>, value: Option<T>) -> bool {
            *place = value;
            place.is_some()
        }
        let (fine, given) = match key {
            "v" => (set(&mut self.version, item.as_uint()), Filled::VERSION),
            "agent_id" => {
                // The session's own is shared, not copied.
                let agent = item.as_text().and_then(|text| match defaults.agent {
                    own if own.as_str() == text => Some(own.clone()),
                    _ => AgentId::new(text),
                });
                (set(&mut self.agent, agent), Filled::AGENT)
            }
            "capability_token_id" => {
                let token = id(item, TokenId::from_bytes, TokenId::from_hex);
                (set(&mut self.token, token), Filled::TOKEN)
            }
            "state_snapshot_id" => {
                let snapshot = id(item, SnapshotId::from_bytes, SnapshotId::from_hex);
                (set(&mut self.snapshot, snapshot), Filled::SNAPSHOT)
            }
            "policy_hash" => {
                let policy = id(item, PolicyHash::from_bytes, PolicyHash::from_hex);
                (set(&mut self.policy, policy), Filled::POLICY)
            }
            "provenance" => {
                let source = defaults.provenance.source;
                let provenance = Provenance::from_envelope(item, source).ok();
                (set(&mut self.provenance, provenance), Filled::PROVENANCE)
            }
            "tool_id" => {
                let fine = item.as_text().is_some_and(ToolId::is_valid);
                return set(&mut self.tool, fine.then_some(at));
            }
            "args" => return set(&mut self.args, (item.kind() == ItemKind::Map).then_some(at)),
            "idempotency_key" => {
                return set(&mut self.key, item.as_text().and_then(IdempotencyKey::new));
            }
            // A proof stands for a remote holder; there is none in process. It is refused
            // rather than ignored, so that nobody takes it for checked.
            "proof" => return false,
            _ => return true,
        };
        self.absent = self.absent.without(given);
        fine
    }

    /// The call, with what was left out; or what there is, where a field is not well-formed or
    /// lacks.
    fn complete<'a>(
        self,
        bytes: Cow<'a, [u8]>,
        defaults: Defaults<'_>,
    ) -> Result<ToolCall<'a>, Box<Faulty>> {
        let Self { version, agent, token, snapshot, policy, provenance, key, absent, .. } = self;
        let missing =
            |field| Refused::new(Reason::MissingField).field(field).allowed(form_of(field));
        let (refused, tool) = match (self.fault, version, self.tool, self.args) {
            (None, None | Some(1), Some(tool), Some(args)) => {
                let call = ToolCall {
                    bytes,
                    args,
                    tool,
                    agent: agent.unwrap_or_else(|| defaults.agent.clone()),
                    token: token.unwrap_or(defaults.token),
                    snapshot: snapshot.unwrap_or(defaults.snapshot),
                    policy: policy.unwrap_or(defaults.policy),
                    provenance: provenance.unwrap_or(defaults.provenance),
                    key,
                    filled: absent,
                };
                return Ok(if absent == Filled::default() { call } else { fill(call) });
            }
            (Some(fault), _, tool, _) => (fault, tool),
            (None, Some(version), tool, _) if version != 1 => {
                let refused = Refused::new(Reason::UnknownVersion).field("v");
                (refused.got(&format!("{version}")).allowed("1"), tool)
            }
            (None, _, None, _) => (missing("tool_id"), None),
            (None, _, tool, _) => (missing("args"), tool),
        };
        // What is left out stands for what the session has; what is not well-formed for nothing.
        let token = token.or(absent.has(Filled::TOKEN).then_some(defaults.token));
        let snapshot = snapshot.or(absent.has(Filled::SNAPSHOT).then_some(defaults.snapshot));
        let said_nothing = absent.has(Filled::PROVENANCE);
        let provenance = if said_nothing { Some(defaults.provenance) } else { provenance };
        let tool = tool.map(|at| Box::from(text_at(&bytes, &at)));
        Err(Box::new(Faulty { refused, tool, token, snapshot, provenance }))
    }
}

/// The fields with defaults, in the canonical order of the keys.
const FILLED: [(Filled, &str); 6] = [
    (Filled::VERSION, "v"),
    (Filled::AGENT, "agent_id"),
    (Filled::PROVENANCE, "provenance"),
    (Filled::POLICY, "policy_hash"),
    (Filled::SNAPSHOT, "state_snapshot_id"),
    (Filled::TOKEN, "capability_token_id"),
];

/// Most bytes of what is filled in, but for its provenance's trace and inputs.
const FILLED_BYTES: usize = 448;

/// Writes the envelope anew with the absent fields in their places: nothing that was present
/// is encoded again, its bytes are copied.
fn fill(mut call: ToolCall<'_>) -> ToolCall<'_> {
    let present = Item::trusted(&call.bytes);
    let mut encoder = Encoder::with_capacity(call.bytes.len().saturating_add(FILLED_BYTES));
    let mut absent = FILLED.iter().filter(|(bit, _)| call.filled.has(*bit)).peekable();
    encoder.map(present.count().saturating_add(absent.clone().count()));
    let (mut args, mut tool) = (0..0, 0..0);
    for (key, value) in present.entries() {
        let stands_before = |other: &str| (other.len(), other) < (key.len(), key);
        while let Some((bit, name)) = absent.next_if(|(_, name)| stands_before(name)) {
            put(&mut encoder, &call, *bit, name);
        }
        encoder.text(key);
        let start = encoder.len();
        encoder.item(value);
        match key {
            "args" => args = start..encoder.len(),
            "tool_id" => tool = start..encoder.len(),
            _ => {}
        }
    }
    absent.for_each(|(bit, name)| put(&mut encoder, &call, *bit, name));
    call.bytes = Cow::Owned(encoder.into_bytes());
    (call.args, call.tool) = (args, tool);
    call
}

/// One field that was left out.
fn put(encoder: &mut Encoder, call: &ToolCall<'_>, bit: Filled, name: &str) {
    encoder.text(name);
    match bit {
        Filled::AGENT => encoder.text(call.agent.as_str()),
        Filled::PROVENANCE => call.provenance.put_envelope(encoder),
        Filled::POLICY => encoder.bytes(call.policy.as_bytes()),
        Filled::SNAPSHOT => encoder.bytes(call.snapshot.as_bytes()),
        Filled::TOKEN => encoder.bytes(call.token.as_bytes()),
        _ => encoder.uint(1),
    }
}

/// The text item at a place that was checked.
fn text_at<'b>(bytes: &'b [u8], at: &Range<usize>) -> &'b str {
    let item = bytes.get(at.clone()).map(Item::trusted);
    item.and_then(Item::as_text).unwrap_or_default()
}

/// An id: 32 bytes, or 64 lower-case hexadecimal digits for those who write JSON.
fn id<T>(
    item: Item<'_>,
    from_bytes: impl FnOnce([u8; 32]) -> T,
    from_hex: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    match item.as_text() {
        Some(digits) => from_hex(digits),
        None => item.as_byte_string()?.try_into().ok().map(from_bytes),
    }
}

/// The allowed forms of a field of the envelope.
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

/// The refusal of a field that is not well-formed.
fn bad_field(field: &str, item: Item<'_>) -> Refused {
    let reason = if field == "proof" { Reason::BadProof } else { Reason::BadField };
    let got = item.as_text().unwrap_or(kind_name(item.kind()));
    Refused::new(reason).field(field).got(got).allowed(form_of(field))
}

/// The refusal of undecodable bytes, by the field that contains the fault.
fn from_decode(error: DecodeError, field: Option<&str>, bytes: &[u8]) -> Refused {
    let field = field.unwrap_or("envelope");
    let reason = match error.fault {
        DecodeFault::Depth => Reason::TooDeep,
        DecodeFault::DuplicateKey => Reason::DuplicateKey,
        DecodeFault::IntRange | DecodeFault::NotFinite => Reason::NumberRange,
        // Of the envelope itself: its fields are read whole, whatever they are.
        DecodeFault::Type => Reason::BadField,
        _ => Reason::Malformed,
    };
    let refused = Refused::new(reason).field(field);
    match reason {
        Reason::TooDeep => refused.allowed(&levels()),
        Reason::DuplicateKey => refused.got(&format!("{error}")).allowed("each key once"),
        Reason::NumberRange => refused.got(&format!("{error}")).allowed(NUMBERS),
        Reason::BadField => {
            let refused = refused.allowed(form_of(field));
            match Decoder::new(bytes, Profile::DATA).peek() {
                Ok(kind) => refused.got(kind_name(kind)),
                Err(_) => refused,
            }
        }
        _ => refused.got(&format!("{error}")).allowed("canonical CBOR"),
    }
}

/// Most of a text that is shown from the place of a fault on, in bytes.
const EXCERPT_BYTES: usize = 40;

/// The refusal of faulty JSON: the position and the text there. All of it is the caller's own text.
fn from_json(field: &str, error: json::JsonError, text: &[u8]) -> Refused {
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
    Refused::new(reason).field(field).got(&got).allowed(&allowed)
}

/// How deep a call may nest.
pub fn levels() -> String {
    format!("at most {} levels, the call's own included", Profile::DATA.depth_max())
}

/// The name of a value's type, for callers.
#[must_use]
pub const fn kind_name(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Uint | ItemKind::Negative => "integer",
        ItemKind::Bytes => "bytes",
        ItemKind::Text => "text",
        ItemKind::Array => "list",
        ItemKind::Map => "map",
        ItemKind::Bool => "boolean",
        ItemKind::Null => "null",
        ItemKind::Float => "float",
    }
}
