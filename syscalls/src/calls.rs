//! The common parts of the tools beneath a base: a manifest, a parsed call, and its run.

use std::sync::Arc;

use syscap_format::{Canonical, Manifest, Refused, TxOutcome};
use syscap_kernel::{
    Broken, Demands, Finding, Inspect, Permit, Plan, Ran, ReadPermit, ReadPlan, ReadTool, Registry,
    RegistryError, Request, Resolve, Tool,
};

use crate::beneath::{Effect, Opener};
use crate::fs::tx_of;

/// The shared state of a tool's calls: the file backend, and more.
pub trait Shared: Clone + Send + Sync + 'static {
    /// The file backend.
    fn base(&self) -> &dyn Opener;
}

impl Shared for Arc<dyn Opener> {
    fn base(&self) -> &dyn Opener {
        &**self
    }
}

/// The permit of a reading call.
pub type ReadBy<'p, C> = ReadPermit<'p, PlannedRead<C>>;
/// The permit of a changing call.
pub type ChangeBy<'p, C> = Permit<'p, PlannedChange<C>>;
/// The result of a change, and whether anything was changed; or what became of one that failed.
pub type Changed = Result<(Canonical, TxOutcome), (Refused, Effect)>;

/// A call of a tool that only reads.
pub trait ReadCall: Sized + Send + 'static {
    /// The shared state of its calls.
    type On: Shared;

    /// The tool; `None` where its name is none.
    fn manifest() -> Option<Manifest>;

    /// As [`ReadTool::resolver`].
    fn resolver(_: &Request<'_>, _: &Self::On) -> Result<Option<Box<dyn Resolve>>, Refused> {
        Ok(None)
    }

    /// Reads the arguments, and says what the call touches and may use.
    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused>;

    /// The result. The label of what was read goes to the permit.
    fn run(&self, on: &Self::On, permit: &mut ReadBy<'_, Self>) -> Result<Canonical, Refused>;
}

/// A call of a tool that changes something.
pub trait ChangeCall: Sized + Send + 'static {
    /// The shared state of its calls.
    type On: Shared;

    /// The tool; `None` where its name is none.
    fn manifest() -> Option<Manifest>;

    /// As [`Tool::resolver`].
    fn resolver(_: &Request<'_>, _: &Self::On) -> Result<Option<Box<dyn Resolve>>, Refused> {
        Ok(None)
    }

    /// As [`Tool::inspector`].
    fn inspector(_: &Request<'_>, _: &Self::On) -> Result<Option<Box<dyn Inspect>>, Refused> {
        Ok(None)
    }

    /// Reads the arguments, and says what the call touches and may use.
    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused>;

    /// As [`Tool::probe`].
    fn probe(&self, _: &Self::On, _: &Broken<'_>) -> Finding {
        Finding::Unknown
    }

    /// Makes the change.
    fn run(&self, on: &Self::On, permit: &mut ChangeBy<'_, Self>) -> Changed;
}

/// A tool that reads.
#[derive(Debug)]
pub struct Reads<C: ReadCall> {
    manifest: Manifest,
    on: C::On,
}

/// A call of it that is planned.
#[derive(Debug)]
pub struct PlannedRead<C: ReadCall> {
    call: C,
    demands: Demands,
    on: C::On,
}

impl<C: ReadCall> ReadTool for Reads<C> {
    type Plan = PlannedRead<C>;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn resolver(&self, request: &Request<'_>) -> Result<Option<Box<dyn Resolve>>, Refused> {
        C::resolver(request, &self.on)
    }

    fn plan(&self, request: &Request<'_>) -> Result<PlannedRead<C>, Refused> {
        let (call, demands) = C::parse(request)?;
        Ok(PlannedRead { call, demands, on: self.on.clone() })
    }
}

impl<C: ReadCall> ReadPlan for PlannedRead<C> {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, mut permit: ReadPermit<'_, Self>) -> Ran<'_> {
        permit.enforced_by(self.on.base().enforcement());
        match self.call.run(&self.on, &mut permit) {
            Ok(result) => permit.ok(result, TxOutcome::NoOp),
            Err(refused) => permit.failed(refused, TxOutcome::NoOp),
        }
    }
}

/// A tool that changes something.
#[derive(Debug)]
pub struct Changes<C: ChangeCall> {
    manifest: Manifest,
    on: C::On,
}

/// A call of it that is planned.
#[derive(Debug)]
pub struct PlannedChange<C: ChangeCall> {
    call: C,
    demands: Demands,
    on: C::On,
}

impl<C: ChangeCall> Tool for Changes<C> {
    type Plan = PlannedChange<C>;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn resolver(&self, request: &Request<'_>) -> Result<Option<Box<dyn Resolve>>, Refused> {
        C::resolver(request, &self.on)
    }

    fn plan(&self, request: &Request<'_>) -> Result<PlannedChange<C>, Refused> {
        let (call, demands) = C::parse(request)?;
        Ok(PlannedChange { call, demands, on: self.on.clone() })
    }

    fn inspector(&self, request: &Request<'_>) -> Result<Option<Box<dyn Inspect>>, Refused> {
        C::inspector(request, &self.on)
    }

    fn probe(&self, broken: &Broken<'_>) -> Finding {
        match C::parse(&broken.request) {
            Ok((call, _)) => call.probe(&self.on, broken),
            Err(_) => Finding::Unknown,
        }
    }
}

impl<C: ChangeCall> Plan for PlannedChange<C> {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, mut permit: Permit<'_, Self>) -> Ran<'_> {
        permit.enforced_by(self.on.base().enforcement());
        match self.call.run(&self.on, &mut permit) {
            Ok((result, tx)) => permit.ok(result, tx),
            Err((refused, effect)) => permit.failed(refused, tx_of(effect)),
        }
    }
}

/// Why a built-in tool is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAdded {
    /// Its name is none.
    #[error("a built-in tool has a bad name")]
    Name,
    /// The registry does not take it.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

/// Adds a tool that reads.
pub(crate) fn add_read<C: ReadCall>(registry: &mut Registry, on: &C::On) -> Result<(), NotAdded> {
    let manifest = on.base().promised(C::manifest().ok_or(NotAdded::Name)?);
    Ok(registry.add_read(Reads::<C> { manifest, on: on.clone() })?)
}

/// Adds a tool that changes something.
pub(crate) fn add<C: ChangeCall>(registry: &mut Registry, on: &C::On) -> Result<(), NotAdded> {
    let manifest = on.base().promised(C::manifest().ok_or(NotAdded::Name)?);
    Ok(registry.add(Changes::<C> { manifest, on: on.clone() })?)
}
