//! expect: E0423
//! Makes names and keys of text and bytes that nobody checked.
#[path = "support/mod.rs"]
mod support;
use support::*;

use syscap::format::{IdempotencyKey, PublicKey};

fn main() {
    drop(AgentId("../..".into())); //~
    drop(ToolId("".into())); //~
    drop(IdempotencyKey("".into())); //~
    drop(TokenId([0; 32])); //~
    drop(PublicKey([0; 32])); //~
}
