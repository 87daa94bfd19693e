//! `fs.stat`.

use std::sync::Arc;

use syscap_format::{
    Canonical, EffectClass, Item, Manifest, MapBuilder, Param, ParamType, Refused, Rights,
    TxOutcome,
};
use syscap_kernel::{Demands, Ran, ReadPermit, ReadPlan, ReadTool, Request, Resolve};

use super::condition::hex;
use super::path::{self, Ending, Place};
use super::{manifest, refusal};
use crate::beneath::{DIGEST_BYTES_MAX, Kind, Metadata, Opener};

/// `fs.stat`: what stands at a path. To look is to read: it needs the same right.
#[derive(Debug)]
pub struct FsStat {
    manifest: Manifest,
    base: Arc<dyn Opener>,
}

impl FsStat {
    pub(super) fn new(base: Arc<dyn Opener>) -> Option<Self> {
        let manifest = manifest("stat", EffectClass::Read)?
            .described("Look at a path", "Says what stands at a path, its size and its age.")
            .param(Param::required("path", ParamType::Path, "The file or folder.").within(1, 4_096))
            .param(Param::optional(
                "digest",
                ParamType::Bool,
                "Also give the SHA-256 of a file of up to 16 MiB.",
            ));
        Some(Self { manifest: base.promised(manifest), base })
    }
}

impl ReadTool for FsStat {
    type Plan = FsStatPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn resolver(&self, request: &Request<'_>) -> Result<Option<Box<dyn Resolve>>, Refused> {
        path::resolver(request, Ending::Folder, Rights::READ, &self.base)
    }

    fn plan(&self, request: &Request<'_>) -> Result<FsStatPlan, Refused> {
        let place = Place::parse(request, Ending::Folder, Rights::READ)?;
        Ok(FsStatPlan {
            demands: Demands { resources: vec![place.demand()], ..Demands::default() },
            place,
            digest: request.args.get("digest").and_then(Item::as_bool) == Some(true),
            base: Arc::clone(&self.base),
        })
    }
}

/// A planned `fs.stat`.
#[derive(Debug)]
pub struct FsStatPlan {
    demands: Demands,
    place: Place,
    digest: bool,
    base: Arc<dyn Opener>,
}

impl ReadPlan for FsStatPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, mut permit: ReadPermit<'_, Self>) -> Ran<'_> {
        permit.enforced_by(self.base.enforcement());
        match self.look(&mut permit) {
            Ok(result) => permit.ok(result, TxOutcome::NoOp),
            Err(refused) => permit.failed(refused, TxOutcome::NoOp),
        }
    }
}

impl FsStatPlan {
    fn look(&self, permit: &mut ReadPermit<'_, Self>) -> Result<Canonical, Refused> {
        let location = self.place.location()?;
        let seen = self.base.metadata(&location).map_err(refusal)?;
        let digest = if self.digest && seen.kind == Kind::File {
            let file = self.base.open_file(&location, DIGEST_BYTES_MAX).map_err(refusal)?;
            // A digest tells of the content.
            permit.brings(file.label().map_err(refusal)?);
            Some(file.digest().map_err(refusal)?)
        } else {
            None
        };
        Ok(result(&seen, digest))
    }
}

/// `{kind, size_bytes?, modified_ms?, writable?, sha256?}`: of what can't be opened its kind
/// alone.
fn result(seen: &Metadata, digest: Option<[u8; 32]>) -> Canonical {
    let map = MapBuilder::new().text("kind", kind_name(seen.kind));
    let map = match seen.kind {
        Kind::Link | Kind::Other => return map.finish(),
        Kind::File => map.uint("size_bytes", seen.size_bytes),
        Kind::Directory => map,
    };
    let map = map.boolean("writable", seen.writable).uint("modified_ms", seen.modified_ms);
    match digest {
        Some(digest) => map.text("sha256", &hex(&digest)).finish(),
        None => map.finish(),
    }
}

/// What a kind is called in results.
pub(super) const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Directory => "folder",
        Kind::Link => "link",
        Kind::Other => "other",
    }
}
