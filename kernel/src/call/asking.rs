//! What a person is asked, and what was answered before.

use alloc::{format, string::String, vec::Vec};

use super::{Call, Checked, Resolved};
use crate::{
    context::Context,
    state::asks::{Ask, Standing},
    tool::Demand,
};
use syscap_format::{
    hash::args_hash,
    id::Seq,
    manifest::EffectClass,
    reason::{Reason, Refused},
    vault::VaultEntry,
};

/// What a call that waits for a person would touch, and do.
pub(crate) struct Asking {
    pub(crate) effect: EffectClass,
    /// In the plan's order.
    pub(crate) resources: Vec<String>,
}

impl Asking {
    pub(super) fn of(effect: EffectClass, demands: &[Demand]) -> Self {
        let shown = |demand: &Demand| format!("{}: {:#}", demand.dimension, demand.resource);
        Self { effect, resources: demands.iter().map(shown).collect() }
    }
}

/// What was answered to a call like this one.
pub(crate) enum Answered {
    /// Nothing yet: it waits under that record.
    Waits(Seq),
    /// Yes, by that record, which is the last one that it took.
    Granted(Seq),
    /// No, to what waited under that record; and why, where that was said.
    Denied(Seq, Option<String>),
}

impl Answered {
    /// What the caller is told where it does not go on.
    pub(crate) fn refusal(&self) -> Refused {
        match self {
            Self::Waits(ask) | Self::Granted(ask) => waits(*ask),
            Self::Denied(ask, why) => {
                let refused = about(Reason::ApprovalDenied, *ask);
                match why {
                    Some(why) => refused.allowed(why),
                    None => refused,
                }
            }
        }
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

/// Calls of the same agent and tool that wait, or were answered: each may be the same call.
pub(crate) type Asks<'k> = Vec<(Seq, &'k Ask)>;

impl<'k> Call<'_, Checked<'k>> {
    /// Those that may be the same call; what the vault has of them says which one is.
    pub(crate) fn asks(&self, context: &Context<'k>) -> Asks<'k> {
        let tool = self.at.found.tool;
        let state = context.state;
        let of = state.asks.of(
            &context.session.agent,
            (&tool.manifest.tool, &tool.manifest_id),
            context.now,
        );
        let token = context.session.token;
        of.filter(|(seq, ask)| *seq <= context.durable && ask.is_others(state, token)).collect()
    }
}

/// What has to be fetched of them.
pub(crate) fn wanted(asks: &Asks<'_>) -> impl Iterator<Item = (Seq, Seq)> {
    asks.iter().map(|(seq, ask)| match ask.standing {
        Standing::Denied(by, _) => (*seq, by),
        Standing::Pending(_) | Standing::Granted(..) => (*seq, *seq),
    })
}

impl Call<'_, Resolved<'_>> {
    /// What was answered to this very call: the same arguments, by the salt of what waits.
    pub(crate) fn answered(
        &self,
        asks: &Asks<'_>,
        entries: &[VaultEntry],
        context: &Context<'_>,
    ) -> Option<Answered> {
        let tool = self.at.found.tool;
        let same = |ask: &Ask, entry: &VaultEntry| {
            let hash =
                |salt| args_hash(salt, &tool.manifest.tool, &tool.manifest_id, self.at.args());
            entry.salts.as_ref().is_some_and(|salts| hash(&salts.args) == ask.args_hash)
        };
        let mut both = asks.iter().zip(entries);
        let ((seq, ask), entry) = both.rfind(|((_, ask), entry)| same(ask, entry))?;
        Some(match &ask.standing {
            Standing::Pending(_) => Answered::Waits(*seq),
            // One that has ended is as none: a person is asked anew.
            Standing::Granted(_, until) if context.now >= *until => return None,
            Standing::Granted(by, _) => Answered::Granted(*by),
            Standing::Denied(_, why) => {
                let why = why.as_ref().and_then(|why| entry.text(why));
                Answered::Denied(*seq, why.map(String::from))
            }
        })
    }
}
