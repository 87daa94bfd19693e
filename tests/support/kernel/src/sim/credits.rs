//! Credits in the simulated home: what operators give, and what hosts post.

use syscap_format::{AgentId, Amounts, CreditChange, Dimension, RecordKind, Refused, Seq};
use syscap_kernel::{Ack, Event};

use super::Sim;

impl Sim {
    /// Posts credits that a session has used.
    pub fn post(&mut self, session: Seq, credits: u64) {
        self.posted += credits;
        let (ticket, amounts) = (self.ticket(), Amounts::ZERO);
        let amounts = amounts.with(Dimension::CreditsMicro, credits);
        self.event(Event::Charge(ticket, session, amounts));
        self.commit();
    }

    /// Gives an agent credits: whether that was taken.
    pub fn give(&mut self, agent: &str, added: u64) -> Option<&Result<Ack, Refused>> {
        let agent = AgentId::new(agent).unwrap();
        let control = self.signed(&CreditChange { agent, added });
        let ticket = self.ticket();
        self.event(Event::Control(ticket, RecordKind::Credit, control, None, None));
        self.commit();
        self.acked(ticket)
    }
}
