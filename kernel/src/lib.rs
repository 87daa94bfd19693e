//! The reference monitor of syscap: every tool call of an agent goes through here, or does not
//! happen.
//!
//! Sans-io: [`Kernel`] is a deterministic fold. The host passes events, clock readings
//! and random salts in, and carries effects out; this crate has no I/O, no clock, no randomness
//! and no `unsafe`, and builds without the standard library.
//!
//! What goes in and out, and every name, is declared in `syscap-format`.
//!
//! `examples/drive.rs` drives it by hand, from an empty home to a call and what is refused.
//!
//! Reading order: [`Tool`], [`Registry`], [`Resolve`], [`Probing`], [`PolicyEngine`], [`History`]
//! (what is asked), [`Kernel`] (what happens), [`Store`] (what lasts), [`Halt`] (when it stops).
#![no_std]
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions)]

extern crate alloc;

mod args;
mod call;
mod context;
mod decide;
mod diagnostics;
mod fetch;
mod halt;
mod history;
mod inspect;
mod kernel;
mod lookups;
mod meter;
mod pieces;
mod policy;
mod ports;
mod probe;
mod registry;
mod requests;
mod resolve;
mod state;
mod store;
mod ticket;
mod time;
mod tool;

pub use fetch::{Fetched, Fetching};
pub use halt::{Foreign, Forgery, Halt};
pub use history::{History, Past, Told};
pub use inspect::{Condition, Inspect, Inspected, Inspecting};
pub use kernel::{
    AccountView, Ack, Anchor, AskStanding, AskView, Effect, Event, Kernel, Lost, Measured, NewHome,
    NotAsked, Parts, Proposal, Redecided, SessionView, SetView, Submit, Tally, Ticket, TokenView,
};
pub use policy::{Advice, Level, PolicyEngine, Question, object_of};
pub use ports::{Clock, Entropy, NoEntropy};
pub use probe::{Broken, Finding, Probed, Probing};
pub use registry::{Registry, RegistryError, ToolsDelta};
pub use resolve::{Found, Resolve, Resolving};
pub use store::{
    Ancestor, Batch, Link, Next, Room, Settled, Store, StoreError, Stored, record_at, vault_entry,
};
pub use time::{Reading, Skew};
pub use tool::{
    Demand, Demands, Job, Live, Meter, OverHold, Permit, Plan, Ran, ReadPermit, ReadPlan, ReadTool,
    Request, Tool,
};
