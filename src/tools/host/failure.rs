//! Why a host's tool failed, and what became of its effect.

use std::{any::Any, error::Error, io};

use syscap_format::{Reason, Refused, TxOutcome};
use syscap_kernel::OverHold;

/// Why a host's tool failed. Any error becomes one by `?`.
///
/// Its words go to the caller, which may be a model: an error that names what the caller must not
/// know belongs into a log, and a [`Failure::new`] in its place.
#[must_use]
#[derive(Debug)]
pub struct Failure {
    why: Refused,
    tx: Option<TxOutcome>,
}

impl Failure {
    /// Failed, in the host's words: one short line.
    pub fn new(what: &str) -> Self {
        Self::because(Refused::new(Reason::Failed).got(what))
    }

    /// Failed for a reason that is a tool's to give; any other is recorded as [`Reason::Failed`]
    /// ([`Refused::by_tool`]).
    pub fn because(why: Refused) -> Self {
        // The kernel would take the words of another reason away: they are kept as what was got.
        let words = (300..400).contains(&why.reason().code());
        let why = if words { Refused::new(Reason::Failed).got(&why.to_string()) } else { why };
        Self { why, tx: None }
    }

    /// Says that the effect was not begun. By default the effect of a tool that changes things
    /// counts as unknown, and the call is charged in full.
    pub fn without_effect(mut self) -> Self {
        self.tx = Some(TxOutcome::NoOp);
        self
    }

    /// Says that the effect was begun and undone.
    pub fn rolled_back(mut self) -> Self {
        self.tx = Some(TxOutcome::RolledBack);
        self
    }

    /// The same, where it says nothing of the effect.
    pub(crate) fn or_without_effect(self) -> Self {
        let tx = self.tx.or(Some(TxOutcome::NoOp));
        Self { tx, ..self }
    }

    pub(crate) fn into_parts(self) -> (Refused, Option<TxOutcome>) {
        (self.why, self.tx)
    }
}

impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let known: &dyn Any = &error;
        if let Some(refused) = known.downcast_ref::<Refused>() {
            return Self::because(refused.clone());
        }
        if let Some(over) = known.downcast_ref::<OverHold>() {
            return Self::because((*over).into());
        }
        let reason = match known.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::NotFound) => Reason::NotFound,
            Some(io::ErrorKind::PermissionDenied) => Reason::AccessDenied,
            Some(io::ErrorKind::AlreadyExists) => Reason::Exists,
            Some(io::ErrorKind::StorageFull) => Reason::DiskFull,
            _ => Reason::Failed,
        };
        Self::because(Refused::new(reason).got(&error.to_string()))
    }
}
