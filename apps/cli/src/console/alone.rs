//! A home that can't be served here, as one that newer software has written: its log is shown as it
//! stands, and nothing is signed.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use syscap::audit::SqliteReader;
use syscap_console::{Home, Problem, Wanted, Wish};

use super::home::{LOOK, gone, logged};
use crate::exit::Failure;
use crate::output::{Object, word_of};

/// The log of a home without a server.
pub(super) struct LogAlone {
    home: PathBuf,
    why: String,
}

impl LogAlone {
    /// Of a home whose log can be read; `None` where there is nothing to show.
    pub(super) fn of(home: &Path, why: &Failure) -> Option<Self> {
        let alone = Self { home: home.to_path_buf(), why: why.to_string() };
        alone.head().ok().filter(|head| *head > 0).map(|_| alone)
    }

    fn head(&self) -> Result<u64, Problem> {
        let read = SqliteReader::open(&self.home).and_then(|mut reader| reader.head());
        let head = read.map_err(|error| gone(&error.to_string()))?;
        Ok(head.map_or(0, |head| head.seq.get()))
    }
}

impl Home for LogAlone {
    fn look(&self, wanted: &Wanted) -> Result<String, Problem> {
        match wanted {
            Wanted::Status => {
                let line =
                    format!("{}: only its log can be read: {}", word_of(&self.home), self.why);
                let object = Object::new().text("line", &line).uint("head", self.head()?);
                Ok(object.json("frozen", "[]").flag("log_alone", true).finish())
            }
            Wanted::Timeline(_) | Wanted::Record(_) => logged(&self.home, wanted),
            _ => Err(gone(&self.why)),
        }
    }

    fn changed(&self, since: Option<u64>, limit: Duration) -> Result<u64, Problem> {
        let began = Instant::now();
        loop {
            let head = self.head()?;
            if since != Some(head) || began.elapsed() > limit {
                return Ok(head);
            }
            thread::sleep(LOOK);
        }
    }

    fn act(&self, _: Wish) -> Result<String, Problem> {
        Err(gone(&self.why))
    }
}
