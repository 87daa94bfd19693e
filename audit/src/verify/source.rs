//! Where a verification reads from.

use syscap_kernel::{
    hash::leaf,
    id::{Leaf, ObjectId, Seq},
    object::Object,
    store::{Next, Store, StoreError},
};

use crate::sqlite::SqliteReader;

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
    pub fn push(&mut self, record: &[u8]) -> Next {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
        let full = self.ends.len() >= CHUNK_RECORDS || self.bytes.len() >= CHUNK_BYTES;
        if full { Next::Enough } else { Next::More }
    }

    /// How many records it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it holds none.
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
    /// Puts the next records into a chunk, from `from` on where the source can seek; none at
    /// the end.
    ///
    /// # Errors
    /// [`StoreError`].
    fn read(&mut self, from: Seq, chunk: &mut Chunk) -> Result<(), StoreError>;

    /// The leaf of a record that was read before; `None` where there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    fn leaf(&mut self, seq: Seq) -> Result<Option<Leaf>, StoreError>;

    /// A control document.
    ///
    /// # Errors
    /// [`StoreError`].
    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError>;
}

/// The leaf of the first record that a store gives out from a position on.
fn first_leaf(
    read: impl FnOnce(&mut dyn FnMut(Seq, &[u8]) -> Next) -> Result<(), StoreError>,
) -> Result<Option<Leaf>, StoreError> {
    let mut found = None;
    read(&mut |_, bytes| {
        found = Some(leaf(bytes));
        Next::Enough
    })?;
    Ok(found)
}

/// Any store as a source.
pub struct FromStore<'a>(pub &'a mut dyn Store);

impl Source for FromStore<'_> {
    fn read(&mut self, from: Seq, chunk: &mut Chunk) -> Result<(), StoreError> {
        self.0.records(from, &mut |_, bytes| chunk.push(bytes))
    }

    fn leaf(&mut self, seq: Seq) -> Result<Option<Leaf>, StoreError> {
        first_leaf(|each| self.0.records(seq, each))
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        self.0.object(id)
    }
}

impl Source for SqliteReader {
    fn read(&mut self, from: Seq, chunk: &mut Chunk) -> Result<(), StoreError> {
        self.records(from, &mut |_, bytes| chunk.push(bytes))
    }

    fn leaf(&mut self, seq: Seq) -> Result<Option<Leaf>, StoreError> {
        first_leaf(|each| self.records(seq, each))
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        Self::object(self, id)
    }
}
