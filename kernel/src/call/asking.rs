//! What a person is asked, and what was answered before.

use alloc::{boxed::Box, string::String, vec::Vec};

use super::{Call, Checked, Planned};
use crate::{
    context::Context,
    inspect::{Condition, Inspect},
    state::{
        asks::{Ask, Standing},
        sets::{Place, Set},
    },
    tool::Demand,
};
use syscap_format::{
    decision::Decision,
    hash::args_hash,
    id::Seq,
    manifest::EffectClass,
    reason::{Reason, Refused},
    record::Precondition,
    vault::VaultEntry,
};

/// What a call that waits for a person would touch, and do.
pub(crate) struct Asking {
    pub(crate) effect: EffectClass,
    pub(crate) call_effect: EffectClass,
    /// All that it would touch, in the plan's order.
    pub(crate) resources: Vec<String>,
    /// Who looks at what it would change.
    pub(crate) inspector: Option<Box<dyn Inspect>>,
}

/// What was answered to a call like this one.
pub(crate) struct Answered<'k> {
    same: Option<Said>,
    /// Those that cover what it would touch.
    sets: Vec<(Seq, &'k Set)>,
}

/// What was said to it.
#[derive(Clone)]
pub(crate) enum Said {
    /// Nothing yet: it waits under that record.
    Waits(Seq),
    /// Yes, by that record, which is the last one that it took.
    Granted(Yes),
    /// No, to what waited under that record; and why, where that was said.
    Denied(Seq, Option<String>),
}

/// An approval that lets a call through.
#[derive(Clone)]
pub(crate) struct Yes {
    pub(crate) by: Seq,
    /// Whether somebody of a level gave it.
    of_level: bool,
    /// What was shown, and must still be so.
    pub(crate) conditions: Vec<Condition>,
    /// The same as it stands on record.
    pub(crate) recorded: Vec<Precondition>,
}

impl Yes {
    /// By a set, which is for more calls than the one that was shown.
    const fn of_set(by: Seq) -> Self {
        Self { by, of_level: false, conditions: Vec::new(), recorded: Vec::new() }
    }
}

impl Answered<'_> {
    /// What of it answers what the policy asks for. A set answers what was asked when it was given:
    /// where another constraint matches, a person is asked about that.
    pub(crate) fn to(&self, decision: &Decision) -> Option<Said> {
        let set = self.sets.iter().find(|(_, set)| set.answers(decision));
        let set = set.map(|(by, _)| Said::Granted(Yes::of_set(*by)));
        match &self.same {
            Some(Said::Granted(yes)) if yes.of_level || !decision.asks_for_a_level() => {
                self.same.clone()
            }
            Some(Said::Denied(..)) => self.same.clone(),
            Some(Said::Granted(_)) => set,
            None | Some(Said::Waits(_)) => set.or_else(|| self.same.clone()),
        }
    }
}

/// What the caller is told of a call that was refused by a person.
pub(crate) fn denied(ask: Seq, why: Option<&str>) -> Refused {
    let refused = about(Reason::ApprovalDenied, ask);
    match why {
        Some(why) => refused.allowed(why),
        None => refused,
    }
}

/// What is said of a call that waits under that record.
pub(crate) fn waits(ask: Seq) -> Refused {
    about(Reason::Asked, ask).allowed("the same call, once a person has approved it")
}

/// Names the ask that a refusal is about.
fn about(reason: Reason, ask: Seq) -> Refused {
    Refused::new(reason).field("approval").got(&ask)
}

/// What may have been answered already of a call: those of the same agent and tool that wait, or
/// were answered, each of which may be the same call; and the sets that may cover it.
#[derive(Default)]
pub(crate) struct Asks<'k> {
    asks: Vec<(Seq, &'k Ask)>,
    sets: Vec<(Seq, &'k Set)>,
}

impl<'k> Call<'_, Checked<'k>> {
    /// Those that may be the same call; what the vault has of them says which one is.
    pub(crate) fn asks(&self, context: &Context<'k>) -> Asks<'k> {
        let tool = self.at.found.tool;
        let tool = (&tool.manifest.tool, &tool.manifest_id);
        let place = Place {
            agent: &context.session.agent,
            tool: tool.0,
            manifest: tool.1,
            token: context.session.token,
            session: context.number,
            policy: context.state.policy,
            label: context.session.label,
            now: context.now,
        };
        let state = context.state;
        let of = state.asks.of(&context.session.agent, tool, context.now);
        let token = context.session.token;
        let known =
            |(seq, ask): &(Seq, &Ask)| *seq <= context.durable && ask.is_others(state, token);
        let sets = state.sets.of(&place).filter(|(by, _)| *by <= context.durable);
        Asks { asks: of.filter(known).collect(), sets: sets.collect() }
    }
}

/// What has to be fetched of them.
pub(crate) fn wanted(asks: &Asks<'_>) -> impl Iterator<Item = (Seq, Seq)> {
    let of_asks = asks.asks.iter().map(|(seq, ask)| match ask.standing {
        Standing::Denied(by, _) => (*seq, by),
        Standing::Pending(..) | Standing::Granted(..) => (*seq, *seq),
    });
    of_asks.chain(asks.sets.iter().map(|(_, set)| (set.ask, set.ask)))
}

impl<'k> Call<'_, Planned<'k>> {
    /// What was answered to this very call: the same arguments, by the salt of what waits; or to
    /// calls that touch what it does.
    pub(crate) fn answered(
        &self,
        asks: &Asks<'k>,
        entries: &[VaultEntry],
        context: &Context<'_>,
    ) -> Answered<'k> {
        let (of_asks, of_sets) = entries.split_at_checked(asks.asks.len()).unwrap_or_default();
        let covers = |set: &Set, entry: &VaultEntry| {
            let salt = entry.salts.as_ref().map(|salts| &salts.args);
            let demands = &self.at.demands;
            let covered = |demand: &Demand| set.covers((demand.dimension, &demand.resource), salt);
            // What touches nothing that has a name is in no set.
            !demands.is_empty() && demands.iter().all(covered)
        };
        let sets = asks.sets.iter().zip(of_sets);
        let sets = sets.filter(|((_, set), entry)| covers(set, entry)).map(|(found, _)| *found);
        Answered { same: self.same(&asks.asks, of_asks, context), sets: sets.collect() }
    }

    fn same(
        &self,
        asks: &[(Seq, &Ask)],
        entries: &[VaultEntry],
        context: &Context<'_>,
    ) -> Option<Said> {
        let resolved = &self.at.resolved;
        let tool = resolved.found.tool;
        let state = context.state;
        // The same words can name something else under another token.
        let same = |ask: &Ask, entry: &VaultEntry| {
            let hash =
                |salt| args_hash(salt, &tool.manifest.tool, &tool.manifest_id, resolved.args());
            entry.salts.as_ref().is_some_and(|salts| {
                hash(&salts.args) == ask.args_hash && ask.shows(&self.at.demands, &salts.args)
            })
        };
        let mut both = asks.iter().zip(entries);
        // Whom another policy named does not count for this one: those of now are asked.
        let of_level = |ask: &Ask| !ask.elevated || ask.is_of_level(state.policy);
        let counts = |ask: &Ask| {
            let denied = matches!(ask.standing, Standing::Denied(..));
            denied || (of_level(ask) && ask.goes_on(state, context.session.token))
        };
        let found = both.rfind(|((_, ask), entry)| counts(ask) && same(ask, entry));
        let ((seq, ask), entry) = found?;
        Some(match &ask.standing {
            Standing::Pending(..) => Said::Waits(*seq),
            // One that has ended is as none: a person is asked anew.
            Standing::Granted(_, until) if context.now >= *until => return None,
            Standing::Granted(by, _) => {
                let recorded = ask.preconditions.clone();
                let conditions = recorded.iter().map(|one| Condition::read(one, entry));
                // What was erased can't be held against anything: a person is asked anew.
                let conditions = conditions.collect::<Option<_>>()?;
                Said::Granted(Yes { by: *by, of_level: ask.elevated, conditions, recorded })
            }
            Standing::Denied(_, why) => {
                let why = why.as_ref().and_then(|why| entry.text(why));
                Said::Denied(*seq, why.map(String::from))
            }
        })
    }
}
