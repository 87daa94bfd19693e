//! Answering calls that wait for a person, with a key of this process.

use syscap_format::{
    control::{Control, ControlBody},
    id::Seq,
    reason::{Reason, Refused},
    record::{Answer, Kind, Means},
    vault::VaultText,
};
use syscap_kernel::kernel::Event;

use super::Holding;
use crate::{
    asks::{SetTerms, answerable, body, reason_given},
    error::Error,
};

impl Holding {
    /// An answer that was signed elsewhere.
    pub(crate) fn submit_answer(
        &self,
        control: Control,
        why: Option<VaultText>,
    ) -> Result<Seq, Error> {
        let submitted = self.submit_as(control, |ticket, control, ancestor| {
            Event::Approve(ticket, control, ancestor, why)
        });
        self.answers().ring();
        submitted
    }

    /// See [`Runtime::answer`](crate::Runtime::answer).
    pub(crate) fn answer(
        &self,
        ask: Seq,
        said: (Answer, Option<&SetTerms>),
        why: Option<&str>,
    ) -> Result<Seq, Error> {
        let why = match why {
            Some(why) => Some(reason_given(why, self.core.salts.bytes()?)),
            None => None,
        };
        let leaf = self.core.look(|kernel| answerable(kernel, ask));
        let leaf = leaf.ok_or(Refused::new(Reason::UnknownAsk).field("ask").got(&ask))?;
        let body = body(leaf, said, (Means::Signer, why.as_ref()));
        let signed = self.sign_made(
            Kind::Approval,
            || Ok(body.to_bytes()),
            |ticket, control, ancestor| Event::Approve(ticket, control, ancestor, why),
        );
        self.answers().ring();
        signed
    }
}
