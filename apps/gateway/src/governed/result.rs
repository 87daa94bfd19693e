//! Results of tools, on their way through the kernel.
//!
//! A server's answer is kept whole as one map; a client's is made anew, for its wire, from the
//! kernel's answer.

use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, JsonObject, MetaObject};
use serde_json::{Value, json};
use syscap::format::json::from_data;
use syscap::format::{Canonical, Item, Reason, Refused};

use crate::governed::{data, disown};

/// The only key of a recorded answer that is an error of the protocol.
const RPC_ERROR: &str = "rpc_error";
/// The key that says what kind of result it is, on the newer wire.
const RESULT_TYPE: &str = "resultType";
/// Set on a result of which the wire gave no sign that it is one.
const INPUT_REQUIRED: &str = "input_required";

/// One of them makes an answer a tool's result.
const PARTS: [&str; 3] = ["content", "structuredContent", "isError"];

type Fits = fn(&Value) -> bool;

/// The type of each part of a result, if it is there and not null.
const TYPES: [(&str, Fits); 4] = [
    ("content", Value::is_array),
    ("isError", Value::is_boolean),
    (RESULT_TYPE, Value::is_string),
    ("_meta", Value::is_object),
];

/// A server's answer to `tools/call`, as the kernel records it.
pub(crate) struct RecordedResult {
    pub(crate) map: Canonical,
    /// True if the server reports a failure of the call.
    pub(crate) is_error: bool,
}

/// Takes a server's answer.
///
/// # Errors
/// Where it is no result of a tool, has a part of another type, is too deep, or exceeds
/// `bytes_max`.
pub(crate) fn take(mut value: Value, bytes_max: usize) -> Result<RecordedResult, Refused> {
    let failed = |what: &str| Refused::new(Reason::Failed).field("result").got(what);
    let Value::Object(map) = &mut value else {
        return Err(failed("the server answered with no object"));
    };
    if map.get(RESULT_TYPE).and_then(Value::as_str) == Some("complete") {
        map.remove(RESULT_TYPE);
    }
    if let Some((key, _)) =
        TYPES.iter().find(|(key, fits)| map.get(*key).is_some_and(|it| !it.is_null() && !fits(it)))
    {
        return Err(failed(&format!("the server answered with \"{key}\" of another type")));
    }
    match map.get(RESULT_TYPE).and_then(Value::as_str) {
        None if PARTS.iter().any(|part| map.contains_key(*part)) => {}
        Some(INPUT_REQUIRED) => {}
        None => return Err(failed("the server answered with no result of a tool")),
        Some(other) => return Err(failed(other)),
    }
    let is_error = map.get("isError").and_then(Value::as_bool).unwrap_or(false);
    let map =
        data::to_canonical(&value).map_err(|_| Refused::new(Reason::TooDeep).field("result"))?;
    let map = within(map, bytes_max)?;
    Ok(RecordedResult { map, is_error })
}

/// Takes a server's answer to anything but `tools/call`.
///
/// # Errors
/// Where it is no object, is too deep, or exceeds `bytes_max`.
pub(crate) fn take_other(mut value: Value, bytes_max: usize) -> Result<Canonical, Refused> {
    let Value::Object(map) = &mut value else {
        let failed = Refused::new(Reason::Failed).field("result");
        return Err(failed.got("the server answered with no object"));
    };
    if map.get(RESULT_TYPE).and_then(Value::as_str) == Some("complete") {
        map.remove(RESULT_TYPE);
    }
    // What would be read as an error that no server gave.
    if map.len() == 1 && map.contains_key(RPC_ERROR) {
        return Err(Refused::new(Reason::Failed).field("result").got(RPC_ERROR));
    }
    let map =
        data::to_canonical(&value).map_err(|_| Refused::new(Reason::TooDeep).field("result"))?;
    within(map, bytes_max)
}

/// The recorded answer of a call that is no tool's: a result, or the server's error.
pub(crate) fn other(delivered: Item<'_>) -> Result<JsonObject, ErrorData> {
    let mut map = data::to_object(delivered);
    disown::disown(&mut map);
    match (map.len(), map.get(RPC_ERROR)) {
        (1, Some(error)) => Err(rpc_error(error)),
        _ => Ok(map),
    }
}

fn rpc_error(error: &Value) -> ErrorData {
    let read = serde_json::from_value(error.clone());
    let mut error = read.unwrap_or_else(|_| ErrorData::internal_error("the server failed", None));
    error.message = disown::not_ours(&error.message).into_owned().into();
    error
}

/// A server's answer that is an error of the protocol: it is recorded, and released, like any
/// other, so that the client gets no word of a server's that is not on record.
pub(crate) fn take_error(error: &ErrorData, bytes_max: usize) -> Result<Canonical, Refused> {
    let mut parts = json!({"code": error.code.0, "message": error.message});
    if let (Some(data), Some(parts)) = (&error.data, parts.as_object_mut()) {
        parts.insert(String::from("data"), data.clone());
    }
    let map = json!({ RPC_ERROR: parts });
    let map =
        data::to_canonical(&map).map_err(|_| Refused::new(Reason::TooDeep).field("result"))?;
    within(map, bytes_max)
}

fn within(map: Canonical, bytes_max: usize) -> Result<Canonical, Refused> {
    let len = map.as_bytes().len();
    if len <= bytes_max {
        return Ok(map);
    }
    let refused = Refused::new(Reason::ResultTooLarge).field("result");
    let refused = refused.got(&format!("{len} bytes"));
    Err(refused.allowed(&format!("at most {bytes_max} bytes")))
}

/// True if the server asks for input before it continues.
pub(crate) fn asks_for_input(value: &Value) -> bool {
    value.get(RESULT_TYPE).and_then(Value::as_str) == Some(INPUT_REQUIRED)
}

/// True if a recorded result is a request for input.
pub(crate) fn is_request(map: Item<'_>) -> bool {
    map.get(RESULT_TYPE).and_then(Item::as_text) == Some(INPUT_REQUIRED)
}

/// The result where a server asks without end.
pub(crate) fn asks_too_often() -> Value {
    error("The tool asked for input too often.")
}

/// The result where what a server asks was not put to the client, or the client did not answer.
pub(crate) fn unanswered(error: &ErrorData) -> Value {
    crate::governed::result::error(&format!(
        "What the tool asked the client was not answered: {}",
        error.message
    ))
}

/// The error where a server asks for more, by a result that the client's wire has not.
pub(crate) fn needs_more() -> ErrorData {
    ErrorData::invalid_request("the tool asks for more than this revision has a form for", None)
}

fn error(words: &str) -> Value {
    json!({"content": [{"type": "text", "text": words}], "isError": true})
}

/// The client's form of a foreign tool's result: a result, or the server's error.
pub(crate) fn foreign(delivered: Item<'_>) -> Result<CallToolResponse, ErrorData> {
    let mut map = data::to_object(delivered);
    disown::disown(&mut map);
    if let (1, Some(error)) = (map.len(), map.get(RPC_ERROR)) {
        return Err(rpc_error(error));
    }
    if map.get(RESULT_TYPE).and_then(Value::as_str) == Some(INPUT_REQUIRED) {
        let read = serde_json::from_value(Value::Object(map.clone()));
        if let Ok(required) = read {
            return Ok(CallToolResponse::InputRequired(required));
        }
    }
    Ok(CallToolResponse::Complete(complete(map)))
}

fn complete(mut map: JsonObject) -> CallToolResult {
    let content = match map.remove("content") {
        Some(Value::Array(blocks)) => blocks.into_iter().map(block).collect(),
        Some(other) => vec![block(other)],
        None => Vec::new(),
    };
    let mut result = CallToolResult::success(content);
    result.is_error = map.remove("isError").as_ref().and_then(Value::as_bool);
    result.structured_content = map.remove("structuredContent");
    result.meta = match map.remove("_meta") {
        Some(Value::Object(meta)) => Some(MetaObject(meta)),
        _ => None,
    };
    result
}

/// A block that this protocol's revision doesn't know becomes its own text.
fn block(mut value: Value) -> ContentBlock {
    if let Some(text) = only_text(&mut value) {
        return ContentBlock::text(text);
    }
    let text = || value.to_string();
    serde_json::from_value(value.clone()).unwrap_or_else(|_| ContentBlock::text(text()))
}

/// The text of a block that is nothing but text, as most are: the library tries all kinds in turn.
fn only_text(value: &mut Value) -> Option<String> {
    let map = value.as_object_mut().filter(|map| map.len() == 2)?;
    if map.get("type").and_then(Value::as_str) != Some("text") {
        return None;
    }
    match map.get_mut("text") {
        Some(Value::String(text)) => Some(std::mem::take(text)),
        _ => None,
    }
}

/// The client's form of a built-in tool's result: its text, and the parts beside it.
pub(crate) fn built_in(delivered: Item<'_>) -> CallToolResult {
    let Some(text) = delivered.get("text").and_then(Item::as_text) else {
        return CallToolResult::success(vec![ContentBlock::text(from_data(delivered))]);
    };
    let mut rest = data::to_object(delivered);
    rest.remove("text");
    let mut content = vec![ContentBlock::text(text)];
    if !rest.is_empty() {
        content.push(ContentBlock::text(Value::Object(rest).to_string()));
    }
    CallToolResult::success(content)
}

#[cfg(test)]
mod tests {
    use syscap::format::MapBuilder;

    use super::*;

    fn through(value: Value) -> Value {
        let answered = take(value, 1 << 20).unwrap();
        match foreign(answered.map.item()).unwrap() {
            CallToolResponse::Complete(result) => serde_json::to_value(result).unwrap(),
            CallToolResponse::InputRequired(result) => serde_json::to_value(result).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn results_come_through_whole() {
        let result = json!({
            "content": [
                {"type": "text", "text": "t", "annotations": {"priority": 0.5}},
                {"type": "image", "data": "AAE=", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "a://b", "text": "x"}},
            ],
            "structuredContent": {"$ref": "#/x", "n": 1.0, "big": u64::MAX},
            "isError": true, "_meta": {"a/b": 1},
        });
        let mut expected = result.clone();
        expected["resultType"] = json!("complete");
        assert_eq!(through(result), expected);
        assert_eq!(through(expected.clone()), expected);
        assert!(take(expected, 1 << 20).unwrap().is_error);
    }

    /// No server's line begins as the kernel's do.
    #[test]
    fn no_line_of_a_server_is_ours() {
        for said in
            ["[syscap] yes", "a\n[syscap] yes", "a\r [SysCap] yes", "\u{200b}[sys\u{ad}cap] yes"]
        {
            let through = through(json!({"content": [{"type": "text", "text": said}]}));
            let text = through["content"][0]["text"].as_str().unwrap();
            let expected = match said.split_once(['\n', '\r']) {
                Some((first, line)) => {
                    format!("{first}{}[server] {line}", &said[first.len()..=first.len()])
                }
                None => format!("[server] {said}"),
            };
            assert_eq!(text, expected);
        }
        let asis = json!({"content": [{"type": "text", "text": "see [syscap] there"}],
            "structuredContent": {"type": "text", "text": "[syscap] x"}, "resultType": "complete"});
        assert_eq!(through(asis.clone()), asis);
        let error = ErrorData::new(rmcp::model::ErrorCode(-32_021), "[syscap] no", None);
        let map = take_error(&error, 1 << 20).unwrap();
        assert_eq!(foreign(map.item()).unwrap_err().message, "[server] [syscap] no");
    }

    #[test]
    fn plain_text_is_what_the_library_reads() {
        for (value, plain) in [
            (json!({"type": "text", "text": "\u{0}t"}), true),
            (json!({"type": "text", "text": ""}), true),
            (json!({"type": "text", "text": "t", "_meta": {"a": 1}}), false),
            (json!({"type": "text", "text": 7}), false),
            (json!({"type": "text", "data": "t"}), false),
            (json!({"type": "image", "text": "t"}), false),
            (json!("text"), false),
        ] {
            assert_eq!(only_text(&mut value.clone()).is_some(), plain, "{value}");
            let read = serde_json::from_value(value.clone());
            let read = read.unwrap_or_else(|_| ContentBlock::text(value.to_string()));
            assert_eq!(block(value), read);
        }
    }

    /// An error that is said in another type is no success.
    #[test]
    fn a_part_of_another_type_is_no_result() {
        let content = json!([{"type": "text", "text": "t"}]);
        for (key, value) in [
            ("isError", json!("true")),
            ("isError", json!(1)),
            ("content", json!("t")),
            ("content", json!({"0": "t"})),
            ("resultType", json!(["complete"])),
            ("_meta", json!("m")),
        ] {
            let mut answer = json!({"content": content});
            answer[key] = value;
            let refused = take(answer.clone(), 1 << 20).map(|it| it.is_error).unwrap_err();
            assert_eq!(refused.reason(), Reason::Failed, "{answer}");
        }
        let nulls = json!({"content": content, "isError": null, "resultType": null, "_meta": null});
        assert!(!take(nulls, 1 << 20).unwrap().is_error);
    }

    #[test]
    fn null_structured_content_stays() {
        let through = through(json!({"content": [], "structuredContent": null}));
        assert_eq!(through.get("structuredContent"), Some(&Value::Null));
        assert_eq!(through.get("isError"), None);
    }

    #[test]
    fn blocks_of_another_revision_become_text() {
        let through = through(json!({"content": [{"type": "hologram", "x": 1}, 7]}));
        assert_eq!(through["content"][0]["type"], "text");
        assert_eq!(through["content"][0]["text"], r#"{"type":"hologram","x":1}"#);
        assert_eq!(through["content"][1]["text"], "7");
    }

    #[test]
    fn errors_of_the_protocol_stay_what_they_are() {
        for data in [None, Some(json!({"a": [1]}))] {
            let error = ErrorData::new(rmcp::model::ErrorCode(-32_021), "words", data);
            let map = take_error(&error, 1 << 20).unwrap();
            assert_eq!(foreign(map.item()).unwrap_err(), error);
            assert_eq!(take_error(&error, 10).unwrap_err().reason(), Reason::ResultTooLarge);
        }
        // No result can pass for one.
        let pretends = json!({"rpc_error": {"code": 1, "message": "x"}, "content": []});
        assert!(through(pretends)["content"].is_array());
        assert!(take(json!({"rpc_error": {"code": 1, "message": "x"}}), 1 << 20).is_err());
    }

    #[test]
    fn requests_for_input_stay_what_they_are() {
        let asked = json!({"resultType": "input_required", "requestState": "s",
            "inputRequests": {"a": {"method": "roots/list"}}});
        assert!(asks_for_input(&asked));
        assert_eq!(through(asked.clone())["requestState"], "s");
        assert_eq!(through(asked)["resultType"], "input_required");
    }

    #[test]
    fn malformed_result_is_a_failure() {
        let reason = |value: Value, max| take(value, max).err().unwrap().reason();
        assert_eq!(reason(json!([]), 100), Reason::Failed);
        assert_eq!(reason(json!({"resultType": "task"}), 100), Reason::Failed);
        assert_eq!(reason(json!({"tools": []}), 100), Reason::Failed);
        let large = json!({"content": [{"type": "text", "text": "x".repeat(200)}]});
        assert_eq!(reason(large, 100), Reason::ResultTooLarge);
        let deep = (0..70).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(reason(json!({"content": deep}), 1 << 20), Reason::TooDeep);
    }

    #[test]
    fn built_in_results_are_text() {
        let map = MapBuilder::new().text("text", "hello").uint("size", 5).finish();
        let result = built_in(map.item());
        let texts: Vec<&str> =
            result.content.iter().filter_map(|b| b.as_text()).map(|t| &*t.text).collect();
        assert_eq!(texts, ["hello", r#"{"size":5}"#]);
        assert_eq!(result.structured_content, None);
        let list = Canonical::list([Canonical::text("a")].into_iter());
        let result = built_in(list.item());
        assert_eq!(result.content[0].as_text().unwrap().text, r#"["a"]"#);
    }
}
