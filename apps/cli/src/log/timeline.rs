//! The log as a page shows it: a line a call, backwards from a cursor.
//!
//! A page is a stretch of records. A call's line stands where its outcome or its refusal does, and its
//! intent is read by number, so that no line needs more of the log than its own.

use std::path::Path;

use syscap::audit::{SqliteReader, rows_read};
use syscap::format::{ApprovalChannel, Body, EffectClass, Record, Seq};
use syscap::kernel::{Next, StoreError, record_at};

use super::answers::Answers;
use super::kept::Sides;
use super::line::who_and_what;
use super::select::{Select, call_of};
use super::settled::{By, Settled};
use super::whole::{self, About};
use crate::exit::Failure;
use crate::fields;
use crate::keys::name::KeyNames;
use crate::output::{Object, array};
use crate::parse;
use crate::signed::{self, SignedBy};

/// Records of a page.
const RECORDS: u64 = 600;

/// Which lines are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    select: Select,
}

impl Filter {
    /// From words, as the command line has them; the name of the one that is wrong.
    pub(crate) fn of(
        agent: Option<&str>,
        tool: Option<&str>,
        since: Option<&str>,
        refused: bool,
        outside: bool,
    ) -> Result<Self, &'static str> {
        let outside = if outside {
            let classes =
                [EffectClass::ExternalRead, EffectClass::ExternalWrite, EffectClass::Irreversible];
            classes.to_vec()
        } else {
            Vec::new()
        };
        let select = Select {
            agent: agent.map(parse::agent).transpose().map_err(|_| "agent")?,
            tool: tool.map(parse::tools).transpose().map_err(|_| "tool")?,
            classes: outside,
            refused,
            since: since.map(parse::age).transpose().map_err(|_| "since")?,
        };
        Ok(Self { select })
    }
}

/// The lines of the records before a cursor, the newest first, and where the next page ends. `None`
/// begins at the end of the log.
pub(crate) fn page(home: &Path, filter: &Filter, before: Option<Seq>) -> Result<String, Failure> {
    let failed = |error: StoreError| Failure::home(home)(syscap::Error::Home(error));
    let mut reader = SqliteReader::open(home).map_err(failed)?;
    let rows = rows_read();
    let head = reader.head().map_err(failed)?.map_or(Seq::GENESIS, |head| head.seq.next());
    let end = before.unwrap_or(head).min(head);
    let start = Seq::new(end.get().saturating_sub(RECORDS));
    let mut chunk = Vec::new();
    if start < end {
        let read = reader.records(start, &mut |seq, bytes| {
            chunk.push((seq, bytes.to_vec()));
            if seq.next() < end { Next::More } else { Next::Enough }
        });
        read.map_err(failed)?;
    }
    let oldest = filter.select.oldest();
    let is_over = |record: &Record| oldest.is_some_and(|oldest| record.time < oldest);
    let mut is_last = start == Seq::GENESIS;
    let mut page = Page { reader, names: signed::names(home), answers: Answers::default() };
    let mut lines = Vec::new();
    for (seq, bytes) in chunk.iter().rev() {
        let Ok(record) = Record::decode(bytes) else {
            // Newer software wrote it: it is there, as it stands.
            lines.push(unknown(*seq, bytes));
            continue;
        };
        if is_over(&record) {
            is_last = true;
            break;
        }
        lines.extend(page.line(&record, &filter.select).map_err(failed)?);
    }
    let next = if is_last { "null".to_owned() } else { start.to_string() };
    let read = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
    let object = Object::new().json("lines", &array(lines.into_iter().map(Object::finish)));
    let rows = rows_read().saturating_sub(rows);
    Ok(object.json("next", &next).uint("read", read).uint("rows", rows).finish())
}

/// One record whole, with arguments and result.
pub(crate) fn one(home: &Path, seq: Seq) -> Result<Option<String>, Failure> {
    let failed = |error: StoreError| Failure::home(home)(syscap::Error::Home(error));
    let mut reader = SqliteReader::open(home).map_err(failed)?;
    let Some(bytes) = bytes_of(&mut reader, seq).map_err(failed)? else { return Ok(None) };
    let Ok(record) = Record::decode(&bytes) else {
        return Ok(Some(fields::unknown(&bytes).finish()));
    };
    let asked = Answers::default().of(&record, &mut reader).map_err(failed)?;
    let sides = Sides::of(&record, &mut reader).map_err(failed)?;
    let names = signed::names(home);
    let by = SignedBy::of(&record, &names, Some(&mut reader)).map_err(failed)?;
    let about = About { asked, sides, by };
    whole::all(home, &mut reader, &record, &bytes, about).map(|object| Some(object.finish()))
}

/// The class of the tool that a record's call is of, by the manifest that it names.
pub(crate) fn class_of(home: &Path, seq: Seq) -> Result<Option<EffectClass>, Failure> {
    let failed = |error: StoreError| Failure::home(home)(syscap::Error::Home(error));
    let mut reader = SqliteReader::open(home).map_err(failed)?;
    let record = record_of(&mut reader, seq).map_err(failed)?;
    let Some(call) = record.as_ref().and_then(|record| call_of(&record.body)) else {
        return Ok(None);
    };
    let manifest = whole::manifest(&mut reader, call).map_err(failed)?;
    Ok(manifest.map(|manifest| manifest.effect))
}

/// A record that this program knows.
fn record_of(reader: &mut SqliteReader, seq: Seq) -> Result<Option<Record>, StoreError> {
    Ok(bytes_of(reader, seq)?.and_then(|bytes| Record::decode(&bytes).ok()))
}

/// True if a request may be answered by a click alone, where a person has allowed some: one signature
/// suffices, no level was asked for, it can be undone, no stranger's words reach outside by it, and no
/// argument is a program. By its own record, and by the manifest that this names.
pub(crate) fn is_minor(home: &Path, ask: Seq) -> Result<bool, Failure> {
    let failed = |error: StoreError| Failure::home(home)(syscap::Error::Home(error));
    let mut reader = SqliteReader::open(home).map_err(failed)?;
    let record = record_of(&mut reader, ask).map_err(failed)?;
    let Some(Record { body: Body::Ask(ask), .. }) = record else { return Ok(false) };
    let is_minor = |class| match class {
        EffectClass::Irreversible => false,
        EffectClass::ExternalWrite => !ask.label.is_untrusted(),
        _ => true,
    };
    let asks_all = ask.call.decision.as_ref().is_none_or(|it| it.asks_for_a_level());
    let manifest = whole::manifest(&mut reader, &ask.call).map_err(failed)?;
    Ok(ask.threshold == 1
        && ask.means.contains(&ApprovalChannel::Command)
        && !asks_all
        && [ask.effect, ask.call_effect].into_iter().all(is_minor)
        && manifest.is_some_and(|manifest| !manifest.runs_code()))
}

/// What the session of a request was given before that is untrusted: the newest results, at most five,
/// of the last 2,000 records. JSON, for the page.
pub(crate) fn untrusted_before(home: &Path, ask: Seq) -> Result<String, Failure> {
    const LOOKED_AT: u64 = 2_000;
    const SHOWN: usize = 5;
    let failed = |error: StoreError| Failure::home(home)(syscap::Error::Home(error));
    let mut reader = SqliteReader::open(home).map_err(failed)?;
    let asked = record_of(&mut reader, ask).map_err(failed)?;
    let session = asked.as_ref().and_then(|asked| call_of(&asked.body)?.session);
    let mut found = Vec::new();
    if let Some(session) = session {
        let start = Seq::new(ask.get().saturating_sub(LOOKED_AT)).max(session);
        let read = reader.records(start, &mut |seq, bytes| {
            if seq >= ask {
                return Next::Enough;
            }
            if let Ok(Record { body: Body::Outcome(outcome), .. }) = Record::decode(bytes)
                && outcome.call.session == Some(session)
                && outcome.label.is_untrusted()
            {
                let tool = outcome.call.tool_id.map(|tool| tool.to_string()).unwrap_or_default();
                found.push(Object::new().uint("record", seq.get()).text("tool", &tool).finish());
            }
            Next::More
        });
        read.map_err(failed)?;
    }
    let more = found.len().saturating_sub(SHOWN);
    let newest = array(found.into_iter().rev().take(SHOWN));
    let object = Object::new().json("newest", &newest);
    Ok(object.uint("more", u64::try_from(more).unwrap_or(u64::MAX)).finish())
}

/// The bytes of a record; `None` for a number that the log, or any log, doesn't reach.
pub(crate) fn bytes_of(reader: &mut SqliteReader, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
    match i64::try_from(seq.get()) {
        Ok(_) => record_at(reader, seq),
        Err(_) => Ok(None),
    }
}

fn unknown(seq: Seq, bytes: &[u8]) -> Object {
    let what = "a record that this program does not know";
    Object::new()
        .uint("seq", seq.get())
        .text("what", what)
        .json("unknown", &fields::unknown(bytes).finish())
}

/// A stretch of a log that is being shown.
struct Page {
    reader: SqliteReader,
    names: KeyNames,
    answers: Answers,
}

impl Page {
    /// The line of a record, where it has one and passes the filter.
    fn line(&mut self, record: &Record, select: &Select) -> Result<Option<Object>, StoreError> {
        // A call that a crash broke off is shown where that was found out.
        let (shown, settled) = match &record.body {
            Body::Intent(_) => return Ok(None),
            Body::Recovery(said) => {
                let by = if said.control.is_some() { By::Operator } else { By::Boot };
                let settled = Settled { record: record.seq, verdict: said.verdict, by };
                (self.intent(said.intent)?, Some(settled))
            }
            Body::LateReport(said) => {
                let (verdict, by) = (said.verdict(), By::Report);
                (self.intent(said.intent)?, Some(Settled { record: record.seq, verdict, by }))
            }
            _ => (None, None),
        };
        let shown = shown.as_ref().unwrap_or(record);
        let asked = self.answers.of(shown, &mut self.reader)?;
        let meant = select.means(shown, asked.as_ref())
            && select.means_class(shown, asked.as_ref(), &mut self.reader)?;
        if !meant {
            return Ok(None);
        }
        let sides = Sides::of(shown, &mut self.reader)?;
        let by = SignedBy::of(shown, &self.names, None)?;
        let (agent, what) = who_and_what(shown, sides.as_ref(), asked, settled, by.as_ref());
        let refused = matches!(record.body, Body::Refusal(_) | Body::Refusals(_));
        let line = Object::new()
            .uint("seq", record.seq.get())
            .uint("time", record.time.get())
            .shown("utc", record.time)
            .text("kind", record.body.kind().name())
            .text("agent", &agent)
            .text("what", &what)
            .flag("refused", refused);
        Ok(Some(line))
    }

    /// The intent of a call.
    fn intent(&mut self, intent: Seq) -> Result<Option<Record>, StoreError> {
        let bytes = bytes_of(&mut self.reader, intent)?;
        let call = bytes.and_then(|bytes| Record::decode(&bytes).ok());
        Ok(call.filter(|call| matches!(call.body, Body::Intent(_))))
    }
}
