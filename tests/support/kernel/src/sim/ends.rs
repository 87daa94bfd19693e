//! What ends for good in the simulated home: tokens, and calls that are out.

use syscap_format::{
    CancelBody, ControlBody, RecordKind, Revocation, RevocationList, Seq, TokenId,
};
use syscap_kernel::{Event, Ticket};

use super::Sim;

impl Sim {
    pub fn control<B: ControlBody>(&mut self, body: &B) -> Ticket {
        let (control, ticket) = (self.signed(body), self.ticket());
        self.event(Event::Control(ticket, B::KIND, control, None, None));
        ticket
    }

    pub fn end(&mut self, revocation: &Revocation) -> Ticket {
        self.control(revocation)
    }

    /// Ends a token by a list, and one that there is not.
    pub fn list(&mut self, token: TokenId) {
        let version = self.kernel.list().map_or(0, |last| last.version) + 1;
        let coming = TokenId::from_bytes([u8::try_from(version % 256).unwrap(); 32]);
        let mut tokens = vec![token, coming];
        tokens.sort_unstable();
        let as_of = self.kernel.now();
        self.control(&RevocationList { version, as_of, tokens, cause: None });
    }

    /// The revoker cancels a call.
    pub fn cancel(&mut self, intent: Seq) -> Ticket {
        assert_eq!(CancelBody::KIND, RecordKind::Cancel);
        self.control(&CancelBody { intent, cause: None })
    }

    /// A session cancels a call.
    pub fn cancel_by(&mut self, session: Seq, intent: Seq) -> Ticket {
        let ticket = self.ticket();
        self.event(Event::Cancel(ticket, session, intent));
        ticket
    }
}
