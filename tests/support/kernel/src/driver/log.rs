//! A log as a list that a test can change.

use std::collections::BTreeMap;

use ed25519_dalek::SigningKey;
use syscap_audit::MemoryStore;
use syscap_format::{
    Body, Head, HomeId, Leaf, Object, ObjectId, PublicKey, Record, RecordKind, Seq, Signed, leaf,
};
use syscap_kernel::StoreError;
use syscap_verify::{
    Chunk, Extent, Fault, Finding, Options, Report, Source, Trust, TrustSource, verify,
};

/// Whether who forges a log has its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    Known,
    Elsewhere,
}

/// Lets a sound signature over a head that is gone name the record before it.
fn sign_again(
    home: &HomeId,
    record: &mut Record,
    before: &[Vec<u8>],
    last: &mut BTreeMap<PublicKey, Seq>,
) {
    let kind = record.body.kind();
    let control = match &mut record.body {
        Body::Key(event)
        | Body::Revoke(event)
        | Body::Freeze(event)
        | Body::FreezeBecause(event)
        | Body::Policy(event)
        | Body::PolicyBecause(event)
        | Body::Tools(event)
        | Body::Config(event)
        | Body::Redact(event)
        | Body::Credit(event) => &mut event.control,
        Body::Recovery(recovery) => match &mut recovery.control {
            Some(control) => control,
            None => return,
        },
        Body::Issue(issue) => {
            last.insert(issue.issuer, record.seq);
            return;
        }
        _ => return,
    };
    let [Signed { key, counter, .. }] = control.signatures[..] else { return };
    let named = before.get(usize::try_from(control.head.seq.get()).unwrap());
    let stands = named.is_some_and(|bytes| leaf(bytes) == control.head.leaf);
    let stands = stands && last.get(&key).is_none_or(|last| control.head.seq >= *last);
    last.insert(key, record.seq);
    if stands || control.verify(home, kind).is_err() || record.seq == Seq::GENESIS {
        return;
    }
    let head = Head { seq: Seq::new(record.seq.get() - 1), leaf: record.prev };
    let known = (0..=255).map(|seed| SigningKey::from_bytes(&[seed; 32]));
    let signer = known.into_iter().find(|known| super::public(known) == key).expect("a known key");
    *control = super::signed_at(home, head, &signer, counter, kind, control.body.clone());
}

#[derive(Clone)]
pub struct Log {
    pub records: Vec<Vec<u8>>,
    pub objects: Vec<Object>,
}

impl Log {
    pub fn of(store: &MemoryStore) -> Self {
        Self { records: store.all_records(), objects: store.all_objects() }
    }

    pub fn home(&self) -> HomeId {
        HomeId::from_bytes(*leaf(&self.records[0]).as_bytes())
    }

    pub fn record(&self, place: usize) -> Record {
        Record::decode(&self.records[place]).unwrap()
    }

    /// Places of the records of a kind.
    pub fn places(&self, kind: RecordKind) -> Vec<usize> {
        (0..self.records.len()).filter(|place| self.record(*place).body.kind() == kind).collect()
    }

    /// Changes records as somebody would who can write a whole log and has the keys: every
    /// position, link and signed head after them is made anew.
    pub fn forge(&mut self, change: impl FnOnce(&mut Vec<Record>)) {
        self.forge_with(Keys::Known, change);
    }

    /// The same, with or without the keys.
    pub fn forge_with(&mut self, keys: Keys, change: impl FnOnce(&mut Vec<Record>)) {
        let mut records = (0..self.records.len()).map(|place| self.record(place)).collect();
        change(&mut records);
        let mut prev = Leaf::from_bytes([0; 32]);
        let home = self.home();
        let mut last = BTreeMap::new();
        self.records.clear();
        for (seq, mut record) in (0..).zip(records) {
            record.seq = Seq::new(seq);
            record.prev = prev;
            if keys == Keys::Known {
                sign_again(&home, &mut record, &self.records, &mut last);
            }
            let bytes = record.encode();
            prev = leaf(&bytes);
            self.records.push(bytes);
        }
    }

    pub fn trust(&self) -> Trust {
        let Body::Genesis(genesis) = self.record(0).body else {
            panic!("no genesis");
        };
        Trust::new(self.home(), genesis.roles)
    }

    pub fn verify_with(&self, extent: Extent, options: &Options) -> Report {
        verify(&mut self.clone(), extent, options).unwrap()
    }

    /// Verified with a trust file for the home that this began as.
    pub fn verify(&self, trust: Trust) -> Report {
        let given = TrustSource::Given(Box::new(trust.clone()));
        let report =
            self.verify_with(Extent::AtRest, &Options { trust: given, ..Options::default() });
        super::vectors::verified(self, &trust, &report);
        report
    }

    /// Every fault, by place.
    pub fn faults(&self) -> Vec<(usize, Fault)> {
        let found = self.verify(self.trust()).findings;
        let place = |finding: &Finding| usize::try_from(finding.seq.get()).unwrap();
        found.iter().map(|finding| (place(finding), finding.fault)).collect()
    }
}

impl Source for Log {
    type Error = StoreError;

    fn read(&mut self, from: Seq, chunk: &mut Chunk) -> Result<(), StoreError> {
        let from = usize::try_from(from.get()).unwrap();
        for bytes in self.records.iter().skip(from) {
            chunk.push(bytes);
            if chunk.is_full() {
                break;
            }
        }
        Ok(())
    }

    fn leaf(&mut self, seq: Seq) -> Result<Option<Leaf>, StoreError> {
        Ok(self.records.get(usize::try_from(seq.get()).unwrap()).map(|bytes| leaf(bytes)))
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        Ok(self.objects.iter().find(|object| object.id == *id).cloned())
    }
}
