//! The helper's own part: makes ready, starts pid 1, watches, ends everything.
use std::fs::File;
use std::io::{self, Read, Seek};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recv, recvmsg, send,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, pidfd_open, wait, waitid,
};

use super::door::{self, Door, Introduced};
use super::group::Group;
use super::trace::{self, Trace, Turn};
use super::usage::Meter;
use super::{At, FLOOD, Failed, HELLO, SERVE, SIGNAL, Step, TRY, filter, hide, init, spaces};
use crate::plan::{Limits, Plan};
use crate::report::{Bound, Ended};
use crate::sys::{self, Fork};
use crate::wire::{self, Note};

/// The exit code of a helper that executed nothing.
const NOT_EXECUTED: i32 = 127;
/// How often use is looked at where it is bounded.
const TURN: Duration = Duration::from_millis(10);

/// The supervisor, from its start to its end.
pub(crate) fn run() -> ! {
    // First of all: later a descriptor may be an object's own.
    if sys::close_inherited().is_err() {
        sys::exit(1);
    }
    let Ok(control) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3) else {
        sys::exit(1);
    };
    let code = match serve(&control) {
        Ok(code) => code,
        Err(Failed(step, error)) => tell(&control, Note::Failed(step.number(), error)),
    };
    sys::exit(code)
}

/// Tells the host. One that is not there any more needs no telling.
pub(crate) fn tell(control: &OwnedFd, note: Note) -> i32 {
    i32::from(send(control, &note.write(), SendFlags::NOSIGNAL).is_err())
}

/// The helper's task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    /// A program whose output the host reads, and of whose end it is told.
    Run,
    /// One that keeps the helper's streams, and whose end is the helper's.
    Serve,
    /// None: whether a view is to be had.
    Try,
}

/// Does what the host asks for; the exit code.
fn serve(control: &OwnedFd) -> Result<i32, Failed> {
    let (task, plan) = receive(control)?;
    if !sys::alone() {
        return Err(Failed(Step::Threads, libc::EINVAL));
    }
    sys::reset_signals().at(Step::Signals)?;
    if !plan.hidden.is_empty() || task == Task::Try {
        hide::run(plan, task == Task::Serve, control)?;
        return Ok(NOT_EXECUTED);
    }
    rustix::process::setsid().at(Step::Session)?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    // Whoever loses its parent becomes this process's child, so that it can be found and ended even
    // where there is no process namespace.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).at(Step::Session)?;
    let group = Group::make(&plan.limits);
    let mut achieved = spaces::leave(plan.network);
    achieved.group = group.is_some();
    let (notes, notes_end) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT).at(Step::Pipes)?;
    let limits = plan.limits;
    let held = group.as_ref().is_some_and(Group::bounds_processes);
    // A namespace of its own ends as one: there a look from time to time is enough. Without a
    // filter some could begin unseen (`CLONE_UNTRACED`).
    let traced = !held && !achieved.processes && filter::known();
    let traced = limits.processes.filter(|_| traced);
    let (way, end) = door::way().at(Step::Pipes)?;
    match sys::fork().at(Step::Fork)? {
        Fork::Child => {
            drop((notes, way));
            init::run(plan, achieved, notes_end, end, group.as_ref())
        }
        Fork::Parent(first) => {
            drop((plan, notes_end, end));
            silence(task == Task::Serve).at(Step::Streams)?;
            let first = First { pid: first, alone: achieved.processes };
            let mut watch = Watch::new(control, notes, way, first, group, limits, traced)?;
            watch.serves = task == Task::Serve;
            let code = watch.run()?;
            // A host that reads no output sees the end of the helper instead.
            Ok(if task == Task::Serve { code } else { 0 })
        }
    }
}

/// Lets go of the standard streams: they are the program's. Who serves keeps the last, to say why
/// there is no program.
pub(crate) fn silence(serves: bool) -> io::Result<()> {
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
    let null = rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    if !serves {
        rustix::stdio::dup2_stderr(&null)?;
    }
    Ok(())
}

fn receive(control: &OwnedFd) -> Result<(Task, Plan), Failed> {
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut hello = [0; 64];
    let mut into = [io::IoSliceMut::new(&mut hello)];
    let got =
        recvmsg(control, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC).at(Step::Receive)?;
    let mut handles = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            handles.extend(rights);
        }
    }
    let known = [(HELLO, Task::Run), (SERVE, Task::Serve), (TRY, Task::Try)];
    let task = known.into_iter().find(|(name, _)| hello.get(..got.bytes) == Some(*name));
    let Some((_, task)) = task.filter(|_| !handles.is_empty()) else {
        return Err(Failed(Step::Receive, libc::EPROTO));
    };
    let mut plan = File::from(handles.remove(0));
    let mut bytes = Vec::new();
    plan.rewind().at(Step::Receive)?;
    let most = u64::try_from(wire::MOST_BYTES).unwrap_or(u64::MAX);
    plan.take(most).read_to_end(&mut bytes).at(Step::Receive)?;
    let plan = wire::read_plan(&bytes, handles).ok_or(Failed(Step::Plan, libc::EPROTO))?;
    Ok((task, plan))
}

/// The child of the helper: pid 1 of a namespace, if there is one.
#[derive(Clone, Copy)]
struct First {
    pid: Pid,
    /// True if its end is the end of all.
    alone: bool,
}

struct Watch<'a> {
    control: &'a OwnedFd,
    notes: OwnedFd,
    /// The socket on which the program introduces itself and waits for leave to begin.
    way: OwnedFd,
    door: Option<Door>,
    /// The bound to which it is to be traced, and the trace then.
    traced: Option<u32>,
    trace: Option<Trace>,
    /// True if more traced processes may have stopped than were let on.
    more: bool,
    /// The program, from its start on, to be sent signals.
    program: Option<OwnedFd>,
    first: First,
    handle: OwnedFd,
    group: Option<Group>,
    limits: Limits,
    meter: Option<Meter>,
    /// When it was made, which is before the program began.
    made: Instant,
    looked: Option<Instant>,
    began: Option<Instant>,
    ended: Option<Ended>,
    /// The most that was seen to be used, in microseconds.
    seen: u64,
    /// True if a failure was received before the start.
    failed: bool,
    listening: bool,
    /// True if standard error is the program's still.
    serves: bool,
}

impl<'a> Watch<'a> {
    fn new(
        control: &'a OwnedFd,
        notes: OwnedFd,
        way: OwnedFd,
        first: First,
        group: Option<Group>,
        limits: Limits,
        traced: Option<u32>,
    ) -> Result<Self, Failed> {
        let handle = pidfd_open(first.pid, PidfdFlags::empty()).at(Step::Fork)?;
        Ok(Self {
            control,
            notes,
            way,
            door: None,
            traced,
            trace: None,
            more: false,
            program: None,
            first,
            handle,
            group,
            limits,
            meter: None,
            made: Instant::now(),
            looked: None,
            began: None,
            ended: None,
            seen: 0,
            failed: false,
            listening: true,
            serves: false,
        })
    }

    /// Watches to the end; the program's exit code, or 128 and the number of its signal.
    fn run(mut self) -> Result<i32, Failed> {
        loop {
            let [order, note, gone, guest, stopped] = self.wait()?;
            if note {
                self.hear()?;
                continue;
            }
            if gone {
                break;
            }
            if order {
                self.obey();
            }
            if guest {
                self.admit();
            }
            if stopped {
                self.let_on();
            }
            if self.due() {
                self.look();
            }
        }
        self.end_all();
        match waitid(WaitId::PidFd(self.handle.as_fd()), WaitIdOptions::EXITED) {
            // Who waits for what is traced waits for this one too.
            Ok(_) | Err(Errno::CHILD) => {}
            Err(error) => return Err(error).at(Step::Fork),
        }
        self.end_orphans();
        let wall = self.began.map_or(Duration::ZERO, |_| self.made.elapsed());
        let counted = self.group.as_ref().and_then(Group::cpu_us);
        let cpu = counted.unwrap_or_else(|| self.seen.max(sys::children_cpu_us()));
        if let Some(group) = self.group.take() {
            group.remove();
        }
        if self.failed {
            return Ok(NOT_EXECUTED);
        }
        let ended = match (self.began, self.ended) {
            (Some(_), Some(ended)) => ended,
            // It never began and gave no reason, or pid 1 was killed from outside.
            (None, _) => return Err(Failed(Step::Fork, libc::ECHILD)),
            (Some(_), None) => Ended::Signalled(9),
        };
        let wall = u64::try_from(wall.as_micros()).unwrap_or(u64::MAX);
        tell(self.control, Note::Ended(ended, cpu, wall));
        Ok(match ended {
            Ended::Exited(code) => code.into(),
            Ended::Signalled(signal) => i32::from(signal).saturating_add(128),
            Ended::Bound(_) | Ended::Cancelled => 128 + 9,
        })
    }

    /// Waits for an order, a note, the end of pid 1, somebody at the door or what is traced, until
    /// the next look is due.
    fn wait(&self) -> Result<[bool; 5], Failed> {
        let when = |wanted: bool| if wanted { PollFlags::IN } else { PollFlags::empty() };
        // Of what is being ended nothing is let in or on.
        let going = self.ended.is_none();
        let (door, trace) = (self.door.as_ref(), self.trace.as_ref());
        let nobody = self.notes.as_fd();
        let mut polled = [
            PollFd::new(self.control, when(self.listening)),
            PollFd::new(&self.notes, PollFlags::IN),
            PollFd::new(&self.handle, PollFlags::IN),
            PollFd::from_borrowed_fd(
                door.map_or(nobody, Door::listener),
                when(going && door.is_some()),
            ),
            PollFd::from_borrowed_fd(
                trace.map_or(nobody, Trace::woken),
                when(going && trace.is_some()),
            ),
        ];
        let left = if going && self.more { Some(Duration::ZERO) } else { self.next_look() };
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).at(Step::Pipes),
        }
        let [control, notes, first, guest, stopped] = polled;
        Ok([
            self.listening && !control.revents().is_empty(),
            notes.revents().contains(PollFlags::IN),
            !first.revents().is_empty(),
            going && door.is_some() && !guest.revents().is_empty(),
            going && (self.more || trace.is_some() && !stopped.revents().is_empty()),
        ])
    }

    fn next_look(&self) -> Option<Duration> {
        let began = self.began?;
        if self.ended.is_some() {
            return None;
        }
        let wall = self.limits.wall_ms.map(Duration::from_millis);
        let wall = wall.map(|wall| wall.saturating_sub(began.elapsed()));
        // A millisecond more: a poll that is a little early would find nothing due.
        let wall = wall.map(|wall| wall.saturating_add(Duration::from_millis(1)));
        let turn = self.looks().then_some(TURN);
        let since = self.looked.map_or(Duration::ZERO, |looked| looked.elapsed());
        let turn = turn.map(|turn| turn.saturating_sub(since));
        wall.into_iter().chain(turn).min()
    }

    /// True if a bound can be checked only by looking.
    fn looks(&self) -> bool {
        self.limits.cpu_ms.is_some() || (self.limits.processes.is_some() && self.trace.is_none())
    }

    /// True if it is time for a look: traced processes wake this one more often.
    fn due(&self) -> bool {
        let wall = self.limits.wall_ms.map(Duration::from_millis);
        let over = self.began.zip(wall).is_some_and(|(began, wall)| began.elapsed() >= wall);
        over || self.looked.is_none_or(|looked| looked.elapsed() >= TURN)
    }

    fn obey(&mut self) {
        let mut order = [0; 2];
        let said = match recv(self.control, &mut order[..], RecvFlags::empty()) {
            Ok((size, _)) => order.get(..size).unwrap_or_default(),
            Err(Errno::INTR) => return,
            Err(_) => &[],
        };
        let why = match said {
            [SIGNAL, number] => return self.send(*number),
            [FLOOD] => Ended::Bound(Bound::Output),
            // An order, or the host is gone, or has closed its end.
            _ => Ended::Cancelled,
        };
        self.listening = false;
        self.end(why);
    }

    /// Sends the program a signal. To one that has not begun, or has ended, there is nothing to
    /// say.
    fn send(&self, number: u8) {
        if let (Some(program), Some(signal)) =
            (&self.program, Signal::from_named_raw(i32::from(number)))
        {
            match rustix::process::pidfd_send_signal(program, signal) {
                Ok(()) | Err(_) => {}
            }
        }
    }

    fn hear(&mut self) -> Result<(), Failed> {
        let mut bytes = [0; wire::NOTE_BYTES];
        let size = rustix::io::read(&self.notes, &mut bytes).at(Step::Pipes)?;
        let Some(note) = bytes.get(..size).and_then(Note::read) else {
            return Err(Failed(Step::Pipes, libc::EPROTO));
        };
        match note {
            Note::Begins(_) => {
                if let Some(Introduced { pid, program, door }) = door::introduced(&self.way) {
                    (self.program, self.door) = (Some(program), door);
                    // Where it can't be traced looks must do.
                    self.trace = self.traced.and_then(|most| Trace::seize(pid, most));
                }
                self.began = Some(Instant::now());
                tell(self.control, note);
                door::give_leave(&self.way);
            }
            Note::TooWeak(_) | Note::Failed(..) | Note::NotExecuted(_) => {
                if !self.failed && self.ended.is_none() {
                    self.failed = true;
                    tell(self.control, note);
                    self.say_not_executed(note);
                }
            }
            Note::Status(status) => {
                if self.ended.is_none() {
                    self.ended = Some(ended_by(status));
                }
            }
            Note::Ended(..) | Note::Connected => {
                return Err(Failed(Step::Pipes, libc::EPROTO));
            }
        }
        Ok(())
    }

    /// Says on standard error why there is no program: the host was told already that it begins.
    fn say_not_executed(&self, note: Note) {
        if let (Note::NotExecuted(error), true, Some(_)) = (note, self.serves, self.began) {
            let error = io::Error::from_raw_os_error(error);
            let line = format!(
                "syscap-launch: can't execute the program: {error}; it and its interpreter must lie \
                 where it may execute\n"
            );
            // One that nobody reads needs not be told.
            match rustix::io::write(rustix::stdio::stderr(), line.as_bytes()) {
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Lets in who is at the door.
    fn admit(&mut self) {
        let Some(door) = &self.door else { return };
        if door.answer(self.control).is_err() {
            self.door = None;
        }
    }

    /// Lets on what is traced and has stopped.
    fn let_on(&mut self) {
        let Some(trace) = &mut self.trace else { return };
        self.more = false;
        match trace.turn() {
            Turn::Done => {}
            Turn::More => self.more = true,
            Turn::Over => self.end(Ended::Bound(Bound::Processes)),
        }
    }

    /// Looks at clock, processor time and processes.
    fn look(&mut self) {
        let Some(began) = self.began else { return };
        if self.ended.is_some() {
            return;
        }
        let wall = self.limits.wall_ms.map(Duration::from_millis);
        if wall.is_some_and(|wall| began.elapsed() >= wall) {
            return self.end(Ended::Bound(Bound::Wall));
        }
        if !self.looks() {
            return;
        }
        self.looked = Some(Instant::now());
        let first = self.first;
        let meter = self.meter.get_or_insert_with(|| Meter::new(first.pid, first.alone));
        let Some(mut used) = meter.look() else { return };
        if let Some(counted) = self.group.as_ref().and_then(Group::cpu_us) {
            used.cpu_us = counted;
        }
        self.seen = self.seen.max(used.cpu_us);
        let cpu = self.limits.cpu_ms.map(|cpu| cpu.saturating_mul(1000));
        if cpu.is_some_and(|cpu| self.seen >= cpu) {
            return self.end(Ended::Bound(Bound::Cpu));
        }
        if self.limits.processes.is_some_and(|most| used.processes > u64::from(most)) {
            self.end(Ended::Bound(Bound::Processes));
        }
    }

    /// Ends everything, for this reason if there was no other before.
    fn end(&mut self, ended: Ended) {
        self.ended.get_or_insert(ended);
        self.end_all();
    }

    fn end_all(&self) {
        if let Some(group) = &self.group {
            group.kill();
        }
        // Of a process that has ended already there is nothing to kill.
        match rustix::process::pidfd_send_signal(&self.handle, Signal::KILL) {
            Ok(()) | Err(_) => {}
        }
    }

    /// Ends orphans where there was no pid 1: they are this process's children now. Each round
    /// stops what it finds before it kills, so that nothing forks on.
    fn end_orphans(&self) {
        if self.first.alone {
            return;
        }
        loop {
            let found = Meter::new(rustix::process::getpid(), false).all();
            for signal in [Signal::STOP, Signal::KILL] {
                for pid in &found {
                    match rustix::process::kill_process(*pid, signal) {
                        Ok(()) | Err(_) => {}
                    }
                }
            }
            // Reaps; ends when there is no child left. Any child: one may have left this group.
            loop {
                match wait(WaitOptions::NOHANG | trace::all()) {
                    Ok(Some(_)) | Err(Errno::INTR) => {}
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// How a program ended, as `waitpid` says it.
fn ended_by(status: i32) -> Ended {
    let small = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    if libc::WIFEXITED(status) {
        Ended::Exited(small(libc::WEXITSTATUS(status)))
    } else {
        Ended::Signalled(small(libc::WTERMSIG(status)))
    }
}

/// True if no process reads these notes any more.
pub(crate) fn unheard(notes: impl AsFd) -> bool {
    let mut polled = [PollFd::new(&notes, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut polled, Some(&now)) {
        Ok(_) => polled.iter().any(|polled| polled.revents().contains(PollFlags::ERR)),
        Err(_) => true,
    }
}
