//! Budgets: the most that one session needed, with headroom, never more than was granted.

use alloc::{collections::BTreeMap, vec::Vec};

use syscap_format::{AgentId, Amounts, Budget, Dimension, Seq};

use super::evidence::Evidence;
use super::proposal::LimitLine;
use super::recording::{Authority, Recording};
use super::settings::Settings;

/// The most that a session needed in each dimension: what it had used, and what was set aside
/// then.
fn needs(agent: &AgentId, recording: &Recording, evidence: &Evidence<'_>) -> Vec<(Seq, Amounts)> {
    let mut steps: BTreeMap<(Seq, Seq), (Amounts, Amounts)> = BTreeMap::new();
    for call in evidence.tools.values().flatten() {
        let seen = call.observation;
        steps.insert((seen.session, seen.seq), (seen.held, seen.used));
    }
    for paid in &recording.charges {
        let session = recording.sessions.get(&paid.session);
        if session.is_some_and(|session| session.agent == *agent)
            && evidence.sessions.contains(&paid.session)
        {
            steps.insert((paid.session, paid.seq), (paid.amounts, paid.amounts));
        }
    }
    let mut sessions: BTreeMap<Seq, (Amounts, Amounts)> = BTreeMap::new();
    for ((session, _), (held, used)) in steps {
        let (most, spent) = sessions.entry(session).or_default();
        // What is used up is never more than what was set aside, but for measured time.
        *most = joined(most, &spent.plus(&held));
        *spent = spent.plus(&used);
        *most = joined(most, spent);
    }
    sessions.into_iter().map(|(session, (most, _))| (session, most)).collect()
}

fn joined(a: &Amounts, b: &Amounts) -> Amounts {
    a.plus(&b.minus(a))
}

pub(super) fn limits(
    agent: &AgentId,
    recording: &Recording,
    evidence: &Evidence<'_>,
    ceiling: &Authority,
    settings: &Settings,
) -> (Budget, Vec<LimitLine>) {
    let needs = needs(agent, recording, evidence);
    let (granted, standard) = (ceiling.budget.amounts(), Budget::standard());
    let (mut budget, mut lines) = (Budget::none(), Vec::new());
    for dimension in Dimension::ALL {
        let counted = dimension == Dimension::Calls || dimension.is_metered();
        let each = needs.iter().filter(|_| counted);
        let each = each.map(|(session, most)| (most.get(dimension), *session));
        // Of sessions that needed the same, the first.
        let most = each
            .filter(|(most, _)| *most > 0)
            .max_by(|(a, one), (b, other)| a.cmp(b).then_with(|| other.cmp(one)));
        let wanted = match most {
            Some((most, _)) => {
                most.saturating_mul(settings.headroom.max(1)).saturating_mul(settings.sessions)
            }
            None => standard.amounts().get(dimension),
        };
        let limit = wanted.min(granted.get(dimension));
        budget = budget.with(dimension, limit);
        lines.push(LimitLine { dimension, limit, most });
    }
    (budget, lines)
}
