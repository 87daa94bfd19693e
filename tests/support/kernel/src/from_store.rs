//! A store as the verifier reads one.

use syscap_format::{Leaf, Object, ObjectId, Seq, leaf};
use syscap_kernel::{Next, Store, StoreError};
use syscap_verify::{Chunk, Source};

/// Any store as a source.
pub struct FromStore<'a>(pub &'a mut dyn Store);

impl Source for FromStore<'_> {
    type Error = StoreError;

    fn read(&mut self, from: Seq, chunk: &mut Chunk) -> Result<(), StoreError> {
        self.0.records(from, &mut |_, bytes| {
            chunk.push(bytes);
            if chunk.is_full() { Next::Enough } else { Next::More }
        })
    }

    fn leaf(&mut self, seq: Seq) -> Result<Option<Leaf>, StoreError> {
        let mut found = None;
        self.0.records(seq, &mut |_, bytes| {
            found = Some(leaf(bytes));
            Next::Enough
        })?;
        Ok(found)
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        self.0.object(id)
    }
}
