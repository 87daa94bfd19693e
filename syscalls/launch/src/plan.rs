use std::{ffi::OsString, os::fd::OwnedFd};

/// A plan for a program: its command, its paths and its limits.
///
/// Files are handles, not names: what the caller looked at is what is executed and opened to the
/// program.
#[derive(Debug)]
#[non_exhaustive]
pub struct Plan {
    /// The program's file, opened (`O_PATH` will do). It may be read and executed. Where the program
    /// has mounts of its own it is found there by its name: one that was removed, or lies in memory
    /// alone, is not started.
    pub program: OwnedFd,
    /// `argv`, the program's own name first.
    pub arguments: Vec<OsString>,
    /// The whole environment: nothing of the caller's is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// The working folder, opened. It gives no right to anything in it.
    pub folder: OwnedFd,
    /// Files and folders that are opened to the program, with all that is in them. At most 200.
    pub granted: Vec<Granted>,
    /// Folders that are hidden from the program, at most 32. Where there are any, this is its whole
    /// view: an empty, read-only folder covers each of them, with the `files` in it in their place,
    /// and all else is the host's, network, Unix sockets and processes too. No Landlock and no filter
    /// hold it, [`Plan::granted`], [`Plan::system`], [`Plan::network`] and the limits say nothing,
    /// and no level is required of it: it is no boundary. It has no capabilities and gains none; as
    /// root it keeps those that change files of others.
    ///
    /// The program is executed by its name, the first argument, which must lead to
    /// [`Plan::program`]: scripts learn where they lie.
    pub hidden: Vec<OwnedFd>,
    /// True if the paths of [`SYSTEM`] may be read and executed, and those of [`DEVICES`] used.
    pub system: bool,
    /// The reachable network.
    pub network: Network,
    /// The limits of its use.
    pub limits: Limits,
    /// The least confinement that will do. Below it nothing is started.
    pub required: Level,
    /// Its standard input; empty where there is none. An unnamed pipe is handed in. A regular file and
    /// `/dev/null` are opened anew for reading, within its view. The bytes of all else (a named pipe,
    /// a device, a socket, a removed or another's file) are carried by a pipe.
    pub input: Option<OwnedFd>,
    /// Its terminal, the lower end of a pair: all three streams are this one then, and nothing is
    /// told of output. It may be opened by its name too, and by `/dev/tty`.
    pub terminal: Option<OwnedFd>,
    /// True if it and all processes that it starts may connect to the host; see [`DOOR`].
    pub door: bool,
}

/// The protocol by which a program that has a [door](Plan::door) connects to the host: an
/// `AF_UNIX` socket of type `SOCK_STREAM` that is made with it is connected already. No other Unix
/// socket is to be had, and outside of such a program no socket by this protocol.
pub const DOOR: u32 = 0x5359_5343;

impl Plan {
    /// The program, under its own name, in a folder: confined as well as is to be had
    /// ([`Level::Contained`] required), without network, arguments, environment or bounds.
    pub fn new(program: OwnedFd, name: OsString, folder: OwnedFd) -> Self {
        Self {
            program,
            arguments: vec![name],
            environment: Vec::new(),
            folder,
            granted: Vec::new(),
            hidden: Vec::new(),
            system: true,
            network: Network::None,
            limits: Limits::default(),
            required: Level::Contained,
            input: None,
            terminal: None,
            door: false,
        }
    }
}

/// The paths that a dynamically linked program needs: read and executed if [`Plan::system`] says
/// so, as far as they exist.
pub const SYSTEM: [&str; 9] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/localtime",
];

/// Devices without memory, read and written where [`Plan::system`] says so.
pub const DEVICES: [&str; 5] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// A file or folder that is opened to the program.
#[derive(Debug)]
pub struct Granted {
    /// It, opened (`O_PATH` will do).
    pub handle: OwnedFd,
    /// For what.
    pub access: Access,
}

/// The rights on a granted path and everything in it. Two grants of one folder add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read and list.
    Read,
    /// Read, list and execute.
    Execute,
    /// Read, list, write, make, rename and delete; not execute.
    Write,
}

/// The network that a program reaches.
///
/// Unix sockets are nobody's, but for the [door](Plan::door) to the host: whoever listens on one (a
/// container engine, a bus, a key agent) would act outside on the program's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// No socket of any family.
    None,
    /// IP, within a network namespace of its own that has nothing but loopback.
    Loopback,
    /// IP, as the host has it: to any address, the host's own included.
    Host,
}

impl Network {
    /// Its name: `none`, `loopback` or `host`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Loopback => "loopback",
            Self::Host => "host",
        }
    }
}

/// The limits of a program, all its children included. `None` is without a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Milliseconds from its start.
    pub wall_ms: Option<u64>,
    /// Milliseconds of processor time, of all processes together.
    pub cpu_ms: Option<u64>,
    /// Bytes of output, of both streams together.
    pub output_bytes: Option<u64>,
    /// Processes and threads at one time.
    pub processes: Option<u32>,
    /// Bytes of memory: of all together where a control group can say it, else of each process.
    pub memory_bytes: Option<u64>,
    /// Bytes of each file that it writes.
    pub file_bytes: Option<u64>,
    /// Open descriptors of each process.
    pub descriptors: Option<u64>,
}

/// How well a program is confined, from the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Held to its bounds, with no new privileges, no environment, descriptors or terminal of the
    /// caller's. It may touch what its user may.
    Bounded,
    /// Besides: Landlock (ABI 3 or later) leaves it only the files that are granted, and seccomp
    /// no sockets but those granted, no change of modes, owners or extended attributes, and none
    /// of the calls by which kernels are attacked. It sees the host's processes, though it may not
    /// touch them.
    Confined,
    /// Besides: process, mount and (but with [`Network::Host`]) network namespaces of its own. It
    /// sees no process but its own, no file outside is written in any way, and at its end nothing
    /// of it is left.
    Contained,
}

impl Level {
    /// All of them, from the weakest.
    pub const ALL: [Self; 3] = [Self::Bounded, Self::Confined, Self::Contained];

    /// Its name in plans, policies and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bounded => "bounded",
            Self::Confined => "confined",
            Self::Contained => "contained",
        }
    }

    /// The level of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}
