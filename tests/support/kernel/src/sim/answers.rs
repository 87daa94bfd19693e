//! What a person says to a call that waits.

use syscap_format::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, Grants, Leaf, Role, UnixMillis,
};
use syscap_kernel::Event;

use super::Sim;

impl Sim {
    /// Answers a call that waits, with the key of a role.
    pub fn answer(&mut self, ask: Leaf, answer: ApprovalAnswer, by: Role) {
        self.answer_set(ask, answer, (None, None, None), by);
    }

    /// The same for as many calls, within scopes, until then.
    pub fn answer_set(
        &mut self,
        ask: Leaf,
        answer: ApprovalAnswer,
        (uses, scopes, expires): (Option<u64>, Option<Grants>, Option<UnixMillis>),
        by: Role,
    ) {
        let (means, reason) = (ApprovalChannel::Signer, None);
        let body = ApprovalBody { ask, answer, means, scopes, uses, expires, reason };
        let control = self.signed_by(&body, by);
        let ticket = self.ticket();
        self.event(Event::Control(
            ticket,
            syscap_format::RecordKind::Approval,
            control,
            None,
            None,
        ));
    }
}
