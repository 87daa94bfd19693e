//! Questions about documents.

use alloc::{collections::BTreeSet, vec::Vec};

use syscap_format::{AgentId, EffectClass, ToolId, Verdict};
use syscap_policy::{Ask, Attribute, Document, Given, Scenario, Truth, semantics};

use crate::classes;
use crate::finding::{Difference, Finding, Proof, Reach, Witness};
use crate::problem::Problem;
use crate::search::{Ending, Goal, Scope, Search};
use crate::variable::Variable;

/// Checks that two documents decide every call alike: verdict and obligations. Which constraints
/// match and which one decides is not compared.
#[must_use]
pub fn diff(first: &Document, second: &Document, limit: u64) -> Finding<Difference> {
    compare(first, second, Goal::Differ, limit)
}

/// Checks that the second document is never milder than the first.
#[must_use]
pub fn not_looser(first: &Document, second: &Document, limit: u64) -> Finding<Difference> {
    compare(first, second, Goal::Milder, limit)
}

fn compare(first: &Document, second: &Document, goal: Goal, limit: u64) -> Finding<Difference> {
    let problem = Problem::new(first, second);
    let mut search = Search::new(&problem, limit);
    let ending = search.run(goal, Scope::default());
    finding(ending, search.nodes, |scenario| {
        let first = semantics::decide(first, &scenario);
        let second = semantics::decide(second, &scenario);
        Difference { scenario, first, second }
    })
}

fn finding<T>(ending: Ending, nodes: u64, show: impl FnOnce(Scenario) -> T) -> Finding<T> {
    match ending {
        Ending::Found(scenario) => Finding::Fails(show(scenario)),
        Ending::Nothing => Finding::Holds { nodes },
        Ending::Unknown => Finding::Unknown { nodes },
    }
}

/// The mildest verdict that each class of agents can reach with a tool, of one effect class or
/// of any. The limit is for each agent and verdict.
#[must_use]
pub fn who_can(
    document: &Document,
    tool: &ToolId,
    class: Option<EffectClass>,
    limit: u64,
) -> Vec<Reach> {
    let problem = Problem::new(document, document);
    let (agents, exact) = agents(&problem, None);
    agents
        .into_iter()
        .filter_map(|agent| {
            let scope = Scope { tool: Some(tool), class, agent: Some(&agent) };
            let (proof, scenario) = mildest(&problem, scope, limit)?;
            let proof = if exact { proof } else { Proof::Unknown };
            let outcome = semantics::decide(document, &scenario);
            Some(Reach { agent, proof, witness: Witness { scenario, outcome } })
        })
        .collect()
}

/// A scenario with the mildest verdict that is found.
fn mildest(problem: &Problem<'_>, scope: Scope<'_>, limit: u64) -> Option<(Proof, Scenario)> {
    let mut proof = Proof::Exact;
    for verdict in Verdict::ALL {
        let ending = Search::new(problem, limit).run(Goal::AtMost(*verdict), scope);
        match ending {
            Ending::Found(scenario) => return Some((proof, scenario)),
            Ending::Unknown => proof = Proof::Unknown,
            Ending::Nothing => {}
        }
    }
    None
}

/// Checks that no agent but `agent`, and those below it, can get `allow`, `degrade` or `ask` for a
/// tool. The limit is for each class of agents.
#[must_use]
pub fn only(document: &Document, tool: &ToolId, agent: &AgentId, limit: u64) -> Finding<Witness> {
    only_of(document, tool, None, agent, limit)
}

/// The same of a tool of one effect class, or of any.
#[must_use]
pub fn only_of(
    document: &Document,
    tool: &ToolId,
    class: Option<EffectClass>,
    agent: &AgentId,
    limit: u64,
) -> Finding<Witness> {
    let problem = Problem::new(document, document);
    let (others, exact) = agents(&problem, Some(agent));
    let (mut nodes, mut unknown) = (0_u64, !exact);
    for other in others {
        if other.is_within(agent) {
            continue;
        }
        let scope = Scope { tool: Some(tool), class, agent: Some(&other) };
        let mut search = Search::new(&problem, limit);
        let ending = search.run(Goal::AtMost(Verdict::Ask), scope);
        nodes = nodes.saturating_add(search.nodes);
        match ending {
            Ending::Found(scenario) => {
                let outcome = semantics::decide(document, &scenario);
                return Finding::Fails(Witness { scenario, outcome });
            }
            Ending::Unknown => unknown = true,
            Ending::Nothing => {}
        }
    }
    if unknown { Finding::Unknown { nodes } } else { Finding::Holds { nodes } }
}

/// One agent of each class: those that the document tells apart, and `more` from the rest; whether
/// they are all.
fn agents(problem: &Problem<'_>, more: Option<&AgentId>) -> (Vec<AgentId>, bool) {
    let variable = problem.number_of(&Variable::One(Attribute::Agent));
    let of_agent = problem.atoms.iter().filter(|atom| Some(atom.variable) == variable);
    let asks: Vec<&Ask> = of_agent.map(|atom| &atom.ask).collect();
    let mut seen = BTreeSet::new();
    let (mut all, exact) = classes::agents(&asks, more);
    all.retain(|agent| {
        let given = Given::Agent(agent.clone());
        let answers = asks.iter().map(|ask| semantics::ask(ask, &given.value()));
        let answers: Vec<Truth> = answers.collect();
        seen.insert((answers, more.map(|outer| agent.is_within(outer))))
    });
    (all, exact)
}
