//! The socket: made, found, checked, removed.
//!
//! A socket's name may have 107 bytes and a home's folder many more, so it is named by way of a
//! handle on the folder: `/proc/self/fd/N/socket`. The handle also names the same folder where
//! the path to it has changed meanwhile.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, chmodat, fchmod, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen,
    shutdown, socket_with,
};
use rustix::process::geteuid;

/// The socket's name in the home.
pub(crate) const SOCKET_FILE: &str = "socket";
/// Connections that wait to be taken.
const BACKLOG: i32 = 128;

/// The socket of a home, listened at. Only whoever holds the home's lock may make or remove it.
pub(crate) struct Socket {
    folder: OwnedFd,
    listener: UnixListener,
}

impl Socket {
    /// Makes the socket, in the place of one that a holder has left. Its mode is 0600 from the
    /// moment that it has a name: it is set before the name is given, and what a umask took of
    /// it is given back before anybody is listened to.
    pub(crate) fn make(home: &Path) -> io::Result<Self> {
        let folder = open_folder(home)?;
        remove(folder.as_fd())?;
        let socket = stream_socket()?;
        let mode = Mode::RUSR | Mode::WUSR;
        fchmod(&socket, mode)?;
        bind(&socket, &address(&folder)?).map_err(|error| unnamed(error, &folder))?;
        chmodat(&folder, SOCKET_FILE, mode, AtFlags::empty())?;
        listen(&socket, BACKLOG)?;
        Ok(Self { folder, listener: UnixListener::from(socket) })
    }

    /// The next connection.
    pub(crate) fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().map(|(stream, _)| stream)
    }

    /// Takes no connection any more, and wakes whoever waits for one.
    pub(crate) fn stop(&self) -> io::Result<()> {
        Ok(shutdown(&self.listener, Shutdown::Both)?)
    }

    /// Takes the name away.
    pub(crate) fn remove(&self) -> io::Result<()> {
        remove(self.folder.as_fd())
    }
}

/// Connects to the socket of a home.
pub(crate) fn connect_to(home: &Path) -> io::Result<UnixStream> {
    let folder = open_folder(home)?;
    let socket = stream_socket()?;
    connect(&socket, &address(&folder)?)?;
    Ok(UnixStream::from(socket))
}

/// True if the peer process belongs to our own user.
pub(crate) fn is_ours(stream: &UnixStream) -> io::Result<bool> {
    Ok(socket_peercred(stream)?.uid == geteuid())
}

/// Removes the socket, and nothing else of its name.
fn remove(folder: BorrowedFd<'_>) -> io::Result<()> {
    match statat(folder, SOCKET_FILE, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Socket => {
            Ok(unlinkat(folder, SOCKET_FILE, AtFlags::empty())?)
        }
        Ok(_) => Err(io::Error::from(Errno::EXIST)),
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn open_folder(home: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, home, flags, Mode::empty())?)
}

/// Why a socket has no name: where the folder's own name leads nowhere, no folder is missing.
fn unnamed(error: Errno, folder: &OwnedFd) -> io::Error {
    let named = statat(CWD, format!("/proc/self/fd/{}", folder.as_raw_fd()), AtFlags::empty());
    match (error, named) {
        (Errno::NOENT, Err(_)) => {
            let why = "/proc is not mounted, and the socket has its name by it";
            io::Error::new(io::ErrorKind::Unsupported, why)
        }
        (error, _) => error.into(),
    }
}

fn stream_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

fn address(folder: &OwnedFd) -> io::Result<SocketAddrUnix> {
    let path = format!("/proc/self/fd/{}/{SOCKET_FILE}", folder.as_raw_fd());
    Ok(SocketAddrUnix::new(path)?)
}
