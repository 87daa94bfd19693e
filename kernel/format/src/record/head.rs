//! The end of a log.

use crate::id::{Leaf, Seq};

/// The end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The last record.
    pub seq: Seq,
    /// Its leaf.
    pub leaf: Leaf,
}
