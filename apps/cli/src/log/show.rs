//! `syscap log show`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Args;
use syscap::audit::SqliteReader;
use syscap::format::{Body, PreviousRun as Before, Record, Seq, UnixMillis};
use syscap::kernel::{Next, StoreError};

use super::answers::{Answers, Asked};
use super::kept::Sides;
use super::select::Select;
use super::settled::{self, Settled};
use super::whole::About;
use super::{line, row, whole};
use crate::exit::{Ended, Exit, Failure};
use crate::keys::name::KeyNames;
use crate::output::{Form, Object, Out};
use crate::signed::{self, SignedBy};

/// How many records are read before they are printed: whoever reads the output may be slow, and
/// must not hold up the process that holds the home.
const CHUNK: u64 = 512;
/// How many lines `--follow` begins with.
const FOLLOWED: u64 = 10;
/// How often `--follow` looks.
const LOOK: Duration = Duration::from_millis(250);

/// Show a line for each call, or one record whole.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  syscap log show home --last 20
  syscap log show home 17
  syscap log show home --follow --json

A line is a call (tool, arguments, result or refusal, deciding constraint), or an act of an operator
or the kernel. Arguments and results come from the vault; --redacted leaves them out. The command
works beside the process that serves the home.")]
pub(crate) struct Show {
    /// The home.
    home: PathBuf,
    /// One record, with its arguments and its result whole.
    #[arg(value_name = "SEQ", conflicts_with_all = ["from", "last", "limit", "follow", "records"])]
    seq: Option<u64>,
    /// The first record to show.
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// Only the last so many.
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "limit"])]
    last: Option<u64>,
    /// How many to show at most.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Go on with what is written from now on, until interrupted; begins with the last 10.
    #[arg(long, conflicts_with = "limit")]
    follow: bool,
    /// A row for each record, with what it used, in place of a line for each call.
    #[arg(long)]
    records: bool,
    /// Without arguments and results.
    #[arg(long)]
    redacted: bool,
    #[command(flatten)]
    select: Select,
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    Calls,
    Records,
}

impl View {
    /// True if a record has a line of its own. An outcome's line shows its intent, and opening and
    /// closing of a home are no calls: `--records` has both.
    fn shows(self, record: &Record) -> bool {
        self == Self::Records
            || match &record.body {
                Body::Intent(_) | Body::Shutdown(_) => false,
                Body::Boot(boot) => boot.before == Before::Unclean,
                _ => true,
            }
    }
}

impl Show {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let reader = SqliteReader::open(&self.home).map_err(failed(&self.home))?;
        let calls = out.form() == Form::Text && !self.records;
        let view = if calls { View::Calls } else { View::Records };
        let shown = Shown {
            reader,
            view,
            names: signed::names(&self.home),
            show: &self,
            oldest: self.select.oldest(),
            answers: Answers::default(),
            open: BTreeSet::new(),
            settled: BTreeMap::new(),
            unreadable: 0,
            altered: None,
        };
        match self.seq {
            Some(seq) => shown.one(Seq::new(seq), out),
            None => shown.all(out),
        }
    }
}

fn failed(home: &Path) -> impl Fn(StoreError) -> Failure + '_ {
    move |error| Failure::home(home)(syscap::Error::Home(error))
}

/// A log that is being shown.
struct Shown<'a> {
    show: &'a Show,
    /// When the oldest record that is meant may have been written.
    oldest: Option<UnixMillis>,
    view: View,
    reader: SqliteReader,
    names: KeyNames,
    answers: Answers,
    /// Intents without an outcome when the command began.
    open: BTreeSet<Seq>,
    /// Their outcomes, if a recovery has them.
    settled: BTreeMap<Seq, Settled>,
    unreadable: u64,
    /// A record of which the vault has something else.
    altered: Option<Seq>,
}

impl Shown<'_> {
    fn one(mut self, seq: Seq, out: &mut Out) -> Ended {
        let failed = failed(&self.show.home);
        let no = |advice: &str| Failure::Usage {
            what: format!("record {seq}"),
            advice: advice.to_owned(),
        };
        let found = self.chunk(seq, 1).map_err(&failed)?.pop();
        let Some((_, bytes)) = found else {
            return Err(no(
                "the log has none of that number; `syscap log show` shows those there are",
            ));
        };
        let Ok(record) = Record::decode(&bytes) else { return Err(Failure::Unreadable(1)) };
        // Of a call whose outcome is on record that is what is asked for.
        let (record, bytes) = match (&record.body, out.form()) {
            (Body::Intent(_), Form::Text) => {
                let outcome = whole::outcome_of(&mut self.reader, seq).map_err(&failed)?;
                outcome.unwrap_or((record, bytes))
            }
            _ => (record, bytes),
        };
        let asked = self.answers.of(&record, &mut self.reader).map_err(&failed)?;
        let sides = self.sides(&record).map_err(&failed)?;
        let by = self.signed_by(&record).map_err(&failed)?;
        let about = About { asked, sides, by };
        whole::show(&self.show.home, &mut self.reader, &record, &bytes, about, out)
    }

    fn all(mut self, out: &mut Out) -> Ended {
        let failed = failed(&self.show.home);
        let last = self.show.last.or(self.show.follow.then_some(FOLLOWED));
        let last = last.filter(|_| self.show.from == 0);
        let mut from = Seq::new(self.show.from);
        if last.is_some() || self.view == View::Calls {
            from = self.look_back(from, last).map_err(&failed)?;
            let settled = settled::settled(&mut self.reader, &self.open).map_err(&failed)?;
            self.settled = settled;
        }
        let mut left = self.show.limit.unwrap_or(u64::MAX);
        out.text(&if self.view == View::Calls { line::heading() } else { row::heading() })?;
        loop {
            let chunk = self.chunk(from, if left > 0 { CHUNK } else { 0 }).map_err(&failed)?;
            let Some((last, _)) = chunk.last() else {
                if !self.show.follow {
                    break;
                }
                out.flush()?;
                thread::sleep(LOOK);
                continue;
            };
            from = last.next();
            for (seq, bytes) in &chunk {
                if left > 0 && self.record(*seq, bytes, out)? {
                    left = left.saturating_sub(1);
                }
            }
        }
        match (self.unreadable, self.altered) {
            (0, None) => Ok(Exit::Done),
            (0, Some(seq)) => Err(super::altered(&self.show.home, seq)),
            (unreadable, _) => Err(Failure::Unreadable(unreadable)),
        }
    }

    /// Shows a record, if it is meant; whether it was shown.
    fn record(&mut self, seq: Seq, bytes: &[u8], out: &mut Out) -> Result<bool, Failure> {
        let failed = failed(&self.show.home);
        let record = match Record::decode(bytes) {
            Ok(record) => record,
            Err(error) => {
                self.unreadable = self.unreadable.saturating_add(1);
                let json = Object::new().uint("seq", seq.get()).shown("unreadable", error);
                out.both(&format!("{seq:>7}  unreadable: {error}"), json)?;
                return Ok(true);
            }
        };
        let Some(asked) = self.meant(&record).map_err(&failed)? else { return Ok(false) };
        if !self.shows(&record) {
            return Ok(false);
        }
        match (out.form(), self.view) {
            (Form::Json, _) => {
                let by = SignedBy::of(&record, &self.names, None).map_err(&failed)?;
                let about = About { asked, by, ..About::default() };
                out.line(&whole::json(&record, bytes, about).finish())?;
            }
            (Form::Text, View::Records) => out.line(&row::row(&record, asked))?,
            (Form::Text, View::Calls) => {
                let sides = self.sides(&record).map_err(&failed)?;
                if sides.as_ref().is_some_and(Sides::altered) {
                    self.altered = self.altered.or(Some(seq));
                }
                let settled = self.settled.get(&seq).copied();
                let by = SignedBy::of(&record, &self.names, None).map_err(&failed)?;
                out.line(&line::line(&record, sides.as_ref(), asked, settled, by.as_ref()))?;
            }
        }
        Ok(true)
    }

    /// The request that a record answers, if the record passes the filter.
    fn meant(&mut self, record: &Record) -> Result<Option<Option<Asked>>, StoreError> {
        if self.oldest.is_some_and(|oldest| record.time < oldest) {
            return Ok(None);
        }
        let asked = self.answers.of(record, &mut self.reader)?;
        let select = &self.show.select;
        let meant = select.means(record, asked.as_ref())
            && select.means_class(record, asked.as_ref(), &mut self.reader)?;
        Ok(meant.then_some(asked))
    }

    /// The people behind a record, with their reason unless that is to be left out.
    fn signed_by(&mut self, record: &Record) -> Result<Option<SignedBy>, StoreError> {
        let reader = (!self.show.redacted).then_some(&mut self.reader);
        SignedBy::of(record, &self.names, reader)
    }

    fn sides(&mut self, record: &Record) -> Result<Option<Sides>, StoreError> {
        if self.show.redacted { Ok(None) } else { Sides::of(record, &mut self.reader) }
    }

    fn chunk(&mut self, from: Seq, most: u64) -> Result<Vec<(Seq, Vec<u8>)>, StoreError> {
        let mut chunk = Vec::new();
        if most == 0 || i64::try_from(from.get()).is_err() {
            return Ok(chunk);
        }
        self.reader.records(from, &mut |seq, bytes| {
            chunk.push((seq, bytes.to_vec()));
            if left_of(most) > chunk.len() { Next::More } else { Next::Enough }
        })?;
        Ok(chunk)
    }

    /// True if a record has a line. A call that a crash broke off has one: its recovery names no
    /// tool.
    fn shows(&self, record: &Record) -> bool {
        self.view.shows(record) || self.open.contains(&record.seq)
    }

    /// Reads the log from its end back to `from`, or to where the last so many lines begin. Notes
    /// the intents on the way that have no outcome, and answers where to begin.
    fn look_back(&mut self, from: Seq, last: Option<u64>) -> Result<Seq, StoreError> {
        let Some(head) = self.reader.head()? else { return Ok(from) };
        let (mut end, mut found) = (head.seq.next(), 0_u64);
        if last == Some(0) {
            return Ok(end);
        }
        let mut ended = BTreeSet::new();
        while end > from {
            let start = Seq::new(end.get().saturating_sub(CHUNK)).max(from);
            let chunk = self.chunk(start, end.get().saturating_sub(start.get()))?;
            for (seq, bytes) in chunk.iter().rev() {
                let counts = match Record::decode(bytes) {
                    Ok(record) => {
                        match &record.body {
                            Body::Outcome(outcome) => drop(ended.insert(outcome.intent)),
                            Body::Intent(_) if !ended.remove(seq) && self.view == View::Calls => {
                                self.open.insert(*seq);
                            }
                            _ => {}
                        }
                        self.shows(&record) && self.meant(&record)?.is_some()
                    }
                    Err(_) => true,
                };
                found = found.saturating_add(u64::from(counts));
                if last.is_some_and(|last| found >= last) {
                    return Ok(*seq);
                }
            }
            end = start;
        }
        Ok(from)
    }
}

fn left_of(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
