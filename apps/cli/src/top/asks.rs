//! How often a person was asked of late.

use std::collections::VecDeque;

use syscap::audit::SqliteReader;
use syscap::format::{Body, Record, Seq, UnixMillis};
use syscap::kernel::{Next, StoreError};

/// The time of recent calls: an hour.
const LATE_MS: u64 = 3_600_000;
/// How many records are gone back at a time.
const BACK: u64 = 4_096;

/// The asks of the last hour, as far as the log was read.
#[derive(Default)]
pub(super) struct Asks {
    /// The first record that was not read; `None` before any was.
    next: Option<Seq>,
    times: VecDeque<UnixMillis>,
}

impl Asks {
    /// How many there are by now. Each record is read once, and none that is much older.
    pub(super) fn count(
        &mut self,
        reader: &mut SqliteReader,
        now: UnixMillis,
    ) -> Result<u64, StoreError> {
        let is_late = |time: UnixMillis| now.since(time) < LATE_MS;
        let from = match self.next {
            Some(next) => next,
            None => begin(reader, is_late)?,
        };
        let (mut next, times) = (from, &mut self.times);
        reader.records(from, &mut |seq, bytes| {
            if let Ok(Record { time, body: Body::Ask(_), .. }) = Record::decode(bytes) {
                times.push_back(time);
            }
            next = seq.next();
            Next::More
        })?;
        self.next = Some(next);
        while self.times.front().is_some_and(|time| !is_late(*time)) {
            self.times.pop_front();
        }
        Ok(u64::try_from(self.times.len()).unwrap_or(u64::MAX))
    }
}

/// A record before all that are of late, and not long before.
fn begin(
    reader: &mut SqliteReader,
    is_late: impl Fn(UnixMillis) -> bool,
) -> Result<Seq, StoreError> {
    let Some(head) = reader.head()? else { return Ok(Seq::GENESIS) };
    let mut from = head.seq.get();
    loop {
        from = from.saturating_sub(BACK);
        let mut late = true;
        reader.records(Seq::new(from), &mut |_, bytes| {
            // One that can't be read says nothing of its time.
            late = Record::decode(bytes).is_ok_and(|record| is_late(record.time));
            Next::Enough
        })?;
        if !late || from == 0 {
            return Ok(Seq::new(from));
        }
    }
}
