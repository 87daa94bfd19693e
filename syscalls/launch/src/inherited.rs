//! Descriptors that a program was started with, and was not meant to have: a file of its parent's
//! that was opened without `O_CLOEXEC` (open(2)) is open in it, and in all that it starts.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Command;

use crate::sys;

/// Hands nothing above standard error that is open now to the programs that this process starts. To
/// be called once, when `main` begins. What the program reads by such a descriptor it still reads.
///
/// # Errors
/// What the operating system says: before Linux 5.11 it can't.
pub fn keep_none_on_exec() -> io::Result<()> {
    sys::close_others_on_exec()
}

/// The same for one program that a library starts: its host may have opened what it likes.
pub fn keep_no_others(command: &mut Command) {
    let close: fn() -> io::Result<()> = || match sys::close_others_on_exec() {
        // An older kernel.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) => Ok(()),
        closed => closed,
    };
    sys::before_exec(command, close);
}

/// Gives a file to a program that is started, under that number. It is in place of what this process
/// has there, in that program alone.
pub fn give(command: &mut Command, handle: OwnedFd, number: u8) {
    sys::before_exec(command, move || sys::put_at(&handle, number));
}
