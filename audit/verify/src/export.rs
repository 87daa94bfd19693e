//! Reading an export back, in one pass with a bounded buffer.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use syscap_format::{
    Leaf, OBJECT_BYTES_MAX, OBJECTS_FOLDER, Object, ObjectId, ObjectKind, RECORD_BYTES_MAX,
    RECORDS_FILE, Seq, leaf,
};

use crate::options::{Extent, Options, VerifyError};
use crate::report::Report;
use crate::source::{Chunk, Source};
use crate::verify;

/// How much is read at once.
const BUFFER_BYTES: usize = 1 << 20;

/// The files of an export.
#[derive(Debug)]
pub struct ExportReader {
    records: File,
    objects: PathBuf,
    buffer: Vec<u8>,
    /// How much of the buffer was given out.
    taken: usize,
    ended: Ended,
    /// The position of every record whose number [`INDEX_EACH`] divides.
    index: Vec<u64>,
    /// How many records were given out, and how many bytes they have.
    given: (u64, u64),
}

/// One record in so many is found at once; those after it are walked through.
const INDEX_EACH: u64 = 1_024;

/// The progress through the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    NotYet,
    Yes,
}

impl ExportReader {
    /// Opens an export.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn open(folder: &Path) -> Result<Self, io::Error> {
        let records = open_regular(&folder.join(RECORDS_FILE))?;
        let objects = folder.join(OBJECTS_FOLDER);
        let (buffer, ended) = (Vec::with_capacity(BUFFER_BYTES), Ended::NotYet);
        Ok(Self { records, objects, buffer, taken: 0, ended, index: Vec::new(), given: (0, 0) })
    }

    /// Fills the buffer until it holds a whole record, or all that is left.
    fn fill(&mut self) -> Result<(), io::Error> {
        let left = self.buffer.len().saturating_sub(self.taken);
        if left > RECORD_BYTES_MAX || self.ended == Ended::Yes {
            return Ok(());
        }
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let wanted = u64::try_from(BUFFER_BYTES.saturating_sub(left)).unwrap_or(0);
        let read = (&self.records).take(wanted).read_to_end(&mut self.buffer);
        let read = read?;
        if u64::try_from(read).unwrap_or(0) < wanted {
            self.ended = Ended::Yes;
        }
        Ok(())
    }
}

impl Source for ExportReader {
    type Error = io::Error;

    fn read(&mut self, _: Seq, chunk: &mut Chunk) -> Result<(), io::Error> {
        loop {
            self.fill()?;
            let rest = self.buffer.get(self.taken..).unwrap_or_default();
            let rest = rest.get(..RECORD_BYTES_MAX.min(rest.len())).unwrap_or_default();
            if rest.is_empty() {
                return Ok(());
            }
            // Where no item ends, what is there is given out whole: it is no record, and whoever
            // verifies says so.
            let record = item_len(rest).and_then(|len| rest.get(..len)).unwrap_or(rest);
            let (count, bytes) = self.given;
            if count.is_multiple_of(INDEX_EACH) {
                self.index.push(bytes);
            }
            let len = u64::try_from(record.len()).unwrap_or(u64::MAX);
            self.given = (count.saturating_add(1), bytes.saturating_add(len));
            self.taken = self.taken.saturating_add(record.len());
            chunk.push(record);
            if chunk.is_full() {
                return Ok(());
            }
        }
    }

    fn leaf(&mut self, seq: Seq) -> Result<Option<Leaf>, io::Error> {
        let place = usize::try_from(seq.get() / INDEX_EACH).ok();
        let Some(mut at) = place.and_then(|place| self.index.get(place)).copied() else {
            return Ok(None);
        };
        let mut buffer = vec![0; RECORD_BYTES_MAX];
        let mut before = seq.get() % INDEX_EACH;
        loop {
            let read = read_at(&self.records, &mut buffer, at)?;
            let rest = buffer.get(..read).unwrap_or_default();
            let Some(record) = item_len(rest).and_then(|len| rest.get(..len)) else {
                return Ok(None);
            };
            if before == 0 {
                return Ok(Some(leaf(record)));
            }
            before = before.saturating_sub(1);
            at = at.saturating_add(u64::try_from(record.len()).unwrap_or(u64::MAX));
        }
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, io::Error> {
        let mut bytes = Vec::new();
        let file = match open_regular(&self.objects.join(id.to_string())) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let limit = u64::try_from(OBJECT_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
        file.take(limit).read_to_end(&mut bytes)?;
        let mut object = Object { kind: ObjectKind::Token, id: *id, bytes };
        for kind in ObjectKind::ALL {
            object.kind = *kind;
            if object.is_sound() {
                break;
            }
        }
        // One that fits no kind is given out under the last: it is unsound under any.
        Ok(Some(object))
    }
}

/// The length of the first item of `bytes`; `None` if it has no end. Only lengths are looked at:
/// whoever decodes the item checks it.
fn item_len(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut items) = (0_usize, 1_u64);
    while items > 0 {
        items = items.checked_sub(1)?;
        let first = *bytes.get(at)?;
        at = at.checked_add(1)?;
        let width = match first & 31 {
            0..=23 => 0,
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            _ => return None,
        };
        let end = at.checked_add(width)?;
        let more = bytes.get(at..end)?;
        at = end;
        let argument = match width {
            0 => u64::from(first & 31),
            _ => more.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte)),
        };
        match first >> 5 {
            2 | 3 => at = at.checked_add(usize::try_from(argument).ok()?)?,
            4 => items = items.checked_add(argument)?,
            5 => items = items.checked_add(argument.checked_mul(2)?)?,
            6 => items = items.checked_add(1)?,
            _ => {}
        }
    }
    (at <= bytes.len()).then_some(at)
}

/// Fills a buffer from a position on, as far as the file goes.
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0_usize;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let from = at.saturating_add(u64::try_from(filled).unwrap_or(u64::MAX));
        match file.read_at(rest, from) {
            Ok(0) => break,
            Ok(read) => filled = filled.saturating_add(read),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Opens a regular file to read, without waiting for the other end of a pipe.
fn open_regular(path: &Path) -> io::Result<File> {
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::InvalidInput.into()) }
}

/// Verifies an export. An export of a home that was held ends without a shutdown, and is
/// incomplete.
///
/// ```no_run
/// use std::path::Path;
/// use syscap_verify::{Options, TrustSource, Soundness, verify_export};
///
/// # fn main() -> Result<(), syscap_verify::VerifyError<std::io::Error>> {
/// // The trust file is the auditor's own, from when the home was made.
/// let trust = TrustSource::File("trust.cbor".into());
/// let report = verify_export(Path::new("export"), &Options { trust, ..Options::default() })?;
/// for finding in &report.findings {
///     println!("{finding:?}");
/// }
/// assert_eq!(report.verdict(), Soundness::Sound);
/// # Ok(())
/// # }
/// ```
pub fn verify_export(folder: &Path, options: &Options) -> Result<Report, VerifyError<io::Error>> {
    let mut reader = ExportReader::open(folder)?;
    verify(&mut reader, Extent::AtRest, options)
}
