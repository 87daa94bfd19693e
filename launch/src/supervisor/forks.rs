//! Asked before each fork: where no control group bounds the number of processes, the program's
//! forks wait for the helper's answer (`seccomp_unotify(2)`, Linux 5.5). So a bomb can't outrun it,
//! however late it is: what has no answer has not forked, and once the program is being ended there
//! is none.
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use super::filter;
use crate::sys;

/// The way of the listener from the program, which installs the filter, to the helper.
pub(crate) fn way() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// In the program, before it is one: lets its forks be asked for. Where that is not to be had (an
/// older kernel, or another listens to this process already) processes are counted from time to
/// time only.
pub(crate) fn ask(way: &OwnedFd) -> rustix::io::Result<()> {
    let Some(listener) = filter::forks().and_then(|program| sys::listen(&program).ok()) else {
        return Ok(());
    };
    let listener = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&listener)) {
        return Err(Errno::NOBUFS);
    }
    sendmsg(way, &[IoSlice::new(b"l")], &mut ancillary, SendFlags::NOSIGNAL).map(|_| ())
}

/// What asks the helper.
pub(crate) struct Forks {
    listener: OwnedFd,
    /// Threads and processes when they were counted last, and the forks since.
    counted: u64,
}

impl Forks {
    /// The listener, if one was sent.
    pub(crate) fn receive(way: &OwnedFd) -> Option<Self> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0; 1];
        let mut into = [IoSliceMut::new(&mut byte)];
        recvmsg(way, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC).ok()?;
        let listener = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
            _ => None,
        })?;
        // Nothing is counted yet: the first fork is counted for.
        Some(Self { listener, counted: u64::MAX })
    }

    /// What is to be polled.
    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// The fork that asks, by its number; `None` if it asks no more.
    pub(crate) fn asked(&self) -> std::io::Result<Option<u64>> {
        sys::asked(&self.listener)
    }

    /// Whether there may be one more by what is known.
    pub(crate) fn room(&self, most: u32) -> bool {
        self.counted < u64::from(most)
    }

    /// So many there are.
    pub(crate) fn count(&mut self, processes: u64) {
        self.counted = processes;
    }

    /// Lets it fork.
    pub(crate) fn permit(&mut self, fork: u64) -> std::io::Result<()> {
        self.counted = self.counted.saturating_add(1);
        sys::answer(&self.listener, fork, None)
    }

    /// It fails as where the system's own bound is met.
    pub(crate) fn refuse(&self, fork: u64) -> std::io::Result<()> {
        sys::answer(&self.listener, fork, Some(libc::EAGAIN))
    }
}
