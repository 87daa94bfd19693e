//! What the policy asks of arguments.

use serde_json::{Value, json};
use syscap::prelude::Reason::{Constraint, Denied, OutOfScope, Reduced, ResultTooLarge};

use super::{Case, final_, fix};
use crate::repair::world::{World, allow, any, deny};

fn ran(world: &World, name: &str, value: &Value) -> bool {
    world.ran()[name] == *value
}

/// A test of one attribute.
fn test(op: &str, attribute: &str, constant: &str) -> String {
    match constant {
        "" => format!(r#"{{"op": "{op}", "args": ["{attribute}"]}}"#),
        _ => format!(r#"{{"op": "{op}", "args": ["{attribute}", {constant}]}}"#),
    }
}

fn joined(op: &str, parts: &[String]) -> String {
    format!(r#"{{"op": "{op}", "args": [{}]}}"#, parts.join(","))
}

pub(crate) fn cases() -> Vec<Case> {
    let mut all = tests();
    all.extend(several());
    all.extend(words());
    all
}

fn cut() -> String {
    let cut = r#""obligations": [{"type": "budget_cut", "dimension": "disk_write_bytes", "max": 1}],
        "on_fail""#;
    any("fs.write").replace(r#""on_fail""#, cut)
}

fn tests() -> Vec<Case> {
    let may = |tool, op, attribute, constant| [allow(tool, &test(op, attribute, constant))];
    let mail = |name, args, op, attribute, constant, check| {
        fix(name, ("mail.send", args), Constraint, check).under(may(
            "mail.send",
            op,
            attribute,
            constant,
        ))
    };
    vec![
        fix(
            "within",
            ("fs.write", r#"{"path": "a.txt", "text": "hi"}"#),
            Constraint,
            |world, _| world.file("shared/notes/a.txt").as_deref() == Some("hi"),
        )
        .under(may("fs.write", "within", "args.path", r#""shared/notes""#)),
        fix(
            "a budget that the policy cuts",
            ("fs.write", r#"{"path": "a.txt", "text": "hello"}"#),
            Reduced,
            |world, _| world.file("agents/a/workspace/a.txt").is_some(),
        )
        .under([cut()]),
        fix("one file", ("fs.read", r#"{"path": "notes/plan.txt"}"#), Constraint, |_, result| {
            result["text"] == "a plan"
        })
        .under(may("fs.read", "eq", "args.path", r#""shared/notes/plan.txt""#)),
        mail(
            "in",
            r#"{"to": "bob@exmple.com"}"#,
            "in",
            "args.to",
            r#"["ann@example.com", "bob@example.com"]"#,
            |world, _| ran(world, "to", &json!("bob@example.com")),
        ),
        mail(
            "suffix",
            r#"{"to": "bob@evil.org"}"#,
            "suffix",
            "args.to",
            r#""@example.com""#,
            |world, _| ran(world, "to", &json!("bob@example.com")),
        ),
        mail(
            "prefix",
            r#"{"to": "bob@x.org", "subject": "hi"}"#,
            "prefix",
            "args.subject",
            r#""[bot] ""#,
            |world, _| ran(world, "subject", &json!("[bot] hi")),
        ),
        mail(
            "missing",
            r#"{"to": "bob@x.org", "bcc": "c@x.org"}"#,
            "missing",
            "args.bcc",
            "",
            |world, _| world.ran() == json!({"to": "bob@x.org"}),
        ),
        mail("exists", r#"{"to": "bob@x.org"}"#, "exists", "args.subject", "", |world, _| {
            world.ran()["subject"].is_string()
        }),
        mail(
            "equal",
            r#"{"to": "bob@x.org", "priority": 4}"#,
            "eq",
            "args.priority",
            "3",
            |world, _| ran(world, "priority", &json!(3)),
        ),
        mail(
            "at most",
            r#"{"to": "bob@x.org", "priority": 5}"#,
            "le",
            "args.priority",
            "2",
            |world, _| ran(world, "priority", &json!(2)),
        ),
        mail(
            "a field",
            r#"{"to": "bob@x.org", "options": {"mode": "loud"}}"#,
            "eq",
            "args.options.mode",
            r#""quiet""#,
            |world, _| ran(world, "options", &json!({"mode": "quiet"})),
        ),
        mail(
            "each of a list",
            r#"{"to": "bob@x.org", "cc": ["c@evil.org", "d@example.com"]}"#,
            "suffix",
            "args.cc",
            r#""@example.com""#,
            |world, _| ran(world, "cc", &json!(["c@example.com", "d@example.com"])),
        ),
        fix("at least", ("pay", r#"{"account": "rent", "amount": 2}"#), Constraint, |world, _| {
            ran(world, "amount", &json!(10))
        })
        .under(may("pay", "ge", "args.amount", "10")),
        fix(
            "less than",
            ("pay", r#"{"account": "rent", "amount": 500}"#),
            Constraint,
            |world, _| ran(world, "amount", &json!(99)),
        )
        .under(may("pay", "lt", "args.amount", "100")),
        fix(
            "domain",
            ("web.fetch", r#"{"url": "https://docs.example.com/a?b"}"#),
            Constraint,
            |world, _| ran(world, "url", &json!("https://api.example.org/a?b")),
        )
        .under(may("web.fetch", "domain", "args.url", r#""api.example.org""#)),
        fix("a type", ("store", r#"{"key": "k", "meta": "red, blue"}"#), Constraint, |world, _| {
            ran(world, "meta", &json!(["red", "blue"]))
        })
        .under(may("store", "schema", "args.meta", r#""list""#)),
        fix("a boolean", ("search", r#"{"query": "bees"}"#), Constraint, |world, _| {
            ran(world, "exact", &json!(true))
        })
        .under(may("search", "eq", "args.exact", "true")),
    ]
}

fn several() -> Vec<Case> {
    let range = [test("ge", "args.amount", "10"), test("le", "args.amount", "20")];
    let roots = [
        test("within", "args.path", r#""workspace/out""#),
        test("within", "args.path", r#""shared/notes""#),
    ];
    let either = || {
        let one = allow("pay", &test("eq", "args.account", r#""water""#));
        let other = allow("pay", &test("eq", "args.account", r#""gas""#));
        [one, other.replace("may.pay", "may.pay.other")]
    };
    let two = [test("eq", "args.account", r#""rent""#), test("le", "args.amount", "20")];
    vec![
        fix(
            "both bounds",
            ("pay", r#"{"account": "rent", "amount": 50}"#),
            Constraint,
            |world, _| ran(world, "amount", &json!(20)),
        )
        .under([allow("pay", &joined("all", &range))]),
        fix(
            "one of two roots",
            ("fs.write", r#"{"path": "shared/notes/../notes.txt", "text": "hi"}"#),
            OutOfScope,
            |world, _| world.file("shared/notes/notes.txt").as_deref() == Some("hi"),
        )
        .under([allow("fs.write", &joined("any", &roots))]),
        fix(
            "either of two allows",
            ("pay", r#"{"account": "rent", "amount": 5}"#),
            Constraint,
            |world, _| ran(world, "account", &json!("water")),
        )
        .under(either()),
        // One argument alone is not enough, so the policy names none: nothing to go by.
        final_(
            "two arguments at once",
            |_| r#"{"tool_id": "pay", "args": {"account": "water", "amount": 50}}"#.to_owned(),
            Denied,
        )
        .under([allow("pay", &joined("all", &two))]),
        fix(
            "a result cap",
            ("search", r#"{"query": "bees", "limit": 500}"#),
            ResultTooLarge,
            |_, result| result["hits"].as_array().is_some_and(|hits| hits.len() > 10),
        )
        .under([capped()]),
    ]
}

/// `search`, with results of at most 1,000 bytes.
fn capped() -> String {
    let cap = r#""obligations": [{"type": "result_cap", "bytes": 1000}], "on_fail""#;
    any("search").replace(r#""on_fail""#, cap)
}

fn words() -> Vec<Case> {
    vec![
        fix(
            "a deny that can be left",
            ("mail.send", r#"{"to": "bob@x.org", "bcc": "c@x.org"}"#),
            Constraint,
            |world, _| world.ran() == json!({"to": "bob@x.org"}),
        )
        .under([deny(
            "mail.send",
            &test("exists", "args.bcc", ""),
            "block",
            "No blind copies.",
        )]),
        fix(
            "a deny with a root in its words",
            ("fs.write", r#"{"path": "a.txt", "text": "hi"}"#),
            Constraint,
            |world, _| world.file("shared/notes/a.txt").as_deref() == Some("hi"),
        )
        .under([deny(
            "fs.write",
            &format!(
                r#"{{"op": "not", "args": [{}]}}"#,
                test("within", "args.path", r#""shared/notes""#)
            ),
            "block",
            "Write below shared/notes.",
        )]),
        fix(
            "a deny with a bound in its words",
            ("pay", r#"{"account": "rent", "amount": 50}"#),
            Constraint,
            |world, _| ran(world, "amount", &json!(40)),
        )
        .under([deny("pay", &test("gt", "args.amount", "40"), "block", "Pay at most 40.")]),
        // The author says nothing of what would do.
        fix(
            "a deny of a person",
            ("mail.send", r#"{"to": "mallory@example.com"}"#),
            Constraint,
            |world, _| world.ran()["to"].is_string(),
        ),
    ]
}
