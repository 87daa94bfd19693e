//! A home, a workspace beside it, and an agent that is a program.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::cli::support::{Holder, Run, TestHome, run, run_with, syscap};

pub(crate) const AGENT: &str = "coder";
pub(crate) const PYTHON: &str = "/usr/bin/python3";
pub(crate) const SYSCAP: &str = env!("CARGO_BIN_EXE_syscap");

/// What the agents of these tests begin with.
pub(crate) const PRELUDE: &str = "
import ctypes, errno, glob, json, os, signal, socket, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def told(what, *args):
    try:
        what(*args)
        return 'done'
    except OSError as error:
        return errno.errorcode[error.errno]
def ran(*words, input=''):
    return subprocess.run(words, input=input, capture_output=True, text=True)
def ptrace(pid):
    ctypes.set_errno(0)
    done = libc.ptrace(16, pid, None, None)
    return 'done' if done >= 0 else errno.errorcode[ctypes.get_errno()]
";

/// A home, and beside it what the agent works in.
pub(crate) struct World {
    pub(crate) home: TestHome,
    pub(crate) token: String,
}

impl World {
    /// `None`, and says so, where no boundary is to be had.
    pub(crate) fn new() -> Option<Self> {
        let home = TestHome::new();
        fs::create_dir(home.beside("work")).unwrap();
        let token = home.worker(AGENT);
        let world = Self { home, token };
        let tried = world.run(&[], &["/bin/true"]);
        if tried.code == 125 {
            eprintln!("skipped: {}", tried.err);
            return None;
        }
        assert_eq!(tried.code, 0, "{}", tried.err);
        Some(world)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.home.beside("work")
    }

    /// The command line up to the program.
    pub(crate) fn words(&self, options: &[&str]) -> Vec<String> {
        let (home, work) = (self.home.path(), self.home.text_beside("work"));
        let base = ["run", &home, "--agent", AGENT, "--workspace", &work];
        let words = base.iter().chain(options).map(|word| (*word).to_owned());
        words.chain(["--".to_owned()]).collect()
    }

    /// A program within.
    pub(crate) fn run(&self, options: &[&str], program: &[&str]) -> Run {
        let program = program.iter().map(|word| (*word).to_owned());
        run(self.words(options).into_iter().chain(program))
    }

    /// The same, with an input.
    pub(crate) fn run_with(&self, options: &[&str], program: &[&str], input: &str) -> Run {
        let program = program.iter().map(|word| (*word).to_owned());
        run_with(self.words(options).into_iter().chain(program), input.as_bytes())
    }

    /// Python code, with the home, the socket and the program at hand by names.
    pub(crate) fn code(&self, code: &str) -> String {
        let home = self.home.path();
        format!("{PRELUDE}\nHOME, SYSCAP, TOKEN = {home:?}, {SYSCAP:?}, {:?}\n{code}", self.token)
    }

    /// An agent within that is this code; what it printed.
    pub(crate) fn within(&self, options: &[&str], code: &str) -> String {
        let ran = self.run(options, &[PYTHON, "-c", &self.code(code)]);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        ran.out
    }

    /// The same code without the boundary, while another process holds the home.
    pub(crate) fn outside(&self, code: &str) -> String {
        let holder = self.held();
        let output = self.python(code).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        drop(holder);
        String::from_utf8(output.stdout).unwrap()
    }

    /// A process that holds the home and serves it.
    pub(crate) fn held(&self) -> Holder {
        let holder = self.home.hold(AGENT, &self.token);
        while !self.home.beside("home/socket").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        holder
    }

    pub(crate) fn python(&self, code: &str) -> Command {
        let mut command = Command::new(PYTHON);
        command.args(["-c", &self.code(code)]).current_dir(self.work()).stdin(Stdio::null());
        command
    }

    pub(crate) fn of_kind(&self, kind: &str) -> usize {
        self.home.log().iter().filter(|record| record["kind"] == kind).count()
    }

    /// The command line of `syscap` itself, where it is asked beside a run.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = syscap();
        command.args(self.words(words));
        command
    }
}
