//! Further conditions of a token.

use alloc::vec::Vec;

use super::TokenBody;
use crate::{
    cbor::{Canonical, Encoder, Item},
    time::UnixMillis,
};

/// The number of the caveat `renew_by`.
const RENEW_BY: u64 = 1;

impl TokenBody {
    /// The caveat of a root that it is as revoked from that time on, unless another token that
    /// [renews](Self::renews) it is on record before. It lies between the token's own beginning
    /// and end.
    #[must_use]
    pub fn renew_by_caveat(time: UnixMillis) -> Canonical {
        let mut encoder = Encoder::new();
        encoder.array(2);
        encoder.uint(RENEW_BY);
        encoder.uint(time.get());
        Canonical::from_encoder(encoder)
    }

    /// By when it must be renewed, as its issuer said; what was renewed since is not asked.
    #[must_use]
    pub fn renew_by(&self) -> Option<UnixMillis> {
        self.caveats.iter().find_map(renew_by)
    }

    /// Whether each caveat is one that is known, and none stands twice.
    pub(super) fn knows_its_caveats(&self) -> bool {
        match &self.caveats[..] {
            [] => true,
            [caveat] => renew_by(caveat).is_some(),
            _ => false,
        }
    }
}

fn renew_by(caveat: &Canonical) -> Option<UnixMillis> {
    let parts: Vec<Option<u64>> = caveat.item().elements().map(Item::as_uint).collect();
    match parts[..] {
        [Some(RENEW_BY), Some(time)] => Some(UnixMillis::new(time)),
        _ => None,
    }
}
