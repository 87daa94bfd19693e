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
//! | `turn` | which thread reads a connection |
//! | `incoming` | what comes from a holder, and who reads it |
//! | `client` | the attached side |
//! | `relay` | a tool's run, carried to the process that offered it |
//!
//! A process that may open the socket could as well open the home: both are its owner's only. So
//! the operator's lane gives no authority that its peer lacks; what is bounded here is what a peer
//! that hangs, dies or misbehaves can cost the others. On the agents' lane a peer has less: calls
//! through what was lent to it.

#[cfg(test)]
mod channel;
pub(crate) mod client;
pub(crate) mod frame;
pub(crate) mod frozen;
#[cfg(any(fuzzing, test))]
pub mod fuzz;
pub(crate) mod hello;
pub(crate) mod incoming;
pub(crate) mod limits;
pub(crate) mod message;
pub(crate) mod peer;
pub(crate) mod relay;
pub(crate) mod reply;
pub(crate) mod socket;
#[cfg(test)]
mod tests;
pub(crate) mod turn;
pub(crate) mod versions;
pub(crate) mod wire;

pub(crate) use crate::transport::frozen::Command;
pub use crate::transport::frozen::{HolderStatus, Phase};
pub(crate) use crate::transport::hello::Lane;
pub use crate::transport::incoming::{Drained, Incoming, ReadBy};
pub(crate) use crate::transport::message::{
    Aborted, Ask, Begin, Charge, Heard, Looked, Opening, Prompted, Proposed, Settle, Waits, Watched,
};
pub(crate) use crate::transport::reply::{Leave, OnRecord, Taken};
pub use crate::transport::versions::Versions;
