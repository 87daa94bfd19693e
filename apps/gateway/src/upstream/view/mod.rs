//! How a server's process is started: in which folder, by which program, and what it sees.
//!
//! | view | where | what it sees |
//! |---|---|---|
//! | hidden | by default | all, but homes, their keys and sockets |
//! | confined | where it is asked for; in a run, where the command names what the agent may write | what is opened to it |
//! | unhidden | where the operator says so, or folders can't be hidden here | all |

mod confined;
mod homes;
mod words;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::{env, fs};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use syscap::boundary::environment::{self, path_outside};
use syscap::boundary::{BoundaryError, Guarded, Place, Scratch, Way, runs};
use syscap::launch::{LaunchError, Launcher, Lease, Level, Plan};

use self::confined::Confined;
use crate::error::Error;
use crate::options::{Opened, Options, ServerCommand, ServerView};
use crate::say::say;

/// The variables that every program needs to find its files and to speak to its user.
const ENV: [&str; 14] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "NODE_EXTRA_CA_CERTS",
];

/// Why a server is not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsafe {
    /// The agent could say what is executed.
    #[error(
        "its program {} lies in {}, which an agent may write: name one that lies elsewhere{}",
        program.display(), place.display(), or_forget(forget.as_deref())
    )]
    Program { program: PathBuf, place: PathBuf, forget: Option<PathBuf> },
    /// The agent could say what it finds.
    #[error(
        "its folder {} lies in {}, which an agent may write: name another by --cwd DIR{}",
        folder.display(), place.display(), or_forget(forget.as_deref())
    )]
    Folder { folder: PathBuf, place: PathBuf, forget: Option<PathBuf> },
    /// It would reach the home, and that can't be hidden here.
    #[error(
        "{source}, and that can't be hidden from it here ({why}): name a folder without it, or let \
         the server see it: --unhidden {server}"
    )]
    SeesHome { server: String, why: String, source: BoundaryError },
    /// A path can't be opened to it.
    #[error("{0}")]
    Opened(#[from] BoundaryError),
    /// It must run confined, and can't.
    #[error("it can't run confined here: {0}; {advice}", advice = "`syscap doctor` says more")]
    Confinement(LaunchError),
    /// A home can't be hidden from it.
    #[error("homes can't be hidden from it: {0}")]
    Hiding(LaunchError),
}

fn or_forget(home: Option<&Path>) -> String {
    let home = home.map(|home| syscap::plain::shell_word(&home.to_string_lossy()).into_owned());
    let command = home.map(|home| {
        format!("; or look at what its run changed, then: syscap changes {home} --forget")
    });
    command.unwrap_or_default()
}

/// Why no process of a server runs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotStarted {
    /// The start is unsafe.
    #[error(transparent)]
    Unsafe(#[from] Unsafe),
    /// The system refused.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// A server's process, and its standard streams.
pub(crate) struct Spawned {
    pub(crate) child: Child,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
    /// Dropped, a confined one ends.
    pub(crate) lease: Option<Lease>,
    /// Its HOME and TMPDIR, which end with it.
    pub(crate) scratch: Option<Scratch>,
}

/// How servers of a gateway are started.
pub(crate) struct Starter {
    home: PathBuf,
    /// The places that the agent of this run may write.
    run: Vec<PathBuf>,
    /// The result of trying to hide a folder, or why that failed. It is tried once: later failures
    /// are those of a server, and never a reason to show it more.
    hides: OnceLock<Result<(), String>>,
    /// The lines that are said once.
    said: Mutex<BTreeSet<String>>,
}

/// A start that is settled, and not made yet.
enum Start {
    Plain(Command),
    Hidden(Plan),
    Confined(Confined),
}

impl Starter {
    pub(crate) fn new(options: &Options) -> Self {
        let (home, run) = (options.home.clone(), options.written.clone());
        Self { home, run, hides: OnceLock::new(), said: Mutex::default() }
    }

    /// Refuses servers that may not be started as they are now. It starts none.
    pub(crate) fn check_all(&self, servers: &[ServerCommand]) -> Result<(), Error> {
        for command in servers {
            // An error of the system's is told at the start.
            if let Err(NotStarted::Unsafe(why)) = self.settle(command) {
                let server = command.name.clone();
                return Err(Error::Unsafe { server, why: why.to_string() });
            }
        }
        Ok(())
    }

    /// Starts a server, in a process group of its own.
    pub(crate) fn start(&self, command: &ServerCommand) -> Result<Spawned, NotStarted> {
        let (plan, scratch) = match self.settle(command)? {
            Start::Plain(command) => return plain(command).map_err(NotStarted::System),
            Start::Hidden(plan) => (plan, None),
            Start::Confined(confined) => {
                let (plan, scratch, line) = confined.into_plan()?;
                self.say_once(&format!("server {}: {line}", command.name));
                (plan, Some(scratch))
            }
        };
        let confines = scratch.is_some();
        let serving = Launcher::this().and_then(|launcher| launcher.serve(plan));
        let serving = serving.map_err(|error| match error {
            LaunchError::Execute(error) => NotStarted::System(error),
            error if confines => Unsafe::Confinement(error).into(),
            error => Unsafe::Hiding(error).into(),
        })?;
        let lease = Some(serving.lease).filter(Lease::is_held);
        let (stdin, stdout, stderr) = (serving.stdin, serving.stdout, serving.stderr);
        Ok(Spawned { child: serving.child, stdin, stdout, stderr, lease, scratch })
    }

    /// A server's view, in words.
    pub(crate) fn view(&self, command: &ServerCommand) -> String {
        match self.settle(command) {
            Ok(Start::Hidden(_)) => "hidden".to_owned(),
            Ok(Start::Plain(_)) => "unhidden".to_owned(),
            Ok(Start::Confined(confined)) => {
                format!("confined, network {}", confined.network().name())
            }
            Err(_) => "nothing: it can't be started".to_owned(),
        }
    }

    /// Looks at all that decides how a server is started, each time anew.
    fn settle(&self, command: &ServerCommand) -> Result<Start, NotStarted> {
        let folder = match &command.folder {
            Some(folder) => folder.clone(),
            None => env::current_dir()?,
        };
        let (own, all) = self.written()?;
        let within = |way: &Way| all.iter().find(|place| way.touches(place));
        let recorded = |place: &Place| {
            let is_own = own.iter().any(|own| own.contains(place));
            (!is_own).then(|| self.home.clone())
        };
        if let Some(named) = &command.folder
            && let Some(place) = within(&Way::of(named, Path::new("/"))?)
        {
            let (place, forget) = (place.shown().to_path_buf(), recorded(place));
            return Err(Unsafe::Folder { folder: named.clone(), place, forget }.into());
        }
        let path = self.path(command, &all);
        let name =
            command.command.first().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let program = match find(name, &path, &folder) {
            Ok(program) => program,
            // It may be found where the agent could have put it, and there alone.
            Err(error) => {
                let here = command.path().or_else(|| env::var_os("PATH")).unwrap_or_default();
                let found = find(name, &here, &folder);
                let found = found.ok().filter(|found| {
                    Way::of(found, &folder).is_ok_and(|way| within(&way).is_some())
                });
                found.ok_or(error)?
            }
        };
        if let Some(place) = within(&Way::of(&program, &folder)?) {
            let (place, forget) = (place.shown().to_path_buf(), recorded(place));
            return Err(Unsafe::Program { program, place, forget }.into());
        }
        let variables = variables(command, &path);
        let named = words::named(command, &variables, &folder, &own)?;
        match &command.view {
            ServerView::Confined(opened) => {
                Confined::new(&self.home, command, program, folder, path, named, opened)
                    .map(Start::Confined)
            }
            _ if !named.is_empty() => {
                let opened = Opened::default();
                Confined::new(&self.home, command, program, folder, path, named, &opened)
                    .map(Start::Confined)
            }
            ServerView::Unhidden => Ok(Start::Plain(bare(command, &program, &folder, variables))),
            ServerView::Hidden => self.hidden(command, program, &folder, variables),
        }
    }

    fn hidden(
        &self,
        command: &ServerCommand,
        program: PathBuf,
        folder: &Path,
        variables: Vec<(OsString, OsString)>,
    ) -> Result<Start, NotStarted> {
        let folders = words::folders(command, folder)?;
        if let Err(why) = self.hides() {
            self.expect_apart(command, &folders, why)?;
            self.say_once(&format!(
                "homes and keys can't be hidden from servers here ({why}): they see all that this \
                 user sees"
            ));
            return Ok(Start::Plain(bare(command, &program, folder, variables)));
        }
        let mut hidden = Vec::new();
        for place in homes::of(&self.home, folders.iter().chain([&Place::open(folder)?]))? {
            hidden.push(place.handle()?);
        }
        let handle = |path: &Path| Place::open(path).and_then(|place| place.handle());
        // A relative name is looked up where the server begins.
        let mut plan = Plan::new(handle(&folder.join(&program))?, program.into(), handle(folder)?);
        plan.arguments.extend(command.command.iter().skip(1).map(OsString::from));
        (plan.environment, plan.hidden) = (variables, hidden);
        Ok(Start::Hidden(plan))
    }

    /// Without the view nothing keeps a server from what its words name.
    fn expect_apart(
        &self,
        command: &ServerCommand,
        folders: &[Place],
        why: &str,
    ) -> Result<(), NotStarted> {
        let refused = |source| {
            let (server, why) = (command.name.clone(), why.to_owned());
            NotStarted::Unsafe(Unsafe::SeesHome { server, why, source })
        };
        for home in homes::of(&self.home, folders.iter())? {
            let home = home.real()?;
            let guarded = match Guarded::of(&home) {
                Ok(guarded) => guarded,
                // Another user's home is not there for the server either.
                Err(BoundaryError::File { source, .. })
                    if source.kind() == io::ErrorKind::PermissionDenied =>
                {
                    continue;
                }
                Err(error) => return Err(refused(error)),
            };
            for place in folders {
                guarded.expect_apart(place).map_err(refused)?;
            }
        }
        let guarded = Guarded::of(&self.home).map_err(refused)?;
        folders.iter().try_for_each(|place| guarded.expect_apart(place).map_err(refused))
    }

    fn hides(&self) -> Result<(), &str> {
        let hides = self.hides.get_or_init(|| {
            let folder = Place::open(&self.home).and_then(|home| home.handle());
            let folder = folder.map_err(|error| error.to_string())?;
            let tried = Launcher::this().and_then(|launcher| launcher.can_hide(vec![folder]));
            tried.map_err(|error| error.to_string())
        });
        hides.as_ref().copied().map_err(String::as_str)
    }

    /// The places that an agent may write: of this run, and of all runs on record. One of an earlier
    /// run that is gone holds nothing; any other that can't be looked at is a refusal.
    fn written(&self) -> Result<(Vec<Place>, Vec<Place>), Unsafe> {
        let own = || {
            let opened = self.run.iter().map(|path| {
                Place::open(path).map_err(BoundaryError::file(path)).map_err(Unsafe::Opened)
            });
            opened.collect::<Result<Vec<_>, _>>()
        };
        let (own, mut all) = (own()?, own()?);
        for path in runs::writable(&self.home)? {
            match Place::open(&path) {
                Ok(place) => all.push(place),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(BoundaryError::file(&path)(error).into()),
            }
        }
        Ok((own, all))
    }

    /// The `PATH` of a server, without what an agent could put into it.
    fn path(&self, command: &ServerCommand, written: &[Place]) -> OsString {
        let here = command.path().or_else(|| env::var_os("PATH"));
        let here = here.unwrap_or_else(|| environment::PATH.into());
        let (path, left_out) = path_outside(&here, written);
        for folder in left_out {
            self.say_once(&format!(
                "{} in PATH is passed over: an agent may say what lies there",
                folder.display()
            ));
        }
        path
    }

    fn say_once(&self, line: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.insert(line.to_owned()) {
            say(line);
        }
    }
}

impl ServerCommand {
    /// The `PATH` that is said of it.
    fn path(&self) -> Option<OsString> {
        let path = self.env.iter().rev().find(|(name, _)| name == "PATH");
        path.map(|(_, value)| value.clone())
    }
}

/// The path of a program: as it is written where it has a `/`, else as the first that may be executed
/// in a folder of `PATH`.
fn find(name: &str, path: &OsStr, folder: &Path) -> io::Result<PathBuf> {
    if name.contains('/') {
        let there = fs::metadata(folder.join(name))?;
        return match there.is_dir() {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => Ok(PathBuf::from(name)),
        };
    }
    let mut denied = false;
    for place in env::split_paths(path) {
        let found = folder.join(place).join(name);
        match fs::metadata(&found) {
            Ok(it) if it.is_file() => {
                if accessat(CWD, &found, Access::EXEC_OK, AtFlags::EACCESS).is_ok() {
                    return Ok(found);
                }
                denied = true;
            }
            _ => {}
        }
    }
    Err(if denied { io::ErrorKind::PermissionDenied } else { io::ErrorKind::NotFound }.into())
}

/// The variables that every program needs, and those that are said of the server.
fn variables(command: &ServerCommand, path: &OsStr) -> Vec<(OsString, OsString)> {
    let known = ENV.iter().filter(|name| **name != "PATH");
    let known = known.filter_map(|name| Some((OsString::from(name), env::var_os(name)?)));
    let mut all: Vec<(OsString, OsString)> = known.collect();
    for (name, value) in &command.env {
        all.retain(|(known, _)| known != OsStr::new(name));
        all.push((name.into(), value.clone()));
    }
    all.retain(|(known, _)| known != "PATH");
    all.push(("PATH".into(), path.to_owned()));
    all
}

/// The command of a server that sees everything.
fn bare(
    command: &ServerCommand,
    program: &Path,
    folder: &Path,
    variables: Vec<(OsString, OsString)>,
) -> Command {
    let mut bare = Command::new(program);
    bare.args(command.command.iter().skip(1)).current_dir(folder).process_group(0);
    bare.env_clear().envs(variables);
    bare
}

fn plain(mut command: Command) -> io::Result<Spawned> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let streams = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
    let ((stdin, stdout), stderr) = streams.ok_or(io::ErrorKind::BrokenPipe)?;
    Ok(Spawned { child, stdin, stdout, stderr, lease: None, scratch: None })
}

/// The weakest confinement that a server must have: nothing silently counts as less.
const CONFINED: Level = Level::Confined;
