//! `fs.list`.

use std::sync::Arc;

use syscap_format::{
    Canonical, EffectClass, Item, Manifest, MapBuilder, ObligationKind, Param, ParamType, Refused,
    Rights, TxOutcome,
};
use syscap_kernel::{Demands, Ran, ReadPermit, ReadPlan, ReadTool, Request, Resolve};

use super::path::{self, Ending, Place};
use super::stat::kind_name;
use super::{manifest, refusal};
use crate::beneath::{Entry, Kind, Listing, Opener};

/// Most names that one call lists.
pub const LIST_MAX: u64 = 5_000;

/// Most bytes of a result that are not its entries: keys and heads.
const FRAME_BYTES: usize = 64;

/// `fs.list`: the names in a folder.
#[derive(Debug)]
pub struct FsList {
    manifest: Manifest,
    base: Arc<dyn Opener>,
}

impl FsList {
    pub(super) fn new(base: Arc<dyn Opener>) -> Option<Self> {
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
        Some(Self { manifest: base.promised(manifest), base })
    }
}

impl ReadTool for FsList {
    type Plan = FsListPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn resolver(&self, request: &Request<'_>) -> Result<Option<Box<dyn Resolve>>, Refused> {
        path::resolver(request, Ending::Folder, Rights::READ, &self.base)
    }

    fn plan(&self, request: &Request<'_>) -> Result<FsListPlan, Refused> {
        let place = Place::parse(request, Ending::Folder, Rights::READ)?;
        let limit = request.args.get("limit").and_then(Item::as_uint).unwrap_or(1_000);
        Ok(FsListPlan {
            demands: Demands { resources: vec![place.demand()], ..Demands::default() },
            place,
            limit: usize::try_from(limit.min(LIST_MAX)).unwrap_or(usize::MAX),
            base: Arc::clone(&self.base),
        })
    }
}

/// A planned `fs.list`.
#[derive(Debug)]
pub struct FsListPlan {
    demands: Demands,
    place: Place,
    limit: usize,
    base: Arc<dyn Opener>,
}

impl ReadPlan for FsListPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, mut permit: ReadPermit<'_, Self>) -> Ran<'_> {
        permit.enforced_by(self.base.enforcement());
        let listing = self
            .place
            .location()
            .and_then(|location| self.base.list(&location, self.limit).map_err(refusal));
        match listing {
            Ok(listing) => {
                let result = result(&listing, permit.result_bytes_max());
                permit.ok(result, TxOutcome::NoOp)
            }
            Err(refused) => permit.failed(refused, TxOutcome::NoOp),
        }
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
