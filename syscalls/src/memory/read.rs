//! `memory.read` and `memory.list`.

use syscap_format::{
    AgentId, Canonical, EffectClass, Item, Manifest, MapBuilder, ObligationKind, Param, ParamType,
    Reason, Refused,
};
use syscap_kernel::{Demands, Request};

use super::{KEYS_MAX, Key, SUFFIX, VALUE_BYTES_MAX, folder_of, key_param, manifest, wrong};
use crate::beneath::{FsError, Kind, Opener};
use crate::calls::{ReadBy, ReadCall};
use crate::fs::{hex, sha256};
use crate::memory::Memory;

/// Most bytes of a result that are not the text: keys, the version and heads.
const FRAME_BYTES: usize = 128;

/// `memory.read`: the text under a key.
#[derive(Debug)]
pub(super) struct ReadMemory {
    key: Key,
}

impl ReadCall for ReadMemory {
    type On = Memory;

    fn manifest() -> Option<Manifest> {
        let mut manifest = manifest("read", EffectClass::Read)?
            .described("Read from memory", "Gives back a text that was kept under a key.")
            .param(key_param("Under which name it was kept."))
            .honours(ObligationKind::ResultCap);
        manifest.result_bytes_max = VALUE_BYTES_MAX.saturating_add(1 << 10);
        Some(manifest)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        Ok((Self { key: Key::parse(request)? }, Demands::default()))
    }

    /// `{value, version, truncated}`: the version is the SHA-256 of the whole text, by which a
    /// write can be held to it; `truncated` where the value is not all of it, cut between two
    /// characters.
    fn run(&self, on: &Self::On, permit: &mut ReadBy<'_, Self>) -> Result<Canonical, Refused> {
        // A policy may ask for less: then less of the text is given, and `truncated` says so.
        let room = permit.result_bytes_max().saturating_sub(FRAME_BYTES);
        let location = self.key.location()?;
        let file = on.base.open_file(&location, VALUE_BYTES_MAX).map_err(wrong)?;
        let label = file.label().map_err(wrong)?;
        let limit = usize::try_from(VALUE_BYTES_MAX).unwrap_or(usize::MAX);
        let bytes = file.read(0, limit).map_err(wrong)?.bytes;
        let digest = sha256(&bytes);
        // What is no text was put there by somebody else.
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| Refused::new(Reason::NotAFile).field("key").got("no text"))?;
        let shown = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        let map = MapBuilder::new().text("value", shown).text("version", &hex(&digest));
        let is_cut = shown.len() < text.len();
        let map = if is_cut { map.boolean("truncated", true) } else { map };
        permit.brings(label);
        Ok(map.finish())
    }
}

/// `memory.list`: the keys.
#[derive(Debug)]
pub(super) struct ListMemory {
    agent: AgentId,
    prefix: String,
}

impl ReadCall for ListMemory {
    type On = Memory;

    fn manifest() -> Option<Manifest> {
        let manifest = manifest("list", EffectClass::Read)?
            .described("List memory", "Lists the keys under which texts are kept.")
            .param(
                Param::optional("prefix", ParamType::Text, "How the keys begin.")
                    .within(1, super::KEY_BYTES_MAX),
            );
        Some(manifest)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        let prefix = request.args.get("prefix").and_then(Item::as_text).unwrap_or_default();
        let demands = Demands::default();
        Ok((Self { agent: request.agent.clone(), prefix: prefix.to_owned() }, demands))
    }

    /// `{keys: [{key, size_bytes}]}`, in the order of their bytes.
    fn run(&self, on: &Self::On, _: &mut ReadBy<'_, Self>) -> Result<Canonical, Refused> {
        let (entries, skipped) = kept(&*on.base, &self.agent)?;
        let meant = entries.iter().filter(|(key, _)| key.starts_with(&self.prefix));
        let shown = meant.map(|(key, size_bytes)| {
            MapBuilder::new().text("key", key).uint("size_bytes", *size_bytes).finish()
        });
        let keys = Canonical::list(shown.collect::<Vec<_>>().into_iter());
        let result = MapBuilder::new().item("keys", keys.item());
        Ok(if skipped > 0 { result.uint("skipped", skipped) } else { result }.finish())
    }
}

/// The keys of an agent, and the sizes of what is kept under them; and how much else lies there. A
/// memory that nothing was written to has none.
pub(super) fn kept(
    base: &dyn Opener,
    agent: &AgentId,
) -> Result<(Vec<(String, u64)>, u64), Refused> {
    let listing = match base.list(&folder_of(agent)?, KEYS_MAX.saturating_add(1)) {
        Ok(listing) => listing,
        Err(FsError::NotFound) => return Ok((Vec::new(), 0)),
        Err(error) => return Err(wrong(error)),
    };
    let all = listing.entries.len().saturating_add(usize::from(listing.truncated));
    let files = listing.entries.into_iter().filter(|entry| entry.kind == Kind::File);
    let keys = files.filter_map(|entry| {
        let name = String::from_utf8(entry.name).ok()?;
        Some((name.strip_suffix(SUFFIX)?.to_owned(), entry.size_bytes))
    });
    let keys: Vec<(String, u64)> = keys.collect();
    let others = all.saturating_sub(keys.len());
    Ok((keys, u64::try_from(others).unwrap_or(u64::MAX)))
}
