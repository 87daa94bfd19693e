//! What a person says to a call that waits.

use syscap_format::control::Role;
use syscap_format::id::Leaf;
use syscap_format::record::{Answer, ApprovalBody, Means};
use syscap_format::time::UnixMillis;
use syscap_format::token::Grants;
use syscap_kernel::kernel::Event;

use super::Sim;

impl Sim {
    /// Answers a call that waits, with the key of a role.
    pub fn answer(&mut self, ask: Leaf, answer: Answer, by: Role) {
        self.answer_set(ask, answer, (None, None, None), by);
    }

    /// The same for as many calls, within scopes, until then.
    pub fn answer_set(
        &mut self,
        ask: Leaf,
        answer: Answer,
        (uses, scopes, expires): (Option<u64>, Option<Grants>, Option<UnixMillis>),
        by: Role,
    ) {
        let (means, reason) = (Means::Signer, None);
        let body = ApprovalBody { ask, answer, means, scopes, uses, expires, reason };
        let control = self.signed_by(&body, by);
        let ticket = self.ticket();
        self.event(Event::Control(
            ticket,
            syscap_format::record::Kind::Approval,
            control,
            None,
            None,
        ));
    }
}
