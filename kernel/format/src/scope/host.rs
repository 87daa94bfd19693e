//! Hosts and the patterns that cover them.

use alloc::{sync::Arc, vec::Vec};
use core::{fmt, iter};

use super::{ScopeError, parts::Parts, shown::Shown};
use crate::cbor::{DecodeError, DecodeFault, Decoder, Encoder};

/// A host's name: lower-case ASCII labels as RFC 1123 has them, joined by dots, none at the end.
///
/// Names of other scripts stand as A-labels (`xn--..`). An IP address is no host, in any of the
/// forms that resolvers read as one: the last label must not be a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(Arc<str>);

impl Host {
    /// Longest name, in bytes: what DNS can carry.
    pub const BYTES_MAX: usize = 253;
    /// Longest label, in bytes: what DNS can carry.
    pub const LABEL_BYTES_MAX: usize = 63;

    /// Checks the form.
    ///
    /// # Errors
    /// [`ScopeError::Host`].
    pub fn new(text: &str) -> Result<Self, ScopeError> {
        let last = text.rsplit('.').next().unwrap_or_default();
        let fine =
            text.len() <= Self::BYTES_MAX && text.split('.').all(is_label) && !is_number(last);
        if fine { Ok(Self(Arc::from(text))) } else { Err(ScopeError::Host) }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Shown(&self.0), f)
    }
}

/// One host, or all hosts strictly below one. The order is that of the text form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPattern {
    reach: Reach,
    host: Host,
}

/// `*` sorts before all that a host can begin with, so `Below` stands first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Reach {
    Below,
    Exact,
}

impl HostPattern {
    /// Longest suffix, in bytes: it leaves room for more hosts directly below than a scope has
    /// patterns. So no list of hosts means the same as a suffix, and comparison stays exact.
    pub const SUFFIX_BYTES_MAX: usize = 249;

    /// The host alone.
    pub const fn exact(host: Host) -> Self {
        Self { reach: Reach::Exact, host }
    }

    /// All hosts strictly below `suffix`, at any depth, but not `suffix` itself.
    ///
    /// # Errors
    /// [`ScopeError::SuffixLength`].
    pub fn below(suffix: Host) -> Result<Self, ScopeError> {
        let fine = suffix.0.len() <= Self::SUFFIX_BYTES_MAX;
        let pattern = Self { reach: Reach::Below, host: suffix };
        if fine { Ok(pattern) } else { Err(ScopeError::SuffixLength) }
    }

    /// Reads `example.com` or `*.example.com`.
    ///
    /// # Errors
    /// [`ScopeError::Host`] or [`ScopeError::SuffixLength`].
    pub fn parse(text: &str) -> Result<Self, ScopeError> {
        match text.strip_prefix(Self::WILD) {
            Some(suffix) => Self::below(Host::new(suffix)?),
            None => Host::new(text).map(Self::exact),
        }
    }

    /// The prefix of a suffix pattern.
    const WILD: &str = "*.";

    const fn wild(&self) -> &'static str {
        match self.reach {
            Reach::Below => Self::WILD,
            Reach::Exact => "",
        }
    }

    fn key(&self) -> (Reach, &str) {
        (self.reach, &self.host.0)
    }
}

impl fmt::Display for HostPattern {
    /// `example.com` or `*.example.com`, cut where it is long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.wild(), self.host)
    }
}

/// A set of patterns, sorted, none within another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts(Vec<HostPattern>);

impl Hosts {
    /// Most patterns in a set: a list that grows beyond belongs to policy.
    pub const PATTERNS_MAX: usize = 1024;

    /// The hosts that any of `patterns` covers.
    ///
    /// # Errors
    /// [`ScopeError::Empty`] or [`ScopeError::TooMany`].
    pub fn new<I>(patterns: I) -> Result<Self, ScopeError>
    where
        I: IntoIterator<Item = HostPattern>,
    {
        Self::from_parts(patterns.into_iter().collect())
    }

    /// The patterns, in ascending order.
    pub fn patterns(&self) -> &[HostPattern] {
        &self.0
    }

    /// True if a pattern covers `host`.
    #[must_use]
    pub fn permits(&self, host: &Host) -> bool {
        covers(&self.0, Reach::Exact, host)
    }

    pub(super) fn leq(&self, other: &Self) -> bool {
        self.0.iter().all(|pattern| covers(&other.0, pattern.reach, &pattern.host))
    }

    /// Two patterns that overlap lie one within the other, so the inner ones are the meet.
    pub(super) fn meet(&self, other: &Self) -> Option<Self> {
        let inner = |of: &'_ Self, within: &Self| -> Vec<HostPattern> {
            let covered = |p: &&HostPattern| covers(&within.0, p.reach, &p.host);
            of.0.iter().filter(covered).cloned().collect()
        };
        let mut patterns = inner(self, other);
        patterns.extend(inner(other, self));
        Self::unlimited(patterns)
    }
}

impl Parts for Hosts {
    type Part = HostPattern;
    const PARTS_MAX: usize = Self::PATTERNS_MAX;

    fn normalise(mut patterns: Vec<HostPattern>) -> Vec<HostPattern> {
        patterns.sort();
        patterns.dedup();
        let outer = |pattern: &&HostPattern| !within_suffix(&patterns, &pattern.host);
        patterns.iter().filter(outer).cloned().collect()
    }

    fn from_normal(patterns: Vec<HostPattern>) -> Self {
        Self(patterns)
    }

    fn parts(&self) -> &[HostPattern] {
        &self.0
    }

    fn write(pattern: &HostPattern, encoder: &mut Encoder) {
        encoder.text(&alloc::format!("{}{}", pattern.wild(), pattern.host.0));
    }

    fn read(decoder: &mut Decoder<'_>) -> Result<HostPattern, DecodeError> {
        let refused = decoder.fault(DecodeFault::Value);
        HostPattern::parse(decoder.text()?).map_err(|_| refused)
    }
}

/// True if one of the sorted patterns covers everything that a pattern of this reach and host does.
fn covers(patterns: &[HostPattern], reach: Reach, host: &Host) -> bool {
    has(patterns, reach, &host.0) || within_suffix(patterns, host)
}

/// True if a suffix strictly above `host` stands in the sorted patterns.
fn within_suffix(patterns: &[HostPattern], host: &Host) -> bool {
    let mut above = iter::successors(parent_of(&host.0), |host| parent_of(host));
    above.any(|suffix| has(patterns, Reach::Below, suffix))
}

fn has(patterns: &[HostPattern], reach: Reach, host: &str) -> bool {
    patterns.binary_search_by(|pattern| pattern.key().cmp(&(reach, host))).is_ok()
}

fn parent_of(host: &str) -> Option<&str> {
    host.split_once('.').map(|(_, parent)| parent)
}

fn is_label(label: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=Host::LABEL_BYTES_MAX).contains(&label.len())
        && label.bytes().all(allowed)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// True for a label that the URL standard and C resolvers take for the end of an IPv4 address.
fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_hexdigit()),
        None => label.bytes().all(|b| b.is_ascii_digit()),
    }
}
