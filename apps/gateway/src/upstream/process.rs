//! A server's process: started in an environment of its own, and ended with all it started.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use syscap::boundary::{Scratch, environment};
use syscap::launch::Lease;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::options::ServerCommand;
use crate::say::say;
use crate::upstream::stderr::{Gate, Stderr};
use crate::upstream::view::{NotStarted, Spawned, Starter};

/// How long a server has to end once its input is closed, and again once it was asked to.
const END_MAX: Duration = Duration::from_secs(1);
/// How long what a process wrote before it exited may take to be read.
const LAST_WORDS_MAX: Duration = Duration::from_millis(200);
/// Ends the process group of that number when its standard input has ended, which it does with
/// the gateway, however that ended.
const WATCH: &str = r#"
    read -r end
    sleep 1
    kill -s TERM -- "-$0"
    sleep 1
    kill -s KILL -- "-$0"
"#;

/// A server's process, and who ends it should the gateway be killed.
pub(crate) struct ServerProcess {
    child: Child,
    /// Keeps a confined one running: dropped, its supervisor ends it.
    lease: Option<Lease>,
    /// The HOME and TMPDIR of a confined one.
    scratch: Option<Scratch>,
    /// Readable once the process has exited, whoever else holds its pipes. It is not reaped before
    /// its group was ended, so that the group's number stays its own.
    exit: AsyncFd<OwnedFd>,
    group: Group,
    watch: Option<Child>,
    stderr: Stderr,
}

/// A process group. Dropped before it was seen off, all of it is killed.
struct Group {
    leader: Pid,
    is_over: bool,
}

impl Group {
    fn signal(&self, signal: Signal) {
        // A group that is gone needs no signal.
        kill_process_group(self.leader, signal).unwrap_or_default();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_over {
            self.signal(Signal::KILL);
        }
    }
}

impl ServerProcess {
    /// The gate that holds back its standard error, until its name is known.
    pub(super) fn stderr_gate(&self) -> Gate {
        self.stderr.gate()
    }
}

/// How a server's process ended.
#[derive(Debug, Default)]
pub(crate) struct Exited {
    /// Its exit status; `None` if it was ended, or still runs.
    pub(crate) status: Option<ExitStatus>,
    /// The last line that it wrote to its standard error.
    pub(crate) last_line: Option<String>,
}

impl fmt::Display for Exited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "its process ended: {status}")?,
            None => write!(f, "it was ended")?,
        }
        match &self.last_line {
            Some(line) => write!(f, "; its last line on standard error: {line}"),
            None => Ok(()),
        }
    }
}

/// A server's process, and its standard streams.
pub(crate) type Started = (ServerProcess, ChildStdout, ChildStdin);

/// Starts it, in a process group of its own so that what a wrapper such as `npx` starts ends with it.
pub(crate) async fn start(
    starter: &Arc<Starter>,
    command: &ServerCommand,
) -> Result<Started, NotStarted> {
    let (by, of) = (Arc::clone(starter), command.clone());
    let spawned = spawn_blocking(move || by.start(&of)).await.map_err(io::Error::other)??;
    let Spawned { child, stdin, stdout, stderr, lease, scratch } = spawned;
    let group = Group { leader: Pid::from_child(&child), is_over: false };
    let exit = pidfd_open(group.leader, PidfdFlags::NONBLOCK).map_err(io::Error::from)?;
    let exit = AsyncFd::with_interest(exit, Interest::READABLE)?;
    // One that has a supervisor ends with the gateway, however that ends.
    let watch = match lease.is_some() {
        true => None,
        false => match watch(group.leader) {
            Ok(watch) => Some(watch),
            Err(error) => {
                say(&format!(
                    "server {}: it may outlive a gateway that is killed: no shell: {error}",
                    command.name
                ));
                None
            }
        },
    };
    let (stdout, stdin) = (ChildStdout::from_std(stdout)?, ChildStdin::from_std(stdin)?);
    let stderr = Stderr::read(ChildStderr::from_std(stderr)?, command.name.clone());
    let process = ServerProcess { child, lease, scratch, exit, group, watch, stderr };
    Ok((process, stdout, stdin))
}

fn watch(group: Pid) -> io::Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", WATCH, &group.as_raw_nonzero().to_string()])
        .env_clear()
        .env("PATH", environment::PATH)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Waits until the process exits, or nobody wants it any more; then ends its whole group.
pub(crate) async fn see_off(mut process: ServerProcess, gone: CancellationToken) -> Exited {
    let by_itself = tokio::select! {
        _ = process.exit.readable() => true,
        () = gone.cancelled() => ended_in_time(&process).await,
    };
    if let Some(lease) = process.lease.take()
        && !by_itself
    {
        // Its supervisor ends all of it, also what has left its group.
        drop(lease);
        ended_in_time(&process).await;
    }
    // What the process wrote last is read before its calls fail: the pipe ends with its group, or
    // is not waited for.
    for signal in [Signal::TERM, Signal::KILL] {
        process.group.signal(signal);
        let over = async {
            gone.cancelled().await;
            process.exit.readable().await.map(drop).ok();
        };
        let most = if by_itself { LAST_WORDS_MAX } else { END_MAX };
        timeout(most, over).await.ok();
    }
    gone.cancel();
    let status = match ended_in_time(&process).await {
        true => process.child.wait().ok().filter(|_| by_itself),
        false => None,
    };
    process.group.is_over = true;
    if let Some(mut watch) = process.watch.take() {
        // One that has ended can't be killed.
        watch.kill().and_then(|()| watch.wait()).ok();
    }
    if let Some(scratch) = process.scratch.take()
        && let Err(error) = scratch.remove()
    {
        say(&format!("left behind: {error}"));
    }
    Exited { status, last_line: process.stderr.end().await }
}

/// True if a process whose input is closed exits by itself.
async fn ended_in_time(process: &ServerProcess) -> bool {
    timeout(END_MAX, process.exit.readable()).await.is_ok()
}
