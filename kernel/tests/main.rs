//! The kernel, driven by hand over a store in memory: every event, refusal, crash and race.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "tests"
)]

mod approvals;
mod bounds;
mod calls;
mod causes;
mod families;
mod fields;
mod gone_keys;
mod guards;
mod kin;
mod lists;
mod lookups;
mod obligations;
mod properties;
mod recovery;
mod redact;
mod refusals;
mod renewal;
mod roles;
mod room;
mod sizes;
mod state;
