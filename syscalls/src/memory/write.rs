//! `memory.write` and `memory.delete`.

use std::sync::PoisonError;

use syscap_format::{
    AgentId, Amounts, Dimension, EffectClass, Item, Manifest, MapBuilder, Param, ParamType, Reason,
    Refused, TxOutcome,
};
use syscap_kernel::{Broken, Demands, Finding, Request};

use super::read::kept;
use super::{KEYS_MAX, Key, Memory, TOTAL_BYTES_MAX, VALUE_BYTES_MAX, key_param, manifest, wrong};
use crate::beneath::{
    Discarded, Effect, Existing, FolderMode, FsError, Opener, Parents, Removal, Write,
};
use crate::calls::{ChangeBy, ChangeCall, Changed};
use crate::fs::{digest_of, hex, meter_of, temp_name};
use crate::turns::wait_of;

/// The version of what is not there.
const NONE: &str = "none";
/// Folders that a first write makes at most: those of the agent.
const FOLDERS: u64 = 3;

/// `memory.write`: keeps a text under a key, whole and durable or not at all.
#[derive(Debug)]
pub(super) struct WriteMemory {
    agent: AgentId,
    key: Key,
    value: Box<str>,
    existing: Existing,
    expected: Option<[u8; 32]>,
}

impl ChangeCall for WriteMemory {
    type On = Memory;

    fn manifest() -> Option<Manifest> {
        let manifest = manifest("write", EffectClass::LocalWrite)?
            .described("Write to memory", "Keeps a text under a key.")
            .param(key_param("Under which name to keep it."))
            .param(
                Param::required("value", ParamType::Text, "The text.").within(0, VALUE_BYTES_MAX),
            )
            .param(
                Param::optional(
                    "if_version",
                    ParamType::Text,
                    "Only where the text kept now has this version; `none` where none is kept.",
                )
                .within(1, 64),
            );
        Some(manifest)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        let key = Key::parse(request)?;
        let value = request.args.get("value").and_then(Item::as_text).unwrap_or_default();
        let (existing, expected) = version(request)?;
        let hold = uses(u64::try_from(value.len()).unwrap_or(u64::MAX));
        let demands = Demands { hold, ..Demands::default() };
        Ok((
            Self { agent: request.agent.clone(), key, value: Box::from(value), existing, expected },
            demands,
        ))
    }

    /// As of `fs.write`: who takes the temporary file away has proved that nothing was kept.
    fn probe(&self, on: &Self::On, broken: &Broken<'_>) -> Finding {
        let temp = temp_name(broken.intent, broken.leaf);
        let (Ok(location), Ok(temp)) = (self.key.location(), temp) else {
            return Finding::Unknown;
        };
        match on.base.discard(&location, &temp) {
            Ok(Discarded::Removed { size_bytes }) => Finding::NotDone(uses(size_bytes)),
            _ => Finding::Unknown,
        }
    }

    fn run(&self, on: &Self::On, permit: &mut ChangeBy<'_, Self>) -> Changed {
        let not_done = |refused| (refused, Effect::NotDone);
        let location = self.key.location().map_err(not_done)?;
        let temp = temp_name(permit.intent(), permit.leaf());
        let temp = temp.map_err(|error| not_done(wrong(error)))?;
        // It guards no data: one who broke off left nothing half done.
        let _writing = on.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.expect_room(&*on.base).map_err(not_done)?;
        let parents = Parents::Create(FolderMode::Private);
        let job = Write {
            content: self.value.as_bytes(),
            existing: self.existing,
            expected: self.expected,
            made_from: None,
            temp: &temp,
            label: permit.live().label,
        };
        let wait = wait_of(permit.hold());
        let meter = &mut meter_of(permit);
        let turn = on.base.turn(&location, parents, job.content, wait, meter);
        let written = turn.and_then(|turn| on.base.write(turn, &job, meter));
        let written = written.map_err(|failure| {
            let refused = match failure.error {
                FsError::Changed | FsError::Exists => {
                    wrong(failure.error).field("if_version").allowed("the version kept now")
                }
                error => wrong(error),
            };
            (refused, failure.effect)
        })?;
        let digest = crate::fs::sha256(self.value.as_bytes());
        let map = MapBuilder::new().boolean("created", !written.replaced);
        Ok((map.text("version", &hex(&digest)).finish(), TxOutcome::Committed))
    }
}

fn version(request: &Request<'_>) -> Result<(Existing, Option<[u8; 32]>), Refused> {
    match request.args.get("if_version").and_then(Item::as_text) {
        None => Ok((Existing::Replace, None)),
        Some(NONE) => Ok((Existing::Refuse, None)),
        Some(text) => match digest_of(text) {
            Some(digest) => Ok((Existing::Replace, Some(digest))),
            None => {
                let refused = Refused::new(Reason::BadArgument).field("if_version").got(text);
                Err(refused.allowed("the version that memory.read gave, or none"))
            }
        },
    }
}

fn uses(size_bytes: u64) -> Amounts {
    let files = FOLDERS.saturating_add(1);
    Amounts::ZERO.with(Dimension::DiskWriteBytes, size_bytes).with(Dimension::DiskFiles, files)
}

impl WriteMemory {
    /// There is room for one more text, and for all of it.
    fn expect_room(&self, base: &dyn Opener) -> Result<(), Refused> {
        let mut keys = 1_usize;
        let mut bytes = u64::try_from(self.value.len()).unwrap_or(u64::MAX);
        for (key, size_bytes) in kept(base, &self.agent)?.0 {
            if !self.key.is(&key) {
                keys = keys.saturating_add(1);
                bytes = bytes.saturating_add(size_bytes);
            }
        }
        let full = Refused::new(Reason::Quota);
        if keys > KEYS_MAX {
            return Err(full.field("key").allowed(&format!("at most {KEYS_MAX} keys")));
        }
        if bytes > TOTAL_BYTES_MAX {
            let full = full.field("value").got(&format!("{bytes} bytes with all that is kept"));
            return Err(full.allowed(&format!("at most {TOTAL_BYTES_MAX} bytes")));
        }
        Ok(())
    }
}

/// `memory.delete`: forgets a text.
#[derive(Debug)]
pub(super) struct DeleteMemory {
    key: Key,
}

impl ChangeCall for DeleteMemory {
    type On = Memory;

    fn manifest() -> Option<Manifest> {
        let manifest = manifest("delete", EffectClass::LocalWrite)?
            .described("Delete from memory", "Forgets the text under a key.")
            .param(key_param("Under which name it is kept."));
        Some(manifest)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        Ok((Self { key: Key::parse(request)? }, Demands::default()))
    }

    fn run(&self, on: &Self::On, permit: &mut ChangeBy<'_, Self>) -> Changed {
        let location = self.key.location().map_err(|refused| (refused, Effect::NotDone))?;
        // As for a write: whoever counts what there is counts all or nothing of this.
        let _writing = on.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = wait_of(permit.hold());
        let turn = on.base.turn(&location, Parents::Require, &[], wait, &mut |_| Ok(()));
        let removed = turn.and_then(|turn| on.base.remove(turn, Removal::File, None));
        removed.map_err(|failure| (wrong(failure.error), failure.effect))?;
        Ok((MapBuilder::new().boolean("deleted", true).finish(), TxOutcome::Committed))
    }
}
