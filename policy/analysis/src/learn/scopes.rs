//! Scopes: what is drawn around the resources that were touched, never beyond what was granted.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;

use syscap_format::{Hosts, Resource, Scope, ToolGrant};

use super::around::around;
use super::budgeted::Budgeted;
use super::evidence::Call;
use super::narrowed::Reach;
use super::proposal::ScopeLine;
use super::recording::Touched;
use super::settings::Settings;

/// The resources that a tool's calls touched in one dimension, with the tasks that touched them.
type Touching<'r> = BTreeMap<Shown, (&'r Resource, BTreeSet<usize>)>;

/// Resources have no order of their own; each has one text.
type Shown = alloc::string::String;

/// The scopes of one tool: those that its calls need, each within the one that was granted.
pub(super) fn narrow(
    calls: &[Call<'_>],
    granted: &ToolGrant,
    budgeted: &mut Budgeted,
    settings: &Settings,
) -> (ToolGrant, Vec<ScopeLine>) {
    let unknown = calls.iter().any(|call| matches!(call.observation.touched, Touched::Unknown));
    let (mut grant, mut lines) = (ToolGrant::new(), Vec::new());
    for (dimension, outer) in granted.iter() {
        let mut touching: Touching<'_> = BTreeMap::new();
        for call in calls {
            let here = call.demands().iter().filter(|demand| demand.dimension == dimension);
            for demand in here {
                let entry = touching
                    .entry(format!("{:?}", demand.resource))
                    .or_insert_with(|| (&demand.resource, BTreeSet::new()));
                entry.1.insert(call.task);
            }
        }
        // A dimension that no call needed is no need. What is not known is left as it was.
        if touching.is_empty() && !unknown {
            continue;
        }
        let line = choose(dimension, outer, &touching, unknown, budgeted, settings);
        grant = grant.with(dimension, line.scope.clone());
        lines.push(line);
    }
    (grant, lines)
}

fn choose(
    dimension: &str,
    outer: &Scope,
    touching: &Touching<'_>,
    unknown: bool,
    budgeted: &mut Budgeted,
    settings: &Settings,
) -> ScopeLine {
    let mut line = ScopeLine {
        dimension: dimension.into(),
        reach: Reach::Granted,
        scope: outer.clone(),
        resources: touching.len(),
        alone: 0,
        tried: Vec::new(),
    };
    if unknown {
        return line;
    }
    let all: Vec<&Resource> = touching.values().map(|(resource, _)| *resource).collect();
    for reach in [Reach::Touched, Reach::Gathered, Reach::Common] {
        let scope = around(reach, &all, settings).and_then(|scope| scope.meet(outer));
        let Some(scope) = scope.filter(|scope| all.iter().all(|one| scope.permits(one))) else {
            continue;
        };
        let alone = alone(reach, &scope, outer, touching, settings);
        if budgeted.spend_on_scope(&alone) {
            return ScopeLine { reach, scope, alone: alone.len(), ..line };
        }
        line.tried.push((reach, alone.len()));
    }
    line
}

/// Tasks that would be refused by what is drawn around the others' resources. Only one that is
/// alone with a resource can be. Only wider forms within `scope` count: around fewer resources
/// something wider may be drawn.
fn alone(
    reach: Reach,
    scope: &Scope,
    outer: &Scope,
    touching: &Touching<'_>,
    settings: &Settings,
) -> BTreeSet<usize> {
    let lonely = touching.values().filter(|(_, tasks)| tasks.len() == 1);
    let lonely: BTreeSet<usize> = lonely.flat_map(|(_, tasks)| tasks).copied().collect();
    let lost = |task: &usize| {
        let without = |tasks: &BTreeSet<usize>| tasks.iter().any(|other| other != task);
        let others: Vec<&Resource> = touching
            .values()
            .filter(|(_, tasks)| without(tasks))
            .map(|(resource, _)| *resource)
            .collect();
        let drawn = around(reach, &others, settings).and_then(|scope| scope.meet(outer));
        let drawn = drawn.as_ref().map(parts).unwrap_or_default();
        let drawn: Vec<Scope> = drawn.into_iter().filter(|part| part.leq(scope)).collect();
        let mut own = touching.values().filter(|(_, tasks)| tasks.contains(task));
        !own.all(|(resource, _)| drawn.iter().any(|part| part.permits(resource)))
    };
    lonely.into_iter().filter(lost).collect()
}

/// The parts of a scope.
fn parts(scope: &Scope) -> Vec<Scope> {
    match scope {
        Scope::Paths(paths) => {
            paths.rules().iter().filter_map(|rule| Scope::paths([rule.clone()]).ok()).collect()
        }
        Scope::Hosts(hosts) => {
            let each = hosts.patterns().iter().map(|pattern| Hosts::new([pattern.clone()]));
            each.filter_map(Result::ok).map(Scope::Hosts).collect()
        }
        whole => Vec::from([whole.clone()]),
    }
}
