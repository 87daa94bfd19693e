//! `fs.write`.

use std::sync::Arc;

use syscap_format::{
    Amounts, Canonical, Dimension, EffectClass, Item, Leaf, Manifest, MapBuilder, Param, ParamType,
    Reason, Refused, Rights, Seq, TxOutcome,
};
use syscap_kernel::{Broken, Demands, Finding, Inspect, Permit, Request, Resolve};

use super::condition::{Held, Look, held, sha256};
use super::path::{self, Ending, Place};
use super::{diff, manifest, refusal};
use crate::beneath::{
    Charge, Discarded, Effect, Existing, FolderMode, FsError, Location, OpenFile, Opener, Parents,
    Refused as NoMore, TempName, Write, WriteFailure, Written,
};
use crate::calls::{ChangeBy, ChangeCall, Changed};
use crate::turns::wait_of;

/// Most bytes that one call writes: what fits into an envelope.
pub const WRITE_BYTES_MAX: u64 = 1 << 20;

/// `fs.write`: creates or replaces a file, whole and durable or not at all.
#[derive(Debug)]
pub struct WriteFile {
    place: Place,
    content: Vec<u8>,
    existing: Existing,
    parents: Parents,
    shown: Shown,
}

impl ChangeCall for WriteFile {
    type On = Arc<dyn Opener>;

    fn manifest() -> Option<Manifest> {
        let manifest = manifest("write", EffectClass::LocalWrite)?
            .described("Write a file", "Creates or replaces a file with a text or with bytes.")
            .param(Param::required("path", ParamType::Path, "The file.").within(1, 4_096))
            .param(
                Param::optional("text", ParamType::Text, "Its new content, as text.")
                    .within(0, WRITE_BYTES_MAX),
            )
            .param(
                Param::optional("bytes", ParamType::Bytes, "Its new content, as bytes.")
                    .within(0, WRITE_BYTES_MAX),
            )
            .param(Param::optional(
                "create_only",
                ParamType::Bool,
                "Fail if there is a file already.",
            ))
            .param(Param::optional("parents", ParamType::Bool, "Make missing folders."))
            .param(Param::optional(
                "diff",
                ParamType::Bool,
                "Show what changed, as a unified diff: needs the right to read it too.",
            ));
        Some(manifest)
    }

    fn resolver(
        request: &Request<'_>,
        base: &Self::On,
    ) -> Result<Option<Box<dyn Resolve>>, Refused> {
        path::resolver(request, Ending::File, needs(request), base)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        let place = Place::parse(request, Ending::File, needs(request))?;
        let text = request.args.get("text").and_then(Item::as_text).map(str::as_bytes);
        let bytes = request.args.get("bytes").and_then(Item::as_byte_string);
        let content = match (text, bytes) {
            (Some(content), None) | (None, Some(content)) => content.to_vec(),
            _ => {
                let refused = Refused::new(Reason::BadArgument).field("text");
                let got = if text.is_some() { "text and bytes" } else { "nothing" };
                return Err(refused.got(got).allowed("exactly one of text and bytes"));
            }
        };
        let set = |name| is_set(request, name);
        let parents =
            if set("parents") { Parents::Create(FolderMode::Private) } else { Parents::Require };
        let existing = if set("create_only") { Existing::Refuse } else { Existing::Replace };
        let hold = uses(u64::try_from(content.len()).unwrap_or(u64::MAX), &place, parents);
        let demands = Demands { resources: vec![place.demand()], hold };
        Ok((
            Self {
                place,
                content,
                existing,
                parents,
                shown: if set("diff") { Shown::Difference } else { Shown::Nothing },
            },
            demands,
        ))
    }

    /// The file that would be replaced, by its digest, or that there is none.
    fn inspector(
        request: &Request<'_>,
        base: &Self::On,
    ) -> Result<Option<Box<dyn Inspect>>, Refused> {
        let place = Place::parse(request, Ending::File, needs(request))?;
        Ok(Some(Box::new(Look::at([place], base))))
    }

    /// The temporary file is there from before the first byte until it takes its name, in one step
    /// of the file system. So whoever takes it away has proved that the file was not written, and a
    /// run that is still on its way fails. If it is missing nothing is proved: the run may not have
    /// begun, or be done and the file have been changed since.
    fn probe(&self, on: &Self::On, broken: &Broken<'_>) -> Finding {
        match left_behind(&self.place, broken, on) {
            Some(size_bytes) => Finding::NotDone(uses(size_bytes, &self.place, self.parents)),
            None => Finding::Unknown,
        }
    }

    fn run(&self, on: &Self::On, permit: &mut ChangeBy<'_, Self>) -> Changed {
        let not_done = |refused| (refused, Effect::NotDone);
        let location = self.place.file().map_err(not_done)?;
        let temp = temp_name(permit.intent(), permit.leaf());
        let temp = temp.map_err(|error| not_done(refusal(error)))?;
        let [must] = held(permit.conditions(), [(&self.place, self.existing)]).map_err(not_done)?;
        let failed = |WriteFailure { error, effect, .. }, absent: bool| {
            let lacks_folder = matches!(error, FsError::NotFound);
            let refused = match (lacks_folder, self.parents) {
                // The file itself need not be there: a folder is missing.
                (true, Parents::Require) => {
                    Refused::new(Reason::NotFound).field("parents").got("false").allowed("true")
                }
                // None was there when it was approved.
                _ if absent && error == FsError::Exists => refusal(FsError::Changed),
                _ => refusal(error),
            };
            (refused, effect)
        };
        let wait = wait_of(permit.hold());
        let turn = on.turn(&location, self.parents, &self.content, wait, &mut meter_of(permit));
        let turn = turn.map_err(|failure| failed(failure, false))?;
        let made = if turn.folders() == 0 { Effect::NotDone } else { Effect::Partly };
        let (before, (existing, expected)) = match self.shown {
            Shown::Nothing => (None, must),
            Shown::Difference => {
                self.look(&**on, permit, &location, must).map_err(|refused| (refused, made))?
            }
        };
        let absent = existing != self.existing;
        let job = Write {
            content: &self.content,
            existing,
            expected,
            made_from: before.as_ref().and_then(|before| before.file.as_ref()),
            temp: &temp,
            label: permit.live().label,
        };
        let written = on.write(turn, &job, &mut meter_of(permit));
        let written = written.map_err(|failure| failed(failure, absent))?;
        let diff = before.and_then(|before| diff::unified(&before.bytes, &self.content));
        Ok((result(&written, diff.as_deref()), TxOutcome::Committed))
    }
}

fn is_set(request: &Request<'_>, name: &str) -> bool {
    request.args.get(name).and_then(Item::as_bool) == Some(true)
}

/// The rights by which the file is opened. A caller that is shown a change has read the earlier
/// content.
fn needs(request: &Request<'_>) -> Rights {
    if is_set(request, "diff") { Rights::READ.union(Rights::WRITE) } else { Rights::WRITE }
}

/// Takes away the temporary file of a run that was broken off; its size, where it was there.
/// Without it nothing was proved: the call stands as unknown, charged in full.
pub(super) fn left_behind(
    place: &Place,
    broken: &Broken<'_>,
    base: &Arc<dyn Opener>,
) -> Option<u64> {
    let (location, temp) = (place.file().ok()?, temp_name(broken.intent, broken.leaf).ok()?);
    match base.discard(&location, &temp) {
        Ok(Discarded::Removed { size_bytes }) => Some(size_bytes),
        _ => None,
    }
}

/// Counts what a write is about to use.
pub(crate) fn meter_of<P>(permit: &mut Permit<'_, P>) -> impl FnMut(Charge) -> Result<(), NoMore> {
    |charge| {
        let (dimension, amount) = match charge {
            Charge::Folder | Charge::File => (Dimension::DiskFiles, 1),
            Charge::Bytes(bytes) => (Dimension::DiskWriteBytes, bytes),
        };
        permit.meter(dimension, amount).map_err(|_| NoMore)
    }
}

/// The name of a run's temporary file. The leaf tells homes that share a base apart, the intent
/// tells calls apart.
pub(crate) fn temp_name(intent: Seq, leaf: Leaf) -> Result<TempName, FsError> {
    let leaf = leaf.as_bytes().first_chunk::<8>().copied().unwrap_or_default();
    TempName::new(&format!("{intent}-{:016x}", u64::from_be_bytes(leaf)))
}

/// The most that a write of that size uses: how many folders it has to make is not known before.
fn uses(size_bytes: u64, place: &Place, parents: Parents) -> Amounts {
    let folders = match parents {
        Parents::Create(_) => place.depth(),
        Parents::Require => 0,
    };
    Amounts::ZERO
        .with(Dimension::DiskWriteBytes, size_bytes)
        .with(Dimension::DiskFiles, folders.saturating_add(1))
}

/// The part of the earlier content in a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Nothing,
    Difference,
}

impl WriteFile {
    /// Reads what is there, and holds the write to that: what is shown as changed was there up to
    /// the last moment. `None` where it is too large to be compared.
    fn look(
        &self,
        base: &dyn Opener,
        permit: &mut ChangeBy<'_, Self>,
        at: &Location,
        (existing, expected): Held,
    ) -> Result<(Option<Before>, Held), Refused> {
        let changed = || Refused::new(Reason::Changed).field("path");
        if existing == Existing::Refuse {
            return Ok((Some(Before::default()), (existing, expected)));
        }
        let file = match base.open_file(at, diff::TEXT_BYTES_MAX) {
            Ok(file) => file,
            Err(FsError::NotFound) if expected.is_some() => return Err(changed()),
            Err(FsError::NotFound) => {
                return Ok((Some(Before::default()), (Existing::Refuse, None)));
            }
            Err(FsError::TooLarge) => return Ok((None, (existing, expected))),
            Err(error) => return Err(refusal(error)),
        };
        permit.brings(file.label().map_err(refusal)?);
        let limit = usize::try_from(diff::TEXT_BYTES_MAX).unwrap_or(usize::MAX);
        let chunk = file.read(0, limit).map_err(refusal)?;
        let digest = sha256(&chunk.bytes);
        if chunk.more || expected.is_some_and(|expected| expected != digest) {
            return Err(changed());
        }
        let before = Before { bytes: chunk.bytes, file: Some(file) };
        Ok((Some(before), (existing, Some(digest))))
    }
}

/// The earlier content, and the file that it was read from.
#[derive(Default)]
struct Before {
    bytes: Vec<u8>,
    file: Option<OpenFile>,
}

/// `{size_bytes, created, folders, diff}`: nothing of what was there, unless `diff` was asked for.
/// A caller that may write need not be one that may read.
fn result(written: &Written, diff: Option<&str>) -> Canonical {
    let map = MapBuilder::new()
        .boolean("created", !written.replaced)
        .uint("folders", u64::from(written.folders))
        .uint("size_bytes", written.size_bytes);
    match diff {
        Some(diff) => map.text("diff", diff).finish(),
        None => map.finish(),
    }
}
