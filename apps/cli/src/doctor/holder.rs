//! The server of a home, and its reachability.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;
use std::{fs, io};

use syscap::Error;
use syscap::audit::{HomeLock, LockState, SqliteReader};

use super::findings::Findings;
use crate::exit::Failure;
use crate::{process, runtime};

/// The socket's name in a home.
const SOCKET: &str = "socket";

/// Checks that a process holds the home, and answers.
pub(super) fn look(
    findings: &mut Findings<'_>,
    folder: &Path,
    reader: &SqliteReader,
) -> Result<(), Failure> {
    let state = match reader.lock_state() {
        Ok(state) => state,
        Err(error) => {
            return findings.bad("holder", &format!("the lock can't be looked at: {error}"));
        }
    };
    match state {
        LockState::Free => findings.fine("holder", "no process holds the home")?,
        LockState::Held => findings.note(
            "holder",
            "a process holds the home: stop it before a copy is put in its place, or it halts \
             (files replaced, home moved) or its log is damaged (a copy written into home.db)",
        )?,
    }
    if let (LockState::Held, Some(process)) = (state, HomeLock::holder(folder)) {
        let text = format!("{}: {}", process::named(process), process::bounds(process).join(", "));
        findings.fine("server", &text)?;
    }
    socket(findings, folder, state)
}

fn socket(findings: &mut Findings<'_>, folder: &Path, state: LockState) -> Result<(), Failure> {
    let path = folder.join(SOCKET);
    let meta = match fs::symlink_metadata(&path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match state {
                LockState::Free => findings.fine("socket", "none: nobody serves the home"),
                LockState::Held => findings.note("socket", "none: the holder serves nobody"),
            };
        }
        Err(error) => return findings.bad("socket", &format!("{}: {error}", path.display())),
    };
    if !meta.file_type().is_socket() {
        let text = format!("{} is no socket: nobody can serve the home; move it", path.display());
        return findings.bad("socket", &text);
    }
    let (mode, owner) = (meta.mode() & 0o777, meta.uid());
    let held = format!("mode {mode:03o}, owner {owner}");
    if mode & 0o077 != 0 || owner != rustix::process::geteuid().as_raw() {
        return findings.bad("socket", &format!("{held}: others than the owner can reach it"));
    }
    if state == LockState::Free {
        let text = format!("{held}, stale: its holder was killed; the next one replaces it");
        return findings.note("socket", &text);
    }
    match runtime::connected(folder) {
        Ok(Some(_)) => findings.fine("socket", &format!("{held}: the holder answers")),
        Ok(None) => {
            let server = HomeLock::holder(folder).map(process::named);
            let server = server.unwrap_or_else(|| "its server".to_owned());
            findings.bad("socket", &format!("{held}: {server} does not answer"))
        }
        Err(Error::Version { holder, ours }) => {
            let older = if holder.are_before(ours) { "the holder" } else { "this program" };
            let text = format!("{held}: the holder speaks {holder}, this {ours}; {older} is older");
            findings.note("socket", &text)
        }
        Err(error) => findings.bad("socket", &format!("{held}: {error}")),
    }
}
