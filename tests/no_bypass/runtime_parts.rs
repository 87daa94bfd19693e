//! expect: E0616
//! Gets at the runtime's kernel and store, its signer and its files.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(runtime: Runtime, session: Session) {
    drop(runtime.core); //~
    drop(runtime.inner); //~
    drop(runtime.providers); //~
    drop(session.core); //~
}

fn main() {
    attack(any(), any());
}
