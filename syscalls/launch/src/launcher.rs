use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::plan::Plan;
use crate::report::{Bound, Ended, LaunchError, Report};
use crate::supervisor;
use crate::wire::{self, Note};

/// True if this program's `main` begins with [`entry`].
static HOOKED: AtomicBool = AtomicBool::new(false);

/// Becomes the supervisor, if this process was started as one; else returns at once.
///
/// To be the first line of the `main` of a program that starts others by [`Launcher::this`], before
/// it has opened anything or begun a thread.
pub fn entry() {
    HOOKED.store(true, Ordering::Relaxed);
    if std::env::args_os().next().is_some_and(|name| name == supervisor::NAME) {
        supervisor::run();
    }
}

/// A launcher of programs: the helper's file, opened once.
#[derive(Debug)]
pub struct Launcher {
    helper: OwnedFd,
}

impl Launcher {
    /// The helper at this path: the binary `syscap-launch`.
    ///
    /// # Errors
    ///
    /// [`LaunchError::Helper`] where it can't be opened.
    pub fn open(path: &Path) -> Result<Self, LaunchError> {
        let helper = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| LaunchError::Helper(error.into()))?;
        Ok(Self { helper })
    }

    /// This program, whose `main` begins with [`entry`], is the helper.
    ///
    /// # Errors
    ///
    /// [`LaunchError::Helper`] where it does not: it would begin a second time as itself.
    pub fn this() -> Result<Self, LaunchError> {
        if !HOOKED.load(Ordering::Relaxed) {
            let reason = "the program's `main` does not begin with `syscap_launch::entry()`";
            return Err(LaunchError::Helper(io::Error::other(reason)));
        }
        Self::open(Path::new("/proc/self/exe"))
    }

    /// Starts a program.
    ///
    /// # Errors
    ///
    /// Of [`LaunchError`]: `Plan` and `Helper`. Later faults are reported by [`Running::recv`].
    pub fn start(&self, plan: &Plan) -> Result<Running, LaunchError> {
        let bytes = check(plan)?;
        let helper = |error: Errno| LaunchError::Helper(error.into());
        let written = memfd_create(c"plan", MemfdFlags::CLOEXEC).map_err(helper)?;
        let mut written = File::from(written);
        written.write_all(&bytes).map_err(LaunchError::Helper)?;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(helper)?;
        let (out, out_end) = pipe_with(PipeFlags::CLOEXEC).map_err(helper)?;
        let (err, err_end) = pipe_with(PipeFlags::CLOEXEC).map_err(helper)?;
        let child = Command::new(format!("/proc/self/fd/{}", self.helper.as_raw_fd()))
            .arg0(supervisor::NAME)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(out_end))
            .stderr(Stdio::from(err_end))
            .spawn()
            .map_err(LaunchError::Helper)?;
        let mut handles = vec![written.as_fd(), plan.program.as_fd(), plan.folder.as_fd()];
        handles.extend(plan.input.as_ref().map(AsFd::as_fd));
        handles.extend(plan.terminal.as_ref().map(AsFd::as_fd));
        handles.extend(plan.granted.iter().map(|granted| granted.handle.as_fd()));
        let mut running = Running {
            child,
            control: ours,
            streams: [Some(File::from(out)), Some(File::from(err))],
            read: 0,
            most: plan.limits.output_bytes,
            ended: None,
            achieved: None,
            connected: None,
            required: plan.required,
            network: plan.network,
        };
        running.send(&handles)?;
        Ok(running)
    }
}

/// The plan's bytes, if it can be said and sent.
fn check(plan: &Plan) -> Result<Vec<u8>, LaunchError> {
    let texts = plan.arguments.iter().chain(plan.environment.iter().flat_map(|(n, v)| [n, v]));
    for text in texts {
        if text.as_bytes().contains(&0) {
            return Err(LaunchError::Plan("an argument or variable contains NUL"));
        }
    }
    for (name, _) in &plan.environment {
        if name.is_empty() || name.as_bytes().contains(&b'=') {
            return Err(LaunchError::Plan("a variable's name is empty or contains `=`"));
        }
    }
    if plan.arguments.is_empty() {
        return Err(LaunchError::Plan("there is no argument for the program's name"));
    }
    if plan.granted.len() > wire::MOST_GRANTED {
        return Err(LaunchError::Plan("more than 200 files and folders are granted"));
    }
    let bytes = wire::write_plan(plan);
    if bytes.len() > wire::MOST_BYTES {
        return Err(LaunchError::Plan("arguments and environment are longer than 4 MiB"));
    }
    Ok(bytes)
}

/// Which stream of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// An event of a running program.
#[derive(Debug)]
pub enum Said {
    /// It wrote these bytes, at most 64 KiB.
    Output(Stream, Vec<u8>),
    /// It has come to its [door](crate::DOOR): the host's end of the connection, a stream. It is
    /// told when no output waits.
    Connected(OwnedFd),
    /// No process of it runs any more, and all output was delivered.
    Ended(Report),
}

/// A handle to control a running program from another thread than the one that receives its events.
#[derive(Debug)]
pub struct Orders(OwnedFd);

impl Orders {
    /// Ends the program and all that it started, as [`Running::cancel`].
    pub fn cancel(&self) {
        order(&self.0, &[supervisor::CANCEL]);
    }

    /// Sends the program itself, and not what it started, the signal of that number. Before its
    /// start, and after its end, it is lost.
    pub fn signal(&self, number: u8) {
        order(&self.0, &[supervisor::SIGNAL, number]);
    }
}

/// Tells the helper. One that can't be told any more has ended.
fn order(control: &OwnedFd, order: &[u8]) {
    match rustix::net::send(control, order, SendFlags::NOSIGNAL) {
        Ok(_) | Err(_) => {}
    }
}

/// A program that was started. Dropped, it is ended, with all that it started.
#[derive(Debug)]
pub struct Running {
    child: Child,
    control: OwnedFd,
    streams: [Option<File>; 2],
    read: u64,
    most: Option<u64>,
    ended: Option<(Ended, u64, u64)>,
    achieved: Option<crate::Achieved>,
    connected: Option<OwnedFd>,
    required: crate::Level,
    network: crate::Network,
}

impl Running {
    /// The next that is heard: output as it comes, at last the end. Waits for it.
    ///
    /// # Errors
    ///
    /// Any of [`LaunchError`]; nothing of the program runs then.
    pub fn recv(&mut self) -> Result<Said, LaunchError> {
        loop {
            let quiet = self.streams.iter().all(Option::is_none);
            if let (true, Some((ended, cpu_us, wall_us))) = (quiet, self.ended) {
                let achieved = self.achieved.ok_or(LaunchError::Lost)?;
                let output_bytes = self.read;
                let report = Report { ended, cpu_us, wall_us, output_bytes, achieved };
                return Ok(Said::Ended(report));
            }
            let [heard, out, err] = self.wait()?;
            for (stream, ready) in [(Stream::Out, out), (Stream::Err, err)] {
                if ready && let Some(bytes) = self.read(stream)? {
                    return Ok(Said::Output(stream, bytes));
                }
            }
            // Only when no output waits: so all of it is told before the end.
            if heard && !out && !err {
                self.hear()?;
                if let Some(connected) = self.connected.take() {
                    return Ok(Said::Connected(connected));
                }
            }
        }
    }

    /// Waits until it begins, and says how it is confined. Its output, and connections to the door,
    /// are reported by [`Running::recv`] afterwards.
    ///
    /// # Errors
    ///
    /// As [`Running::recv`].
    pub fn begun(&mut self) -> Result<crate::Achieved, LaunchError> {
        loop {
            match (self.achieved, self.ended) {
                (Some(achieved), _) => return Ok(achieved),
                (None, Some(_)) => return Err(LaunchError::Lost),
                (None, None) => self.hear()?,
            }
        }
    }

    /// For another thread: what it can be told while this one hears of it.
    ///
    /// # Errors
    ///
    /// [`LaunchError::Helper`] where there is no descriptor to be had.
    pub fn orders(&self) -> Result<Orders, LaunchError> {
        Ok(Orders(self.control.try_clone().map_err(LaunchError::Helper)?))
    }

    /// Ends the program and all that it started. [`Running::recv`] tells when it is done.
    pub fn cancel(&self) {
        order(&self.control, &[supervisor::CANCEL]);
    }

    fn send(&mut self, handles: &[BorrowedFd<'_>]) -> Result<(), LaunchError> {
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(handles)) {
            return Err(LaunchError::Plan("more handles than one message takes"));
        }
        let message = [io::IoSlice::new(supervisor::HELLO)];
        sendmsg(&self.control, &message, &mut ancillary, SendFlags::NOSIGNAL)
            .map_err(|error| LaunchError::Helper(error.into()))?;
        Ok(())
    }

    /// Waits until the helper or a stream has something, or has ended.
    fn wait(&self) -> Result<[bool; 3], LaunchError> {
        let [out, err] = &self.streams;
        let flags = PollFlags::IN;
        let mut polled = Vec::with_capacity(3);
        if self.ended.is_none() {
            polled.push(PollFd::new(&self.control, flags));
        }
        polled.extend(out.iter().map(|out| PollFd::new(out, flags)));
        polled.extend(err.iter().map(|err| PollFd::new(err, flags)));
        loop {
            match poll(&mut polled, None) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(LaunchError::Helper(error.into())),
            }
        }
        let mut ready = polled.iter().map(|polled| !polled.revents().is_empty());
        let mut next = |there: bool| there && ready.next().unwrap_or(false);
        Ok([next(self.ended.is_none()), next(out.is_some()), next(err.is_some())])
    }

    /// The output of a stream, up to the bound; `None` if there is no more of it now.
    fn read(&mut self, stream: Stream) -> Result<Option<Vec<u8>>, LaunchError> {
        let [out, err] = &mut self.streams;
        let slot = match stream {
            Stream::Out => out,
            Stream::Err => err,
        };
        let Some(file) = slot else { return Ok(None) };
        let mut bytes = vec![0; 1 << 16];
        let size = match file.read(&mut bytes) {
            Ok(size) => size,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(error) => return Err(LaunchError::Helper(error)),
        };
        if size == 0 {
            *slot = None;
            return Ok(None);
        }
        let before = self.read;
        self.read = before.saturating_add(u64::try_from(size).unwrap_or(u64::MAX));
        let mut kept = size;
        if let Some(most) = self.most
            && self.read > most
        {
            kept = usize::try_from(most.saturating_sub(before)).unwrap_or(usize::MAX).min(size);
            order(&self.control, &[supervisor::FLOOD]);
        }
        bytes.truncate(kept);
        Ok((kept > 0).then_some(bytes))
    }

    /// Reads the helper's messages.
    fn hear(&mut self) -> Result<(), LaunchError> {
        let mut bytes = [0; wire::NOTE_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut into = [io::IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let size = match recvmsg(&self.control, &mut into, &mut ancillary, flags) {
            Ok(got) => got.bytes,
            // Orders that the helper had no more need to read reset the connection as it ends. What
            // it said before is still there.
            Err(Errno::INTR | Errno::CONNRESET) => return Ok(()),
            Err(_) => return Err(LaunchError::Lost),
        };
        match bytes.get(..size).and_then(Note::read) {
            Some(Note::Begins(achieved)) => self.achieved = Some(achieved),
            Some(Note::TooWeak(achieved)) => {
                return Err(LaunchError::Level {
                    required: self.required,
                    had: achieved.level(self.network),
                    achieved,
                });
            }
            Some(Note::Failed(step, error)) => {
                return Err(LaunchError::Setup {
                    step: supervisor::step_name(step),
                    source: io::Error::from_raw_os_error(error),
                });
            }
            Some(Note::NotExecuted(error)) => {
                return Err(LaunchError::Execute(io::Error::from_raw_os_error(error)));
            }
            Some(Note::Ended(mut ended, cpu, wall)) => {
                // A program may end by itself in the moment of its last byte too many.
                if self.most.is_some_and(|most| self.read > most) {
                    ended = Ended::Bound(Bound::Output);
                }
                self.ended = Some((ended, cpu, wall));
            }
            Some(Note::Connected) => {
                self.connected = ancillary.drain().find_map(|message| match message {
                    RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
                    _ => None,
                });
            }
            // It says no other, and at its end nothing.
            Some(Note::Status(_)) | None => return Err(LaunchError::Lost),
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The helper ends everything when it hears this, or that nobody listens any more. If it
        // does not end by itself, it is not there to be waited for.
        order(&self.control, &[supervisor::CANCEL]);
        match self.child.wait() {
            Ok(_) | Err(_) => {}
        }
    }
}
