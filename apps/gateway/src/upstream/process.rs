//! A server's process: started in an environment of its own, and ended with all it started.

use std::{io, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{options::ServerCommand, say::say};

/// How long a server has to end once its input is closed, and again once it was asked to.
const END_MAX: Duration = Duration::from_secs(1);
/// What every program needs of the environment to find its files and to speak to its user.
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
    group: Option<Pid>,
    watch: Option<Child>,
}

/// Starts it: in our folder, its standard error passed through, in a process group of its own so
/// that what a wrapper such as `npx` starts ends with it.
pub(crate) fn start(
    command: &ServerCommand,
) -> io::Result<(ServerProcess, ChildStdout, ChildStdin)> {
    let (program, args) = command.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut child = bare(program)
        .args(args)
        .envs(command.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let watch = group.and_then(|group| match watch(group) {
        Ok(watch) => Some(watch),
        Err(error) => {
            say(&format!(
                "server {}: it may outlive a gateway that is killed: no shell: {error}",
                command.name
            ));
            None
        }
    });
    Ok((ServerProcess { child, group, watch }, stdout, stdin))
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

/// Waits until nothing comes from the process any more, then sees that it ends.
pub(crate) async fn see_off(mut process: ServerProcess, gone: CancellationToken) {
    gone.cancelled().await;
    end(&mut process).await;
    if let Some(mut watch) = process.watch {
        // One that has ended can't be killed.
        watch.kill().await.ok();
    }
}

async fn end(process: &mut ServerProcess) {
    for signal in [Signal::TERM, Signal::KILL] {
        if timeout(END_MAX, process.child.wait()).await.is_ok() {
            return;
        }
        // The child was not waited for, so the group is still its own.
        if let Some(group) = process.group {
            kill_process_group(group, signal).ok();
        }
    }
    timeout(END_MAX, process.child.wait()).await.ok();
}
