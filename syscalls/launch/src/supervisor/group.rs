//! A control group (v2) of the program's own, where one is to be had: it counts the processor time
//! of all that was ever in it, and ends all at once.
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, unlinkat};
use rustix::io::{pread, write};

use crate::plan::Limits;

/// A control group.
pub(crate) struct Group {
    parent: OwnedFd,
    name: String,
    members: File,
    kill: File,
    usage: File,
    /// True if it bounds the number of processes.
    processes: bool,
}

impl Group {
    /// Makes one beneath this process's own, if the host lets it.
    pub(crate) fn make(limits: &Limits) -> Option<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
        let parent = open(place()?, flags, Mode::empty()).ok()?;
        let name = format!("syscap-launch.{}", std::process::id());
        if mkdirat(&parent, name.as_str(), Mode::from_raw_mode(0o755)).is_err() {
            // One of a helper of this number that was killed: removed, if nobody is in it.
            unlinkat(&parent, name.as_str(), AtFlags::REMOVEDIR).ok()?;
            mkdirat(&parent, name.as_str(), Mode::from_raw_mode(0o755)).ok()?;
        }
        let within = openat(&parent, name.as_str(), flags, Mode::empty()).ok();
        let file = |file: &str, flags| {
            let within = within.as_ref()?;
            openat(within, file, flags | OFlags::CLOEXEC, Mode::empty()).ok().map(File::from)
        };
        let mut processes = false;
        // Where the host lends no controller for a bound, others hold it.
        for (bound, limit) in
            [("pids.max", limits.processes.map(u64::from)), ("memory.max", limits.memory_bytes)]
        {
            if let (Some(limit), Some(mut file)) = (limit, file(bound, OFlags::WRONLY)) {
                file.write_all(limit.to_string().as_bytes()).ok()?;
                processes |= bound == "pids.max";
            }
        }
        let group = (|| {
            Some((
                file("cgroup.procs", OFlags::WRONLY)?,
                file("cgroup.kill", OFlags::WRONLY)?,
                file("cpu.stat", OFlags::RDONLY)?,
            ))
        })();
        let Some((members, kill, usage)) = group else {
            unlinkat(&parent, name.as_str(), AtFlags::REMOVEDIR).ok()?;
            return None;
        };
        Some(Self { parent, name, members, kill, usage, processes })
    }

    /// True if the kernel itself bounds the number of its processes.
    pub(crate) fn bounds_processes(&self) -> bool {
        self.processes
    }

    /// Brings the calling process in.
    pub(crate) fn join(&self) -> std::io::Result<()> {
        write(&self.members, b"0")?;
        Ok(())
    }

    /// Kills all that is in it. If that fails, pid 1 is killed besides.
    pub(crate) fn kill(&self) {
        match write(&self.kill, b"1") {
            Ok(_) | Err(_) => {}
        }
    }

    /// Microseconds of processor time of all that was ever in it.
    pub(crate) fn cpu_us(&self) -> Option<u64> {
        let mut bytes = [0; 256];
        let size = pread(&self.usage, &mut bytes[..], 0).ok()?;
        let text = std::str::from_utf8(bytes.get(..size)?).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
        line.trim().parse().ok()
    }

    /// Removes it, when nobody is in it any more.
    pub(crate) fn remove(self) {
        // One that stays is empty; the next helper of this number removes it.
        match unlinkat(&self.parent, self.name.as_str(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(_) => {}
        }
    }
}

/// The mount of this process's group.
fn place() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let root = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then(|| place.split(' ').nth(4)).flatten()
    })?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(PathBuf::from(root).join(own))
}
