//! Traces the program (`ptrace(2)`): where processes are bounded, and neither a control group nor a
//! namespace of their own holds them. At each fork the kernel stops parent and child until this
//! process lets them on. So a bomb can't outrun it, however late it is, and should it be killed the
//! kernel kills all that it traces. It reads or changes nothing in the traced processes; ignored
//! signals stop them too, for a moment.
//!
//! A look at `/proc` from time to time would be outrun; a filter that asks before each fork
//! (`seccomp_unotify(2)`) has signals come between the question and the call, which then fails with
//! `EINTR`, as no program expects.
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions, test_kill_process, wait, waitid};

use crate::sys::{self, Onward};

/// How many stops are answered before the clock and the host have their turn again.
const AT_A_TIME: usize = 64;

/// The result of a turn.
pub(crate) enum Turn {
    /// All that were stopped go on.
    Done,
    /// There may be more.
    More,
    /// There are more processes and threads than may be; those that began last are still stopped.
    Over,
}

/// The traced processes.
pub(crate) struct Trace {
    /// The handle that shows when a process stopped or ended.
    woken: OwnedFd,
    /// All that began, as far as it is not known to be gone: one that has ended and was not waited
    /// for has its place still.
    known: BTreeSet<i32>,
    most: usize,
    /// True if each was looked for in this turn.
    looked: bool,
}

impl Trace {
    /// Traces the program, which has not begun, and all that it starts. `None` where that is not to
    /// be had: the system, or who started this process, may refuse it.
    pub(crate) fn seize(program: Pid, most: u32) -> Option<Self> {
        let woken = sys::children_wake().ok()?;
        sys::seize(program).ok()?;
        let known = BTreeSet::from([program.as_raw_nonzero().get()]);
        Some(Self {
            woken,
            known,
            most: usize::try_from(most).unwrap_or(usize::MAX),
            looked: false,
        })
    }

    /// The handle to poll.
    pub(crate) fn woken(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// Lets on what has stopped, as long as it is within the bound.
    pub(crate) fn turn(&mut self) -> Turn {
        // Before it is looked: what stops afterwards wakes again.
        let mut bytes = [0; 1024];
        match rustix::io::read(&self.woken, &mut bytes) {
            Ok(_) | Err(_) => {}
        }
        self.looked = false;
        for _ in 0..AT_A_TIME {
            // That takes longer the more may be: then the clock has its turn.
            if self.looked {
                break;
            }
            let (pid, status) = match wait(WaitOptions::NOHANG | all()) {
                Ok(Some((pid, status))) => (pid, status.as_raw()),
                Ok(None) => return Turn::Done,
                Err(Errno::INTR) => continue,
                Err(_) => return Turn::Done,
            };
            if libc::WIFSTOPPED(status) && !self.stopped(pid, status) {
                return Turn::Over;
            }
        }
        Turn::More
    }

    /// Lets this one on; if it began, or begins another, only within the bound. A process that is
    /// killed meanwhile needs no leave, which is no error.
    fn stopped(&mut self, pid: Pid, status: i32) -> bool {
        let signal = libc::WSTOPSIG(status);
        let stops = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
        let (within, onward) = match status >> 16 {
            0 => (true, Onward::With(signal)),
            // It is stopped, all of it, until somebody sends it `SIGCONT`.
            libc::PTRACE_EVENT_STOP if stops.contains(&signal) => {
                (self.begins(pid.as_raw_nonzero().get()), Onward::Stopped)
            }
            // The first stop of one that begins, which may be seen before its parent's.
            libc::PTRACE_EVENT_STOP => (self.begins(pid.as_raw_nonzero().get()), Onward::With(0)),
            _ => (sys::begun(pid).is_none_or(|child| self.begins(child)), Onward::With(0)),
        };
        if within {
            sys::let_on(pid, onward);
        }
        within
    }

    /// True if the bound has room for this one.
    fn begins(&mut self, pid: i32) -> bool {
        self.known.insert(pid);
        if self.known.len() > self.most {
            self.known.retain(|pid| is_there(*pid));
            self.looked = true;
        }
        self.known.len() <= self.most
    }
}

/// To wait for threads that are traced too.
pub(crate) fn all() -> WaitOptions {
    WaitOptions::from_bits_retain(libc::__WALL.unsigned_abs())
}

/// True if this number belongs to a process that is still traced, or has ended and waits for its
/// parent. Numbers are used again. An invisible process counts: a program can hide its own from
/// `/proc`.
fn is_there(pid: i32) -> bool {
    let Some(id) = Pid::from_raw(pid) else { return false };
    let wall = WaitIdOptions::from_bits_retain(libc::__WALL.unsigned_abs());
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT | wall;
    match waitid(WaitId::Pid(id), look) {
        Err(Errno::CHILD) => {}
        _ => return true,
    }
    // No child of this process, nor traced by it any more: it has ended, or is another's.
    test_kill_process(id).is_ok() && fs::read(format!("/proc/{pid}/stat")).map_or(true, is_over)
}

/// `proc_pid_stat(5)`: whether the state, behind the name in its parentheses, is that of a zombie.
fn is_over(stat: Vec<u8>) -> bool {
    let text = String::from_utf8_lossy(&stat);
    text.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}
