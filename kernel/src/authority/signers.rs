//! The signatures of each key, and the last replacements.

use alloc::collections::BTreeMap;

use syscap_format::{Role, Seq};

/// The signatures of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signer {
    /// The counter of its last control event; 0 before the first.
    pub(crate) counter: u64,
    /// The last record that it signed, be it an event or a token's; genesis before the first.
    pub(crate) last: Seq,
}

/// The last records that put something whole in the place of what was there; genesis before the
/// first. A signer of the next one has seen them: no signer undoes a change unseen.
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
