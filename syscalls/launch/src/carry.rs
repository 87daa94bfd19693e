//! A program's input: handed in as it is, or carried by a pipe.
//!
//! A handle gives more than its bytes: a socket sends, and takes and gives other handles; a device or
//! a named pipe has modes and times. So only an unnamed pipe is handed in. The helper opens a regular
//! file and `/dev/null` anew, for reading; a thread carries the bytes of all else.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, fstatfs, makedev, open, readlinkat};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::geteuid;

/// `PIPEFS_MAGIC` of statfs(2): the file system of unnamed pipes.
const PIPEFS: u64 = 0x5049_5045;

/// How an input is given to a program.
pub(crate) enum Given {
    /// The handle itself: an unnamed pipe.
    Itself,
    /// `/dev/null`.
    Null,
    /// A regular file, which can be opened again by its name.
    File,
    /// Its bytes.
    Bytes,
}

/// How this input is to be given.
pub(crate) fn given(input: &OwnedFd) -> io::Result<Given> {
    let stat = fstat(input)?;
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo if u64::try_from(fstatfs(input)?.f_type) == Ok(PIPEFS) => Given::Itself,
        FileType::CharacterDevice if stat.st_rdev == makedev(1, 3) => Given::Null,
        FileType::RegularFile if opens(input, &stat) => Given::File,
        _ => Given::Bytes,
    })
}

/// True if it is this user's own file, its name leads to it, and it may be read.
fn opens(input: &OwnedFd, stat: &Stat) -> bool {
    if stat.st_uid != geteuid().as_raw() {
        return false;
    }
    let link = format!("/proc/self/fd/{}", input.as_raw_fd());
    let name = readlinkat(CWD, link, Vec::new());
    let again = name.and_then(|name| {
        open(name.as_c_str(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
    });
    let found = again.and_then(fstat);
    found.is_ok_and(|found| (found.st_dev, found.st_ino) == (stat.st_dev, stat.st_ino))
}

/// Carries an input's bytes until it ends, the program reads no more, or this is dropped.
#[derive(Debug)]
pub(crate) struct Carrier {
    _stop: OwnedFd,
}

/// Begins to carry an input: the end of the pipe for the program, and the carrier.
pub(crate) fn carry(input: &OwnedFd) -> io::Result<(OwnedFd, Carrier)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC)?;
    let (from, to) = (File::from(input.try_clone()?), File::from(write));
    thread::Builder::new()
        .name("syscap-input".to_owned())
        // The program sees the end of its input, whatever ended it.
        .spawn(move || copy(from, to, &stopped).unwrap_or(()))?;
    Ok((read, Carrier { _stop: stop }))
}

fn copy(mut from: File, mut to: File, stopped: &OwnedFd) -> io::Result<()> {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let (source, stop) = (from.as_fd(), stopped.as_fd());
        let mut polled =
            [PollFd::new(&source, PollFlags::IN), PollFd::new(&stop, PollFlags::empty())];
        match poll(&mut polled, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let [_, stop] = &polled;
        if !stop.revents().is_empty() {
            return Ok(());
        }
        let size = match from.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(size) => size,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(bytes.get(..size).unwrap_or_default())?;
    }
}
