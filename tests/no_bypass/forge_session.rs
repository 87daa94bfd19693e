//! expect: E0451
//! Sits down in a seat that nobody opened.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(agent: AgentId, token: TokenId) -> Session {
    Session {
        core: loop {},       //~
        providers: loop {},  //~
        number: Seq::new(1), //~
        agent,               //~
        token,               //~
        source: any(),       //~
    }
}

fn main() {
    drop(attack(any(), any()));
}
