//! The view in which folders are hidden, and nothing else: the helper lays it out around itself and
//! becomes the program.
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, fstat, mkdirat, open, openat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount,
    open_tree,
};
use rustix::process::{chdir, getgid, getuid, setpgid};
use rustix::thread::{CapabilitySet, UnshareFlags};

use super::mounts::{again, is_folder, name_of};
use super::program::{give_up, give_up_privileges, words};
use super::{At, Failed, Step, spaces, watch};
use crate::plan::Plan;
use crate::report::Achieved;
use crate::sys;
use crate::wire::Note;

/// The folder of a hidden one that stays in view.
const KEPT: &str = "files";
/// The capabilities that root gives up: by these it would mount, read other processes and raw
/// disks, or open a covered file by its number.
fn roots() -> CapabilitySet {
    CapabilitySet::SYS_ADMIN
        | CapabilitySet::SYS_PTRACE
        | CapabilitySet::DAC_READ_SEARCH
        | CapabilitySet::SYS_MODULE
        | CapabilitySet::SYS_RAWIO
        | CapabilitySet::MKNOD
}

/// Becomes the program, or tells why not. Only tries, where nothing is to be started.
pub(crate) fn run(plan: Plan, starts: bool, control: &OwnedFd) -> Result<(), Failed> {
    setpgid(None, None).at(Step::Session)?;
    let is_root = getuid().is_root();
    leave(is_root)?;
    cover(&plan)?;
    let folder = name_of(&plan.folder).at(Step::Folder)?;
    // By its name: the handle leads behind what covers it.
    chdir(folder.as_c_str()).at(Step::Folder)?;
    if let Some(input) = &plan.input {
        rustix::stdio::dup2_stdin(input).at(Step::Streams)?;
    }
    sys::close_others_on_exec().at(Step::Descriptors)?;
    let given_up = if is_root { give_up(roots()) } else { give_up_privileges() };
    given_up.at(Step::Privileges)?;
    watch::tell(control, Note::Begins(Achieved::default()));
    if starts {
        watch::tell(control, Note::NotExecuted(execute(plan)));
    }
    Ok(())
}

/// Root over files of others stays root over them only without a user namespace.
fn leave(is_root: bool) -> Result<(), Failed> {
    if !is_root {
        let (user, group) = (getuid(), getgid());
        sys::unshare(UnshareFlags::NEWUSER).at(Step::View)?;
        spaces::map(user.as_raw(), group.as_raw()).at(Step::View)?;
    }
    sys::unshare(UnshareFlags::NEWNS).at(Step::View)?;
    // The program sees later mounts of the host, and the host sees none of this namespace.
    let all = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", all).at(Step::View)
}

/// Covers each hidden folder, the deepest first: what lies in `files` of another is covered before
/// those are bound again.
fn cover(plan: &Plan) -> Result<(), Failed> {
    let mut hidden = Vec::new();
    for handle in &plan.hidden {
        // Found before any is covered: one may lie in another.
        let here = again(handle).map_err(|Failed(_, error)| Failed(Step::Plan, error))?;
        if !is_folder(&here) {
            return Err(Failed(Step::Plan, libc::ENOTDIR));
        }
        let name = name_of(&here).at(Step::Plan)?;
        let depth = name.to_bytes().iter().filter(|byte| **byte == b'/').count();
        hidden.push((depth, here));
    }
    hidden.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
    let onto = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    for (_, here) in &hidden {
        let kept = kept(here)?;
        let empty = empty(kept.is_some())?;
        move_mount(&empty, c"", here, c"", onto).at(Step::View)?;
        if let Some(kept) = kept {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let place = openat(&empty, KEPT, flags, Mode::empty()).at(Step::View)?;
            move_mount(&kept, c"", place, c"", onto).at(Step::View)?;
        }
    }
    Ok(())
}

/// A copy of the mount of what stays in view, with what is mounted below; `None` where there is
/// none. A link is none: it may lead to anywhere.
fn kept(folder: &OwnedFd) -> Result<Option<OwnedFd>, Failed> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let kept = match openat(folder, KEPT, flags, Mode::empty()) {
        Ok(kept) => kept,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        Err(error) => return Err(error).at(Step::Plan),
    };
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(&kept, c"", flags).at(Step::View).map(Some)
}

/// A folder of its own file system, empty but for what stays in view, and read-only.
fn empty(keeps: bool) -> Result<OwnedFd, Failed> {
    let system = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).at(Step::View)?;
    fsconfig_set_string(system.as_fd(), c"mode", c"755").at(Step::View)?;
    fsconfig_set_string(system.as_fd(), c"size", c"64k").at(Step::View)?;
    fsconfig_create(system.as_fd()).at(Step::View)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let empty =
        fsmount(system.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes).at(Step::View)?;
    if keeps {
        mkdirat(&empty, KEPT, Mode::from_raw_mode(0o755)).at(Step::View)?;
    }
    sys::set_mount(&empty, c"", true).at(Step::View)?;
    Ok(empty)
}

/// Executes it by its name, or says the system's reason why not.
fn execute(mut plan: Plan) -> i32 {
    let Some((arguments, environment)) = words(&mut plan) else { return libc::EINVAL };
    let Some(name) = arguments.first() else { return libc::EINVAL };
    let found = open(name.as_c_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    match found.and_then(|found| Ok((fstat(&found)?, fstat(&plan.program)?))) {
        Ok((found, meant)) if (found.st_dev, found.st_ino) != (meant.st_dev, meant.st_ino) => {
            return libc::ESTALE;
        }
        Ok(_) => {}
        Err(error) => return error.raw_os_error(),
    }
    sys::execute(CWD, name, &arguments, &environment).raw_os_error().unwrap_or(libc::EIO)
}
