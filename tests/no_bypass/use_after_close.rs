//! expect: E0382
//! Uses a tool of its own, and reports of it, in a session that was closed.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn begin(session: Session) {
    drop(session.close());
    drop(session.begin_use(&any::<syscap::host::OwnUse>())); //~
}

fn settle(session: Session) {
    drop(session.close());
    drop(session.settle_use(any(), &any::<syscap::host::Reported>())); //~
}

fn main() {
    begin(any());
    settle(any());
}
