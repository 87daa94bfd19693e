//! What keys have signed, and what was replaced by it.

use alloc::collections::BTreeMap;

use syscap_format::{Role, Seq};

/// What a key has signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signer {
    /// The counter of its last control event; 0 before the first.
    pub(crate) counter: u64,
    /// The last record that it signed, be it an event or a token's; genesis before the first.
    pub(crate) last: Seq,
}

/// The last records that put something whole in the place of what was there; genesis before the
/// first. Who signs the next one has seen them: what others have changed is not undone unseen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replaced {
    pub(crate) keys: BTreeMap<Role, Seq>,
    pub(crate) policy: Seq,
    pub(crate) tools: Seq,
}

impl Replaced {
    pub(crate) fn keys_of(&self, role: Role) -> Seq {
        self.keys.get(&role).copied().unwrap_or_default()
    }
}
