use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, sendmsg, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::carry::{Carrier, Given, carry, given};
use crate::plan::Plan;
use crate::report::{Achieved, Bound, Ended, LaunchError, Report};
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
        if !plan.hidden.is_empty() {
            return Err(LaunchError::Plan("what keeps its caller's streams is started by `serve`"));
        }
        let helper = |error: Errno| LaunchError::Helper(error.into());
        let (out, out_end) = pipe_with(PipeFlags::CLOEXEC).map_err(helper)?;
        let (err, err_end) = pipe_with(PipeFlags::CLOEXEC).map_err(helper)?;
        let carried = match &plan.input {
            Some(input) if matches!(given(input), Ok(Given::Bytes) | Err(_)) => {
                Some(carry(input).map_err(LaunchError::Helper)?)
            }
            _ => None,
        };
        let (carried, carrier) = carried.unzip();
        let input = carried.as_ref().or(plan.input.as_ref());
        let (child, control) =
            self.helper(plan, input, supervisor::HELLO, [out_end.into(), err_end.into()])?;
        Ok(Running {
            child,
            _carrier: carrier,
            control,
            streams: [Some(File::from(out)), Some(File::from(err))],
            read: 0,
            most: plan.limits.output_bytes,
            ended: None,
            achieved: None,
            connected: None,
            required: plan.required,
            network: plan.network,
        })
    }

    /// Starts a program that speaks with its caller by its standard streams, and waits until it
    /// begins. [`Plan::input`] is made here, and [`Limits::output_bytes`](crate::Limits) counts
    /// nothing: no output is read here.
    ///
    /// With [`Plan::hidden`] the process is the program itself, in a process group of its own. Else
    /// it is the supervisor, which ends the program and all that it started when it is ended, or
    /// when its [`Lease`] is dropped; its exit code is the program's, or 128 and the signal's number.
    ///
    /// # Errors
    ///
    /// Any of [`LaunchError`] but `Lost`; nothing of the program runs then. What the system would not
    /// execute under supervision is no error: the code is 127 then, and the last line on standard
    /// error says why.
    pub fn serve(&self, mut plan: Plan) -> Result<Serving, LaunchError> {
        if plan.terminal.is_some() || plan.door {
            return Err(LaunchError::Plan("its streams are pipes, and it has no door"));
        }
        let helper = |error: Errno| LaunchError::Helper(error.into());
        let (input, input_end) = pipe_with(PipeFlags::CLOEXEC).map_err(helper)?;
        plan.input = Some(input);
        let streams = [Stdio::piped(), Stdio::piped()];
        let (mut child, control) =
            self.helper(&plan, plan.input.as_ref(), supervisor::SERVE, streams)?;
        let (required, network) = (plan.required, plan.network);
        let is_hidden = !plan.hidden.is_empty();
        // Handles that the program holds alone end with it.
        drop(plan);
        let begun = begun(&control, is_hidden, required, network);
        let streams = child.stdout.take().zip(child.stderr.take());
        match (begun, streams) {
            (Ok(achieved), Some((stdout, stderr))) => {
                let lease = Lease((!is_hidden).then_some(control));
                Ok(Serving { child, stdin: input_end.into(), stdout, stderr, achieved, lease })
            }
            (Err(error), _) => {
                end(&mut child);
                Err(error)
            }
            (Ok(_), None) => {
                end(&mut child);
                Err(LaunchError::Lost)
            }
        }
    }

    /// Tries the view in which these folders are hidden, and starts nothing.
    ///
    /// # Errors
    ///
    /// [`LaunchError::Hidden`] where it can't be had here; `Helper`, `Plan`, `Lost`.
    pub fn can_hide(&self, hidden: Vec<OwnedFd>) -> Result<(), LaunchError> {
        let folder = || {
            let folder = open(Path::new("/"), OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            folder.map_err(|error| LaunchError::Helper(error.into()))
        };
        let mut plan = Plan::new(folder()?, "/".into(), folder()?);
        plan.hidden = hidden;
        let (mut child, control) =
            self.helper(&plan, None, supervisor::TRY, [Stdio::null(), Stdio::null()])?;
        let begun = begun(&control, true, plan.required, plan.network);
        end(&mut child);
        begun.map(drop)
    }

    /// Starts the helper, which learns by its first message what it is for.
    fn helper(
        &self,
        plan: &Plan,
        input: Option<&OwnedFd>,
        hello: &[u8],
        [out, err]: [Stdio; 2],
    ) -> Result<(Child, OwnedFd), LaunchError> {
        let bytes = check(plan)?;
        let helper = |error: Errno| LaunchError::Helper(error.into());
        let written = memfd_create(c"plan", MemfdFlags::CLOEXEC).map_err(helper)?;
        let mut written = File::from(written);
        written.write_all(&bytes).map_err(LaunchError::Helper)?;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(helper)?;
        let mut child = Command::new(format!("/proc/self/fd/{}", self.helper.as_raw_fd()))
            .arg0(supervisor::NAME)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(out)
            .stderr(err)
            .spawn()
            .map_err(LaunchError::Helper)?;
        let mut handles = vec![written.as_fd(), plan.program.as_fd(), plan.folder.as_fd()];
        handles.extend(input.map(AsFd::as_fd));
        handles.extend(plan.terminal.as_ref().map(AsFd::as_fd));
        handles.extend(plan.granted.iter().map(|granted| granted.handle.as_fd()));
        handles.extend(plan.hidden.iter().map(AsFd::as_fd));
        match send(&ours, hello, &handles) {
            Ok(()) => Ok((child, ours)),
            Err(error) => {
                end(&mut child);
                Err(error)
            }
        }
    }
}

fn send(control: &OwnedFd, hello: &[u8], handles: &[BorrowedFd<'_>]) -> Result<(), LaunchError> {
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(handles)) {
        return Err(LaunchError::Plan("more handles than one message takes"));
    }
    let message = [io::IoSlice::new(hello)];
    sendmsg(control, &message, &mut ancillary, SendFlags::NOSIGNAL)
        .map_err(|error| LaunchError::Helper(error.into()))?;
    Ok(())
}

/// Ends a helper of which nothing is heard any more. One that has ended needs no end.
fn end(child: &mut Child) {
    match child.kill().and_then(|()| child.wait()) {
        Ok(_) | Err(_) => {}
    }
}

/// Waits until a program begins. A hidden one has begun when it has replaced the helper, by which
/// the connection ends.
fn begun(
    control: &OwnedFd,
    is_hidden: bool,
    required: crate::Level,
    network: crate::Network,
) -> Result<Option<Achieved>, LaunchError> {
    let mut ready = false;
    loop {
        let mut bytes = [0; wire::NOTE_BYTES];
        let size = match recv(control, &mut bytes[..], RecvFlags::empty()) {
            Ok((size, _)) => size,
            Err(Errno::INTR) => continue,
            Err(Errno::CONNRESET) => 0,
            Err(error) => return Err(LaunchError::Helper(error.into())),
        };
        let note = bytes.get(..size).filter(|bytes| !bytes.is_empty()).and_then(Note::read);
        match note {
            Some(Note::Begins(achieved)) if !is_hidden => return Ok(Some(achieved)),
            Some(Note::Begins(_)) => ready = true,
            None if size == 0 && ready => return Ok(None),
            Some(note) => return Err(refused(note, required, network)),
            None => return Err(LaunchError::Lost),
        }
    }
}

/// The error of a note that is no beginning.
fn refused(note: Note, required: crate::Level, network: crate::Network) -> LaunchError {
    let os = io::Error::from_raw_os_error;
    match note {
        Note::TooWeak(achieved) => {
            LaunchError::Level { required, had: achieved.level(network), achieved }
        }
        Note::Failed(step, error) if supervisor::is_view(step) => LaunchError::Hidden(os(error)),
        Note::Failed(step, error) => {
            LaunchError::Setup { step: supervisor::step_name(step), source: os(error) }
        }
        Note::NotExecuted(error) => LaunchError::Execute(os(error)),
        Note::Begins(_) | Note::Ended(..) | Note::Connected | Note::Status(_) => LaunchError::Lost,
    }
}

/// Keeps a program under supervision: dropped, it is ended, with all that it started. Nothing for a
/// program that has no supervisor.
#[derive(Debug)]
pub struct Lease(Option<OwnedFd>);

impl Lease {
    /// True if dropping it ends the program.
    pub fn is_held(&self) -> bool {
        self.0.is_some()
    }
}

/// A program that speaks with its caller by its standard streams. Dropped, it goes on, but for what
/// its lease ends: the caller waits for `child`.
#[derive(Debug)]
#[non_exhaustive]
pub struct Serving {
    /// The program, or its supervisor.
    pub child: Child,
    /// Its standard input.
    pub stdin: ChildStdin,
    /// Its standard output.
    pub stdout: ChildStdout,
    /// Its standard error.
    pub stderr: ChildStderr,
    /// How it is confined; `None` where folders are hidden from it and nothing else holds it.
    pub achieved: Option<Achieved>,
    /// Keeps it running.
    pub lease: Lease,
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
    if plan.hidden.len() > wire::MOST_HIDDEN {
        return Err(LaunchError::Plan("more than 32 folders are hidden"));
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
    _carrier: Option<Carrier>,
    control: OwnedFd,
    streams: [Option<File>; 2],
    read: u64,
    most: Option<u64>,
    ended: Option<(Ended, u64, u64)>,
    achieved: Option<Achieved>,
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
    pub fn begun(&mut self) -> Result<Achieved, LaunchError> {
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
            Some(note) => return Err(refused(note, self.required, self.network)),
            // At its end it says nothing.
            None => return Err(LaunchError::Lost),
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
