//! The transport to a server: lines of JSON over its standard streams, each with a bound.
//!
//! It stands in for the protocol library's own so that a server can't exhaust memory, that
//! answers arrive as they were sent, and that notifications keep their order.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientJsonRpcMessage, ClientRequest, CustomResult, ErrorCode, ErrorData,
    GetExtensions, GetMeta, JsonRpcMessage, ProgressToken, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::governed::flight::Flight;
use crate::governed::numbers::changes;
use crate::upstream::notice::{ChangedList, Changes, Missed, Notice, WaitingNotice};
use crate::upstream::straight::{Lines, Straight, WriteLine};

/// Longest line that a server may send.
pub(crate) const LINE_BYTES_MAX: usize = 8 << 20;
/// Most notifications that wait; of more, progress and log messages are dropped.
const NOTICES_MAX: usize = 1_024;
/// Most bytes of them.
pub(super) const NOTICE_BYTES_MAX: usize = 4 << 20;

/// Which request wants to hear of progress under which token.
#[derive(Default)]
pub(crate) struct Wants(Mutex<HashMap<ProgressToken, Arc<Flight>>>);

impl Wants {
    fn lock(&self) -> MutexGuard<'_, HashMap<ProgressToken, Arc<Flight>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request that wants to hear of progress under that token.
    pub(crate) fn find(&self, token: &ProgressToken) -> Option<Arc<Flight>> {
        self.lock().get(token).cloned()
    }

    /// Notes one.
    pub(super) fn note(&self, token: ProgressToken, flight: Arc<Flight>) {
        self.lock().insert(token, flight);
    }

    pub(crate) fn forget(&self, token: &ProgressToken) {
        self.lock().remove(token);
    }
}

/// Goes with a request to the transport: it is noted before the server can answer.
#[derive(Clone)]
pub(crate) struct Wanting(pub(crate) Arc<Flight>);

/// The receiver of a transport's reports.
pub(crate) struct Reports {
    /// The server's notifications.
    pub(crate) notices: mpsc::Receiver<WaitingNotice>,
    pub(crate) marks: mpsc::Sender<WaitingNotice>,
    /// Lists that changed while too much waited.
    pub(crate) missed: Arc<Missed>,
    /// How often the server has said that its tools or prompts changed: counted as it is read,
    /// before any answer that comes after it.
    pub(crate) changes: Arc<Changes>,
    /// Requests that want to hear of progress.
    pub(crate) wants: Arc<Wants>,
    /// Room for notices, in bytes.
    pub(super) room: Arc<Semaphore>,
    /// Calls that go past the library.
    pub(super) straight: Arc<Straight>,
    /// The server's standard input.
    pub(super) lines: Arc<dyn WriteLine>,
    /// Cancelled when nothing comes from the server any more.
    pub(crate) gone: CancellationToken,
}

pub(crate) struct Wire<R, W> {
    read: BufReader<R>,
    line: Vec<u8>,
    lines: Arc<Lines<W>>,
    straight: Arc<Straight>,
    notices: mpsc::Sender<WaitingNotice>,
    /// Room for notices, in bytes.
    room: Arc<Semaphore>,
    missed: Arc<Missed>,
    changes: Arc<Changes>,
    wants: Arc<Wants>,
    gone: CancellationToken,
    /// Requests whose answers the library reads itself.
    typed: Arc<Mutex<Vec<RequestId>>>,
    /// The client's capabilities for a server of the older wire.
    legacy: ClientCapabilities,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin + Send + 'static> Wire<R, W> {
    /// A transport over a server's standard output and input.
    pub(crate) fn new(read: R, write: W, legacy: ClientCapabilities) -> (Self, Reports) {
        let (sender, notices) = mpsc::channel(NOTICES_MAX);
        let (missed, gone) = (Arc::<Missed>::default(), CancellationToken::new());
        let (wants, changes) = (Arc::<Wants>::default(), Arc::<Changes>::default());
        let room = Arc::new(Semaphore::new(NOTICE_BYTES_MAX));
        let lines = Arc::new(Lines::new(write, gone.clone()));
        let straight = Arc::<Straight>::default();
        let reports = Reports {
            notices,
            marks: sender.clone(),
            missed: Arc::clone(&missed),
            changes: Arc::clone(&changes),
            wants: Arc::clone(&wants),
            room: Arc::clone(&room),
            straight: Arc::clone(&straight),
            lines: Arc::<Lines<W>>::clone(&lines),
            gone: gone.clone(),
        };
        let wire = Self {
            read: BufReader::with_capacity(64 << 10, read),
            line: Vec::new(),
            lines,
            straight,
            notices: sender,
            room,
            missed,
            changes,
            wants,
            gone,
            typed: Arc::default(),
            legacy,
        };
        (wire, reports)
    }

    /// Reads up to a newline into `line`. `None` at the end, at an error, and at a line that is too
    /// long. The bytes read stay in `line` if the future is dropped.
    async fn read_line(&mut self) -> Option<()> {
        loop {
            let available = self.read.fill_buf().await.ok()?;
            if available.is_empty() {
                return None;
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let take = newline.map_or(available.len(), |place| place.saturating_add(1));
            if self.line.len().saturating_add(take) > LINE_BYTES_MAX {
                return None;
            }
            self.line.extend_from_slice(available.get(..take).unwrap_or_default());
            self.read.consume(take);
            if newline.is_some() {
                return Some(());
            }
        }
    }

    /// The library's part of a line. The waiting call of an unreadable answer is told so at once.
    fn sort_line(&self) -> Option<ServerJsonRpcMessage> {
        let message = match serde_json::from_slice::<Value>(&self.line) {
            Ok(mut message) if Straight::has_made(&message) && changes(&self.line) => {
                refuse_result(&mut message);
                message
            }
            Ok(message @ Value::Object(_)) => message,
            // What is no JSON is what programs print by mistake; it is passed over.
            Ok(Value::Array(batch)) => return self.refuse_batch(&batch),
            Ok(_) => return None,
            Err(error) => unreadable(&self.line, &error.to_string())?,
        };
        self.sort(message, self.line.len())
    }

    /// Fails the calls that a batch answers, which the protocol does not have; what the library is
    /// to see of that.
    fn refuse_batch(&self, batch: &[Value]) -> Option<ServerJsonRpcMessage> {
        let answers = batch.iter().filter(|one| one.get("method").is_none());
        let ids = answers.filter_map(|answer| answer.get("id"));
        let refused = ids.filter_map(|id| self.sort(error_to(id, "it came in a batch"), 0));
        refused.reduce(|first, _| first)
    }

    /// The library's part of a message of so many bytes.
    fn sort(&self, mut message: Value, bytes: usize) -> Option<ServerJsonRpcMessage> {
        if is_empty_answer(&message) {
            let id = message.get("id").cloned().unwrap_or_default();
            message = error_to(&id, "it has neither a result nor an error");
        }
        if message.get("method").is_none() && self.straight.take(&mut message) {
            return None;
        }
        let method = message.get("method").and_then(Value::as_str);
        match (method, message.get("id")) {
            (Some(method), None | Some(Value::Null)) => {
                self.notice(method.to_owned(), message, bytes)
            }
            (Some(_), Some(_)) => serde_json::from_value(message).ok(),
            (None, _) => self.answer(message),
        }
    }

    fn notice(
        &self,
        method: String,
        mut message: Value,
        bytes: usize,
    ) -> Option<ServerJsonRpcMessage> {
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        let list = match method.as_str() {
            "notifications/progress" => return self.drop_if_full(Notice::Progress(params), bytes),
            "notifications/message" => return self.drop_if_full(Notice::Log(params), bytes),
            "notifications/resources/updated" => {
                return self.drop_if_full(Notice::Updated(params), bytes);
            }
            "notifications/tools/list_changed" => ChangedList::Tools,
            "notifications/prompts/list_changed" => ChangedList::Prompts,
            "notifications/resources/list_changed" => ChangedList::Resources,
            _ => {
                message.as_object_mut()?.insert(String::from("params"), params);
                return serde_json::from_value(message).ok();
            }
        };
        self.changes.count(list);
        if self.notices.try_send(Notice::Changed(list).into()).is_err() {
            self.missed.set(list);
        }
        None
    }

    fn drop_if_full(&self, notice: Notice, bytes: usize) -> Option<ServerJsonRpcMessage> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).try_acquire_many_owned(bytes).ok()?;
        self.notices.try_send(WaitingNotice { notice, room: Some(room) }).ok();
        None
    }

    /// An answer: as it is, but for those that the library waits for to know the server.
    fn answer(&self, mut message: Value) -> Option<ServerJsonRpcMessage> {
        let id: RequestId = serde_json::from_value(message.get("id")?.clone()).ok()?;
        if let Some(error) = message.get_mut("error") {
            let error = serde_json::from_value(error.take()).unwrap_or_else(|_| {
                ErrorData::new(ErrorCode::INTERNAL_ERROR, "an error of no known form", None)
            });
            return Some(JsonRpcMessage::error(error, Some(id)));
        }
        let result = message.get_mut("result")?.take();
        let mut typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        let result = match typed.iter().position(|waits| *waits == id) {
            Some(place) => {
                typed.swap_remove(place);
                match serde_json::from_value(result) {
                    Ok(result) => result,
                    Err(error) => {
                        let words = format!("{UNREADABLE}: {error}");
                        return Some(JsonRpcMessage::error(
                            ErrorData::internal_error(words, None),
                            Some(id),
                        ));
                    }
                }
            }
            None => ServerResult::CustomResult(CustomResult(result)),
        };
        Some(JsonRpcMessage::response(result, id))
    }

    /// Notes who wants to hear of progress and what the library reads itself, and tells an older
    /// server what the client can do on the older wire.
    fn prepare(&self, message: &mut ClientJsonRpcMessage) {
        let JsonRpcMessage::Request(request) = message else { return };
        let wanting = request.request.extensions().get::<Wanting>().cloned();
        let token = request.request.get_meta().get_progress_token();
        if let (Some(Wanting(flight)), Some(token)) = (wanting, token) {
            self.wants.note(token, flight);
        }
        match &mut request.request {
            ClientRequest::InitializeRequest(initialize) => {
                initialize.params.capabilities = self.legacy.clone();
            }
            ClientRequest::DiscoverRequest(_) | ClientRequest::SubscriptionsListenRequest(_) => {}
            _ => return,
        }
        self.typed.lock().unwrap_or_else(PoisonError::into_inner).push(request.id.clone());
    }
}

impl<R, W> Transport<RoleClient> for Wire<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        mut message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        self.prepare(&mut message);
        let lines = Arc::clone(&self.lines);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            lines.write(&line).await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if self.gone.is_cancelled() || self.read_line().await.is_none() {
                self.gone.cancel();
                return None;
            }
            let message = self.sort_line();
            self.line.clear();
            if let Some(message) = message {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.gone.cancel();
        self.lines.close();
        Ok(())
    }
}

/// The error for an unreadable answer.
const UNREADABLE: &str = "the server's answer can't be read";

/// The answer in the place of one that can't be read: under its id, where it has one.
fn unreadable(line: &[u8], why: &str) -> Option<Value> {
    answer_id(line).map(|id| error_to(&id, why))
}

fn error_to(id: &Value, why: &str) -> Value {
    let error = ErrorData::internal_error(format!("{UNREADABLE}: {why}"), None);
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

/// True if a message answers a request and says nothing.
fn is_empty_answer(message: &Value) -> bool {
    let has = |key: &str| message.get(key).is_some();
    has("id") && !has("method") && !has("result") && !has("error")
}

/// The id of a line that is an answer, though it may be no JSON: of its outermost object, or of the
/// first one in a list.
fn answer_id(line: &[u8]) -> Option<Value> {
    let is_list = line.trim_ascii_start().first() == Some(&b'[');
    let keys_at = if is_list { 2 } else { 1 };
    let (mut depth, mut rest, mut found) = (0_usize, line, None);
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            b'{' | b'[' => depth = depth.saturating_add(1),
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = string_end(rest)?;
                let (text, behind) = (rest.get(..end)?, rest.get(end.saturating_add(1)..)?);
                let value = behind.trim_ascii_start().strip_prefix(b":");
                rest = behind;
                match (value, text) {
                    (Some(_), b"method") if depth == keys_at => return None,
                    (Some(value), b"id") if depth == keys_at && found.is_none() => {
                        found = serde_json::Deserializer::from_slice(value)
                            .into_iter::<RequestId>()
                            .next()
                            .and_then(Result::ok);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    serde_json::to_value(found?).ok()
}

/// The end of a string whose first quote was read.
fn string_end(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })
}

/// Replaces a result, of which an integer was read as another number, by an error. Other answers
/// stay: they are on no record.
fn refuse_result(message: &mut Value) {
    let Some(answer) = message.as_object_mut().filter(|answer| answer.contains_key("result"))
    else {
        return;
    };
    answer.remove("result");
    let words = "the server's result has an integer outside [-2^63, 2^64-1]";
    let error = ErrorData::internal_error(words, None);
    answer.insert("error".to_owned(), serde_json::to_value(error).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::straight::{Answer, FIRST_ID};

    /// No integer of a result comes as another number.
    #[test]
    fn a_result_with_an_integer_beyond_the_range_is_an_error() {
        let none = ClientCapabilities::default();
        let said = |n: &str| {
            let id = Arc::<Straight>::default().begin().id;
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"n\":{n}}}}}\n");
            let line: &[u8] = line.into_bytes().leak();
            let (mut wire, _reports) = Wire::new(line, tokio::io::sink(), none.clone());
            let mut out = wire.straight.begin();
            assert_eq!(out.id, id);
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            assert!(runtime.block_on(wire.receive()).is_none());
            out.answer.try_recv().unwrap()
        };
        assert_eq!(said("18446744073709551615"), Ok(json!({"n": u64::MAX})));
        assert_eq!(said("1e30"), Ok(json!({"n": 1e30})));
        for n in ["18446744073709551616", "-9223372036854775809", "[{\"a\":99999999999999999999}]"]
        {
            assert_eq!(said(n).unwrap_err().code, ErrorCode::INTERNAL_ERROR, "{n}");
        }
    }

    /// The waiting call of an unreadable answer is told so, under its id.
    #[test]
    fn unreadable_answer_fails_its_call() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        for (result, behind) in [
            (r#""\ud800""#, true),
            (r#""\ud800""#, false),
            (deep.as_str(), true),
            (deep.as_str(), false),
            ("tru", false),
            ("\u{1}", false),
        ] {
            let id = Arc::<Straight>::default().begin().id;
            let line = match behind {
                true => format!("{{\"result\":{{\"id\":5,\"n\":{result}}},\"id\":{id}}}\n"),
                false => format!("{{\"id\" : {id},\"result\":{{\"id\":5,\"n\":{result}}}}}\n"),
            };
            assert_eq!(told(&line).unwrap_err().code, ErrorCode::INTERNAL_ERROR, "{line}");
        }
        let id = FIRST_ID;
        for line in [
            format!("[{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}]\n"),
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id}}}\n"),
        ] {
            assert_eq!(told(&line).unwrap_err().code, ErrorCode::INTERNAL_ERROR, "{line}");
        }
        // A request, or words with an id in them, are no answers.
        for line in [
            format!("{{\"id\":{id},\"method\":\"m\",\"params\":tru}}\n"),
            format!("words {{\"x\":{{\"id\":{id}}} tru\n"),
            format!("\"id\":{id}\n"),
        ] {
            assert!(answer_id(line.as_bytes()).is_none(), "{line}");
        }
    }

    fn told(line: &str) -> Answer {
        let line: &[u8] = line.to_owned().into_bytes().leak();
        let (mut wire, _reports) =
            Wire::new(line, tokio::io::sink(), ClientCapabilities::default());
        let mut out = wire.straight.begin();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert!(runtime.block_on(wire.receive()).is_none());
        out.answer.try_recv().unwrap()
    }

    /// Waiting notifications are bounded in bytes; announced changes are not forgotten.
    #[test]
    fn queued_notifications_are_bounded() {
        let mut said = Vec::new();
        for method in ["message", "progress", "resources/updated", "tools/list_changed"] {
            let params = json!({"data": "x".repeat(1 << 20)});
            let method = format!("notifications/{method}");
            let line = json!({"jsonrpc": "2.0", "method": method, "params": params});
            said.extend(format!("{line}\n").into_bytes().repeat(8));
        }
        let none = ClientCapabilities::default();
        let (mut wire, mut reports) = Wire::new(&*said.leak(), tokio::io::sink(), none);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert!(runtime.block_on(wire.receive()).is_none());
        let (mut large, mut changed) = (0, 0);
        while let Ok(waiting) = reports.notices.try_recv() {
            match waiting.notice {
                Notice::Changed(_) => changed += 1,
                _ => large += 1,
            }
        }
        assert_eq!((large, changed), (3, 8));
    }
}
