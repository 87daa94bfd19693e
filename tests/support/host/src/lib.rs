//! For tests of homes.

mod again;
mod last_label;
mod records;
mod verdict;

pub use again::by_cap_std;
pub use last_label::last_label;
pub use records::records;
pub use verdict::verdict;
