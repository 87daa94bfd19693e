//! The tools of syscap, one family a module.
//!
//! * [`fs`]: `fs.read`, `fs.write` and six more, on handles opened beneath one base directory.
//! * [`memory`]: texts that an agent keeps under keys, beneath the same.
//! * [`vecdb`]: vectors, and the exact search among them, beneath the same.
//! * [`calendar`]: events of iCalendar files, recurring ones too.
//! * [`email`]: drafts of messages, in a Maildir.
//! * [`org`]: the agents of a home: who there is, new ones, and messages between them.
//! * [`shell`]: programs, confined, in the agent's workspace.
//! * [`net`]: which addresses may be reached.
//! * [`stated`]: what an operator states of the tools that other processes run.
//! * [`auto_executed`]: files that other programs execute or obey on their own.
//! * [`marks`]: what a command does beside reading and writing files.
//! * [`page`]: `result.page`, a part of an earlier result.
//! * [`builtin`]: `echo`, `current_time`.
//! * [`calls`]: what the tools beneath a base have in common.
//! * [`beneath`]: the file access that [`fs`] rests on.

pub mod auto_executed;
pub mod beneath;
pub mod builtin;
#[cfg(feature = "calendar")]
pub mod calendar;
pub mod calls;
pub mod email;
pub mod fs;
pub mod marks;
pub mod memory;
#[cfg(feature = "http")]
pub mod net;
#[cfg(not(feature = "http"))]
#[path = "net/off.rs"]
pub mod net;
pub mod org;
pub mod page;
pub mod shell;
pub mod stated;
mod turns;
#[cfg(feature = "vectors")]
pub mod vecdb;
