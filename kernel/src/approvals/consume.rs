//! An approval is used up by the intent of a call that it lets through.

use crate::approvals::answers::{Standing, elevated};
use crate::approvals::sets::Place;
use crate::authority::tokens::TokenIndex;
use crate::state::fold::State;
use syscap_format::{CallFields, Precondition, Seq, UnixMillis};

impl State {
    /// Folds in that an approval let a call through, and is used up, or one use of it is.
    pub(crate) fn use_up(
        &mut self,
        approval: Seq,
        now: UnixMillis,
        token: TokenIndex,
        call: &CallFields,
        preconditions: &[Precondition],
    ) -> Option<()> {
        let Some((seq, ask)) = self.asks.granted(approval) else {
            let session = call.session.and_then(|session| self.sessions.get(&session))?;
            let place = Place {
                agent: call.agent_id.as_ref()?,
                tool: call.tool_id.as_ref()?,
                manifest: call.manifest.as_ref()?,
                token,
                tokens: &self.tokens,
                session: call.session?,
                policy: call.policy_hash,
                label: self.label_of(session),
                now,
            };
            // Who approves more calls than one knows that there will be changes.
            if !preconditions.is_empty() {
                return None;
            }
            return self.sets.spend(approval, &place, call.decision.as_ref()?);
        };
        let Standing::Granted(_, until) = ask.standing else { return None };
        let same = ask.is_others(self, token)
            && ask.goes_on(self, token)
            && call.agent_id.as_ref() == Some(&ask.agent)
            && call.tool_id.as_ref() == Some(&ask.tool)
            && call.manifest == Some(ask.manifest)
            && (ask.is_of_level(call.policy_hash) || !elevated(call))
            && ask.preconditions == preconditions;
        if !same || now >= until {
            return None;
        }
        self.asks.0.remove(&seq).map(drop)
    }
}
