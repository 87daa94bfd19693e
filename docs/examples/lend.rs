//! An agent in a process of its own: one process holds the home and opens the session, and lends
//! it to another, which can call through it and do nothing else. `cargo run --example lend`.
//!
//! The child gets a ticket of 32 bytes on its standard input: it is good once, and is the secret.
//! What it attaches to is the agents' lane: there it can neither issue nor revoke, whatever its
//! own programs ask for. It runs as the same user here; one that must not reach the home's files
//! needs a boundary of the operating system besides.

use std::env;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use syscap::{SessionTicket, prelude::*};

fn failed(error: io::Error) -> Error {
    Error::Holder(error.to_string())
}

/// The child: it has the home's place and a ticket, and no token.
pub(crate) fn agent(home: &str) -> Result<(), Error> {
    let mut ticket = [0; 32];
    io::stdin().read_exact(&mut ticket).map_err(failed)?;
    let rt = Runtime::agent(home)?;
    let agent = rt.take(&SessionTicket::from_bytes(ticket))?;
    let written = agent.call("fs.write", args! { "path": "a.txt", "text": "from a child" })?;
    println!("child: {:?}, record {}", written.status(), written.receipt().outcome_seq);
    // It has a seat, and none of the operator's rights.
    let issued = rt.issue(Grant::to("child").tools(["fs.read"]));
    println!("child: a token of its own: {issued:?}");
    assert!(matches!(issued, Err(Error::Refused(_))), "{issued:?}");
    agent.close()
}

/// The holder; `child` says which program is to be the child for the home of that folder.
pub(crate) fn hold(child: impl FnOnce(&Path) -> Command) -> Result<(), Error> {
    let folder = tempfile::tempdir().map_err(failed)?;
    let home = folder.path().join("home");
    let rt = Runtime::create(&home)?;
    let token = rt.issue(Grant::to("child").tools(["fs.write"]).workspace())?;
    let ticket = rt.session("child", token)?.lend()?;
    let mut child = child(&home).stdin(Stdio::piped()).spawn().map_err(failed)?;
    // Dropped with its end: the child reads no more than the ticket.
    child.stdin.take().ok_or(Error::NotStarted)?.write_all(ticket.as_bytes()).map_err(failed)?;
    assert!(child.wait().map_err(failed)?.success());
    let used = rt.view()?.token(token).map(|token| token.used.get(Dimension::Calls));
    println!("holder: the child used {used:?} of its calls");
    assert_eq!(used, Some(1));
    rt.close()
}

pub(crate) fn main() -> Result<(), Error> {
    if let Some(home) = env::args().nth(1) {
        return agent(&home);
    }
    let program = env::current_exe().map_err(failed)?;
    hold(|home| {
        let mut child = Command::new(program);
        child.arg(home);
        child
    })
}
