//! Learning: the least capability under which recorded work could have been done.
//!
//! From recorded calls a token (tools, scopes, budget) and a policy (what arguments may be) are
//! proposed for each agent, every line with its evidence, and what was left out with the reason.
//!
//! * A call is evidence where it ran, brought a result, can be read, and was made in a session
//!   that had been given no stranger's word. One that was refused, or that failed, is none.
//! * A call after a stranger's word counts where it lies inside what the others show: it confirms,
//!   and never widens.
//! * Nothing is wider than the newest token of the recording.
//! * What is narrowed is as narrow as leaves the next task undisturbed: the share of tasks that
//!   would have been refused something if they had not been recorded stays within a bound, in all
//!   ([`Settings::refused_percent`]). The riskiest tools are narrowed first. Arguments are only
//!   narrowed where there are tasks enough to say so.
//! * Integers only: the same recording makes the same proposal everywhere.

mod around;
mod budgeted;
mod classes;
mod document;
mod evidence;
mod join;
mod left_out;
mod limits;
mod narrowed;
mod proposal;
mod recording;
mod scopes;
mod settings;
#[cfg(test)]
mod tests;

use alloc::{collections::BTreeSet, vec::Vec};

use syscap_format::{AgentId, GRANTS_MAX, Grants, Manifest, ToolGrant, ToolId};
use syscap_policy::{LoadError, Truth, risk, semantics::eval};

pub use join::{Denial, constraint_names, join};
pub use left_out::{LEFT_OUT_LISTED, LeftOut, Why};
pub use narrowed::{Class, Reach};
pub use proposal::{ArgumentLine, ForAgent, LimitLine, Proposal, ScopeLine, Support, ToolLine};
pub use recording::{
    Authority, Context, Ended, Lost, Observation, Paid, RecordedSession, Recording, Touched,
};
pub use settings::{Allowed, Settings};

use budgeted::Budgeted;
use classes::{Fitted, distinct, fit};
use evidence::{Call, Evidence};
use left_out::{LeftOuts, leave_out};

/// The least capability that the recording shows a need for.
///
/// # Errors
/// A document that does not load: more was recorded than a policy can say.
pub fn propose(recording: &Recording, settings: &Settings) -> Result<Proposal, LoadError> {
    let asked = |agent: &&AgentId| settings.agents.is_empty() || settings.agents.contains(agent);
    let agents: BTreeSet<&AgentId> =
        recording.sessions.values().map(|session| &session.agent).filter(asked).collect();
    let mut left_out = LeftOuts::new();
    let agents: Vec<ForAgent> = agents
        .into_iter()
        .filter_map(|agent| for_agent(agent, recording, settings, &mut left_out))
        .collect();
    let policy = document::policy(&agents)?;
    Ok(Proposal { agents, policy, left_out: left_out.into_values().collect() })
}

fn for_agent(
    agent: &AgentId,
    recording: &Recording,
    settings: &Settings,
    left_out: &mut LeftOuts,
) -> Option<ForAgent> {
    let called: BTreeSet<_> = recording.calls.iter().map(|call| call.session).collect();
    let mine = recording
        .sessions
        .iter()
        .filter(|(number, session)| session.agent == *agent && called.contains(number));
    let tokens = mine.filter_map(|(_, session)| {
        recording.tokens.get(&session.token).map(|authority| (authority, session.token))
    });
    let (ceiling, token) = tokens.max_by_key(|(authority, _)| authority.issued)?;
    let evidence = Evidence::of(agent, recording, ceiling, left_out);
    let mut budgeted = Budgeted::new(evidence.tasks, settings.refused_percent);
    let mut grants = Grants::new();
    let mut tools = Vec::new();
    for (tool, calls) in by_risk(&evidence) {
        let Some(granted) = ceiling.grants.get(tool) else { continue };
        let Some(manifest) = evidence.manifests.get(tool) else { continue };
        let (grant, line) = of_tool(manifest, calls, granted, &mut budgeted, settings);
        grants = grants.with(tool.clone(), grant);
        tools.push(line);
    }
    confirm(agent, &evidence, &grants, &mut tools, left_out);
    name(agent, recording, ceiling, settings, &mut grants, &mut tools, left_out);
    let (budget, limits) = limits::limits(agent, recording, &evidence, ceiling, settings);
    Some(ForAgent {
        agent: agent.clone(),
        ceiling: token,
        grants,
        budget,
        tools,
        limits,
        seen: Support {
            calls: evidence.tools.values().map(Vec::len).fold(0, usize::saturating_add),
            sessions: evidence.sessions.len(),
            tasks: evidence.tasks,
        },
        refused: budgeted.lost(),
        alone_with_a_tool: alone_with_a_tool(&evidence),
    })
}

/// The tools that were called, the riskiest first: what may be refused is spent on them.
fn by_risk<'e, 'r>(evidence: &'e Evidence<'r>) -> Vec<(&'r ToolId, &'e [Call<'r>])> {
    let points = |tool: &ToolId| {
        evidence.manifests.get(tool).map_or(0, |manifest| risk::base(manifest.effect))
    };
    let mut tools: Vec<_> =
        evidence.tools.iter().map(|(tool, calls)| (*tool, calls.as_slice())).collect();
    tools.sort_by_key(|(tool, _)| core::cmp::Reverse(points(tool)));
    tools
}

fn of_tool(
    manifest: &Manifest,
    calls: &[Call<'_>],
    granted: &ToolGrant,
    budgeted: &mut Budgeted,
    settings: &Settings,
) -> (ToolGrant, ToolLine) {
    let (grant, scopes) = scopes::narrow(calls, granted, budgeted, settings);
    let arguments = if manifest.effect.is_read_only() {
        Vec::new()
    } else {
        names(manifest, calls).map(|name| argument(&name, calls, budgeted, settings)).collect()
    };
    let line = ToolLine {
        tool: manifest.tool.clone(),
        effect: manifest.effect,
        seen: Support {
            calls: calls.len(),
            sessions: calls.iter().map(|c| c.observation.session).collect::<BTreeSet<_>>().len(),
            tasks: calls.iter().map(|call| call.task).collect::<BTreeSet<_>>().len(),
        },
        confirmed: 0,
        scopes,
        arguments,
    };
    (grant, line)
}

/// The arguments that a tool declares, and those that it was given besides; not those that name
/// resources, which scopes hold.
fn names<'c>(
    manifest: &'c Manifest,
    calls: &'c [Call<'_>],
) -> impl Iterator<Item = alloc::boxed::Box<str>> {
    let declared = manifest.params.iter().map(|param| param.name.clone());
    let given = calls.iter().flat_map(|call| call.item().entries().map(|(name, _)| name.into()));
    let resources: BTreeSet<&str> =
        calls.iter().flat_map(|call| call.demands()).map(|demand| demand.argument).collect();
    let all: BTreeSet<alloc::boxed::Box<str>> = declared.chain(given).collect();
    all.into_iter().filter(move |name| !resources.contains(&**name))
}

fn argument(
    name: &str,
    calls: &[Call<'_>],
    budgeted: &mut Budgeted,
    settings: &Settings,
) -> ArgumentLine {
    let mut line = ArgumentLine {
        name: name.into(),
        class: Class::Free,
        condition: None,
        values: distinct(name, calls),
        alone: 0,
        tried: Vec::new(),
    };
    for class in Class::ALL {
        let Some(Fitted { class, condition, alone }) = fit(class, name, calls, settings.headroom)
        else {
            line.tried.push((class, None));
            continue;
        };
        if budgeted.spend_on_argument(&alone) {
            return ArgumentLine { class, condition, alone: alone.len(), ..line };
        }
        line.tried.push((class, Some(alone.len())));
    }
    line
}

/// Counts calls after a stranger's word that lie inside, and leaves out those that do not.
fn confirm(
    agent: &AgentId,
    evidence: &Evidence<'_>,
    grants: &Grants,
    tools: &mut [ToolLine],
    left_out: &mut LeftOuts,
) {
    for call in &evidence.untrusted {
        let seen = call.observation;
        let line = tools.iter_mut().find(|line| line.tool == seen.tool);
        let inside = |line: &&mut ToolLine| {
            let grant = grants.get(&seen.tool);
            let touched = call.demands().iter();
            let known = matches!(seen.touched, recording::Touched::Known(_));
            let mut conditions = line.arguments.iter().filter_map(|one| one.condition.as_ref());
            let fits = known || line.scopes.is_empty();
            fits && grant.is_some_and(|grant| {
                touched.clone().all(|demand| grant.permits(demand.dimension, &demand.resource))
            }) && conditions.all(|condition| eval(condition, call) == Truth::True)
        };
        match line.filter(inside) {
            Some(line) => line.confirmed = line.confirmed.saturating_add(1),
            None => leave_out(left_out, agent, seen, Why::Untrusted),
        }
    }
}

/// Adds the tools that the operator names, as they were granted, and leaves out those that the
/// token grants and nobody called.
fn name(
    agent: &AgentId,
    recording: &Recording,
    ceiling: &Authority,
    settings: &Settings,
    grants: &mut Grants,
    tools: &mut Vec<ToolLine>,
    left_out: &mut LeftOuts,
) {
    let mut leave = |tool: &ToolId, why: Why| {
        let entry = LeftOut {
            agent: agent.clone(),
            tool: tool.clone(),
            why,
            calls: 0,
            records: Vec::new(),
        };
        left_out.entry((agent.clone(), tool.clone(), why)).or_insert(entry);
    };
    for manifest in &recording.tools {
        let tool = &manifest.tool;
        let named = settings.allow.iter().any(|allowed| allowed.names(manifest));
        match ceiling.grants.get(tool) {
            None if named => leave(tool, Why::BeyondToken),
            None => {}
            Some(_) if grants.get(tool).is_some() => {}
            Some(grant) if named && grants.iter().count() < GRANTS_MAX => {
                *grants = core::mem::take(grants).with(tool.clone(), grant.clone());
                tools.push(ToolLine {
                    tool: tool.clone(),
                    effect: manifest.effect,
                    seen: Support::default(),
                    confirmed: 0,
                    scopes: Vec::new(),
                    arguments: Vec::new(),
                });
            }
            // What was only called in vain has its line already.
            Some(_) if recording.was_called(agent, tool) => {}
            Some(_) => leave(tool, Why::NeverCalled),
        }
    }
}

fn alone_with_a_tool(evidence: &Evidence<'_>) -> usize {
    let tasks = evidence
        .tools
        .values()
        .map(|calls| calls.iter().map(|call| call.task).collect::<BTreeSet<_>>());
    tasks.filter(|tasks| tasks.len() == 1).flatten().collect::<BTreeSet<_>>().len()
}
