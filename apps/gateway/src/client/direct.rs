//! Calls that come past the protocol library, on the older wire: made and answered as those that
//! come by it.

use std::sync::Arc;

use rmcp::model::{CallToolResponse, JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use rmcp::service::RequestContext;

use crate::client::capabilities::WireKind;
use crate::client::downstream::{StraightCall, StraightGuard, TakesCalls};
use crate::gateway::Gateway;
use crate::governed::{calls, result};

pub(crate) struct Direct(pub(crate) Arc<Gateway>);

impl TakesCalls for Direct {
    fn is_ready(&self) -> bool {
        let begun = self.0.begun.initialized() && self.0.failed.get().is_none();
        begun && self.0.client.wire() == Some(WireKind::Session)
    }

    fn make(&self, call: StraightCall, boarded: StraightGuard) {
        let gateway = Arc::clone(&self.0);
        let Some(peer) = gateway.client.peer() else { return };
        let mut context = RequestContext::new(call.id, peer);
        (context.meta, context.ct) = (call.meta, boarded.cancel());
        tokio::spawn(async move {
            let answer = match calls::call(&gateway, call.params, &context).await {
                Ok(CallToolResponse::Complete(result)) => {
                    let mut result = ServerResult::CallToolResult(result);
                    result.strip_result_type_for_legacy_peer();
                    JsonRpcMessage::response(result, context.id)
                }
                Ok(_) => JsonRpcMessage::error(result::needs_more(), Some(context.id)),
                Err(error) => JsonRpcMessage::error(error, Some(context.id)),
            };
            if !boarded.is_given_up() {
                put(&gateway, &answer);
            }
            drop(boarded);
        });
    }
}

fn put(gateway: &Gateway, answer: &ServerJsonRpcMessage) {
    // What was made here of values can be written.
    let Ok(mut line) = serde_json::to_vec(answer) else { return };
    line.push(b'\n');
    gateway.client.outbox.answer(&line);
}
