//! Credits in the simulated home: what operators give, and what hosts post.

use syscap_format::budget::{Amounts, Dimension};
use syscap_format::control::CreditChange;
use syscap_format::id::{AgentId, Seq};
use syscap_format::reason::Refused;
use syscap_format::record::Kind;
use syscap_kernel::kernel::{Ack, Event};

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
        self.event(Event::Control(ticket, Kind::Credit, control, None, None));
        self.commit();
        self.acked(ticket)
    }
}
