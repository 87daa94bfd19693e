//! The observations of a check: files, hits, exports.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::run::{Run, Sent, Stop, Table, bad, text};
use crate::subject::Answer;
use crate::world::{World, files_below, is_plain};

/// How long an effect may be late that is due.
pub(crate) const LATE: Duration = Duration::from_millis(100);

impl Run<'_, '_> {
    /// Checks the rules of every check: nothing outside was touched, and each claimed effect was
    /// made.
    pub(crate) fn effects_are_within(&self) -> Result<(), Stop> {
        if let Some(path) = self.world.changed()? {
            return Err(Stop::Fails(format!("{path} was touched")));
        }
        let is_there = |(effect, times): (&String, &u64)| match effect.split_once(' ') {
            // Where names are exchanged a path is another file's a moment later.
            Some(("file", path)) => self.was_raced || !is_plain(path) || self.world.has(path, None),
            Some((_, path)) => self.world.hits(path) >= *times,
            None => true,
        };
        let lacks = || self.said.iter().find(|said| !is_there(*said)).map(|(effect, _)| effect);
        let deadline = Instant::now().checked_add(LATE);
        while let Some(effect) = lacks() {
            if deadline.is_none_or(|at| Instant::now() > at) {
                return Err(Stop::Fails(format!("it says that it did, and did not: {effect}")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    pub(crate) fn never(&mut self, what: &Table) -> Result<(), Stop> {
        if self.holds(what)? {
            return Err(Stop::Fails(format!("seen: {}", Value::Object(what.clone()))));
        }
        Ok(())
    }

    pub(crate) fn must(&mut self, what: &Table) -> Result<(), Stop> {
        // What a subject is a moment late with is waited for, a little.
        let deadline = Instant::now().checked_add(LATE);
        loop {
            if self.holds(what)? {
                return Ok(());
            }
            if deadline.is_none_or(|at| Instant::now() > at) || what.contains_key("export") {
                let what = Value::Object(what.clone());
                return Err(Stop::Unproved(format!("not seen: {what}")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// True if something is seen: in the world, in an answer, or in an export.
    fn holds(&self, what: &Table) -> Result<bool, Stop> {
        if let Some(is_seen) = seen(&self.world, what)? {
            return Ok(is_seen);
        }
        let export = |name: &str| {
            self.exports.get(name).ok_or_else(|| Stop::Unproved(format!("no export {name}")))
        };
        if what.contains_key("told") {
            let answer = self.sent.get(text(what, "told")?).and_then(|sent| sent.answer.as_ref());
            let within = text(what, "text")?;
            return Ok(
                matches!(answer, Some(Answer::Done(value)) if value.to_string().contains(within)),
            );
        } else if what.contains_key("turned_away") {
            let away = |sent: &Sent| matches!(sent.answer, None | Some(Answer::Refused(_)));
            return Ok(self.sent.values().any(away));
        }
        let of = export(text(what, "export")?)?;
        if what.contains_key("records") {
            Ok(is_above(what, of.count(text(what, "records")?)))
        } else if what.contains_key("fewer") {
            let than = what.get("than").and_then(Value::as_u64).ok_or_else(|| bad(what))?;
            Ok(of.count(text(what, "fewer")?) < than)
        } else if what.contains_key("unrecorded") {
            let hits = self.world.all_hits().into_iter().map(|(_, hits)| hits);
            Ok(hits.fold(0, u64::saturating_add) > of.count(text(what, "unrecorded")?))
        } else if what.contains_key("files_beyond") {
            Ok(self.world.files_within()? > of.count(text(what, "files_beyond")?))
        } else if what.contains_key("departs") {
            Ok(!of.bytes.starts_with(&export(text(what, "departs")?)?.bytes))
        } else if what.contains_key("within") {
            let (text, name) = (text(what, "within")?, text(what, "export")?);
            let has =
                |bytes: Vec<u8>| bytes.windows(text.len()).any(|part| part == text.as_bytes());
            // What can't be read holds it, for all that can be told.
            Ok(files_below(self.world.export(name)).map_or(true, |files| {
                files.into_iter().any(|(_, path)| fs::read(path).map_or(true, has))
            }))
        } else if what.contains_key("open_at_kill") {
            Ok(self.was_killed && of.was_open)
        } else {
            Err(bad(what))
        }
    }
}

/// True if a count is above the given one, or above 0.
fn is_above(what: &Table, found: u64) -> bool {
    found > what.get("above").and_then(Value::as_u64).unwrap_or(0)
}

/// An observation of the world: files, hits, a count. `None` where it is of something else.
pub(crate) fn seen(world: &World<'_>, what: &Table) -> Result<Option<bool>, Stop> {
    let list = |key: &str| -> Result<Vec<&str>, Stop> {
        let list = what.get(key).and_then(Value::as_array).ok_or_else(|| bad(what))?;
        Ok(list.iter().filter_map(Value::as_str).collect())
    };
    let is_seen = if what.contains_key("file") {
        world.has(text(what, "file")?, what.get("text").and_then(Value::as_str))
    } else if what.contains_key("files") {
        let there = list("files")?.into_iter().filter(|path| world.has(path, None));
        is_above(what, u64::try_from(there.count()).unwrap_or(u64::MAX))
    } else if what.contains_key("hits") {
        is_above(what, world.hits(text(what, "hits")?))
    } else if what.contains_key("both") {
        let hits = list("both")?.into_iter().map(|path| world.hits(path));
        is_above(what, hits.fold(0, u64::saturating_add))
    } else if what.contains_key("beside") {
        let known = list("beside")?;
        let found = world.all_hits();
        found.iter().any(|(path, _)| !known.contains(&format!("/{path}").as_str()))
    } else if what.contains_key("counted") {
        is_above(what, world.counted())
    } else {
        return Ok(None);
    };
    Ok(Some(is_seen))
}
