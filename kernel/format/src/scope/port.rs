//! Ranges of ports.

use alloc::vec::Vec;
use core::fmt;

use super::ScopeError;
use super::parts::{self, Parts};
use crate::cbor::{DecodeError, DecodeFault, Decoder, Encoder};

/// The ports from a first to a last, both included; never port 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Checks the bounds.
    ///
    /// # Errors
    /// [`ScopeError::PortRange`].
    pub const fn new(first: u16, last: u16) -> Result<Self, ScopeError> {
        let fine = 1 <= first && first <= last;
        if fine { Ok(Self { first, last }) } else { Err(ScopeError::PortRange) }
    }

    /// The first port.
    pub const fn first(self) -> u16 {
        self.first
    }

    /// The last port.
    pub const fn last(self) -> u16 {
        self.last
    }

    fn meet(self, other: Self) -> Option<Self> {
        Self::new(self.first.max(other.first), self.last.min(other.last)).ok()
    }
}

impl fmt::Display for PortRange {
    /// `443` or `8000-8080`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

/// Ranges of ports, sorted, with at least one port between any two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports(Vec<PortRange>);

impl Ports {
    /// Most ranges: services in use are far fewer.
    pub const RANGES_MAX: usize = 256;

    /// The ports of all `ranges`.
    ///
    /// # Errors
    /// [`ScopeError::Empty`] or [`ScopeError::TooMany`].
    pub fn new<I>(ranges: I) -> Result<Self, ScopeError>
    where
        I: IntoIterator<Item = PortRange>,
    {
        Self::from_parts(ranges.into_iter().collect())
    }

    /// The ranges, in ascending order.
    pub fn ranges(&self) -> &[PortRange] {
        &self.0
    }

    /// True if a range contains `port`.
    #[must_use]
    pub fn permits(&self, port: u16) -> bool {
        self.has(port, port)
    }

    /// There is a port between any two ranges, so a range is covered by one of them or not at
    /// all.
    pub(super) fn leq(&self, other: &Self) -> bool {
        self.0.iter().all(|range| other.has(range.first, range.last))
    }

    pub(super) fn meet(&self, other: &Self) -> Option<Self> {
        let with_other = |a: &PortRange| {
            let a = *a;
            other.0.iter().filter_map(move |b| a.meet(*b))
        };
        Self::unlimited(self.0.iter().flat_map(with_other).collect())
    }

    fn has(&self, first: u16, last: u16) -> bool {
        let end = self.0.partition_point(|range| range.first <= first);
        let found = end.checked_sub(1).and_then(|at| self.0.get(at));
        found.is_some_and(|range| last <= range.last)
    }
}

impl Parts for Ports {
    type Part = PortRange;
    const PARTS_MAX: usize = Self::RANGES_MAX;

    fn normalise(mut ranges: Vec<PortRange>) -> Vec<PortRange> {
        ranges.sort();
        let mut joined: Vec<PortRange> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.first <= last.last.saturating_add(1) => {
                    last.last = last.last.max(range.last);
                }
                _ => joined.push(range),
            }
        }
        joined
    }

    fn from_normal(ranges: Vec<PortRange>) -> Self {
        Self(ranges)
    }

    fn parts(&self) -> &[PortRange] {
        &self.0
    }

    fn write(range: &PortRange, encoder: &mut Encoder) {
        encoder.array(2);
        encoder.uint(u64::from(range.first));
        encoder.uint(u64::from(range.last));
    }

    fn read(decoder: &mut Decoder<'_>) -> Result<PortRange, DecodeError> {
        let refused = decoder.fault(DecodeFault::Value);
        parts::fixed(decoder, 2)?;
        let first = u16::try_from(decoder.uint()?).map_err(|_| refused)?;
        let last = u16::try_from(decoder.uint()?).map_err(|_| refused)?;
        PortRange::new(first, last).map_err(|_| refused)
    }
}
