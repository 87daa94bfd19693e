//! Envelopes, their text, tools' names, references, keys.

use serde_json::{Value, json};
use syscap::{
    args,
    prelude::{Budget, Reason},
};

use super::{Case, fix, sent, text};
use crate::repair::world::{MARK, World, seat};

fn echoed(result: &Value, value: &Value) -> bool {
    result["value"] == *value
}

fn one(_: &World, result: &Value) -> bool {
    echoed(result, &json!(1))
}

fn bees(_: &World, result: &Value) -> bool {
    result["text"] == "bees"
}

pub(crate) fn cases() -> Vec<Case> {
    let mut all = texts();
    all.extend(fields());
    all.extend(names());
    all.extend(references());
    all
}

fn texts() -> Vec<Case> {
    use Reason::{DuplicateKey, Malformed, NumberRange, TooDeep, TooLarge};
    vec![
        text("a last comma", r#"{"tool_id": "echo", "args": {"value": 1,},}"#, Malformed, one),
        text(
            "in a fence",
            "```json\n{\"tool_id\": \"echo\", \"args\": {\"value\": 1}}\n```",
            Malformed,
            one,
        ),
        text("single quotes", "{'tool_id': 'echo', 'args': {'value': 1}}", Malformed, one),
        text("cut off", r#"{"tool_id": "echo", "args": {"value": 1"#, Malformed, one),
        text("talk before", r#"Sure! {"tool_id": "echo", "args": {"value": 1}}"#, Malformed, one),
        text("talk behind", r#"{"tool_id": "echo", "args": {"value": 1}} Done."#, Malformed, one),
        text(
            "Python's words",
            r#"{"tool_id": "echo", "args": {"value": True}}"#,
            Malformed,
            |_, result| echoed(result, &json!(true)),
        ),
        text("a leading zero", r#"{"tool_id": "echo", "args": {"value": 01}}"#, Malformed, one),
        text(
            "a backslash alone",
            r#"{"tool_id": "echo", "args": {"value": "C:\dir"}}"#,
            Malformed,
            |_, result| echoed(result, &json!("C:\\dir")),
        ),
        text(
            "a line break in text",
            "{\"tool_id\": \"echo\", \"args\": {\"value\": \"a\nb\"}}",
            Malformed,
            |_, result| echoed(result, &json!("a\nb")),
        ),
        text(
            "half a surrogate",
            r#"{"tool_id": "echo", "args": {"value": "\ud83d!"}}"#,
            Malformed,
            |_, result| result["value"].as_str().is_some_and(|text| text.ends_with('!')),
        ),
        text(
            "a key twice",
            r#"{"tool_id": "echo", "args": {"value": 1, "value": 1}}"#,
            DuplicateKey,
            one,
        ),
        text(
            "an integer too large",
            r#"{"tool_id": "echo", "args": {"value": 18446744073709551616}}"#,
            NumberRange,
            |_, result| echoed(result, &json!(u64::MAX)),
        ),
        text(
            "a float too large",
            r#"{"tool_id": "echo", "args": {"value": 1e999}}"#,
            NumberRange,
            |_, result| result["value"].is_f64(),
        ),
        text(
            "minus zero",
            r#"{"tool_id": "echo", "args": {"value": -0}}"#,
            NumberRange,
            |_, result| echoed(result, &json!(0)),
        ),
        sent(
            "too deep",
            |_| {
                let (open, close) = ("[".repeat(70), "]".repeat(70));
                format!(r#"{{"tool_id": "echo", "args": {{"value": {open}1{close}}}}}"#)
            },
            TooDeep,
            |_, result| result["value"].is_array(),
        ),
        sent(
            "too large",
            |_| {
                let text = "x".repeat((1 << 20) + 100);
                format!(
                    r#"{{"tool_id": "fs.write", "args": {{"path": "a.txt", "text": "{text}"}}}}"#
                )
            },
            TooLarge,
            |world, _| world.file("a.txt").is_some_and(|text| text.len() > 1 << 19),
        ),
    ]
}

fn fields() -> Vec<Case> {
    use Reason::{BadField, BadProof, MissingField, UnknownVersion};
    vec![
        text("a list of one call", r#"[{"tool_id": "echo", "args": {"value": 1}}]"#, BadField, one),
        text(
            "another version",
            r#"{"v": 2, "tool_id": "echo", "args": {"value": 1}}"#,
            UnknownVersion,
            one,
        ),
        text(
            "a version in words",
            r#"{"v": "1.0", "tool_id": "echo", "args": {"value": 1}}"#,
            BadField,
            one,
        ),
        text(
            "a function's name",
            r#"{"name": "echo", "arguments": {"value": 1}}"#,
            MissingField,
            one,
        ),
        text(
            "`tool` for `tool_id`",
            r#"{"tool": "echo", "args": {"value": 1}}"#,
            MissingField,
            one,
        ),
        text(
            "`input` for `args`",
            r#"{"tool_id": "echo", "input": {"value": 1}}"#,
            MissingField,
            one,
        ),
        text("arguments beside", r#"{"tool_id": "echo", "value": 1}"#, MissingField, one),
        text(
            "arguments as text",
            r#"{"tool_id": "echo", "args": "{\"value\": 1}"}"#,
            BadField,
            one,
        ),
        text("arguments in pairs", r#"{"tool_id": "echo", "args": [["value", 1]]}"#, BadField, one),
        text(
            "a made-up agent",
            r#"{"tool_id": "echo", "args": {"value": 1}, "agent_id": "A B"}"#,
            BadField,
            one,
        ),
        text(
            "a made-up token",
            r#"{"tool_id": "echo", "args": {"value": 1}, "capability_token_id": "tok_1"}"#,
            BadField,
            one,
        ),
        text(
            "a bad policy hash",
            r#"{"tool_id": "echo", "args": {"value": 1}, "policy_hash": "latest"}"#,
            BadField,
            one,
        ),
        text(
            "a bad provenance",
            r#"{"tool_id": "echo", "args": {"value": 1}, "provenance": {"source": "me"}}"#,
            BadField,
            one,
        ),
        text(
            "a key with spaces",
            r#"{"tool_id": "echo", "args": {"value": 1}, "idempotency_key": "my key"}"#,
            BadField,
            one,
        ),
        text(
            "a proof",
            r#"{"tool_id": "echo", "args": {"value": 1}, "proof": "x"}"#,
            BadProof,
            one,
        ),
    ]
}

fn names() -> Vec<Case> {
    use Reason::{BadField, KeyReused, PolicyMismatch, UnknownSnapshot, UnknownTool};
    let zeros = |field: &'static str| {
        move |_: &World| {
            let zeros = "0".repeat(64);
            format!(r#"{{"tool_id": "echo", "args": {{"value": 1}}, "{field}": "{zeros}"}}"#)
        }
    };
    vec![
        text("capitals in a tool", r#"{"tool_id": "Echo", "args": {"value": 1}}"#, BadField, one),
        text(
            "a tool with a dash",
            r#"{"tool_id": "fs-read", "args": {"path": "notes.txt"}}"#,
            BadField,
            bees,
        ),
        text("a tool misspelt", r#"{"tool_id": "ecko", "args": {"value": 1}}"#, UnknownTool, one),
        text(
            "a tool's part",
            r#"{"tool_id": "read", "args": {"path": "notes.txt"}}"#,
            UnknownTool,
            bees,
        ),
        text(
            "a tool in other words",
            r#"{"tool_id": "read_file", "args": {"path": "notes.txt"}}"#,
            UnknownTool,
            bees,
        ),
        text(
            "a tool with a prefix",
            r#"{"tool_id": "syscap.fs.read", "args": {"path": "notes.txt"}}"#,
            UnknownTool,
            bees,
        ),
        sent("another policy", zeros("policy_hash"), PolicyMismatch, one),
        sent("another snapshot", zeros("state_snapshot_id"), UnknownSnapshot, one),
        sent(
            "a key used before",
            |world| {
                let call = |n| {
                    format!(
                        r#"{{"tool_id": "echo", "args": {{"value": {n}}}, "idempotency_key": "k"}}"#
                    )
                };
                world.before(&call(2));
                call(1)
            },
            KeyReused,
            one,
        ),
    ]
}

/// A call whose value refers to a read that was made before; `@` stands for its record.
fn after_read(args: &'static str) -> impl Fn(&World) -> String + Send + Sync {
    move |world| {
        let read = world.before(r#"{"tool_id": "fs.read", "args": {"path": "notes.txt"}}"#);
        args.replace("@@", &(read - 1).to_string()).replace('@', &read.to_string())
    }
}

fn references() -> Vec<Case> {
    use Reason::{BadArgument, Malformed, UnknownReference};
    let echoed = |_: &World, result: &Value| result["value"] == "bees";
    let written = |world: &World, _: &Value| world.file("b.txt").as_deref() == Some("bees");
    vec![
        sent(
            "a reference by its number",
            after_read(
                r#"{"tool_id": "fs.write", "args": {"path": "b.txt", "text":
                {"$ref": {"record": "@", "path": "text"}}}}"#,
            ),
            Malformed,
            written,
        ),
        sent(
            "a reference without a path",
            after_read(r#"{"tool_id": "echo", "args": {"value": {"$ref": @}}}"#),
            Malformed,
            |_, result| result["value"]["text"] == "bees",
        ),
        sent(
            "the record before",
            after_read(
                r#"{"tool_id": "echo", "args": {"value":
                {"$ref": {"record": @@, "path": ["text"]}}}}"#,
            ),
            UnknownReference,
            echoed,
        ),
        sent(
            "a step misspelt",
            after_read(
                r#"{"tool_id": "echo", "args": {"value":
                {"$ref": {"record": @, "path": ["txt"]}}}}"#,
            ),
            UnknownReference,
            echoed,
        ),
        sent(
            "a step too many",
            after_read(
                r#"{"tool_id": "echo", "args": {"value":
                {"$ref": {"record": @, "path": ["text", 0]}}}}"#,
            ),
            UnknownReference,
            echoed,
        ),
        sent(
            "a whole result for a text",
            after_read(
                r#"{"tool_id": "fs.write", "args": {"path": "b.txt", "text":
                {"$ref": {"record": @, "path": []}}}}"#,
            ),
            BadArgument,
            written,
        ),
        sent(
            "a place beyond the list",
            |world| {
                let list = world.before(r#"{"tool_id": "echo", "args": {"value": [5, 6]}}"#);
                format!(
                    r#"{{"tool_id": "echo", "args": {{"value":
                {{"$ref": {{"record": {list}, "path": ["value", 2]}}}}}}}}"#
                )
            },
            UnknownReference,
            |_, result| result["value"] == 6,
        ),
        // Nothing was given to this session, so there is nothing to refer to.
        sent(
            "another session's record",
            |world| {
                let other = seat(&world.runtime, Budget::standard());
                let args = args! { "value": MARK };
                let record = other.call("echo", args).unwrap().receipt().outcome_seq;
                format!(
                    r#"{{"tool_id": "echo", "args": {{"value":
                    {{"$ref": {{"record": {record}, "path": ["value"]}}}}}}}}"#
                )
            },
            UnknownReference,
            |_, result| result["value"].is_string(),
        ),
        fix(
            "bytes without padding",
            ("store", r#"{"key": "k", "data": {"$bytes": "aGk"}}"#),
            Malformed,
            |world, _| world.ran()["data"]["$bytes"] == "aGk=",
        ),
        fix(
            "bytes for the web",
            ("store", r#"{"key": "k", "data": {"$bytes": "_-8="}}"#),
            Malformed,
            |world, _| world.ran()["data"]["$bytes"] == "/+8=",
        ),
    ]
}
