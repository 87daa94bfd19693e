//! Runs the calls of foreign tools that the kernel has approved.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CompleteRequest, GetPromptRequest,
    GetPromptRequestParams, InputRequest, InputRequiredResult, InputResponses, JsonObject,
    ReadResourceRequest, ReadResourceRequestParams, SubscribeRequest, SubscribeRequestParams,
    SubscriptionFilter,
};
use serde_json::{Value, json};
use syscap::format::{
    Amounts, Canonical, DefinitionHash, EffectClass, Reason, Refused, Seq, ToolId, TxOutcome,
};
use syscap::provide::{Done, HostCall, HostRan, Provider};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::client::capabilities::WireKind;
use crate::gateway::Gateway;
use crate::governed::flight::{Flight, RetryInput};
use crate::governed::{asks, data, result};
use crate::upstream::lists::{self, ListMethod};
use crate::upstream::method::Method;
use crate::upstream::{Connection, Trouble, Undefined};

/// How often a server may ask for more before one call goes on.
const ROUNDS_MAX: usize = 10;

/// See the module. The kernel waits on threads of its own, or is told; the work is done by the
/// runtime.
pub(crate) struct Runs {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) handle: Handle,
    /// The servers of the tools that it offers, by their places.
    pub(crate) servers: BTreeMap<ToolId, usize>,
}

impl Provider for Runs {
    fn location(&self, tool: &ToolId) -> Option<String> {
        let server = self.gateway.server(*self.servers.get(tool)?)?;
        Some(server.command.location())
    }

    fn run(&self, call: HostCall) -> HostRan {
        self.handle.block_on(run(&self.gateway, call))
    }

    fn begin(&self, call: HostCall, done: Done) -> Option<(HostCall, Done)> {
        let gateway = Arc::clone(&self.gateway);
        self.handle.spawn(async move { done(run(&gateway, call).await) });
        None
    }
}

async fn run(gateway: &Arc<Gateway>, call: HostCall) -> HostRan {
    let catalog = gateway.catalog();
    let Some(offered) = catalog.offered(&call.tool) else {
        return ran(Err(Refused::new(Reason::ProviderGone)), TxOutcome::NoOp);
    };
    let unknown =
        if changes_nothing(offered.effect) { TxOutcome::NoOp } else { TxOutcome::Unknown };
    let Some(connection) = gateway.server(offered.server).and_then(|server| server.connection())
    else {
        return ran(Err(Refused::new(Reason::ProviderGone)), TxOutcome::NoOp);
    };
    let flight = gateway.flights.find(call.tag);
    if let Some(flight) = &flight {
        flight.is_decided();
    }
    // Given up by the client, or by the kernel.
    let cancel = flight.as_ref().map(|flight| flight.cancel.child_token()).unwrap_or_default();
    let by_kernel = cancel.clone();
    call.cancel.on_cancel(move || by_kernel.cancel());
    let method = offered.definition.method;
    // A question is no call that a server makes another one for.
    let _out =
        (!method.is_question()).then(|| gateway.runs.enter(call.intent, offered.server, &cancel));
    // What the call was let through for must be what this very connection lists: the one before
    // may have been another program's.
    let defined = tokio::select! {
        defined = connection.defined(method, call.definition) => defined,
        () = cancel.cancelled() => {
            return ran(Err(Refused::new(Reason::Cancelled)), TxOutcome::NoOp);
        }
    };
    let name = match defined {
        Ok(name) => name,
        // Nothing was sent: it may be made again.
        Err(Undefined) => {
            let refused = Refused::new(Reason::Busy).field("list");
            return ran(Err(refused), TxOutcome::NoOp);
        }
    };
    let (place, intent) = (offered.server, call.intent);
    let to = To { gateway, place, intent, connection: &connection, cancel: &cancel };
    let args = data::to_object(call.args.item());
    let answer = to.call(method, call.definition, name, args, flight.as_ref()).await;
    let most = call.result_bytes_max;
    match answer {
        Ok(value) if method == Method::Tool => match result::take(value, most) {
            Ok(answered) if answered.is_error => {
                HostRan::failed(answered.map, unknown, Amounts::ZERO)
            }
            Ok(answered) if result::is_request(answered.map.item()) => {
                ran(Ok(answered.map), unknown)
            }
            Ok(answered) => ran(Ok(answered.map), done(offered.effect)),
            Err(refused) => ran(Err(refused), unknown),
        },
        Ok(value) => match result::take_other(value, most) {
            Ok(map) => ran(Ok(map), done(offered.effect)),
            Err(refused) => ran(Err(refused), unknown),
        },
        Err(Trouble::Refused(error)) => match result::take_error(&error, most) {
            Ok(error) => HostRan::failed(error, unknown, Amounts::ZERO),
            Err(refused) => ran(Err(refused), unknown),
        },
        Err(Trouble::Gone) => ran(Err(Refused::new(Reason::ProviderGone)), unknown),
        Err(Trouble::Cancelled) => ran(Err(Refused::new(Reason::Cancelled)), unknown),
    }
}

/// The destination of a call.
struct To<'c> {
    gateway: &'c Arc<Gateway>,
    place: usize,
    intent: Seq,
    connection: &'c Connection,
    cancel: &'c CancellationToken,
}

impl To<'_> {
    async fn call(
        &self,
        method: Method,
        definition: DefinitionHash,
        name: String,
        args: JsonObject,
        flight: Option<&Arc<Flight>>,
    ) -> Result<Value, Trouble> {
        match (method, flight) {
            (Method::List, _) => self.list(&args, flight).await,
            (Method::Subscribe, _) => self.subscribe(&args, flight).await,
            // Only a server asks; another caller of the home does not ask in its name.
            (Method::Ask(kind), Some(flight)) if flight.question => {
                asks::put(self.gateway, self.place, kind, args, flight, self.cancel).await
            }
            (Method::Ask(_), _) => {
                let words = "only the server itself asks that";
                Err(Trouble::Refused(ErrorData::invalid_request(words, None)))
            }
            _ => self.converse(method, definition, name, args, flight).await,
        }
    }

    /// Every page of a list.
    async fn list(
        &self,
        args: &JsonObject,
        flight: Option<&Arc<Flight>>,
    ) -> Result<Value, Trouble> {
        let method = match args.get("of").and_then(Value::as_str) {
            Some("resources") => ListMethod::Resources,
            Some("templates") => ListMethod::Templates,
            _ => return Err(odd("a list is of resources or of templates")),
        };
        let whole = lists::all(self.connection, method, flight, self.cancel).await?;
        Ok(json!({ method.key(): whole.entries }))
    }

    /// On the newer wire what a server says unasked comes by a subscription of ours.
    async fn subscribe(
        &self,
        args: &JsonObject,
        flight: Option<&Arc<Flight>>,
    ) -> Result<Value, Trouble> {
        let Some(uri) = args.get("uri").and_then(Value::as_str) else {
            return Err(odd("there is no uri"));
        };
        if self.connection.wire == WireKind::Session {
            let request = SubscribeRequest::new(SubscribeRequestParams::new(uri));
            let request = ClientRequest::SubscribeRequest(request);
            return self.connection.ask(request, flight, self.cancel).await;
        }
        let mut filter = SubscriptionFilter::new();
        filter.resource_subscriptions = Some(vec![uri.to_owned()]);
        tokio::select! {
            listening = self.connection.listen(uri, filter) => match listening {
                Ok(()) => Ok(json!({})),
                Err(error) => {
                    Err(Trouble::Refused(ErrorData::internal_error(error.to_string(), None)))
                }
            },
            () = self.cancel.cancelled() => Err(Trouble::Cancelled),
        }
    }

    /// One call, with all that the server asks in between of a client that can only be asked on
    /// the older wire.
    async fn converse(
        &self,
        method: Method,
        definition: DefinitionHash,
        name: String,
        args: JsonObject,
        flight: Option<&Arc<Flight>>,
    ) -> Result<Value, Trouble> {
        let mut input = flight.and_then(|flight| flight.input.clone()).unwrap_or_default();
        // A tool says so in a result, which a model reads.
        let unanswered = |error: ErrorData| match method {
            Method::Tool => Ok(result::unanswered(&error)),
            _ => Err(Trouble::Refused(error)),
        };
        for round in 0..ROUNDS_MAX {
            if round > 0 && self.connection.defined(method, definition).await.is_err() {
                return Err(Trouble::Gone);
            }
            let mut value = match request(method, &name, &args, &input)? {
                ClientRequest::CallToolRequest(tool) => {
                    self.connection.call(tool.params, flight, self.cancel).await?
                }
                request => self.connection.ask(request, flight, self.cancel).await?,
            };
            if !result::asks_for_input(&value) {
                return Ok(value);
            }
            let Ok(required) = serde_json::from_value::<InputRequiredResult>(value.clone()) else {
                return Ok(value);
            };
            let able = flight.map(|flight| flight.able.clone()).unwrap_or_default();
            let (mut responses, mut shown) = (InputResponses::new(), JsonObject::new());
            for (name, request) in required.input_requests.clone().unwrap_or_default() {
                let (able, cancel) = (able.clone(), self.cancel.child_token());
                let within = vec![self.intent];
                let answer =
                    asks::ask(self.gateway, self.place, &request, able, within, cancel).await;
                if self.cancel.is_cancelled() {
                    return Err(Trouble::Cancelled);
                }
                match answer {
                    Ok(answer) => drop(responses.insert(name.clone(), answer)),
                    Err(error) => return unanswered(error),
                }
                shown.insert(name, self.shown(&request)?);
            }
            if able.wire == WireKind::Stateless {
                if let Some(map) = value.as_object_mut() {
                    map.insert(String::from("inputRequests"), Value::Object(shown));
                }
                return Ok(value);
            }
            input = RetryInput { responses: Some(responses), state: required.request_state };
        }
        match method {
            Method::Tool => Ok(result::asks_too_often()),
            _ => Err(odd("the server asked for input too often")),
        }
    }

    /// A question as the client finds it in a result.
    fn shown(&self, request: &InputRequest) -> Result<Value, Trouble> {
        let server = self.gateway.server(self.place).ok_or(Trouble::Gone)?;
        let request = asks::named(&server.name, request).map_err(odd)?;
        serde_json::to_value(request).map_err(|_| odd("a question of no known form"))
    }
}

fn odd(words: &'static str) -> Trouble {
    Trouble::Refused(ErrorData::invalid_params(words, None))
}

/// The request that a call is at the server.
fn request(
    method: Method,
    name: &str,
    args: &JsonObject,
    input: &RetryInput,
) -> Result<ClientRequest, Trouble> {
    match method {
        Method::Prompt => {
            let mut params = GetPromptRequestParams::new(name);
            params.arguments = Some(args.clone());
            params.input_responses.clone_from(&input.responses);
            params.request_state.clone_from(&input.state);
            Ok(ClientRequest::GetPromptRequest(GetPromptRequest::new(params)))
        }
        Method::Read => {
            let uri = args.get("uri").and_then(Value::as_str).ok_or_else(|| odd("no uri"))?;
            let mut params = ReadResourceRequestParams::new(uri);
            params.input_responses.clone_from(&input.responses);
            params.request_state.clone_from(&input.state);
            Ok(ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params)))
        }
        Method::Complete => {
            let params = serde_json::from_value(Value::Object(args.clone()));
            let params = params.map_err(|_| odd("it is no request for completions"))?;
            Ok(ClientRequest::CompleteRequest(CompleteRequest::new(params)))
        }
        _ => {
            let mut params = CallToolRequestParams::new(name.to_owned());
            params.arguments = Some(args.clone());
            params.input_responses.clone_from(&input.responses);
            params.request_state.clone_from(&input.state);
            Ok(ClientRequest::CallToolRequest(CallToolRequest::new(params)))
        }
    }
}

const fn ran(result: Result<Canonical, Refused>, tx: TxOutcome) -> HostRan {
    HostRan::new(result, tx, Amounts::ZERO)
}

/// True if a call of this class changes nothing, here and elsewhere.
const fn changes_nothing(effect: EffectClass) -> bool {
    effect.is_read_only() || matches!(effect, EffectClass::ExternalRead)
}

const fn done(effect: EffectClass) -> TxOutcome {
    if changes_nothing(effect) { TxOutcome::NoOp } else { TxOutcome::Committed }
}
