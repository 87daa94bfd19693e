//! For tests of homes.

mod again;
mod alone;
mod cargo;
mod home;
mod last_label;
mod records;
mod scratch;
pub mod server;
mod still;
mod verdict;

pub use again::by_cap_std;
pub use alone::alone;
pub use cargo::{cargo, in_this_profile};
pub use home::{ample, end, new_home};
pub use last_label::last_label;
pub use records::records;
pub use scratch::{Scratch, scratch, scratch_in};
pub use still::Still;
pub use verdict::verdict;
