//! Starts the command line, as oneself and, as root, as nobody besides.
#![allow(dead_code, reason = "each test program uses a part")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that can't set up fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The user and group `nobody`.
pub(crate) const NOBODY: u32 = 65534;

/// Copies a program, by `cp`.
pub(crate) fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}

/// A place with the launcher and a folder `work`, both a certain user's.
pub(crate) struct Place {
    pub(crate) user: Option<u32>,
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new(user: Option<u32>) -> Self {
        let folder = tempfile::Builder::new().prefix("launch").tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let launcher = folder.path().join("syscap-launch");
        // By another process: while this one had it open for writing, a thread beside that forks
        // would keep it so, and it could not be started.
        copy(Path::new(env!("CARGO_BIN_EXE_syscap-launch")), &launcher);
        fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
        let place = Self { user, folder };
        fs::create_dir(place.work()).unwrap();
        fs::create_dir(place.outside()).unwrap();
        for path in [place.work(), place.outside()] {
            std::os::unix::fs::chown(&path, user, user).unwrap();
        }
        place
    }

    /// A folder that the program may be given.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// A folder of the same user's that it is not given.
    pub(crate) fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    /// A file of the user's.
    pub(crate) fn file(&self, path: &Path, text: &str, mode: u32) -> PathBuf {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        std::os::unix::fs::chown(path, self.user, self.user).unwrap();
        path.to_owned()
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(self.folder.path().join("syscap-launch"));
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command.current_dir(self.work()).stdin(Stdio::null());
        command
    }

    /// Runs it with these options and the program after them.
    pub(crate) fn run(&self, options: &[&str], program: &[&str]) -> Ran {
        let report = self.folder.path().join("report");
        self.file(&report, "", 0o600);
        let mut command = self.command();
        command.args(options).arg("--report").arg(&report).arg("--").args(program);
        let output = command.output().unwrap();
        Ran { output, report: fs::read_to_string(report).unwrap() }
    }

    /// Runs Python code in the work folder, which may be written.
    pub(crate) fn python(&self, options: &[&str], code: &str) -> Ran {
        let work = self.work();
        let mut all = vec!["--rw", work.to_str().unwrap()];
        all.extend(options);
        let code = format!("{PRELUDE}\n{code}");
        self.run(&all, &["python3", "-c", &code])
    }
}

/// Calls by number; an error's name is what is compared.
pub(crate) const PRELUDE: &str = "
import ctypes, errno, os, sys, signal, socket, subprocess, time
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    ctypes.set_errno(0)
    done = libc.syscall(number, *args)
    return 'done' if done >= 0 else errno.errorcode[ctypes.get_errno()]
def told(what, *args):
    try:
        what(*args)
        return 'done'
    except OSError as error:
        return errno.errorcode[error.errno]
";

/// Forks while children end, with a handler of their signal that has no `SA_RESTART`, and says how
/// many forks failed: they are calls that no program expects to be interrupted.
pub(crate) const FORKS: &str = "
signal.signal(signal.SIGCHLD, lambda *a: None)
failed = 0
for _ in range(500):
    try:
        if os.fork() == 0: os._exit(0)
    except OSError: failed += 1
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0): pass
    except ChildProcessError: pass
print(failed)";

/// What was printed, and the report.
pub(crate) struct Ran {
    pub(crate) output: Output,
    pub(crate) report: String,
}

impl Ran {
    pub(crate) fn code(&self) -> i32 {
        self.output.status.code().unwrap_or_else(|| -self.output.status.signal().unwrap_or(0))
    }

    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// A number of the report.
    pub(crate) fn number(&self, name: &str) -> u64 {
        let (_, after) = self.report.split_once(&format!("\"{name}\":")).unwrap();
        after.split([',', '}']).next().unwrap().parse().unwrap()
    }

    /// That it ended by itself, well, and what it printed.
    #[track_caller]
    pub(crate) fn fine(&self) -> String {
        assert_eq!(self.code(), 0, "{}{}{}", self.out(), self.err(), self.report);
        self.out()
    }
}

/// The test, as oneself, and as nobody where one is root.
pub(crate) fn as_each(test: impl Fn(&Place)) {
    test(&Place::new(None));
    if rustix::process::geteuid().is_root() {
        test(&Place::new(Some(NOBODY)));
    } else {
        eprintln!("skipped: the second round, as nobody, takes root");
    }
}

/// Processes of the host whose command line has this in it.
pub(crate) fn alive(token: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if pid != std::process::id() && String::from_utf8_lossy(&line).contains(token) {
            found.push(pid);
        }
    }
    found
}

/// A word that no other process has in its command line.
pub(crate) fn token(name: &str) -> String {
    format!("{name}-{}-{:?}", std::process::id(), std::thread::current().id())
        .replace(['(', ')'], "")
}

/// Seconds, ten minutes and a bit, that no other process sleeps: so that the sleeper itself is
/// found in [`alive`].
pub(crate) fn nap() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
    let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("600.{:07}{next:04}", std::process::id())
}

/// Waits, to a bound that only a failure reaches.
#[track_caller]
pub(crate) fn until(what: impl Fn() -> bool) {
    for _ in 0..2000 {
        if what() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("it did not come to be");
}
