//! The machine: what the kernel asks of its operating system.

use std::{fs, path::Path};

use rustix::process::{Resource, getrlimit};
use syscap::audit::sqlite::{
    BALLAST_BYTES, BALLAST_FILE, ROOM_BYTES_MIN, ROOM_BYTES_SPARE, library_version,
};
use syscap::format::Enforcement;
use syscap::kernel::{Clock as _, Entropy as _};
use syscap::syscalls::beneath::{self, Openers};
use syscap::{Home, SystemClock, SystemEntropy};

use super::confined;
use super::container::Kind;
use super::findings::{Findings, Level};
use crate::exit::Failure;
use crate::output::{Object, plain, word_of};

/// Descriptors that a home needs: database, WAL, index, lock, base, and a few for each call.
const DESCRIPTORS_MIN: u64 = 64;
/// 2024-01-01: no machine that runs this is younger.
const WALL_MS_MIN: u64 = 1_704_067_200_000;

pub(super) fn look(findings: &mut Findings<'_>, machine: &Kind) -> Result<(), Failure> {
    kind(findings, machine)?;
    confined::look(findings)?;
    openat2(findings)?;
    findings.fine("sqlite", library_version())?;
    clocks(findings)?;
    entropy(findings)?;
    descriptors(findings)
}

/// Reports a container or WSL.
fn kind(findings: &mut Findings<'_>, machine: &Kind) -> Result<(), Failure> {
    match &machine.container {
        None => findings.fine("container", "none that leaves a mark")?,
        Some((name, by)) => {
            let name = plain(name);
            let text = format!(
                "{name}, by {by}: what is in no volume goes with it; which confinement of programs \
                 is to be had stands below (docs/deploy.md)"
            );
            findings.note("container", &text)?;
        }
    }
    match machine.wsl {
        None => Ok(()),
        Some(1) => findings.note(
            "wsl",
            "WSL 1: it has no Landlock, no namespaces and no openat2; `wsl --set-version NAME 2`",
        ),
        Some(version) => findings.note(
            "wsl",
            &format!("WSL {version}: keep homes below /home, not on /mnt/c or another drive"),
        ),
    }
}

fn openat2(findings: &mut Findings<'_>) -> Result<(), Failure> {
    // The root is there, whatever TMPDIR says.
    match beneath::open(Path::new("/")).map(|base| base.enforcement()) {
        Ok(Enforcement::Openat2) => {
            findings.fine("openat2", "available: paths are checked by what is opened")
        }
        Ok(level) => findings.note("openat2", &format!("missing or filtered: {}", told(level))),
        Err(error) => findings.bad("openat2", &format!("can't be tried: {error}")),
    }
}

/// Reports the file backend of a home here.
pub(super) fn opener(findings: &mut Findings<'_>, home: &Home) -> Result<(), Failure> {
    let opened = home.openers().and_then(|openers| {
        let base = beneath::open_by(openers, &home.base()?)?;
        Ok((openers, base.enforcement()))
    });
    match opened {
        Ok((Openers::Strongest, level)) => findings.fine("opener", told(level)),
        Ok((_, level)) => {
            findings.fine("opener", &format!("{}; the home asks for it", told(level)))
        }
        Err(error) => findings.bad("opener", &error.to_string()),
    }
}

fn told(level: Enforcement) -> &'static str {
    match level {
        Enforcement::Openat2 => "files are opened by openat2",
        _ => "files are opened by cap_std, name by name: docs/files.md says what that can't see",
    }
}

fn clocks(findings: &mut Findings<'_>) -> Result<(), Failure> {
    let (before, after) = (SystemClock.read(), SystemClock.read());
    let text = format!("wall {}, up {} s", after.wall, after.boottime_ms.div_euclid(1_000));
    if after.boottime_ms < before.boottime_ms {
        findings.bad("clocks", &format!("CLOCK_BOOTTIME goes back; {text}"))
    } else if after.wall.get() < WALL_MS_MIN {
        findings.bad("clocks", &format!("the wall clock is not set; {text}"))
    } else {
        findings.fine("clocks", &text)
    }
}

fn entropy(findings: &mut Findings<'_>) -> Result<(), Failure> {
    let (mut one, mut other) = ([0_u8; 32], [0_u8; 32]);
    let filled = SystemEntropy.fill(&mut one).and_then(|()| SystemEntropy.fill(&mut other));
    match filled {
        Ok(()) if one != other => findings.fine("entropy", "the system's generator answers"),
        Ok(()) => findings.bad("entropy", "the system's generator repeats itself"),
        Err(error) => findings.bad("entropy", &error.to_string()),
    }
}

fn descriptors(findings: &mut Findings<'_>) -> Result<(), Failure> {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let left = limit.saturating_sub(u64::try_from(open).unwrap_or(0));
    let level = if left < DESCRIPTORS_MIN { Level::Bad } else { Level::Fine };
    findings.add(level, "descriptors", &format!("{left} left of {limit}"))
}

/// Room on the disk of a home: whether calls are taken, how much has to be freed where they are
/// not, and what goes on then.
pub(super) fn room(findings: &mut Findings<'_>, home: &Path) -> Result<(), Failure> {
    let disk = match rustix::fs::statvfs(home) {
        Ok(disk) => disk,
        Err(errno) => return findings.bad("disk", &format!("{}: {errno}", home.display())),
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let reserve = home.join(BALLAST_FILE);
    let has_reserve = fs::metadata(&reserve).is_ok_and(|meta| meta.len() == BALLAST_BYTES);
    let wanted = ROOM_BYTES_MIN.saturating_add(ROOM_BYTES_SPARE);
    let wanted = wanted.saturating_add(if has_reserve { 0 } else { BALLAST_BYTES });
    let missing = match free {
        ROOM_BYTES_MIN.. if has_reserve => 0,
        _ => wanted.saturating_sub(free),
    };
    let next = format!("syscap serve {}", word_of(home));
    let text = format!("{} MiB free at {}", free >> 20, home.display());
    let level = if free < ROOM_BYTES_MIN { Level::Bad } else { Level::Fine };
    let text = match (level, has_reserve) {
        (Level::Bad, true) => format!(
            "{text}, calls are refused: free {missing} bytes, then `{next}`; what only revokes or \
             freezes works now, by the reserve"
        ),
        (Level::Bad, false) => format!(
            "{text}, calls are refused and the reserve is spent: free {missing} bytes, then \
             `{next}`; what only revokes or freezes needs {BALLAST_BYTES} bytes at the most"
        ),
        _ => text,
    };
    let room = |json: Object| {
        let json = json.uint("free_bytes", free).uint("missing_bytes", missing);
        let json = json.flag("reserve", has_reserve);
        if level == Level::Bad { json.text("next", &next) } else { json }
    };
    findings.add_with(level, "disk", &text, room)?;
    if disk.f_favail == 0 && disk.f_files > 0 {
        findings.bad("inodes", "none is left: remove files")?;
    }
    match (has_reserve, missing) {
        (true, _) => findings.fine("reserve", "kept back for the last records on a full disk"),
        (false, 0) => findings.note("reserve", &format!("given up; `{next}` takes it up again")),
        (false, _) => findings.note("reserve", "given up; it needs more room than there is"),
    }
}
