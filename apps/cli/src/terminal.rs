//! Asking a person at the terminal, as `ssh` does: by `/dev/tty`, without echo.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetwinsize, tcsetattr,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use syscap::SignerError;
use syscap::keys::{KeyUse, Passphrase, Passphrases, Seal};

use crate::exit::{Failure, tell};

/// Longest line that is read, in bytes: more than a passphrase may have.
const LINE_BYTES_MAX: usize = 2_048;
/// How often something is asked again that was not understood, or was wrong.
pub(crate) const TRIES: u32 = 3;
/// How long this process waits for a line, where it does not wait for ever.
static PATIENCE: OnceLock<Duration> = OnceLock::new();

/// Says how long a person has for each line from here on: whoever wants the answer waits no longer, and
/// what is typed later must not do what nobody waits for.
pub(crate) fn be_patient_for(limit: Duration) {
    PATIENCE.get_or_init(|| limit);
}

/// True if there is a person to be asked: input and diagnostics are a terminal's.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks for the passphrases of sealed keys.
pub(crate) struct Terminal;

impl Passphrases for Terminal {
    fn ask(&self, key_use: KeyUse) -> Result<Passphrase, SignerError> {
        let sealed = SignerError::Sealed(key_use);
        if !is_there() {
            return Err(sealed);
        }
        let asked = ask(&format!("Enter passphrase for the {key_use} key: "));
        asked.ok().and_then(Passphrase::new).ok_or(sealed)
    }
}

/// Asks for a new passphrase, twice; nothing is none.
pub(crate) fn ask_new(what: &str) -> Result<Seal, Failure> {
    for _ in 0..TRIES {
        let first = ask(&format!("Enter passphrase for {what} (empty for no passphrase): "));
        let first = typed(first.map_err(Failure::Stream)?);
        if first == Some(Seal::Open) {
            return Ok(Seal::Open);
        }
        let again = typed(ask("Enter same passphrase again: ").map_err(Failure::Stream)?);
        match (first, again) {
            (Some(first), Some(again)) if first == again => return Ok(first),
            (Some(_), Some(_)) => tell("Passphrases do not match. Try again."),
            _ => tell("That passphrase is too long. Try again."),
        }
    }
    let advice = "no passphrase was typed twice, so nothing was made".to_owned();
    Err(Failure::Usage { what: what.to_owned(), advice })
}

/// The meaning of a line as a new passphrase: an empty one seals nothing. `None` where it is too
/// long: what was typed to seal a key must not leave it open.
fn typed(line: Vec<u8>) -> Option<Seal> {
    if line.is_empty() { Some(Seal::Open) } else { Passphrase::new(line).map(Seal::By) }
}

/// Tries a passphrase, and asks again where it was the wrong one.
pub(crate) fn unsealed<T>(
    mut unseal: impl FnMut() -> Result<T, SignerError>,
) -> Result<T, SignerError> {
    for _ in 1..TRIES {
        match unseal() {
            Err(wrong @ SignerError::Passphrase(_)) if is_there() => tell(&format!("{wrong}.")),
            done => return done,
        }
    }
    unseal()
}

/// One line of the terminal's that is a secret.
pub(crate) fn ask_secret(prompt: &str) -> io::Result<Vec<u8>> {
    ask(prompt)
}

/// One line of the terminal's, which shows it.
pub(crate) fn ask_shown(prompt: &str) -> io::Result<String> {
    let mut terminal = File::options().read(true).write(true).open("/dev/tty")?;
    let modes = Quiet::begin(&terminal, |_| {})?;
    terminal.write_all(prompt.as_bytes())?;
    let line = line(&terminal, PATIENCE.get());
    drop(modes);
    Ok(String::from_utf8_lossy(&line?).into_owned())
}

/// One line of the terminal's, which does not show it.
fn ask(prompt: &str) -> io::Result<Vec<u8>> {
    let mut terminal = File::options().read(true).write(true).open("/dev/tty")?;
    let quiet = Quiet::begin(&terminal, |modes| {
        modes.local_modes.remove(LocalModes::ECHO);
        // That a line has ended is seen.
        modes.local_modes.insert(LocalModes::ECHONL);
    })?;
    terminal.write_all(prompt.as_bytes())?;
    let line = line(&terminal, PATIENCE.get());
    drop(quiet);
    line
}

/// Read byte by byte, so that nothing of it stays in a buffer.
fn line(mut terminal: &File, limit: Option<&Duration>) -> io::Result<Vec<u8>> {
    let until = limit.and_then(|limit| Instant::now().checked_add(*limit));
    // As long as it can become: what grows leaves copies behind.
    let (mut line, mut byte) = (Vec::with_capacity(LINE_BYTES_MAX), [0]);
    loop {
        if !until.map_or(Ok(true), |until| is_typed(terminal, until))? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match terminal.read(&mut byte) {
            // No empty line, which would mean something: nobody answers.
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) if byte == *b"\n" => return Ok(line),
            Ok(_) if line.len() < LINE_BYTES_MAX => line.extend_from_slice(&byte),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// True once there is something to read; false at that time.
fn is_typed(terminal: &File, until: Instant) -> io::Result<bool> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(terminal, PollFlags::IN)], Some(&left)) {
            Ok(found) => return Ok(found > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// How long a look for a key takes where none is pressed, in tenths of a second.
const KEY_TENTHS: u8 = 2;
/// The size of a terminal that does not say its own.
const SIZE: Size = Size { rows: 24, columns: 80 };

/// How much a terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

/// A terminal that gives what is pressed at once, and shows what is drawn. It is as it was before
/// when this is dropped, and when a signal ends the process.
pub(crate) struct Screen {
    terminal: File,
    drawn: String,
    _quiet: Quiet,
}

impl Screen {
    pub(crate) fn open() -> io::Result<Self> {
        let terminal = File::options().read(true).write(true).open("/dev/tty")?;
        let quiet = Quiet::begin(&terminal, |modes| {
            // Signals stay: one that is pressed ends the process.
            modes.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
            modes.special_codes[SpecialCodeIndex::VMIN] = 0;
            modes.special_codes[SpecialCodeIndex::VTIME] = KEY_TENTHS;
        })?;
        Ok(Self { terminal, drawn: String::new(), _quiet: quiet })
    }

    pub(crate) fn size(&self) -> Size {
        match tcgetwinsize(&self.terminal) {
            Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
                Size { rows: size.ws_row.into(), columns: size.ws_col.into() }
            }
            _ => SIZE,
        }
    }

    /// Shows these lines, which are plain, and nothing else.
    pub(crate) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let drawn = format!("\x1b[H\x1b[2J{}", lines.join("\n"));
        if drawn != self.drawn {
            self.terminal.write_all(drawn.as_bytes())?;
            self.drawn = drawn;
        }
        Ok(())
    }

    /// The pressed keys; empty, if there was none for a moment.
    pub(crate) fn pressed(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = [0; 256];
        match self.terminal.read(&mut bytes) {
            Ok(count) => Ok(bytes.get(..count).unwrap_or_default().to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Forgets what was pressed before.
    pub(crate) fn forget(&self) -> io::Result<()> {
        Ok(tcflush(&self.terminal, QueueSelector::IFlush)?)
    }

    /// Ends it, and leaves what it shows, so that something can be asked below.
    pub(crate) fn part(mut self) -> io::Result<()> {
        self.terminal.write_all(b"\n")
    }

    /// Ends it, and leaves an empty screen.
    pub(crate) fn end(mut self) -> io::Result<()> {
        self.draw(&[])
    }
}

/// The terminal whose echo is off at present, and as it was before.
type Silenced = Arc<Mutex<Option<(File, Termios)>>>;

/// A terminal that does not show what is typed. It does again when this is dropped, and when a
/// signal ends the process.
struct Quiet(Silenced);

impl Quiet {
    fn begin(terminal: &File, change: impl FnOnce(&mut Termios)) -> io::Result<Self> {
        let silenced = silenced()?;
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        change(&mut quiet);
        // Stopped, it would leave the shell without echo.
        quiet.special_codes[SpecialCodeIndex::VSUSP] = 0;
        *lock(&silenced) = Some((terminal.try_clone()?, before));
        let this = Self(silenced);
        // What was typed before the question is no answer to it.
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(this)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        restore(&self.0);
    }
}

fn restore(silenced: &Silenced) {
    if let Some((terminal, before)) = lock(silenced).take() {
        // A terminal that has gone needs no echo.
        tcsetattr(&terminal, OptionalActions::Now, &before).unwrap_or(());
    }
}

fn lock(silenced: &Silenced) -> MutexGuard<'_, Option<(File, Termios)>> {
    silenced.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The terminals to restore on a signal: from the first question to the process's end.
fn silenced() -> io::Result<Silenced> {
    static SILENCED: OnceLock<Silenced> = OnceLock::new();
    if let Some(silenced) = SILENCED.get() {
        return Ok(Arc::clone(silenced));
    }
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
    let silenced = Silenced::default();
    let heard = Arc::clone(&silenced);
    thread::Builder::new().name("syscap-terminal".to_owned()).spawn(move || {
        for signal in signals.forever() {
            restore(&heard);
            // It ends the process, as if nobody had heard.
            emulate_default_handler(signal).unwrap_or(());
        }
    })?;
    Ok(Arc::clone(SILENCED.get_or_init(|| silenced)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line that does not come ends the question; one that is there is read.
    #[test]
    fn line_is_waited_for_so_long() {
        let (read, mut write) = io::pipe().unwrap();
        let terminal = File::from(std::os::fd::OwnedFd::from(read));
        write.write_all(b"half").unwrap();
        let limit = Duration::from_millis(20);
        assert_eq!(line(&terminal, Some(&limit)).unwrap_err().kind(), io::ErrorKind::TimedOut);
        write.write_all(b"whole\n").unwrap();
        assert_eq!(line(&terminal, Some(&limit)).unwrap(), b"whole");
    }
}
