//! `fs.move`.

use std::sync::Arc;

use syscap_format::{
    Amounts, Canonical, Dimension, EffectClass, Item, Manifest, MapBuilder, Param, ParamType,
    Reason, Refused, Rights, TxOutcome,
};
use syscap_kernel::{Demands, Inspect, Request};

use super::condition::{Look, held};
use super::path::{Ending, Place};
use super::{manifest, refusal};
use crate::beneath::{
    Charge, Effect, Existing, FolderMode, FsError, Opener, Parents, Refused as NoMore, Rename,
    Renamed,
};
use crate::calls::{ChangeBy, ChangeCall, Changed};
use crate::turns::wait_of;

/// The rights that a file needs where it is taken from. Elsewhere the agent may be able to read it:
/// moved out of a folder that it can only write to, it would be read.
const TAKEN: Rights = Rights::READ.union(Rights::WRITE);

/// `fs.move`: gives a file another name, in the same folder or another. Never a folder: what lies
/// in it may be another constraint's. Both paths are meant as they are written: no link is
/// followed.
#[derive(Debug)]
pub(super) struct MoveFile {
    from: Place,
    to: Place,
    existing: Existing,
    parents: Parents,
}

impl ChangeCall for MoveFile {
    type On = Arc<dyn Opener>;

    fn manifest() -> Option<Manifest> {
        let manifest = manifest("move", EffectClass::LocalWrite)?
            .described("Move a file", "Gives a file another name or another folder.")
            .param(Param::required("from", ParamType::Path, "The file.").within(1, 4_096))
            .param(Param::required("to", ParamType::Path, "Its new name.").within(1, 4_096))
            .param(Param::optional("replace", ParamType::Bool, "Replace a file that is there."))
            .param(Param::optional("parents", ParamType::Bool, "Make missing folders."));
        Some(manifest)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        let [from, to] = parse(request)?;
        let set = |name| request.args.get(name).and_then(Item::as_bool) == Some(true);
        let parents =
            if set("parents") { Parents::Create(FolderMode::Private) } else { Parents::Require };
        let folders = if set("parents") { to.depth() } else { 0 };
        let hold = Amounts::ZERO.with(Dimension::DiskFiles, folders);
        let demands = Demands { resources: vec![from.demand(), to.demand()], hold };
        Ok((
            Self {
                from,
                to,
                existing: if set("replace") { Existing::Replace } else { Existing::Refuse },
                parents,
            },
            demands,
        ))
    }

    fn inspector(
        request: &Request<'_>,
        base: &Self::On,
    ) -> Result<Option<Box<dyn Inspect>>, Refused> {
        Ok(Some(Box::new(Look::at(parse(request)?, base))))
    }

    fn run(&self, on: &Self::On, permit: &mut ChangeBy<'_, Self>) -> Changed {
        let not_done = |refused| (refused, Effect::NotDone);
        let from = self.from.file().map_err(|refused| not_done(refused.field("from")))?;
        let to = self.to.file().map_err(|refused| not_done(refused.field("to")))?;
        let places = [(&self.from, Existing::Replace), (&self.to, self.existing)];
        let [(source, of_file), (existing, of_old)] =
            held(permit.conditions(), places).map_err(not_done)?;
        if source == Existing::Refuse {
            return Err(not_done(Refused::new(Reason::Changed).field("from")));
        }
        let is_bound = existing != self.existing;
        let job = Rename { existing, expected: [of_file, of_old] };
        let wait = wait_of(permit.hold());
        let mut meter = |charge| match charge {
            Charge::Folder => permit.meter(Dimension::DiskFiles, 1).map_err(|_| NoMore),
            Charge::File | Charge::Bytes(_) => Ok(()),
        };
        let turns = on.turns(&from, &to, self.parents, wait, &mut meter);
        let renamed = turns.and_then(|turns| on.rename(turns, &job)).map_err(|failure| {
            let refused = match failure.error {
                // None was there when it was approved.
                FsError::Exists if is_bound => refusal(FsError::Changed).field("to"),
                FsError::Exists => refusal(FsError::Exists).field("to"),
                error => refusal(error).field("from"),
            };
            (refused, failure.effect)
        })?;
        Ok((result(&renamed), TxOutcome::Committed))
    }
}

fn parse(request: &Request<'_>) -> Result<[Place; 2], Refused> {
    let from = Place::parse_argument("from", request, Ending::File, TAKEN)?;
    let to = Place::parse_argument("to", request, Ending::File, Rights::WRITE)?;
    Ok([from, to])
}

/// `{size_bytes, replaced, folders}`.
fn result(renamed: &Renamed) -> Canonical {
    MapBuilder::new()
        .uint("folders", u64::from(renamed.folders))
        .boolean("replaced", renamed.replaced)
        .uint("size_bytes", renamed.size_bytes)
        .finish()
}
