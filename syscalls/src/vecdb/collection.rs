//! Vectors in memory, and the exact search among them.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use syscap_format::{Canonical, Label};

use super::filter::Filter;

/// Lanes that are summed apart, so that the compiler can use vector instructions. The order of the
/// sums is fixed, so every machine finds the same.
const LANES: usize = 16;

/// The overhead of a record on disk, about.
const HEADS_BYTES: usize = 12;

/// The vectors of one collection, each of length one.
#[derive(Debug, Default)]
pub(super) struct Collection {
    dimensions: usize,
    /// One behind the other, in the order of `records`.
    vectors: Vec<f32>,
    records: Vec<Record>,
    by_id: HashMap<Box<str>, usize>,
    /// About how many bytes all of it takes on disk.
    live_bytes: u64,
}

/// The data beside a vector.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) id: Box<str>,
    pub(super) metadata: Canonical,
    /// The label of the session that put it there.
    pub(super) label: Label,
}

impl Record {
    /// About how many bytes it takes on disk, with a vector of that many numbers.
    fn bytes(&self, dimensions: usize) -> u64 {
        let beside = self.id.len().saturating_add(self.metadata.as_bytes().len());
        let all = dimensions.saturating_mul(4).saturating_add(beside).saturating_add(HEADS_BYTES);
        u64::try_from(all).unwrap_or(u64::MAX)
    }
}

/// One of the nearest.
#[derive(Debug)]
pub(super) struct Hit<'a> {
    pub(super) score: f32,
    pub(super) record: &'a Record,
}

impl Collection {
    /// How many numbers each vector has; 0 where there is none yet.
    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// About how many bytes all of it takes on disk, written anew.
    pub(super) const fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// All of it, in the order in which it is held.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Record, &[f32])> {
        // Without a vector there is no length, and no record either.
        self.records.iter().zip(self.vectors.chunks_exact(self.dimensions.max(1)))
    }

    /// The label of all vectors.
    pub(super) fn label(&self) -> Label {
        self.records.iter().fold(Label::PUBLIC, |label, record| label.join(record.label))
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }

    /// Puts a vector there, or in the place of one with its id. Its dimensions were checked.
    pub(super) fn put(&mut self, record: Record, unit: &[f32]) {
        self.remove(&record.id);
        if self.records.is_empty() {
            self.dimensions = unit.len();
        }
        self.live_bytes = self.live_bytes.saturating_add(record.bytes(unit.len()));
        self.by_id.insert(record.id.clone(), self.records.len());
        self.records.push(record);
        self.vectors.extend_from_slice(unit);
    }

    /// Takes a vector away; whether it was there. The last one takes its place.
    pub(super) fn remove(&mut self, id: &str) -> bool {
        let Some(place) = self.by_id.remove(id) else { return false };
        let gone = self.records.swap_remove(place);
        self.live_bytes = self.live_bytes.saturating_sub(gone.bytes(self.dimensions));
        let last = self.records.len().saturating_mul(self.dimensions);
        let at = place.saturating_mul(self.dimensions);
        if at < last {
            let end = last.saturating_add(self.dimensions).min(self.vectors.len());
            self.vectors.copy_within(last..end, at);
        }
        self.vectors.truncate(last);
        if let Some(moved) = self.records.get(place) {
            self.by_id.insert(moved.id.clone(), place);
        }
        true
    }

    /// The `k` nearest to a vector of length one that a filter lets through, the nearest first; of
    /// those that are as near, the first by the bytes of its id.
    pub(super) fn nearest(&self, unit: &[f32], k: usize, filter: Option<&Filter>) -> Vec<Hit<'_>> {
        let mut best: BinaryHeap<Hit<'_>> = BinaryHeap::with_capacity(k.min(self.len()));
        if self.dimensions == 0 {
            return Vec::new();
        }
        for (record, vector) in self.records.iter().zip(self.vectors.chunks_exact(self.dimensions))
        {
            if filter.is_some_and(|filter| !filter.matches(record.metadata.item())) {
                continue;
            }
            let hit = Hit { score: dot(unit, vector), record };
            if best.len() < k {
                best.push(hit);
            } else if let Some(mut worst) = best.peek_mut().filter(|worst| hit < **worst) {
                *worst = hit;
            }
        }
        best.into_sorted_vec()
    }
}

/// The nearer is the less.
impl Ord for Hit<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let nearer = other.score.total_cmp(&self.score);
        nearer.then_with(|| self.record.id.cmp(&other.record.id))
    }
}

impl PartialOrd for Hit<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Hit<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Hit<'_> {}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum::<f32>();
    for (a, b) in a.zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// The vector of length one in the same direction; `None` where one of its numbers is not finite
/// or out of the range of 32 bits, or all are zero: then there is no direction.
pub(super) fn unit(numbers: impl Iterator<Item = f64> + Clone) -> Option<Vec<f32>> {
    let is_fine = |number: f64| number.is_finite() && number.abs() <= f64::from(f32::MAX);
    if !numbers.clone().all(is_fine) {
        return None;
    }
    // The least that is not zero is squared to less than the least there is: it is scaled before.
    let largest = numbers.clone().fold(0.0_f64, |largest, number| largest.max(number.abs()));
    if largest == 0.0 {
        return None;
    }
    let length = numbers.clone().map(|number| (number / largest).powi(2)).sum::<f64>().sqrt();
    let scaled = numbers.map(|number| number / largest / length);
    Some(scaled.map(narrow).collect())
}

/// A number of at most one loses only digits.
#[expect(clippy::cast_possible_truncation, clippy::as_conversions, reason = "rounded on purpose")]
fn narrow(number: f64) -> f32 {
    number as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn put(all: &mut Collection, id: &str, numbers: &[f64]) {
        let record =
            Record { id: id.into(), metadata: Canonical::map(Vec::new()), label: Label::PUBLIC };
        all.put(record, &unit(numbers.iter().copied()).unwrap());
    }

    fn ids(all: &Collection, numbers: &[f64], k: usize) -> Vec<String> {
        let unit = unit(numbers.iter().copied()).unwrap();
        all.nearest(&unit, k, None).iter().map(|hit| hit.record.id.to_string()).collect()
    }

    #[test]
    fn vector_without_direction_is_refused() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 3.5e38, -3.5e38] {
            assert!(unit([1.0, bad].into_iter()).is_none(), "{bad}");
        }
        for zero in [0.0, -0.0] {
            assert!(unit([zero, zero].into_iter()).is_none());
        }
        for tiny in [f64::MIN_POSITIVE, 5e-324, 1e-45, 3e38] {
            let unit = unit([tiny, 0.0].into_iter()).unwrap();
            assert!((unit[0] - 1.0).abs() < 1e-6 && unit[1] == 0.0, "{tiny}");
        }
    }

    #[test]
    fn ties_are_in_the_order_of_their_ids() {
        let mut all = Collection::default();
        for id in ["c", "a", "d", "b"] {
            put(&mut all, id, &[1.0, 0.0]);
        }
        put(&mut all, "z", &[1.0, 0.1]);
        assert_eq!(ids(&all, &[2.0, 0.0], 3), ["a", "b", "c"]);
        assert_eq!(ids(&all, &[2.0, 0.0], 9), ["a", "b", "c", "d", "z"]);
        assert!(ids(&all, &[2.0, 0.0], 0).is_empty());
    }

    proptest! {
        /// As a plain list that is sorted, whatever was put, replaced and removed before.
        #[test]
        fn the_nearest_are_those_of_a_plain_list(
            steps in prop::collection::vec((0_u8..12, prop::option::of(prop::array::uniform3(-4_i8..5))), 0..60),
            asked in prop::array::uniform3(1_i8..5), k in 0_usize..15,
        ) {
            let mut all = Collection::default();
            let mut plain: Vec<(String, Vec<f32>)> = Vec::new();
            for (id, numbers) in steps {
                let id = id.to_string();
                let numbers = numbers.map(|all| all.map(f64::from));
                let Some(numbers) = numbers.filter(|all| all.iter().any(|n| *n != 0.0)) else {
                    prop_assert_eq!(all.remove(&id), plain.iter().any(|(other, _)| *other == id));
                    plain.retain(|(other, _)| *other != id);
                    continue;
                };
                put(&mut all, &id, &numbers);
                plain.retain(|(other, _)| *other != id);
                plain.push((id, unit(numbers.into_iter()).unwrap()));
            }
            let wanted = unit(asked.into_iter().map(f64::from)).unwrap();
            plain.sort_by(|a, b| {
                dot(&wanted, &b.1).total_cmp(&dot(&wanted, &a.1)).then_with(|| a.0.cmp(&b.0))
            });
            let plain: Vec<String> = plain.into_iter().take(k).map(|(id, _)| id).collect();
            prop_assert_eq!(ids(&all, &asked.map(f64::from), k), plain);
        }
    }
}
