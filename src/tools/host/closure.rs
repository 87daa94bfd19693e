//! A closure that runs a call, and what it came to.

use std::sync::Arc;

use syscap_format::{
    AgentId, Canonical, DefinitionHash, EffectClass, Enforcement, Manifest, Reason, Refused,
    ScopeDimension, TxOutcome,
};
use syscap_kernel::{Demands, Permit, Plan, Ran, Request, Tool};
use syscap_syscalls::stated::NamedResources;

use crate::driver::run::given_up;
use crate::runtime::args::IntoArg;
use crate::tools::host::call::ToolCall;
use crate::tools::host::failure::Failure;
use crate::tools::identity;
use crate::tools::provide::{HostCall, HostRan};

/// How a run of the host's code ended.
pub(crate) enum Ended {
    /// With an answer.
    Came(Result<Canonical, Failure>),
    /// Without one: what ran it was dropped.
    Dropped,
}

impl Ended {
    pub(crate) fn of<T: IntoArg>(answer: Result<T, Failure>) -> Self {
        Self::Came(answer.map(IntoArg::into_canonical))
    }
}

/// Runs a call, and blocks until that has ended.
pub(crate) type Body = dyn Fn(ToolCall) -> Ended + Send + Sync;

/// A tool that is a closure: made by [`HostTool::run`](crate::host::HostTool::run) or
/// [`HostTool::run_async`](crate::host::HostTool::run_async), given to
/// [`Options::tool`](crate::Options::tool) or [`HostTools::with`](crate::host::HostTools::with).
#[derive(Clone)]
pub struct ClosureTool {
    pub(crate) manifest: Manifest,
    pub(crate) body: Arc<Body>,
}

impl Tool for ClosureTool {
    type Plan = ClosurePlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn never_compared(&self) -> Option<&str> {
        let named = |dimension: &str| {
            self.manifest
                .argument_resources()
                .any(|own| ScopeDimension::compares(&own.dimension, dimension))
        };
        self.manifest.dimensions.iter().map(|dimension| &**dimension).find(|it| !named(it))
    }

    fn plan(&self, request: &Request<'_>) -> Result<ClosurePlan, Refused> {
        let NamedResources { resources, untouched } =
            NamedResources::of(&self.manifest, request.args)?;
        Ok(ClosurePlan {
            demands: Demands { resources, ..Demands::default() },
            untouched,
            asked: Asked::of(request, &self.manifest),
            body: Arc::clone(&self.body),
        })
    }
}

/// A planned call of a [`ClosureTool`].
pub struct ClosurePlan {
    demands: Demands,
    untouched: Vec<&'static str>,
    asked: Asked,
    body: Arc<Body>,
}

impl Plan for ClosurePlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn untouched(&self) -> &[&'static str] {
        &self.untouched
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        let body = self.body;
        self.asked.run(permit, move |call| body(call))
    }
}

/// The part of the call that a plan keeps.
pub(crate) struct Asked {
    definition: DefinitionHash,
    agent: AgentId,
    args: Canonical,
    effect: EffectClass,
}

impl Asked {
    pub(crate) fn of(request: &Request<'_>, manifest: &Manifest) -> Self {
        Self {
            definition: identity(manifest),
            agent: request.agent.clone(),
            args: Canonical::from(request.args),
            effect: manifest.effect,
        }
    }

    /// Runs the host's code in this process, with the kernel's leave.
    pub(crate) fn run<P>(
        self,
        mut permit: Permit<'_, P>,
        body: impl FnOnce(ToolCall) -> Ended,
    ) -> Ran<'_> {
        permit.enforced_by(Enforcement::Delegated);
        let call = HostCall {
            tool: permit.tool().clone(),
            definition: self.definition,
            agent: self.agent,
            session: permit.live().session,
            intent: permit.intent(),
            args: self.args,
            hold: *permit.hold(),
            result_bytes_max: permit.result_bytes_max(),
            read_only: permit.is_read_only(),
            tag: 0,
            cancel: given_up(),
        };
        perform(call, self.effect, body).report(permit)
    }
}

/// Runs the host's code, wherever it is.
pub(crate) fn perform(
    call: HostCall,
    effect: EffectClass,
    body: impl FnOnce(ToolCall) -> Ended,
) -> HostRan {
    let call = ToolCall::new(call);
    let (meter, cancel) = (call.shared_meter(), call.cancel());
    let ended = body(call);
    let used = meter.close();
    match ended {
        Ended::Came(Ok(result)) => HostRan::new(Ok(result), done(effect), used),
        Ended::Came(Err(failure)) => failure.ends(unsure(effect), used),
        Ended::Dropped => {
            let given_up = cancel.is_cancelled();
            let reason = if given_up { Reason::Cancelled } else { Reason::ProviderGone };
            // What it used is not known: all that was set aside.
            let used = meter.hold();
            HostRan::new(Err(Refused::new(reason)), unsure(effect), used)
        }
    }
}

/// True if a tool of this class has no effect to undo or repeat.
const fn only_reads(effect: EffectClass) -> bool {
    effect.is_read_only() || matches!(effect, EffectClass::ExternalRead)
}

/// The outcome of a run that answered.
pub(crate) const fn done(effect: EffectClass) -> TxOutcome {
    if only_reads(effect) { TxOutcome::NoOp } else { TxOutcome::Committed }
}

/// The outcome of a run that did not answer.
pub(crate) const fn unsure(effect: EffectClass) -> TxOutcome {
    if only_reads(effect) { TxOutcome::NoOp } else { TxOutcome::Unknown }
}
