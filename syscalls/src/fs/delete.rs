//! `fs.delete`.

use std::sync::Arc;

use syscap_format::{
    EffectClass, Item, Manifest, MapBuilder, Param, ParamType, Reason, Refused, Rights, TxOutcome,
};
use syscap_kernel::{Demands, Inspect, Request};

use super::condition::{Look, held};
use super::path::{Ending, Place};
use super::{manifest, refusal};
use crate::beneath::{Effect, Existing, Opener, Parents, Removal};
use crate::calls::{ChangeBy, ChangeCall, Changed};
use crate::turns::wait_of;

/// A folder may end in a slash.
fn parse(request: &Request<'_>) -> Result<(Place, Removal), Refused> {
    let folder = request.args.get("folder").and_then(Item::as_bool) == Some(true);
    let (ending, what) = match folder {
        true => (Ending::Folder, Removal::EmptyFolder),
        false => (Ending::File, Removal::File),
    };
    Ok((Place::parse(request, ending, Rights::WRITE)?, what))
}

/// `fs.delete`: removes a file, or an empty folder. Never a tree: each file in it may be another
/// constraint's. A path is meant as it is written: the last name may be a link, which is removed
/// itself, and none on the way is followed.
#[derive(Debug)]
pub(super) struct DeletePath {
    place: Place,
    what: Removal,
}

impl ChangeCall for DeletePath {
    type On = Arc<dyn Opener>;

    fn manifest() -> Option<Manifest> {
        let manifest = manifest("delete", EffectClass::LocalWrite)?
            .described("Delete a file", "Removes a file, or an empty folder.")
            .param(Param::required("path", ParamType::Path, "What to remove.").within(1, 4_096))
            .param(Param::optional("folder", ParamType::Bool, "It is an empty folder."));
        Some(manifest)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        let (place, what) = parse(request)?;
        let demands = Demands { resources: vec![place.demand()], ..Demands::default() };
        Ok((Self { place, what }, demands))
    }

    fn inspector(
        request: &Request<'_>,
        base: &Self::On,
    ) -> Result<Option<Box<dyn Inspect>>, Refused> {
        let (place, what) = parse(request)?;
        Ok(match what {
            Removal::File => Some(Box::new(Look::at([place], base))),
            Removal::EmptyFolder => None,
        })
    }

    fn run(&self, on: &Self::On, permit: &mut ChangeBy<'_, Self>) -> Changed {
        let not_done = |refused| (refused, Effect::NotDone);
        let location = self.place.file().map_err(not_done)?;
        let [(existing, digest)] =
            held(permit.conditions(), [(&self.place, Existing::Replace)]).map_err(not_done)?;
        if existing == Existing::Refuse {
            // None was there when it was approved: whatever is there now, nobody has seen it.
            return Err(not_done(Refused::new(Reason::Changed).field("path")));
        }
        let wait = wait_of(permit.hold());
        let turn = on.turn(&location, Parents::Require, &[], wait, &mut |_| Ok(()));
        let removed = turn.and_then(|turn| on.remove(turn, self.what, digest));
        removed.map_err(|failure| (refusal(failure.error), failure.effect))?;
        Ok((MapBuilder::new().boolean("deleted", true).finish(), TxOutcome::Committed))
    }
}
