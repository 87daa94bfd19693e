//! A home: who can reach it, and what its log says of its state.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use syscap::audit::sqlite::{BALLAST_FILE, WAL_FILE, WRITER_FILE};
use syscap::audit::{DATABASE_FILE, LOCK_FILE, SqliteReader};
use syscap::format::{
    Body, Canonical, Durability, EffectClass, Record, Role, Seq, TOKEN_LIFE_MS_MAX, ToolId,
};
use syscap::kernel::{Clock as _, Kernel, Next, StoreError};
use syscap::syscalls::net::Network;
use syscap::syscalls::stated::{Stated, Unlimited};
use syscap::verify::{End, Fault, Options, Soundness};
use syscap::{Home, SystemClock};

use super::container::Kind;
use super::findings::{Findings, Level};
use super::{clients, holder, keys, machine, storage, work};
use crate::config::is_program;
use crate::exit::Failure;
use crate::hook::client::Client;
use crate::log::head;
use crate::output::plain;
use crate::policy::{Loaded, hosts};
use crate::tools::stated::not_limited;
use crate::{runtime, verify};

pub(super) fn look(
    findings: &mut Findings<'_>,
    folder: &Path,
    machine: &Kind,
) -> Result<(), Failure> {
    // First: where there is none, the home can't be opened either.
    if folder.is_dir() {
        machine::room(findings, folder)?;
        storage::look(findings, folder, machine)?;
    }
    let mut reader = match SqliteReader::open(folder) {
        Ok(reader) => reader,
        Err(error) => {
            let failure = Failure::home(folder)(syscap::Error::Home(error));
            return findings.bad("home", &failure.to_string());
        }
    };
    holder::look(findings, folder, &reader)?;
    let home = Home::at(folder);
    permissions(findings, &home)?;
    claim(findings, &home)?;
    work::look(findings, folder)?;
    machine::opener(findings, &home)?;
    durability(findings, &mut reader)?;
    boot(findings, &mut reader)?;
    drop(reader);
    match runtime::look(folder) {
        Ok(inspection) => {
            let kernel = inspection.kernel();
            keys::look(findings, &home, kernel)?;
            on_record(findings, &home, kernel)?;
            notify(findings, kernel)?;
            clients::look(findings, kernel)?;
            shells(findings, kernel)?;
            unlimited(findings, folder, kernel)?;
            time(findings, kernel)?;
        }
        Err(failure) => findings.bad("log", &failure.to_string())?,
    }
    log(findings, folder)
}

/// Whether the home has its base for itself.
fn claim(findings: &mut Findings<'_>, home: &Home) -> Result<(), Failure> {
    match home.base_is_unclaimed() {
        Ok(false) => findings.fine("base", "claimed, or the home's own"),
        Ok(true) => findings.note(
            "base",
            "no home has a claim on it: the next opening makes one, or where it can't be written only \
             reads below its agents' folders",
        ),
        Err(error) => findings.bad("base", &error.to_string()),
    }
}

/// Checks that only the owner may read keys, or write anything, and that the owner can use it all.
fn permissions(findings: &mut Findings<'_>, home: &Home) -> Result<(), Failure> {
    let folder = home.folder();
    let owner = fs::metadata(folder.join(DATABASE_FILE)).map(|meta| meta.uid());
    let owner = owner.unwrap_or_else(|_| rustix::process::geteuid().as_raw());
    let mut wrong = 0_u32;
    let mut paths: Vec<(PathBuf, u32)> = vec![
        (folder.to_path_buf(), 0o022),
        (folder.join(DATABASE_FILE), 0o022),
        (home.keys(), 0o077),
    ];
    paths.extend(keys::files(home).into_iter().map(|path| (path, 0o077)));
    let beside = [WAL_FILE, "home.db-shm", WRITER_FILE, LOCK_FILE, BALLAST_FILE];
    paths.extend(beside.map(|name| (folder.join(name), 0o022)));
    paths.push((home.trust(), 0o022));
    for (path, forbidden) in paths {
        let meta = match fs::metadata(&path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                wrong = wrong.saturating_add(1);
                findings.bad("permissions", &format!("{}: {error}", path.display()))?;
                continue;
            }
        };
        let mode = meta.mode() & 0o777;
        if mode & forbidden != 0 {
            wrong = wrong.saturating_add(1);
            let shown = path.display();
            let text = format!("{shown} has mode {mode:03o}: others can reach it; chmod go= it");
            findings.bad("permissions", &text)?;
        }
        // The folder may be the root of a volume, which lets this user write.
        if meta.uid() != owner && path != folder {
            wrong = wrong.saturating_add(1);
            let text = format!(
                "{} is user {}'s, and the home user {owner}'s, who can't use it: as root, chown \
                 {owner} it",
                path.display(),
                meta.uid()
            );
            findings.bad("permissions", &text)?;
        }
    }
    if wrong > 0 { Ok(()) } else { findings.fine("permissions", "only the owner can write") }
}

fn on_record(findings: &mut Findings<'_>, home: &Home, kernel: &Kernel) -> Result<(), Failure> {
    policy(findings, home.folder(), kernel)?;
    for manifest in kernel.manifests().filter(|manifest| Network::makes(manifest)) {
        let settings = manifest.settings.as_ref().map(Canonical::item);
        let has = |name| settings.is_some_and(|settings| settings.get(name).is_some());
        if has("base_url") && !has("anywhere") {
            let text = format!(
                "{} takes any URL beside its base_url, as tools did that were set before: set it \
                 anew, or with \"anywhere\": true",
                manifest.tool
            );
            findings.note("http", &text)?;
        }
    }
    match kernel.tools_hash() {
        Some(tools) if tools == kernel.registry_hash() => {
            findings.fine("tools", &format!("on record: {tools}"))
        }
        _ if keys::is_sealed(home, Role::Operator) => findings.bad(
            "tools",
            "others on record than this program's: every call is refused until a person runs \
             `syscap tools accept HOME --own`",
        ),
        Some(_) => findings.note("tools", "others on record; the next run records this program's"),
        None => findings.note("tools", "none on record yet; the next run records them"),
    }
}

/// Reports an operator's lowered class of a client's shell.
fn shells(findings: &mut Findings<'_>, kernel: &Kernel) -> Result<(), Failure> {
    let shells: Vec<ToolId> = Client::shells().collect();
    for manifest in kernel.manifests().filter(|manifest| shells.contains(&manifest.tool)) {
        let stated = Stated::of(manifest).ok().and_then(|stated| stated.class);
        let class = stated.unwrap_or(manifest.effect);
        if class < EffectClass::ExternalWrite {
            findings.note(
                "shell",
                &format!(
                    "{} counts as {}, by the operator's word: so does each of its commands, whatever \
                     it does; outside `syscap run` that is anything that its user may do",
                    manifest.tool,
                    class.name()
                ),
            )?;
        }
    }
    Ok(())
}

/// Reports arguments of servers' tools that look like a resource, and are not limited.
fn unlimited(findings: &mut Findings<'_>, folder: &Path, kernel: &Kernel) -> Result<(), Failure> {
    for manifest in kernel.manifests() {
        for one in Unlimited::of(manifest) {
            let text = not_limited(folder, manifest.tool.as_str(), &one);
            findings.note("arguments", &format!("{}: {text}", manifest.tool))?;
        }
    }
    Ok(())
}

/// Checks that the notification program is still there.
fn notify(findings: &mut Findings<'_>, kernel: &Kernel) -> Result<(), Failure> {
    let Some(notify) = kernel.notify() else { return Ok(()) };
    let program = plain(&notify.program);
    if is_program(Path::new(&*notify.program)) {
        findings.fine("notify", &format!("{program} is told of calls that wait"))
    } else {
        let text = "is no file that can be run: nobody is told of calls that wait";
        findings.bad("notify", &format!("{program} {text}"))
    }
}

/// Which policy is in force, and whether this program can decide by it.
fn policy(findings: &mut Findings<'_>, folder: &Path, kernel: &Kernel) -> Result<(), Failure> {
    let found = |hash| match Loaded::on_record(folder, hash) {
        Ok(Some(loaded)) => {
            let engine = &loaded.object.engine;
            let engine = format!("engine {} {}", engine.name, engine.version);
            let preset = loaded.preset().map(|preset| format!("preset {preset}, "));
            (loaded.is_known(), format!("{}{engine}, {hash}", preset.unwrap_or_default()))
        }
        Ok(None) => (false, format!("{hash}, whose document is missing")),
        Err(failure) => (false, format!("{hash}: {failure}")),
    };
    let Some(hash) = kernel.policy_hash() else {
        if keys::is_sealed(&Home::at(folder), Role::Policy) {
            let text = "none on record: every call is refused until a person runs `syscap policy \
                        set`";
            return findings.bad("policy", text);
        }
        return findings.note("policy", "none on record yet; the next run records one");
    };
    match found(hash) {
        (true, text) => findings.fine("policy", &text)?,
        (false, text) => findings.bad(
            "policy",
            &format!(
                "{text}: this program can't decide by it and calls would be refused; use the \
                 program that set it, or `syscap policy set`"
            ),
        )?,
    }
    if let Ok(Some(loaded)) = Loaded::on_record(folder, hash)
        && let Some(policy) = loaded.document()
    {
        let tools: Vec<_> = kernel.manifests().collect();
        for never in hosts::never(policy, &tools) {
            findings.bad("policy", &never.says)?;
        }
    }
    let Some(shadow) = kernel.shadow_hash() else { return Ok(()) };
    let text = match found(shadow) {
        (true, text) => format!("{text}: asked beside the policy, for the record only"),
        (false, text) => format!("{text}: on record, and this program can't ask it"),
    };
    findings.note("shadow", &text)
}

fn time(findings: &mut Findings<'_>, kernel: &Kernel) -> Result<(), Failure> {
    let (last, wall) = (kernel.now(), SystemClock.read().wall);
    let ahead = last.since(wall);
    if ahead > 0 {
        let level = if ahead > TOKEN_LIFE_MS_MAX { Level::Bad } else { Level::Note };
        let text =
            format!("the log is {ahead} ms ahead of the wall clock; its time never goes back");
        return findings.add(level, "time", &text);
    }
    if wall.since(last) > TOKEN_LIFE_MS_MAX {
        let text = "the last record is older than any token lives: at the next run an operator \
                    must confirm the time before old tokens work";
        return findings.note("time", text);
    }
    findings.fine("time", &format!("last record at {last}"))
}

/// Reports the durability of the last boot.
fn durability(findings: &mut Findings<'_>, reader: &mut SqliteReader) -> Result<(), Failure> {
    match last_durability(reader) {
        Ok(Some(Durability::Full)) => {
            findings.fine("durability", "full: an acknowledged record survives a power cut")
        }
        Ok(Some(weaker)) => {
            let text = format!(
                "{weaker}: the last run chose less than full, a power cut may take \
                                its last records"
            );
            findings.note("durability", &text)
        }
        Ok(None) => findings.bad("durability", "the log has no boot record"),
        Err(error) => findings.bad("durability", &error.to_string()),
    }
}

/// Checks that a copy of the database alone, without its write-ahead log, shows the last boot.
fn boot(findings: &mut Findings<'_>, reader: &mut SqliteReader) -> Result<(), Failure> {
    let last = last_boot(reader).map(|boot| boot.map(|(seq, _)| seq));
    let found = last.and_then(|boot| Ok((boot, reader.head_alone()?.map(|head| head.seq))));
    match found {
        Ok((Some(boot), alone)) if alone.is_none_or(|alone| alone < boot) => findings.note(
            "boot",
            "the last boot stands only in home.db-wal, because a reader was in the way: copy \
             home.db with it, or a copy ends before that boot",
        ),
        Ok(_) => findings.fine("boot", "a copy of home.db alone shows the last boot"),
        Err(error) => findings.bad("boot", &error.to_string()),
    }
}

fn last_durability(reader: &mut SqliteReader) -> Result<Option<Durability>, StoreError> {
    Ok(last_boot(reader)?.map(|(_, durability)| durability))
}

fn last_boot(reader: &mut SqliteReader) -> Result<Option<(Seq, Durability)>, StoreError> {
    let mut last = None;
    reader.records(Seq::GENESIS, &mut |seq, bytes| {
        if let Ok(Record { body: Body::Boot(boot), .. }) = Record::decode(bytes) {
            last = Some((seq, boot.durability));
        }
        Next::More
    })?;
    Ok(last)
}

fn log(findings: &mut Findings<'_>, folder: &Path) -> Result<(), Failure> {
    let noted = match head::last_noted(folder) {
        Ok(noted) => noted,
        Err(error) => {
            findings.bad("head", &format!("what was noted can't be read: {error}"))?;
            None
        }
    };
    let report = match verify::verify(folder, &Options { noted, ..Options::default() }) {
        Ok(Some(report)) => report,
        Ok(None) => return findings.bad("log", "tampered with: the database contradicts itself"),
        Err(failure) => return findings.bad("log", &failure.to_string()),
    };
    let moved = report.findings.first().is_some_and(|one| one.fault == Fault::HeadMoved);
    match noted {
        Some(noted) => findings.fine("head", &format!("last noted: {}", head::text(noted)))?,
        None => findings.note(
            "head",
            "none was noted: nothing shows that records were cut off the end; keep what `syscap log \
             head HOME` prints elsewhere",
        )?,
    }
    let text = format!("{} records", report.records);
    match report.verdict() {
        Soundness::Tampered if moved => {
            let text = "has not the head that `syscap log head` printed last: its end was cut off, or \
                        an older copy was put back";
            findings.bad("log", text)?;
        }
        Soundness::Tampered => {
            findings.bad("log", "tampered with; `syscap verify` says where")?;
        }
        Soundness::Newer => {
            findings.bad("log", "newer software wrote a part of it; `syscap verify` says which")?;
        }
        Soundness::Sound | Soundness::Incomplete | Soundness::NotAnchored => {
            findings.fine("log", &text)?;
        }
    }
    match report.end {
        End::Unclean => {
            findings.note("end", "the last run did not end properly; the next one recovers")?;
        }
        End::Clean | End::Live => findings.fine("end", "proper, or not reached yet")?,
    }
    match (report.open_intents.len(), report.unknown_intents.len()) {
        (0, 0) => findings.fine("intents", "none open"),
        (open, unknown) => {
            let text = format!("{open} open, {unknown} of earlier runs with unknown effect");
            findings.note("intents", &text)
        }
    }
}
