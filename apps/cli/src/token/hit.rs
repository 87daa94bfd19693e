//! How many tokens a revocation hit.

use std::{collections::BTreeSet, path::Path};

use syscap::format::{Revocation, RevocationList, Revoked, TokenBody, TokenId};
use syscap::kernel::Kernel;

use crate::runtime;

/// Tokens that a revocation ended, whether or not another had ended them before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) tokens: u64,
    /// The tokens that have not expired.
    pub(super) unexpired: u64,
}

/// The target of a revocation.
pub(super) enum Named<'a> {
    One(&'a Revocation),
    List(&'a RevocationList),
}

impl Named<'_> {
    /// True if a token is named itself, and all tokens derived from it end with it.
    fn is(&self, id: TokenId, body: &TokenBody) -> bool {
        match self {
            Self::List(list) => list.tokens.contains(&id),
            Self::One(revocation) => match revocation.revoked() {
                Some(Revoked::Subtree(token)) => id == token,
                Some(Revoked::Children(token)) => body.parent == Some(token),
                Some(Revoked::Epoch(least)) => body.parent.is_none() && body.epoch < least,
                Some(Revoked::Key(key)) => body.issuer == key || body.holder == Some(key),
                None => false,
            },
        }
    }
}

/// Counts them in the log as it is now: what was issued since is not meant by an epoch or a key,
/// and nothing can be derived from what has ended. `None` where the log can't be looked at: it was
/// revoked all the same.
pub(super) fn count(home: &Path, named: &Named<'_>) -> Option<Hit> {
    let log = runtime::look(home).ok()?;
    Some(counted(log.kernel(), named))
}

fn counted(kernel: &Kernel, named: &Named<'_>) -> Hit {
    // They stand in the order of their records: what was derived stands behind what it is of.
    let mut hit = BTreeSet::new();
    let mut unexpired = 0_u64;
    for token in kernel.tokens() {
        let below = token.body.parent.is_some_and(|parent| hit.contains(&parent));
        if below || named.is(token.id, token.body) {
            hit.insert(token.id);
            unexpired = unexpired.saturating_add(u64::from(token.body.expires > kernel.now()));
        }
    }
    Hit { tokens: u64::try_from(hit.len()).unwrap_or(u64::MAX), unexpired }
}
