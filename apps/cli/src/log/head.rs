//! `syscap log head`: the end of the log, to be noted elsewhere.
//!
//! A log whose end was cut off is a sound log. Only a head that was noted outside shows the cut.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use syscap::audit::{SqliteReader, disk};
use syscap::format::{Head, Leaf, Seq};
use syscap::kernel::StoreError;

use crate::exit::{Ended, Exit, Failure, tell};
use crate::output::{Object, Out};

/// The last head that was printed, for `doctor`. It is no proof: whoever cuts the log changes it too.
const NOTED_FILE: &str = "noted-head";
/// Digits of a number of 64 bits, a colon, a leaf, the end of the line.
const NOTED_BYTES_MAX: u64 = 20 + 1 + 64 + 1;

/// Of which log.
#[derive(Args, Debug)]
pub(crate) struct LogHead {
    /// The home.
    home: PathBuf,
}

impl LogHead {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let Self { home } = self;
        let unread = |error| Failure::home(&home)(syscap::Error::Home(error));
        let mut reader = SqliteReader::open(&home).map_err(unread)?;
        let head = reader.head().map_err(unread)?.ok_or_else(|| unread(StoreError::Damaged))?;
        let text = text(head);
        let json = Object::new().text("head", &text).uint("seq", head.seq.get());
        out.both(&text, json.shown("leaf", head.leaf))?;
        let place = home.join(NOTED_FILE);
        if let Err(error) = disk::replace(&place, format!("{text}\n").as_bytes()) {
            tell(&format!("doctor is not told that it was noted: {}: {error}", place.display()));
        }
        Ok(Exit::Done)
    }
}

/// A head as it is noted.
pub(crate) fn text(head: Head) -> String {
    format!("{}:{}", head.seq, head.leaf)
}

/// Reads a head as it is noted.
pub(crate) fn parse(text: &str) -> Result<Head, String> {
    let head = text.split_once(':').and_then(|(seq, leaf)| {
        Some(Head { seq: Seq::new(seq.parse().ok()?), leaf: Leaf::from_hex(leaf)? })
    });
    head.ok_or_else(|| "a head is a record's number, a colon and 64 hexadecimal digits".to_owned())
}

/// The last head of a home that was printed.
pub(crate) fn last_noted(home: &Path) -> io::Result<Option<Head>> {
    let file = match disk::open_regular(&home.join(NOTED_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut text = String::new();
    file.take(NOTED_BYTES_MAX).read_to_string(&mut text)?;
    parse(text.trim_end()).map(Some).map_err(io::Error::other)
}
