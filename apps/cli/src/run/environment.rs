//! The variables that the program finds, and where its programs lie.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::{env, io};

use syscap::launch::SYSTEM;

use super::paths::Place;
use crate::exit::{Exit, Failure};

/// The variables that are passed on: they hold no secrets.
const PASSED: [&str; 12] = [
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

/// Files that programs begin with, as far as they are there: users' names, and what their
/// libraries are set to.
pub(super) const BEGINNING: [&str; 6] = [
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/openssl.cnf",
    "/etc/crypto-policies",
];
/// Further variables for reaching hosts by name, and trusting them. Not whole folders: private keys
/// lie beside the certificates.
pub(super) const NETWORK: [&str; 12] = [
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

/// All variables; those that are named come last, and win.
pub(super) fn of(
    named: &[OsString],
    own: Vec<(OsString, OsString)>,
) -> Result<Vec<(OsString, OsString)>, Failure> {
    let passed = PASSED.iter().filter_map(|name| Some((name.into(), env::var_os(name)?)));
    let mut all: Vec<(OsString, OsString)> = passed.chain(own).collect();
    for text in named {
        let (name, value) = variable(text)?;
        all.retain(|(known, _)| *known != name);
        all.push((name, value));
    }
    Ok(all)
}

fn variable(text: &OsStr) -> Result<(OsString, OsString), Failure> {
    let usage = |advice: &str| {
        let what = format!("--env {}", text.display());
        Failure::Usage { what, advice: advice.to_owned() }
    };
    let bytes = text.as_bytes();
    let (name, value) = match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => {
            let (name, value) = bytes.split_at(at);
            let value = OsStr::from_bytes(value.get(1..).unwrap_or_default());
            (OsStr::from_bytes(name), value.to_owned())
        }
        None => (text, env::var_os(text).ok_or_else(|| usage("is not set here"))?),
    };
    match name.is_empty() {
        true => Err(usage("write NAME, or NAME=VALUE")),
        false if name == crate::lane::VARIABLE => Err(usage("is the lane's own")),
        false => Ok((name.to_owned(), value)),
    }
}

/// The program, looked for where this process would.
pub(super) fn find(program: &OsStr) -> Result<Place, Failure> {
    let not_found = || {
        let problem = format!("{}: not found", program.display());
        Failure::NotStarted { problem, exit: Exit::Program(127) }
    };
    let path = Path::new(program);
    if program.as_bytes().contains(&b'/') {
        return Place::open(path).map_err(|failure| match failure {
            Failure::File { source, .. } if source.kind() == io::ErrorKind::NotFound => not_found(),
            other => other,
        });
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders)
        .map(|folder| folder.join(path))
        .find_map(|path| Place::open(&path).ok().filter(|place| !place.is_folder))
        .ok_or_else(not_found)
}

/// True if it lies in one of the system's folders, which each program may execute.
pub(super) fn is_the_systems(program: &Place) -> bool {
    let mut system = SYSTEM.iter().filter_map(|path| Place::open(Path::new(path)).ok());
    system.any(|place| place.contains(program))
}

/// The `PATH` of the program: of the folders here those whose files it may execute, and at last
/// that of this program itself, of which it may execute no more than that.
pub(super) fn path(executed: &[&Place], own: &Path) -> OsString {
    let system: Vec<Place> =
        SYSTEM.iter().filter_map(|path| Place::open(Path::new(path)).ok()).collect();
    let all: Vec<&Place> = system.iter().chain(executed.iter().copied()).collect();
    let here = env::var_os("PATH").unwrap_or_default();
    let kept = env::split_paths(&here).filter(|folder| {
        folder.is_absolute()
            && Place::open(folder)
                .is_ok_and(|folder| all.iter().any(|place| place.contains(&folder)))
    });
    let mut kept: Vec<PathBuf> = kept.collect();
    if kept.is_empty() {
        kept.extend(["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from));
    }
    kept.extend(own.parent().map(Path::to_path_buf));
    // A folder whose name has a colon can't stand in it.
    env::join_paths(&kept).unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".into())
}
