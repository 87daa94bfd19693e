//! Namespaces.
use std::{fs, io};

use rustix::process::{getgid, getuid};
use rustix::thread::UnshareFlags;

use crate::{plan::Network, report::Achieved, sys};

/// Leaves the host's namespaces for new ones, as far as that is to be had, and says which.
///
/// A user namespace comes first: in it nobody is root over anything of the host's, whoever started
/// this. Without user namespaces root can have the others.
pub(crate) fn leave(network: Network) -> Achieved {
    let mut flags =
        UnshareFlags::NEWPID | UnshareFlags::NEWNS | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    if network != Network::Host {
        flags |= UnshareFlags::NEWNET;
    }
    let (user, group) = (getuid(), getgid());
    // Root's other groups would be kept in the new namespace, where they can't be left any more.
    let rooted = user.is_root();
    if rooted && rustix::thread::set_thread_groups(&[group]).is_err() {
        return Achieved::default();
    }
    let had = |with_user| Achieved {
        user: with_user,
        processes: true,
        network: flags.contains(UnshareFlags::NEWNET),
        mounts: true,
        ..Achieved::default()
    };
    if sys::unshare(UnshareFlags::NEWUSER).is_ok() {
        let mapped = map(user.as_raw(), group.as_raw());
        bound_inotify();
        return if mapped.is_ok() && sys::unshare(flags).is_ok() {
            had(true)
        } else {
            Achieved::default()
        };
    }
    if rooted && sys::unshare(flags).is_ok() { had(false) } else { Achieved::default() }
}

/// Instances and watches of inotify (7) count for the user outside, too. A program gets a few, as
/// watchers of files need.
fn bound_inotify() {
    for (name, most) in [("instances", "16"), ("watches", "65536")] {
        // An older system has no such bound; nothing else rests on it.
        fs::write(format!("/proc/sys/user/max_inotify_{name}"), most).unwrap_or(());
    }
}

/// In the new user namespace the user is who it is, and nobody else exists.
pub(crate) fn map(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}
