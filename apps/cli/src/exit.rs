//! How a run ends: exit codes, and failures in one clear line.

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use syscap::SignerError;
use syscap::boundary::{BoundaryError, Reaches};
use syscap::format::{Reason, Refused, TokenId};
use syscap::kernel::StoreError;
use syscap::keys::KeyUse;
use syscap::policy::LoadError;

use crate::output::{plain, word_of};
use crate::process::by_server;

/// How a command ended.
pub(crate) type Ended = Result<Exit, Failure>;

/// An exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// Failed.
    Failed,
    /// The command line is wrong.
    Usage,
    /// A use of a tool must not be made: clients take this code, and no other, for that.
    Blocked,
    /// A control event was refused.
    Refused,
    /// The home can't be made or opened.
    Home,
    /// No answer: an analysis reached its limit, or a replay could not ask about every call.
    Unknown,
    /// erase: erased, and a reader keeps what was there in the database's files.
    NotPurged,
    /// The log was tampered with.
    Tampered,
    /// The log is incomplete.
    Incomplete,
    /// The log is not anchored.
    NotAnchored,
    /// Newer software wrote a part of the log.
    Newer,
    /// run: no program was started.
    NotStarted,
    /// run: the program's own; or, by the lane, that of the command outside.
    Program(u8),
}

impl Exit {
    /// As the operating system has it.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage | Self::Blocked => 2,
            Self::Refused => 3,
            Self::Home => 4,
            Self::Unknown => 5,
            Self::NotPurged => 6,
            Self::Tampered => 10,
            Self::Incomplete => 11,
            Self::NotAnchored => 12,
            Self::Newer => 13,
            Self::NotStarted => 125,
            Self::Program(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A home can't be made or opened.
    #[error("{}", home_text(folder, source))]
    Home { folder: PathBuf, source: Box<syscap::Error> },
    /// The process that holds the home can't be asked, or did not answer.
    #[error("{0}{advice}", advice = advice(.0))]
    Holder(Box<syscap::Error>),
    /// Another process serves the home, which this one was to serve.
    #[error("{} is served already{}", .0.display(), by_server(.0))]
    Held(PathBuf),
    /// A file of the home that this process serves has gone, or another has its name.
    #[error("{}: is not the file any more that was served: the home was moved or removed", .0.display())]
    Gone(PathBuf),
    /// No process serves the home, and one that does was to be asked.
    #[error("no process serves {}, so {why}", folder.display())]
    Nobody { folder: PathBuf, why: &'static str },
    /// A person must unseal a key, and there is none.
    #[error("the {0} key is sealed: run this at a terminal, where its passphrase is asked for")]
    Sealed(KeyUse),
    /// A control event was refused.
    #[error("the kernel refused it: {0}")]
    Refused(Refused),
    /// Another program holds a lock of the database: no record could be made.
    #[error(
        "busy: another program holds a lock of the home's database, as one that copies or browses \
         it; nothing was done, and it is not in force: end that program, or try again"
    )]
    Busy,
    /// The kernel stopped on the way, or something about a home's files failed.
    #[error("{0}{advice}", advice = stopped(.0))]
    Runtime(Box<syscap::Error>),
    /// A file can't be read or written.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// A port can't be had on both loopback addresses.
    #[error("{}: {source}", .port.map_or_else(|| "no port".to_owned(), |port| format!("port {port}")))]
    Port { port: Option<u16>, source: io::Error },
    /// A file is there already.
    #[error("{}: exists already, and is not overwritten; name another file", .0.display())]
    Exists(PathBuf),
    /// Standard input or output failed.
    #[error("{0}")]
    Stream(io::Error),
    /// The reader of the output has gone.
    #[error("the reader of the output has gone")]
    Pipe,
    /// No such token.
    #[error("no token {token} in {}; see: syscap token list {}", home.display(), word_of(home))]
    UnknownToken { home: PathBuf, token: String },
    /// A name on the command line does not exist or has a wrong form.
    #[error("{what}: {advice}")]
    Usage { what: String, advice: String },
    /// Records of the log can't be read.
    #[error("{0} records can't be read; `syscap verify` says more")]
    Unreadable(u64),
    /// A log can't be verified or exported.
    #[error("{}: {problem}", path.display())]
    Audit { path: PathBuf, problem: String },
    /// A policy document is not sound.
    #[error("{}", unsound(file.as_deref(), error))]
    Unsound { file: Option<PathBuf>, error: Box<LoadError>, exit: Exit },
    /// The gateway did not begin, or broke off.
    #[error("{0}")]
    Gateway(String),
    /// The lane of `syscap run` gave no answer.
    #[error("{0}")]
    Lane(String),
    /// run: no program was started.
    #[error("{problem}")]
    NotStarted { problem: String, exit: Exit },
    /// A policy can't be used for what was asked.
    #[error("{what}: {problem}")]
    Policy { what: String, problem: String },
}

impl From<BoundaryError> for Failure {
    fn from(error: BoundaryError) -> Self {
        let usage = |path: &Path, advice: String| {
            let what = path.display().to_string();
            Self::Usage { what, advice }
        };
        match error {
            BoundaryError::File { path, source } => Self::File { path, source },
            BoundaryError::Guarded { path, how } => {
                let instead = match how {
                    Reaches::Holds(_) => ": name a folder that doesn't, by --workspace DIR",
                    Reaches::LiesIn(_) => ": name a folder elsewhere, by --workspace DIR",
                    Reaches::IsFile => "",
                };
                usage(&path, format!("{how}, which no agent may reach{instead}"))
            }
            BoundaryError::Linked(path) => usage(
                &path,
                "holds a file that has a second name (a hard link), which may lie where the agent \
                 works: remove that name (find -links +1)"
                    .to_owned(),
            ),
        }
    }
}

impl Failure {
    /// The exit code that says so.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Home { .. } | Self::Holder(_) | Self::Held(_) | Self::Nobody { .. } => Exit::Home,
            Self::Refused(_) | Self::Busy | Self::Port { .. } => Exit::Refused,
            Self::Usage { .. } => Exit::Usage,
            Self::Unsound { exit, .. } | Self::NotStarted { exit, .. } => *exit,
            Self::Runtime(_)
            | Self::Sealed(_)
            | Self::File { .. }
            | Self::Exists(_)
            | Self::Gone(_)
            | Self::Stream(_)
            | Self::Pipe
            | Self::UnknownToken { .. }
            | Self::Unreadable(_)
            | Self::Audit { .. }
            | Self::Gateway(_)
            | Self::Lane(_)
            | Self::Policy { .. } => Exit::Failed,
        }
    }

    /// Says it on standard error. Without a reader of the output it is silent.
    pub(crate) fn report(&self) {
        if !matches!(self, Self::Pipe) {
            diagnose(&self.to_string());
        }
    }

    /// For a home that can't be made or opened.
    pub(crate) fn home(folder: &Path) -> impl FnOnce(syscap::Error) -> Self {
        let folder = folder.to_path_buf();
        move |source| match source {
            // They name it themselves, or there is none to name.
            source @ (syscap::Error::NoServer { .. }
            | syscap::Error::Unserved(_)
            | syscap::Error::Foreign(_)
            | syscap::Error::HolderGone) => Self::Holder(Box::new(source)),
            syscap::Error::Home(StoreError::Busy) => Self::Busy,
            source => Self::Home { folder, source: Box::new(source) },
        }
    }

    /// For a token that a home does not have.
    pub(crate) fn unknown(token: TokenId, home: &Path) -> Self {
        Self::UnknownToken { home: home.to_path_buf(), token: token.to_string() }
    }

    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| match source.kind() {
            io::ErrorKind::AlreadyExists => Self::Exists(path),
            _ => Self::File { path, source },
        }
    }
}

impl From<syscap::Error> for Failure {
    fn from(error: syscap::Error) -> Self {
        match error {
            syscap::Error::Refused(refused) if refused.reason() == Reason::Busy => Self::Busy,
            syscap::Error::Refused(refused) => Self::Refused(refused),
            syscap::Error::Home(StoreError::Busy) => Self::Busy,
            error @ (syscap::Error::BadName { .. }
            | syscap::Error::NoSuch { .. }
            | syscap::Error::Attenuated { .. }
            | syscap::Error::Scope(_)) => {
                let advice = "see `syscap token issue --help`".to_owned();
                Self::Usage { what: error.to_string(), advice }
            }
            error @ (syscap::Error::NoServer { .. }
            | syscap::Error::HolderGone
            | syscap::Error::Unserved(_)
            | syscap::Error::Foreign(_)
            | syscap::Error::Version { .. }) => Self::Holder(Box::new(error)),
            syscap::Error::Signer(SignerError::Sealed(key)) => Self::Sealed(key),
            error => Self::Runtime(Box::new(error)),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Pipe,
            _ => Self::Stream(error),
        }
    }
}

/// Ends the process for a command line that is wrong, or that asks for help. Words of it are
/// repeated, and may hold what a terminal would obey: what is said of them has no colours.
pub(crate) fn usage(error: &clap::Error) -> ! {
    if !error.use_stderr() {
        error.exit();
    }
    let text = error.render().to_string();
    let mut shown: Vec<_> = text.lines().map(plain).collect();
    if let Some(tip) = tip(error) {
        // Before the usage.
        let at = shown.iter().position(|line| line.is_empty()).unwrap_or(shown.len());
        shown.splice(at..at, ["".into(), format!("  tip: {tip}").into()]);
        shown.retain(|line| !line.starts_with("  tip: some similar"));
    }
    drop(writeln!(io::stderr(), "{}", shown.join("\n")));
    std::process::exit(error.exit_code());
}

/// The advice on a command line that newcomers type.
fn tip(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(plain(text).into_owned()),
        _ => None,
    };
    let has = |kind, word: &str| match error.get(kind) {
        Some(ContextValue::Strings(words)) => words.iter().any(|one| one.contains(word)),
        _ => false,
    };
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    match error.kind() {
        ErrorKind::UnknownArgument if usage.contains(" -- <PROGRAM>") || usage.contains("[-- ") => {
            let word = text(ContextKind::InvalidArg).filter(|word| !word.starts_with('-'))?;
            Some(format!("put `--` before the program: -- {word}"))
        }
        ErrorKind::InvalidSubcommand => {
            let home = text(ContextKind::InvalidSubcommand)?;
            let command = usage.split_whitespace().nth(2)?.to_owned();
            let verb = match command.as_str() {
                "log" | "policy" => "show",
                "token" | "approvals" | "tools" | "keys" | "artifacts" | "secret" => "list",
                _ => return None,
            };
            let home = Path::new(&home);
            let is_home = home.join("home.db").exists();
            is_home.then(|| format!("syscap {command} {verb} {}", word_of(home)))
        }
        ErrorKind::MissingRequiredArgument if has(ContextKind::InvalidArg, "<ASK>") => {
            Some("name the home first: HOME ASK; or set SYSCAP_HOME".to_owned())
        }
        ErrorKind::MissingRequiredArgument if has(ContextKind::InvalidArg, "--token <ID>") => Some(
            "`syscap token list HOME` has them; `syscap token issue HOME --agent NAME --tool TOOL` \
             makes one"
                .to_owned(),
        ),
        _ => None,
    }
}

/// One line on standard error. If it can't be written there is nowhere to say so.
pub(crate) fn diagnose(text: &str) {
    drop(writeln!(io::stderr(), "syscap: {}", plain(text)));
}

/// One line on standard error that is no complaint.
pub(crate) fn tell(text: &str) {
    drop(writeln!(io::stderr(), "{}", plain(text)));
}

/// `FILE:LINE:COLUMN: fault (key), did you mean ..`, or `FILE: constraints[1].effect: ..`.
fn unsound(file: Option<&Path>, error: &LoadError) -> String {
    let (place, fault) = (&error.place, &error.fault);
    let is_line = place.starts_with(|first: char| first.is_ascii_digit());
    let mut line = match file.map(Path::display) {
        Some(file) if is_line => format!("{file}:{place}: {fault}"),
        Some(file) => format!("{file}: {place}: {fault}"),
        None => format!("{place}: {fault}"),
    };
    if !error.key.is_empty() {
        line.push_str(&format!(" ({})", error.key));
    }
    match error.suggestion.as_deref() {
        None => {}
        Some(few) if few.contains(", ") => {
            line.push_str(&format!(", did you mean one of {few}?"));
        }
        Some(near) => line.push_str(&format!(", did you mean {near}?")),
    }
    line
}

/// The advice on a process that has the home open for itself.
const UNSERVED: &str = "; end that process or wait (commands that only read work)";

/// The advice on a disk without room for another record.
const FULL: &str = "; make room: `syscap doctor` with the home says how much, and what goes on";

/// The advice on a kernel that stopped on the way.
fn stopped(error: &syscap::Error) -> &'static str {
    match error {
        syscap::Error::Home(StoreError::Full) => FULL,
        _ => "",
    }
}

/// The fault of a home that can't be made or opened, and the advice.
fn home_text(folder: &Path, source: &syscap::Error) -> String {
    let (shown, word) = (folder.display(), word_of(folder));
    match source {
        syscap::Error::Home(StoreError::Missing) if folder.is_file() => match folder.parent() {
            Some(home) if home.join("home.db").exists() => {
                format!("{shown} is a file of the home {0}: name {0}", home.display())
            }
            _ => format!("{shown} is a file, and a home is a folder"),
        },
        syscap::Error::Home(StoreError::Missing) => {
            format!("no home at {shown}; create it: syscap init {word}")
        }
        syscap::Error::Home(StoreError::Exists) => {
            format!("{shown} is a home already: use it, or name another folder")
        }
        syscap::Error::Home(StoreError::Locked) => {
            format!("{shown} is open in another process{}{UNSERVED}", by_server(folder))
        }
        syscap::Error::Version { holder, ours } if holder.are_before(*ours) => format!(
            "{shown}: {source}{}; that process is older: end it, and this program starts its own: \
             syscap serve {word} --stop (revoke, freeze and thaw work meanwhile)",
            by_server(folder)
        ),
        syscap::Error::Version { .. } => format!(
            "{shown}: {source}{}; this program is older: use the newer syscap, or end that process: \
             syscap serve {word} --stop (revoke, freeze and thaw work meanwhile)",
            by_server(folder)
        ),
        source => format!("{shown}: {source}{}", advice(source)),
    }
}

/// The advice on a home that can't be made or opened.
fn advice(error: &syscap::Error) -> Cow<'static, str> {
    let advice = match error {
        syscap::Error::Home(error) => match error {
            StoreError::Damaged => "; restore it from a copy, or look with `syscap verify`",
            StoreError::Newer(_) => "; use the newer syscap",
            StoreError::Full => FULL,
            _ => "; `syscap doctor` may say more",
        },
        syscap::Error::NotOwner { owner, .. } => {
            return format!(": sudo -u '#{owner}' syscap ..").into();
        }
        syscap::Error::Unserved(_) => UNSERVED,
        syscap::Error::Foreign(_) => "; a home has one user",
        syscap::Error::HolderGone => "; `syscap log show` says what was done",
        syscap::Error::NoServer { .. } => "",
        syscap::Error::Halted(_) => "; look with `syscap verify`, restore it from a copy",
        _ => "; `syscap doctor` may say more",
    };
    advice.into()
}
