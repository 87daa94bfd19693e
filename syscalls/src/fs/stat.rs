//! `fs.stat`.

use std::sync::Arc;

use syscap_format::{
    Canonical, EffectClass, Item, Manifest, MapBuilder, Param, ParamType, Refused, Rights,
};
use syscap_kernel::{Demands, Request, Resolve};

use super::condition::hex;
use super::path::{self, Ending, Place};
use super::{manifest, refusal};
use crate::beneath::{DIGEST_BYTES_MAX, Kind, Metadata, Opener};
use crate::calls::{ReadBy, ReadCall};

/// `fs.stat`: what stands at a path. To look is to read: it needs the same right.
#[derive(Debug)]
pub(super) struct LookAt {
    place: Place,
    digest: bool,
}

impl ReadCall for LookAt {
    type On = Arc<dyn Opener>;

    fn manifest() -> Option<Manifest> {
        let manifest = manifest("stat", EffectClass::Read)?
            .described("Look at a path", "Says what stands at a path, its size and its age.")
            .param(Param::required("path", ParamType::Path, "The file or folder.").within(1, 4_096))
            .param(Param::optional(
                "digest",
                ParamType::Bool,
                "Also give the SHA-256 of a file of up to 16 MiB.",
            ));
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
        let demands = Demands { resources: vec![place.demand()], ..Demands::default() };
        Ok((
            Self {
                place,
                digest: request.args.get("digest").and_then(Item::as_bool) == Some(true),
            },
            demands,
        ))
    }

    fn run(&self, on: &Self::On, permit: &mut ReadBy<'_, Self>) -> Result<Canonical, Refused> {
        let location = self.place.location()?;
        let seen = on.metadata(&location).map_err(refusal)?;
        let digest = if self.digest && seen.kind == Kind::File {
            let file = on.open_file(&location, DIGEST_BYTES_MAX).map_err(refusal)?;
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

/// The name of a kind in results.
pub(super) const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Directory => "folder",
        Kind::Link => "link",
        Kind::Other => "other",
    }
}
