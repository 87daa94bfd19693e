//! Runs that a crash broke off: what became of them, as far as their tools can prove it.
//!
//! When a home is opened, before it boots, the host asks the kernel for a [`Probing`] of each
//! intent that is open, runs them, and hands what they found in with
//! [`Event::Boot`](crate::Event::Boot): the kernel itself looks at nothing. An outcome without
//! proof is unknown, and charged in full.

use alloc::sync::Arc;
use core::fmt;

use crate::tool::{AnyTool, Broken, Finding, Request};
use syscap_format::{AgentId, Canonical, HomeId, Leaf, Seq, TokenBody, ToolId};

/// A probe, for the host to run.
#[must_use = "what is not probed is unknown"]
pub struct Probing {
    pub(crate) home: HomeId,
    pub(crate) intent: Seq,
    pub(crate) leaf: Leaf,
    pub(crate) tool: Arc<dyn AnyTool>,
    pub(crate) name: ToolId,
    pub(crate) agent: AgentId,
    pub(crate) args: Canonical,
    pub(crate) token: Arc<TokenBody>,
}

impl Probing {
    /// Asks the tool.
    pub fn run(self) -> Probed {
        let Self { home, intent, leaf, .. } = self;
        let finding = self.token.grants.get(&self.name).map(|grant| {
            let (agent, args) = (&self.agent, self.args.item());
            let request = Request { agent, args, grant, token: &self.token, live: None };
            self.tool.probe(&Broken { request, intent, leaf })
        });
        Probed { home, intent, finding: finding.unwrap_or(Finding::Unknown) }
    }
}

impl fmt::Debug for Probing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Probing({} {})", self.name, self.intent)
    }
}

/// The result of a probe. Only a probe makes one.
#[derive(Debug)]
pub struct Probed {
    pub(crate) home: HomeId,
    pub(crate) intent: Seq,
    pub(crate) finding: Finding,
}
