//! For tests of homes.

mod again;
mod alone;
mod last_label;
mod records;
mod scratch;
mod verdict;

pub use again::by_cap_std;
pub use alone::alone;
pub use last_label::last_label;
pub use records::records;
pub use scratch::{Scratch, scratch, scratch_in};
pub use verdict::verdict;
