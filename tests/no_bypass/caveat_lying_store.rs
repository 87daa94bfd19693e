//! expect: ok
//! A store can say that a batch is durable which it has thrown away.
#[path = "support/mod.rs"]
mod support;
use support::*;

use syscap::format::{Object, ObjectId};
use syscap::kernel::{Next, Room, StoreError};

struct Liar;

impl Store for Liar {
    fn commit(&mut self, _: &Batch) -> Result<(), StoreError> {
        Ok(())
    }

    fn records(&mut self, _: Seq, _: &mut dyn FnMut(Seq, &[u8]) -> Next) -> Result<(), StoreError> {
        Ok(())
    }

    fn object(&mut self, _: &ObjectId) -> Result<Option<Object>, StoreError> {
        Ok(None)
    }

    fn vault(&mut self, _: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    fn room(&mut self) -> Result<Room, StoreError> {
        Ok(Room::Enough)
    }
}

pub fn main() {
    let folder = std::env::args().nth(1).expect("the harness names a folder");
    drop(Options::new().store(Liar).create(folder).expect("it is believed"));
}
