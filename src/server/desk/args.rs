//! The arguments of a use, and its call.

use syscap_format::{
    Canonical, IdempotencyKey, ItemKind, Manifest, MapBuilder, Reason, Source, TRACE_BYTES_MAX,
};

use crate::Error;
use crate::server::desk::refused;
use crate::tools::commands::{FOLDER, PLACE, is_shell};
use crate::tools::host::uses::ToolUse;

/// The arguments, with the folder where they are used. That is the client's word, and of shells only:
/// what a model wrote of that name is refused.
pub(super) fn placed(used: &ToolUse, manifest: &Manifest) -> Result<Canonical, Error> {
    let own = used.args.item();
    let is_map = |place: &Canonical| place.item().kind() == ItemKind::Map;
    let fine = match is_shell(manifest) {
        true => own.get(PLACE).is_none() && used.place.as_ref().is_none_or(is_map),
        false => used.place.is_none(),
    };
    if !fine {
        return Err(refused(Reason::BadArgument, PLACE));
    }
    // A hook of an older version tells more, by which nothing is decided any more.
    let folder = used.place.as_ref().and_then(|place| place.item().get(FOLDER)?.as_text());
    let Some(folder) = folder else { return Ok(used.args.clone()) };
    let map = own.entries().fold(MapBuilder::new(), |map, (key, value)| map.item(key, value));
    let place = MapBuilder::new().text(FOLDER, folder).finish();
    Ok(map.item(PLACE, place.item()).finish())
}

/// True if a call has the arguments that were sent; a missing one may have been null.
pub(super) fn is_sent(sent: &Canonical, called: &Canonical) -> bool {
    let (sent, called) = (sent.item(), called.item());
    let there = sent.entries().filter(|(key, value)| !value.is_null() || called.get(key).is_some());
    there.eq(called.entries())
}

pub(super) fn envelope(used: &ToolUse, args: &Canonical) -> Vec<u8> {
    // As they are: what looks like a reference is the client's own affair, and what is judged
    // must be what it runs.
    let args = MapBuilder::new().item("$lit", args.item()).finish();
    let map = MapBuilder::new().text("tool_id", used.tool.as_str()).item("args", args.item());
    // A name of the client's own is a key, where it is of that form: a use that is told of twice
    // is made once.
    let key = used.id.as_deref().filter(|id| IdempotencyKey::new(id).is_some());
    let map = match key {
        Some(key) => map.text("idempotency_key", key),
        None => map,
    };
    let part = used.part.as_deref().filter(|part| part.len() <= TRACE_BYTES_MAX);
    let map = match part {
        Some(part) => {
            let from = MapBuilder::new().text("source", Source::Agent.name()).text("trace", part);
            map.item("provenance", from.finish().item())
        }
        None => map,
    };
    map.finish().into_bytes()
}
