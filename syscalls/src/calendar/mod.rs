//! `calendar.find`: the events of iCalendar files (RFC 5545), those that recur too.
//!
//! The files are data of strangers: nothing that stands in them is followed, opened or run, no time
//! zone is looked up on disk, and all work is counted before it is done. An ambiguous or unreadable
//! part is left out and named, with the reason, and never guessed.

mod event;
mod find;
mod found;
mod lines;
mod moment;
mod range;
mod recur;
mod rule;
mod series;
mod skip;
mod zones;

pub use find::{EVENTS_FOUND_MAX, FILE_BYTES_MAX, FILES_MAX};
pub use range::RANGE_DAYS_MAX;

use std::sync::Arc;

use syscap_kernel::Registry;

use crate::beneath::Opener;
use crate::calls::{self, NotAdded};

/// Adds the tool over an open base.
pub fn add_to(registry: &mut Registry, base: &Arc<dyn Opener>) -> Result<(), NotAdded> {
    calls::add_read::<find::FindEvents>(registry, base)
}
