//! The use of a tree of processes, by `/proc`: for systems without a control group.
//!
//! The use of a process that ended unwaited for (its parent ignores `SIGCHLD`) is lost.
use std::{collections::BTreeMap, fs};

use rustix::process::Pid;

/// The use seen so far.
pub(crate) struct Used {
    /// Microseconds of processor time.
    pub(crate) cpu_us: u64,
    /// Processes and threads.
    pub(crate) processes: u64,
}

/// Looks at a tree of processes.
pub(crate) struct Meter {
    root: Pid,
    /// True if `/proc` shows that tree only.
    own: bool,
    /// Microseconds of one of the system's ticks.
    tick: u64,
}

struct Process {
    parent: i32,
    ticks: u64,
    threads: u64,
}

impl Meter {
    /// The use of this process's descendants; `own` if it is pid 1 of a namespace.
    pub(crate) fn new(root: Pid, own: bool) -> Self {
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        Self { root, own, tick: 1_000_000 / ticks }
    }

    pub(crate) fn look(&self) -> Option<Used> {
        let tree = self.tree()?;
        let ticks = tree.values().fold(0, |sum: u64, one| sum.saturating_add(one.ticks));
        let processes = tree.values().fold(0, |sum: u64, one| sum.saturating_add(one.threads));
        // The root is this crate's own.
        let processes = processes.saturating_sub(1);
        Some(Used { cpu_us: ticks.saturating_mul(self.tick), processes })
    }

    /// All descendants, the root not among them.
    pub(crate) fn all(&self) -> Vec<Pid> {
        let tree = self.tree().unwrap_or_default();
        let pids = tree.into_keys().filter_map(Pid::from_raw);
        pids.filter(|pid| *pid != self.root).collect()
    }

    fn tree(&self) -> Option<BTreeMap<i32, Process>> {
        let mut every = BTreeMap::new();
        for entry in fs::read_dir("/proc").ok()?.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // One that ends meanwhile is counted with its parent.
            if let Some(process) = fs::read(entry.path().join("stat")).ok().and_then(parse) {
                every.insert(pid, process);
            }
        }
        // In the namespace's own `/proc` this process, which is not of it, has no place.
        if self.own && fs::read_link("/proc/self").is_err() {
            return Some(every);
        }
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for (pid, process) in &every {
            children.entry(process.parent).or_default().push(*pid);
        }
        let mut tree = BTreeMap::new();
        let mut next = vec![self.root.as_raw_nonzero().get()];
        while let Some(pid) = next.pop() {
            if let Some(process) = every.remove(&pid) {
                next.extend(children.remove(&pid).unwrap_or_default());
                tree.insert(pid, process);
            }
        }
        Some(tree)
    }
}

/// `proc_pid_stat(5)`: parent, the four times, threads. The name, in parentheses, may be anything.
fn parse(stat: Vec<u8>) -> Option<Process> {
    let text = String::from_utf8_lossy(&stat);
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    let ticks = [11, 12, 13, 14]
        .into_iter()
        .map(number)
        .try_fold(0_u64, |sum, one| Some(sum.saturating_add(one?)))?;
    let parent = fields.get(1)?.parse().ok()?;
    Some(Process { parent, ticks, threads: number(17)? })
}
