//! Records on their way to the store.

use alloc::{collections::VecDeque, vec::Vec};

use crate::store::{Batch, Link, Spare, Stored};
use syscap_format::{Head, HomeId, Object, RECENT_HEADS_MAX, Seq, VaultWrite};

/// Records that no batch has taken, and the heads of batches that are on their way.
#[derive(Default)]
pub(crate) struct Pending {
    links: Vec<Link>,
    pub(crate) objects: Vec<Object>,
    vault: Vec<VaultWrite>,
    erased: Vec<Seq>,
    /// Buffers of durable batches, to be filled again.
    spare: Spare,
    /// The last record of the batch before, or of the log as it was opened.
    after: Option<Head>,
    committing: VecDeque<Head>,
    /// The last durable heads, the newest at the end.
    durable: VecDeque<Head>,
}

impl Pending {
    /// The queue after `head`, empty.
    pub(crate) fn after(head: Option<Head>) -> Self {
        Self { after: head, durable: head.into_iter().collect(), ..Self::default() }
    }

    pub(crate) fn push(&mut self, link: Link) {
        self.links.push(link);
    }

    pub(crate) fn first(&self) -> Option<Seq> {
        self.links.first().map(|link| link.seq)
    }

    pub(crate) fn keep(&mut self, write: VaultWrite) {
        self.vault.push(write);
    }

    pub(crate) fn erase(&mut self, records: &[Seq]) {
        self.erased.extend(records);
    }

    pub(crate) fn take(&mut self, home: HomeId) -> Option<Batch> {
        let last = self.links.last()?;
        let head = Head { seq: last.seq, leaf: last.leaf };
        self.committing.push_back(head);
        Some(Batch {
            home,
            after: self.after.replace(head),
            links: core::mem::replace(&mut self.links, core::mem::take(&mut self.spare.links)),
            objects: core::mem::take(&mut self.objects),
            vault: core::mem::replace(&mut self.vault, core::mem::take(&mut self.spare.vault)),
            erased: core::mem::take(&mut self.erased),
        })
    }

    /// True if it acknowledges the oldest batch on its way, which is then removed.
    pub(crate) fn acknowledge(&mut self, stored: Stored) -> bool {
        let Stored { head, spare, .. } = stored;
        self.spare = spare;
        if self.durable.len() >= RECENT_HEADS_MAX {
            self.durable.pop_front();
        }
        self.durable.push_back(head);
        self.committing.pop_front() == Some(head)
    }

    /// The last record that is durable.
    pub(crate) fn durable(&self) -> Option<Head> {
        self.durable.back().copied()
    }

    /// True if a head is one of the last durable ones.
    pub(crate) fn remembers(&self, head: &Head) -> bool {
        let place = self.durable.binary_search_by_key(&head.seq, |found| found.seq);
        place.is_ok_and(|place| self.durable.get(place) == Some(head))
    }

    /// True if a record is durable.
    pub(crate) fn is_durable(&self, seq: Seq) -> bool {
        self.durable().is_some_and(|durable| seq <= durable.seq)
    }
}
