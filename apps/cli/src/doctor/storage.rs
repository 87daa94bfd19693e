//! The storage of a home, and its consequences for the log.

use std::{fs, path::Path};

use super::container::Kind;
use super::findings::{Findings, Level};
use super::mounts::{self, Mount, Storage};
use crate::{exit::Failure, output::plain};

/// SQLite's rule for a write-ahead log, in short.
const WAL: &str = "a write-ahead log needs memory that all who open it share";

/// The mount that a folder lies on; `None` where nothing can be said.
pub(super) fn mount_of(folder: &Path) -> Option<Mount> {
    let path = folder.canonicalize().ok()?;
    let mounts = fs::read("/proc/self/mountinfo").map(|text| mounts::parse(&text));
    if let Some(found) = mounts.ok().as_deref().and_then(|mounts| mounts::of(mounts, &path)) {
        return Some(found.clone());
    }
    let system = rustix::fs::statfs(&path).ok()?;
    let magic = u64::try_from(system.f_type).ok()?;
    mounts::kind_of(magic).map(|kind| Mount::of_kind(&path, kind))
}

pub(super) fn look(
    findings: &mut Findings<'_>,
    folder: &Path,
    machine: &Kind,
) -> Result<(), Failure> {
    let Some(mount) = mount_of(folder) else {
        return findings.note("storage", "what the home lies on can't be found out");
    };
    let (level, follows) = follows(mount.storage(), machine);
    let source = match &*mount.source {
        "" => String::new(),
        source => format!(" ({})", plain(source)),
    };
    let (kind, point) = (plain(&mount.kind), mount.point.display().to_string());
    let says = format!("{kind}{source} at {}{follows}", plain(&point));
    findings.add_with(level, "storage", &says, |json| {
        json.text("kind", &mount.kind)
            .text("source", &mount.source)
            .text("mounted_at", &point)
            .text("storage", name(mount.storage()))
    })
}

const fn name(storage: Storage) -> &'static str {
    match storage {
        Storage::Local => "local",
        Storage::Network => "network",
        Storage::Host => "host",
        Storage::Windows => "windows",
        Storage::Program => "program",
        Storage::Layer => "layer",
        Storage::Memory => "memory",
    }
}

/// How bad it is, and what follows and is to be done.
fn follows(storage: Storage, machine: &Kind) -> (Level, String) {
    const MOVE: &str = "stop whoever holds the home, `cp -a` it to a disk of this machine and \
                        `syscap verify` it there";
    match storage {
        Storage::Local => (Level::Fine, String::new()),
        Storage::Network => (
            Level::Bad,
            format!(
                ", a network file system: {WAL}, and its locks may hold on each machine for \
                 itself, so two can open the home at once and damage its log: {MOVE}"
            ),
        ),
        Storage::Windows => (
            Level::Bad,
            format!(
                ", a drive of Windows: {WAL}, and neither locks nor modes are those of Linux, so \
                 that keys can be read by others: {MOVE}, below /home of the distribution"
            ),
        ),
        Storage::Host => (
            Level::Note,
            format!(
                ", shared with the host: {WAL}, so no program of the host may open the home; what \
                 is synced may lie in the host's cache only. To be sure: {MOVE}"
            ),
        ),
        Storage::Program => (
            Level::Note,
            format!(
                ", answered for by a program: whether locks, shared memory and syncing hold is \
                 that program's word. To be sure: {MOVE}"
            ),
        ),
        Storage::Layer if machine.container.is_some() => (
            Level::Note,
            ", the container's own layer: home and log go with the container; mount a volume \
             there, or export the log before it ends (docs/deploy.md)"
                .to_owned(),
        ),
        Storage::Layer => (
            Level::Note,
            ", a layer over another file system: the home lasts as long as its upper layer does; \
             to be sure, put it on a disk"
                .to_owned(),
        ),
        Storage::Memory => (
            Level::Note,
            ", memory: home and log are lost at the next reboot, or with the container; export the \
             log before (`syscap log export HOME --out DIR`), or put the home on a disk"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A home that two machines could open, or whose keys others can read, should stop work; data
    /// that may be lost is only reported. Each says what to do.
    #[test]
    fn storage_level_and_advice_follow_from_the_mount() {
        let (bare, docker) = (Kind::default(), Some(("docker".to_owned(), "/.dockerenv")));
        let inside = Kind { container: docker, ..Kind::default() };
        for (storage, level, does) in [
            (Storage::Local, Level::Fine, ""),
            (Storage::Network, Level::Bad, "`cp -a`"),
            (Storage::Windows, Level::Bad, "`cp -a`"),
            (Storage::Host, Level::Note, "`cp -a`"),
            (Storage::Program, Level::Note, "`cp -a`"),
            (Storage::Layer, Level::Note, "put it on a disk"),
            (Storage::Memory, Level::Note, "`syscap log export HOME --out DIR`"),
        ] {
            let (found, says) = follows(storage, &bare);
            assert_eq!(found, level, "{storage:?}");
            assert!(says.contains(does), "{says}");
        }
        let (level, says) = follows(Storage::Layer, &inside);
        assert_eq!((level, says.contains("mount a volume")), (Level::Note, true), "{says}");
    }
}
