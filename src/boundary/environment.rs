//! The variables and files that a confined program begins with, and where its programs lie.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use syscap_launch::SYSTEM;

use super::place::{Place, Way};

/// The variables that are passed on: they hold no secrets.
pub const PASSED: [&str; 12] = [
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "TZ",
    "USER",
    "LOGNAME",
    "SHELL",
];

/// Files that programs begin with, as far as they are there: users' names, what their libraries are set
/// to, and the system's own start-up files of shells, which else report each time that they can't read
/// them. `profile.d` is not among them: such files may hold the password of a proxy.
pub const BEGINNING: [&str; 11] = [
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/openssl.cnf",
    "/etc/crypto-policies",
    "/etc/bash.bashrc",
    "/etc/bashrc",
    "/etc/profile",
    "/etc/zshenv",
    "/etc/zsh/zshenv",
];
/// Further variables for reaching hosts by name, and trusting them. Not whole folders: private keys
/// lie beside the certificates.
pub const NETWORK: [&str; 12] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/ca-trust",
    "/etc/ca-certificates",
];

/// True if it lies in one of the system's folders, which each program may execute.
pub fn is_the_systems(program: &Place) -> bool {
    let mut system = SYSTEM.iter().filter_map(|path| Place::open(Path::new(path)).ok());
    system.any(|place| place.contains(program))
}

/// The `PATH` of a confined program: of these folders those whose files it may execute, and at last
/// that of this program itself, of which it may execute no more than that.
pub fn path(here: &OsStr, executed: &[&Place], own: Option<&Path>) -> OsString {
    let system: Vec<Place> =
        SYSTEM.iter().filter_map(|path| Place::open(Path::new(path)).ok()).collect();
    let all: Vec<&Place> = system.iter().chain(executed.iter().copied()).collect();
    let kept = env::split_paths(here).filter(|folder| {
        folder.is_absolute()
            && Place::open(folder)
                .is_ok_and(|folder| all.iter().any(|place| place.contains(&folder)))
    });
    let mut kept: Vec<PathBuf> = kept.collect();
    if kept.is_empty() {
        kept.extend(env::split_paths(PATH));
    }
    kept.extend(own.and_then(Path::parent).map(Path::to_path_buf));
    // A folder whose name has a colon can't stand in it.
    env::join_paths(&kept).unwrap_or_else(|_| PATH.into())
}

/// The `PATH` where none is set.
pub const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A `PATH` without the entries that an agent could change: relative ones, and those that lie in, or
/// lead through, a place that it may write. Those are given beside it.
pub fn path_outside(here: &OsStr, written: &[Place]) -> (OsString, Vec<PathBuf>) {
    let is_safe = |folder: &PathBuf| {
        let way = folder.is_absolute().then(|| Way::of(folder, Path::new("/")));
        matches!(way, Some(Ok(way)) if !written.iter().any(|place| way.touches(place)))
    };
    let (kept, left_out): (Vec<PathBuf>, Vec<PathBuf>) = env::split_paths(here).partition(is_safe);
    (env::join_paths(&kept).unwrap_or_else(|_| PATH.into()), left_out)
}
