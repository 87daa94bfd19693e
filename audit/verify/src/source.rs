//! The source that a verification reads.

use syscap_format::{Leaf, Object, ObjectId, Seq};

/// Most records in a chunk.
const CHUNK_RECORDS: usize = 4_096;
/// A chunk that has reached this many bytes takes no more.
const CHUNK_BYTES: usize = 4 << 20;

/// Records read at once, so that objects can be looked up between reads.
#[derive(Debug, Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Chunk {
    /// Takes a record. The position that a store gives it is not looked at: the record names
    /// its own.
    pub fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }

    /// True if it should be given no more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.ends.len() >= CHUNK_RECORDS || self.bytes.len() >= CHUNK_BYTES
    }

    /// How many records it holds.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The records' bytes, in order.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).filter_map(|(start, end)| self.bytes.get(start..*end))
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// A log to read.
pub trait Source {
    /// Why it can't be read.
    type Error;

    /// Puts the next records into a chunk until that is full, from `from` on where the source can
    /// seek; none at the end.
    ///
    /// # Errors
    /// What keeps it from being read.
    fn read(&mut self, from: Seq, chunk: &mut Chunk) -> Result<(), Self::Error>;

    /// The leaf of a record that was read before; `None` where there is none.
    ///
    /// # Errors
    /// What keeps it from being read.
    fn leaf(&mut self, seq: Seq) -> Result<Option<Leaf>, Self::Error>;

    /// A control document.
    ///
    /// # Errors
    /// What keeps it from being read.
    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, Self::Error>;
}
