//! `org.list_agents`.

use std::{collections::BTreeSet, sync::Arc};

use syscap_format::{
    Canonical, Dimension, EffectClass, Item, Manifest, MapBuilder, ObligationKind, Param,
    ParamType, Reason, Refused, Scope, TxOutcome,
};
use syscap_kernel::{Demands, Ran, ReadPermit, ReadPlan, ReadTool, Request};

use super::registrar::{Listed, Page, Registrar, Seen};
use super::{AGENT_DIMENSION, LOOK_CPU_US, manifest};

/// Most agents that one call lists.
pub const AGENTS_MAX: u64 = 100;
/// Most bytes of a result that are not its agents.
const FRAME_BYTES: usize = 64;

/// `org.list_agents`: the calling agent, those below it, and those that its grant names.
pub(super) struct ListAgents {
    manifest: Manifest,
    registrar: Arc<dyn Registrar>,
}

impl ListAgents {
    pub(super) fn new(registrar: Arc<dyn Registrar>) -> Option<Self> {
        let after = "Only those behind this name: the last one of the list before.";
        let mut manifest = manifest("list_agents", EffectClass::Read)?
            .described("List agents", "Lists this agent, those below it, and others it may see.")
            .param(Param::optional("after", ParamType::Text, after).within(1, 128))
            .param(
                Param::optional("limit", ParamType::Int, "How many at most.").within(1, AGENTS_MAX),
            )
            .honours(ObligationKind::ResultCap);
        manifest.hold.set(Dimension::CpuUs, LOOK_CPU_US);
        Some(Self { manifest, registrar })
    }
}

impl ReadTool for ListAgents {
    type Plan = ListAgentsPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<ListAgentsPlan, Refused> {
        let others = match request.grant.scope(AGENT_DIMENSION) {
            Some(Scope::Names(names)) => {
                names.as_slice().iter().map(|name| name.as_str().to_owned()).collect()
            }
            _ => BTreeSet::new(),
        };
        let after = request.args.get("after").and_then(Item::as_text).unwrap_or_default();
        let limit = request.args.get("limit").and_then(Item::as_uint).unwrap_or(AGENTS_MAX);
        let seen = Seen {
            by: request.agent.clone(),
            others,
            after: after.to_owned(),
            limit: usize::try_from(limit.min(AGENTS_MAX)).unwrap_or(usize::MAX),
        };
        let registrar = Arc::clone(&self.registrar);
        Ok(ListAgentsPlan { demands: Demands::default(), seen, registrar })
    }
}

/// A planned `org.list_agents`.
pub(super) struct ListAgentsPlan {
    demands: Demands,
    seen: Seen,
    registrar: Arc<dyn Registrar>,
}

impl ReadPlan for ListAgentsPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, mut permit: ReadPermit<'_, Self>) -> Ran<'_> {
        match self.registrar.agents(&self.seen) {
            Some(page) => {
                page.agents.iter().for_each(|agent| permit.brings(agent.label));
                let result = result(&page, permit.result_bytes_max());
                permit.ok(result, TxOutcome::NoOp)
            }
            None => permit.failed(Refused::new(Reason::Failed), TxOutcome::NoOp),
        }
    }
}

/// `{agents: [{agent, tokens?, tools?}], more}`. A policy may ask for less than all of it.
fn result(page: &Page, bytes_max: usize) -> Canonical {
    let mut room = bytes_max.saturating_sub(FRAME_BYTES);
    let mut agents = Vec::new();
    for agent in page.agents.iter().map(listed) {
        match room.checked_sub(agent.as_bytes().len()) {
            Some(left) => room = left,
            None => break,
        }
        agents.push(agent);
    }
    let more = page.more || agents.len() < page.agents.len();
    let agents = Canonical::list(agents.into_iter());
    MapBuilder::new().item("agents", agents.item()).boolean("more", more).finish()
}

fn listed(listed: &Listed) -> Canonical {
    let map = MapBuilder::new().text("agent", listed.agent.as_str());
    let Some((tokens, tools)) = &listed.standing else { return map.finish() };
    let names: Vec<Canonical> = tools.iter().map(|tool| Canonical::text(tool.as_str())).collect();
    let tools = Canonical::list(names.into_iter());
    map.uint("tokens", *tokens).item("tools", tools.item()).finish()
}
