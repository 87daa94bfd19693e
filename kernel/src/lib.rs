//! The reference monitor of syscap: every tool call of an agent goes through here, or does not
//! happen.
//!
//! Sans-io: [`Kernel`] is a deterministic fold. The host passes events, clock readings
//! and random salts in, and carries effects out; this crate has no I/O, no clock, no randomness
//! and no `unsafe`, and builds without the standard library.
//!
//! All inputs, outputs and names are declared in `syscap-format`.
//!
//! `examples/drive.rs` drives it by hand, from an empty home to a call and what is refused.
//!
//! | to read | where |
//! |---|---|
//! | what goes in and comes out: [`Event`], [`Effect`], [`Kernel`] | `events`, `machine` |
//! | the way of a call: [`Submit`] to [`Permit`] to answer | `call`, then `run` |
//! | what a tool is, and what lets it run: [`Tool`], [`Plan`], [`Permit`] | `tool`, `registry` |
//! | what a policy is asked: [`Question`], [`PolicyEngine`], [`History`] | `policy`, `history` |
//! | tokens, budgets, the operator's orders | `authority` |
//! | calls that wait for a person | `approvals` |
//! | what the log says, folded | `state` |
//! | genesis, boot, replay, probes, shutdown | `lifecycle` |
//! | what lasts: [`Store`]; when the kernel stops: [`Halt`] | `store`, `vault`, `halt` |
#![no_std]
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions)]

extern crate alloc;

mod approvals;
mod authority;
mod call;
mod demands;
mod events;
mod halt;
mod history;
mod lifecycle;
mod lookups;
mod machine;
mod meter;
mod policy;
mod ports;
mod registry;
mod run;
mod state;
mod store;
mod time;
mod tool;
mod vault;

pub use approvals::conditions::{Condition, Inspect, Inspected, Inspecting};
pub use approvals::people::AskStanding;
pub use approvals::record::{AskView, SetView};
pub use approvals::sets::location_of;
pub use authority::{credits::AccountView, tokens::TokenView};
pub use call::fetch::{Fetched, Fetching};
pub use call::links::{Found, Resolve, Resolving};
pub use demands::DistinctDemands;
pub use events::{Ack, Effect, Event, Lost, Measured, Proposal, SessionView, Submit};
pub use halt::{Foreign, Forgery, Halt};
pub use history::{History, Past, Told};
pub use lifecycle::boot::{Anchor, NewHome, Parts};
pub use lifecycle::probe::{Probed, Probing};
pub use lifecycle::redecide::{NotAsked, Redecided, Tally};
pub use machine::Kernel;
pub use policy::{Advice, Level, PolicyEngine, Question, object_of};
pub use ports::{Clock, Entropy, NoEntropy};
pub use registry::{Registry, RegistryError, ToolsDelta};
pub use store::{
    Ancestor, Attempt, Batch, Link, Next, Room, Settled, Store, StoreError, Stored, WithRows,
    record_at,
};
pub use time::{Reading, Skew};
pub use tool::{
    Broken, Demand, Demands, Finding, Job, Live, Meter, OverHold, Permit, Plan, Ran, ReadPermit,
    ReadPlan, ReadTool, Request, Ticket, Tool,
};
pub use vault::vault_entry;
