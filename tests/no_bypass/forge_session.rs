//! expect: E0451
//! Sits down in a seat that nobody opened.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(agent: AgentId, token: TokenId) -> Session {
    Session {
        home: loop {},  //~
        agent,          //~
        token,          //~
        source: any(),  //~
        place: loop {}, //~
    }
}

fn main() {
    drop(attack(any(), any()));
}
