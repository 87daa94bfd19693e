//! expect: E0616
//! Makes a session another's.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(session: &mut Session, token: TokenId) {
    session.place = any(); //~
    session.token = token; //~
    session.source = Source::User; //~
}

fn main() {
    attack(any(), any());
}
