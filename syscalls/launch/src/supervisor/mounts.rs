//! The program's view of the file system: all of it, but read-only where it was not granted for
//! writing, and the processes of its own namespace.
//!
//! Landlock says what may be opened. It says nothing of modes, owners, times and attributes, which
//! a program could change of all its user's files: a read-only mount does.
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use super::{At, Failed, Step};
use crate::plan::{Access, Plan};
use crate::sys;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, open, readlinkat, statat};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change,
    move_mount, open_tree,
};

/// Lays it out in this process's mount namespace. Says whether `/proc` is the namespace's own.
pub(crate) fn lay(plan: &Plan, own_processes: bool) -> Result<bool, Failed> {
    let all = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", all).at(Step::Plan)?;
    // Copies of what stays writable, made before all is read-only: what was read-only stays so.
    let mut writable = Vec::new();
    for granted in plan.granted.iter().filter(|granted| granted.access == Access::Write) {
        let here = again(&granted.handle)?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH
            | OpenTreeFlags::AT_RECURSIVE;
        let copy = open_tree(&here, c"", flags).at(Step::Plan)?;
        sys::set_mount(&copy, c"", false).at(Step::Plan)?;
        writable.push((here, copy));
    }
    sys::set_mount(CWD, c"/", true).at(Step::Plan)?;
    for (here, copy) in &writable {
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(copy, c"", here, c"", flags).at(Step::Plan)?;
    }
    let folder = again(&plan.folder).map_err(|Failed(_, error)| Failed(Step::Folder, error))?;
    rustix::process::fchdir(folder).at(Step::Folder)?;
    // Where parts of `/proc` are hidden (in containers), the system refuses a whole one.
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(own_processes && mount(c"proc", c"/proc", c"proc", flags, None).is_ok())
}

/// The open file, as the mounts of this namespace have it. It is found by its name, and must be the
/// same file.
pub(crate) fn again(handle: &OwnedFd) -> Result<OwnedFd, Failed> {
    let name = name_of(handle).at(Step::Plan)?;
    let here =
        open(name.as_c_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).at(Step::Plan)?;
    let (there, found) = (fstat(handle).at(Step::Plan)?, fstat(&here).at(Step::Plan)?);
    if (there.st_dev, there.st_ino) == (found.st_dev, found.st_ino) {
        Ok(here)
    } else {
        Err(Failed(Step::Plan, libc::ESTALE))
    }
}

/// The present name of an open file.
pub(crate) fn name_of(handle: &OwnedFd) -> rustix::io::Result<CString> {
    readlinkat(CWD, format!("/proc/self/fd/{}", handle.as_raw_fd()), Vec::new())
}

/// True if it is a folder.
pub(crate) fn is_folder(handle: impl AsFd) -> bool {
    statat(handle, c"", AtFlags::EMPTY_PATH).is_ok_and(|stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory
    })
}
