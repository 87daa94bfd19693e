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
        let Some(own) = self.runtime.tokens(&settled.to_string())?.pop() else { return Ok(None) };
        for token in &view.tokens {
            if token.agent != self.options.agent
                || token.id == settled
                || ended(token, view.now).is_some()
            {
                continue;
            }
            let body = self.whole(token.id)?.body;
            if body.grants.leq(&own.body.grants) && self.renews(body.renews, settled)? {
                return Ok(Some(token));
            }
        }
        Ok(None)
    }

    /// True if that token is the other one, or renews it over any number of steps.
    fn renews(&self, token: Option<TokenId>, other: TokenId) -> Result<bool, Unreached> {
        let mut token = token;
        while let Some(one) = token {
            if one == other {
                return Ok(true);
            }
            token = self.whole(one)?.body.renews;
        }
        Ok(false)
    }
}
