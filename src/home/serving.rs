//! How a home is served, as the file `server` in it says. It is the owner's word and on no record: a
//! process that serves the home may do otherwise.

use std::io::{Error as IoError, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use syscap_audit::disk;

use crate::error::{Error, at};
use crate::home::Home;
use crate::home::files::read_small;

/// How a home is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Serving {
    /// After so long without a client a server that a client started ends, in whole seconds; 0: with
    /// the last client.
    pub idle: Option<Duration>,
    /// True if no person is there to be asked: such a server refuses at once what the policy asks
    /// about.
    pub headless: bool,
    /// The program that serves the home with tools, keys, a store or an engine of its own: no other
    /// is started in its place.
    pub program: Option<String>,
}

impl Serving {
    /// A word and what belongs to it in each line. An unknown one may forbid something: it is a fault.
    fn read(text: &str) -> Option<Self> {
        let mut read = Self::default();
        for line in text.lines() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("idle", seconds) => read.idle = Some(Duration::from_secs(seconds.parse().ok()?)),
                ("headless", "") => read.headless = true,
                ("program", name) if !name.is_empty() => read.program = Some(name.to_owned()),
                _ => return None,
            }
        }
        Some(read)
    }

    fn written(&self) -> String {
        let idle = self.idle.map(|idle| format!("idle {}\n", idle.as_secs()));
        let headless = self.headless.then(|| "headless\n".to_owned());
        let program = self.program.as_ref().map(|name| format!("program {name}\n"));
        [idle, headless, program].into_iter().flatten().collect()
    }
}

impl Home {
    /// How it is served.
    ///
    /// # Errors
    /// [`Error::File`] where the file `server` can't be read, or says what is not known.
    pub fn serving(&self) -> Result<Serving, Error> {
        let path = self.folder.join("server");
        let unknown = || IoError::new(ErrorKind::InvalidData, "says what is not known");
        match read_small(&path) {
            Ok(bytes) => {
                let text = std::str::from_utf8(&bytes).ok();
                text.and_then(Serving::read).ok_or_else(unknown).map_err(at(&path))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Serving::default()),
            Err(error) => Err(at(&path)(error)),
        }
    }

    /// Says how it is to be served from the next start of a server on.
    ///
    /// # Errors
    /// [`Error::File`] where the file can't be written.
    pub fn serve_as(&self, serving: &Serving) -> Result<(), Error> {
        let path = self.folder.join("server");
        disk::replace(&path, serving.written().as_bytes()).map_err(at(&path))
    }

    /// Notes that this program serves the home with what it alone has.
    pub(crate) fn note_program(&self) -> Result<(), Error> {
        let program = std::env::current_exe().ok();
        let name = program.as_deref().and_then(Path::file_name);
        let name = name.map(|name| String::from_utf8_lossy(name.as_bytes()).replace('\n', " "));
        let program = Some(name.unwrap_or_else(|| "another program".to_owned()));
        let serving = self.serving()?;
        match serving.program == program {
            true => Ok(()),
            false => self.serve_as(&Serving { program, ..serving }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_written_and_others_are_faults() {
        let program = Some("my agent".to_owned());
        let idle = Some(Duration::from_mins(5));
        for serving in [Serving::default(), Serving { idle, headless: true, program }] {
            assert_eq!(Serving::read(&serving.written()), Some(serving));
        }
        for wrong in ["idle", "idle -1", "headless no", "program", "program ", "other", "Idle 1"] {
            assert_eq!(Serving::read(wrong), None, "{wrong}");
        }
    }
}
