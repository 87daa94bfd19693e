//! Answering calls that wait for a person, with a key of this process.

use std::time::Duration;

use syscap_format::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, Control, ControlBody, Reason, RecordKind,
    Refused, Seq, VaultText,
};
use syscap_kernel::{AskView, Event};

use crate::approvals::asks::{SetTerms, answerable, asked_for, body, manifest_of, reason_given};
use crate::error::Error;
use crate::server::{Holding, waits};
use crate::transport::Watched;
use crate::transport::limits::WAIT_TIME;

impl Holding {
    /// How often what waits has changed: once that is another number than was seen, the time is
    /// over, or the server ends.
    pub(crate) fn watch(&self, watched: Watched) -> u64 {
        let limit = Duration::from_millis(watched.limit).min(WAIT_TIME);
        match self.uses().is_closing() {
            true => self.core.asks.count(),
            false => self.core.asks.wait(watched.seen, limit),
        }
    }

    /// An answer that was signed elsewhere.
    pub(crate) fn submit_answer(
        &self,
        control: Control,
        why: Option<VaultText>,
    ) -> Result<Seq, Error> {
        if let Ok(body) = ApprovalBody::from_bytes(&control.body)
            && body.answer != ApprovalAnswer::Deny
        {
            self.stands(|view| view.leaf == body.ask)?;
        }
        let submitted = self.submit_as(control, |ticket, control, ancestor| {
            Event::Control(ticket, RecordKind::Approval, control, ancestor, why)
        });
        waits::ring(&self.core);
        submitted
    }

    /// A yes is not taken where it would come to nothing: the tool of the call is another by now,
    /// so that the same call asks anew.
    pub(crate) fn stands(&self, meant: impl Fn(&AskView) -> bool) -> Result<(), Error> {
        let found = self.core.look(|kernel| {
            let view = kernel.asks().find(|view| meant(view))?;
            Some((view.ask, manifest_of(kernel, &view.tool)))
        });
        let Some((ask, now)) = found else { return Ok(()) };
        let asked = self.core.read(|store| Ok(asked_for(store, ask)?))?;
        // Of a tool that is gone the kernel says what it knows.
        if asked.is_none() || now.is_none() || asked == now {
            return Ok(());
        }
        let refused = Refused::new(Reason::ToolChanged).field("ask").got(&ask);
        Err(refused.allowed("the same call, made again, asks anew").into())
    }

    /// See [`Runtime::answer`](crate::Runtime::answer).
    pub(crate) fn answer(
        &self,
        ask: Seq,
        answer: ApprovalAnswer,
        terms: Option<&SetTerms>,
        why: Option<&str>,
    ) -> Result<Seq, Error> {
        let why = match why {
            Some(why) => Some(reason_given(why, self.core.salts.bytes()?)),
            None => None,
        };
        let leaf = self.core.look(|kernel| answerable(kernel, ask));
        let leaf = leaf.ok_or(Refused::new(Reason::UnknownAsk).field("ask").got(&ask))?;
        if answer != ApprovalAnswer::Deny {
            self.stands(|view| view.ask == ask)?;
        }
        let body = body(leaf, answer, terms, ApprovalChannel::Signer, why.as_ref());
        let signed = self.sign_made(
            RecordKind::Approval,
            || Ok(body.to_bytes()),
            |ticket, control, ancestor| {
                Event::Control(ticket, RecordKind::Approval, control, ancestor, why)
            },
        );
        waits::ring(&self.core);
        signed
    }
}
