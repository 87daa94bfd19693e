//! The log's head: making records and gathering them for the store.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};

use super::{Effect, Kernel};
use crate::{
    halt::Halt,
    store::{Batch, Link, Stored},
    time::Skew,
};
use syscap_format::{
    hash::leaf,
    id::{HomeId, Leaf, Seq},
    limits::{RECENT_HEADS_MAX, RECORD_BYTES_MAX},
    object::Object,
    record::{Body, ClockFlags, Head, Record},
    vault::VaultWrite,
};

/// Records that no batch has taken, and the heads of batches that are on their way.
#[derive(Default)]
pub(super) struct Pending {
    links: Vec<Link>,
    objects: Vec<Object>,
    vault: Vec<VaultWrite>,
    /// The last record of the batch before, or of the log as it was opened.
    after: Option<Head>,
    committing: VecDeque<Head>,
    /// The last durable heads, the newest at the end.
    durable: VecDeque<Head>,
}

impl Pending {
    /// Nothing pending after `head`.
    pub(super) fn after(head: Option<Head>) -> Self {
        Self { after: head, durable: head.into_iter().collect(), ..Self::default() }
    }

    pub(super) fn push(&mut self, link: Link) {
        self.links.push(link);
    }

    pub(super) fn first(&self) -> Option<Seq> {
        self.links.first().map(|link| link.seq)
    }

    pub(super) fn keep(&mut self, write: VaultWrite) {
        self.vault.push(write);
    }

    pub(super) fn take(&mut self, home: HomeId) -> Option<Batch> {
        let last = self.links.last()?;
        let head = Head { seq: last.seq, leaf: last.leaf };
        self.committing.push_back(head);
        Some(Batch {
            home,
            after: self.after.replace(head),
            links: core::mem::take(&mut self.links),
            objects: core::mem::take(&mut self.objects),
            vault: core::mem::take(&mut self.vault),
        })
    }

    /// Whether `head` is that of the oldest batch on its way, which it then no longer is.
    fn acknowledge(&mut self, head: Head) -> bool {
        if self.durable.len() >= RECENT_HEADS_MAX {
            self.durable.pop_front();
        }
        self.durable.push_back(head);
        self.committing.pop_front() == Some(head)
    }

    /// The last record that is durable.
    pub(super) fn durable(&self) -> Option<Head> {
        self.durable.back().copied()
    }

    /// Whether a head is one of the last durable ones.
    pub(super) fn remembers(&self, head: &Head) -> bool {
        let place = self.durable.binary_search_by_key(&head.seq, |found| found.seq);
        place.is_ok_and(|place| self.durable.get(place) == Some(head))
    }

    /// Whether a record is durable.
    pub(super) fn is_durable(&self, seq: Seq) -> bool {
        self.durable().is_some_and(|durable| seq <= durable.seq)
    }
}

impl Kernel {
    /// Makes a record, folds it in and hands it to the next batch.
    pub(super) fn append(&mut self, body: Body) -> Result<(Seq, Leaf, Body), Halt> {
        self.append_with(body, Vec::new())
    }

    /// The same, with the control documents that the record names.
    pub(super) fn append_with(
        &mut self,
        body: Body,
        objects: Vec<Object>,
    ) -> Result<(Seq, Leaf, Body), Halt> {
        let boots = u64::from(matches!(body, Body::Boot(_)));
        let record = Record {
            seq: self.state.head.seq.next(),
            prev: self.state.head.leaf,
            time: self.now(),
            boot: self.state.boot.saturating_add(boots),
            clock: self.clock_flags(),
            body,
        };
        let bytes = record.encode();
        if bytes.len() > RECORD_BYTES_MAX {
            return Err(Halt::RecordTooLarge);
        }
        debug_assert_eq!(Record::decode(&bytes).as_ref(), Ok(&record), "records decode as made");
        let leaf = leaf(&bytes);
        let mut named: &[Object] = &objects;
        self.state.apply(&record, leaf, &mut named)?;
        self.pending.push(Link { seq: record.seq, leaf, bytes });
        self.pending.objects.extend(objects);
        Ok((record.seq, leaf, record.body))
    }

    /// The last record that is durable.
    pub(super) fn durable_seq(&self) -> Seq {
        self.pending.durable().map_or(Seq::GENESIS, |head| head.seq)
    }

    fn clock_flags(&self) -> ClockFlags {
        let beyond = self.clock.as_ref().is_some_and(|clock| clock.skew() == Skew::Beyond);
        let skewed = if beyond { ClockFlags::SKEWED } else { ClockFlags::default() };
        if self.gap { skewed.and(ClockFlags::GAP) } else { skewed }
    }

    /// All records up to one are durable: what waited for them goes on.
    pub(super) fn stored(&mut self, stored: &Stored) -> Result<(), Halt> {
        if stored.home != self.state.home || !self.pending.acknowledge(stored.head) {
            return Err(Halt::ForeignStored);
        }
        while self.waiting.front().is_some_and(|(seq, _)| *seq <= stored.head.seq) {
            if let Some((seq, waiting)) = self.waiting.pop_front() {
                self.proceed(seq, waiting)?;
            }
        }
        Ok(())
    }

    pub(super) fn emit(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    /// A body of a kind that boxes its content.
    pub(super) fn boxed<T>(value: T, body: impl FnOnce(Box<T>) -> Body) -> Body {
        body(Box::new(value))
    }
}
