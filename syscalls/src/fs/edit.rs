//! `fs.edit`.

use std::sync::Arc;

use syscap_format::{
    Amounts, Dimension, EffectClass, Item, Manifest, MapBuilder, Param, ParamType, Reason, Refused,
    Rights, TxOutcome,
};
use syscap_kernel::{Broken, Condition, Demands, Finding, Inspect, Request, Resolve};

use super::condition::{Look, held, sha256};
use super::path::{self, Ending, Place};
use super::write::{left_behind, meter_of, temp_name};
use super::{diff, manifest, refusal};
use crate::beneath::{Effect, Existing, Opener, Parents, Write};
use crate::calls::{ChangeBy, ChangeCall, Changed};
use crate::turns::wait_of;

/// Largest file that is edited: what a write can make.
pub const EDIT_BYTES_MAX: u64 = 1 << 20;
/// The size up to which one is edited where the call doesn't say; so much is set aside of the
/// budget, since the file is written anew.
const EDIT_BYTES_DEFAULT: u64 = 256 << 10;
/// Longest text that is replaced, in bytes.
const OLD_BYTES_MAX: u64 = 64 << 10;

/// The rights that the file is read and written by.
const BOTH: Rights = Rights::READ.union(Rights::WRITE);

/// `fs.edit`: replaces one text in a file by another. The text must stand there exactly once, so
/// that nothing is changed that was not meant; and the file must be what was read up to the last
/// moment before it is replaced.
#[derive(Debug)]
pub(super) struct EditFile {
    place: Place,
    old: Box<str>,
    new: Box<str>,
    max_bytes: u64,
}

impl ChangeCall for EditFile {
    type On = Arc<dyn Opener>;

    fn manifest() -> Option<Manifest> {
        let manifest = manifest("edit", EffectClass::LocalWrite)?
            .described("Edit a file", "Replaces a text, which must stand in the file just once.")
            .param(Param::required("path", ParamType::Path, "The file.").within(1, 4_096))
            .param(
                Param::required("old", ParamType::Text, "The text to replace.")
                    .within(1, OLD_BYTES_MAX),
            )
            .param(
                Param::required("new", ParamType::Text, "What takes its place.")
                    .within(0, EDIT_BYTES_MAX),
            )
            .param(
                Param::optional(
                    "max_bytes",
                    ParamType::Int,
                    "Largest size of the file, before and after: so much is set aside. 262144 if \
                     absent.",
                )
                .within(1, EDIT_BYTES_MAX),
            );
        Some(manifest)
    }

    fn resolver(
        request: &Request<'_>,
        base: &Self::On,
    ) -> Result<Option<Box<dyn Resolve>>, Refused> {
        path::resolver(request, Ending::File, BOTH, base)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        let place = Place::parse(request, Ending::File, BOTH)?;
        let text = |name| request.args.get(name).and_then(Item::as_text);
        let (Some(old), Some(new)) = (text("old"), text("new")) else {
            return Err(Refused::new(Reason::MissingArgument).field("old").allowed("old and new"));
        };
        if old == new {
            let refused = Refused::new(Reason::BadArgument).field("new");
            return Err(refused.got("the text of old").allowed("another text than old"));
        }
        let max_bytes = request.args.get("max_bytes").and_then(Item::as_uint);
        let max_bytes = max_bytes.unwrap_or(EDIT_BYTES_DEFAULT).min(EDIT_BYTES_MAX);
        let hold = Amounts::ZERO.with(Dimension::DiskWriteBytes, max_bytes);
        let demands = Demands { resources: vec![place.demand()], hold };
        Ok((Self { place, old: Box::from(old), new: Box::from(new), max_bytes }, demands))
    }

    fn inspector(
        request: &Request<'_>,
        base: &Self::On,
    ) -> Result<Option<Box<dyn Inspect>>, Refused> {
        let place = Place::parse(request, Ending::File, BOTH)?;
        Ok(Some(Box::new(Look::at([place], base))))
    }

    /// As of `fs.write`.
    fn probe(&self, on: &Self::On, broken: &Broken<'_>) -> Finding {
        match left_behind(&self.place, broken, on) {
            Some(size_bytes) => {
                Finding::NotDone(Amounts::ZERO.with(Dimension::DiskWriteBytes, size_bytes))
            }
            None => Finding::Unknown,
        }
    }

    fn run(&self, on: &Self::On, permit: &mut ChangeBy<'_, Self>) -> Changed {
        let not_done = |refused| (refused, Effect::NotDone);
        let location = self.place.file().map_err(not_done)?;
        let temp = temp_name(permit.intent(), permit.leaf());
        let temp = temp.map_err(|error| not_done(refusal(error)))?;
        // Nobody else changes what is read until it is written.
        let wait = wait_of(permit.hold());
        let turn = on.turn(&location, Parents::Require, &[], wait, &mut meter_of(permit));
        let turn = turn.map_err(|failure| (refusal(failure.error), failure.effect))?;
        let opened = on.open_file(&location, self.max_bytes);
        let file = opened.map_err(|error| not_done(refusal(error)))?;
        let label = file.label().map_err(|error| not_done(refusal(error)))?;
        permit.brings(label);
        let limit = usize::try_from(self.max_bytes).unwrap_or(usize::MAX);
        let before = file.read(0, limit).map_err(|error| not_done(refusal(error)))?;
        // Of what was read, and of nothing that was read another time.
        let digest = sha256(&before.bytes);
        self.expect(permit.conditions(), &digest).map_err(not_done)?;
        let (at, after) = self.apply(&before.bytes).map_err(not_done)?;
        // Written is what is made of what was read, only while the file is still that.
        let job = Write {
            content: &after,
            existing: Existing::Replace,
            expected: Some(digest),
            made_from: Some(&file),
            temp: &temp,
            label: permit.live().label.join(label),
        };
        let written = on.write(turn, &job, &mut meter_of(permit));
        let written = written.map_err(|failure| (refusal(failure.error), failure.effect))?;
        let lines = before.bytes.get(..at).unwrap_or_default();
        let line = lines.iter().filter(|byte| **byte == b'\n').count().saturating_add(1);
        let map = MapBuilder::new()
            .uint("line", u64::try_from(line).unwrap_or(u64::MAX))
            .uint("size_bytes", written.size_bytes);
        let map = match diff::unified(&before.bytes, &after) {
            Some(diff) => map.text("diff", &diff),
            None => map,
        };
        Ok((map.finish(), TxOutcome::Committed))
    }
}

impl EditFile {
    /// Checks that the file read is the approved one.
    fn expect(&self, conditions: &[Condition], digest: &[u8; 32]) -> Result<(), Refused> {
        let [(existing, expected)] = held(conditions, [(&self.place, Existing::Replace)])?;
        let is_other = expected.is_some_and(|expected| expected != *digest);
        if existing == Existing::Refuse || is_other {
            return Err(Refused::new(Reason::Changed).field("path"));
        }
        Ok(())
    }

    /// The position of the text, and the content with the other in its place.
    fn apply(&self, before: &[u8]) -> Result<(usize, Vec<u8>), Refused> {
        let (at, after) = replaced(before, &self.old, &self.new)?;
        let size = u64::try_from(after.len()).unwrap_or(u64::MAX);
        if size > self.max_bytes {
            let refused = Refused::new(Reason::FileTooLarge).field("max_bytes");
            let refused = refused.got(&format!("{size} bytes after the edit"));
            return Err(refused.allowed(&format!("at most {} bytes", self.max_bytes)));
        }
        Ok((at, after))
    }
}

/// The position of a text that stands in a content just once, and the content with another in its
/// place.
pub(super) fn replaced(before: &[u8], old: &str, new: &str) -> Result<(usize, Vec<u8>), Refused> {
    let refused = |got: &str| {
        let refused = Refused::new(Reason::NoMatch).field("old").got(got);
        refused.allowed("a text that stands in the file once")
    };
    let text = std::str::from_utf8(before).map_err(|_| refused("a file that is no text"))?;
    let at = text.find(old).ok_or_else(|| refused("not in the file"))?;
    if text.rfind(old) != Some(at) {
        return Err(refused("more than once in the file"));
    }
    let (head, rest) = text.split_at_checked(at).ok_or_else(|| refused("no place"))?;
    let tail = rest.strip_prefix(old).ok_or_else(|| refused("no place"))?;
    Ok((at, [head, new, tail].concat().into_bytes()))
}
