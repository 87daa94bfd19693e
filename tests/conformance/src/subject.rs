//! A subject: a command that speaks line JSON on its standard input and output.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufReader, PipeReader, PipeWriter, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};
use serde_json::{Map, Value};

use crate::Means;
use crate::http::{self, Url};

/// Longest line that a subject may write, in bytes.
pub(crate) const LINE_BYTES_MAX: u64 = 1 << 20;
/// Answers that wait to be read. A subject that writes more waits, too.
const WAITING_MAX: usize = 64;

/// A fault between the runner and a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It did not answer in time.
    Hung,
    /// It ended, or closed its output.
    Died,
    /// It wrote a line without an end.
    Flooded,
    /// It wrote what is no JSON object.
    NotJson,
    /// It wrote an answer that nobody waits for: a second one, or one of another number.
    Unasked,
    /// It wrote an answer that the protocol has no form for.
    Form(String),
    /// A process of it went on after `SIGKILL` was sent to all of them.
    Unkillable,
    /// The runner itself could not do its part: no fault of the subject.
    Harness(String),
}

impl Fault {
    /// Its text.
    #[must_use]
    pub fn text(&self) -> String {
        let text = match self {
            Self::Hung => "hung: no answer in time",
            Self::Died => "died: it ended, or closed its output",
            Self::Flooded => "flooded: a line without an end",
            Self::NotJson => "not JSON: a line that is no JSON object",
            Self::Unasked => "unasked: an answer that nobody waits for",
            Self::Form(what) => return format!("form: {what}"),
            Self::Unkillable => "unkillable: a process went on after SIGKILL",
            Self::Harness(what) => return format!("harness: {what}"),
        };
        text.to_owned()
    }
}

pub(crate) fn harness(what: &str) -> impl Fn(io::Error) -> Fault {
    let what = what.to_owned();
    move |error| Fault::Harness(format!("{what}: {error}"))
}

/// A subject's answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// It was done.
    Done(Value),
    /// It was not; a call that waits for a person names what is to be approved.
    Refused(Option<String>),
    /// The subject has no such verb.
    Unsupported,
}

/// A line, or none in time.
pub(crate) enum Line {
    Is(Value),
    Late,
}

/// A running subject. Dropped, it is killed with all its processes.
pub(crate) struct Subject {
    /// None where it runs in this process.
    child: Option<Child>,
    /// Lines that a thread of its own writes: one that does not read hangs nobody.
    input: Option<Sender<String>>,
    lines: Receiver<Result<Value, Fault>>,
    next: u64,
    timeout: Duration,
    /// The processes that it names: those that hold its log and its tools.
    pids: Vec<u64>,
    /// The requests that it has not answered.
    open: BTreeSet<u64>,
    /// Answers that came before somebody waited for them.
    early: Vec<(u64, Answer)>,
}

impl Subject {
    /// Starts a command in a process group of its own. `blocks` bounds the files that it writes,
    /// in units of 512 bytes: a write beyond them fails, as on a full disk.
    pub(crate) fn spawn(means: &Means, blocks: Option<u64>) -> Result<Self, Fault> {
        match means.here {
            Some(host) => Self::within(means.timeout, host),
            None => Self::piped(process(means, blocks)?, means.timeout),
        }
    }

    /// An MCP server, with more in its environment. A URL, if there is one, is the way to reach it.
    pub(crate) fn spawn_mcp(
        means: &Means,
        url: Option<&Url>,
        environment: &[(&str, String)],
    ) -> Result<Self, Fault> {
        let environment = environment.iter().map(|(name, value)| (name, value));
        let Some(url) = url.cloned() else {
            let mut process = process(means, None)?;
            process.envs(environment);
            return Self::piped(process, means.timeout);
        };
        let to = url.clone();
        let mut subject = Self::within(means.timeout, |lines, out| http::carry(to, lines, out))?;
        if !means.is_elsewhere() {
            if url.listens() {
                let what = format!("another program listens at {url}: end it, or give no command");
                return Err(Fault::Harness(what));
            }
            let mut process = process(means, None)?;
            // Its standard input stays open: some end with it.
            process.envs(environment).stdin(Stdio::piped()).stdout(Stdio::null());
            let child = process.spawn().map_err(harness("the subject does not start"))?;
            subject.child = Some(child);
        }
        let deadline = Instant::now().checked_add(means.timeout);
        while !url.listens() {
            let is_alive = |child: &mut Child| child.try_wait().is_ok_and(|end| end.is_none());
            if !subject.child.as_mut().is_some_and(is_alive) {
                return Err(Fault::Died);
            }
            if deadline.is_none_or(|at| Instant::now() > at) {
                return Err(Fault::Hung);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(subject)
    }

    /// One that is spoken to by this process itself.
    fn within(
        timeout: Duration,
        host: impl FnOnce(PipeReader, PipeWriter) + Send + 'static,
    ) -> Result<Self, Fault> {
        let pipe = || io::pipe().map_err(harness("a pipe"));
        let ((theirs, ours), (output, told)) = (pipe()?, pipe()?);
        thread::spawn(move || host(theirs, told));
        Ok(Self::over(None, ours, output, timeout))
    }

    /// One that is spoken to by its standard input and output.
    fn piped(mut process: Command, timeout: Duration) -> Result<Self, Fault> {
        process.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = process.spawn().map_err(harness("the subject does not start"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Fault::Harness("the subject has no input or output".to_owned()));
        };
        Ok(Self::over(Some(child), input, output, timeout))
    }

    fn over(
        child: Option<Child>,
        mut input: impl Write + Send + 'static,
        output: impl Read + Send + 'static,
        timeout: Duration,
    ) -> Self {
        let (requests, to_write) = channel::<String>();
        thread::spawn(move || {
            for line in to_write {
                // Who reads no more ends, and is found dead where its answer is waited for.
                if writeln!(input, "{line}").and_then(|()| input.flush()).is_err() {
                    return;
                }
            }
        });
        let (send, lines) = sync_channel(WAITING_MAX);
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let line = read_line(&mut output);
                let ends = line.is_err();
                if send.send(line).is_err() || ends {
                    return;
                }
            }
        });
        let (pids, open, early) = (Vec::new(), BTreeSet::new(), Vec::new());
        Self { child, input: Some(requests), lines, next: 0, timeout, pids, open, early }
    }

    /// True if it is a process of its own.
    pub(crate) fn is_apart(&self) -> bool {
        self.child.is_some()
    }

    /// Remembers the processes that hold log and tools.
    pub(crate) fn names(&mut self, pids: Vec<u64>) {
        self.pids = pids;
    }

    /// Asks, and does not wait: the request's number.
    pub(crate) fn begin(&mut self, verb: &str, mut rest: Map<String, Value>) -> Result<u64, Fault> {
        self.next = self.next.saturating_add(1);
        rest.insert("id".to_owned(), self.next.into());
        rest.insert("do".to_owned(), verb.into());
        self.write(&Value::Object(rest).to_string())?;
        self.open.insert(self.next);
        Ok(self.next)
    }

    /// Writes a line.
    pub(crate) fn write(&mut self, line: &str) -> Result<(), Fault> {
        let input = self.input.as_ref().ok_or(Fault::Died)?;
        input.send(line.to_owned()).map_err(|_| Fault::Died)
    }

    /// The next line, whatever it is.
    pub(crate) fn next_line(&mut self, patience: Duration) -> Result<Line, Fault> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => line.map(Line::Is),
            Err(RecvTimeoutError::Timeout) => Ok(Line::Late),
            Err(RecvTimeoutError::Disconnected) => Err(Fault::Died),
        }
    }

    /// Waits for the answer to a request.
    pub(crate) fn wait(&mut self, id: u64) -> Result<Answer, Fault> {
        let deadline = Instant::now().checked_add(self.timeout);
        loop {
            if let Some(place) = self.early.iter().position(|(early, _)| *early == id) {
                return Ok(self.early.swap_remove(place).1);
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let line = match self.next_line(left.unwrap_or(self.timeout))? {
                Line::Is(line) => line,
                Line::Late => return Err(Fault::Hung),
            };
            let answer = self.read(line)?;
            self.early.push(answer);
        }
    }

    pub(crate) fn ask(&mut self, verb: &str, rest: Map<String, Value>) -> Result<Answer, Fault> {
        let id = self.begin(verb, rest)?;
        self.wait(id)
    }

    /// True if a request has an answer that no caller has waited for.
    pub(crate) fn has_answered(&self, id: u64) -> bool {
        self.early.iter().any(|(early, _)| *early == id)
    }

    /// Checks that nothing unrequested was written.
    pub(crate) fn is_quiet(&mut self) -> Result<(), Fault> {
        match self.lines.try_recv() {
            Ok(Ok(line)) => self.read(line).map(|answer| self.early.push(answer)),
            Ok(Err(Fault::Died)) | Err(_) => Ok(()),
            Ok(Err(fault)) => Err(fault),
        }
    }

    fn read(&mut self, line: Value) -> Result<(u64, Answer), Fault> {
        let Value::Object(mut line) = line else { return Err(Fault::NotJson) };
        let said = ["ok", "refused", "failed", "unsupported"].map(|key| line.contains_key(key));
        if said.into_iter().filter(|said| *said).count() != 1 {
            let what = "none or several of `ok`, `refused`, `failed` and `unsupported`";
            return Err(Fault::Form(what.to_owned()));
        }
        let id = line.get("id").and_then(Value::as_u64);
        let id = id.ok_or_else(|| Fault::Form("an answer without `id`".to_owned()))?;
        if !self.open.remove(&id) {
            return Err(Fault::Unasked);
        }
        let ask = line.get("ask").and_then(Value::as_str).map(str::to_owned);
        let answer = match line.remove("ok") {
            Some(value) => Answer::Done(value),
            None if line.contains_key("unsupported") => Answer::Unsupported,
            None => Answer::Refused(ask),
        };
        Ok((id, answer))
    }

    /// `SIGKILL` to every process that the subject has started, until none is left.
    pub(crate) fn kill(&mut self) -> Result<(), Fault> {
        drop(self.input.take());
        if self.child.is_none() {
            return Ok(());
        }
        let deadline = Instant::now().checked_add(self.timeout);
        // The runner is the nearest reaper of all that a subject starts: when it has no child left,
        // nothing is left, no thread either.
        while has_children() {
            let pids = descendants().into_iter().filter_map(|pid| i32::try_from(pid).ok());
            for pid in pids.filter_map(Pid::from_raw) {
                // One that has just ended can't be sent a signal: the next look tells.
                kill_process(pid, Signal::KILL).ok();
            }
            if deadline.is_none_or(|at| Instant::now() > at) {
                return Err(Fault::Unkillable);
            }
            thread::sleep(Duration::from_millis(1));
        }
        let goes_on = self.pids.iter().any(|pid| fs::metadata(format!("/proc/{pid}")).is_ok());
        if goes_on { Err(Fault::Unkillable) } else { Ok(()) }
    }

    /// Tells it to end, and waits.
    pub(crate) fn stop(&mut self) -> Result<Answer, Fault> {
        let answer = self.ask("stop", Map::new())?;
        drop(self.input.take());
        let deadline = Instant::now().checked_add(self.timeout);
        let Some(child) = &mut self.child else { return Ok(answer) };
        while child.try_wait().is_ok_and(|ended| ended.is_none()) {
            if deadline.is_none_or(|at| Instant::now() > at) {
                return Err(Fault::Hung);
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(answer)
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // What can't be ended is told where `kill` is a step.
        drop(self.kill());
    }
}

/// The subject's command, as it is to be started.
fn process(means: &Means, blocks: Option<u64>) -> Result<Command, Fault> {
    let mut process = match (&means.command[..], blocks) {
        ([program, arguments @ ..], None) => {
            let mut process = Command::new(program);
            process.args(arguments);
            process
        }
        (command, blocks) => {
            let mut process = Command::new("sh");
            let blocks = blocks.unwrap_or(u64::MAX);
            // A write beyond the bound fails, and sends no signal.
            let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
            process.args(["-c", &script, "sh"]).args(command);
            process
        }
    };
    let log = match &means.log {
        Some(path) => {
            let file = fs::File::options().create(true).append(true).open(path);
            Stdio::from(file.map_err(harness("the subject's log"))?)
        }
        None => Stdio::null(),
    };
    process.stderr(log).process_group(0);
    Ok(process)
}

fn read_line(output: &mut impl io::BufRead) -> Result<Value, Fault> {
    let mut line = Vec::new();
    let read = output.take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
    match (read, line.last()) {
        (Err(_) | Ok(0), _) => Err(Fault::Died),
        (Ok(_), Some(b'\n')) => match serde_json::from_slice(&line) {
            Ok(value @ Value::Object(_)) => Ok(value),
            _ => Err(Fault::NotJson),
        },
        (Ok(read), _) if u64::try_from(read).unwrap_or(LINE_BYTES_MAX) >= LINE_BYTES_MAX => {
            Err(Fault::Flooded)
        }
        (Ok(_), _) => Err(Fault::Died),
    }
}

/// Takes up children that have ended: whether there are others.
fn has_children() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// The living processes below this one, by `/proc`.
fn descendants() -> Vec<u64> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u64>().ok());
    let parents: Vec<(u64, u64)> = pids.filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
    let own = u64::try_from(getpid().as_raw_nonzero().get()).unwrap_or(0);
    let mut found = vec![own];
    let mut place = 0;
    while let Some(above) = found.get(place).copied() {
        found.extend(parents.iter().filter(|(_, parent)| *parent == above).map(|(pid, _)| *pid));
        place = place.saturating_add(1);
    }
    found.into_iter().skip(1).collect()
}

/// The parent of a process that has not ended.
fn parent_of(pid: u64) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses, and may hold any.
    let mut rest = stat.rsplit_once(')')?.1.split_whitespace();
    let state = rest.next()?;
    if state == "Z" || state == "X" { None } else { rest.next()?.parse().ok() }
}
