//! expect: E0616
//! Gets at the runtime's kernel and store, its signer and its files.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(runtime: Runtime, session: Session) {
    drop(runtime.home); //~
    drop(session.home); //~
    drop(session.place); //~
}

fn main() {
    attack(any(), any());
}
