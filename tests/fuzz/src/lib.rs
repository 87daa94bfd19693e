//! What the fuzz targets do with their bytes: plain functions that panic where something does not
//! hold. The root's `tests/vectors.rs` calls them with every seed and finding, on any compiler.

mod codec;
mod control;
mod envelope;
mod json;
mod policy;
mod record;
pub mod token;

use kernel_support::{asking, history::sound};
pub use kernel_support::{
    history::{run as events, stream},
    sim,
};

#[cfg(fuzzing)]
pub use syscap::fuzzing::frame;

pub use self::{
    codec::codec, control::control, envelope::envelope, json::json, policy::policy, record::record,
    token::token,
};

/// A target's body.
pub type Target = fn(&[u8]);

/// The targets of what is public, by name. The frames of the socket are tried in their own crate.
pub const TARGETS: [(&str, Target); 8] = [
    ("codec", codec),
    ("control", control),
    ("envelope", envelope),
    ("events", events),
    ("json", json),
    ("policy", policy),
    ("record", record),
    ("token", token),
];
