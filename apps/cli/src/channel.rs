//! `syscap channel`: the agents' channel on standard input and output, for clients that can't hold a
//! descriptor or a socket: over ssh, from another language, inside a run.
//!
//! ```text
//! from it    `C` and 32 bytes of ticket, or `-` where the client brings its own; then what the server says
//! to it      what the client says to the server
//! ```

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;

use clap::Args;
use rustix::fs::{Mode, OFlags, open};

use crate::exit::{Ended, Exit, Failure};
use crate::lane;

/// The file that `syscap ticket` gives: a ticket, and then the path of a home.
const TICKET: &str = "/proc/self/fd/3";
/// Length of a ticket, in bytes.
const TICKET_BYTES: usize = 32;
/// Longest path of a home, in bytes.
const PATH_BYTES_MAX: usize = 4_096;

/// Carry the agents' channel on standard input and output.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  syscap ticket home --agent a --token 3f0c8a21 -- syscap channel
  ssh HOST syscap ticket home --agent a --token 3f0c8a21 -- syscap channel

What comes out begins with `C` and 32 bytes of ticket, or with `-` where there is none. All else is what
docs/spec/channel.md says. Inside a run it needs no home: the run's own token is meant.")]
pub(crate) struct Channel {
    /// The home, where no ticket names it: a client brings one of its own then.
    home: Option<PathBuf>,
}

impl Channel {
    pub(crate) fn run(self) -> Ended {
        let lane = match (lane::is_here(), self.home) {
            (true, _) => lane::channel().map_err(Failure::Lane)?,
            (false, Some(home)) => {
                let lane = dial(&home).map_err(Failure::file(&home))?;
                begin(b"-")?;
                lane
            }
            (false, None) => {
                let (ticket, home) = ticket().map_err(|error| {
                    let advice = format!(
                        "needs a home, or a ticket at descriptor 3 ({error}): syscap ticket HOME .. \
                         -- syscap channel"
                    );
                    Failure::Usage { what: "channel".to_owned(), advice }
                })?;
                let lane = dial(&home).map_err(Failure::file(&home))?;
                begin(&[&[lane::CHANNEL], &ticket[..]].concat())?;
                lane
            }
        };
        carry(lane).map_err(Failure::Stream)?;
        Ok(Exit::Done)
    }
}

/// Says what comes first: the client waits for that.
fn begin(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Failure::Stream)
}

/// The ticket of this process, and its home.
fn ticket() -> io::Result<([u8; TICKET_BYTES], PathBuf)> {
    let file = File::open(TICKET)?;
    let mut bytes = vec![0; TICKET_BYTES.saturating_add(PATH_BYTES_MAX)];
    // Those that were forked share the file's position.
    let size = file.read_at(&mut bytes, 0)?;
    bytes.truncate(size);
    let other = || io::Error::new(io::ErrorKind::InvalidData, "it holds no ticket");
    let (ticket, path) = bytes.split_first_chunk().ok_or_else(other)?;
    match path.first() {
        Some(b'/') => Ok((*ticket, PathBuf::from(OsStr::from_bytes(path)))),
        _ => Err(other()),
    }
}

/// Connects to the socket of a home, whose path may be longer than a socket's may.
pub(crate) fn dial(home: &Path) -> io::Result<UnixStream> {
    let folder = open(home, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    UnixStream::connect(format!("/proc/self/fd/{}/socket", folder.as_raw_fd()))
}

/// Carries bytes both ways, until the server ends it.
fn carry(lane: UnixStream) -> io::Result<()> {
    let theirs = lane.try_clone()?;
    let bring = move || {
        let mut to = &theirs;
        // With its input the client has ended; what it asked is answered still.
        drop(io::copy(&mut io::stdin().lock(), &mut to));
        theirs.shutdown(Shutdown::Write).unwrap_or(());
    };
    // Not waited for: the server's end is the end.
    thread::Builder::new().name("syscap-input".to_owned()).spawn(bring)?;
    let (mut from, mut out, mut bytes) = (lane, io::stdout().lock(), vec![0; 64 << 10]);
    loop {
        let size = from.read(&mut bytes)?;
        if size == 0 {
            return out.flush();
        }
        out.write_all(bytes.get(..size).unwrap_or_default())?;
        out.flush()?;
    }
}
