//! A server's process: started as for an ordinary command, and ended with all it started.

use std::{io, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// How long a server has to end once its input is closed, and again once it was asked to.
const END_MAX: Duration = Duration::from_secs(1);

/// Starts it: same environment and folder, its standard error passed through, in a process group
/// of its own so that what a wrapper such as `npx` starts ends with it.
pub(crate) fn start(command: &[String]) -> io::Result<(Child, ChildStdout, ChildStdin)> {
    let (program, args) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    Ok((child, stdout, stdin))
}

/// Waits until nothing comes from the process any more, then sees that it ends.
pub(crate) async fn see_off(mut child: Child, gone: CancellationToken) {
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    gone.cancelled().await;
    for signal in [Signal::TERM, Signal::KILL] {
        if timeout(END_MAX, child.wait()).await.is_ok() {
            return;
        }
        // The child was not waited for, so the group is still its own.
        if let Some(group) = group {
            kill_process_group(group, signal).ok();
        }
    }
    timeout(END_MAX, child.wait()).await.ok();
}
