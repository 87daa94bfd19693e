//! The charges of a call: to its token, to all ancestors of that, and to the accounts that pay for
//! its agent.

use crate::{authority::tokens::TokenIndex, state::fold::State};
use syscap_format::{AgentId, Amounts, Charge, Seq};

impl State {
    /// The amounts left in each dimension: the tightest of a token's chain, and of the accounts
    /// that pay for its agent.
    pub(crate) fn left(&self, token: TokenIndex) -> Amounts {
        let left = self.tokens.left(token);
        match self.tokens.body(token) {
            Some(body) => self.credits.bound(&body.agent, left),
            None => left,
        }
    }

    /// Sets aside what an intent holds.
    pub(crate) fn hold(&mut self, intent: Seq, token: TokenIndex, agent: &AgentId, held: &Amounts) {
        self.tokens.hold(token, held);
        self.credits.hold(agent, intent, held);
    }

    /// Charges what a host has posted.
    pub(crate) fn posted(&mut self, seq: Seq, charge: &Charge) -> Option<()> {
        let token = self.tokens.find(&charge.token)?;
        self.settle(seq, token, &Amounts::ZERO, &charge.amounts);
        self.tokens.exhaust_where_used_up(token, &charge.amounts);
        Some(())
    }

    /// Frees what an intent has set aside and charges what was used; or charges what was posted by
    /// a record after the fact.
    pub(crate) fn settle(&mut self, seq: Seq, token: TokenIndex, held: &Amounts, used: &Amounts) {
        self.tokens.settle(token, held, used);
        if let Some(body) = self.tokens.body(token) {
            self.credits.settle(&body.agent, seq, held, used);
        }
    }
}
