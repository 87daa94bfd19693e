//! Files by handle: what `fs.read`, `fs.list` and `fs.write` rest on.
//!
//! The tools know an [`Opener`] only, which [`open`] chooses for a directory. There is one: a
//! [`Base`] is a directory handle opened once, at setup. Everything else is reached from it by a
//! [`Location`], a list of checked names, with one walk: by `openat2` beneath the base, no links,
//! no magic links, no other mount; or, where the system lacks that, by `cap-std`, name by name, no
//! links, no other device. Which of the two is settled when the base is opened: no error of a later
//! call makes it another. An opened entry is then judged by `fstat`, never by its name.
//!
//! No folder that is a home of syscap is walked through or listed, and none is made: its log and
//! keys are nobody's files.
//!
//! Links are followed only by [`Base::resolve`], which answers with the real location and looks
//! only where its caller lets it. The caller checks the answer against its scope and opens it;
//! since every opener refuses links, what was checked is what is opened.
//!
//! Three things stay invisible. First, a bind mount made *above* the base before it was opened;
//! with `cap-std`, on a system that does not tell mounts apart, also one of a folder of the same
//! file system *in* the base. Second, a directory that a privileged user moves out of the base
//! while a call holds its handle (the call continues in that same directory). Third, extended
//! attributes and ACLs, which a replaced file loses.

mod append;
mod base;
mod beside;
mod change;
mod error;
mod gate;
mod homes;
mod judged;
mod label;
mod list;
mod location;
mod opener;
mod read;
mod resolve;
mod survey;
mod temp;
mod temp_name;
mod turn;
mod walk;
mod write;

pub use append::{Append, Behind};
pub use base::{Agents, Base, FolderMode};
pub use beside::Began;
pub use change::{Metadata, Removal, Rename, Renamed};
pub use error::FsError;
pub use gate::Kind;
pub use homes::KEY_FILE_BEGINS;
pub use list::{Entry, Listing, SCAN_MAX};
pub use location::{AGENTS, Location, OF};
pub use opener::{Opener, Openers, open, open_by};
pub use read::{Chunk, DIGEST_BYTES_MAX, OpenFile};
pub use survey::{Grown, SURVEY_MAX, Survey};
pub use temp::{CHUNK_BYTES, Discarded, TempName};
pub use turn::Turn;
#[cfg(feature = "shell")]
pub(crate) use walk::PATH as NAMED;
pub use write::{Charge, Effect, Existing, Parents, Refused, Write, WriteFailure, Written};
