//! The process between host and program. It has one thread, from its start to its end.
mod door;
mod filter;
mod group;
mod hide;
mod init;
mod mounts;
mod program;
mod spaces;
mod trace;
mod usage;
mod watch;

use std::io;

pub(crate) use self::watch::run;

/// The name (`argv[0]`) by which a process knows that it was started as the helper.
pub(crate) const NAME: &str = "syscap-launch: helper";
/// The first message, which carries the handles.
pub(crate) const HELLO: &[u8] = b"syscap-launch plan 1";
/// The same, where the program's output is not read by the host.
pub(crate) const SERVE: &[u8] = b"syscap-launch serve 1";
/// The same, to try a view of which nothing is started.
pub(crate) const TRY: &[u8] = b"syscap-launch try 1";
/// The host's order to end the program.
pub(crate) const CANCEL: u8 = 1;
/// The same, since it wrote too much.
pub(crate) const FLOOD: u8 = 2;
/// The host's order to send the program the signal whose number follows.
pub(crate) const SIGNAL: u8 = 3;

/// A step that can fail before a program starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Receive,
    Threads,
    Signals,
    Session,
    Pipes,
    Fork,
    Folder,
    Loopback,
    Streams,
    Limits,
    Privileges,
    Landlock,
    Seccomp,
    Descriptors,
    Plan,
    Terminal,
    Door,
    View,
    Program,
}

impl Step {
    const ALL: [(Self, &'static str); 19] = [
        (Self::Receive, "receiving the plan"),
        (Self::Threads, "the helper has threads: `entry` is not the first line of `main`"),
        (Self::Signals, "resetting signals"),
        (Self::Session, "beginning a session"),
        (Self::Pipes, "making pipes"),
        (Self::Fork, "forking"),
        (Self::Folder, "entering the working folder"),
        (Self::Loopback, "taking up loopback"),
        (Self::Streams, "setting the standard streams"),
        (Self::Limits, "setting limits"),
        (Self::Privileges, "giving up privileges"),
        (Self::Landlock, "confining by Landlock"),
        (Self::Seccomp, "confining by seccomp"),
        (Self::Descriptors, "closing descriptors"),
        (Self::Plan, "reading the plan"),
        (Self::Terminal, "taking up the terminal"),
        (
            Self::Door,
            "letting it connect to its host (it takes Linux 5.14, and that no other \
            process listens to its system calls)",
        ),
        (Self::View, "hiding folders"),
        (Self::Program, "finding the program by its name, which it must have still"),
    ];

    fn number(self) -> u8 {
        Self::ALL
            .iter()
            .position(|(step, _)| *step == self)
            .and_then(|at| u8::try_from(at).ok())
            .unwrap_or(u8::MAX)
    }
}

/// The name of a step in errors.
pub(crate) fn step_name(number: u8) -> &'static str {
    Step::ALL.get(usize::from(number)).map_or("setting up", |(_, name)| name)
}

/// True if the view in which folders are hidden failed at that step.
pub(crate) fn is_view(number: u8) -> bool {
    number == Step::View.number()
}

#[derive(Debug)]
pub(crate) struct Failed(pub(crate) Step, pub(crate) i32);

/// Names the step at which an error came.
pub(crate) trait At<T> {
    fn at(self, step: Step) -> Result<T, Failed>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, step: Step) -> Result<T, Failed> {
        self.map_err(|error| {
            let error: io::Error = error.into();
            Failed(step, error.raw_os_error().unwrap_or(libc::EIO))
        })
    }
}
