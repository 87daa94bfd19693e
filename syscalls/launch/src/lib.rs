//! Starts a program confined, holds it to bounds, and ends all of it.
//!
//! Namespaces, Landlock and seccomp hold the process that asks for them, so they must be asked for
//! by one that is about to become the program. A host with threads can't safely do that between
//! fork and exec; so a small helper with a single thread does: the binary `syscap-launch`, or any
//! program whose `main` begins with [`entry`]. The plan goes to it as bytes in a memory file, what
//! it names as open descriptors.
//!
//! ```text
//! host -- Launcher --> helper --> pid 1 of a process namespace --> the program
//!   reads the output     watches clock, processor time,              ends: all that
//!   up to its bound      processes, and the host                     is left is killed
//! ```
//!
//! If any of them ends (the host, the supervisor, pid 1), all behind it ends.
#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux confines"))]

mod plan;
mod report;

#[cfg(target_os = "linux")]
mod carry;
#[cfg(target_os = "linux")]
mod inherited;
#[cfg(target_os = "linux")]
mod launcher;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
mod launcher;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(target_os = "linux")]
pub use crate::inherited::{give, keep_no_others, keep_none_on_exec};
pub use crate::launcher::{Launcher, Lease, Orders, Running, Said, Serving, Stream, entry};
pub use crate::plan::{Access, DEVICES, DOOR, Granted, Level, Limits, Network, Plan, SYSTEM};
pub use crate::report::{Achieved, Bound, Ended, LaunchError, Report};

/// The document's example compiles.
#[cfg(all(doctest, target_os = "linux"))]
#[doc = include_str!("../../../docs/launch.md")]
struct Document;
