//! Rows of the vault that an operator has erased.

use alloc::vec::Vec;

use crate::authority::control::is_the_cause;
use crate::halt::Halt;
use crate::machine::Kernel;
use crate::store::{Ancestor, WithRows};
use crate::tool::Ticket;
use syscap_format::{
    BodyView, Control, ControlBody as _, Reason, RecordKind, RedactBody, Refused, Seq, SignedEvent,
    VaultText,
};

impl Kernel {
    /// An operator has rows erased: what the kernel itself knows of them is forgotten, as it would be
    /// not known after an opening.
    pub(crate) fn redact(
        &mut self,
        ticket: Ticket,
        control: Control,
        ancestor: Option<Ancestor>,
        rows: &WithRows,
        text: Option<VaultText>,
    ) -> Result<(), Halt> {
        let kind = RecordKind::Redact;
        let checked = self.authorised(kind, &control, ancestor);
        let checked = checked.and_then(|()| match &text {
            Some(text) => is_the_cause(kind, &control.body, text),
            None => Ok(()),
        });
        let records = match checked.and_then(|()| self.erasable(&control.body, rows)) {
            Ok(records) => records,
            Err(refused) => return self.refuse_control(ticket, refused),
        };
        let agents = self.state.agents.iter();
        for (agent, state) in agents {
            let Some(facts) = self.facts.get_mut(agent) else { continue };
            let gone = |fact: &Seq| records.binary_search(fact).is_ok();
            for (key, _) in state.facts().iter().filter(|(_, fact)| gone(&fact.written)) {
                facts.set(key.clone(), None);
            }
        }
        self.requests.forget(&records);
        let event = SignedEvent { control };
        self.pending.erase(&records);
        self.record(ticket, BodyView::Redact(&event), text)?;
        self.redacting.push_back(self.state.head.seq);
        Ok(())
    }

    /// The records of a `redact` event, if their rows may go.
    fn erasable(&self, body: &[u8], rows: &WithRows) -> Result<Vec<Seq>, Refused> {
        let bad = || Refused::new(Reason::BadControl).field("records");
        let body = RedactBody::from_bytes(body).map_err(|_| bad())?;
        if !body.is_sound(self.state.head.seq.next()) {
            return Err(bad().allowed("records before it, ascending, none twice"));
        }
        if rows.home != self.state.home || rows.records != body.records {
            return Err(bad().allowed("records that may have rows"));
        }
        match body.records.iter().find(|record| self.state.open.contains_key(record)) {
            Some(open) => Err(bad().got(open).allowed("calls that have ended")),
            None => Ok(body.records),
        }
    }
}
