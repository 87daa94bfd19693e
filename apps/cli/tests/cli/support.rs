//! A home in a temporary folder, and the binary to run on it.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use syscap::audit::HomeLock;

/// The binary, with what it needs of the environment.
pub(crate) fn syscap() -> Command {
    Command::new(env!("CARGO_BIN_EXE_syscap"))
}

/// What a run came to.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it ended by itself"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// It went well and said nothing on standard error, but that it waits: a busy machine makes it
    /// wait for a server that ends.
    pub(crate) fn fine(self) -> Self {
        let said: Vec<&str> =
            self.err.lines().filter(|line| !line.starts_with("waiting for process ")).collect();
        assert_eq!((self.code, &said[..]), (0, &[][..]), "{}", self.out);
        self
    }

    /// It failed with one line on standard error, and nothing on standard output.
    pub(crate) fn failed(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        assert_eq!(self.err.lines().count(), 1, "{}", self.err);
        assert!(self.err.starts_with("syscap: "), "{}", self.err);
        assert_eq!(self.out, "");
        self
    }

    /// The lines of the output as JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// The only line of the output as JSON.
    pub(crate) fn one(&self) -> Value {
        let mut lines = self.json();
        assert_eq!(lines.len(), 1, "{}", self.out);
        lines.remove(0)
    }
}

pub(crate) fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    Run::of(syscap().args(args).stdin(Stdio::null()).output().unwrap())
}

pub(crate) fn run_with<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, input: &[u8]) -> Run {
    let mut command = syscap();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Run::of(output)
}

/// A home, and a folder beside it.
pub(crate) struct TestHome {
    pub(crate) folder: host_support::Scratch,
}

impl TestHome {
    pub(crate) fn new() -> Self {
        let home = Self { folder: host_support::scratch() };
        run(["init", &home.path(), "--no-passphrase"]).fine();
        home
    }

    /// The home's path.
    pub(crate) fn path(&self) -> String {
        self.beside("home").to_str().unwrap().to_owned()
    }

    /// A path beside the home.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text_beside(&self, name: &str) -> String {
        self.beside(name).to_str().unwrap().to_owned()
    }

    /// A file beside the home.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.beside(name), text).unwrap();
        self.text_beside(name)
    }

    pub(crate) fn workspace(&self, agent: &str) -> PathBuf {
        self.beside("home").join("files/agents").join(agent).join("workspace")
    }

    /// Issues a token for `agent` with more flags.
    pub(crate) fn token(&self, agent: &str, flags: &[&str]) -> String {
        let home = self.path();
        let mut args = vec!["token", "issue", &home, "--agent", agent];
        args.extend(flags);
        // What it may lack is said beside it.
        let run = run(args);
        assert_eq!((run.code, run.out.len()), (0, 65), "{} {}", run.out, run.err);
        run.out.trim_end().to_owned()
    }

    /// A token for all built-in tools in the workspace.
    pub(crate) fn worker(&self, agent: &str) -> String {
        let tools = ["--tool", "fs.read", "--tool", "fs.write", "--tool", "fs.list"];
        let flags = ["--tool", "echo", "--read", "workspace", "--write", "workspace"];
        self.token(agent, &[&tools[..], &flags[..]].concat())
    }

    /// Calls, a line each, and the results.
    pub(crate) fn call(&self, agent: &str, token: &str, input: &[u8]) -> Vec<Value> {
        self.call_run(agent, token, input).fine().json()
    }

    pub(crate) fn call_run(&self, agent: &str, token: &str, input: &[u8]) -> Run {
        run_with(["call", &self.path(), "--agent", agent, "--token", token], input)
    }

    /// Every record.
    pub(crate) fn log(&self) -> Vec<Value> {
        run(["log", "show", &self.path(), "--json"]).fine().json()
    }

    pub(crate) fn verify(&self) -> i32 {
        run(["verify", &self.path()]).code
    }

    /// The process that serves it. The system's list of locks may leave one out while others change:
    /// it is looked at more than once.
    pub(crate) fn server(&self) -> Option<Pid> {
        let look = |_| HomeLock::holder(&self.beside("home"));
        let server = (0..5).find_map(look)?;
        Pid::from_raw(i32::try_from(server).unwrap())
    }

    /// Kills the process that serves it, as a power cut would.
    pub(crate) fn kill_server(&self) {
        let server = self.server().expect("it is served");
        kill_process(server, Signal::KILL).unwrap();
        until("it has gone", || !lives(server));
    }

    /// A `call` that stays open, and so does the server.
    pub(crate) fn hold(&self, agent: &str, token: &str) -> Holder {
        let mut command = syscap();
        command.args(["call", &self.path(), "--agent", agent, "--token", token, "-"]);
        Holder::of(command)
    }
}

/// True until all that a process has open is closed.
pub(crate) fn lives(process: Pid) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero()));
    // Its first thread may end before the others.
    threads.into_iter().flatten().flatten().any(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat"));
        stat.is_ok_and(|stat| !stat.rsplit(") ").next().unwrap().starts_with(['Z', 'X']))
    })
}

/// A running `syscap serve`, that is ready. It is killed where a test lets it fall.
pub(crate) struct Serving {
    pub(crate) child: Child,
    /// What it said before it was ready.
    pub(crate) said: Vec<String>,
}

impl Serving {
    pub(crate) fn of(home: &str, flags: &[&str]) -> Self {
        let mut command = syscap();
        command.args(["serve", home]).args(flags).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        loop {
            let line = lines.next().expect("it begins").unwrap();
            if line == format!("serving {home}") {
                break;
            }
            said.push(line);
        }
        // What it says later must not stop it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, said }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Has it end properly.
    pub(crate) fn stop(self) {
        self.signal(Signal::TERM);
        assert_eq!(self.end(), Some(0));
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A running `syscap call`.
pub(crate) struct Holder {
    pub(crate) child: Child,
    answers: BufReader<ChildStdout>,
}

impl Holder {
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    /// Sends a line and waits for its answer.
    pub(crate) fn ask(&mut self, line: &str) -> Value {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).expect(&answer)
    }

    /// Sends a line and does not wait.
    pub(crate) fn send(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Ends the input, and waits for the process to end.
    pub(crate) fn end(mut self) -> i32 {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().code().unwrap()
    }
}

/// Waits until it is so, and fails where it does not come to that.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !so() {
        assert!(since.elapsed() < Duration::from_secs(30), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A short call of `echo`.
pub(crate) const ECHO: &str = r#"{"tool_id":"echo","args":{"value":1}}"#;

/// The reason in a result.
pub(crate) fn reason(result: &Value) -> &str {
    assert_eq!(result["status"], "error", "{result}");
    result["error"]["reason"].as_str().unwrap()
}

/// Whether a value is 64 hexadecimal digits.
pub(crate) fn is_hash(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The names in a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A pipe that nobody reads. Another test's process may have the other end, too, until it becomes
/// another program: that is waited for.
pub(crate) fn unheard() -> io::PipeWriter {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let is_heard = || {
        let mut ends = [PollFd::new(&writer, PollFlags::empty())];
        poll(&mut ends, Some(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 })).unwrap();
        !ends[0].revents().contains(PollFlags::ERR)
    };
    while is_heard() {}
    writer
}
