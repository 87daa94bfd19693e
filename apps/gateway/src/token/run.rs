//! A gateway inside a run: its token, and the approvals that its client can't give.

use syscap::format::{Seq, TokenId};
use syscap::view::{TokenInfo, View};

use crate::governed::kernelside::Unreached;
use crate::token::home::HomeKernel;
use crate::token::standing::ended;

impl HomeKernel {
    /// True if the policy would let an answer of the client's own window count, in a run.
    pub(super) fn is_for_a_window(&self, ask: Seq) -> Result<bool, Unreached> {
        if !self.options.is_in_run() {
            return Ok(false);
        }
        let (calls, _) = self.runtime.waiting()?;
        let found = calls.into_iter().find(|call| call.ask == ask);
        Ok(found.is_some_and(|call| call.means.iter().any(|means| means.is_a_clients())))
    }

    /// The newest valid token that renews a run's own, over any number of steps, and grants no more:
    /// that is the run's, too.
    pub(super) fn successor<'v>(
        &self,
        view: &'v View,
        settled: TokenId,
    ) -> Result<Option<&'v TokenInfo>, Unreached> {
        let log = syscap::Options::new().inspect(&self.options.home)?;
        let body = |token: &TokenId| log.kernel().token(token).map(|token| token.body);
        let Some(own) = body(&settled) else { return Ok(None) };
        let renews = |token: &TokenId| {
            let mut chain = std::iter::successors(Some(*token), |id| body(id)?.renews);
            chain.any(|id| id == settled)
        };
        Ok(view.tokens.iter().find(|token| {
            token.agent == self.options.agent
                && token.id != settled
                && ended(token, view.now).is_none()
                && body(&token.id).is_some_and(|body| body.grants.leq(&own.grants))
                && renews(&token.id)
        }))
    }
}
