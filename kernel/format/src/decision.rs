//! Decisions: a policy's verdict on a call.

use alloc::vec::Vec;

use crate::cbor::Encoder;
use crate::field::{code, shape};
use crate::hash::Domain;
use crate::id::{ConstraintId, PolicyHash};
use crate::limits::{MATCHES_MAX, OBLIGATION_NAME_BYTES_MAX, OBLIGATIONS_MAX};
use crate::obligation::Obligation;

code! {
    /// A policy's verdict on a call, from the mildest to the strictest.
    pub enum Verdict {
        /// Run it.
        Allow = 0 "allow",
        /// Run it with less, and say what was taken away.
        Degrade = 1 "degrade",
        /// A person must approve it first.
        Ask = 2 "ask",
        /// Refuse it now; it may be sent again on a condition.
        Defer = 3 "defer",
        /// Refuse it.
        Deny = 4 "deny",
    }
}

shape! {
    /// A verdict with what led to it.
    pub struct Decision {
        /// The verdict.
        1 => pub verdict: Verdict,
        /// The constraint that decided.
        2 => pub deciding: Option<ConstraintId>,
        /// The first constraints that matched, at most [`MATCHES_MAX`].
        3 => pub matches: Vec<ConstraintId>,
        /// How many matched in all.
        4 => pub match_count: u64,
        /// [`matches_digest`] of all that matched, where there are more than are listed.
        5 => pub matches_digest: Option<[u8; 32]>,
        /// The obligations beside the verdict, united.
        6 => pub obligations: Vec<Obligation>,
    }
}

/// Digest of the constraints that matched: of the CBOR array of their places in the document,
/// counted from 0 in the order of their ids.
#[must_use]
pub fn matches_digest(places: &[u16]) -> [u8; 32] {
    let mut encoder = Encoder::with_capacity(places.len().saturating_mul(3).saturating_add(3));
    encoder.array(places.len());
    places.iter().for_each(|place| encoder.uint(u64::from(*place)));
    Domain::MATCHES.hash(&[&encoder.into_bytes()])
}

impl Decision {
    /// A verdict that no constraint led to.
    pub const fn plain(verdict: Verdict) -> Self {
        Self {
            verdict,
            deciding: None,
            matches: Vec::new(),
            match_count: 0,
            matches_digest: None,
            obligations: Vec::new(),
        }
    }

    /// True if it asks for a person of a level.
    #[must_use]
    pub fn asks_for_a_level(&self) -> bool {
        self.obligations.iter().any(|asked| asked.kind.asks_for_a_level())
    }

    /// True if it fits into a record and its parts agree: a verifier refuses any other.
    pub fn is_sound(&self) -> bool {
        let named = self.obligations.iter().filter_map(|asked| asked.name.as_ref());
        let listed = u64::try_from(self.matches.len()).unwrap_or(u64::MAX);
        let counted = self.match_count >= listed
            && self.matches_digest.is_some() == (self.match_count > listed);
        let taken = self.obligations.iter().any(|asked| asked.kind.takes_away());
        let united = self.obligations.is_sorted_by(|one, next| {
            (one.kind.code(), &one.name) < (next.kind.code(), &next.name)
        });
        self.matches.len() <= MATCHES_MAX
            && self.matches.is_sorted_by(|one, next| one < next)
            && counted
            && united
            && (taken || self.verdict != Verdict::Degrade)
            && !(taken && self.verdict == Verdict::Allow)
            && self.obligations.len() <= OBLIGATIONS_MAX
            && named.into_iter().all(|name| name.len() <= OBLIGATION_NAME_BYTES_MAX)
    }
}

shape! {
    /// The decision of a shadow policy on a call. It is recorded and changes nothing.
    pub struct Shadow {
        /// The policy.
        1 => pub policy: PolicyHash,
        /// The decision.
        2 => pub decision: Decision,
    }
}
