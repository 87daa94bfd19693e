//! Tools whose arguments become a value of a type, once, and say what they would touch.

use std::marker::PhantomData;

use syscap_format::{Dimension, Manifest, Refused, Resource};
use syscap_kernel::{Demand, Demands, Permit, Plan, Ran, Request, Tool};
use syscap_syscalls::stated::NamedResources;

use crate::runtime::args::IntoArg;
use crate::tools::host::call::{HostArgs, ToolCall};
use crate::tools::host::closure::{Asked, Ended};
use crate::tools::host::failure::Failure;

/// The arguments of a tool as a type of their own: parsed once, checked by the kernel against
/// token and policy, and run as they were checked.
///
/// ```
/// use syscap::host::{Failure, HostArgs, HostTool, Planned, ToolCall, Typed};
/// use syscap::format::{EffectClass, Refused};
/// use syscap::format::{Name, Resource};
///
/// struct Page(String, String);
///
/// impl Typed for Page {
///     type Answer = String;
///     fn plan(args: HostArgs<'_>) -> Result<Planned<Self>, Refused> {
///         let page = Self(args.text("team")?.to_owned(), args.text("text")?.to_owned());
///         let team = Resource::Name(Name::new(&page.0).map_err(|_| args.bad("team", "a name"))?);
///         Ok(Planned::new(page).touches("team", team, "team"))
///     }
///     fn run(self, _: &ToolCall) -> Result<String, Failure> {
///         Ok(format!("paged {}: {}", self.0, self.1))
///     }
/// }
/// # fn main() -> Result<(), syscap::Error> {
///
/// let page = HostTool::new("team.page", EffectClass::ExternalWrite)?
///     .text("team", "Whom.").text("text", "What.").needs("team").typed::<Page>();
/// # drop(page);
/// # Ok(())
/// # }
/// ```
pub trait Typed: Send + Sized + 'static {
    /// The result of a run.
    type Answer: IntoArg;

    /// Parses the arguments, once, without I/O, and says what a run would touch.
    ///
    /// # Errors
    /// What is wrong with them: the call is refused.
    fn plan(args: HostArgs<'_>) -> Result<Planned<Self>, Refused>;

    /// Runs it.
    ///
    /// # Errors
    /// Why it failed.
    fn run(self, call: &ToolCall) -> Result<Self::Answer, Failure>;
}

/// A value that is ready to run, what it would touch, and the most that it may use.
#[must_use]
#[derive(Clone, Debug)]
pub struct Planned<P> {
    value: P,
    demands: Demands,
    untouched: Vec<&'static str>,
}

impl<P> Planned<P> {
    /// Touches nothing, and uses no more than the manifest sets aside.
    pub fn new(value: P) -> Self {
        Self { value, demands: Demands::default(), untouched: Vec::new() }
    }

    /// Adds what the arguments name by the manifest.
    pub(crate) fn with_named(
        mut self,
        manifest: &Manifest,
        request: &Request<'_>,
    ) -> Result<Self, Refused> {
        let named = NamedResources::of(manifest, request.args)?;
        self.demands.resources.extend(named.resources);
        self.untouched.extend(named.untouched);
        Ok(self)
    }

    pub(crate) fn into_parts(self) -> (P, Planned<()>) {
        let Self { value, demands, untouched } = self;
        (value, Planned { value: (), demands, untouched })
    }

    pub(crate) const fn demands(&self) -> &Demands {
        &self.demands
    }

    pub(crate) fn dimensions_untouched(&self) -> &[&'static str] {
        &self.untouched
    }

    /// Touches a resource, which the token's scope in that dimension must permit. The argument
    /// that named it stands in the refusal.
    pub fn touches(
        mut self,
        dimension: &'static str,
        resource: Resource,
        argument: &'static str,
    ) -> Self {
        self.demands.resources.push(Demand { dimension, resource, argument });
        self
    }

    /// Says that this call touches nothing in a dimension which the tool declares by
    /// [`needs`](crate::host::HostTool::needs): an argument that names the resource was left out. A call
    /// that neither touches something in a declared dimension nor says this is refused, by
    /// [`Reason::NotCompared`](syscap_format::Reason::NotCompared).
    pub fn untouched(mut self, dimension: &'static str) -> Self {
        if !self.untouched.contains(&dimension) {
            self.untouched.push(dimension);
        }
        self
    }

    /// Sets so much more aside than the manifest does.
    pub fn hold(mut self, dimension: Dimension, amount: u64) -> Self {
        let sum = self.demands.hold.get(dimension).saturating_add(amount);
        self.demands.hold = self.demands.hold.with(dimension, sum);
        self
    }
}

/// A tool that is a type: made by [`HostTool::typed`](crate::host::HostTool::typed), given to
/// [`Options::tool`](crate::Options::tool).
pub struct TypedTool<P> {
    manifest: Manifest,
    makes: PhantomData<fn() -> P>,
}

impl<P> TypedTool<P> {
    pub(crate) const fn new(manifest: Manifest) -> Self {
        Self { manifest, makes: PhantomData }
    }
}

impl<P: Typed> Tool for TypedTool<P> {
    type Plan = TypedPlan<P>;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<TypedPlan<P>, Refused> {
        let planned = P::plan(HostArgs::new(request.args))?;
        let planned = planned.with_named(&self.manifest, request)?;
        Ok(TypedPlan { planned, asked: Asked::of(request, &self.manifest) })
    }
}

/// A planned call of a [`TypedTool`].
pub struct TypedPlan<P> {
    planned: Planned<P>,
    asked: Asked,
}

impl<P: Typed> Plan for TypedPlan<P> {
    fn demands(&self) -> &Demands {
        self.planned.demands()
    }

    fn untouched(&self) -> &[&'static str] {
        self.planned.dimensions_untouched()
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        let value = self.planned.value;
        self.asked.run(permit, move |call| Ended::of(value.run(&call)))
    }
}
