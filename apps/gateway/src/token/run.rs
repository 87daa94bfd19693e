//! A gateway inside a run: its token, and the approvals that its client can't give.

use syscap::format::Seq;

use crate::governed::kernelside::Unreached;
use crate::token::home::HomeKernel;

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
}
