//! One home, many processes: the holder serves a socket in the home, and others attach to it.
//!
//! | module | what |
//! |---|---|
//! | `limits` | every bound of the protocol, with its reason |
//! | `wire` | frames as bytes: a length and one canonical item |
//! | `frame` | the frames of a version: an id and what they carry |
//! | `versions` | what one side speaks |
//! | `hello` | the first frame and its answers: versions, lanes; they never change |
//! | `frozen` | the operator's frames that never change: revoke, freeze, status, shutdown |
//! | `fuzz` | what the fuzz target `frame` tries of all these |
//! | `message` | what is asked, from either side |
//! | `reply` | what is answered |
//! | `peer` | one connection as either side has it: asking, answering, ending |
//! | `socket` | the socket: made, found, checked, removed |
//! | `server` | the holder's side: who comes in, and how it closes |
//! | `work` | what is asked of the holder, from its frame to its answer |
//! | `turn` | which thread reads a connection |
//! | `seat` | one attached process, as the holder has it |
//! | `lend` | sessions that an operator has opened for agents |
//! | `incoming` | what comes from a holder, and who reads it |
//! | `client` | the attached side |
//! | `relay` | a tool's run, carried to the process that offered it |
//!
//! A process that may open the socket could as well open the home: both are its owner's only. So
//! the operator's lane gives no authority that its peer lacks; what is bounded here is what a peer
//! that hangs, dies or misbehaves can cost the others. On the agents' lane a peer has less: calls
//! through what was lent to it.

pub(crate) mod client;
mod frame;
mod frozen;
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzz;
mod hello;
mod incoming;
mod lend;
pub(crate) mod limits;
mod message;
mod peer;
mod relay;
pub(crate) mod reply;
mod seat;
pub(crate) mod server;
mod socket;
#[cfg(test)]
mod tests;
mod turn;
pub(crate) mod versions;
pub(crate) mod wire;
mod work;

pub(crate) use self::{
    frozen::Command,
    hello::Lane,
    message::{
        Aborted, AgentAsk, Ask, Begin, Call, Charge, Heard, Looked, Opening, Prompted, Proposed,
        Settle,
    },
    reply::{Answered, Leave, Taken},
};
pub use self::{
    frozen::{HolderStatus, Phase},
    incoming::{Drained, Incoming, ReadBy},
    lend::SessionTicket,
    versions::Versions,
};
