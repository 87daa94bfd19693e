//! expect: E0560
//! Hands in an approval as part of the call.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(ticket: Ticket, session: Seq, salts: CallSalts) -> Submit {
    Submit {
        ticket,
        session,
        received: Vec::new(),
        form: Form::Cbor,
        source: Source::Agent,
        salts,
        proof: None,
        unasked: false,
        decision: Decision::plain(Verdict::Allow), //~
    }
}

fn main() {
    drop(attack(any(), any(), any()));
}
