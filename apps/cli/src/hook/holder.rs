//! Reaching the process that holds the home, which outlives this one.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use syscap::{Runtime, audit::SqliteReader};

use crate::{exit::Failure, runtime::People};

/// How long one that was started may take to serve.
const START_TIME: Duration = Duration::from_secs(12);
/// How long it is looked for another after the one that was started has ended.
const OTHER_TIME: Duration = Duration::from_secs(1);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// How long it stays when nobody comes.
const IDLE: &str = "10m";

/// Attaches to the holder; starts one where there is none.
pub(super) fn reach(home: &Path, people: People) -> Result<Runtime, Failure> {
    let look = || Runtime::attach(home).map_err(Failure::home(home));
    if let Some(access) = look()? {
        return Ok(access);
    }
    // What is started would end at once, and nobody would read why.
    SqliteReader::open(home).map_err(|error| Failure::home(home)(syscap::Error::Home(error)))?;
    let program = env::current_exe().map_err(Failure::Stream)?;
    let mut started = Command::new(program)
        .arg("serve")
        .arg(home)
        .args(["--idle", IDLE])
        .args(people.are_absent().then_some("--headless"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // What ends the client's group of processes must not end the holder.
        .process_group(0)
        .spawn()
        .map_err(Failure::Stream)?;
    let mut until = Instant::now() + START_TIME;
    let mut running = true;
    while Instant::now() < until {
        if let Some(access) = look()? {
            return Ok(access);
        }
        // Another may have been quicker, and this one has ended: then that one serves soon.
        if running && started.try_wait().map_err(Failure::Stream)?.is_some() {
            running = false;
            until = until.min(Instant::now() + OTHER_TIME);
        }
        thread::sleep(PAUSE);
    }
    let why = "`syscap serve` was started, and is not ready in time";
    Err(Failure::Nobody { folder: home.to_path_buf(), why })
}
