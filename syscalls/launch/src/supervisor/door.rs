//! The door: who makes a socket by its protocol waits for the helper's answer
//! (`seccomp_unotify(2)`), and is given one end of a pair, and the host the other. No name and no
//! address is looked up for that, and what is compared are the call's own numbers, which nobody
//! changes meanwhile.
//!
//! Besides, the way on which the helper gets what it listens to, and the program.
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, send, sendmsg,
    socketpair,
};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

use super::filter;
use crate::{sys, wire::Note};

/// The way of handles from the program to the helper, and of its leave to begin back.
pub(crate) fn way() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// In the program, before it is one: lets it be sent signals, and come to the door.
pub(crate) fn introduce(way: &OwnedFd, door: bool) -> rustix::io::Result<()> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    let listener = door.then(filter::asks).flatten().and_then(|asks| sys::listen(&asks).ok());
    if door && listener.is_none() {
        return Err(Errno::OPNOTSUPP);
    }
    let mut handles = vec![own.as_fd()];
    handles.extend(listener.as_ref().map(AsFd::as_fd));
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&handles)) {
        return Err(Errno::NOBUFS);
    }
    let number = getpid().as_raw_nonzero().get().to_ne_bytes();
    sendmsg(way, &[IoSlice::new(&number)], &mut ancillary, SendFlags::NOSIGNAL).map(|_| ())
}

/// In the program, before it is one: waits until the helper lets it begin. If the helper is gone,
/// it never does.
pub(crate) fn wait_for_leave(way: &OwnedFd) -> rustix::io::Result<()> {
    let mut leave = [0; 1];
    match retry_on_intr(|| recv(way, &mut leave[..], RecvFlags::empty()))? {
        (1, _) => Ok(()),
        _ => Err(Errno::PIPE),
    }
}

/// The helper's leave.
pub(crate) fn give_leave(way: &OwnedFd) {
    // One that is gone needs none.
    match send(way, b"l", SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        Ok(_) | Err(_) => {}
    }
}

/// The introduced program: its process number, its handle for signals, and its door.
pub(crate) struct Introduced {
    pub(crate) pid: Pid,
    pub(crate) program: OwnedFd,
    pub(crate) door: Option<Door>,
}

/// In the helper: what the program has sent, if it did.
pub(crate) fn introduced(way: &OwnedFd) -> Option<Introduced> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut number = [0; 4];
    let mut into = [IoSliceMut::new(&mut number)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    recvmsg(way, &mut into, &mut ancillary, flags).ok()?;
    let handles = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights.collect::<Vec<OwnedFd>>()),
        _ => None,
    })?;
    let mut handles = handles.into_iter();
    let program = handles.next()?;
    let door = handles.next().map(|listener| Door { listener });
    Some(Introduced { pid: Pid::from_raw(i32::from_ne_bytes(number))?, program, door })
}

/// The waiting place of connections to the door.
pub(crate) struct Door {
    listener: OwnedFd,
}

impl Door {
    /// The handle to poll.
    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Connects who has come, if it is still there, to the host, if that listens at `control` and
    /// has room. An error says that nobody is left who could come.
    pub(crate) fn answer(&self, control: &OwnedFd) -> std::io::Result<()> {
        if let Some(id) = sys::asked(&self.listener)? {
            // One that can't be answered waits until it is ended: it has got nothing.
            self.connect(id, control).unwrap_or_default();
        }
        Ok(())
    }

    fn connect(&self, id: u64, control: &OwnedFd) -> std::io::Result<()> {
        let flags = SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let Ok((host, theirs)) = pair else { return sys::refuse(&self.listener, id) };
        let host = [host.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let note = Note::Connected.write();
        // A host that has not taken those before must not keep the helper from its watch.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let told = ancillary.push(SendAncillaryMessage::ScmRights(&host))
            && sendmsg(control, &[IoSlice::new(&note)], &mut ancillary, flags).is_ok();
        if !told {
            return sys::refuse(&self.listener, id);
        }
        // The host sees the end of one that came to nothing.
        match sys::give(&self.listener, id, theirs) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
            Err(_) => sys::refuse(&self.listener, id),
            Ok(()) => Ok(()),
        }
    }
}
