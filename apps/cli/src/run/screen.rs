//! A terminal of the program's own: what it does to it is not done to this one, and what is typed
//! reaches it with its signals.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::{self, JoinHandle};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

/// The upper end, and this terminal as it was.
pub(super) struct Screen {
    upper: OwnedFd,
    before: Termios,
    shows: Option<JoinHandle<()>>,
}

impl Screen {
    /// A pair like the terminal that this process has; the lower end is the program's.
    pub(super) fn new() -> io::Result<(Self, OwnedFd)> {
        let own = io::stdin();
        let before = tcgetattr(&own)?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let upper = openpt(flags)?;
        grantpt(&upper)?;
        unlockpt(&upper)?;
        let name = ptsname(&upper, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let lower = open(name, flags, Mode::empty())?;
        tcsetattr(&lower, OptionalActions::Now, &before)?;
        let screen = Self { upper, before, shows: None };
        screen.resize();
        Ok((screen, lower))
    }

    /// A handle on the upper end for the size alone.
    pub(super) fn sized(&self) -> io::Result<Sized> {
        Ok(Sized(self.upper.try_clone()?))
    }

    fn resize(&self) {
        resize(&self.upper);
    }

    /// Begins to carry what is typed and what is shown; from here on this terminal is raw.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        let (mut typed, mut shown) =
            (File::from(self.upper.try_clone()?), File::from(self.upper.try_clone()?));
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        let name = |name: &str| thread::Builder::new().name(name.to_owned());
        // Ends with the process: it waits for what is typed.
        name("syscap-typed").spawn(move || {
            let own = io::stdin();
            let mut bytes = [0; 4096];
            while let Ok(size @ 1..) = rustix::io::read(&own, &mut bytes) {
                if typed.write_all(bytes.get(..size).unwrap_or_default()).is_err() {
                    return;
                }
            }
        })?;
        self.shows = Some(name("syscap-shown").spawn(move || {
            let mut out = io::stdout();
            let mut bytes = vec![0; 1 << 16];
            // It fails when nobody has the lower end any more.
            while let Ok(size @ 1..) = shown.read(&mut bytes) {
                let bytes = bytes.get(..size).unwrap_or_default();
                if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
                    return;
                }
            }
        })?);
        Ok(())
    }

    /// Restores the terminal once the lower end is closed and all output is shown.
    pub(super) fn end(mut self) {
        if let Some(shows) = self.shows.take() {
            drop(shows.join());
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Where that fails the terminal has gone.
        tcsetattr(io::stdin(), OptionalActions::Flush, &self.before).unwrap_or(());
    }
}

/// A handle that passes the size of this terminal on.
pub(super) struct Sized(OwnedFd);

impl Sized {
    pub(super) fn resize(&self) {
        resize(&self.0);
    }
}

fn resize(upper: impl AsFd) {
    if let Ok(size) = tcgetwinsize(io::stdin()) {
        tcsetwinsize(upper, size).unwrap_or(());
    }
}
