//! Asked before each fork: where no control group bounds the number of processes, the program's
//! forks wait for the helper's answer (`seccomp_unotify(2)`, Linux 5.5). So a bomb can't outrun it,
//! however late it is: what has no answer has not forked, and once the program is being ended there
//! is none.
//!
//! By the same listener programs that have a door come to it: who makes a socket by its protocol is
//! given one end of a pair, and the host the other. No name and no address is looked up for that,
//! and what is compared are the call's own numbers, which nobody changes meanwhile.
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{PidfdFlags, pidfd_open};

use super::filter;
use crate::sys;
use crate::wire::Note;

/// The way of the listener from the program, which installs the filter, to the helper; and of the
/// handle by which it is sent signals.
pub(crate) fn way() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// What a program is asked about.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) forks: bool,
    pub(crate) door: bool,
}

/// In the program, before it is one: lets it be sent signals, and its forks be asked for. Where the
/// latter is not to be had (an older kernel, or another listens to this process already) processes
/// are counted from time to time only; a door there is not without.
pub(crate) fn ask(way: &OwnedFd, wanted: Wanted) -> rustix::io::Result<()> {
    let own = pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    let listener = (wanted.forks || wanted.door)
        .then(|| filter::asks(wanted.forks, wanted.door))
        .flatten()
        .and_then(|program| sys::listen(&program).ok());
    if wanted.door && listener.is_none() {
        return Err(Errno::OPNOTSUPP);
    }
    let mut handles = vec![own.as_fd()];
    handles.extend(listener.as_ref().map(AsFd::as_fd));
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&handles)) {
        return Err(Errno::NOBUFS);
    }
    sendmsg(way, &[IoSlice::new(b"l")], &mut ancillary, SendFlags::NOSIGNAL).map(|_| ())
}

/// What a program asks about.
#[derive(Clone, Copy)]
pub(crate) enum Asked {
    Fork(u64),
    /// To connect to the host.
    Door(u64),
}

/// What came by the way: the program, to be sent signals, and what asks the helper.
pub(crate) struct Heard {
    pub(crate) program: OwnedFd,
    pub(crate) asks: Option<Forks>,
}

/// What asks the helper.
pub(crate) struct Forks {
    listener: OwnedFd,
    /// Threads and processes when they were counted last, and the forks since.
    counted: u64,
}

impl Forks {
    /// The listener, if one was sent.
    pub(crate) fn receive(way: &OwnedFd) -> Option<Heard> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0; 1];
        let mut into = [IoSliceMut::new(&mut byte)];
        recvmsg(way, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC).ok()?;
        let handles = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(rights) => Some(rights.collect::<Vec<OwnedFd>>()),
            _ => None,
        })?;
        let mut handles = handles.into_iter();
        let program = handles.next()?;
        // Nothing is counted yet: the first fork is counted for.
        let asks = handles.next().map(|listener| Self { listener, counted: u64::MAX });
        Some(Heard { program, asks })
    }

    /// What is to be polled.
    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// What asks, by its number; `None` if it asks no more.
    pub(crate) fn asked(&self) -> std::io::Result<Option<Asked>> {
        Ok(sys::asked(&self.listener)?.map(|(id, call)| match call {
            libc::SYS_socket => Asked::Door(id),
            _ => Asked::Fork(id),
        }))
    }

    /// Connects who asks for that to the host, if it listens at `control` and has room.
    pub(crate) fn connect(&self, id: u64, control: &OwnedFd) -> std::io::Result<()> {
        let flags = SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let Ok((host, theirs)) = pair else { return self.refuse(id) };
        let host = [host.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let note = Note::Connected.write();
        // A host that has not taken those before must not keep the helper from its watch.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let told = ancillary.push(SendAncillaryMessage::ScmRights(&host))
            && sendmsg(control, &[IoSlice::new(&note)], &mut ancillary, flags).is_ok();
        if !told {
            return self.refuse(id);
        }
        // The host sees the end of one that came to nothing.
        match sys::give(&self.listener, id, theirs) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
            Err(_) => self.refuse(id),
            Ok(()) => Ok(()),
        }
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
