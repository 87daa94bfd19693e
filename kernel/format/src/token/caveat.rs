//! Further conditions of a token.

use alloc::vec::Vec;

use super::TokenBody;
use crate::cbor::{Canonical, Encoder, Item};
use crate::time::UnixMillis;

/// The number of the caveat `renew_by`.
const RENEW_BY: u64 = 1;
/// The number of the caveat `fresh_within`.
const FRESH_WITHIN: u64 = 2;

impl TokenBody {
    /// The caveat of a root that it is as revoked from that time on, unless another token that
    /// [renews](Self::renews) it is on record before. It lies between the token's own beginning
    /// and end.
    pub fn renew_by_caveat(time: UnixMillis) -> Canonical {
        caveat(RENEW_BY, time.get())
    }

    /// The caveat of a root that it is valid only while the home has a list of revocations that is
    /// no older than so many milliseconds.
    pub fn fresh_within_caveat(ms: u64) -> Canonical {
        caveat(FRESH_WITHIN, ms)
    }

    /// By when it must be renewed, as its issuer said; what was renewed since is not asked.
    pub fn renew_by(&self) -> Option<UnixMillis> {
        self.caveat(RENEW_BY).map(UnixMillis::new)
    }

    /// How old the home's list of revocations may be, in milliseconds.
    pub fn fresh_within(&self) -> Option<u64> {
        self.caveat(FRESH_WITHIN)
    }

    fn caveat(&self, number: u64) -> Option<u64> {
        let known = self.caveats.iter().filter_map(parts);
        known.filter(|(found, _)| *found == number).map(|(_, value)| value).next()
    }

    /// True if each caveat is known, in the order of their numbers, and none stands twice.
    pub(super) fn knows_its_caveats(&self) -> bool {
        let numbers: Vec<u64> = self.caveats.iter().filter_map(parts).map(|(n, _)| n).collect();
        numbers.len() == self.caveats.len() && numbers.is_sorted_by(|one, next| one < next)
    }
}

fn caveat(number: u64, value: u64) -> Canonical {
    let mut encoder = Encoder::new();
    encoder.array(2);
    encoder.uint(number);
    encoder.uint(value);
    Canonical::from_encoder(encoder)
}

/// Number and value of a caveat that is known.
fn parts(caveat: &Canonical) -> Option<(u64, u64)> {
    let parts: Vec<Option<u64>> = caveat.item().elements().map(Item::as_uint).collect();
    match parts[..] {
        [Some(number @ (RENEW_BY | FRESH_WITHIN)), Some(value)] => Some((number, value)),
        _ => None,
    }
}
