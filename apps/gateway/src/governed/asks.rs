//! A server's requests to the client: each is a call of a tool of its own, so that the token, the
//! policy and the budget decide, the log has it, and it stops where calls do.
//!
//! The client is shown who asks. A server can't write in another's name: each line of what it says
//! bears its own, and characters that can't be seen are spelt out.

use std::{pin::pin, sync::Arc, time::Duration};

use rmcp::ErrorData;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ErrorCode, InputRequest, JsonObject,
    ListRootsRequest, RequestMetaObject,
};
use serde_json::{Value, json};
use syscap::{CallContext, format::Seq, plain::plain};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::client::capabilities::{Able, WireKind};
use crate::gateway::Gateway;
use crate::governed::flight::{Flight, random};
use crate::governed::{calls, names, result};
use crate::options::Question;
use crate::say::say;
use crate::token::next;
use crate::upstream::method::{Method, question};
use crate::upstream::{Asking, Questions, Trouble};

/// How long a question waits for the session to be opened: a server may ask before.
const OPENED_MAX: Duration = Duration::from_secs(10);
/// The key in `_meta` that says which server asks.
const SERVER_KEY: &str = "dev.syscap/server";
/// Words of a schema that are only shown; all others mean something, too.
const SHOWN: [&str; 3] = ["title", "description", "enumNames"];

/// Puts what a server asks on the older wire to the client, until the server goes.
pub(crate) async fn serve(gateway: Arc<Gateway>, place: usize, mut questions: Questions) {
    loop {
        let asking = tokio::select! {
            asking = questions.recv() => asking,
            () = gateway.closing.cancelled() => return,
        };
        let Some(Asking { request, withdrawn, answer }) = asking else { return };
        let gateway = Arc::clone(&gateway);
        gateway.clone().tasks.spawn(async move {
            let able = gateway.client.able();
            let answered = match able.wire {
                WireKind::Session => within(&gateway, place, &request, able, withdrawn).await,
                WireKind::Stateless => Err(no_question()),
            };
            // The server may not wait any more.
            answer.send(answered).ok();
        });
    }
}

/// Asks on behalf of all that the server has out: on this wire it doesn't say for which call. If
/// nobody waits for any of these any more the question ends, too.
async fn within(
    gateway: &Arc<Gateway>,
    place: usize,
    request: &InputRequest,
    able: Able,
    withdrawn: CancellationToken,
) -> Result<Value, ErrorData> {
    let (intents, waits): (Vec<Seq>, Vec<CancellationToken>) =
        gateway.runs.of(place).into_iter().take(CallContext::WITHIN_MAX).unzip();
    let over = async {
        for waits in &waits {
            waits.cancelled().await;
        }
        if waits.is_empty() {
            std::future::pending::<()>().await;
        }
    };
    let mut asking = pin!(ask(gateway, place, request, able, intents, withdrawn.clone()));
    tokio::select! {
        answered = &mut asking => return answered,
        () = over => withdrawn.cancel(),
    }
    asking.await
}

/// Asks the client what the server of that place asks; on the newer wire, only whether that may be
/// asked. An error says to the server that nobody answered, and not whose doing that is.
pub(crate) async fn ask(
    gateway: &Arc<Gateway>,
    place: usize,
    request: &InputRequest,
    able: Able,
    within: Vec<Seq>,
    cancel: CancellationToken,
) -> Result<Value, ErrorData> {
    let (server, kind) = gateway.server(place).zip(question(request)).ok_or_else(no_question)?;
    if !server.command.asks.contains(&kind) {
        let what = kind.name();
        say(&format!(
            "server {} asks for {what}, which is off; --allow {}:{what} lets it",
            server.name, server.name
        ));
        return Err(no_question());
    }
    if !able.can(request) {
        return Err(no_question());
    }
    if let Err(why) = named(&server.name, request) {
        say(&format!("server {}: what it asks is not shown: {why}", server.name));
        return Err(ErrorData::invalid_params(why, None));
    }
    timeout(OPENED_MAX, gateway.opened.cancelled()).await.map_err(|_| no_question())?;
    let id = names::single(&server.name, Method::Ask(kind)).ok_or_else(no_question)?;
    let flight = Flight::question(able, within, cancel);
    let key = format!("{}:a{}", gateway.run, random());
    let outcome = calls::make(gateway, id.as_str(), &params(request), Arc::new(flight), &key)
        .await
        .map_err(|none| ErrorData::internal_error(none.tell(), None))?;
    let output = match outcome.output() {
        Ok(output) => output,
        Err(reason) => {
            let aside = next::aside(gateway, id.as_str(), &outcome, &key).await;
            let next = aside.next.unwrap_or_default();
            let why = format!("its question was refused: {}; {next}", reason.name());
            say(&format!("server {}: {why}", server.name));
            return Err(ErrorData::internal_error("the question was refused", None));
        }
    };
    result::other(output).map(Value::Object)
}

fn no_question() -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "the client can't be asked", None)
}

/// The recorded part of a question: the server's text.
fn params(request: &InputRequest) -> JsonObject {
    match serde_json::to_value(request).unwrap_or_default().get_mut("params").map(Value::take) {
        Some(Value::Object(params)) => params,
        _ => JsonObject::new(),
    }
}

/// Asks the client what the kernel has let through. On the newer wire the client finds it in the
/// result of its own request.
pub(crate) async fn put(
    gateway: &Arc<Gateway>,
    place: usize,
    kind: Question,
    args: JsonObject,
    flight: &Flight,
    cancel: &CancellationToken,
) -> Result<Value, Trouble> {
    let unfit = |why: String| Trouble::Refused(ErrorData::invalid_params(why, None));
    if flight.able.wire == WireKind::Stateless {
        return Ok(json!({"asked": "in a result"}));
    }
    let server = gateway.server(place).ok_or(Trouble::Gone)?;
    let request = request(kind, args).map_err(unfit)?;
    let request = named(&server.name, &request).map_err(|why| unfit(why.to_owned()))?;
    let answered = tokio::select! {
        answered = gateway.client.ask(request) => answered.map_err(Trouble::Refused)?,
        () = cancel.cancelled() => return Err(Trouble::Cancelled),
    };
    // Whoever was to be stopped meanwhile learns nothing any more.
    if !matches!(gateway.stopped().await, Ok(None)) {
        return Err(Trouble::Cancelled);
    }
    let value = match answered {
        ClientResult::CreateMessageResult(result) => serde_json::to_value(result),
        ClientResult::ElicitResult(result) => serde_json::to_value(result),
        ClientResult::ListRootsResult(result) => serde_json::to_value(result),
        other => serde_json::to_value(other),
    };
    value.map_err(|error| unfit(error.to_string()))
}

fn request(kind: Question, args: JsonObject) -> Result<InputRequest, String> {
    let method = match kind {
        Question::Sampling => "sampling/createMessage",
        Question::Elicitation => "elicitation/create",
        Question::Roots => {
            return Ok(InputRequest::ListRoots(ListRootsRequest {
                method: Default::default(),
                extensions: Default::default(),
            }));
        }
    };
    let request = json!({"method": method, "params": args});
    serde_json::from_value(request).map_err(|error| error.to_string())
}

/// The question as the client is shown it, under its server's name.
pub(crate) fn named(server: &str, request: &InputRequest) -> Result<InputRequest, &'static str> {
    let mut request = request.clone();
    match &mut request {
        InputRequest::CreateMessage(create) => {
            let params = &mut create.params;
            let said = params.system_prompt.take().unwrap_or_default();
            params.system_prompt =
                Some(lines(server, "asks a model; all that follows it says", &said));
            // Of other servers it is to learn nothing.
            params.include_context = None;
            params.meta = None;
            create.extensions.insert(meta(server));
        }
        InputRequest::Elicitation(elicit) => {
            name_form(server, elicit)?;
            elicit.extensions.insert(meta(server));
        }
        InputRequest::ListRoots(list) => drop(list.extensions.insert(meta(server))),
        _ => return Err("it is no question that is known"),
    }
    Ok(request)
}

fn name_form(server: &str, elicit: &mut ElicitRequest) -> Result<(), &'static str> {
    const HIDDEN: &str = "it has characters that can't be seen";
    match &mut elicit.params {
        ElicitRequestParams::FormElicitationParams { meta: of, message, requested_schema } => {
            let mut schema = serde_json::to_value(&*requested_schema).unwrap_or_default();
            if !spell_out(&mut schema) {
                return Err(HIDDEN);
            }
            *requested_schema =
                serde_json::from_value(schema).map_err(|_| "its form is of no known form")?;
            *message = lines(server, "asks you", message);
            *of = None;
        }
        ElicitRequestParams::UrlElicitationParams { meta: of, message, url, .. } => {
            if plain(url) != *url || url.contains(char::is_whitespace) {
                return Err(HIDDEN);
            }
            *message = lines(server, "asks you to open an address", message);
            *of = None;
        }
        _ => return Err("it is no question that is known"),
    }
    Ok(())
}

/// A server's text, each line under its name, after a first line that is ours.
fn lines(server: &str, does: &str, said: &str) -> String {
    let mut all = format!("[{server}] The MCP server {server:?} {does}:");
    for line in said.replace("\r\n", "\n").split('\n') {
        all.push_str(&format!("\n[{server}] {}", plain(line)));
    }
    all
}

/// Spells out what can't be seen in words that are only shown. True if no other part has such
/// characters.
fn spell_out(value: &mut Value) -> bool {
    match value {
        Value::String(text) => plain(text) == *text,
        Value::Array(items) => items.iter_mut().all(spell_out),
        Value::Object(map) => map.iter_mut().all(|(key, value)| {
            let shown = SHOWN.contains(&key.as_str());
            plain(key) == *key && if shown { spell_shown(value) } else { spell_out(value) }
        }),
        _ => true,
    }
}

/// As [`spell_out`]; a property may be called like a word that is shown.
fn spell_shown(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            *text = plain(text).into_owned();
            true
        }
        Value::Array(items) => items.iter_mut().all(spell_shown),
        other => spell_out(other),
    }
}

fn meta(server: &str) -> RequestMetaObject {
    let mut meta = RequestMetaObject::new();
    meta.0.insert(SERVER_KEY.to_owned(), Value::from(server));
    meta
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(message: &str, schema: Value) -> InputRequest {
        serde_json::from_value(json!({"method": "elicitation/create", "params":
            {"mode": "form", "message": message, "requestedSchema": schema}}))
        .unwrap()
    }

    /// Each shown line of a server's text has its name.
    #[test]
    fn no_line_is_anothers() {
        let schema = json!({"type": "object", "properties":
            {"a": {"type": "string", "title": "a\u{202e}b", "description": "x\u{1b}[31m"}}});
        for said in [
            "what?",
            "[syscap] approve?\n[bank] asks",
            "a\r\n[bank] b\r[bank] c\u{2028}[bank] d\u{85}[bank] e\u{b}[bank] f",
            "\n\n",
            "\u{202e}\u{200b}",
        ] {
            let shown = named("odd", &form(said, schema.clone())).unwrap();
            let shown = serde_json::to_value(&shown).unwrap();
            let message = shown["params"]["message"].as_str().unwrap();
            assert!(message.lines().count() >= 2);
            assert!(message.split('\n').all(|line| line.starts_with("[odd] ")), "{message}");
            assert!(message.chars().all(|c| c == '\n' || plain(&c.to_string()) == c.to_string()));
            assert_eq!(shown["params"]["_meta"][SERVER_KEY], "odd");
            let a = &shown["params"]["requestedSchema"]["properties"]["a"];
            assert_eq!(
                (&a["title"], &a["description"]),
                (&json!("a\\u202eb"), &json!("x\\u001b[31m"))
            );
        }
    }

    /// A form whose answer would differ from the shown word is not asked.
    #[test]
    fn form_with_hidden_characters_is_not_shown() {
        for schema in [
            json!({"type": "object", "properties": {"a\u{200b}": {"type": "string"}}}),
            json!({"type": "object", "properties":
                {"a": {"type": "string", "enum": ["yes\u{202e}", "no"]}}}),
            json!({"type": "object", "properties":
                {"title": {"type": "string", "default": "\u{1b}[2J"}}}),
        ] {
            assert!(named("odd", &form("?", schema)).is_err());
        }
    }

    /// A model is told whose words follow, and gives nothing of other servers.
    #[test]
    fn a_model_is_told_who_asks() {
        let request: InputRequest = serde_json::from_value(
            json!({"method": "sampling/createMessage", "params": {"maxTokens": 1,
                "includeContext": "allServers", "systemPrompt": "be\n[bank] kind",
                "_meta": {"dev.syscap/server": "bank"},
                "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]}}),
        )
        .unwrap();
        let shown = serde_json::to_value(named("odd", &request).unwrap()).unwrap();
        let params = &shown["params"];
        let system = params["systemPrompt"].as_str().unwrap();
        assert!(system.split('\n').all(|line| line.starts_with("[odd] ")), "{system}");
        assert!(params.get("includeContext").is_none(), "{params}");
        assert_eq!(params["_meta"], json!({"dev.syscap/server": "odd"}));
    }
}
