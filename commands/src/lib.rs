//! What a shell command would run and touch, said before it runs.
//!
//! [`analyse`] reads a command as bash and sh would, follows `cd`, looks into substitutions,
//! wrappers and `sh -c`, and says which programs it would run, which files it would read, change
//! or remove, which hosts it would reach, and what else it does ([`Mark`]). It does no I/O: what
//! it must know of the machine comes in as a [`Place`].
//!
//! What it can't tell is [`Mark::Unknown`], and that never makes a command less than it may be:
//! a program that is not in the table, an option that the table doesn't know, a word that the
//! shell would only know when it runs.
//!
//! It reads text, and the file system is not asked. So its word about a path holds where no
//! symbolic link leads out of where the path lies.
//!
//! ```
//! use syscap_commands::{Effect, Place, analyse};
//!
//! let mut place = Place::at("/project").expect("an absolute path");
//! place.search = vec!["/usr/bin".to_owned()];
//! place.found.insert("grep".to_owned(), "/usr/bin/grep".to_owned());
//! let said = analyse("cd src && grep -rn main . > found.txt", &place);
//! assert_eq!(said.effect(), Effect::LocalWrite);
//! assert!(said.writes.iter().any(|area| area.path() == "/project/src/found.txt"));
//! ```

mod analysis;
mod area;
mod extended;
mod limits;
mod moved;
mod options;
mod place;
mod repository;
mod run;
mod said;
mod shell;
mod table;
mod walk;
mod word;

pub use analysis::analyse;
pub use area::Area;
pub use limits::{BASES_MAX, COMMANDS_MAX, DEPTH_MAX, NESTING_MAX, TEXT_BYTES_MAX, WORDS_MAX};
pub use place::{Place, Repository};
pub use repository::is_plain_config;
pub use said::{Effect, Mark, Piece, Redirect, Said, Simple};
pub use syscap_syscalls::marks::write_marks;
pub use table::programs;
