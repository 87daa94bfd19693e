//! The context of a call: a session with its token, and the facts around it. Each is found once,
//! here; the steps of a call are lent it.

use alloc::collections::BTreeMap;

use crate::authority::tokens::TokenView;
use crate::state::agents::AgentState;
use crate::state::fold::State;
use crate::state::sessions::Session;
use syscap_format::{AgentId, Facts, Label, Reason, Seq, SnapshotId, Source, UnixMillis};

/// A session, and the state around it, at one moment.
pub(crate) struct Context<'a> {
    pub(crate) state: &'a State,
    pub(crate) session: &'a Session,
    pub(crate) number: Seq,
    /// The session's token, with what is left of its budget.
    pub(crate) token: TokenView<'a>,
    /// The label of everything that the session was given, or may have been.
    pub(crate) label: Label,
    /// The state of the session's agent.
    pub(crate) agent: &'a AgentState,
    /// The facts of the agent's head.
    pub(crate) facts: &'a Facts,
    /// The source of the call, as the host states it.
    pub(crate) source: Source,
    /// The last record that is durable: what lies behind it may still be lost.
    pub(crate) durable: Seq,
    /// Kernel time.
    pub(crate) now: UnixMillis,
}

impl<'a> Context<'a> {
    /// `None` where there is no such session.
    pub(crate) fn of(
        state: &'a State,
        number: Seq,
        facts: &'a BTreeMap<AgentId, Facts>,
        source: Source,
        durable: Seq,
        now: UnixMillis,
    ) -> Option<Self> {
        let session = state.sessions.get(&number)?;
        let mut token = state.tokens.view(session.token)?;
        let label = session.alone.unwrap_or(token.label);
        token.left = state.credits.bound(&session.agent, token.left);
        let agent = state.agents.get(&session.agent)?;
        let facts = facts.get(&session.agent).unwrap_or(Facts::none());
        Some(Self { state, session, number, token, label, agent, facts, source, durable, now })
    }

    /// The agent's head snapshot.
    pub(crate) const fn head(&self) -> SnapshotId {
        self.agent.id()
    }

    /// Checks that the session may act now, with this tool or without one: its token is valid, and
    /// no freeze stops it.
    ///
    /// # Errors
    /// Revocation, freeze, expiry, a list that is too old, a time to be confirmed: in this order.
    pub(crate) fn is_live(&self, tool: Option<&str>) -> Result<(), Reason> {
        let Self { state, session, token, now, .. } = self;
        let frozen = match tool {
            Some(tool) => state.frozen.stops(&session.agent, tool),
            None => state.frozen.stops_agent(&session.agent),
        };
        if token.is_revoked(*now) {
            Err(Reason::Revoked)
        } else if frozen {
            Err(Reason::Frozen)
        } else if *now >= token.body.expires {
            Err(Reason::Expired)
        } else if *now < token.body.not_before {
            Err(Reason::NotYetValid)
        } else if token.fresh_until.is_some_and(|until| *now >= until) {
            Err(Reason::StaleRevocations)
        } else if state.unconfirmed_before.is_some_and(|boot| token.rooted < boot) {
            Err(Reason::ClockUnconfirmed)
        } else {
            Ok(())
        }
    }
}
