//! Closures that another process than the home's holder runs.

use std::{collections::BTreeMap, sync::Arc};

use syscap_format::{Amounts, Manifest, Reason, Refused, ToolId, TxOutcome};

use crate::driver::guard::caught;
use crate::tools::host::closure::{ClosureTool, perform, unsure};
use crate::tools::identity;
use crate::tools::provide::{HostCall, HostRan, Provider};

/// A set of closures to be offered to the holder of a home:
/// `access.provide(tools.manifests(), Arc::new(tools))`.
///
/// Scopes are checked in the holder, by a [`Typed`](crate::host::Typed) tool's plan: such a tool can't
/// be offered from elsewhere.
#[must_use]
#[derive(Clone, Default)]
pub struct HostTools {
    tools: BTreeMap<ToolId, ClosureTool>,
}

impl HostTools {
    /// No tools.
    pub const fn new() -> Self {
        Self { tools: BTreeMap::new() }
    }

    /// Adds a tool, in place of one of the same name.
    pub fn with(mut self, tool: ClosureTool) -> Self {
        self.tools.insert(tool.manifest.tool.clone(), tool);
        self
    }

    /// The manifests.
    pub fn manifests(&self) -> Vec<Manifest> {
        self.tools.values().map(|tool| tool.manifest.clone()).collect()
    }
}

impl Provider for HostTools {
    fn run(&self, call: HostCall) -> HostRan {
        let tool = self.tools.get(&call.tool);
        let Some(tool) = tool.filter(|tool| identity(&tool.manifest) == call.definition) else {
            let why = Refused::new(Reason::Failed).got("no such tool is offered here");
            return HostRan::new(Err(why), TxOutcome::NoOp, Amounts::ZERO);
        };
        let (effect, hold, body) = (tool.manifest.effect, call.hold, Arc::clone(&tool.body));
        caught(|| perform(call, effect, |call| body(call))).unwrap_or_else(|| {
            let result = Err(Refused::new(Reason::ProviderGone));
            HostRan::new(result, unsure(effect), hold)
        })
    }
}
