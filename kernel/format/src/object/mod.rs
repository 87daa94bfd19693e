//! Control documents, stored by the hash that records name them by.

mod policy;
mod tools;

pub use policy::{EngineIdentity, PolicyObject};
pub use tools::{ToolEntry, ToolsObject};

use alloc::vec::Vec;

use crate::cbor::{Canonical, Profile};
use crate::field::{code, decode};
use crate::hash::{Domain, object_id};
use crate::id::{ObjectId, TokenId};
use crate::limits::OBJECT_BYTES_MAX;
use crate::manifest::Manifest;
use crate::snapshot::Snapshot;
use crate::token::{Token, TokenBody};

code! {
    /// The kind of a control document; it decides which hash names it.
    pub enum ObjectKind {
        /// A token's wire, named by its token id.
        Token = 1 "token",
        /// A manifest, named by its object id.
        Manifest = 2 "manifest",
        /// A list of tools, named by its tools hash.
        Tools = 3 "tools",
        /// A policy, named by its policy hash.
        Policy = 4 "policy",
        /// A snapshot, named by its snapshot id.
        Snapshot = 5 "snapshot",
    }
}

/// A control document and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its name: a hash of its bytes, or of the body in them.
    pub id: ObjectId,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Object {
    /// A manifest under its object id.
    pub fn manifest(manifest: &Manifest) -> Self {
        let bytes = manifest.to_bytes();
        Self { kind: ObjectKind::Manifest, id: object_id(&bytes), bytes }
    }

    /// A list of tools under its hash.
    pub fn tools(tools: &ToolsObject) -> Self {
        let id = ObjectId::from_bytes(*tools.hash().as_bytes());
        Self { kind: ObjectKind::Tools, id, bytes: tools.to_bytes() }
    }

    /// A policy under its hash.
    pub fn policy(policy: &PolicyObject) -> Self {
        let id = ObjectId::from_bytes(*policy.hash().as_bytes());
        Self { kind: ObjectKind::Policy, id, bytes: policy.to_bytes() }
    }

    /// A snapshot under its id.
    pub fn snapshot(snapshot: &Snapshot) -> Self {
        let id = ObjectId::from_bytes(*snapshot.id().as_bytes());
        Self { kind: ObjectKind::Snapshot, id, bytes: snapshot.to_bytes() }
    }

    /// A token's wire under the token's id.
    pub fn token(id: TokenId, wire: Vec<u8>) -> Self {
        Self { kind: ObjectKind::Token, id: ObjectId::from_bytes(*id.as_bytes()), bytes: wire }
    }

    /// True if the bytes are canonical, have the form of their kind, and hash to the name.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        if self.bytes.len() > OBJECT_BYTES_MAX
            || Canonical::check(self.bytes.clone(), Profile::CONTROL).is_err()
        {
            return false;
        }
        let (form, name) = match self.kind {
            ObjectKind::Token => match Token::body_of(&self.bytes) {
                Some(body) => {
                    (decode::<TokenBody>(body).is_ok(), *TokenBody::id_of(body).as_bytes())
                }
                None => return false,
            },
            ObjectKind::Manifest => {
                (decode::<Manifest>(&self.bytes).is_ok(), Domain::OBJECT_ID.hash(&[&self.bytes]))
            }
            ObjectKind::Tools => (sorted_tools(&self.bytes), Domain::TOOLS.hash(&[&self.bytes])),
            ObjectKind::Policy => {
                (decode::<PolicyObject>(&self.bytes).is_ok(), Domain::POLICY.hash(&[&self.bytes]))
            }
            ObjectKind::Snapshot => {
                (decode::<Snapshot>(&self.bytes).is_ok(), Domain::SNAPSHOT.hash(&[&self.bytes]))
            }
        };
        form && name == *self.id.as_bytes()
    }
}

fn sorted_tools(bytes: &[u8]) -> bool {
    decode::<ToolsObject>(bytes).is_ok_and(|tools| tools.is_sorted())
}
