//! The command line's input and output.
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use syscap_launch::{Access, Ended, Network, Report};

/// Opens a file or folder as a handle.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a program, looked for as a shell would where its name has no `/`.
pub(crate) fn find(program: &OsStr) -> io::Result<OwnedFd> {
    let path = Path::new(program);
    if program.as_encoded_bytes().contains(&b'/') {
        return open(path);
    }
    for folder in ["/usr/local/bin", "/usr/bin", "/bin"] {
        match open(&Path::new(folder).join(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// This process's own standard input.
pub(crate) fn input() -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?)
}

/// The handles that are opened for the grants.
pub(crate) fn grants<'a>(
    read: &'a [PathBuf],
    write: &'a [PathBuf],
    execute: &'a [PathBuf],
) -> [(&'a [PathBuf], Access); 3] {
    [(read, Access::Read), (write, Access::Write), (execute, Access::Execute)]
}

/// The report as one line of JSON. No text in it is a caller's.
pub(crate) fn line(report: &Report, network: Network) -> String {
    let (kind, how) = match report.ended {
        Ended::Exited(code) => ("exited", code.to_string()),
        Ended::Signalled(signal) => ("signalled", signal.to_string()),
        Ended::Bound(bound) => ("bound", format!("\"{}\"", bound.name())),
        Ended::Cancelled => ("cancelled", "true".to_owned()),
    };
    let achieved = report.achieved;
    format!(
        "{{\"{kind}\":{how},\"cpu_us\":{},\"wall_us\":{},\"output_bytes\":{},\"level\":\"{}\",\
         \"landlock\":{},\"seccomp\":{},\"namespaces\":{{\"user\":{},\"processes\":{},\
         \"network\":{},\"mounts\":{}}},\"group\":{}}}\n",
        report.cpu_us,
        report.wall_us,
        report.output_bytes,
        achieved.level(network).name(),
        achieved.landlock,
        achieved.seccomp,
        achieved.user,
        achieved.processes,
        achieved.network,
        achieved.mounts,
        achieved.group,
    )
}
