//! Runs that a crash broke off: what became of them, as far as their tools can prove it.
//!
//! When a home is opened, before it boots, the host asks the kernel for a [`Probing`] of each
//! intent that is open, runs them, and hands what they found in with
//! [`Event::Boot`](crate::kernel::Event::Boot): the kernel itself looks at nothing. What no probe
//! has proved is unknown, and charged in full.

use alloc::{sync::Arc, vec::Vec};
use core::fmt;

use crate::halt::Halt;
use crate::kernel::Kernel;
use crate::store::{Store, record_at, vault_entry};
use crate::tool::{AnyTool, Request};
use syscap_format::{
    AgentId, Amounts, Body, Canonical, Commitment, HomeId, Leaf, Record, Seq, TokenBody, ToolId,
    leaf,
};

/// A run that a crash broke off: its intent is durable, and it has no outcome.
#[derive(Clone, Copy, Debug)]
pub struct Broken<'a> {
    /// What its plan was made from.
    pub request: Request<'a>,
    /// Position of the intent, as its permit had it.
    pub intent: Seq,
    /// Leaf of the intent.
    pub leaf: Leaf,
}

/// What a tool can prove of a run that a crash broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Its effect was made, whole.
    Done,
    /// Its effect was not made, and won't be: should the run still be on its way somewhere, it
    /// fails. The most that it has used; `calls` are charged besides.
    NotDone(Amounts),
    /// It can't tell.
    Unknown,
}

/// A probe, for the host to run.
#[must_use = "what is not probed is unknown"]
pub struct Probing {
    home: HomeId,
    intent: Seq,
    leaf: Leaf,
    tool: Arc<dyn AnyTool>,
    name: ToolId,
    agent: AgentId,
    args: Canonical,
    token: Arc<TokenBody>,
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

/// What a probe found. Only a probe makes one.
#[derive(Debug)]
pub struct Probed {
    pub(crate) home: HomeId,
    pub(crate) intent: Seq,
    pub(crate) finding: Finding,
}

impl Kernel {
    /// The intents without an outcome.
    #[must_use]
    pub fn open_intents(&self) -> Vec<Seq> {
        self.state.open.keys().copied().collect()
    }

    /// The probe of an open intent, made from its record and from what the vault has of it. `None`
    /// where nothing is to be asked: it only reads, its arguments are erased or not those that were
    /// recorded, or its tool is not there as it was.
    ///
    /// # Errors
    /// [`Halt`]: the store can't be read.
    pub fn probing(&self, intent: Seq, store: &mut dyn Store) -> Result<Option<Probing>, Halt> {
        let open = self.state.open.get(&intent).filter(|open| !open.effect.is_read_only());
        let Some((open, bytes)) = open.zip(record_at(store, intent)?) else {
            return Ok(None);
        };
        let Ok(Record { body: Body::Intent(said), .. }) = Record::decode(&bytes) else {
            return Ok(None);
        };
        let entry = vault_entry(store, intent, intent)?;
        let call = said.call;
        let probing = || {
            let (name, manifest) = (call.tool_id?, call.manifest?);
            let tool = self.registry.find(name.as_str())?;
            let same = tool.manifest.tool == name && tool.manifest_id == manifest;
            let tool = same.then(|| Arc::clone(&tool.tool))?;
            let arguments = Commitment::Arguments(call.args_hash?, &name, &manifest);
            let args = entry.committed(arguments)?;
            let token = Arc::clone(self.state.tokens.body(open.token)?);
            let (home, leaf, agent) = (self.state.home, leaf(&bytes), call.agent_id?);
            Some(Probing { home, intent, leaf, tool, name, agent, args, token })
        };
        Ok(probing())
    }
}
