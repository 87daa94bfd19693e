//! The leaves that signed events name.

use std::collections::VecDeque;

use syscap_format::{Head, Leaf, Seq};

use crate::source::Source;

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

    /// True if a head is one of those before.
    pub(super) fn has<E>(
        &self,
        head: &Head,
        source: &mut dyn Source<Error = E>,
    ) -> Result<bool, E> {
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

/// The signatures of a key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signer {
    pub(super) counter: u64,
    pub(super) last: Seq,
}

#[cfg(test)]
mod tests {
    use syscap_format::{Head, Leaf, Object, ObjectId, Seq};

    use super::{Leaves, RECENT_MAX, Source};
    use crate::source::Chunk;

    fn leaf(number: u64) -> Leaf {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        Leaf::from_bytes(bytes)
    }

    /// Has every leaf, and counts how often it is asked.
    struct Asked(u64);

    impl Source for Asked {
        type Error = core::convert::Infallible;

        fn read(&mut self, _: Seq, _: &mut Chunk) -> Result<(), Self::Error> {
            Ok(())
        }

        fn leaf(&mut self, seq: Seq) -> Result<Option<Leaf>, Self::Error> {
            self.0 = self.0.saturating_add(1);
            Ok(Some(leaf(seq.get())))
        }

        fn object(&mut self, _: &ObjectId) -> Result<Option<Object>, Self::Error> {
            Ok(None)
        }
    }

    /// One that is remembered is not asked for; one before those is held against the source.
    #[test]
    fn a_head_that_is_long_past_is_looked_up() {
        let recent = u64::try_from(RECENT_MAX).unwrap();
        let (mut leaves, mut source) = (Leaves::default(), Asked(0));
        (0..recent + 2).for_each(|number| leaves.push(leaf(number)));
        let mut has = |seq, of| {
            let head = Head { seq: Seq::new(seq), leaf: leaf(of) };
            leaves.has(&head, &mut source).map(|has| (has, source.0)).unwrap()
        };
        assert_eq!(has(recent + 2, recent + 2), (false, 0), "none is there yet");
        assert_eq!(has(recent + 1, recent + 1), (true, 0), "the last");
        assert_eq!(has(recent + 1, recent), (false, 0));
        assert_eq!(has(2, 2), (true, 0), "the oldest that is remembered");
        assert_eq!(has(2, 1), (false, 0));
        assert_eq!(has(1, 1), (true, 1), "one that is not");
        assert_eq!(has(1, 2), (false, 2));
    }
}
