//! The store kit: whether a store is one. A test of one line proves an implementation of
//! [`Store`] against all that the trait says a store owes.
//!
//! ```
//! use syscap_audit::{kit, sqlite::SqliteStore};
//! use syscap_format::Durability;
//!
//! # fn main() -> Result<(), kit::KitError> {
//! kit::prove(
//!     |place| SqliteStore::create(place, Durability::Full),
//!     |place| SqliteStore::open(place, Durability::Full),
//! )
//! # }
//! ```
//!
//! The two closures make a new store at a place, and open the one that is there. A place is a path
//! that is not there yet, in a folder of the kit's own; a store elsewhere takes it for a name. The
//! batches are those of a real kernel, since nothing else makes any.
//!
//! Failures of the disk or the process need more help: [`Kit::failing`] and [`Kit::killed_in`]. No
//! kit can see whether a disk keeps what it was told to sync.

mod child;
mod found;
mod holds;
mod place;
mod rules;
mod script;
mod tool;

use std::path::{Path, PathBuf};

use syscap_kernel::{Store, StoreError};

pub use found::{Found, KitError, Rule};
use place::Folder;

/// Makes or opens a store.
type Opener<'a> = Box<dyn FnMut(&Path) -> Result<Box<dyn Store>, StoreError> + 'a>;
/// Opens one whose so many-th write fails.
type Failing<'a> = Box<dyn FnMut(&Path, u64) -> Result<Box<dyn Store>, StoreError> + 'a>;

/// Checks a store against every rule that needs no help: all but [`Rule::Whole`] and
/// [`Rule::Durable`].
///
/// # Errors
/// The first rule that is broken.
pub fn prove<'a, S: Store + 'static>(
    create: impl FnMut(&Path) -> Result<S, StoreError> + 'a,
    open: impl FnMut(&Path) -> Result<S, StoreError> + 'a,
) -> Result<(), KitError> {
    Kit::new(create, open).check()
}

/// A store to check, and what helps to check it.
#[must_use]
pub struct Kit<'a> {
    create: Opener<'a>,
    open: Opener<'a>,
    failing: Option<Failing<'a>>,
    killed_in: Option<Box<str>>,
    folder: Option<PathBuf>,
}

impl<'a> Kit<'a> {
    /// A store that is made by the one and opened by the other.
    pub fn new<S: Store + 'static>(
        mut create: impl FnMut(&Path) -> Result<S, StoreError> + 'a,
        mut open: impl FnMut(&Path) -> Result<S, StoreError> + 'a,
    ) -> Self {
        Self {
            create: Box::new(move |place| Ok(Box::new(create(place)?))),
            open: Box::new(move |place| Ok(Box::new(open(place)?))),
            failing: None,
            killed_in: None,
            folder: None,
        }
    }

    /// Checks [`Rule::Whole`] too. `open` opens what is at a place so that its write of that
    /// number, counted from 1, fails as a bad or full disk would, perhaps in the midst of it; where
    /// it makes no difference between writes it may take the number for how much goes well. The
    /// kit counts up until a commit goes through.
    pub fn failing<S: Store + 'static>(
        mut self,
        mut open: impl FnMut(&Path, u64) -> Result<S, StoreError> + 'a,
    ) -> Self {
        self.failing = Some(Box::new(move |place, number| Ok(Box::new(open(place, number)?))));
        self
    }

    /// Checks [`Rule::Durable`] too, by killing processes. `test` is the full name of the test
    /// that calls [`Kit::check`]: the kit runs the test's own program again with that test alone,
    /// and in that process `check` commits until it is killed.
    pub fn killed_in(mut self, test: &str) -> Self {
        self.killed_in = Some(Box::from(test));
        self
    }

    /// Makes the places in this folder, and not where temporary files are: on another disk.
    pub fn within(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_path_buf());
        self
    }

    /// Checks every rule.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(mut self) -> Result<(), KitError> {
        if self.killed_in.is_some()
            && let Some(place) = child::place()
        {
            return self.die(&place).map_err(|found| KitError { rule: Rule::Durable, found });
        }
        let within = self.folder.take().unwrap_or_else(std::env::temp_dir);
        let host = |found| KitError { rule: Rule::Place, found };
        let mut folder = Folder::make(&within).map_err(host)?;
        for rule in Rule::ALL {
            rules::check(&mut self, &mut folder, *rule)
                .map_err(|found| KitError { rule: *rule, found })?;
        }
        Ok(())
    }
}
