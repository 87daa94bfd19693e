//! The leaves that signed events name.

use std::collections::VecDeque;

use syscap_kernel::{
    id::{Leaf, Seq},
    store::{Head, StoreError},
};

use super::Source;

/// Leaves that are remembered: a signer names a head that it has just seen. One before them is
/// looked up in the source again.
const RECENT_MAX: usize = 65_536;

/// The last leaves of the log, as the chain has them.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    recent: VecDeque<Leaf>,
    /// How many there have been in all.
    count: u64,
}

impl Leaves {
    pub(super) fn push(&mut self, leaf: Leaf) {
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(leaf);
        self.count = self.count.saturating_add(1);
    }

    /// Whether a head is one of those before.
    pub(super) fn has(&self, head: &Head, source: &mut dyn Source) -> Result<bool, StoreError> {
        let Some(back) = self.count.checked_sub(head.seq.get()).filter(|back| *back > 0) else {
            return Ok(false);
        };
        let place = usize::try_from(back).ok().and_then(|b| self.recent.len().checked_sub(b));
        let leaf = match place {
            Some(place) => self.recent.get(place).copied(),
            None => source.leaf(head.seq)?,
        };
        Ok(leaf == Some(head.leaf))
    }
}

/// What a key has signed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signer {
    pub(super) counter: u64,
    pub(super) last: Seq,
}
