//! A person at a terminal: the binary with a pty of its own as its controlling terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

/// How long an answer may take: an unsealing takes its time on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Whether a person can be played here; says so where not.
pub(crate) fn is_there() -> bool {
    let there = Path::new("/usr/bin/setsid").exists() && openpt(OpenptFlags::RDWR).is_ok();
    if !there {
        eprintln!("skipped: there is no setsid, or no pty to be had");
    }
    there
}

/// A run at a terminal.
pub(crate) struct Person {
    child: Child,
    terminal: File,
    seen: Arc<Mutex<String>>,
    /// How far what was seen was waited for.
    read: usize,
}

/// What a run at a terminal came to.
pub(crate) struct Told {
    pub(crate) code: Option<i32>,
    /// What the terminal showed.
    pub(crate) shown: String,
    /// Standard output, which is no terminal.
    pub(crate) out: String,
}

impl Person {
    pub(crate) fn runs<'a>(args: impl IntoIterator<Item = &'a str>) -> Self {
        Self::runs_in(Path::new("."), args)
    }

    pub(crate) fn runs_in<'a>(folder: &Path, args: impl IntoIterator<Item = &'a str>) -> Self {
        Self::started(folder, None, args)
    }

    /// By a user of that home.
    pub(crate) fn runs_as<'a>(user: &Path, args: impl IntoIterator<Item = &'a str>) -> Self {
        Self::started(user, Some(user), args)
    }

    fn started<'a>(
        folder: &Path,
        user: Option<&Path>,
        args: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let terminal =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let no_ctty = i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).unwrap();
        let side =
            || OpenOptions::new().read(true).write(true).custom_flags(no_ctty).open(&name).unwrap();
        let mut command = Command::new("/usr/bin/setsid");
        command.args(["--ctty", env!("CARGO_BIN_EXE_syscap")]).args(args).current_dir(folder);
        if let Some(user) = user {
            command.env("HOME", user).env_remove("CLAUDE_CONFIG_DIR");
        }
        command.stdin(side()).stderr(side()).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        // Dropped, so that the terminal ends with the process.
        drop(command);
        let terminal = File::from(terminal);
        let (seen, mut reader) = (Arc::<Mutex<String>>::default(), terminal.try_clone().unwrap());
        let shown = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut bytes = [0; 1_024];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                shown.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { child, terminal, seen, read: 0 }
    }

    /// Waits until the terminal shows something that it did not show before.
    pub(crate) fn sees(&mut self, text: &str) -> &mut Self {
        let since = Instant::now();
        loop {
            let seen = self.seen.lock().unwrap().clone();
            if let Some(place) = seen[self.read..].find(text) {
                self.read += place + text.len();
                return self;
            }
            assert!(since.elapsed() < PATIENCE, "waited in vain for {text:?}: {seen}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The same; false where the process ends without it.
    pub(crate) fn sees_or_ends(&mut self, text: &str) -> bool {
        let since = Instant::now();
        loop {
            let has_ended = self.child.try_wait().unwrap().is_some();
            let seen = self.seen.lock().unwrap().clone();
            if let Some(place) = seen[self.read..].find(text) {
                self.read += place + text.len();
                return true;
            }
            if has_ended {
                return false;
            }
            assert!(since.elapsed() < PATIENCE, "waited in vain for {text:?}: {seen}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The number of the process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// What stands behind that, up to a space.
    pub(crate) fn next_word(&mut self) -> String {
        self.sees(" ");
        let seen = self.seen.lock().unwrap();
        let before = seen[..self.read].trim_end();
        before.rsplit([' ', '\n']).next().unwrap_or_default().to_owned()
    }

    /// The next line of standard output.
    pub(crate) fn line(&mut self) -> String {
        let (output, mut line) = (self.child.stdout.as_mut().unwrap(), Vec::new());
        let mut byte = [0];
        while output.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    pub(crate) fn types(&mut self, line: &str) -> &mut Self {
        self.press(&[line.as_bytes(), b"\n"].concat())
    }

    pub(crate) fn press(&mut self, keys: &[u8]) -> &mut Self {
        self.terminal.write_all(keys).unwrap();
        self
    }

    /// Whether the terminal shows what is typed.
    pub(crate) fn echoes(&self) -> bool {
        tcgetattr(&self.terminal).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    pub(crate) fn end(&mut self) -> Told {
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        let code = self.child.wait().unwrap().code();
        std::thread::sleep(Duration::from_millis(50));
        Told { code, shown: self.seen.lock().unwrap().clone(), out }
    }
}

impl Told {
    /// It went well, and the terminal never showed a secret.
    pub(crate) fn fine(self) -> Self {
        assert_eq!(self.code, Some(0), "{}{}", self.shown, self.out);
        self.hides("secret")
    }

    pub(crate) fn hides(self, secret: &str) -> Self {
        assert!(!self.shown.contains(secret) && !self.out.contains(secret), "{}", self.shown);
        self
    }
}

/// Makes a home whose keys are sealed.
pub(crate) fn sealed(home: &str, passphrase: &str) {
    let mut person = Person::runs(["init", home]);
    person.sees("(empty for no passphrase): ").types(passphrase);
    person.sees("same passphrase again: ").types(passphrase);
    person.end().hides(passphrase).fine();
}
