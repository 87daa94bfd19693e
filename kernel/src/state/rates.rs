//! How often agents call and are refused, and how much they write and send: counted from the log,
//! whatever policy is in force, in buckets of fixed width.
//!
//! A count is the sum of a bucket and the twelve before it. So it has all of the last minute, hour
//! or day, and nothing older than a bucket more. A key without counts of its own is counted among
//! *the rest*, which is added to every count. So a count may be too high, and never too low.

use alloc::{boxed::Box, collections::BTreeMap};

use crate::history::{History, Past};
use syscap_format::{AgentId, Amounts, Dimension, RateImage, ToolId, UnixMillis};

/// Widths of the buckets in milliseconds: a twelfth of a minute, of an hour, of a day.
const WIDTHS_MS: [u64; 3] = [5_000, 300_000, 7_200_000];
/// How many there are: those that a count has, the one that has begun among them.
const BUCKETS: usize = 13;
/// How many agents, and tools of agents, have counts of their own, in all and of one agent. Each
/// takes some 1,300 bytes.
const KEYS_MAX: usize = 16_384;
const KEYS_OF_AGENT_MAX: usize = 257;

/// The counts in one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bucket {
    /// Its place in time: how many widths after 1970 it begins.
    number: u64,
    /// Calls, refusals, bytes: in the order of [`Past`].
    counts: [u64; 3],
}

/// The last buckets of one width, each at the rest of its number.
type Ring = [Bucket; BUCKETS];

/// The counts of one agent, or of one of its tools: a ring for each width.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts([Ring; 3]);

/// The counts in each span.
type Sums = [[u64; 3]; 3];

/// A key: an agent, or its calls of one tool.
type Key = (AgentId, Option<ToolId>);

/// An agent's call, and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Doer {
    /// The agent of the root token of the chain.
    pub(crate) agent: AgentId,
    pub(crate) tool: ToolId,
    pub(crate) time: UnixMillis,
}

/// All counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rates {
    own: BTreeMap<Key, Box<Counts>>,
    rest: Counts,
    /// When what was over was last taken out: the number of a narrowest bucket.
    swept: u64,
}

impl Rates {
    /// A call was admitted.
    pub(crate) fn admitted(&mut self, doer: &Doer, held: &Amounts) {
        let Doer { agent, tool, time } = doer;
        self.count(agent, Some(tool), *time, [1, 0, bytes(held)]);
    }

    /// It is known what a call used: what it did not need is no longer counted. A call that was
    /// counted among the rest may have that taken from its agent's own since then: of the same
    /// stretch of time, so the two together are not too little.
    pub(crate) fn settled(&mut self, doer: &Doer, held: &Amounts, used: &Amounts) {
        let Doer { agent, tool, time } = doer;
        let unused = bytes(held).saturating_sub(bytes(used));
        if unused == 0 {
            return;
        }
        for tool in [None, Some(tool.clone())] {
            if let Some(counts) = self.own.get_mut(&(agent.clone(), tool)) {
                counts.take_back(*time, unused);
            }
        }
    }

    /// Calls were refused, or asked about; of which tool is known of one by itself.
    pub(crate) fn refused(
        &mut self,
        agent: &AgentId,
        tool: Option<&ToolId>,
        time: UnixMillis,
        count: u64,
    ) {
        self.count(agent, tool, time, [0, count, 0]);
    }

    /// The history for a call by that agent with that tool.
    pub(crate) fn history(&self, agent: &AgentId, tool: &ToolId, now: UnixMillis) -> History {
        let own = |tool| self.own.get(&(agent.clone(), tool));
        let (all, of_tool) = (own(None), own(Some(tool.clone())));
        // Of each the three spans, and of those what is counted.
        let rest = self.rest.sums(now);
        let [all, of_tool] = [all, of_tool].map(|own| match own {
            Some(own) => added(own.sums(now), &rest),
            None => rest,
        });
        History::of(Past::ALL.iter().map(|past| {
            let (measure, by, span) = places(*past);
            let sums = if by == 0 { &all } else { &of_tool };
            sums.get(span).and_then(|counted| counted.get(measure)).copied().unwrap_or(0)
        }))
    }

    fn count(
        &mut self,
        agent: &AgentId,
        tool: Option<&ToolId>,
        time: UnixMillis,
        counted: [u64; 3],
    ) {
        let all = Some((agent.clone(), None));
        let of_tool = tool.map(|tool| (agent.clone(), Some(tool.clone())));
        for key in [all, of_tool].into_iter().flatten() {
            if let Some(counts) = self.own.get_mut(&key) {
                counts.add(time, &counted);
                continue;
            }
            let room = self.has_room(agent, time);
            let counts = if room { self.own.entry(key).or_default() } else { &mut self.rest };
            counts.add(time, &counted);
        }
    }

    /// True if one more key of an agent can have counts of its own. A key that is over makes room:
    /// it counts nothing by then.
    fn has_room(&mut self, agent: &AgentId, now: UnixMillis) -> bool {
        let of_agent = |own: &BTreeMap<Key, Box<Counts>>| {
            let own = own.range((agent.clone(), None)..);
            own.take_while(|((of, _), _)| of == agent).count()
        };
        let fits = |own: &BTreeMap<Key, Box<Counts>>| {
            own.len() < KEYS_MAX && of_agent(own) < KEYS_OF_AGENT_MAX
        };
        // Buckets end together with narrower ones: nothing is over that was not then.
        let number = number(0, now);
        if !fits(&self.own) && self.swept != number {
            self.swept = number;
            self.own.retain(|_, counts| !counts.is_over(now));
        }
        fits(&self.own)
    }

    /// The buckets in which something was counted, and that count still.
    pub(crate) fn images(&self, now: UnixMillis) -> impl Iterator<Item = RateImage> {
        let rest = core::iter::once((None, None, &self.rest));
        let own = self.own.iter();
        let own = own.map(|((agent, tool), counts)| (Some(agent), tool.as_ref(), &**counts));
        rest.chain(own).flat_map(move |(agent, tool, counts)| {
            counts.live(now).map(move |(span, bucket)| {
                let [calls, refusals, bytes] = bucket.counts;
                let (agent, tool, bucket) = (agent.cloned(), tool.cloned(), bucket.number);
                RateImage { agent, tool, span, bucket, calls, refusals, bytes }
            })
        })
    }
}

impl Counts {
    fn add(&mut self, time: UnixMillis, counted: &[u64; 3]) {
        for (span, ring) in self.0.iter_mut().enumerate() {
            let number = number(span, time);
            let Some(bucket) = slot(ring, number) else { continue };
            if bucket.number != number {
                *bucket = Bucket { number, counts: [0; 3] };
            }
            add(&mut bucket.counts, counted);
        }
    }

    /// Takes bytes out of where they were counted, as far as that is there.
    fn take_back(&mut self, time: UnixMillis, unused: u64) {
        for (span, ring) in self.0.iter_mut().enumerate() {
            let number = number(span, time);
            if let Some(Bucket { counts: [_, _, bytes], .. }) =
                slot(ring, number).filter(|bucket| bucket.number == number)
            {
                *bytes = bytes.saturating_sub(unused);
            }
        }
    }

    /// The counts in each span.
    fn sums(&self, now: UnixMillis) -> Sums {
        let mut sums = Sums::default();
        for ((span, ring), sum) in self.0.iter().enumerate().zip(&mut sums) {
            let last = number(span, now);
            for bucket in ring.iter().filter(|bucket| counts_at(bucket, last)) {
                add(sum, &bucket.counts);
            }
        }
        sums
    }

    /// The buckets of each width that still count, in their order.
    fn live(&self, now: UnixMillis) -> impl Iterator<Item = (u64, Bucket)> {
        (0_u64..).zip(self.0.iter().enumerate()).flat_map(move |(name, (span, ring))| {
            let first = number(span, now).saturating_sub(LAST);
            let ring = (first..=number(span, now)).filter_map(|number| {
                let bucket = usize::try_from(number.checked_rem(LAST.saturating_add(1))?).ok()?;
                let bucket = ring.get(bucket).copied()?;
                (bucket.number == number && bucket.counts != [0; 3]).then_some((name, bucket))
            });
            ring.collect::<alloc::vec::Vec<_>>()
        })
    }

    /// True if no bucket in it counts any more: the longest of its spans includes the others.
    fn is_over(&self, now: UnixMillis) -> bool {
        self.0.iter().enumerate().all(|(span, ring)| {
            let last = number(span, now);
            ring.iter().all(|bucket| bucket.counts == [0; 3] || !counts_at(bucket, last))
        })
    }
}

fn added(mut sums: Sums, more: &Sums) -> Sums {
    sums.iter_mut().zip(more).for_each(|(sum, more)| add(sum, more));
    sums
}

fn add(sum: &mut [u64; 3], more: &[u64; 3]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
}

/// How many buckets before the last one count.
const LAST: u64 = 12;

/// True if a bucket still counts, by the number of the one that has begun.
const fn counts_at(bucket: &Bucket, last: u64) -> bool {
    last.saturating_sub(bucket.number) <= LAST
}

fn number(span: usize, time: UnixMillis) -> u64 {
    WIDTHS_MS.get(span).and_then(|width| time.get().checked_div(*width)).unwrap_or(0)
}

fn slot(ring: &mut Ring, number: u64) -> Option<&mut Bucket> {
    ring.get_mut(usize::try_from(number.checked_rem(LAST.saturating_add(1))?).ok()?)
}

/// The places of what is counted, of whom, and of the span.
fn places(past: Past) -> (usize, usize, usize) {
    let code = usize::try_from(past.code()).unwrap_or(0);
    let part = |by: usize, of: usize| {
        code.checked_div(by).and_then(|code| code.checked_rem(of)).unwrap_or(0)
    };
    (part(6, 3), part(3, 2), part(1, 3))
}

/// The bytes written and sent.
fn bytes(amounts: &Amounts) -> u64 {
    let written = amounts.get(Dimension::DiskWriteBytes);
    written.saturating_add(amounts.get(Dimension::EgressBytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

    use alloc::format;

    use super::*;

    const DAY_MS: u64 = 86_400_000;

    fn doer(agent: &str, tool: &str, time: u64) -> Doer {
        let (agent, tool) = (AgentId::new(agent).unwrap(), ToolId::new(tool).unwrap());
        Doer { agent, tool, time: UnixMillis::new(time) }
    }

    fn calls(rates: &Rates, doer: &Doer, past: Past) -> u64 {
        rates.history(&doer.agent, &doer.tool, doer.time).get(past)
    }

    fn held(bytes: u64) -> Amounts {
        Amounts::ZERO.with(Dimension::EgressBytes, bytes)
    }

    /// A key without counts of its own is never undercounted, and no other key is.
    #[test]
    fn full_rate_table_never_undercounts() {
        let (mut rates, time) = (Rates::default(), 20_000 * DAY_MS);
        let early = doer("early", "t", time);
        rates.admitted(&early, &held(5));
        for n in 0..KEYS_MAX {
            rates.refused(&AgentId::new(&format!("a{n}")).unwrap(), None, early.time, 1);
        }
        assert_eq!(rates.own.len(), KEYS_MAX);
        let late = doer("late", "t", time + 1_000);
        rates.admitted(&late, &held(7));
        rates.admitted(&late, &held(7));
        assert_eq!(rates.own.len(), KEYS_MAX);
        assert!(calls(&rates, &late, Past::CallsAgentMinute) >= 2);
        assert!(calls(&rates, &late, Past::CallsToolDay) >= 2);
        assert!(calls(&rates, &early, Past::CallsAgentMinute) >= 1);
        rates.settled(&late, &held(7), &held(0));
        rates.settled(&early, &held(5), &held(0));
        assert!(calls(&rates, &late, Past::BytesAgentDay) >= 14);
        // A day later all but what is of that time is over, and makes room.
        let again = doer("late", "t", time + DAY_MS + 7_200_000);
        rates.admitted(&again, &held(1));
        assert_eq!(rates.own.len(), 2);
        for past in [Past::CallsAgentDay, Past::CallsToolMinute, Past::BytesAgentDay] {
            assert_eq!(calls(&rates, &again, past), 1);
        }
    }

    /// No key that still counts is evicted, even for a minute.
    #[test]
    fn counted_keys_are_never_evicted() {
        let (mut rates, time) = (Rates::default(), 20_000 * DAY_MS);
        for n in 0..KEYS_OF_AGENT_MAX - 1 {
            let at = time + u64::try_from(n).unwrap() * 330_000;
            rates.admitted(&doer("a", &format!("t{n}"), at), &held(1));
        }
        assert_eq!(rates.own.len(), KEYS_OF_AGENT_MAX);
        let now = time + DAY_MS - 1;
        rates.admitted(&doer("a", "more", now), &held(1));
        assert_eq!(calls(&rates, &doer("a", "more", now), Past::CallsToolDay), 1);
        assert_eq!(calls(&rates, &doer("a", "t0", now), Past::CallsToolDay), 1 + 1);
        assert_eq!(rates.own.len(), KEYS_OF_AGENT_MAX);
    }
}
