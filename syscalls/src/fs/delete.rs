//! `fs.delete`.

use std::sync::Arc;

use syscap_format::{
    EffectClass, Item, Manifest, MapBuilder, Param, ParamType, Reason, Refused, Rights, TxOutcome,
};
use syscap_kernel::{Demands, Inspect, Permit, Plan, Ran, Request, Tool};

use super::condition::{Look, held};
use super::path::{Ending, Place};
use super::{manifest, refusal, tx_of};
use crate::beneath::{Effect, Existing, Opener, Parents, Removal};
use crate::turns::wait_of;

/// `fs.delete`: removes a file, or an empty folder. Never a tree: each file in it may be another
/// constraint's. A path is meant as it is written: the last name may be a link, which is removed
/// itself, and none on the way is followed.
#[derive(Debug)]
pub struct FsDelete {
    manifest: Manifest,
    base: Arc<dyn Opener>,
}

impl FsDelete {
    pub(super) fn new(base: Arc<dyn Opener>) -> Option<Self> {
        let manifest = manifest("delete", EffectClass::LocalWrite)?
            .described("Delete a file", "Removes a file, or an empty folder.")
            .param(Param::required("path", ParamType::Path, "What to remove.").within(1, 4_096))
            .param(Param::optional("folder", ParamType::Bool, "It is an empty folder."));
        Some(Self { manifest: base.promised(manifest), base })
    }
}

/// Of a folder the slash at the end says nothing more.
fn parse(request: &Request<'_>) -> Result<(Place, Removal), Refused> {
    let folder = request.args.get("folder").and_then(Item::as_bool) == Some(true);
    let (ending, what) = match folder {
        true => (Ending::Folder, Removal::EmptyFolder),
        false => (Ending::File, Removal::File),
    };
    Ok((Place::parse(request, ending, Rights::WRITE)?, what))
}

impl Tool for FsDelete {
    type Plan = FsDeletePlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<FsDeletePlan, Refused> {
        let (place, what) = parse(request)?;
        let demands = Demands { resources: vec![place.demand()], ..Demands::default() };
        Ok(FsDeletePlan { demands, place, what, base: Arc::clone(&self.base) })
    }

    fn inspector(&self, request: &Request<'_>) -> Result<Option<Box<dyn Inspect>>, Refused> {
        let (place, what) = parse(request)?;
        Ok(match what {
            Removal::File => Some(Box::new(Look::at([place], &self.base))),
            Removal::EmptyFolder => None,
        })
    }
}

/// A planned `fs.delete`.
#[derive(Debug)]
pub struct FsDeletePlan {
    demands: Demands,
    place: Place,
    what: Removal,
    base: Arc<dyn Opener>,
}

impl Plan for FsDeletePlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, mut permit: Permit<'_, Self>) -> Ran<'_> {
        permit.enforced_by(self.base.enforcement());
        match self.remove(&permit) {
            Ok(()) => {
                permit.ok(MapBuilder::new().boolean("deleted", true).finish(), TxOutcome::Committed)
            }
            Err((refused, effect)) => permit.failed(refused, tx_of(effect)),
        }
    }
}

impl FsDeletePlan {
    fn remove(&self, permit: &Permit<'_, Self>) -> Result<(), (Refused, Effect)> {
        let not_done = |refused| (refused, Effect::NotDone);
        let location = self.place.file().map_err(not_done)?;
        let [(existing, digest)] =
            held(permit.conditions(), [(&self.place, Existing::Replace)]).map_err(not_done)?;
        if existing == Existing::Refuse {
            // None was there when it was approved: whatever is there now, nobody has seen it.
            return Err(not_done(Refused::new(Reason::Changed).field("path")));
        }
        let wait = wait_of(permit.hold());
        let turn = self.base.turn(&location, Parents::Require, &[], wait, &mut |_| Ok(()));
        let removed = turn.and_then(|turn| self.base.remove(turn, self.what, digest));
        removed.map_err(|failure| (refusal(failure.error), failure.effect))
    }
}
