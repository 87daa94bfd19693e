//! Records: what is accepted has one encoding; and a log of any records, each with its length
//! before it, is verified to an end.

use std::sync::OnceLock;

use syscap::format::{Item, Leaf, Object, ObjectId, Profile, Record, Seq, leaf};
use syscap::verify::{Chunk, Extent, Options, Source, verify};

use kernel_support::history::{self, Bytes};

/// Most records of a log: those of the longest seed and some more.
const RECORDS_MAX: usize = 400;

pub fn record(data: &[u8]) {
    let single = decoded(data);
    drop(single);
    let mut input = Bytes(data);
    let mut log = Vec::new();
    while !input.is_empty() && log.len() < RECORDS_MAX {
        log.push(input.part().to_vec());
    }
    read(&log);
    // Again with a chain that holds, so that what is behind it is reached.
    let mut prev = Leaf::from_bytes([0; 32]);
    let mut chained = Vec::new();
    for bytes in &log {
        let Some(mut record) = decoded(bytes) else { continue };
        record.seq = Seq::new(u64::try_from(chained.len()).unwrap());
        record.prev = prev;
        let bytes = record.encode();
        prev = leaf(&bytes);
        chained.push(bytes);
    }
    read(&chained);
}

fn decoded(bytes: &[u8]) -> Option<Record> {
    let record = Record::decode(bytes).ok()?;
    assert_eq!(record.encode(), bytes);
    assert_eq!(record.leaf(), leaf(bytes));
    Item::check(bytes, Profile::CONTROL).unwrap();
    Some(record)
}

fn read(records: &[Vec<u8>]) {
    let mut log = Log { records };
    let report = verify(&mut log, Extent::AtRest, &Options::default()).unwrap();
    drop(format!("{:?}", report.verdict()));
}

/// Records in memory, and the control documents of one history.
struct Log<'a> {
    records: &'a [Vec<u8>],
}

impl Source for Log<'_> {
    type Error = core::convert::Infallible;

    fn read(&mut self, from: Seq, chunk: &mut Chunk) -> Result<(), Self::Error> {
        let from = usize::try_from(from.get()).unwrap_or(usize::MAX);
        for record in self.records.iter().skip(from) {
            chunk.push(record);
            if chunk.is_full() {
                break;
            }
        }
        Ok(())
    }

    fn leaf(&mut self, seq: Seq) -> Result<Option<Leaf>, Self::Error> {
        let place = usize::try_from(seq.get()).unwrap_or(usize::MAX);
        Ok(self.records.get(place).map(|bytes| leaf(bytes)))
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, Self::Error> {
        static OBJECTS: OnceLock<Vec<Object>> = OnceLock::new();
        let objects = OBJECTS.get_or_init(|| history::log(&history::history()).1);
        Ok(objects.iter().find(|object| object.id == *id).cloned())
    }
}
