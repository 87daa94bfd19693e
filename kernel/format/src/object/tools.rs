//! The tools on record as an object.

use alloc::vec::Vec;

use crate::cbor::DecodeError;
use crate::field::{decode, encode, shape};
use crate::hash::Domain;
use crate::id::{ObjectId, ToolId, ToolsHash};

shape! {
    /// A tool and its manifest.
    pub struct ToolEntry {
        /// The tool.
        1 => pub tool: ToolId,
        /// Its manifest.
        2 => pub manifest: ObjectId,
    }
}

shape! {
    /// The object that a tools hash names.
    pub struct ToolsObject {
        /// The tools, sorted by id.
        1 => pub tools: Vec<ToolEntry>,
    }
}

impl ToolsObject {
    /// True if the tools ascend, each once: one set has one encoding.
    pub fn is_sorted(&self) -> bool {
        self.tools.windows(2).all(|pair| match pair {
            [a, b] => a.tool < b.tool,
            _ => true,
        })
    }

    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the canonical bytes.
    ///
    /// # Errors
    /// The first fault.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        decode(bytes)
    }

    /// The tools' hash.
    pub fn hash(&self) -> ToolsHash {
        ToolsHash::from_bytes(Domain::TOOLS.hash(&[&self.to_bytes()]))
    }
}
