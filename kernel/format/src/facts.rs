//! Facts of an agent's state (`F_sparse`): a sparse map of text keys to values.
//!
//! The log holds a salted commitment to each fact and never its value; values lie in the vault.
//! One that is no longer there, or is not what its commitment says, is erased: whatever is asked
//! of it is not known.

use alloc::{collections::BTreeMap, sync::Arc};

use crate::cbor::{Canonical, DecodeError, DecodeFault, Decoder, Encoder, Item};
use crate::field::{Field, code, name_field};
use crate::id::printed;
use crate::provenance::Source;

code! {
    /// The namespace of a key, its first component: it decides who may write the key.
    pub enum Namespace {
        /// Parameters of the policy: they change with the policy only.
        Policy = 1 "policy",
        /// Constraints of the policy: they change with the policy only.
        Constraint = 2 "constraint",
        /// An agent's goal: proposed by agents.
        Goal = 3 "goal",
        /// A fact: written by tools and encoders.
        Fact = 4 "fact",
    }
}

impl Namespace {
    /// The namespace of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|namespace| namespace.name() == name)
    }

    /// True if that source may write keys of it. No proposal writes the policy's namespaces.
    #[must_use]
    pub const fn is_written_by(self, writer: Source) -> bool {
        match self {
            Self::Policy | Self::Constraint => false,
            Self::Goal => matches!(writer, Source::Agent | Source::User),
            Self::Fact => matches!(writer, Source::Tool | Source::Encoder),
        }
    }

    /// The namespace of a key.
    pub fn of(key: &FactKey) -> Option<Self> {
        Self::from_name(key.as_str().split('.').next()?)
    }
}

/// A key of the state: a namespace and a name of 1 to [`FactKey::NAME_BYTES_MAX`] of
/// `[a-z0-9_-]`, joined by a dot, such as `fact.source_ref`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactKey(Arc<str>);

impl FactKey {
    /// Longest name, in bytes: it stands in every snapshot.
    pub const NAME_BYTES_MAX: usize = 64;

    /// Checks the form. The namespace is one of [`Namespace`].
    pub fn new(text: &str) -> Option<Self> {
        let (namespace, name) = text.split_once('.')?;
        let allowed =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
        let fine = Namespace::from_name(namespace).is_some()
            && (1..=Self::NAME_BYTES_MAX).contains(&name.len())
            && name.bytes().all(allowed);
        fine.then(|| Self(Arc::from(text)))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

printed! { FactKey }
name_field! { FactKey }

/// The fact under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact<'a> {
    /// There is no such key.
    Missing,
    /// There is such a key, and its value was erased.
    Erased,
    /// The value.
    Known(Item<'a>),
}

/// The facts of one snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(BTreeMap<FactKey, Option<Canonical>>);

impl Facts {
    /// No facts.
    pub fn none() -> &'static Self {
        static NONE: Facts = Facts(BTreeMap::new());
        &NONE
    }

    /// The fact under a key.
    pub fn get(&self, key: &FactKey) -> Fact<'_> {
        match self.0.get(key) {
            None => Fact::Missing,
            Some(None) => Fact::Erased,
            Some(Some(value)) => Fact::Known(value.item()),
        }
    }

    /// Adds a fact, or one whose value was erased.
    pub fn set(&mut self, key: FactKey, value: Option<Canonical>) {
        self.0.insert(key, value);
    }

    /// Takes a key away.
    pub fn remove(&mut self, key: &FactKey) {
        self.0.remove(key);
    }

    /// All keys with what is known under them, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&FactKey, Fact<'_>)> {
        self.0.iter().map(|(key, value)| {
            let fact = match value {
                None => Fact::Erased,
                Some(value) => Fact::Known(value.item()),
            };
            (key, fact)
        })
    }
}
