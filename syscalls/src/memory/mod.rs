//! `memory.read`, `memory.list`, `memory.write`, `memory.delete`: texts that an agent keeps under
//! names of its own.
//!
//! Each agent has a memory, `agents/<id>/memory` beneath the base directory, one file a key. Which
//! it is comes from the token's agent and from no argument. A text keeps the label of what the
//! session had read that wrote it, and gives it back to the one that reads it: what was planted by
//! a stranger's word stays a stranger's word.

mod read;
mod write;

use std::sync::{Arc, Mutex};

use syscap_format::{
    AgentId, EffectClass, Item, Manifest, Param, ParamType, Reason, Refused, ToolId,
};
use syscap_kernel::{Registry, Request};

use crate::beneath::{FsError, Location, Opener};
use crate::calls::{self, NotAdded, Shared};
use crate::fs::refusal;

/// Longest key, in bytes.
pub const KEY_BYTES_MAX: u64 = 64;
/// Longest text, in bytes.
pub const VALUE_BYTES_MAX: u64 = 64 << 10;
/// Most keys of one agent.
pub const KEYS_MAX: usize = 1_000;
/// Most bytes of all texts of one agent.
pub const TOTAL_BYTES_MAX: u64 = 16 << 20;

/// The folder beside an agent's workspace.
const FOLDER: &str = "memory";
/// The suffix of a key's file, so that no key is a name with a meaning of its own.
const SUFFIX: &str = ".txt";

/// The memories of all agents over one base directory.
#[derive(Clone, Debug)]
pub struct Memory {
    base: Arc<dyn Opener>,
    /// Held while a write looks how full a memory is and fills it.
    writing: Arc<Mutex<()>>,
}

impl Memory {
    /// The tools over an open base.
    pub fn over(base: Arc<dyn Opener>) -> Self {
        Self { base, writing: Arc::default() }
    }

    /// Adds the four tools.
    pub fn add_to(&self, registry: &mut Registry) -> Result<(), NotAdded> {
        calls::add_read::<read::ReadMemory>(registry, self)?;
        calls::add_read::<read::ListMemory>(registry, self)?;
        calls::add::<write::WriteMemory>(registry, self)?;
        calls::add::<write::DeleteMemory>(registry, self)
    }
}

impl Shared for Memory {
    fn base(&self) -> &dyn Opener {
        &*self.base
    }
}

fn manifest(verb: &str, effect: EffectClass) -> Option<Manifest> {
    let alias = ToolId::new(&format!("memory_{verb}"))?;
    Some(Manifest::new(ToolId::new(&format!("memory.{verb}"))?, effect).alias(alias))
}

fn key_param(description: &str) -> Param {
    Param::required("key", ParamType::Text, description).within(1, KEY_BYTES_MAX)
}

/// A key: 1 to [`KEY_BYTES_MAX`] of `[a-z0-9._-]`, not beginning with a dot. So no two keys are one
/// file, whatever the file system makes of letters.
#[derive(Clone, Debug)]
struct Key {
    folder: String,
    file: String,
}

impl Key {
    fn parse(request: &Request<'_>) -> Result<Self, Refused> {
        let key = request.args.get("key").and_then(Item::as_text).unwrap_or_default();
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b);
        if key.is_empty() || key.starts_with('.') || !key.bytes().all(allowed) {
            let refused = Refused::new(Reason::BadArgument).field("key").got(key);
            return Err(refused.allowed("a to z, 0 to 9, `.`, `_` and `-`, no dot first"));
        }
        Ok(Self { folder: request.agent.folder().to_string(), file: format!("{key}{SUFFIX}") })
    }

    fn is(&self, key: &str) -> bool {
        self.file.strip_suffix(SUFFIX) == Some(key)
    }

    fn location(&self) -> Result<Location, Refused> {
        Location::new(&["agents", self.folder.as_str(), FOLDER, self.file.as_str()]).map_err(wrong)
    }
}

/// The folder of all texts of an agent.
fn folder_of(agent: &AgentId) -> Result<Location, Refused> {
    Location::new(&["agents", agent.folder().as_str(), FOLDER]).map_err(wrong)
}

/// An error of the file layer, about the key.
fn wrong(error: FsError) -> Refused {
    match error {
        FsError::NotFound => Refused::new(Reason::NotFound).field("key").allowed("a key of yours"),
        error => refusal(error).field("key"),
    }
}
