//! Calls that go to a server straight, past the protocol library: its loop, its tasks and its forms
//! cost a call more than all the rest on its way. Everything else goes by the library.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{ErrorCode, JsonObject, RequestMetaObject};
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long a server may leave its standard input unread.
const WRITE_MAX: Duration = Duration::from_secs(30);
/// The first of our ids. The library counts from 0, and does not come so far; there are servers
/// that know no larger integers than 31 bits.
pub(super) const FIRST_ID: i64 = 1 << 30;
/// How many ids there are before they begin anew.
const IDS: i64 = 1 << 29;

/// A server's answer.
pub(super) type Answer = Result<Value, ErrorData>;

/// The calls that are out.
#[derive(Default)]
pub(super) struct Straight {
    out: Mutex<HashMap<i64, oneshot::Sender<Answer>>>,
    next: AtomicI64,
}

/// A call that is out; forgotten when it is dropped.
pub(super) struct Out {
    calls: Arc<Straight>,
    pub(super) id: i64,
    pub(super) answer: oneshot::Receiver<Answer>,
}

impl Straight {
    fn lock(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<Answer>>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a call in. Its id is no other's that is out.
    pub(super) fn begin(self: &Arc<Self>) -> Out {
        let (sender, answer) = oneshot::channel();
        let mut out = self.lock();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed).rem_euclid(IDS);
            let id = FIRST_ID.saturating_add(number);
            if let Entry::Vacant(place) = out.entry(id) {
                place.insert(sender);
                return Out { calls: Arc::clone(self), id, answer };
            }
        }
    }

    /// True if a message may be the answer to one of ours.
    pub(super) fn has_made(message: &Value) -> bool {
        message.get("id").and_then(Value::as_i64).is_some_and(|id| id >= FIRST_ID)
    }

    /// Hands an answer on, where it is one to a call of ours.
    pub(super) fn take(&self, message: &mut Value) -> bool {
        let Some(id) = message.get("id").and_then(Value::as_i64) else { return false };
        if !Self::has_made(message) {
            return false;
        }
        let answer = if let Some(error) = message.get_mut("error") {
            let read = serde_json::from_value(error.take());
            Err(read.unwrap_or_else(|_| {
                ErrorData::new(ErrorCode::INTERNAL_ERROR, "an error of no known form", None)
            }))
        } else if let Some(result) = message.get_mut("result") {
            Ok(result.take())
        } else {
            return false;
        };
        let sender = self.lock().remove(&id);
        // Who waited for it may have given up.
        sender.is_some_and(|sender| sender.send(answer).is_ok())
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.id);
    }
}

/// A call's request.
#[derive(Serialize)]
pub(super) struct Request<'r> {
    pub(super) jsonrpc: &'static str,
    pub(super) id: i64,
    pub(super) method: &'static str,
    pub(super) params: Params<'r>,
}

/// The request.
#[derive(Serialize)]
pub(super) struct Params<'r> {
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(super) meta: Option<RequestMetaObject>,
    pub(super) name: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arguments: Option<&'r JsonObject>,
}

/// A server's standard input, for lines that are written whole, one after the other.
pub(super) struct Lines<W> {
    write: tokio::sync::Mutex<Option<W>>,
    gone: CancellationToken,
}

/// The same, whatever it is.
pub(super) trait WriteLine: Send + Sync {
    /// Writes a line. If that takes too long, or fails, the server counts as gone.
    fn line(self: Arc<Self>, line: Vec<u8>)
    -> Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;
}

impl<W: AsyncWrite + Unpin> Lines<W> {
    pub(super) fn new(write: W, gone: CancellationToken) -> Self {
        Self { write: tokio::sync::Mutex::new(Some(write)), gone }
    }

    pub(super) async fn write(&self, line: &[u8]) -> io::Result<()> {
        let mut write = self.write.lock().await;
        let writer = write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let written = timeout(WRITE_MAX, async {
            writer.write_all(line).await?;
            writer.flush().await
        });
        let written = written.await.unwrap_or(Err(io::ErrorKind::TimedOut.into()));
        if written.is_err() {
            self.gone.cancel();
        }
        written
    }

    /// Closes it. A write that hangs holds it; the process is ended all the same.
    pub(super) fn close(&self) {
        if let Ok(mut write) = self.write.try_lock() {
            drop(write.take());
        }
    }
}

impl<W: AsyncWrite + Unpin + Send + 'static> WriteLine for Lines<W> {
    fn line(
        self: Arc<Self>,
        line: Vec<u8>,
    ) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send>> {
        Box::pin(async move { self.write(&line).await })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_goes_to_its_call_alone() {
        let calls = Arc::<Straight>::default();
        let (mut one, mut two) = (calls.begin(), calls.begin());
        assert_ne!(one.id, two.id);
        assert!(!calls.take(&mut json!({"id": 0, "result": {}})));
        assert!(!calls.take(&mut json!({"id": format!("{}", one.id), "result": {}})));
        assert!(!calls.take(&mut json!({"id": FIRST_ID + 7, "result": {}})));
        assert!(!calls.take(&mut json!({"id": one.id})));
        assert!(calls.take(&mut json!({"id": two.id, "result": {"n": 2}})));
        assert!(calls.take(&mut json!({"id": one.id, "error": "odd"})));
        // A second answer is nobody's.
        assert!(!calls.take(&mut json!({"id": two.id, "result": {"n": 3}})));
        assert_eq!(two.answer.try_recv().unwrap(), Ok(json!({"n": 2})));
        assert_eq!(one.answer.try_recv().unwrap().unwrap_err().code.0, -32603);
        let gone = calls.begin().id;
        assert!(!calls.take(&mut json!({"id": gone, "result": {}})));
        assert!(calls.lock().is_empty());
    }
}
