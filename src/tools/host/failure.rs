//! Why a host's tool failed, and what became of its effect.

use std::{any::Any, error::Error, io};

use syscap_format::{Amounts, Canonical, Reason, Refused, Retry, TxOutcome};
use syscap_kernel::OverHold;

use crate::runtime::args::IntoArg;
use crate::tools::provide::HostRan;

/// Why a host's tool failed. Any error becomes one by `?`.
///
/// Its words go to the caller, which may be a model: an error that names what the caller must not
/// know belongs into a log, and a [`Failure::new`] in its place.
#[must_use]
#[derive(Debug)]
pub struct Failure {
    why: Why,
    retry: Option<Retry>,
    tx: Option<TxOutcome>,
}

#[derive(Debug)]
enum Why {
    /// For a reason that is a tool's to give.
    Refused(Refused),
    /// By the tool's own word.
    Output(Canonical),
}

impl Failure {
    /// Failed, in the host's words: the caller gets them whole, as the `output` of
    /// [`Reason::ToolFailed`], within the tool's limit on results.
    pub fn new(what: &str) -> Self {
        Self::output(what)
    }

    /// The same with any value, as a result has.
    pub fn output(value: impl IntoArg) -> Self {
        Self { why: Why::Output(value.into_canonical()), retry: None, tx: None }
    }

    /// Failed for a reason that is a tool's to give; any other is recorded as [`Reason::Failed`]
    /// ([`Refused::by_tool`]).
    pub fn because(why: Refused) -> Self {
        // The kernel would take the words of another reason away.
        if (300..400).contains(&why.reason().code()) {
            return Self::new(&why.to_string());
        }
        Self { why: Why::Refused(why), retry: None, tx: None }
    }

    /// Says what the caller may do next, where that is stricter than what the reason says: ask a
    /// person, or nothing. Of a [`Refused`] it says nothing.
    pub const fn retry(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
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

    /// The end of a run, whose effect is that where the failure does not say.
    pub(crate) fn ends(self, unsaid: TxOutcome, used: Amounts) -> HostRan {
        let tx = self.tx.unwrap_or(unsaid);
        match self.why {
            Why::Refused(why) => HostRan::new(Err(why), tx, used),
            Why::Output(output) => {
                HostRan { retry: self.retry, ..HostRan::failed(output, tx, used) }
            }
        }
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
            _ => return Self::new(&error.to_string()),
        };
        Self::because(Refused::new(reason).got(&error.to_string()))
    }
}
