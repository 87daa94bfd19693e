//! Reaching the server of a home, and starting one that outlives this process where there is none.
//!
//! What a client of a home hands on to a server by accident would be the server's for as long as it
//! lives: so it is started with nothing but what is named here, and with its end in sight.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use std::{env, fs, thread};

use rustix::process::{Resource, getrlimit};
use syscap::audit::{DATABASE_FILE, HomeLock, SqliteReader};
use syscap::{Connect, Error, Home, Operator, Runtime, Starter, Versions};

use crate::exit::Failure;
use crate::runtime::{self, People};
use crate::serve::{READY, log};

/// How long one that was started may take to serve.
const START_TIME: Duration = Duration::from_secs(12);
/// Longest word of one that can't, in bytes.
const WHY_BYTES_MAX: u64 = 4 << 10;
/// Its first option, behind the home.
const STARTED: &str = "--started";
/// What it has of the environment.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const PASSED: [&str; 3] = ["HOME", "LANG", "TZ"];

/// How long a client is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// The server stays for it.
    Stays,
    /// It asks and goes.
    Passes,
}

/// Connects to the server of a home; starts one where there is none.
pub(crate) fn reach(home: &Path, people: People, presence: Presence) -> Result<Runtime, Failure> {
    let connect = || {
        let connect = Connect::to(home).starting(starter(home));
        let connect = if people.are_absent() { connect.headless() } else { connect };
        match presence {
            Presence::Stays => connect.stays().open(),
            Presence::Passes => connect.open(),
        }
    };
    let connected = match runtime::noticed(home, connect) {
        Err(Error::Version { .. }) => follow(home).and_then(|()| connect()),
        connected => connected,
    };
    connected.map_err(Failure::home(home))
}

/// Ends a server that a client of another version has started, where nobody uses it: one of this
/// version is started then.
pub(crate) fn follow(home: &Path) -> Result<(), Error> {
    // Where there is none, or it says nothing, connecting says what is wrong.
    let Ok(other) = Operator::connect(home) else { return Ok(()) };
    let Ok(status) = other.status() else { return Ok(()) };
    let is_other = status.versions.common(Versions::OURS).is_none();
    match is_other && status.sessions == 0 && status.running == 0 && is_started(home) {
        true => other.shutdown().map(drop),
        false => Ok(()),
    }
}

/// True if a client has started the process that serves a home.
fn is_started(home: &Path) -> bool {
    let line = HomeLock::holder(home).map(|process| fs::read(format!("/proc/{process}/cmdline")));
    let line = line.and_then(Result::ok).unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0).skip(1);
    words.next() == Some(b"serve") && words.nth(1) == Some(STARTED.as_bytes())
}

/// Starts servers of a home, each once it is asked for.
pub(crate) fn starter(home: &Path) -> Starter {
    let home = home.to_path_buf();
    Starter::new(move || start(&home))
}

/// Starts one, and waits until it serves. One that finds another serving ends: that is as good.
fn start(home: &Path) -> Result<(), Error> {
    let none = |why: String| Error::NoServer { home: home.to_path_buf(), why };
    let serving = Home::at(home).serving()?;
    if let Some(program) = serving.program {
        let why = "it serves the home with tools or keys of its own: start that";
        return Err(none(format!("{program}: {why} (or take `program` out of the file `server`)")));
    }
    may_start(home)?;
    if let Some(limit) = limited() {
        return Err(none(format!("{limit} is limited here, and would be the server's")));
    }
    let folder = std::path::absolute(home).map_err(|error| none(error.to_string()))?;
    let log = log::open(&folder).map_err(|error| none(error.to_string()))?;
    let mut command = Command::new("/proc/self/exe");
    // The program that this process was started from, whatever has its name now.
    command.arg0("syscap").arg("serve").arg(&folder).arg(STARTED);
    command.env_clear().env("PATH", PATH);
    command.envs(PASSED.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let child = command.spawn().map_err(|error| none(error.to_string()))?;
    match said(child).map_err(none)? {
        said if said.is_empty() || said == READY => Ok(()),
        why => Err(none(why)),
    }
}

/// The first word of a server that was started: that it is ready, why not, or nothing.
fn said(mut child: Child) -> Result<String, String> {
    let Some(mut output) = child.stdout.take() else { return Ok(String::new()) };
    let (says, heard) = channel();
    let listen = move || {
        let mut said = Vec::new();
        let read = output.by_ref().take(WHY_BYTES_MAX).read_to_end(&mut said);
        says.send(read.map(|_| String::from_utf8_lossy(&said).trim().to_owned())).unwrap_or(());
        // It is this process's child as long as both live.
        child.wait().map(drop).unwrap_or(());
    };
    let listening = thread::Builder::new().name("syscap-started".to_owned()).spawn(listen);
    listening.map_err(|error| error.to_string())?;
    match heard.recv_timeout(START_TIME) {
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(RecvTimeoutError::Timeout) => {
            Err("it was started, and is not ready in time".to_owned())
        }
        Err(RecvTimeoutError::Disconnected) => Ok(String::new()),
    }
}

/// Refuses to start one for another user's home, and where it would end at once. Inside a run no
/// command comes here: what is called outside answers.
fn may_start(home: &Path) -> Result<(), Error> {
    // It says what is wrong with the home.
    SqliteReader::open(home).map_err(Error::Home)?;
    let database: PathBuf = home.join(DATABASE_FILE);
    let owner = fs::metadata(&database).map_err(|source| Error::File { path: database, source })?;
    match owner.uid() == rustix::process::geteuid().as_raw() {
        true => Ok(()),
        false => Err(Error::NotOwner { home: home.to_path_buf(), owner: owner.uid() }),
    }
}

/// The limit of this process by which a server would end.
fn limited() -> Option<&'static str> {
    let limits = [
        (Resource::Cpu, "processor time (ulimit -t)"),
        (Resource::Fsize, "the size of files (ulimit -f)"),
        (Resource::As, "memory (ulimit -v)"),
        (Resource::Data, "memory (ulimit -d)"),
    ];
    let finite = |(resource, _): &(Resource, &str)| getrlimit(*resource).current.is_some();
    limits.into_iter().find(finite).map(|(_, name)| name)
}
