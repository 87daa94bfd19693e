//! Pid 1 of the program's process namespace: starts the program, reaps whoever loses its parent,
//! and ends with the program. The kernel kills what is left in a namespace whose pid 1 has ended.
use std::os::fd::OwnedFd;

use rustix::process::{Signal, WaitOptions};

use super::group::Group;
use super::watch::{silence, unheard};
use super::{At, Failed, Step, mounts, program};
use crate::plan::{Network, Plan};
use crate::report::Achieved;
use crate::sys::{self, Fork};
use crate::wire::Note;

/// Pid 1, to its end.
pub(crate) fn run(
    plan: Plan,
    achieved: Achieved,
    notes: OwnedFd,
    way: OwnedFd,
    group: Option<&Group>,
) -> ! {
    let code = match serve(plan, achieved, &notes, way, group) {
        Ok(()) => 0,
        Err(Failed(step, error)) => tell(&notes, Note::Failed(step.number(), error)),
    };
    sys::exit(code)
}

/// Tells the helper. If it is gone, so is this process, in a moment.
pub(crate) fn tell(notes: &OwnedFd, note: Note) -> i32 {
    i32::from(rustix::io::write(notes, &note.write()).is_err())
}

fn serve(
    plan: Plan,
    mut achieved: Achieved,
    notes: &OwnedFd,
    way: OwnedFd,
    group: Option<&Group>,
) -> Result<(), Failed> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).at(Step::Session)?;
    // The helper may have ended before that was said.
    if unheard(notes) {
        return Err(Failed(Step::Session, libc::EPIPE));
    }
    rustix::process::fchdir(&plan.folder).at(Step::Folder)?;
    let mut proc = false;
    if achieved.mounts {
        match mounts::lay(&plan, achieved.processes) {
            Ok(laid) => proc = laid,
            Err(Failed(Step::Folder, error)) => return Err(Failed(Step::Folder, error)),
            // Less is had then; whether it will do is seen before the program starts.
            Err(_) => achieved.mounts = false,
        }
    }
    if plan.network == Network::Loopback && achieved.network {
        let kind = rustix::net::SocketType::DGRAM;
        let socket =
            rustix::net::socket(rustix::net::AddressFamily::INET, kind, None).at(Step::Loopback)?;
        sys::loopback_up(socket).at(Step::Loopback)?;
    }
    let child = match sys::fork().at(Step::Fork)? {
        Fork::Child => program::run(plan, achieved, proc, notes, &way, group),
        Fork::Parent(child) => child,
    };
    drop((plan, way));
    silence(false).at(Step::Streams)?;
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => {
                tell(notes, Note::Status(status.as_raw()));
                return Ok(());
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).at(Step::Fork),
        }
    }
}
