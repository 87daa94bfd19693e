//! The command line's input and output.
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{Mode, OFlags};
use syscap_launch::{Access, Ended, Network, Report, Serving};

/// Opens a file or folder as a handle.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a program, looked for as a shell would where its name has no `/`.
pub(crate) fn find(program: &OsStr) -> io::Result<OwnedFd> {
    open(&place(program)?)
}

/// The path of a program.
pub(crate) fn place(program: &OsStr) -> io::Result<PathBuf> {
    let path = Path::new(program);
    if program.as_encoded_bytes().contains(&b'/') {
        return Ok(path.to_path_buf());
    }
    for folder in ["/usr/local/bin", "/usr/bin", "/bin"] {
        let path = Path::new(folder).join(path);
        match open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(path),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Carries this process's streams to a program and back, to its end; its exit code.
pub(crate) fn carry(serving: Serving) -> io::Result<u8> {
    let Serving { mut child, mut stdin, mut stdout, mut stderr, lease, .. } = serving;
    // Not waited for: it ends with this process.
    thread::spawn(move || io::copy(&mut io::stdin(), &mut stdin));
    let told = thread::spawn(move || io::copy(&mut stderr, &mut io::stderr()));
    let carried = io::copy(&mut stdout, &mut io::stdout());
    let status = child.wait()?;
    drop((told.join(), lease));
    carried?;
    let signalled = || status.signal().map(|signal| signal.saturating_add(128));
    let code = status.code().or_else(signalled).and_then(|code| u8::try_from(code).ok());
    Ok(code.unwrap_or(u8::MAX))
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
