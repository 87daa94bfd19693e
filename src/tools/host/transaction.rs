//! Tools in two steps: what can fail is prepared, and one last step makes it happen.

use std::marker::PhantomData;

use syscap_format::{Manifest, Refused};
use syscap_kernel::{Broken, Demands, Finding, Permit, Plan, Ran, Request, Tool};

use crate::driver::guard::caught;
use crate::runtime::args::IntoArg;
use crate::tools::host::call::{HostArgs, ToolCall};
use crate::tools::host::closure::{Asked, Ended};
use crate::tools::host::failure::Failure;
use crate::tools::host::typed::Planned;

/// A tool whose effect is made by one last step, [`commit`](Self::commit). All that may fail
/// belongs before that, into [`prepare`](Self::prepare): where it fails, panics, or nobody waits
/// any more when it is done, the effect was not made, and the record says so. The call is then
/// charged for what it has used, and not in full. Only what goes wrong in `commit` is unknown.
///
/// ```
/// use syscap::host::{Failure, HostArgs, HostTool, Planned, ToolCall, Transactional};
/// use syscap::format::{EffectClass, Refused};
///
/// struct Note(String);
///
/// impl Transactional for Note {
///     type Prepared = tempfile::NamedTempFile;
///     type Answer = ();
///     fn plan(args: HostArgs<'_>) -> Result<Planned<Self>, Refused> {
///         Ok(Planned::new(Self(args.text("text")?.to_owned())))
///     }
///     // It is gone when it is dropped, so there is nothing to roll back.
///     fn prepare(self, _: &ToolCall) -> Result<Self::Prepared, Failure> {
///         let file = tempfile::NamedTempFile::new_in("/var/notes")?;
///         std::fs::write(file.path(), self.0)?;
///         Ok(file)
///     }
///     fn commit(file: Self::Prepared, _: &ToolCall) -> Result<(), Failure> {
///         file.persist("/var/notes/last").map(drop).map_err(|failed| failed.error.into())
///     }
/// }
/// # fn main() -> Result<(), syscap::Error> {
///
/// let note = HostTool::new("org.note", EffectClass::LocalWrite)?
///     .text("text", "What.").transactional::<Note>();
/// # drop(note);
/// # Ok(())
/// # }
/// ```
pub trait Transactional: Send + Sized + 'static {
    /// A prepared effect.
    type Prepared;
    /// The result of a run.
    type Answer: IntoArg;

    /// Parses the arguments, once, without I/O, and says what a run would touch.
    ///
    /// # Errors
    /// What is wrong with them: the call is refused.
    fn plan(args: HostArgs<'_>) -> Result<Planned<Self>, Refused>;

    /// Prepares the effect, which nobody may see yet. If it fails or panics it must clear up after
    /// itself: nothing is rolled back then.
    ///
    /// # Errors
    /// Why it failed. It counts as not done, [rolled back](Failure::rolled_back) where it says so.
    fn prepare(self, call: &ToolCall) -> Result<Self::Prepared, Failure>;

    /// Makes the effect, by a step that is made whole or not at all: the last that it does.
    ///
    /// # Errors Why it failed. The effect is unknown, unless the failure says otherwise.
    fn commit(prepared: Self::Prepared, call: &ToolCall) -> Result<Self::Answer, Failure>;

    /// Takes back what was prepared, where nobody waits for it any more.
    ///
    /// # Errors
    /// Why it could not: what became of the effect is not known then.
    fn rollback(prepared: Self::Prepared, _call: &ToolCall) -> Result<(), Failure> {
        drop(prepared);
        Ok(())
    }

    /// The outcome of a run that a crash interrupted: see [`Tool::probe`]. Report only what can be
    /// proved.
    fn probe(_broken: &Broken<'_>) -> Finding {
        Finding::Unknown
    }
}

/// A tool in two steps: made by [`HostTool::transactional`](crate::host::HostTool::transactional), given
/// to [`Options::tool`](crate::Options::tool).
pub struct TransactionalTool<P> {
    manifest: Manifest,
    makes: PhantomData<fn() -> P>,
}

impl<P> TransactionalTool<P> {
    pub(crate) const fn new(manifest: Manifest) -> Self {
        Self { manifest, makes: PhantomData }
    }
}

impl<P: Transactional> Tool for TransactionalTool<P> {
    type Plan = TransactionalPlan<P>;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<TransactionalPlan<P>, Refused> {
        let planned = P::plan(HostArgs::new(request.args))?;
        let (value, touches) = planned.with_named(&self.manifest, request)?.into_parts();
        Ok(TransactionalPlan { value, touches, asked: Asked::of(request, &self.manifest) })
    }

    fn probe(&self, broken: &Broken<'_>) -> Finding {
        P::probe(broken)
    }
}

/// A planned call of a [`TransactionalTool`].
pub struct TransactionalPlan<P> {
    value: P,
    touches: Planned<()>,
    asked: Asked,
}

impl<P: Transactional> Plan for TransactionalPlan<P> {
    fn demands(&self) -> &Demands {
        self.touches.demands()
    }

    fn untouched(&self) -> &[&'static str] {
        self.touches.dimensions_untouched()
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        let value = self.value;
        self.asked.run(permit, move |call| Ended::of(in_two_steps(value, &call)))
    }
}

/// A failure before the commit has had no effect; a panic in the commit continues.
fn in_two_steps<P: Transactional>(value: P, call: &ToolCall) -> Result<P::Answer, Failure> {
    let prepared = match caught(|| value.prepare(call)) {
        Some(Ok(prepared)) => prepared,
        Some(Err(failure)) => return Err(failure.or_without_effect()),
        None => return Err(Failure::new("it panicked before its commit").without_effect()),
    };
    if !call.is_cancelled() {
        return P::commit(prepared, call);
    }
    match caught(|| P::rollback(prepared, call)) {
        Some(Ok(())) => Err(Failure::new("it was given up before its commit").rolled_back()),
        Some(Err(failure)) => Err(failure),
        None => Err(Failure::new("it was given up, and panicked while it was rolled back")),
    }
}
