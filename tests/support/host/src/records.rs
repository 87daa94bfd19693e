//! What a home's log holds, as a stranger reads it.

use std::path::Path;

use syscap::audit::SqliteReader;
use syscap::format::{Record, Seq};
use syscap::kernel::Next;

/// All records of a home.
pub fn records(home: &Path) -> Vec<Record> {
    let mut records = Vec::new();
    let each = &mut |_, bytes: &[u8]| {
        records.push(Record::decode(bytes).unwrap());
        Next::More
    };
    SqliteReader::open(home).unwrap().records(Seq::GENESIS, each).unwrap();
    records
}
