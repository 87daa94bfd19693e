//! What the token permits.

use serde_json::{Value, json};
use syscap::prelude::Reason::OutOfScope;

use super::{Case, fix};
use crate::repair::world::World;

fn fetched(world: &World, url: &str) -> bool {
    world.ran()["url"] == url
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        fix(
            "another's workspace",
            ("fs.write", r#"{"path": "../../leakmark/workspace/a.txt", "text": "hi"}"#),
            OutOfScope,
            |world, _| world.file("a.txt").as_deref() == Some("hi"),
        ),
        fix(
            "a root that is only read",
            ("fs.write", r#"{"path": "shared/public/a.txt", "text": "hi"}"#),
            OutOfScope,
            |world, _| world.file("shared/notes/a.txt").as_deref() == Some("hi"),
        ),
        fix(
            "beside what is granted",
            ("fs.read", r#"{"path": "../../../shared/plan.txt"}"#),
            OutOfScope,
            |_, result| result["text"] == "a plan",
        ),
        fix(
            "another host",
            ("web.fetch", r#"{"url": "https://example.com/guide"}"#),
            OutOfScope,
            |world, _| fetched(world, "https://docs.example.com/guide"),
        ),
        fix(
            "another port",
            ("web.fetch", r#"{"url": "https://docs.example.com/", "port": 9000}"#),
            OutOfScope,
            |world, _| world.ran()["port"] == json!(8_080),
        ),
        fix(
            "another account",
            ("pay", r#"{"account": "rents", "amount": 5}"#),
            OutOfScope,
            |world, _| world.ran() == json!({"account": "rent", "amount": 5}),
        ),
        fix(
            "less than is permitted",
            ("pay", r#"{"account": "rent", "amount": 0}"#),
            OutOfScope,
            |world: &World, _: &Value| world.ran()["amount"] == 1,
        ),
    ]
}
