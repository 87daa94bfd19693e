//! Runs the calls of foreign tools that the kernel has approved.

use std::sync::Arc;

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, ClientResult, InputRequest, InputRequiredResult, InputResponses,
    },
};
use serde_json::Value;
use syscap::{
    format::{
        budget::Amounts,
        cbor::Canonical,
        envelope::TxOutcome,
        id::DefinitionHash,
        manifest::EffectClass,
        reason::{Reason, Refused},
    },
    provide::{Done, HostCall, HostRan, Provider},
};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::{
    capabilities::WireKind,
    data,
    flight::Flight,
    gateway::Gateway,
    result,
    upstream::{Connection, Trouble},
};

/// How often a server may ask for more before one call goes on.
const ROUNDS_MAX: usize = 10;

/// See the module. The kernel waits on threads of its own, or is told; the work is done by the
/// runtime.
pub(crate) struct Runs {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) handle: Handle,
}

impl Provider for Runs {
    fn run(&self, call: HostCall) -> HostRan {
        self.handle.block_on(run(&self.gateway, call))
    }

    fn begin(&self, call: HostCall, done: Done) -> Option<(HostCall, Done)> {
        let gateway = Arc::clone(&self.gateway);
        self.handle.spawn(async move { done(run(&gateway, call).await) });
        None
    }
}

async fn run(gateway: &Gateway, call: HostCall) -> HostRan {
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
    // Given up by the client, or by the kernel.
    let cancel = flight.as_ref().map(|flight| flight.cancel.child_token()).unwrap_or_default();
    let by_kernel = cancel.clone();
    call.cancel.on_cancel(move || by_kernel.cancel());
    // What the call was let through for must be what this very connection lists: the one before
    // may have been another program's.
    let defined = tokio::select! {
        defined = connection.defined(call.definition) => defined,
        () = cancel.cancelled() => {
            return ran(Err(Refused::new(Reason::Cancelled)), TxOutcome::NoOp);
        }
    };
    let Some(name) = defined else {
        return ran(Err(Refused::new(Reason::ProviderGone)), TxOutcome::NoOp);
    };
    let mut params = CallToolRequestParams::new(name);
    params.arguments = Some(data::to_object(call.args.item()));
    let to = (&*connection, call.definition);
    let answer = converse(gateway, to, params, flight.as_ref(), &cancel).await;
    match answer {
        Ok(value) => match result::take(value, call.result_bytes_max) {
            Ok(answered) if answered.is_error => failed(Ok(answered.map), unknown),
            Ok(answered) if result::is_request(answered.map.item()) => {
                ran(Ok(answered.map), unknown)
            }
            Ok(answered) => ran(Ok(answered.map), done(offered.effect)),
            Err(refused) => ran(Err(refused), unknown),
        },
        Err(Trouble::Refused(error)) => {
            failed(result::take_error(&error, call.result_bytes_max), unknown)
        }
        Err(Trouble::Gone) => ran(Err(Refused::new(Reason::ProviderGone)), unknown),
        Err(Trouble::Cancelled) => ran(Err(Refused::new(Reason::Cancelled)), unknown),
    }
}

/// One call, with all that the server asks in between of a client that can only be asked on the
/// older wire.
async fn converse(
    gateway: &Gateway,
    (connection, definition): (&Connection, DefinitionHash),
    mut params: CallToolRequestParams,
    flight: Option<&Arc<Flight>>,
    cancel: &CancellationToken,
) -> Result<Value, Trouble> {
    let input = flight.and_then(|flight| flight.input.clone()).unwrap_or_default();
    (params.input_responses, params.request_state) = (input.responses, input.state);
    for round in 0..ROUNDS_MAX {
        if round > 0 && connection.defined(definition).await.is_none() {
            return Err(Trouble::Gone);
        }
        let value = connection.call(params.clone(), flight, cancel).await?;
        if !result::asks_for_input(&value) {
            return Ok(value);
        }
        let Ok(required) = serde_json::from_value::<InputRequiredResult>(value.clone()) else {
            return Ok(value);
        };
        let able = flight.map(|flight| flight.able.clone()).unwrap_or_default();
        let requests = required.input_requests.clone().unwrap_or_default();
        if let Some(unable) = requests.values().find(|request| !able.can(request)) {
            return Ok(result::cannot_ask(unable));
        }
        if able.wire == WireKind::Stateless {
            return Ok(value);
        }
        let mut responses = InputResponses::new();
        for (name, request) in requests {
            match answer(gateway, request, cancel).await? {
                Ok(answer) => drop(responses.insert(name, answer)),
                Err(error) => return Ok(result::unanswered(&error)),
            }
        }
        (params.input_responses, params.request_state) = (Some(responses), required.request_state);
    }
    Ok(result::asks_too_often())
}

/// The client's answer to what a server asks.
async fn answer(
    gateway: &Gateway,
    request: InputRequest,
    cancel: &CancellationToken,
) -> Result<Result<Value, ErrorData>, Trouble> {
    let answered = tokio::select! {
        answered = gateway.client.ask(request) => answered,
        () = cancel.cancelled() => return Err(Trouble::Cancelled),
    };
    let value = answered.map(|answered| match answered {
        ClientResult::CreateMessageResult(result) => serde_json::to_value(result),
        ClientResult::ElicitResult(result) => serde_json::to_value(result),
        ClientResult::ListRootsResult(result) => serde_json::to_value(result),
        other => serde_json::to_value(other),
    });
    Ok(value.map(Result::unwrap_or_default))
}

const fn ran(result: Result<Canonical, Refused>, tx: TxOutcome) -> HostRan {
    HostRan::new(result, tx, Amounts::ZERO)
}

/// What the server itself calls a failure.
fn failed(result: Result<Canonical, Refused>, tx: TxOutcome) -> HostRan {
    HostRan { failed: true, ..ran(result, tx) }
}

/// Whether a call of this class leaves everything as it was, here and elsewhere.
const fn changes_nothing(effect: EffectClass) -> bool {
    effect.is_read_only() || matches!(effect, EffectClass::ExternalRead)
}

const fn done(effect: EffectClass) -> TxOutcome {
    if changes_nothing(effect) { TxOutcome::NoOp } else { TxOutcome::Committed }
}
