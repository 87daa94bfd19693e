//! What a check looks at: files, hits, exports.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::run::{Run, Sent, Stop, Table, bad, text};
use crate::subject::Answer;

/// How long something that must be seen is waited for.
const LATE: Duration = Duration::from_millis(200);

impl Run<'_, '_> {
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

    /// Whether something is to be seen: a file, hits, a count, or a thing in an export.
    fn holds(&self, what: &Table) -> Result<bool, Stop> {
        let above = what.get("above").and_then(Value::as_u64);
        let count = |found: u64| found > above.unwrap_or(0);
        let export = |name: &str| {
            self.exports.get(name).ok_or_else(|| Stop::Unproved(format!("no export {name}")))
        };
        if what.contains_key("file") {
            let path = text(what, "file")?;
            return Ok(self.world.has(path, what.get("text").and_then(Value::as_str)));
        } else if what.contains_key("hits") {
            return Ok(count(self.world.server.hits(text(what, "hits")?)));
        } else if what.contains_key("beside") {
            let known = what.get("beside").and_then(Value::as_array).ok_or_else(|| bad(what))?;
            let paths = self.world.server.paths();
            return Ok(paths.iter().any(|path| !known.contains(&Value::from(path.as_str()))));
        } else if what.contains_key("both") {
            let paths = what.get("both").and_then(Value::as_array).ok_or_else(|| bad(what))?;
            let hits =
                paths.iter().filter_map(Value::as_str).map(|path| self.world.server.hits(path));
            return Ok(count(hits.fold(0, u64::saturating_add)));
        } else if what.contains_key("files") {
            let files = what.get("files").and_then(Value::as_array).ok_or_else(|| bad(what))?;
            let there =
                files.iter().filter_map(Value::as_str).filter(|path| self.world.has(path, None));
            return Ok(count(u64::try_from(there.count()).unwrap_or(u64::MAX)));
        } else if what.contains_key("told") {
            let answer = self.sent.get(text(what, "told")?).and_then(|sent| sent.answer.as_ref());
            let within = text(what, "text")?;
            return Ok(
                matches!(answer, Some(Answer::Done(value)) if value.to_string().contains(within)),
            );
        } else if what.contains_key("counted") {
            return Ok(count(self.world.server.counted()));
        } else if what.contains_key("turned_away") {
            let away = |sent: &&Sent| matches!(sent.answer, None | Some(Answer::Refused(_)));
            return Ok(self.sent.values().any(|sent| away(&sent)));
        } else if what.contains_key("answered") {
            let sent = self.sent.get(text(what, "answered")?);
            return Ok(sent.is_some_and(|sent| matches!(sent.answer, Some(Answer::Done(_)))));
        } else if what.contains_key("asked") {
            let sent = self.sent.get(text(what, "asked")?);
            return Ok(
                sent.is_some_and(|sent| matches!(sent.answer, Some(Answer::Refused(Some(_)))))
            );
        } else if what.contains_key("verdict") {
            return Ok(export(text(what, "export")?)?.verdict == text(what, "verdict")?);
        } else if what.contains_key("records") {
            return Ok(count(export(text(what, "export")?)?.count(text(what, "records")?)));
        } else if what.contains_key("fewer") {
            let than = what.get("than").and_then(Value::as_u64).ok_or_else(|| bad(what))?;
            return Ok(export(text(what, "export")?)?.count(text(what, "fewer")?) < than);
        } else if what.contains_key("unrecorded") {
            let kind = text(what, "unrecorded")?;
            return Ok(self.world.server.all() > export(text(what, "export")?)?.count(kind));
        } else if what.contains_key("files_beyond") {
            let kind = text(what, "files_beyond")?;
            return Ok(self.world.files_within()? > export(text(what, "export")?)?.count(kind));
        } else if what.contains_key("departs") {
            let (later, first) = (export(text(what, "export")?)?, export(text(what, "departs")?)?);
            return Ok(!later.bytes.starts_with(&first.bytes));
        } else if what.contains_key("within") {
            let (of, text) = (export(text(what, "export")?)?, text(what, "within")?);
            return Ok(of.bytes.windows(text.len()).any(|part| part == text.as_bytes()));
        } else if what.contains_key("open_at_kill") {
            return Ok(self.was_killed && export(text(what, "export")?)?.was_open);
        }
        Err(bad(what))
    }
}
