//! Hashing: BLAKE3 with one domain a purpose, SHA-256 for the log's leaves.
//!
//! A domain is BLAKE3's `derive_key` mode with a fixed context string, so the same bytes hash
//! differently for each purpose. Commitments to a caller's data are salted (see [`Salt`]).

use alloc::vec::Vec;

use blake3::hazmat::HasherExt;
use sha2::Digest;

use crate::cbor::{Item, head, length};
use crate::facts::FactKey;
use crate::id::{
    AgentId, ArgsHash, CallDigest, CallHash, DefinitionHash, FactId, HomeId, IdempotencyKey, Leaf,
    ObjectId, ResultHash, Salt, SentHash, TextHash, TokenId, ToolId,
};

/// One purpose of hashing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    context: &'static str,
    /// The hash of `context`, worked out once: a test compares.
    key: [u8; 32],
}

impl Domain {
    /// The id of a token, over its body.
    pub const TOKEN_ID: Self = Self {
        context: "syscap 2026-11-21 token id v1",
        key: [
            0x7d, 0x7e, 0x57, 0x3b, 0xd8, 0x33, 0x1c, 0x70, 0x77, 0x13, 0x63, 0x64, 0xb6, 0x12,
            0x5b, 0x89, 0xac, 0xcf, 0x47, 0x2b, 0x17, 0x9b, 0xca, 0x41, 0xda, 0x18, 0x4d, 0xfb,
            0x6a, 0x66, 0x1c, 0xc1,
        ],
    };
    /// The id of a control document, over its bytes.
    pub const OBJECT_ID: Self = Self {
        context: "syscap 2026-11-21 object id v1",
        key: [
            0xef, 0xef, 0x53, 0xd7, 0x5e, 0xd6, 0x50, 0x58, 0xe9, 0x6d, 0x40, 0x29, 0x39, 0x6d,
            0x39, 0x80, 0xdb, 0x6c, 0x9a, 0x8a, 0x51, 0x80, 0xf6, 0x86, 0x5f, 0xa1, 0xc0, 0x37,
            0xc4, 0x56, 0x3c, 0xe3,
        ],
    };
    /// A policy, over its object's bytes.
    pub const POLICY: Self = Self {
        context: "syscap 2026-11-21 policy hash v1",
        key: [
            0x6d, 0x75, 0xc1, 0x53, 0x2b, 0x38, 0x26, 0xdb, 0x4a, 0xb3, 0x48, 0xc3, 0xc0, 0xe6,
            0xcc, 0xbc, 0xfd, 0xd4, 0x97, 0x25, 0xd4, 0x40, 0x5b, 0x37, 0x56, 0xb3, 0xd8, 0x2a,
            0x41, 0x80, 0x3d, 0x3e,
        ],
    };
    /// A set of tools, over its object's bytes.
    pub const TOOLS: Self = Self {
        context: "syscap 2026-11-21 tools hash v1",
        key: [
            0xb6, 0x83, 0x33, 0x00, 0x80, 0x2d, 0x27, 0xe9, 0xc9, 0xf0, 0x5d, 0x4e, 0x28, 0x62,
            0x2e, 0x60, 0x15, 0x81, 0x8f, 0x60, 0xbc, 0x20, 0x7f, 0xd8, 0x46, 0x6b, 0x80, 0x2c,
            0xfd, 0xfc, 0x23, 0x55,
        ],
    };
    /// A state snapshot, over its object's bytes.
    pub const SNAPSHOT: Self = Self {
        context: "syscap 2026-11-21 snapshot id v1",
        key: [
            0x4d, 0x8e, 0xbf, 0x8d, 0x64, 0xff, 0xf2, 0x8f, 0xc7, 0xbf, 0xdc, 0xdd, 0x9e, 0x2f,
            0xfd, 0xab, 0xfb, 0x59, 0x81, 0x2a, 0xc7, 0x36, 0xb7, 0xc3, 0x01, 0x75, 0x2a, 0x00,
            0xcf, 0x84, 0x03, 0xcc,
        ],
    };
    /// `args_hash`.
    pub const ARGUMENTS: Self = Self {
        context: "syscap 2026-11-21 arguments v1",
        key: [
            0xa8, 0x7c, 0xc5, 0x28, 0x16, 0x1a, 0x28, 0x97, 0x40, 0x02, 0x30, 0xb6, 0xfb, 0x09,
            0x88, 0x8e, 0xda, 0xc2, 0x2f, 0xbf, 0x39, 0x9f, 0x16, 0xa1, 0x3d, 0xce, 0x70, 0x1b,
            0xc3, 0xa1, 0x8d, 0x6e,
        ],
    };
    /// `call_hash`.
    pub const ENVELOPE: Self = Self {
        context: "syscap 2026-11-21 envelope v1",
        key: [
            0x2b, 0xd1, 0xc0, 0x48, 0xac, 0x97, 0x15, 0x07, 0x17, 0xb9, 0xec, 0x1a, 0x02, 0x9b,
            0xf8, 0xdb, 0xed, 0xd4, 0xd9, 0x16, 0x5a, 0x45, 0x0a, 0xe2, 0xa4, 0x85, 0xff, 0xd5,
            0xa9, 0xbd, 0xa0, 0x7d,
        ],
    };
    /// `result_hash`.
    pub const RESULT: Self = Self {
        context: "syscap 2026-11-21 result v1",
        key: [
            0x48, 0x14, 0x6d, 0x07, 0x74, 0x92, 0xb6, 0x65, 0xaa, 0x45, 0x35, 0x2c, 0x7c, 0xf5,
            0x5d, 0xcc, 0xb4, 0x67, 0x22, 0xcb, 0x08, 0x55, 0x54, 0x9d, 0xde, 0x2f, 0xc8, 0xab,
            0x90, 0xaf, 0xf9, 0xd8,
        ],
    };
    /// The arguments as sent, for repeats of an idempotency key.
    pub const SENT: Self = Self {
        context: "syscap 2026-11-21 arguments as sent v1",
        key: [
            0x4c, 0x1e, 0xe2, 0xf7, 0x42, 0x88, 0xd7, 0x8d, 0xac, 0x64, 0x49, 0x85, 0x36, 0x03,
            0x26, 0x0d, 0x24, 0xf9, 0x8f, 0x8b, 0x3d, 0x7e, 0x64, 0x1b, 0xc1, 0xdd, 0x91, 0x0a,
            0x7a, 0xea, 0xab, 0x17,
        ],
    };
    /// The unsalted digest that names a plan in memory.
    pub const CALL_DIGEST: Self = Self {
        context: "syscap 2026-11-21 call digest v1",
        key: [
            0xf1, 0x04, 0xd4, 0x5f, 0x4c, 0xa2, 0x38, 0xfa, 0xd9, 0xfa, 0xa3, 0xfe, 0xd6, 0xdc,
            0x5c, 0x55, 0x5d, 0x78, 0x41, 0xa2, 0x20, 0x90, 0xfb, 0x15, 0xcd, 0xcb, 0x0c, 0xca,
            0xd2, 0xda, 0x9e, 0x37,
        ],
    };
    /// A run of refusals: times and reasons.
    pub const REFUSALS: Self = Self {
        context: "syscap 2026-11-21 refusals v1",
        key: [
            0x19, 0x53, 0x61, 0xb4, 0xb2, 0x4f, 0x2b, 0xe4, 0x4d, 0xbb, 0xf1, 0x95, 0x0f, 0x99,
            0xaf, 0xce, 0x92, 0x95, 0x2d, 0xc3, 0xb6, 0x16, 0x4b, 0x1c, 0x38, 0xb7, 0xbe, 0x3f,
            0x65, 0xfa, 0xc6, 0xb5,
        ],
    };
    /// A fact of the state: salt, key and value.
    pub const FACT: Self = Self {
        context: "syscap 2026-11-22 fact v1",
        key: [
            0x36, 0xb5, 0xd8, 0xd9, 0x4a, 0x04, 0xe6, 0xae, 0x56, 0x1a, 0x06, 0xd6, 0x55, 0x9c,
            0x0d, 0x89, 0xef, 0xc5, 0x6f, 0x8c, 0x25, 0x6e, 0x65, 0xc7, 0x81, 0x8f, 0xb1, 0x17,
            0xd7, 0x1f, 0x8f, 0x73,
        ],
    };
    /// The constraints that matched, by their places.
    pub const MATCHES: Self = Self {
        context: "syscap 2026-11-22 matches v1",
        key: [
            0xd6, 0x32, 0x49, 0xbf, 0xa1, 0xfe, 0xe4, 0x76, 0xc4, 0x87, 0x5c, 0xdb, 0x2a, 0xf2,
            0x12, 0x9c, 0x94, 0x56, 0xa4, 0xe0, 0xc3, 0x47, 0x44, 0xe6, 0x38, 0xf1, 0x95, 0x62,
            0xe4, 0x76, 0x31, 0x8d,
        ],
    };
    /// A tool's definition as its server gave it, over its canonical bytes.
    pub const DEFINITION: Self = Self {
        context: "syscap 2026-11-22 tool definition v1",
        key: [
            0x9e, 0x68, 0xa8, 0x6f, 0xd9, 0xe8, 0x5d, 0xb6, 0x32, 0x27, 0x1c, 0xf0, 0xe6, 0x81,
            0xe8, 0xa2, 0x46, 0x4a, 0x03, 0x71, 0xee, 0xd6, 0x22, 0x1b, 0x17, 0xd8, 0x3b, 0xc5,
            0x38, 0xcc, 0xed, 0x7b,
        ],
    };
    /// A recovery key: its algorithm and its bytes.
    pub const RECOVERY: Self = Self {
        context: "syscap 2026-11-22 recovery key v1",
        key: [
            0x86, 0x29, 0x51, 0x8d, 0xb5, 0x4b, 0x2e, 0x71, 0x14, 0x55, 0x47, 0xe6, 0xcf, 0xfe,
            0x68, 0xbe, 0x17, 0x1b, 0xed, 0x5c, 0x98, 0xaf, 0xe6, 0xa2, 0x3e, 0x67, 0x11, 0x7f,
            0x72, 0x9a, 0x66, 0x45,
        ],
    };
    /// A text that somebody wrote: salt, which field of the record it is, the text.
    pub const TEXT: Self = Self {
        context: "syscap 2026-11-22 text v1",
        key: [
            0xb5, 0x7f, 0x55, 0x70, 0xab, 0x77, 0xb4, 0xbf, 0x23, 0x1d, 0x13, 0x83, 0x9b, 0x77,
            0x0c, 0x98, 0x99, 0xce, 0x29, 0xbc, 0x6e, 0x30, 0x79, 0x4a, 0x6b, 0xc6, 0x53, 0xa2,
            0x9d, 0xfc, 0xe6, 0x52,
        ],
    };
    /// The state image, over its bytes.
    pub const STATE: Self = Self {
        context: "syscap 2026-11-22 state image v1",
        key: [
            0xf4, 0x4a, 0x51, 0xb7, 0xa3, 0x53, 0xae, 0x08, 0xf8, 0xb2, 0xc7, 0x59, 0x5c, 0x59,
            0xed, 0xda, 0xca, 0x6a, 0x4c, 0x21, 0x9d, 0x5e, 0x59, 0x4a, 0xd5, 0x01, 0x34, 0x56,
            0xc6, 0xad, 0x8d, 0xe6,
        ],
    };
    /// Every domain, for the registry test.
    pub const ALL: [Self; 17] = [
        Self::TOKEN_ID,
        Self::OBJECT_ID,
        Self::POLICY,
        Self::TOOLS,
        Self::SNAPSHOT,
        Self::ARGUMENTS,
        Self::ENVELOPE,
        Self::RESULT,
        Self::SENT,
        Self::CALL_DIGEST,
        Self::REFUSALS,
        Self::FACT,
        Self::MATCHES,
        Self::DEFINITION,
        Self::RECOVERY,
        Self::TEXT,
        Self::STATE,
    ];

    /// The context string.
    pub const fn context(self) -> &'static str {
        self.context
    }

    /// The context key: the first stage of BLAKE3's `derive_key`.
    pub const fn context_key(&self) -> &[u8; 32] {
        &self.key
    }

    /// Hashes the concatenation of `parts`. Callers pass parts that together are one
    /// self-delimiting item or a sequence of such, never bare fields side by side.
    pub fn hash(self, parts: &[&[u8]]) -> [u8; 32] {
        let mut hasher = self.hasher();
        for part in parts {
            hasher.update(part);
        }
        hasher.finish()
    }

    /// Hashes `head || body || tail`, for a body that may be large. A hasher that was fed a few
    /// bytes first takes what follows block by block, one lane for sixteen; so what is short is
    /// put together first, and of what is long the first chunk is, so that the rest lies on
    /// chunk boundaries.
    fn hash_around(
        self,
        head: impl FnOnce(&mut Joined),
        body: &[u8],
        tail: impl FnOnce(&mut Joined),
    ) -> [u8; 32] {
        // Written where it lies: a kilobyte is not moved about.
        let mut joined = Joined::new();
        head(&mut joined);
        let first = if body.len() <= JOIN_BYTES_MAX {
            body.len()
        } else {
            CHUNK_BYTES.saturating_sub(joined.len)
        };
        let (first, rest) = body.split_at_checked(first).unwrap_or((body, &[]));
        joined.raw(first);
        if rest.is_empty() {
            tail(&mut joined);
            return self.hash(&[joined.as_bytes()]);
        }
        let mut last = Joined::new();
        tail(&mut last);
        self.hash(&[joined.as_bytes(), rest, last.as_bytes()])
    }

    /// To hash what comes in pieces.
    pub fn hasher(self) -> Hasher {
        Hasher(blake3::Hasher::new_from_context_key(&self.key))
    }
}

/// BLAKE3's chunk.
const CHUNK_BYTES: usize = 1_024;
/// Up to here a copy costs less than what it saves.
const JOIN_BYTES_MAX: usize = 64 << 10;

/// Room for what follows the body: most is an agent, a token and a key.
const TAIL_BYTES: usize = 256;

/// The items that are hashed together, side by side: up to a chunk of them lies on the stack.
struct Joined {
    short: [u8; CHUNK_BYTES],
    len: usize,
    /// All of them, where they are more than a chunk.
    long: Vec<u8>,
}

impl Joined {
    const fn new() -> Self {
        Self { short: [0; CHUNK_BYTES], len: 0, long: Vec::new() }
    }

    /// The head of an array of `count` items, and the first of them.
    fn salted(&mut self, count: u64, salt: &Salt) {
        self.head(4, count);
        self.bytes(salt.as_bytes());
    }

    fn uint(&mut self, value: u64) {
        self.head(0, value);
    }

    fn bytes(&mut self, value: &[u8]) {
        self.byte_head(value.len());
        self.raw(value);
    }

    fn byte_head(&mut self, len: usize) {
        self.head(2, length(len));
    }

    fn text(&mut self, value: &str) {
        self.text_head(value.len());
        self.raw(value.as_bytes());
    }

    fn text_head(&mut self, len: usize) {
        self.head(3, length(len));
    }

    fn head(&mut self, major: u8, value: u64) {
        head(major, value, |bytes| self.raw(bytes));
    }

    fn raw(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        if let Some(place) = self.short.get_mut(self.len..end) {
            place.copy_from_slice(bytes);
        } else {
            if self.long.is_empty() {
                // What still follows a body is short: it must not move all of this once more.
                self.long.reserve(end.saturating_add(TAIL_BYTES));
                self.long.extend_from_slice(self.short.get(..self.len).unwrap_or_default());
            }
            self.long.extend_from_slice(bytes);
        }
        self.len = end;
    }

    fn as_bytes(&self) -> &[u8] {
        self.short.get(..self.len).unwrap_or(&self.long)
    }
}

/// A hash in the making.
#[derive(Clone, Debug)]
pub struct Hasher(blake3::Hasher);

impl Hasher {
    /// Takes more bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of all of them.
    pub fn finish(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }
}

/// The leaf of a record: SHA-256(0x00 || record), RFC 6962 section 2.1. It is the chain's link
/// and the leaf of the Merkle tree at once.
#[must_use]
pub fn leaf(record: &[u8]) -> Leaf {
    let mut sha = sha2::Sha256::new();
    sha.update([0]);
    sha.update(record);
    Leaf::from_bytes(sha.finalize().into())
}

/// The id of a control document.
#[must_use]
pub fn object_id(bytes: &[u8]) -> ObjectId {
    ObjectId::from_bytes(Domain::OBJECT_ID.hash(&[bytes]))
}

/// The hash of a tool's definition, as the program that runs the tool gave it.
#[must_use]
pub fn definition_hash(definition: Item<'_>) -> DefinitionHash {
    DefinitionHash::from_bytes(Domain::DEFINITION.hash(&[definition.as_bytes()]))
}

/// The commitment to a fact: [salt, key, value].
#[must_use]
pub fn fact_id(salt: &Salt, key: &FactKey, value: Item<'_>) -> FactId {
    let head = |head: &mut Joined| {
        head.salted(3, salt);
        head.text(key.as_str());
    };
    FactId::from_bytes(Domain::FACT.hash_around(head, value.as_bytes(), |_| {}))
}

/// `args_hash` over [salt, tool, manifest, resolved arguments after defaults].
#[must_use]
pub fn args_hash(salt: &Salt, tool: &ToolId, manifest: &ObjectId, args: Item<'_>) -> ArgsHash {
    let head = |head: &mut Joined| {
        head.salted(4, salt);
        head.text(tool.as_str());
        head.bytes(manifest.as_bytes());
    };
    ArgsHash::from_bytes(Domain::ARGUMENTS.hash_around(head, args.as_bytes(), |_| {}))
}

/// The commitment to [salt, changes of a state]: in the place of `args_hash`.
#[must_use]
pub fn changes_hash(salt: &Salt, changes: Item<'_>) -> ArgsHash {
    let head = |head: &mut Joined| head.salted(2, salt);
    ArgsHash::from_bytes(Domain::ARGUMENTS.hash_around(head, changes.as_bytes(), |_| {}))
}

/// The commitment to [salt, tool, arguments as sent].
#[must_use]
pub fn sent_hash(salt: &Salt, tool: &ToolId, args: Item<'_>) -> SentHash {
    let head = |head: &mut Joined| {
        head.salted(3, salt);
        head.text(tool.as_str());
    };
    SentHash::from_bytes(Domain::SENT.hash_around(head, args.as_bytes(), |_| {}))
}

/// `call_hash` over [salt, envelope]: completed, or as received where it can't be decoded.
#[must_use]
pub fn call_hash(salt: &Salt, envelope: &[u8]) -> CallHash {
    let head = |head: &mut Joined| {
        head.salted(2, salt);
        head.byte_head(envelope.len());
    };
    CallHash::from_bytes(Domain::ENVELOPE.hash_around(head, envelope, |_| {}))
}

/// `result_hash` over [salt, status, delivered result or error, truncated].
#[must_use]
pub fn result_hash(salt: &Salt, status: u64, delivered: Item<'_>) -> ResultHash {
    let head = |head: &mut Joined| {
        head.salted(4, salt);
        head.uint(status);
    };
    // Nothing is truncated by the kernel: a result over its limit is an error.
    let truncated = |tail: &mut Joined| tail.raw(&[0xf4]);
    ResultHash::from_bytes(Domain::RESULT.hash_around(head, delivered.as_bytes(), truncated))
}

/// A text's commitment over [salt, field, text]: `field` is the key under which it stands in its
/// record or body.
#[must_use]
pub fn text_hash(salt: &Salt, field: u64, text: &str) -> TextHash {
    let head = |head: &mut Joined| {
        head.salted(3, salt);
        head.uint(field);
        head.text_head(text.len());
    };
    TextHash::from_bytes(Domain::TEXT.hash_around(head, text.as_bytes(), |_| {}))
}

/// The unsalted digest of [home, tool, manifest, resolved arguments, agent, token, key or null]: it
/// names a plan, and never goes on record.
#[must_use]
pub fn call_digest(
    home: &HomeId,
    tool: &ToolId,
    manifest: &ObjectId,
    args: Item<'_>,
    agent: &AgentId,
    token: &TokenId,
    key: Option<&IdempotencyKey>,
) -> CallDigest {
    let head = |head: &mut Joined| {
        head.head(4, 7);
        head.bytes(home.as_bytes());
        head.text(tool.as_str());
        head.bytes(manifest.as_bytes());
    };
    let hash = Domain::CALL_DIGEST.hash_around(head, args.as_bytes(), |tail| {
        tail.text(agent.as_str());
        tail.bytes(token.as_bytes());
        match key {
            Some(key) => tail.text(key.as_str()),
            None => tail.raw(Item::NULL.as_bytes()),
        }
    });
    CallDigest::from_bytes(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Filling the first chunk by hand changes no hash.
    #[test]
    fn large_and_plain_hashing_agree() {
        for size in [0, 1, 980, 984, 985, 1_023, 1_024, 1_025, 2_048, 5_000, 70_000] {
            let (head, body, tail) = (vec![1; 40], vec![2; size], vec![3; 9]);
            let plain = Domain::RESULT.hash(&[&head, &body, &tail]);
            let first = |joined: &mut Joined| joined.raw(&head);
            let hash = Domain::RESULT.hash_around(first, &body, |last| last.raw(&tail));
            assert_eq!(hash, plain, "{size}");
        }
    }
}
