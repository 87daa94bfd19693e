//! A server's process: started in an environment of its own, and ended with all it started.

use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use std::{fmt, io};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::options::ServerCommand;
use crate::say::say;
use crate::upstream::stderr::{Gate, Stderr};

/// How long a server has to end once its input is closed, and again once it was asked to.
const END_MAX: Duration = Duration::from_secs(1);
/// How long what a process wrote before it exited may take to be read.
const LAST_WORDS_MAX: Duration = Duration::from_millis(200);
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
    /// Readable once the process has exited, whoever else holds its pipes. It is not reaped before
    /// its group was ended, so that the group's number stays its own.
    exit: AsyncFd<OwnedFd>,
    group: Pid,
    watch: Option<Child>,
    stderr: Stderr,
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

/// Starts it: in our folder, in a process group of its own so that what a wrapper such as `npx`
/// starts ends with it.
pub(crate) fn start(command: &ServerCommand) -> io::Result<Started> {
    let (program, args) = command.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut child = bare(program)
        .args(args)
        .envs(command.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let stderr = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let group = group.ok_or(io::ErrorKind::NotFound)?;
    let exit = pidfd_open(group, PidfdFlags::NONBLOCK).map_err(io::Error::from);
    let exit = exit.and_then(|exit| AsyncFd::with_interest(exit, Interest::READABLE));
    let exit = exit.inspect_err(|_| {
        // Dropped, the child takes only itself away. What is gone already needs no end.
        kill_process_group(group, Signal::KILL).unwrap_or_default();
    })?;
    let watch = match watch(group) {
        Ok(watch) => Some(watch),
        Err(error) => {
            say(&format!(
                "server {}: it may outlive a gateway that is killed: no shell: {error}",
                command.name
            ));
            None
        }
    };
    let stderr = Stderr::read(stderr, command.name.clone());
    Ok((ServerProcess { child, exit, group, watch, stderr }, stdout, stdin))
}

/// A command with nothing of our environment but what every program needs.
fn bare(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().process_group(0).kill_on_drop(true);
    command.envs(ENV.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command
}

fn watch(group: Pid) -> io::Result<Child> {
    bare("/bin/sh")
        .args(["-c", WATCH, &group.as_raw_nonzero().to_string()])
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
    // What the process wrote last is read before its calls fail: the pipe ends with its group, or
    // is not waited for.
    for signal in [Signal::TERM, Signal::KILL] {
        kill_process_group(process.group, signal).ok();
        let over = async {
            gone.cancelled().await;
            process.exit.readable().await.map(drop).ok();
        };
        let most = if by_itself { LAST_WORDS_MAX } else { END_MAX };
        timeout(most, over).await.ok();
    }
    gone.cancel();
    let status = timeout(END_MAX, process.child.wait()).await;
    if let Some(mut watch) = process.watch {
        // One that has ended can't be killed.
        watch.kill().await.ok();
    }
    let status = status.ok().and_then(Result::ok).filter(|_| by_itself);
    Exited { status, last_line: process.stderr.end().await }
}

/// True if a process whose input is closed exits by itself.
async fn ended_in_time(process: &ServerProcess) -> bool {
    timeout(END_MAX, process.exit.readable()).await.is_ok()
}
