//! Answering calls that wait for a person, with a key of this process.

use syscap_format::{
    control::{Control, ControlBody},
    id::Seq,
    reason::{Reason, Refused},
    record::{Answer, ApprovalBody, Kind, Means},
    vault::VaultText,
};
use syscap_kernel::kernel::Event;

use super::Holding;
use crate::{asks::reason_given, error::Error};

impl Holding {
    /// An answer that was signed elsewhere.
    pub(crate) fn submit_answer(
        &self,
        control: Control,
        why: Option<VaultText>,
    ) -> Result<Seq, Error> {
        self.submit_as(control, |ticket, control, ancestor| {
            Event::Approve(ticket, control, ancestor, why)
        })
    }

    /// See [`Runtime::answer`](crate::Runtime::answer).
    pub(crate) fn answer(&self, ask: Seq, answer: Answer, why: Option<&str>) -> Result<Seq, Error> {
        let why = match why {
            Some(why) => Some(reason_given(why, self.core.salts.bytes()?)),
            None => None,
        };
        let find = |kernel: &syscap_kernel::kernel::Kernel| {
            kernel.asks().find(|waiting| waiting.ask == ask).map(|waiting| waiting.leaf)
        };
        let leaf = self.core.look(find);
        let leaf = leaf.ok_or(Refused::new(Reason::UnknownAsk).field("ask").got(&ask))?;
        let body = ApprovalBody {
            ask: leaf,
            answer,
            means: Means::Signer,
            scopes: None,
            uses: None,
            expires: None,
            reason: why.as_ref().map(VaultText::hash),
        };
        self.sign_made(
            Kind::Approval,
            || Ok(body.to_bytes()),
            |ticket, control, ancestor| Event::Approve(ticket, control, ancestor, why),
        )
    }
}
