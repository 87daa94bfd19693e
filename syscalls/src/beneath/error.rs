//! Why a file operation was not done.

use rustix::io::Errno;

/// Why a file operation was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum FsError {
    /// A name is empty, `.`, `..`, holds `/` or NUL, is not UTF-8 (in a link's target), or has
    /// the form of our own temporary files.
    #[error("a name in the path is not allowed")]
    BadName,
    /// A name is longer than 255 bytes, or the path than 4095.
    #[error("a name or the path is too long")]
    NameTooLong,
    /// No entry has this name.
    #[error("no such file or directory")]
    NotFound,
    /// A file was asked for, a directory is there.
    #[error("is a directory")]
    IsDirectory,
    /// A directory was asked for or is needed on the way, something else is there.
    #[error("is not a directory")]
    NotDirectory,
    /// A FIFO, a socket or a device is there. It was not opened.
    #[error("is not a regular file")]
    NotRegular,
    /// The file has other names (hard links), perhaps outside.
    #[error("the file has more than one link")]
    ManyLinks,
    /// The path crosses into another mount or file system.
    #[error("is on another device or mount")]
    OtherDevice,
    /// A symbolic link stands on the way, or more of them than are followed.
    #[error("a symbolic link stands on the way")]
    Link,
    /// A symbolic link leads out of the base, or is absolute.
    #[error("leads out of the base")]
    Escapes,
    /// The file, the directory or the depth is over its limit.
    #[error("is too large")]
    TooLarge,
    /// The target of a create-only write exists.
    #[error("exists already")]
    Exists,
    /// The folder that would be removed has something in it.
    #[error("is not empty")]
    NotEmpty,
    /// The file is not any more what it was when somebody looked at it.
    #[error("has changed since")]
    Changed,
    /// The operating system forbids it (EACCES, EPERM, EROFS), or the file is marked read-only.
    #[error("permission denied")]
    Denied,
    /// A home of syscap lies on the way or is meant, or would be made. It reads as if the system
    /// forbade it.
    #[error("permission denied")]
    Home,
    /// No space or quota is left.
    #[error("no space left")]
    NoSpace,
    /// The retries ran out while others changed the same names, or the file is in use.
    #[error("is busy")]
    Busy,
    /// The system lacks, or a filter forbids, a call that safety needs.
    #[error("not supported on this system")]
    Unsupported,
    /// The meter refused the next charge.
    #[error("refused by the meter")]
    Refused,
    /// Any other error of the operating system, by number.
    #[error("input/output error {0}")]
    Io(i32),
}

impl FsError {
    /// The error of a walk by `openat2`, where some numbers have a meaning of their own.
    pub(super) fn of_walk(errno: Errno) -> Self {
        match errno {
            // A seccomp filter that doesn't know the call answers EPERM, an old kernel ENOSYS.
            Errno::NOSYS | Errno::PERM => Self::Unsupported,
            // A location holds no `..` and is not absolute, so this can only be NO_XDEV.
            Errno::XDEV => Self::OtherDevice,
            Errno::LOOP => Self::Link,
            Errno::NXIO => Self::NotRegular,
            other => Self::from(other),
        }
    }
}

impl From<Errno> for FsError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::NotFound,
            Errno::ISDIR => Self::IsDirectory,
            Errno::NOTDIR => Self::NotDirectory,
            Errno::LOOP => Self::Link,
            Errno::XDEV => Self::OtherDevice,
            Errno::NAMETOOLONG => Self::NameTooLong,
            Errno::EXIST => Self::Exists,
            Errno::NOTEMPTY => Self::NotEmpty,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::Denied,
            Errno::NOSPC | Errno::DQUOT => Self::NoSpace,
            Errno::AGAIN | Errno::BUSY | Errno::TXTBSY => Self::Busy,
            Errno::FBIG | Errno::OVERFLOW => Self::TooLarge,
            Errno::NOSYS => Self::Unsupported,
            other => Self::Io(other.raw_os_error()),
        }
    }
}
