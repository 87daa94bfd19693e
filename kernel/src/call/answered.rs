//! Beside the sixth step: what a person has answered to such a call before.

use alloc::{string::String, vec::Vec};

use crate::approvals::answers::{ApprovalRequest, Standing};
use crate::approvals::conditions::Condition;
use crate::approvals::index::{Requests, SameCall};
use crate::approvals::request::{Answered, Said, WantsTexts, Yes};
use crate::approvals::sets::{Place, Set};
use crate::call::context::Context;
use crate::call::{Call, Planned};
use syscap_format::{Seq, VaultEntry};

impl<'k> Call<'_, Planned<'k>> {
    /// The answers to this very call (the same arguments), or to calls with the same resources. The
    /// index finds both; where the answer rests on texts they are those of `texts`, or must be
    /// fetched first.
    pub(crate) fn answered(
        &self,
        requests: &Requests,
        texts: Option<&(Seq, VaultEntry)>,
        context: &Context<'k>,
    ) -> Result<Answered<'k>, WantsTexts> {
        if requests.is_empty() && context.state.sets.all().next().is_none() {
            return Ok(Answered { same: None, sets: Vec::new() });
        }
        let same = match self.same(requests, context) {
            Some((seq, ask)) => self.said(seq, ask, texts, context)?,
            None => None,
        };
        let (session, tool) = (context.session, self.at.resolved.found.tool);
        let place = Place {
            agent: &session.agent,
            tool: &tool.manifest.tool,
            manifest: &tool.manifest_id,
            token: session.token,
            tokens: &context.state.tokens,
            session: context.number,
            policy: context.state.policy,
            label: context.label,
            now: context.now,
        };
        let (demands, location) = (&self.at.demands, self.at.plan.location());
        let covers = |set: &Set| set.covers(demands, location, requests.shown(set.ask));
        let sets = context.state.sets.of(&place);
        let sets = sets.filter(|(by, set)| *by <= context.durable && covers(set)).collect();
        Ok(Answered { same, sets })
    }

    /// The request about this very call that counts: the one that was answered last, or else the
    /// newest that waits. It may be so new that it is not durable yet: a call that is made twice at
    /// once asks once.
    fn same(
        &self,
        requests: &Requests,
        context: &Context<'k>,
    ) -> Option<(Seq, &'k ApprovalRequest)> {
        let (agent, resolved) = (&context.session.agent, &self.at.resolved);
        let tool = resolved.found.tool;
        let (state, token) = (context.state, context.session.token);
        let call = SameCall::of(agent, &tool.manifest.tool, &tool.manifest_id, resolved.args());
        // Whom another policy named does not count for this one: those of now are asked.
        let of_level = |ask: &ApprovalRequest| !ask.elevated || ask.is_of_level(state.policy);
        let counts = |ask: &ApprovalRequest| match ask.standing {
            Standing::Denied(..) => true,
            // An approval that has ended is as none: a person is asked anew.
            Standing::Granted(_, until) if context.now >= until => false,
            Standing::Granted(..) | Standing::Pending(..) => {
                of_level(ask) && ask.goes_on(state, token)
            }
        };
        let location = self.at.plan.location();
        let found = requests.about(&call).filter_map(|(seq, salt)| {
            let ask = state.asks.get(seq, context.now)?;
            // The same words can name something else under another token, or at another location.
            let fits = ask.is_others(state, token) && ask.shows(&self.at.demands, location, salt);
            (fits && counts(ask)).then_some((seq, ask))
        });
        found.max_by_key(|(seq, ask)| (ask.standing.answer(), *seq))
    }

    /// The answer to it.
    fn said(
        &self,
        seq: Seq,
        ask: &'k ApprovalRequest,
        texts: Option<&(Seq, VaultEntry)>,
        context: &Context<'_>,
    ) -> Result<Option<Said>, WantsTexts> {
        let read = |seq| match texts {
            Some((of, entry)) if *of == seq => Ok(entry),
            _ => Err(WantsTexts(seq)),
        };
        let is_durable = ask.standing.answer().is_some_and(|by| by <= context.durable);
        Ok(match &ask.standing {
            Standing::Pending(..) => Some(Said::Waits(seq)),
            // Before that the vault has no text of the answer.
            _ if !is_durable => Some(Said::Waits(seq)),
            Standing::Granted(by, _) => {
                let recorded = ask.preconditions.clone();
                let conditions = match &recorded[..] {
                    [] => Some(Vec::new()),
                    some => {
                        let entry = read(seq)?;
                        some.iter().map(|one| Condition::read(one, entry)).collect()
                    }
                };
                // What was erased can't be held against anything: a person is asked anew.
                conditions.map(|conditions| {
                    let of_level = ask.elevated;
                    Said::Granted(Yes { by: *by, of_level, conditions, recorded })
                })
            }
            Standing::Denied(_, None) => Some(Said::Denied(seq, None)),
            Standing::Denied(by, Some(why)) => {
                let why = read(*by)?.text(why).map(String::from);
                Some(Said::Denied(seq, why))
            }
        })
    }
}
