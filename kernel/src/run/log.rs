//! The log's head: making records and handing them to the store.

use alloc::vec::Vec;

use crate::events::Effect;
use crate::halt::Halt;
use crate::machine::Kernel;
use crate::store::{Link, Stored};
use crate::time::Skew;
use syscap_format::{
    BodyView, ClockFlags, Leaf, Object, RECORD_BYTES_MAX, Record, RecordView, Seq, leaf,
};

impl Kernel {
    /// Makes a record, folds it in and hands it to the next batch.
    pub(crate) fn append(&mut self, body: BodyView<'_>) -> Result<(Seq, Leaf), Halt> {
        self.append_with(body, Vec::new())
    }

    /// The same, with the control documents that the record names.
    pub(crate) fn append_with(
        &mut self,
        body: BodyView<'_>,
        objects: Vec<Object>,
    ) -> Result<(Seq, Leaf), Halt> {
        let boots = u64::from(matches!(body, BodyView::Boot(_)));
        let record = RecordView {
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
        debug_assert_eq!(
            Record::decode(&bytes).as_ref().map(Record::view),
            Ok(record),
            "records decode as made"
        );
        let (seq, leaf) = (record.seq, leaf(&bytes));
        let mut named: &[Object] = &objects;
        self.state.apply(record, leaf, &mut named)?;
        self.pending.push(Link { seq, leaf, bytes });
        self.pending.objects.extend(objects);
        Ok((seq, leaf))
    }

    /// The last record that is durable.
    pub(crate) fn durable_seq(&self) -> Seq {
        self.pending.durable().map_or(Seq::GENESIS, |head| head.seq)
    }

    fn clock_flags(&self) -> ClockFlags {
        let beyond = self.clock.as_ref().is_some_and(|clock| clock.skew() == Skew::Beyond);
        let skewed = if beyond { ClockFlags::SKEWED } else { ClockFlags::default() };
        if self.gap { skewed.and(ClockFlags::GAP) } else { skewed }
    }

    /// All records up to one are durable: what waited for them goes on.
    pub(crate) fn stored(&mut self, stored: Stored) -> Result<(), Halt> {
        let upto = stored.head.seq;
        if stored.home != self.state.home || !self.pending.acknowledge(stored) {
            return Err(Halt::ForeignStored);
        }
        while let Some(erased) = self.redacting.pop_front_if(|erased| *erased <= upto) {
            self.unread(erased);
        }
        while self.waiting.front().is_some_and(|(seq, _)| *seq <= upto) {
            if let Some((seq, waiting)) = self.waiting.pop_front() {
                self.proceed(seq, waiting)?;
            }
        }
        Ok(())
    }

    pub(crate) fn emit(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }
}
