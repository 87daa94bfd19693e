//! `syscap erase`: takes texts out of the vault for good.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use syscap::erase::{COPY_BYTES_MIN, Erasure};
use syscap::format::{RecordKind, RedactBody, Role, Seq, VaultText};
use syscap::{Beside, Error};

use crate::exit::{Ended, Exit, Failure, diagnose, tell};
use crate::output::{Object, Out};
use crate::{parse, runtime, signing};

/// How long a reader of the database is waited for.
const PURGE_TIME: Duration = Duration::from_secs(30);
const PURGE_PAUSE: Duration = Duration::from_millis(100);
/// Most records that one event names: what a body holds of the longest numbers.
const RECORDS_MAX: usize = 6_000;

/// Erase what the vault keeps of records for good
#[derive(Args, Debug)]
#[command(after_long_help = "\
The log verifies as before: it has commitments, and no texts. A call's arguments lie under its
intent, what came of it under its outcome (`syscap log show HOME`). What a call in flight needs is not
erased. A repeated key, and a reference, to what was erased is refused. Other records may hold the
same texts: a request that waits, a refusal, a state, a call that was made from a result. They are
listed, and go along with --with-copies. Files, memories, messages and vectors that agents wrote, and
copies of the home, are not the vault's: docs/erase.md says what ends those.

Signed by the operator, through whoever holds the home. Where a program reads the database the old
pages can't go at once: it is waited for 30 seconds, and then the end is 6; the next idle time or
opening goes on.")]
pub(crate) struct Erase {
    /// The home.
    home: PathBuf,
    /// The records: numbers, as `log show` has them.
    #[arg(long, value_name = "N", required = true, num_args = 1.., value_delimiter = ',')]
    record: Vec<u64>,
    /// Erase the other rows, too, that hold one of these texts.
    #[arg(long)]
    with_copies: bool,
    /// Erase nothing: list what would be erased, and what else holds the texts.
    #[arg(long)]
    dry_run: bool,
    /// Why, for the log: in words that may stay.
    #[arg(long, value_name = "TEXT", value_parser = parse::why)]
    because: Option<String>,
}

impl Erase {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let named: Vec<Seq> = self.record.iter().copied().map(Seq::new).collect();
        let found = runtime::look(&self.home)?.erasure(&named).map_err(no_row)?;
        let records = found.records(self.with_copies);
        show(&found, self.with_copies, out)?;
        if self.dry_run {
            return Ok(Exit::Done);
        }
        let person = signing::own(&self.home, Role::Operator)?;
        let why = self.because.as_deref().map(signing::salted::<RedactBody>).transpose()?;
        let cause = why.as_ref().map(VaultText::hash);
        let beside = why.map_or(Beside::Nothing, Beside::Why);
        let purged = runtime::with(&self.home, |access| {
            for records in records.chunks(RECORDS_MAX) {
                let body = |_: &_| Ok(RedactBody { records: records.to_vec(), cause });
                let seq = person.submit(access, body, &beside, Failure::from)?;
                let json = Object::new().uint("redact", seq.get());
                out.both(&format!("erased, by record {seq}"), json)?;
            }
            out.flush()?;
            purge(|| access.purge())
        })?;
        if purged {
            return Ok(Exit::Done);
        }
        diagnose(
            "a program reads the database: what was erased stays in its files until that ends and the \
             home is idle, or opened again",
        );
        Ok(Exit::NotPurged)
    }
}

fn no_row(error: Error) -> Failure {
    match error {
        Error::NoSuch { got, .. } => Failure::Usage {
            what: format!("record {got}"),
            advice: "has no row in the vault: it is erased, or there never was one".to_owned(),
        },
        error => error.into(),
    }
}

/// Tries until nothing is left in the files, or for so long.
fn purge(purge: impl Fn() -> Result<bool, Error>) -> Result<bool, Failure> {
    let since = Instant::now();
    let mut is_told = false;
    loop {
        if purge()? {
            return Ok(true);
        }
        if !is_told {
            tell("a program reads the database; waiting up to 30 seconds for it to end");
            is_told = true;
        }
        if since.elapsed() >= PURGE_TIME {
            return Ok(false);
        }
        std::thread::sleep(PURGE_PAUSE);
    }
}

fn show(found: &Erasure, with_copies: bool, out: &mut Out) -> Result<(), Failure> {
    let line = |(seq, kind): &(Seq, RecordKind), what: &str| {
        let json = Object::new().uint("record", seq.get()).text("kind", kind.name());
        (format!("{seq:>8}  {:<10}  {what}", kind.name()), json.text("is", what))
    };
    for row in &found.rows {
        let (text, json) = line(row, "named");
        out.both(&text, json)?;
    }
    for row in &found.copies {
        let (text, json) = line(row, if with_copies { "copy" } else { "copy, not erased" });
        out.both(&text, json)?;
    }
    if !found.copies.is_empty() && !with_copies {
        diagnose(&format!(
            "{} other rows hold a text of these, of at least {COPY_BYTES_MIN} bytes; --with-copies \
             erases them, too",
            found.copies.len()
        ));
    }
    Ok(())
}
