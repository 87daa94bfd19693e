//! Arguments: names, types, bounds.

use serde_json::{Value, json};
use syscap::prelude::Reason::{self, BadArgument, MissingArgument, UnknownArgument};

use super::{Case, fix, text};
use crate::repair::world::World;

fn searched(world: &World, name: &str, value: &Value) -> bool {
    world.ran()[name] == *value
}

fn bees(_: &World, result: &Value) -> bool {
    result["text"] == "bees"
}

fn two_hits(world: &World, _: &Value) -> bool {
    searched(world, "limit", &json!(2)) && searched(world, "query", &json!("bees"))
}

pub(crate) fn cases() -> Vec<Case> {
    let mut all = names();
    all.extend(types());
    all.extend(bounds());
    all
}

fn names() -> Vec<Case> {
    vec![
        fix("misspelt", ("fs.read", r#"{"paht": "notes.txt"}"#), UnknownArgument, bees),
        fix("another word", ("fs.read", r#"{"filename": "notes.txt"}"#), UnknownArgument, bees),
        fix(
            "camel case",
            ("fs.read", r#"{"path": "notes.txt", "maxBytes": 4}"#),
            UnknownArgument,
            bees,
        ),
        fix(
            "two misspelt",
            ("search", r#"{"querry": "bees", "limt": 2}"#),
            UnknownArgument,
            two_hits,
        ),
        fix(
            "`content` for `text`",
            ("fs.write", r#"{"path": "a.txt", "content": "hi"}"#),
            UnknownArgument,
            |world, _| world.file("a.txt").as_deref() == Some("hi"),
        ),
        fix(
            "more than it takes",
            ("fs.read", r#"{"path": "notes.txt", "encoding": "utf-8"}"#),
            UnknownArgument,
            bees,
        ),
        fix(
            "a thought beside",
            ("search", r#"{"query": "bees", "limit": 2, "reasoning": "so"}"#),
            UnknownArgument,
            two_hits,
        ),
        text(
            "beside `args`",
            r#"{"tool_id": "fs.read", "args": {}, "path": "notes.txt"}"#,
            MissingArgument,
            bees,
        ),
        fix("one lacks", ("store", "{}"), MissingArgument, |world, _| {
            world.ran()["key"].is_string()
        }),
        fix("two lack", ("pay", "{}"), Reason::MissingArgument, |world, _| world.ran().is_object()),
        fix(
            "neither text nor bytes",
            ("fs.write", r#"{"path": "a.txt"}"#),
            BadArgument,
            |world, _| world.file("a.txt").as_deref() == Some(""),
        ),
        fix(
            "text and bytes",
            ("fs.write", r#"{"path": "a.txt", "text": "hi", "bytes": {"$bytes": "aGk="}}"#),
            BadArgument,
            |world, _| world.file("a.txt").as_deref() == Some("hi"),
        ),
    ]
}

fn types() -> Vec<Case> {
    vec![
        fix(
            "an integer as text",
            ("search", r#"{"query": "bees", "limit": "2"}"#),
            BadArgument,
            two_hits,
        ),
        fix(
            "an integer with a unit",
            ("search", r#"{"query": "bees", "limit": "2 hits"}"#),
            BadArgument,
            two_hits,
        ),
        fix(
            "an integer as a float",
            ("search", r#"{"query": "bees", "limit": 2.0}"#),
            BadArgument,
            two_hits,
        ),
        fix(
            "a boolean as text",
            ("search", r#"{"query": "bees", "exact": "true"}"#),
            BadArgument,
            |world, _| searched(world, "exact", &json!(true)),
        ),
        fix(
            "a boolean as a number",
            ("search", r#"{"query": "bees", "exact": 1}"#),
            BadArgument,
            |world, _| searched(world, "exact", &json!(true)),
        ),
        fix(
            "a number as text",
            ("search", r#"{"query": "bees", "weight": "0.5"}"#),
            BadArgument,
            |world, _| searched(world, "weight", &json!(0.5)),
        ),
        fix("text as a number", ("search", r#"{"query": 5}"#), BadArgument, |world, _| {
            searched(world, "query", &json!("5"))
        }),
        fix(
            "text as a list",
            ("mail.send", r#"{"to": ["b@example.com"]}"#),
            BadArgument,
            |world, _| searched(world, "to", &json!("b@example.com")),
        ),
        fix(
            "a list as text",
            ("mail.send", r#"{"to": "b@example.com", "cc": "c@example.com, d@example.com"}"#),
            BadArgument,
            |world, _| searched(world, "cc", &json!(["c@example.com", "d@example.com"])),
        ),
        fix(
            "a map as text",
            ("mail.send", r#"{"to": "b@example.com", "options": "{\"read\": true}"}"#),
            BadArgument,
            |world, _| searched(world, "options", &json!({"read": true})),
        ),
        fix(
            "bytes as text",
            ("store", r#"{"key": "k", "data": "hi"}"#),
            BadArgument,
            |world, _| world.ran()["data"]["$bytes"] == "aGk=",
        ),
    ]
}

fn bounds() -> Vec<Case> {
    vec![
        fix(
            "too many",
            ("search", r#"{"query": "bees", "limit": 5000}"#),
            BadArgument,
            |world, _| searched(world, "limit", &json!(1_000)),
        ),
        fix("too few", ("search", r#"{"query": "bees", "limit": 0}"#), BadArgument, |world, _| {
            searched(world, "limit", &json!(1))
        }),
        fix("negative", ("fs.read", r#"{"path": "notes.txt", "offset": -1}"#), BadArgument, bees),
        fix(
            "too long",
            (
                "mail.send",
                r#"{"to": "b@x.org", "subject": "01234567890123456789012345678901234567890"}"#,
            ),
            BadArgument,
            |world, _| searched(world, "subject", &json!("0123456789".repeat(4))),
        ),
        fix(
            "too many in a list",
            (
                "mail.send",
                r#"{"to": "b@example.com", "cc": ["c@x.org", "d@x.org", "e@x.org", "f@x.org"]}"#,
            ),
            BadArgument,
            |world, _| searched(world, "cc", &json!(["c@x.org", "d@x.org", "e@x.org"])),
        ),
        fix("none in a list", ("store", r#"{"key": "k", "tags": []}"#), BadArgument, |world, _| {
            world.ran()["key"] == "k"
        }),
        fix(
            "urgent",
            ("mail.send", r#"{"to": "b@example.com", "priority": 9}"#),
            BadArgument,
            |world, _| searched(world, "priority", &json!(5)),
        ),
    ]
}
