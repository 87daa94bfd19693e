//! How a store is opened.

use syscap_format::Durability;

/// Below this much free room, in bytes, no new call is admitted: four times the ballast, so
/// that calls in flight settle long before the ballast is needed.
pub const ROOM_BYTES_MIN: u64 = 16 << 20;
/// So much more is to be free before the ballast is taken up again, in bytes: or the next records
/// would leave too little for new calls at once.
pub const ROOM_BYTES_SPARE: u64 = 1 << 20;
/// How a store is opened.
#[must_use]
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub(super) durability: Durability,
    pub(super) room_bytes_min: u64,
    pub(super) pages: Pages,
}

/// How large the database may grow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pages {
    Unlimited,
    AtMost(u32),
}

impl Settings {
    /// The defaults for a durability. [`Durability::Memory`] is taken as
    /// [`Durability::Process`].
    pub const fn new(durability: Durability) -> Self {
        Self { durability, room_bytes_min: ROOM_BYTES_MIN, pages: Pages::Unlimited }
    }

    /// Replaces [`ROOM_BYTES_MIN`].
    pub const fn room_bytes_min(mut self, bytes: u64) -> Self {
        self.room_bytes_min = bytes;
        self
    }

    /// Lets the database have that many pages and no more, as if the disk were full then. The
    /// ballast counts: when it is given up there are [`super::BALLAST_BYTES`] more.
    pub const fn pages_max(mut self, pages: u32) -> Self {
        self.pages = Pages::AtMost(pages);
        self
    }
}
