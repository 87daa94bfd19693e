//! Names and digests, each a type of its own so that none can stand for another.

use alloc::{string::String, sync::Arc};
use core::fmt;

/// Declares a 32-byte digest type.
macro_rules! digest {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 32]);

        impl $name {
            /// Takes the 32 bytes as they are.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// The 32 bytes.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// Reads 64 lower-case hexadecimal digits; `None` for anything else.
            #[must_use]
            pub fn from_hex(text: &str) -> Option<Self> {
                parse_hex(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(f, &self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(f, &self.0)
            }
        }
    )*};
}

digest! {
    /// A kernel's identity: the leaf of its genesis record. Audience of tokens and signatures.
    HomeId
    /// The RFC 6962 leaf hash of a record: SHA-256 of a zero byte and the record's bytes.
    Leaf
    /// A capability token: hash of its body, so neither signature nor re-signing changes it.
    TokenId
    /// A control document (token wire, manifest, policy, snapshot): hash of its bytes.
    ObjectId
    /// A policy: hash of the engine's name, its version and the canonical document.
    PolicyHash
    /// The set of tools: hash of the manifests' ids, sorted by tool.
    ToolsHash
    /// An agent's state snapshot.
    SnapshotId
    /// A tool's definition as another program gave it.
    DefinitionHash
    /// Salted commitment to a fact of the state: its key and its value.
    FactId
    /// Salted commitment to a call's resolved arguments.
    ArgsHash
    /// Salted commitment to an envelope's bytes, completed; as received where it can't be decoded.
    CallHash
    /// Salted commitment to a delivered result or error.
    ResultHash
    /// Salted commitment to a call's arguments as sent, before references are resolved.
    SentHash
    /// Unsalted digest that names a plan in memory. Never recorded: it could be guessed.
    CallDigest
    /// Unsalted digest of times and reasons in a run of refusals: no caller data is in it.
    RefusalsDigest
    /// Hash of a recovery key: the key itself is shown only when it is used.
    RecoveryHash
    /// Salted commitment to a text that somebody wrote.
    TextHash
    /// Digest of a state image.
    StateHash
}

/// 32 random bytes, kept in the vault, that make a commitment impossible to guess.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Salt([u8; 32]);

impl Salt {
    /// Takes 32 random bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Salt {
    /// Never prints the salt.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt(..)")
    }
}

/// Position of a record in the log, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(u64);

impl Seq {
    /// The genesis record.
    pub const GENESIS: Self = Self(0);

    /// The position `n`.
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The position after this one. It saturates: a log of 2^64 records does not come about.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// An agent: components of `[a-z0-9._-]`, none beginning with a dot, joined by `/`, at most
/// [`AgentId::BYTES_MAX`] bytes. `team/researcher` lies below `team`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(Arc<str>);

impl AgentId {
    /// Longest agent id, in bytes: it names a folder, whose name may have 255.
    pub const BYTES_MAX: usize = 128;

    /// Checks the form.
    pub fn new(text: &str) -> Option<Self> {
        let fine = text.len() <= Self::BYTES_MAX && text.split('/').all(is_component);
        fine.then(|| Self(Arc::from(text)))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if this is `other` or a path component below it.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        match self.0.strip_prefix(&*other.0) {
            Some(rest) => rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    /// Its own id and those of the agents above it, itself first: `a/b`, `a`.
    pub fn lineage(&self) -> impl Iterator<Item = &str> {
        core::iter::successors(Some(self.as_str()), |name| Some(name.rsplit_once('/')?.0))
    }

    /// The name of the agent's folder: `/` written as `+`, which no id contains.
    pub fn folder(&self) -> String {
        self.0.replace('/', "+")
    }
}

/// It is looked up by its text, and sorted as that.
impl core::borrow::Borrow<str> for AgentId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A tool: `[a-z0-9_]` components of a letter first, joined by `.`, at most
/// [`ToolId::BYTES_MAX`] bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolId(Arc<str>);

impl ToolId {
    /// Longest tool id, in bytes: what model providers take as a function's name.
    pub const BYTES_MAX: usize = 64;

    /// Checks the form.
    pub fn new(text: &str) -> Option<Self> {
        Self::is_valid(text).then(|| Self(Arc::from(text)))
    }

    /// True if a text has the form.
    pub(crate) fn is_valid(text: &str) -> bool {
        text.len() <= Self::BYTES_MAX && text.split('.').all(is_tool_component)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An idempotency key: 1 to 64 of `[A-Za-z0-9._:-]`. It stands in records and can't be erased,
/// so it must not carry personal data.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(Arc<str>);

impl IdempotencyKey {
    /// Longest key, in bytes.
    pub const BYTES_MAX: usize = 64;

    /// Checks the form.
    pub fn new(text: &str) -> Option<Self> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
        let fine = (1..=Self::BYTES_MAX).contains(&text.len()) && text.bytes().all(allowed);
        fine.then(|| Self(Arc::from(text)))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A constraint of a policy: 1 to [`ConstraintId::BYTES_MAX`] of `[A-Za-z0-9._/-]`. It stands in
/// records, so that a decision can be traced to what a person wrote.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConstraintId(Arc<str>);

impl ConstraintId {
    /// Longest id, in bytes: one that is made for an agent holds the agent's id.
    pub const BYTES_MAX: usize = 160;

    /// Checks the form.
    pub fn new(text: &str) -> Option<Self> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'/' | b'-');
        let fine = (1..=Self::BYTES_MAX).contains(&text.len()) && text.bytes().all(allowed);
        fine.then(|| Self(Arc::from(text)))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The names print as their text.
macro_rules! printed {
    ($($name:ident)*) => {$(
        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Debug::fmt(&*self.0, f)
            }
        }
    )*};
}
pub(crate) use printed;
printed! { AgentId ToolId IdempotencyKey ConstraintId }

fn is_component(text: &str) -> bool {
    let allowed =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-');
    !text.is_empty() && !text.starts_with('.') && text.bytes().all(allowed)
}

fn is_tool_component(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    text.bytes().next().is_some_and(|b| b.is_ascii_lowercase()) && text.bytes().all(allowed)
}

fn parse_hex(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => byte.checked_sub(b'0'),
        b'a'..=b'f' => byte.checked_sub(b'a').and_then(|d| d.checked_add(10)),
        _ => None,
    };
    let mut bytes = [0; 32];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != bytes.len() || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = (digit(*high)? << 4) | digit(*low)?;
    }
    Some(bytes)
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}
