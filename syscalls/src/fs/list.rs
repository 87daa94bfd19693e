//! `fs.list`.

use std::sync::Arc;

use syscap_format::{
    Canonical, EffectClass, Item, Manifest, MapBuilder, ObligationKind, Param, ParamType, Refused,
    Rights,
};
use syscap_kernel::{Demands, Request, Resolve};

use super::path::{self, Ending, Place};
use super::stat::kind_name;
use super::{manifest, refusal};
use crate::beneath::{Entry, Kind, Listing, Opener};
use crate::calls::{ReadBy, ReadCall};

/// Most names that one call lists.
pub const LIST_MAX: u64 = 5_000;

/// Most bytes of a result that are not its entries: keys and heads.
const FRAME_BYTES: usize = 64;

/// `fs.list`: the names in a folder.
#[derive(Debug)]
pub(super) struct ListFolder {
    place: Place,
    limit: usize,
}

impl ReadCall for ListFolder {
    type On = Arc<dyn Opener>;

    fn manifest() -> Option<Manifest> {
        let mut manifest = manifest("list", EffectClass::Read)?
            .described("List a folder", "Lists the names in a folder.")
            .param(
                Param::optional("path", ParamType::Path, "The folder; the workspace if absent.")
                    .within(1, 4_096)
                    .or(Canonical::text(".")),
            )
            .param(
                Param::optional("limit", ParamType::Int, "How many names at most.")
                    .within(1, LIST_MAX),
            )
            .honours(ObligationKind::ResultCap);
        manifest.result_bytes_max = 2 << 20;
        Some(manifest)
    }

    fn resolver(
        request: &Request<'_>,
        base: &Self::On,
    ) -> Result<Option<Box<dyn Resolve>>, Refused> {
        path::resolver(request, Ending::Folder, Rights::READ, base)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        let place = Place::parse(request, Ending::Folder, Rights::READ)?;
        let limit = request.args.get("limit").and_then(Item::as_uint).unwrap_or(1_000);
        let demands = Demands { resources: vec![place.demand()], ..Demands::default() };
        Ok((
            Self { place, limit: usize::try_from(limit.min(LIST_MAX)).unwrap_or(usize::MAX) },
            demands,
        ))
    }

    fn run(&self, on: &Self::On, permit: &mut ReadBy<'_, Self>) -> Result<Canonical, Refused> {
        let listing = on.list(&self.place.location()?, self.limit).map_err(refusal)?;
        Ok(result(&listing, permit.result_bytes_max()))
    }
}

/// `{entries: [{name | name_bytes, kind, size_bytes?}], truncated}`: a name that is not UTF-8
/// stands as bytes, so that two names never become one.
fn result(listing: &Listing, bytes_max: usize) -> Canonical {
    let mut room = bytes_max.saturating_sub(FRAME_BYTES);
    let mut entries = Vec::with_capacity(listing.entries.len());
    // A policy may ask for less: then names are left out, and `truncated` says so.
    for entry in listing.entries.iter().map(entry) {
        match room.checked_sub(entry.as_bytes().len()) {
            Some(left) => room = left,
            None => break,
        }
        entries.push(entry);
    }
    let truncated = listing.truncated || entries.len() < listing.entries.len();
    MapBuilder::new()
        .item("entries", Canonical::list(entries.into_iter()).item())
        .boolean("truncated", truncated)
        .finish()
}

fn entry(entry: &Entry) -> Canonical {
    let map = MapBuilder::new().text("kind", kind_name(entry.kind));
    let map = match std::str::from_utf8(&entry.name) {
        Ok(name) => map.text("name", name),
        Err(_) => map.bytes("name_bytes", &entry.name),
    };
    match entry.kind {
        Kind::File => map.uint("size_bytes", entry.size_bytes).finish(),
        _ => map.finish(),
    }
}
