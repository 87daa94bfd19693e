//! Reading an export back, in one pass with a bounded buffer.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

use syscap_kernel::{
    cbor::{Decoder, Profile},
    id::{ObjectId, Seq},
    limits::{OBJECT_BYTES_MAX, RECORD_BYTES_MAX},
    object::{Object, ObjectKind},
    store::{Next, StoreError},
};

use super::{OBJECTS_FOLDER, RECORDS_FILE};
use crate::verify::{Chunk, Source};

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
}

/// Whether the file has been read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    NotYet,
    Yes,
}

impl ExportReader {
    /// Opens an export.
    ///
    /// # Errors
    /// [`StoreError::Missing`] or [`StoreError::Io`].
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let records = File::open(folder.join(RECORDS_FILE)).map_err(|error| from_io(&error))?;
        let objects = folder.join(OBJECTS_FOLDER);
        let (buffer, ended) = (Vec::with_capacity(BUFFER_BYTES), Ended::NotYet);
        Ok(Self { records, objects, buffer, taken: 0, ended })
    }

    /// Fills the buffer until it holds a whole record, or all that is left.
    fn fill(&mut self) -> Result<(), StoreError> {
        let left = self.buffer.len().saturating_sub(self.taken);
        if left > RECORD_BYTES_MAX || self.ended == Ended::Yes {
            return Ok(());
        }
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let wanted = u64::try_from(BUFFER_BYTES.saturating_sub(left)).unwrap_or(0);
        let read = (&self.records).take(wanted).read_to_end(&mut self.buffer);
        let read = read.map_err(|error| from_io(&error))?;
        if u64::try_from(read).unwrap_or(0) < wanted {
            self.ended = Ended::Yes;
        }
        Ok(())
    }
}

impl Source for ExportReader {
    fn read(&mut self, _: Seq, chunk: &mut Chunk) -> Result<(), StoreError> {
        loop {
            self.fill()?;
            let rest = self.buffer.get(self.taken..).unwrap_or_default();
            let rest = rest.get(..RECORD_BYTES_MAX.min(rest.len())).unwrap_or_default();
            if rest.is_empty() {
                return Ok(());
            }
            let mut decoder = Decoder::new(rest, Profile::CONTROL);
            // Where no item can be read, what is there is given out whole: it is no record, and
            // whoever verifies says so.
            let record = decoder.item().map_or(rest, |item| item.as_bytes());
            self.taken = self.taken.saturating_add(record.len());
            if chunk.push(record) == Next::Enough {
                return Ok(());
            }
        }
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        let mut bytes = Vec::new();
        let file = match File::open(self.objects.join(id.to_string())) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(from_io(&error)),
        };
        let limit = u64::try_from(OBJECT_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
        file.take(limit).read_to_end(&mut bytes).map_err(|error| from_io(&error))?;
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

fn from_io(error: &std::io::Error) -> StoreError {
    match error.kind() {
        ErrorKind::NotFound => StoreError::Missing,
        _ => StoreError::Io(error.raw_os_error().unwrap_or(0)),
    }
}
