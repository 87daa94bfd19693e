//! Calls that are taken from their line straight, past the protocol library: it reads a message
//! several times over, and hands it through a loop of its own. A line that is anything but the
//! plain form of a call is the library's.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, ConstString, JsonObject, RequestId,
    RequestMetaObject,
};
use serde::Deserialize;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    client::downstream::InFlight, governed::numbers::inexact, governed::repeats::repeated,
};

/// The plain form of a call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain<'l> {
    jsonrpc: &'l str,
    id: RequestId,
    method: &'l str,
    params: PlainParams,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainParams {
    name: String,
    arguments: Option<JsonObject>,
    #[serde(rename = "_meta")]
    meta: Option<RequestMetaObject>,
}

/// A call as it was read.
#[derive(Debug)]
pub(crate) struct StraightCall {
    pub(crate) id: RequestId,
    pub(crate) params: CallToolRequestParams,
    pub(crate) meta: RequestMetaObject,
}

impl StraightCall {
    /// Reads a line, where it is one. Integers that no reader keeps, and keys that stand twice, are
    /// the library's to refuse.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let plain: Plain<'_> = serde_json::from_slice(line).ok()?;
        if plain.jsonrpc != "2.0" || plain.method != CallToolRequestMethod::VALUE {
            return None;
        }
        let meta = plain.params.meta.unwrap_or_default();
        // Who says so much of itself speaks the newer wire.
        let modern = meta.protocol_version().is_some()
            || meta.client_capabilities().is_some()
            || meta.log_level().is_some();
        if modern || inexact(line) > 0 || repeated(line) > 0 {
            return None;
        }
        let mut params = CallToolRequestParams::new(plain.params.name);
        params.arguments = plain.params.arguments;
        Some(Self { id: plain.id, params, meta })
    }
}

/// Makes calls.
pub(crate) trait TakesCalls: Send + Sync {
    /// True if it takes calls at present.
    fn is_ready(&self) -> bool;

    /// Makes one, and answers it. It does not block.
    fn make(&self, call: StraightCall, boarded: StraightGuard);
}

/// The calls being answered.
#[derive(Default)]
pub(crate) struct StraightCalls {
    out: Mutex<HashMap<RequestId, Vec<(u64, Given)>>>,
    next: std::sync::atomic::AtomicU64,
    ended: Notify,
}

/// A client's cancellation of a call.
#[derive(Clone, Default)]
struct Given {
    cancel: CancellationToken,
    up: Arc<AtomicBool>,
}

/// While it lives the call is being answered.
pub(crate) struct StraightGuard {
    calls: Arc<StraightCalls>,
    id: RequestId,
    number: u64,
    given: Given,
    _in_flight: InFlight,
}

impl StraightCalls {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Vec<(u64, Given)>>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one in.
    pub(crate) fn enter(self: &Arc<Self>, id: &RequestId, in_flight: InFlight) -> StraightGuard {
        let (number, given) = (self.next.fetch_add(1, Ordering::Relaxed), Given::default());
        self.lock().entry(id.clone()).or_default().push((number, given.clone()));
        let calls = Arc::clone(self);
        StraightGuard { calls, id: id.clone(), number, given, _in_flight: in_flight }
    }

    /// The client does not wait for those of that id.
    pub(crate) fn give_up(&self, id: &RequestId) {
        let given: Vec<Given> = match self.lock().get(id) {
            Some(calls) => calls.iter().map(|(_, given)| given.clone()).collect(),
            None => return,
        };
        for given in given {
            given.up.store(true, Ordering::Release);
            given.cancel.cancel();
        }
    }

    /// Waits until all are answered.
    pub(crate) async fn answered(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // From here on nothing is missed.
            ended.as_mut().enable();
            if self.lock().is_empty() {
                return;
            }
            ended.await;
        }
    }
}

impl StraightGuard {
    /// Cancelled when the client does not wait any more.
    pub(crate) fn cancel(&self) -> CancellationToken {
        self.given.cancel.clone()
    }

    /// True if the client wants no answer.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given.up.load(Ordering::Acquire)
    }
}

impl Drop for StraightGuard {
    fn drop(&mut self) {
        let mut out = self.calls.lock();
        if let Some(calls) = out.get_mut(&self.id) {
            calls.retain(|(number, _)| *number != self.number);
            if calls.is_empty() {
                out.remove(&self.id);
            }
        }
        drop(out);
        self.calls.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<StraightCall> {
        StraightCall::read(line.as_bytes())
    }

    /// An odd line is left to the library, which names its fault.
    #[test]
    fn only_what_is_plain_is_taken() {
        let call = |id: &str, params: &str| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}"
            )
        };
        let plain = read(&call("7", "{\"name\":\"echo\",\"arguments\":{\"n\":[1.5,-3]}}")).unwrap();
        assert_eq!((plain.id, &*plain.params.name), (RequestId::Number(7), "echo"));
        assert_eq!(plain.params.arguments.unwrap().len(), 1);
        let meta = "{\"name\":\"e\",\"_meta\":{\"progressToken\":1,\"traceparent\":\"t\"}}";
        let meta = read(&call("\"a\"", meta)).unwrap().meta;
        assert!(meta.get_progress_token().is_some() && meta.get_traceparent() == Some("t"));
        for (id, params) in [
            ("1.5", "{\"name\":\"e\"}"),
            ("null", "{\"name\":\"e\"}"),
            ("1", "{}"),
            ("1", "{\"name\":7}"),
            ("1", "{\"name\":\"e\",\"arguments\":[]}"),
            ("1", "{\"name\":\"e\",\"name\":\"f\"}"),
            ("1", "{\"name\":\"e\",\"requestState\":\"s\"}"),
            ("1", "{\"name\":\"e\",\"arguments\":{\"n\":18446744073709551616}}"),
            ("1", "{\"name\":\"e\",\"arguments\":{\"n\":-0}}"),
            ("1", "{\"name\":\"e\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"x\"}}"),
        ] {
            assert!(read(&call(id, params)).is_none(), "{id} {params}");
        }
        let other = call("1", "{\"name\":\"e\"}").replace("tools/call", "tools/list");
        assert!(read(&other).is_none());
        assert!(read(&call("1", "{\"name\":\"e\"}").replace("2.0", "1.0")).is_none());
        assert!(read("{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{}}").is_none());
    }
}
