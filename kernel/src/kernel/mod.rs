//! The kernel: events in, effects out.
//!
//! The host tells the kernel what happened ([`Kernel::handle`]) and carries out what it asks for
//! ([`Kernel::poll_effect`], [`Kernel::take_batch`]). The kernel never blocks, has no clock, no
//! randomness and no I/O, and owns policy, tools, tokens, budgets and the log's head; it lends
//! none of them.
//!
//! | step of a call | can say no with | recorded as |
//! |---|---|---|
//! | decode | 1xx | `refusal` |
//! | check: binding, revoked, frozen, expired, granted; repeat | 2xx | `refusal`, `repeat` |
//! | resolve references | 25x | `refusal` |
//! | follow links | 3xx | `refusal` |
//! | plan, scopes | 3xx | `refusal` |
//! | decide | 4xx | `refusal` |
//! | reserve | 5xx | `refusal` |
//! | intend; *durable*; run | 7xx | `intent` |
//! | settle; *durable*; reply | | `outcome` |

mod admit;
mod aggregate;
mod answer;
mod asks;
mod boot;
mod control;
mod events;
mod flight;
mod log;
mod machine;
mod pending;
mod people;
mod proofs;
mod refuse;
mod replay;
mod settle;
mod state;
mod tools;

pub use crate::{
    state::{credits::AccountView, tokens::TokenView},
    ticket::Ticket,
};
pub use asks::{AskView, SetView};
pub use boot::{Anchor, NewHome, Parts};
pub use events::{Ack, Effect, Event, Lost, Measured, Proposal, SessionView, Submit};
pub use machine::Kernel;
pub use people::AskStanding;
pub use replay::{NotAsked, Redecided, Tally};
