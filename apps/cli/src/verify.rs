//! `syscap verify`, and exports to verify elsewhere.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use syscap::audit::export::{self, ExportError};
use syscap::audit::sqlite::APPLICATION_ID;
use syscap::audit::{DATABASE_FILE, SqliteReader};
use syscap::format::{Head, HomeId, RECORDS_FILE, Seq};
use syscap::kernel::StoreError;
use syscap::verify::{
    Altered, Anchor, AnchorNeed, End, Fault, Newer, Options, Report, Soundness, Trust, TrustSource,
    VaultReport, VerifyError, verify_export, verify_home, verify_vault,
};

use crate::exit::{Ended, Exit, Failure};
use crate::log::head;
use crate::output::{Object, Out, array};

/// Far more than a trust file has.
const TRUST_BYTES_MAX: u64 = 4_096;

/// The log to verify, and its trust.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Exit codes: 0 sound, 10 tampered with, 11 incomplete (open intents, or the last run did not end
properly), 12 not anchored where --require-anchor asks for it, 13 newer software wrote records that
this version does not know, 4 no log that can be opened. Where several hold, the first of 10, 13, 12
and 11. With 13 all records before the first unknown one were verified; of those after it only the
chain was checked.
A trust file anchors a log only where it was kept apart from it: the one in the home is not
taken by itself. It does not show that records were cut off the end, or that an older copy was put
back: --head does, by what `syscap log head` printed, up to that record. A home that a process holds
is verified up to its head. With --vault arguments, results and texts are held against what their
records commit to: what is otherwise is named, and is tampered with (10); what was erased is only
counted.")]
pub(crate) struct Verify {
    /// A home, or the folder of an export.
    #[arg(value_name = "HOME|EXPORT")]
    log: PathBuf,
    /// The trust file, from where nobody who changes the log could change it.
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// A head of the log that was noted elsewhere.
    #[arg(long, value_name = "SEQ:HASH", value_parser = head::parse)]
    head: Option<Head>,
    /// Fail with 12 where there is no trust file.
    #[arg(long)]
    require_anchor: bool,
    /// Hold what the vault of a home has against the log, too.
    #[arg(long)]
    vault: bool,
    /// List each record that does not hold, and not the first alone.
    #[arg(long)]
    all: bool,
}

impl Verify {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let anchor_need =
            if self.require_anchor { AnchorNeed::Required } else { AnchorNeed::Optional };
        let given = self.trust.as_deref().map(read_trust).transpose()?;
        let trusted = given.as_ref().map(|trust| trust.home);
        let trust =
            given.map_or(TrustSource::SelfAnchored, |trust| TrustSource::Given(Box::new(trust)));
        let options = Options { trust, anchor_need, noted: self.head };
        let Some(report) = verify(&self.log, &options)? else {
            let json = Object::new().text("verdict", "tampered").flag("database_damaged", true);
            out.both("tampered: the database contradicts itself", json)?;
            return Ok(Exit::Tampered);
        };
        // A log that was tampered with commits to what somebody wanted.
        let vault = match report.verdict() {
            Soundness::Tampered => None,
            _ if self.vault => Some(self.held_against(&report)?),
            _ => None,
        };
        let altered = vault.as_ref().is_some_and(|vault| vault.altered_in_all > 0);
        let verdict = if altered { Soundness::Tampered } else { report.verdict() };
        let shown = Shown { verdict, report: &report, trusted, vault: vault.as_ref() };
        let printed = shown.print(self.all, out);
        out.conclude(printed, exit(verdict))
    }

    fn held_against(&self, report: &Report) -> Result<VaultReport, Failure> {
        if !self.log.join(DATABASE_FILE).exists() {
            let advice = "an export has no vault: name the home, or leave --vault out".to_owned();
            return Err(Failure::Usage { what: self.log.display().to_string(), advice });
        }
        let unread = |error| Failure::home(&self.log)(syscap::Error::Home(error));
        let mut reader = SqliteReader::open(&self.log).map_err(unread)?;
        let end = report.head.map_or(Seq::GENESIS, |head| head.seq);
        verify_vault(&mut reader, end).map_err(unread)
    }
}

/// Verifies a home or an export; `None` where the database of a home is damaged inside.
pub(crate) fn verify(log: &Path, options: &Options) -> Result<Option<Report>, Failure> {
    if !log.join(DATABASE_FILE).exists() && log.join(RECORDS_FILE).exists() {
        let unread = |error| failed(log, error, Failure::file(log));
        return verify_export(log, options).map(Some).map_err(unread);
    }
    let unread = |error| Failure::home(log)(syscap::Error::Home(error));
    match SqliteReader::open(log) {
        Ok(_) => {}
        Err(StoreError::Damaged) if is_marked(&log.join(DATABASE_FILE)) => return Ok(None),
        Err(error) => return Err(unread(error)),
    }
    match verify_home(log, options) {
        Ok(report) => Ok(Some(report)),
        Err(VerifyError::Source(StoreError::Damaged)) => Ok(None),
        Err(error) => Err(failed(log, error, unread)),
    }
}

/// True if a file that can't be opened as a home is marked as one: then it was altered.
fn is_marked(database: &Path) -> bool {
    let mut header = [0; 72];
    let read = File::open(database).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok()
        && header.starts_with(b"SQLite format 3\0")
        && header.ends_with(&APPLICATION_ID.to_be_bytes())
}

fn read_trust(path: &Path) -> Result<Trust, Failure> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(TRUST_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let problem = "no such trust file; a home's own is HOME/trust.cbor".to_owned();
            Failure::Audit { path: path.to_path_buf(), problem }
        }
        _ => Failure::file(path)(error),
    })?;
    Trust::from_bytes(&bytes).map_err(|error| {
        let problem = format!("is no trust file: {error}");
        Failure::Audit { path: path.to_path_buf(), problem }
    })
}

fn failed<E>(log: &Path, error: VerifyError<E>, unread: impl FnOnce(E) -> Failure) -> Failure {
    let problem = match error {
        VerifyError::Source(error) => return unread(error),
        VerifyError::TrustFile(error) => format!("the trust file can't be read (code {error})"),
        VerifyError::Trust(error) => format!("the trust file is damaged: {error}"),
    };
    Failure::Audit { path: log.to_path_buf(), problem }
}

/// `syscap log export`.
pub(crate) fn export(home: &Path, folder: &Path, out: &mut Out) -> Ended {
    let opened = SqliteReader::open(home).map_err(syscap::Error::Home);
    let mut reader = opened.map_err(Failure::home(home))?;
    if lies_in(folder, home) {
        let what = folder.display().to_string();
        let advice = "lies in the home: name a folder elsewhere".to_owned();
        return Err(Failure::Usage { what, advice });
    }
    let exported = export::export(&mut reader, folder).map_err(|error| match error {
        ExportError::Exists => Failure::Exists(folder.to_path_buf()),
        error => Failure::Audit { path: folder.to_path_buf(), problem: error.to_string() },
    })?;
    let json = Object::new()
        .shown("export", folder.display())
        .uint("records", exported.records)
        .uint("objects", exported.objects);
    let (records, objects) = (exported.records, exported.objects);
    out.both(&format!("{records} records and {objects} objects in {}", folder.display()), json)?;
    Ok(Exit::Done)
}

/// True if a folder that is to be made would lie in a home, whatever links its name goes by.
fn lies_in(folder: &Path, home: &Path) -> bool {
    let Ok(folder) = std::path::absolute(folder) else { return false };
    let Ok(home) = home.canonicalize() else { return false };
    folder.ancestors().filter_map(|above| above.canonicalize().ok()).any(|above| above == home)
}

const fn exit(verdict: Soundness) -> Exit {
    match verdict {
        Soundness::Sound => Exit::Done,
        Soundness::Tampered => Exit::Tampered,
        Soundness::Incomplete => Exit::Incomplete,
        Soundness::NotAnchored => Exit::NotAnchored,
        Soundness::Newer => Exit::Newer,
    }
}

pub(crate) const fn verdict_name(verdict: Soundness) -> &'static str {
    match verdict {
        Soundness::Sound => "sound",
        Soundness::Tampered => "tampered",
        Soundness::Incomplete => "incomplete",
        Soundness::NotAnchored => "not_anchored",
        Soundness::Newer => "newer",
    }
}

const fn end_name(end: End) -> &'static str {
    match end {
        End::Clean => "clean",
        End::Unclean => "unclean",
        End::Live => "live",
    }
}

const fn anchor_name(anchor: Anchor) -> &'static str {
    match anchor {
        Anchor::SelfAnchored => "self",
        Anchor::TrustFile => "trust_file",
    }
}

/// In one line what the report rests on.
fn anchor_text(report: &Report) -> String {
    let (begin, by) = match (report.anchor, report.noted) {
        (Anchor::TrustFile, _) => ("anchored to the trust file", "--head"),
        (Anchor::SelfAnchored, Some(_)) => ("self-anchored", ""),
        (Anchor::SelfAnchored, None) => (
            "self-anchored: not shown is that nobody replaced the whole log",
            "--trust COPY, --head",
        ),
    };
    match report.noted {
        None => format!("{begin}; the end is not anchored ({by})"),
        Some(head) => format!("{begin}; up to record {} it is the log that was noted", head.seq),
    }
}

/// A report as a person reads it.
struct Shown<'a> {
    verdict: Soundness,
    report: &'a Report,
    /// The home that the trust file names.
    trusted: Option<HomeId>,
    vault: Option<&'a VaultReport>,
}

impl Shown<'_> {
    fn print(&self, all: bool, out: &mut Out) -> Result<(), Failure> {
        let Self { verdict, report, vault, .. } = *self;
        if out.form() == crate::output::Form::Json {
            let vault = vault.map_or("null".to_owned(), of_vault);
            return out.line(&json(verdict, report).json("vault", &vault).finish());
        }
        let verdict = verdict_name(verdict).replace('_', " ");
        match self.first_fault() {
            Some(fault) => {
                out.line(&format!("{verdict}: {fault}"))?;
                let foreign =
                    report.findings.first().is_some_and(|one| one.fault == Fault::Foreign);
                out.line(&format!(
                    "anchor   {}",
                    if foreign { "none" } else { anchor_name(report.anchor) }
                ))?;
            }
            None => out.line(&format!("{verdict}, {}", anchor_text(report)))?,
        }
        if let Some(home) = report.home {
            out.line(&format!("home     {home}"))?;
        }
        if let Some(head) = report.head {
            out.line(&format!("head     record {} {}", head.seq, head.leaf))?;
        }
        if report.records > 0 {
            let (first, last) = (report.first_time, report.last_time);
            out.line(&format!("records  {} from {first} to {last}", report.records))?;
            let kinds = report.counts.iter().map(|(kind, n)| format!("{n} {kind}"));
            out.line(&format!("kinds    {}", kinds.collect::<Vec<_>>().join(", ")))?;
            out.line(&format!("end      {}", end_name(report.end)))?;
        }
        if let Some(Newer { seq, what }) = &report.newer {
            out.line(&format!(
                "newer    record {seq}: {what}; verified up to there, and the chain to its end"
            ))?;
        }
        let intents = [("open", &report.open_intents), ("unknown", &report.unknown_intents)];
        for (name, intents) in intents {
            for intent in intents {
                out.line(&format!("{name:<8} intent at record {intent}"))?;
            }
        }
        vault.map_or(Ok(()), |vault| print_vault(vault, out))?;
        if all { self.print_faults(out) } else { Ok(()) }
    }

    fn print_faults(&self, out: &mut Out) -> Result<(), Failure> {
        let findings = &self.report.findings;
        for finding in findings {
            out.line(&format!("fault    record {}: {:?}", finding.seq, finding.fault))?;
        }
        match self.report.findings_count.saturating_sub(counted(findings.len())) {
            0 => Ok(()),
            more => out.line(&format!("fault    and {more} more")),
        }
    }

    /// The first record that does not hold, and how many more findings there are.
    fn first_fault(&self) -> Option<String> {
        let first = self.report.findings.first()?;
        if first.fault == Fault::Foreign {
            return Some(match (self.trusted, self.report.home) {
                (Some(trusted), Some(home)) if trusted != home => format!(
                    "the trust file is of home {trusted}, and this log of home {home}; if you took \
                     the right trust file, the log was replaced"
                ),
                _ => "the trust file has other keys than this log begins with".to_owned(),
            });
        }
        if let (Fault::HeadMoved, Some(noted)) = (first.fault, self.report.noted) {
            return Some(format!(
                "the log has not the record {} that was noted: its end was cut off, it is an older copy, \
                 or another log",
                noted.seq
            ));
        }
        let more = match self.report.findings_count.saturating_sub(1) {
            0 => String::new(),
            more => format!("; {more} more follow from there on (--all lists them)"),
        };
        let (seq, fault) = (first.seq, first.fault);
        Some(format!("record {seq} is the first that does not hold ({fault:?}){more}"))
    }
}

fn print_vault(vault: &VaultReport, out: &mut Out) -> Result<(), Failure> {
    let (whole, absent, altered) = (vault.whole, vault.absent, vault.altered_in_all);
    out.line(&format!(
        "vault    {whole} as their records say, {absent} erased or never kept, {altered} altered"
    ))?;
    for Altered { seq, part } in &vault.altered {
        let part = part.name();
        out.line(&format!("altered  record {seq}: its {part}: not what it commits to"))?;
    }
    match altered.saturating_sub(counted(vault.altered.len())) {
        0 => Ok(()),
        more => out.line(&format!("altered  and {more} more")),
    }
}

fn counted(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

fn of_vault(vault: &VaultReport) -> String {
    let altered = vault.altered.iter();
    let altered = altered.map(|Altered { seq, part }| {
        Object::new().uint("seq", seq.get()).text("part", part.name()).finish()
    });
    Object::new()
        .uint("whole", vault.whole)
        .uint("absent", vault.absent)
        .json("altered", &array(altered))
        .uint("altered_count", vault.altered_in_all)
        .finish()
}

fn json(verdict: Soundness, report: &Report) -> Object {
    let seqs = |list: &[syscap::format::Seq]| array(list.iter().map(ToString::to_string));
    let object = Object::new()
        .text("verdict", verdict_name(verdict))
        .text("anchor", anchor_name(report.anchor))
        .flag("anchor_required", report.anchor_need == AnchorNeed::Required);
    let object = match report.noted {
        Some(head) => object.uint("noted_seq", head.seq.get()),
        None => object.json("noted_seq", "null"),
    };
    let object = match report.home {
        Some(home) => object.shown("home_id", home),
        None => object.json("home_id", "null"),
    };
    let object = match report.head {
        Some(head) => object.uint("head_seq", head.seq.get()).shown("head_leaf", head.leaf),
        None => object.json("head_seq", "null").json("head_leaf", "null"),
    };
    let object = match &report.newer {
        Some(newer) => object.uint("newer_seq", newer.seq.get()).shown("newer", newer.what),
        None => object.json("newer_seq", "null").json("newer", "null"),
    };
    let counts = report.counts.iter().fold(Object::new(), |o, (k, n)| o.uint(k.name(), *n));
    let findings = report.findings.iter().map(|finding| {
        let fault = format!("{:?}", finding.fault);
        Object::new().uint("seq", finding.seq.get()).text("fault", &fault).finish()
    });
    object
        .uint("records", report.records)
        .json("counts", &counts.finish())
        .shown("first_time", report.first_time)
        .shown("last_time", report.last_time)
        .text("end", end_name(report.end))
        .json("open_intents", &seqs(&report.open_intents))
        .json("unknown_intents", &seqs(&report.unknown_intents))
        .json("findings", &array(findings))
        .uint("findings_count", report.findings_count)
}
