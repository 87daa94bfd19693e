//! Preconditions: the state that a person is shown beside a waiting call, and that must be
//! unchanged when it runs.
//!
//! A tool that can name what a call would change is asked to look at it before a person is asked:
//! the digest of a file that would be replaced, say. It is on record with the call, and given back
//! to the run with its permit: who was shown one thing has not approved another. The run looks
//! again, at what it has opened itself, and fails where something has changed.

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use syscap_format::{Precondition, PreconditionKind, Salt, VaultEntry, VaultText};

/// The key under which the texts of preconditions are committed to.
const PRECONDITIONS: u64 = 35;

/// Most conditions of one call.
pub(crate) const CONDITIONS_MAX: usize = 16;

/// A state that was seen, and must be unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The kind of state.
    pub kind: PreconditionKind,
    /// Its subject, for people: a path.
    pub subject: Box<str>,
    /// The state seen: a digest in lower-case hexadecimal digits, or the name of a version. `None`
    /// where nothing was there.
    pub seen: Option<Box<str>>,
}

/// Looks at what a call would change. Made without I/O, by [`Tool::inspector`].
///
/// [`Tool::inspector`]: crate::tool::Tool::inspector
pub trait Inspect: Send {
    /// Reads the present state. Unreadable state is left out, and puts no condition on the run.
    fn inspect(self: Box<Self>) -> Vec<Condition>;
}

/// A look at what a call would change, for the host to run.
#[must_use = "a call waits for it"]
pub struct Inspecting(pub(crate) Box<dyn Inspect>);

impl Inspecting {
    /// Looks.
    pub fn run(self) -> Inspected {
        Inspected(self.0.inspect())
    }
}

impl fmt::Debug for Inspecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inspecting(..)")
    }
}

/// The states seen. Only a look makes one.
#[derive(Debug)]
#[must_use = "a call waits for it"]
pub struct Inspected(pub(crate) Vec<Condition>);

impl Condition {
    /// The texts that stand for it in the vault.
    pub(crate) fn texts(&self, salt: Salt) -> impl Iterator<Item = VaultText> {
        core::iter::once(&self.subject).chain(&self.seen).map(move |text| committed(text, salt))
    }

    /// As it stands on record.
    pub(crate) fn recorded(&self, salt: Salt) -> Precondition {
        let seen = self.seen.as_ref().map(|seen| committed(seen, salt).hash());
        Precondition { kind: self.kind, subject: committed(&self.subject, salt).hash(), seen }
    }

    /// The vault's text of a recorded precondition; `None` if it was erased.
    pub fn read(recorded: &Precondition, entry: &VaultEntry) -> Option<Self> {
        let subject = Box::from(entry.text(&recorded.subject)?);
        let seen = match &recorded.seen {
            Some(seen) => Some(Box::from(entry.text(seen)?)),
            None => None,
        };
        Some(Self { kind: recorded.kind, subject, seen })
    }
}

fn committed(text: &str, salt: Salt) -> VaultText {
    VaultText { salt, field: PRECONDITIONS, text: Box::from(text) }
}
