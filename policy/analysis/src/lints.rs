//! Oddities of a document, where they are exact.

use alloc::{collections::BTreeMap, vec::Vec};

use syscap_format::{ConstraintId, ToolId, Verdict};
use syscap_policy::{Document, Effect, Subject};

use super::finding::Finding;
use super::problem::{Problem, SIDES};
use super::search::{Ending, Goal, Scope, Search};

/// Something odd about one constraint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lint {
    /// The constraint.
    pub constraint: ConstraintId,
    /// The kind of oddity.
    pub kind: LintKind,
}

/// One kind of oddity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LintKind {
    /// No call ever matches it.
    NeverMatches,
    /// It tests something, and yet every call that it is about matches it.
    AlwaysMatches,
    /// Without it every verdict and every obligation would be the same.
    Redundant,
    /// It allows a tool for which no call is ever allowed, degraded or asked about.
    OutOfReach(ToolId),
}

/// Looks for oddities of each constraint, sorted by constraint. The limit is for each question.
///
/// Each listed oddity is exact; the answer is `Unknown` if a question had no exact answer, and
/// `Holds` if there is no oddity.
#[must_use]
pub fn lints(document: &Document, limit: u64) -> Finding<Vec<Lint>> {
    let problem = Problem::new(document, document);
    let mut found = Vec::new();
    let (mut nodes, mut unknown) = (0_u64, false);
    let mut ask = |search: &mut Search<'_, '_>, goal, scope| {
        search.nodes = 0;
        let ending = search.run(goal, scope);
        nodes = nodes.saturating_add(search.nodes);
        unknown |= ending == Ending::Unknown;
        ending == Ending::Nothing
    };
    let mut search = Search::new(&problem, limit);
    let mut twins: BTreeMap<usize, u32> = BTreeMap::new();
    for rule in &problem.rule_of {
        let count = twins.entry(*rule).or_default();
        *count = count.saturating_add(1);
    }
    let mut reach: BTreeMap<&ToolId, bool> = BTreeMap::new();
    for (constraint, number) in document.constraints.iter().zip(&problem.rule_of) {
        let lint = |kind| Lint { constraint: constraint.id.clone(), kind };
        let tests = problem.rules.get(*number).is_some_and(|rule| rule.when.has_questions());
        if ask(&mut search, Goal::Matches(*number), Scope::default()) {
            found.push(lint(LintKind::NeverMatches));
        } else if tests && ask(&mut search, Goal::Fails(*number), Scope::default()) {
            found.push(lint(LintKind::AlwaysMatches));
        }
        let same = twins.get(number).is_some_and(|count| *count > 1);
        if same || {
            without(&mut search, *number, [true, false]);
            let redundant = ask(&mut search, Goal::Differ, Scope::default());
            without(&mut search, *number, [true, true]);
            redundant
        } {
            found.push(lint(LintKind::Redundant));
        }
        if let (Effect::Allow, Subject::Tool(tool)) = (constraint.effect, &constraint.subject) {
            let scope = Scope { tool: Some(tool), ..Scope::default() };
            let out = *reach
                .entry(tool)
                .or_insert_with(|| ask(&mut search, Goal::AtMost(Verdict::Ask), scope));
            if out {
                found.push(lint(LintKind::OutOfReach(tool.clone())));
            }
        }
    }
    match (found.is_empty(), unknown) {
        (false, _) => Finding::Fails(found),
        (true, true) => Finding::Unknown { nodes },
        (true, false) => Finding::Holds { nodes },
    }
}

fn without(search: &mut Search<'_, '_>, rule: usize, of: [bool; SIDES]) {
    if let Some(slot) = search.of.get_mut(rule) {
        *slot = of;
    }
}
