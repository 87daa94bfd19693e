//! The verdicts that a proposal would have given for the calls on record.
//!
//! Each call that a policy has decided is decided once more: its question is put together anew from
//! the log and the vault, as for [`Inspection::replay`], the proposed policy is asked, and what the
//! call would touch is held against the proposed token. Budgets are not played again.

use std::cell::RefCell;

use syscap_analysis::learn::{Denial, Proposal};
use syscap_format::{
    AgentId, ConstraintId, Decision, EngineIdentity, Reason, RecordKind, Seq, ToolId, Verdict,
};
use syscap_kernel::{Demand, NotAsked, PolicyEngine, Question, Redecided};
use syscap_policy::Policy;

use crate::{Error, Inspection, inspect::learn::Scan};

/// Most calls that are named of each kind: the first.
pub const PREVIEWED_MAX: usize = 32;

/// The verdicts of a proposal on recorded calls.
#[derive(Clone, Debug, Default)]
pub struct Preview {
    /// Calls that it allows.
    pub allowed: Previewed,
    /// Calls that it asks a person about.
    pub asked: Previewed,
    /// Calls that it refuses.
    pub refused: Previewed,
    /// Calls that can't be decided again.
    pub not_asked: Previewed,
    /// All that it lets run and that asked, or that a person denied: they count in `allowed` too.
    pub loosened: Vec<Loosened>,
}

/// A call that a proposal lets run, and that did not run by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loosened {
    /// The record that holds the decision.
    pub seq: Seq,
    /// The agent.
    pub agent: AgentId,
    /// The tool.
    pub tool: ToolId,
    /// The call's outcome.
    pub was: Was,
}

/// The earlier answer to a call that a proposal allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Was {
    /// A person was to be asked.
    Asked,
    /// A person denied it.
    Denied,
    /// The policy in force then refused it.
    Refused,
}

impl Was {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Asked => "ask",
            Self::Denied => "denied by a person",
            Self::Refused => "deny",
        }
    }
}

/// Calls of one kind.
#[derive(Clone, Debug, Default)]
pub struct Previewed {
    /// How many.
    pub count: u64,
    /// How many of them had been let run, by the policy or by a person.
    pub ran: u64,
    /// The first [`PREVIEWED_MAX`].
    pub calls: Vec<PreviewedCall>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewedCall {
    /// The record that holds the decision.
    pub seq: Seq,
    /// The agent.
    pub agent: AgentId,
    /// The tool.
    pub tool: ToolId,
    /// The verdict when the call was made.
    pub was: Verdict,
    /// Why.
    pub why: WhyNot,
}

/// Why a call is not let run by a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// The policy's constraint; `None` where no allow speaks of the call.
    Policy(Option<ConstraintId>),
    /// The proposed token does not grant it: [`Reason::NotGranted`] or [`Reason::OutOfScope`].
    Token(Reason),
    /// It can't be decided again.
    NotAsked(NotAsked),
}

/// Asks the proposed policy, and keeps what the call would touch.
struct Watched<'a> {
    policy: &'a Policy,
    demands: RefCell<Vec<Demand>>,
}

impl PolicyEngine for Watched<'_> {
    fn identity(&self) -> EngineIdentity {
        self.policy.identity()
    }

    fn document(&self) -> Vec<u8> {
        self.policy.document()
    }

    fn decide(&self, question: &Question<'_>) -> Decision {
        self.demands.replace(question.demands.to_vec());
        self.policy.decide(question)
    }
}

impl Inspection {
    /// Previews a proposal on the recorded calls that a policy has decided, from the scan's first
    /// record on, of the proposal's agents.
    ///
    /// # Errors
    /// As [`Options::open`](crate::Options::open).
    pub fn preview(
        &self,
        proposal: &Proposal,
        denied: &[Denial],
        scan: &Scan,
    ) -> Result<Preview, Error> {
        let watched = Watched { policy: &proposal.policy, demands: RefCell::default() };
        let mut preview = Preview::default();
        let mut store = self.store();
        self.kernel().replay(&mut **store, &watched, &mut |redecided| {
            let demands = watched.demands.take();
            if redecided.seq >= scan.from {
                let is_denied = denied.iter().any(|one| one.ask == redecided.seq);
                let was = if is_denied { Was::Denied } else { Was::Asked };
                preview.take(proposal, redecided, &demands, was);
            }
        })?;
        Ok(preview)
    }
}

impl Preview {
    fn take(&mut self, proposal: &Proposal, redecided: Redecided, demands: &[Demand], asked: Was) {
        let Redecided { seq, kind: record, agent, tool, was, now } = redecided;
        let Some(proposed) = proposal.agents.iter().find(|one| one.agent == agent) else { return };
        let (kind, why) = match now {
            Err(why) => (&mut self.not_asked, WhyNot::NotAsked(why)),
            Ok(now) => match (beyond(proposed.grants.get(&tool), demands), now.verdict) {
                // As for a call that is made, the token comes first.
                (Some(reason), _) => (&mut self.refused, WhyNot::Token(reason)),
                (None, Verdict::Allow | Verdict::Degrade) => {
                    let loosened = match was.verdict {
                        Verdict::Allow | Verdict::Degrade => None,
                        Verdict::Ask => Some(asked),
                        Verdict::Defer | Verdict::Deny => Some(Was::Refused),
                    };
                    let (agent, tool) = (agent.clone(), tool.clone());
                    let of = |was| Loosened { seq, agent, tool, was };
                    self.loosened.extend(loosened.map(of));
                    (&mut self.allowed, WhyNot::Policy(now.deciding))
                }
                (None, Verdict::Ask) => (&mut self.asked, WhyNot::Policy(now.deciding)),
                (None, Verdict::Defer | Verdict::Deny) => {
                    (&mut self.refused, WhyNot::Policy(now.deciding))
                }
            },
        };
        kind.count = kind.count.saturating_add(1);
        // Also what a person approved ran, and not what the budget refused.
        kind.ran = kind.ran.saturating_add(u64::from(record == RecordKind::Intent));
        if kind.calls.len() < PREVIEWED_MAX {
            kind.calls.push(PreviewedCall { seq, agent, tool, was: was.verdict, why });
        }
    }
}

/// Why a token that grants so much does not permit a call.
fn beyond(grant: Option<&syscap_format::ToolGrant>, demands: &[Demand]) -> Option<Reason> {
    let Some(grant) = grant else { return Some(Reason::NotGranted) };
    let permits = |demand: &Demand| grant.permits(demand.dimension, &demand.resource);
    (!demands.iter().all(permits)).then_some(Reason::OutOfScope)
}
