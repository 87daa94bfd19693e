//! The bytes between host, helper and program. All ends are this crate's, of one build; what is
//! read is checked all the same.
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::plan::{Access, Granted, Level, Limits, Network, Plan};
use crate::report::{Achieved, Bound, Ended};

/// Bytes of a plan: what Linux gives to arguments and environment together.
pub(crate) const MOST_BYTES: usize = 4 << 20;
/// Handles of a plan besides program, folder, input and terminal: one message takes 253.
pub(crate) const MOST_GRANTED: usize = 200;
/// Folders that are hidden: they go in the same message.
pub(crate) const MOST_HIDDEN: usize = 32;

/// The plan in bytes; its handles go beside it: program, folder, input and terminal if there are
/// any, granted, hidden.
pub(crate) fn write_plan(plan: &Plan) -> Vec<u8> {
    let mut out = Writer::default();
    out.list(plan.arguments.iter().map(OsString::as_os_str));
    out.number(len(plan.environment.len()));
    for (name, value) in &plan.environment {
        out.text(name);
        out.text(value);
    }
    for flag in [plan.input.is_some(), plan.terminal.is_some(), plan.door] {
        out.byte(flag.into());
    }
    out.number(len(plan.granted.len()));
    for granted in &plan.granted {
        out.byte(match granted.access {
            Access::Read => 0,
            Access::Execute => 1,
            Access::Write => 2,
        });
    }
    out.number(len(plan.hidden.len()));
    out.byte(plan.system.into());
    out.byte(match plan.network {
        Network::None => 0,
        Network::Loopback => 1,
        Network::Host => 2,
    });
    out.byte(level_byte(plan.required));
    let Limits { wall_ms, cpu_ms, output_bytes, processes, memory_bytes, file_bytes, descriptors } =
        plan.limits;
    for limit in [wall_ms, cpu_ms, output_bytes, processes.map(u64::from)] {
        out.maybe(limit);
    }
    for limit in [memory_bytes, file_bytes, descriptors] {
        out.maybe(limit);
    }
    out.0
}

/// The plan of those bytes and handles.
pub(crate) fn read_plan(bytes: &[u8], handles: Vec<OwnedFd>) -> Option<Plan> {
    let mut bytes = Reader(bytes);
    let mut handles = handles.into_iter();
    let arguments = bytes.list()?;
    let mut environment = Vec::new();
    for _ in 0..bytes.number()? {
        environment.push((bytes.text()?, bytes.text()?));
    }
    let program = handles.next()?;
    let folder = handles.next()?;
    let (has_input, has_terminal, door) = (bytes.flag()?, bytes.flag()?, bytes.flag()?);
    let input = if has_input { Some(handles.next()?) } else { None };
    let terminal = if has_terminal { Some(handles.next()?) } else { None };
    let mut granted = Vec::new();
    for _ in 0..bytes.number()? {
        let access = match bytes.byte()? {
            0 => Access::Read,
            1 => Access::Execute,
            2 => Access::Write,
            _ => return None,
        };
        granted.push(Granted { handle: handles.next()?, access });
    }
    let mut hidden = Vec::new();
    for _ in 0..bytes.number()? {
        hidden.push(handles.next()?);
    }
    let system = bytes.flag()?;
    let network = match bytes.byte()? {
        0 => Network::None,
        1 => Network::Loopback,
        2 => Network::Host,
        _ => return None,
    };
    let required = level_of(bytes.byte()?)?;
    let limits = Limits {
        wall_ms: bytes.maybe()?,
        cpu_ms: bytes.maybe()?,
        output_bytes: bytes.maybe()?,
        processes: bytes.maybe()?.map(u32::try_from).transpose().ok()?,
        memory_bytes: bytes.maybe()?,
        file_bytes: bytes.maybe()?,
        descriptors: bytes.maybe()?,
    };
    let whole = bytes.0.is_empty() && handles.next().is_none();
    whole.then_some(Plan {
        program,
        arguments,
        environment,
        folder,
        granted,
        hidden,
        system,
        network,
        limits,
        required,
        input,
        terminal,
        door,
    })
}

/// A message before and at the end of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// It is confined thus and about to be executed.
    Begins(Achieved),
    /// The available confinement is less than required.
    TooWeak(Achieved),
    /// A step failed, with that error of the system's.
    Failed(u8, i32),
    /// The program was not executed.
    NotExecuted(i32),
    /// `waitpid` said this of the program.
    Status(i32),
    /// It ended, after so many microseconds of processor and of time.
    Ended(Ended, u64, u64),
    /// It connects to the host; the host's end goes beside this.
    Connected,
}

impl Note {
    pub(crate) fn write(self) -> Vec<u8> {
        let mut out = Writer::default();
        match self {
            Self::Begins(achieved) => out.achieved(1, achieved),
            Self::TooWeak(achieved) => out.achieved(2, achieved),
            Self::Failed(step, error) => {
                out.byte(3);
                out.byte(step);
                out.error(error);
            }
            Self::NotExecuted(error) => {
                out.byte(4);
                out.error(error);
            }
            Self::Status(status) => {
                out.byte(5);
                out.error(status);
            }
            Self::Ended(ended, cpu, wall) => {
                out.byte(6);
                let (kind, number) = match ended {
                    Ended::Exited(code) => (0, code),
                    Ended::Signalled(signal) => (1, signal),
                    Ended::Bound(Bound::Wall) => (2, 0),
                    Ended::Bound(Bound::Cpu) => (2, 1),
                    Ended::Bound(Bound::Output) => (2, 2),
                    Ended::Bound(Bound::Processes) => (2, 3),
                    Ended::Cancelled => (3, 0),
                };
                out.byte(kind);
                out.byte(number);
                out.number(cpu);
                out.number(wall);
            }
            Self::Connected => out.byte(7),
        }
        out.0
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Reader(bytes);
        let note = match bytes.byte()? {
            1 => Self::Begins(bytes.achieved()?),
            2 => Self::TooWeak(bytes.achieved()?),
            3 => Self::Failed(bytes.byte()?, bytes.error()?),
            4 => Self::NotExecuted(bytes.error()?),
            5 => Self::Status(bytes.error()?),
            6 => {
                let ended = match (bytes.byte()?, bytes.byte()?) {
                    (0, code) => Ended::Exited(code),
                    (1, signal) => Ended::Signalled(signal),
                    (2, 0) => Ended::Bound(Bound::Wall),
                    (2, 1) => Ended::Bound(Bound::Cpu),
                    (2, 2) => Ended::Bound(Bound::Output),
                    (2, 3) => Ended::Bound(Bound::Processes),
                    (3, 0) => Ended::Cancelled,
                    _ => return None,
                };
                Self::Ended(ended, bytes.number()?, bytes.number()?)
            }
            7 => Self::Connected,
            _ => return None,
        };
        bytes.0.is_empty().then_some(note)
    }
}

/// The longest note.
pub(crate) const NOTE_BYTES: usize = 32;

const fn level_byte(level: Level) -> u8 {
    match level {
        Level::Bounded => 0,
        Level::Confined => 1,
        Level::Contained => 2,
    }
}

fn level_of(byte: u8) -> Option<Level> {
    Level::ALL.into_iter().find(|level| level_byte(*level) == byte)
}

fn len(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn error(&mut self, error: i32) {
        self.0.extend(error.to_le_bytes());
    }

    fn maybe(&mut self, number: Option<u64>) {
        self.byte(number.is_some().into());
        if let Some(number) = number {
            self.number(number);
        }
    }

    fn text(&mut self, text: &OsStr) {
        self.number(len(text.len()));
        self.0.extend(text.as_bytes());
    }

    fn list<'a>(&mut self, texts: impl ExactSizeIterator<Item = &'a OsStr>) {
        self.number(len(texts.len()));
        for text in texts {
            self.text(text);
        }
    }

    fn achieved(&mut self, kind: u8, achieved: Achieved) {
        let Achieved { landlock, seccomp, user, processes, network, mounts, group } = achieved;
        self.byte(kind);
        self.byte(landlock);
        for flag in [seccomp, user, processes, network, mounts, group] {
            self.byte(flag.into());
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*first))
    }

    fn error(&mut self) -> Option<i32> {
        let (first, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(i32::from_le_bytes(*first))
    }

    fn maybe(&mut self) -> Option<Option<u64>> {
        if self.flag()? { self.number().map(Some) } else { Some(None) }
    }

    fn text(&mut self) -> Option<OsString> {
        let size = usize::try_from(self.number()?).ok()?;
        let (first, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(OsString::from_vec(first.to_vec()))
    }

    fn list(&mut self) -> Option<Vec<OsString>> {
        let mut texts = Vec::new();
        for _ in 0..self.number()? {
            texts.push(self.text()?);
        }
        Some(texts)
    }

    fn achieved(&mut self) -> Option<Achieved> {
        Some(Achieved {
            landlock: self.byte()?,
            seccomp: self.flag()?,
            user: self.flag()?,
            processes: self.flag()?,
            network: self.flag()?,
            mounts: self.flag()?,
            group: self.flag()?,
        })
    }
}
