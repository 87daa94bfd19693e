//! expect: E0382
//! Calls through a session that was closed.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(session: Session) {
    drop(session.close());
    drop(session.call("fs.read", syscap::args! { "path": "a.txt" })); //~
}

fn main() {
    attack(any());
}
