//! `tools/call`: every call goes to the kernel, and what it answers comes back.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject, RequestId, ServerResult,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use syscap::CallContext;
use syscap::format::{
    Canonical, IdempotencyKey, MapBuilder, Source, TRACE_BYTES_MAX, ToolId, object_id,
};
use tokio::sync::oneshot;

use tokio::time::Instant;

use crate::client::approval::{self, Waited};
use crate::client::downstream::AsSent;
use crate::gateway::{Gateway, Open};
use crate::governed::flight::{Flight, RetryInput};
use crate::governed::kernelside::{CallOutcome, Envelope, Lack, NoAnswer, Unreached};
use crate::governed::twins::Like;
use crate::governed::{data, names, refusal, result};
use crate::say::say;
use crate::token::{next, renewal};
use crate::upstream::starting;
use crate::uses;

/// Longest id of a request that stands in a key as it is.
const ID_BYTES_MAX: usize = 40;

/// Makes a call for the client.
pub(crate) async fn call(
    gateway: &Arc<Gateway>,
    params: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let id = tool(gateway, &params.name);
    let input = input(&params);
    let flight = Arc::new(Flight::new(context, input));
    let args = params.arguments.unwrap_or_default();
    let exact = context.extensions.get::<AsSent>();
    let key = match use_of_client(gateway, &params.name, context, &flight) {
        Ok(used) => used.unwrap_or_else(|| key(&gateway.run, &context.id)),
        Err(why) => return Ok(unanswered(gateway, &not_made(why)).into()),
    };
    let (envelope, like) = envelope(gateway, &id, &args, exact, &flight, &key);
    let is_built_in = gateway.catalog().is_built_in(&id);
    let sent = Sent { tool: ToolId::new(&id), envelope, like: Some(like) };
    let outcome = match send(gateway, sent, flight, &context.id).await {
        Ok(outcome) => outcome,
        Err(none) => return Ok(unanswered(gateway, &none).into()),
    };
    match outcome.output() {
        Err(reason) => {
            let aside = next::aside(gateway, &id, &outcome, &key).await;
            let (error, record) = (outcome.delivered.item(), outcome.record);
            let refused = refusal::RefusedCall { reason, error, record };
            let (catalog, granted) = (gateway.catalog(), gateway.granted());
            let known =
                refusal::Known { home: &gateway.hidden, catalog: &catalog, granted: &granted };
            Ok(refusal::result(refused, aside, &params.name, known).into())
        }
        Ok(output) => {
            let made = match is_built_in {
                true => result::built_in(output).into(),
                false => result::foreign(output)?,
            };
            Ok(match outcome.reason {
                Some(_) => refusal::failed(made, outcome.delivered.item(), outcome.record),
                None => made,
            })
        }
    }
}

/// Inside a run: notes for the hook that the call of a use has arrived, and gives the client's name for
/// the use, which then is the call's key: a use that is sent twice is made once. What answers a
/// server's question is another call of the same use.
fn use_of_client(
    gateway: &Gateway,
    name: &str,
    context: &RequestContext<RoleServer>,
    flight: &Flight,
) -> Result<Option<String>, &'static str> {
    let Some(uses) = &gateway.options.uses else { return Ok(None) };
    let id = uses::id_of(&context.meta);
    if let Err(error) = uses.call(id, name) {
        say(&format!("a call can't be held against its use: {error}"));
        return Err("the gateway can't note the call for the hook of this run");
    }
    let is_key = |id: &&str| IdempotencyKey::new(id).is_some() && flight.input.is_none();
    Ok(id.filter(is_key).map(str::to_owned))
}

/// A `tools/call` that has not the form of one. If its name and its arguments are sound, it is a
/// call without the rest; else the kernel refuses it, on the record.
pub(crate) async fn malformed(
    gateway: &Arc<Gateway>,
    params: Option<Value>,
    context: &RequestContext<RoleServer>,
) -> Result<Value, ErrorData> {
    let mut params = params.unwrap_or_default();
    let mut take = |key| params.get_mut(key).map(Value::take);
    let empty = || Value::Object(JsonObject::new());
    let response = match (take("name").unwrap_or_default(), take("arguments").unwrap_or_else(empty))
    {
        (Value::String(name), Value::Object(args)) => {
            let params = CallToolRequestParams::new(name).with_arguments(args);
            call(gateway, params, context).await?
        }
        (name, args) => refused(gateway, &name, &args, context).await.into(),
    };
    Ok(serde_json::to_value(ServerResult::from(response)).unwrap_or_default())
}

/// The kernel's refusal of a call without a name, or of arguments that are no object.
async fn refused(
    gateway: &Arc<Gateway>,
    name: &Value,
    args: &Value,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    let said = |value| data::to_canonical(value).unwrap_or_else(|_| Canonical::null());
    let map = MapBuilder::new().item("args", said(args).item());
    let map = match name.as_str() {
        Some(name) => map.text("tool_id", &tool(gateway, name)),
        None => map.item("tool_id", said(name).item()),
    };
    let flight = Arc::new(Flight::new(context, None));
    let sent = Sent { tool: None, envelope: Envelope::Canonical(map.finish()), like: None };
    match send(gateway, sent, flight, &context.id).await {
        Ok(CallOutcome { reason: Some(reason), delivered, record, .. }) => {
            // It names no tool that could fail.
            let refused = refusal::RefusedCall { reason, error: delivered.item(), record };
            let name = name.as_str().unwrap_or_default();
            let (catalog, granted) = (gateway.catalog(), gateway.granted());
            let known =
                refusal::Known { home: &gateway.hidden, catalog: &catalog, granted: &granted };
            refusal::result(refused, refusal::Aside::default(), name, known)
        }
        Ok(outcome) => result::built_in(outcome.delivered.item()),
        Err(none) => unanswered(gateway, &none),
    }
}

/// The answer without one of the kernel's: if the call ran or not, as far as that is known, and the
/// remedy.
fn unanswered(gateway: &Gateway, none: &NoAnswer) -> CallToolResult {
    match none {
        NoAnswer::NotMade(why) => refusal::not_made(why.tell()),
        NoAnswer::Unknown(why, intent) => {
            refusal::unknown(why.tell(), *intent, &next::unknown(gateway, *intent))
        }
    }
}

/// The id of the tool that clients call by that name; one that there is not, where there is none.
fn tool(gateway: &Gateway, name: &str) -> String {
    let catalog = gateway.catalog();
    catalog.id(name).map_or_else(|| names::nowhere(name), ToString::to_string)
}

fn input(params: &CallToolRequestParams) -> Option<RetryInput> {
    let input = RetryInput {
        responses: params.input_responses.clone(),
        state: params.request_state.clone(),
    };
    (input != RetryInput::default()).then_some(input)
}

/// The call as the kernel gets it, and what it has in common with calls that are the same. A
/// client's answer to a server's question is no argument, and is on record all the same.
fn envelope(
    gateway: &Gateway,
    id: &str,
    args: &JsonObject,
    exact: Option<&AsSent>,
    flight: &Flight,
    key: &str,
) -> (Envelope, Like) {
    let like = |args: &[u8]| gateway.twins.like(id, args);
    let map = MapBuilder::new().text("tool_id", id).text("idempotency_key", key);
    let map = match flight.trace.as_ref().filter(|trace| trace.len() <= TRACE_BYTES_MAX) {
        Some(trace) => {
            let from = MapBuilder::new().text("source", Source::Agent.name()).text("trace", trace);
            map.item("provenance", from.finish().item())
        }
        None => map,
    };
    let map = match &flight.input {
        Some(input) => {
            let input = json!({ "responses": input.responses, "state": input.state });
            match data::to_canonical(&input) {
                Ok(input) => map.item("mcp_input", input.item()),
                // As text, where it is deeper than what is data.
                Err(_) => map.text("mcp_input", &input.to_string()),
            }
        }
        None => map,
    };
    // Read, they would be other numbers than were sent.
    if let Some(AsSent(text)) = exact {
        let like = like(text.as_bytes());
        return (Envelope::Text(map.bytes("args", text.as_bytes()).finish()), like);
    }
    match data::to_args(args) {
        Ok(args) => {
            let like = like(args.as_bytes());
            (Envelope::Canonical(map.item("args", args.item()).finish()), like)
        }
        // The kernel says what is wrong with it.
        Err(_) => {
            let text = json!(args).to_string();
            let like = like(text.as_bytes());
            (Envelope::Text(map.bytes("args", text.as_bytes()).finish()), like)
        }
    }
}

/// One request of one run of the gateway is one call: who sends it again gets the first answer.
pub(crate) fn key(run: &str, request: &RequestId) -> String {
    match request {
        RequestId::Number(number) => format!("{run}:n{number}"),
        RequestId::String(text) => {
            let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
            if text.len() <= ID_BYTES_MAX && text.bytes().all(plain) {
                format!("{run}:s{text}")
            } else {
                let hash: String =
                    object_id(text.as_bytes()).to_string().chars().take(ID_BYTES_MAX).collect();
                format!("{run}:h{hash}")
            }
        }
    }
}

/// A call of a tool, as a client makes it.
struct Sent {
    /// The tool, where the call names one.
    tool: Option<ToolId>,
    envelope: Envelope,
    like: Option<Like>,
}

async fn send(
    gateway: &Arc<Gateway>,
    sent: Sent,
    flight: Arc<Flight>,
    id: &RequestId,
) -> Result<CallOutcome, NoAnswer> {
    let request = gateway.requests.enter(id, &flight.cancel).await.map_err(not_made)?;
    if let Some(tool) = &sent.tool {
        starting::wait(gateway, tool, &flight.cancel).await;
    }
    let outcome = go(gateway, sent.envelope, sent.like, flight).await;
    drop(request);
    outcome
}

/// Makes a call of anything but a tool, under a key of its own.
pub(crate) async fn make(
    gateway: &Arc<Gateway>,
    id: &str,
    args: &JsonObject,
    flight: Arc<Flight>,
    key: &str,
) -> Result<CallOutcome, NoAnswer> {
    let (envelope, _) = envelope(gateway, id, args, None, &flight, key);
    go(gateway, envelope, None, flight).await
}

async fn go(
    gateway: &Arc<Gateway>,
    envelope: Envelope,
    like: Option<Like>,
    flight: Arc<Flight>,
) -> Result<CallOutcome, NoAnswer> {
    let boarded = gateway.flights.board(Arc::clone(&flight));
    let envelope = Arc::new(envelope);
    let until = Instant::now().checked_add(gateway.options.approval_wait);
    let mut asked = None;
    loop {
        if let Some(like) = like {
            tokio::select! {
                turn = gateway.twins.turn(like) => flight.has_turn(turn),
                () = flight.cancel.cancelled() => {}
            }
        }
        let sent = send_by(gateway, &envelope, boarded.tag).await;
        flight.is_decided();
        let mut outcome = sent?;
        // What was refused did not run: it is sent again by the token that takes the other's place.
        if let Some(lack) = &outcome.1
            && renewal::go_on(gateway, &outcome.2, lack).await
        {
            outcome = send_by(gateway, &envelope, boarded.tag).await?;
        }
        // Nor did what waits for a person: the same call takes the answer up.
        let (outcome, flight) = (outcome.0, gateway.flights.find(boarded.tag));
        // By a question that has been waited for nothing goes on.
        if outcome.ask.is_some() && asked == outcome.ask {
            return Ok(CallOutcome { told: true, ..outcome });
        }
        asked = outcome.ask;
        let waited = match (flight.filter(|flight| !flight.question), until) {
            (Some(flight), Some(until)) => {
                approval::wait(gateway, &outcome, &envelope, &flight, until).await
            }
            _ => Waited::Not,
        };
        match waited {
            Waited::Answered => {}
            Waited::InVain => return Ok(CallOutcome { told: true, ..outcome }),
            Waited::Not => return Ok(outcome),
        }
    }
}

fn not_made(why: &'static str) -> NoAnswer {
    NoAnswer::NotMade(Unreached::new(why))
}

/// Sends it by the session that is open; what it lacked there, if that is what stopped it.
async fn send_by(
    gateway: &Arc<Gateway>,
    envelope: &Arc<Envelope>,
    tag: u64,
) -> Result<(CallOutcome, Option<Lack>, Arc<Open>), NoAnswer> {
    let open = gateway.open().ok_or_else(|| not_made("the session is not open"))?;
    let flight = gateway.flights.find(tag);
    // A question that waited for a call to end might wait for the one that it is asked for.
    let slot = match flight.as_ref().is_some_and(|flight| flight.question) {
        true => open.slots.try_acquire().ok(),
        false => Some(open.slots.acquire().await.map_err(|_| not_made("the gateway ends"))?),
    };
    let within = flight.as_ref().map(|flight| flight.within.clone()).unwrap_or_default();
    let cancel = flight.map(|flight| flight.cancel.clone()).unwrap_or_default();
    // No more is done for a client than it reads.
    tokio::select! {
        () = gateway.client.outbox.room() => {}
        () = cancel.cancelled() => {}
        () = gateway.closing.cancelled() => return Err(not_made("the gateway ends")),
    }
    let (told, outcome) = oneshot::channel();
    // Who gave it up does not wait for it any more.
    let done = Box::new(move |outcome| drop(told.send(outcome)));
    Arc::clone(&open.session).submit(
        Arc::clone(envelope),
        CallContext { tag, within, unasked: false },
        done,
    );
    let broken = || Unreached::new("a thread of the gateway broke off");
    let outcome = outcome.await.unwrap_or_else(|_| Err(NoAnswer::Unknown(broken(), None)));
    drop(slot);
    let outcome = outcome?;
    let lack = renewal::lack(&outcome, open.session.token());
    Ok((outcome, lack, open))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_of_their_form_and_distinct() {
        let ids = [
            RequestId::Number(1),
            RequestId::Number(-1),
            RequestId::Number(i64::MIN),
            RequestId::String("1".into()),
            RequestId::String("n1".into()),
            RequestId::String("".into()),
            RequestId::String("a b".into()),
            RequestId::String("x".repeat(41).into()),
            RequestId::String("x".repeat(1_000).into()),
        ];
        let keys: Vec<String> = ids.iter().map(|id| key("0123456789abcdef", id)).collect();
        for key in &keys {
            assert!(IdempotencyKey::new(key).is_some(), "{key}");
        }
        let distinct: std::collections::BTreeSet<&String> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
        assert_ne!(key("a", &ids[0]), key("b", &ids[0]));
    }
}
