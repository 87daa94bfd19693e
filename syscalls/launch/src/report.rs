use std::io;

use crate::plan::{Level, Network};

/// How a program ended and what it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// How it ended.
    pub ended: Ended,
    /// Microseconds of processor time that it and its children used.
    pub cpu_us: u64,
    /// Microseconds from its start to the end of its last process.
    pub wall_us: u64,
    /// Bytes of output that were read of it.
    pub output_bytes: u64,
    /// How it was confined.
    pub achieved: Achieved,
}

/// Why nothing of a program runs any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It ended with this code.
    Exited(u8),
    /// A signal of this number ended it.
    Signalled(u8),
    /// It was ended at a bound.
    Bound(Bound),
    /// The caller ended it.
    Cancelled,
}

/// A bound at which a program is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// [`Limits::wall_ms`](crate::Limits::wall_ms).
    Wall,
    /// [`Limits::cpu_ms`](crate::Limits::cpu_ms).
    Cpu,
    /// [`Limits::output_bytes`](crate::Limits::output_bytes).
    Output,
    /// [`Limits::processes`](crate::Limits::processes).
    Processes,
}

impl Bound {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Cpu => "cpu",
            Self::Output => "output",
            Self::Processes => "processes",
        }
    }
}

/// The confinement that was achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Achieved {
    /// The ABI of Landlock that holds it; 0 where none does.
    pub landlock: u8,
    /// True if a seccomp filter holds it.
    pub seccomp: bool,
    /// True if it has its own user namespace.
    pub user: bool,
    /// True if it has its own process namespace.
    pub processes: bool,
    /// True if it has its own network namespace.
    pub network: bool,
    /// True if every path that was not granted for writing is mounted read-only for it.
    pub mounts: bool,
    /// True if a control group counts and ends it.
    pub group: bool,
}

impl Achieved {
    /// The level that this amounts to where a plan grants that network.
    pub fn level(&self, network: Network) -> Level {
        let confined = self.landlock >= 3 && self.seccomp;
        let apart = self.processes && self.mounts && (self.network || network == Network::Host);
        match (confined, apart) {
            (true, true) => Level::Contained,
            // Loopback without a namespace would be the host's.
            (true, false) if network != Network::Loopback => Level::Confined,
            _ => Level::Bounded,
        }
    }
}

/// Why a program did not run, or what became of it is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// Programs are confined on Linux only.
    #[error("programs are started confined on Linux only")]
    Unsupported,
    /// The helper could not be started or spoken to.
    #[error("the helper can't be started: {0}")]
    Helper(#[source] io::Error),
    /// The plan is impossible: too long, too many handles, a NUL.
    #[error("the plan can't be carried out: {0}")]
    Plan(&'static str),
    /// A step before the program's start failed.
    #[error("{step}: {source}")]
    Setup {
        /// The step that failed.
        step: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The confinement required is not to be had here. No process was started.
    #[error("level {} is required, {} is to be had here", required.name(), had.name())]
    Level {
        /// The level that the plan requires.
        required: Level,
        /// The level available here.
        had: Level,
        /// In detail.
        achieved: Achieved,
    },
    /// Folders can't be hidden from a program here. No process was started.
    #[error("folders can't be hidden from a program here: {0}")]
    Hidden(#[source] io::Error),
    /// The system would not execute the program.
    #[error("can't execute the program: {0}")]
    Execute(#[source] io::Error),
    /// The helper is gone without a word; what it held was ended with it.
    #[error("the helper ended without a report")]
    Lost,
}
