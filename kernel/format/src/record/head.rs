//! Where a log ends.

use crate::id::{Leaf, Seq};

/// Where a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The last record.
    pub seq: Seq,
    /// Its leaf.
    pub leaf: Leaf,
}
