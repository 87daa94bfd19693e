//! Lines as messages, and the answer to a line that is none.
//!
//! A request of a client is answered, whatever is wrong with it; under its own id, where that can
//! be told.

use std::{fmt, sync::Arc};

use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode, ErrorData, GetExtensions, JsonRpcMessage, RequestId,
};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::{governed::numbers::inexact, governed::repeats::repeated};

/// The content of a line.
pub(crate) enum Heard {
    /// A message.
    Message(Box<ClientJsonRpcMessage>),
    /// No message; this answer goes back.
    Answer(Vec<u8>),
    /// Nothing.
    Nothing,
}

/// The arguments of a call as they were sent: goes with a request where they hold an integer that
/// would become another number if it was read, or a key twice.
#[derive(Clone, Debug)]
pub(crate) struct AsSent(pub(crate) Arc<str>);

/// Reads a line.
pub(crate) fn hear(line: &[u8]) -> Heard {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Heard::Nothing;
    }
    match serde_json::from_slice::<ClientJsonRpcMessage>(line) {
        Ok(message) => exact(line, message),
        Err(error) if error.is_data() => odd(line),
        Err(_) => Heard::Answer(answer(
            &Addressed::of(line),
            &ErrorData::new(ErrorCode::PARSE_ERROR, "this is not JSON", None),
        )),
    }
}

/// The answer to a line of which this is the beginning, and which is too long.
pub(crate) fn too_long(head: &[u8]) -> Vec<u8> {
    answer(&Addressed::of(head), &ErrorData::invalid_request("the message is too long", None))
}

/// The answer to a request for which there is no room.
pub(crate) fn too_much(id: &RequestId) -> Vec<u8> {
    let id = to_raw_value(id).ok();
    let error = ErrorData::new(ErrorCode(-32_000), "too many requests are out", None);
    answer(&Addressed { id, method: true }, &error)
}

/// JSON that is no message. An odd notification may be passed over; an odd request gets an answer.
fn odd(line: &[u8]) -> Heard {
    let addressed = Addressed::of(line);
    if addressed.method && addressed.id.is_none() {
        return Heard::Nothing;
    }
    let error = ErrorData::invalid_request("this is no message of JSON-RPC", None);
    Heard::Answer(answer(&addressed, &error))
}

/// A message whose integers are what was sent, and whose keys each stand once. In the arguments of
/// a call the kernel refuses what is not, on the record; elsewhere it is refused here.
fn exact(line: &[u8], mut message: ClientJsonRpcMessage) -> Heard {
    let odd = |text: &[u8]| (inexact(text), repeated(text));
    let (integers, keys) = odd(line);
    if (integers, keys) == (0, 0) {
        return Heard::Message(Box::new(message));
    }
    let words = match keys {
        0 => "an integer is out of range",
        _ => "a key stands twice in one object",
    };
    let error = || ErrorData::invalid_params(words, None);
    match &mut message {
        JsonRpcMessage::Request(request) => match arguments(line) {
            Some(arguments) if odd(arguments.as_bytes()) == (integers, keys) => {
                request.request.extensions_mut().insert(AsSent(arguments.into()));
                Heard::Message(Box::new(message))
            }
            _ => Heard::Answer(answer(&Addressed::of(line), &error())),
        },
        // Who asked the client is told that it got no answer.
        JsonRpcMessage::Response(response) => {
            let id = response.id.clone();
            Heard::Message(Box::new(JsonRpcMessage::error(error(), Some(id))))
        }
        // Nobody waits for an answer: what can be read two ways says nothing.
        _ if keys > 0 => Heard::Nothing,
        _ => Heard::Message(Box::new(message)),
    }
}

/// The arguments of a call, as they stand there.
fn arguments(line: &[u8]) -> Option<&str> {
    #[derive(Deserialize)]
    struct Call<'l> {
        method: String,
        #[serde(borrow)]
        params: Params<'l>,
    }
    #[derive(Deserialize)]
    struct Params<'l> {
        #[serde(borrow)]
        arguments: &'l RawValue,
    }
    let call: Call<'_> = serde_json::from_slice(line).ok()?;
    (call.method == "tools/call").then(|| call.params.arguments.get())
}

/// To whom an answer goes.
#[derive(Default)]
struct Addressed {
    /// The id, as it was sent.
    id: Option<Box<RawValue>>,
    /// True if there is a method: a line without one may be an answer, and its id is one of ours.
    method: bool,
}

impl Addressed {
    /// The readable parts of a line, up to where it stops being JSON.
    fn of(line: &[u8]) -> Self {
        let mut seen = Self::default();
        // What was seen before an error counts.
        serde_json::Deserializer::from_slice(line).deserialize_map(&mut seen).ok();
        seen
    }

    /// The id, where an answer can bear it.
    fn id(&self) -> Option<&RawValue> {
        let id = self.id.as_deref().filter(|_| self.method)?;
        match serde_json::from_str(id.get()) {
            Ok(Value::String(_) | Value::Number(_)) => Some(id),
            _ => None,
        }
    }
}

impl<'de> Visitor<'de> for &mut Addressed {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "id" {
                self.id = Some(map.next_value()?);
            } else {
                self.method |= key == "method";
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

fn answer(to: &Addressed, error: &ErrorData) -> Vec<u8> {
    let id = to.id().map_or("null", RawValue::get);
    let error = json!({"code": error.code.0, "message": error.message});
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::downstream::straight::StraightCall;

    fn answered(line: &[u8]) -> Value {
        match hear(line) {
            Heard::Answer(answer) => serde_json::from_slice(&answer).unwrap(),
            Heard::Message(message) => panic!("{message:?}"),
            Heard::Nothing => panic!("{line:?} has no answer"),
        }
    }

    /// Every request has an answer under its own id, as long as that can be told.
    #[test]
    fn malformed_message_is_answered_under_its_id() {
        let big = "123456789012345678901234567890";
        for (id, back) in [
            ("1.5", json!(1.5)),
            ("-1e300", json!(-1e300)),
            ("9223372036854775808", json!(9_223_372_036_854_775_808_u64)),
            (big, serde_json::from_str(big).unwrap()),
            ("null", Value::Null),
            ("true", Value::Null),
            ("{\"a\":1}", Value::Null),
            ("[1]", Value::Null),
        ] {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}");
            let answer = answered(line.as_bytes());
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &back), "{id}");
        }
        // As it was sent, to the last digit.
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{big},\"method\":\"ping\"}}");
        let Heard::Answer(answer) = hear(line.as_bytes()) else { panic!("no answer") };
        assert!(String::from_utf8(answer).unwrap().contains(big));
    }

    #[test]
    fn malformed_json_is_answered_under_its_id() {
        for bad in ["\"\\ud800\"", "NaN", "-Infinity", "01", "\"\u{1}\""] {
            let line = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":\
                 {{\"name\":\"echo\",\"arguments\":{{\"x\":{bad}}}}}}}"
            );
            let answer = answered(line.as_bytes());
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32700), &json!(7)));
        }
        let utf8 =
            b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"m\",\"params\":{\"x\":\"\xff\"}}";
        assert_eq!(answered(utf8)["id"], "a");
        assert_eq!(answered(b"{\"method\":\"m\",\"id\":\"\\ud800\"}")["id"], Value::Null);
        assert_eq!(answered(b"words")["id"], Value::Null);
        assert_eq!(answered(&b"[".repeat(100_000))["error"]["code"], -32700);
    }

    /// The id of what may be an answer is one of ours: nothing goes back under it.
    #[test]
    fn possible_answer_gets_no_reply_under_its_id() {
        for line in
            ["{}", "{\"jsonrpc\":\"2.0\",\"id\":1}", "{\"id\":1,\"result\":{},\"error\":{}}"]
        {
            assert_eq!(answered(line.as_bytes())["id"], Value::Null, "{line}");
        }
        for line in ["", " \r", "{\"jsonrpc\":\"2.0\",\"method\":\"other/thing\",\"params\":7}"] {
            assert!(!matches!(hear(line.as_bytes()), Heard::Answer(_)), "{line}");
        }
    }

    /// A key that stands twice is refused: in a call's arguments by the kernel, elsewhere here.
    #[test]
    fn message_with_a_repeated_key_is_refused() {
        let call = |params: &str| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{params}}}"
            )
        };
        let args = r#"{"path":"a","path":"b"}"#;
        let line = call(&format!(r#"{{"name":"echo","arguments":{args}}}"#));
        assert!(StraightCall::read(line.as_bytes()).is_none());
        let Heard::Message(message) = hear(line.as_bytes()) else { panic!("none") };
        let JsonRpcMessage::Request(request) = *message else { panic!("no request") };
        assert_eq!(&*request.request.extensions().get::<AsSent>().unwrap().0, args);
        for params in [
            r#"{"name":"echo","name":"touch","arguments":{}}"#,
            r#"{"name":"echo","arguments":{},"_meta":{"a":1,"a":2}}"#,
            r#"{"name":"echo","arguments":{"a":1,"a":2},"_meta":{"a":1,"a":2}}"#,
        ] {
            let answer = answered(call(params).as_bytes());
            assert_eq!(answer["error"]["code"].as_i64().unwrap() / 10, -3260, "{params}");
            assert_eq!(answer["id"], 1);
        }
        let line = br#"{"jsonrpc":"2.0","id":1,"method":"ping","id":2}"#;
        assert!(matches!(hear(line), Heard::Answer(_)));
    }

    #[test]
    fn integers_stay_what_they_are() {
        let call = |args: &str, rest: &str| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":\
                 {{\"name\":\"echo\",\"arguments\":{args}{rest}}}}}"
            )
        };
        let args = "{\"n\":18446744073709551616}";
        let Heard::Message(message) = hear(call(args, "").as_bytes()) else { panic!("none") };
        let JsonRpcMessage::Request(request) = *message else { panic!("no request") };
        assert_eq!(&*request.request.extensions().get::<AsSent>().unwrap().0, args);
        let answer = answered(call("{}", ",\"_meta\":{\"n\":-9223372036854775809}").as_bytes());
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32602), &json!(1)));
        answered(call(args, ",\"_meta\":{\"n\":-9223372036854775809}").as_bytes());
        let fine = call("{\"n\":[18446744073709551615,-9223372036854775808,1e30,1.0]}", "");
        let Heard::Message(message) = hear(fine.as_bytes()) else { panic!("none") };
        let JsonRpcMessage::Request(request) = *message else { panic!("no request") };
        assert!(request.request.extensions().get::<AsSent>().is_none());
        // What a client answers is no number of its own either.
        let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"n\":99999999999999999999}}";
        let Heard::Message(message) = hear(line) else { panic!("none") };
        assert!(matches!(*message, JsonRpcMessage::Error(_)));
    }
}
