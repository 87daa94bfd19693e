//! A log as a list that a test can change.

use syscap_audit::{
    memory::MemoryStore,
    verify::{Chunk, Extent, Fault, Finding, Options, Report, Source, Trust, TrustSource, verify},
};
use syscap_kernel::{
    hash::leaf,
    id::{HomeId, Leaf, ObjectId, Seq},
    object::Object,
    record::{Body, Kind, Record},
    store::{Next, StoreError},
};

#[derive(Clone)]
pub(crate) struct Log {
    pub(crate) records: Vec<Vec<u8>>,
    pub(crate) objects: Vec<Object>,
}

impl Log {
    pub(crate) fn of(store: &MemoryStore) -> Self {
        Self { records: store.all_records(), objects: store.all_objects() }
    }

    pub(crate) fn home(&self) -> HomeId {
        HomeId::from_bytes(*leaf(&self.records[0]).as_bytes())
    }

    pub(crate) fn record(&self, place: usize) -> Record {
        Record::decode(&self.records[place]).unwrap()
    }

    /// Places of the records of a kind.
    pub(crate) fn places(&self, kind: Kind) -> Vec<usize> {
        (0..self.records.len()).filter(|place| self.record(*place).body.kind() == kind).collect()
    }

    /// Changes records as somebody would who can write a whole log: every position and link
    /// after them is made anew.
    pub(crate) fn forge(&mut self, change: impl FnOnce(&mut Vec<Record>)) {
        let mut records = (0..self.records.len()).map(|place| self.record(place)).collect();
        change(&mut records);
        let mut prev = Leaf::from_bytes([0; 32]);
        self.records.clear();
        for (seq, mut record) in (0..).zip(records) {
            record.seq = Seq::new(seq);
            record.prev = prev;
            let bytes = record.encode();
            prev = leaf(&bytes);
            self.records.push(bytes);
        }
    }

    pub(crate) fn trust(&self) -> Trust {
        let Body::Genesis(genesis) = self.record(0).body else {
            panic!("no genesis");
        };
        Trust { home: self.home(), roles: genesis.roles }
    }

    pub(crate) fn verify_with(&self, extent: Extent, options: &Options) -> Report {
        verify(&mut self.clone(), extent, options).unwrap()
    }

    /// Verified with a trust file for the home that this began as.
    pub(crate) fn verify(&self, trust: Trust) -> Report {
        let options = Options { trust: TrustSource::Given(trust), ..Options::default() };
        self.verify_with(Extent::AtRest, &options)
    }

    /// Every fault, by place.
    pub(crate) fn faults(&self) -> Vec<(usize, Fault)> {
        let found = self.verify(self.trust()).findings;
        let place = |finding: &Finding| usize::try_from(finding.seq.get()).unwrap();
        found.iter().map(|finding| (place(finding), finding.fault)).collect()
    }
}

impl Source for Log {
    fn read(&mut self, from: Seq, chunk: &mut Chunk) -> Result<(), StoreError> {
        let from = usize::try_from(from.get()).unwrap();
        for bytes in self.records.iter().skip(from) {
            if chunk.push(bytes) == Next::Enough {
                break;
            }
        }
        Ok(())
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        Ok(self.objects.iter().find(|object| object.id == *id).cloned())
    }
}
