//! The transport to the client: lines of JSON over our standard streams, each way with a bound.
//!
//! It stands in for the protocol library's own so that a client can't exhaust memory by what it
//! leaves unread or asks at once, and so that every request has an answer.

mod input;
mod message;
mod outbox;
mod straight;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetExtensions, JsonRpcMessage,
    ServerJsonRpcMessage, ServerNotification, ServerResult,
};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::client::downstream::input::Line;
pub(crate) use crate::client::downstream::message::AsSent;
use crate::client::downstream::message::Heard;
pub(crate) use crate::client::downstream::outbox::Outbox;
use crate::client::downstream::outbox::Repeats;
use crate::client::downstream::straight::StraightCalls;
pub(crate) use crate::client::downstream::straight::{StraightCall, StraightGuard, TakesCalls};
use crate::say::say;

/// Most requests that are being answered; of more each is refused at once.
const REQUESTS_MAX: usize = 8_192;
/// Most bytes of them.
const REQUEST_BYTES_MAX: usize = 32 << 20;

/// How long calls have to be answered once the client's input has ended.
const DRAIN: Duration = Duration::from_secs(5);

pub(crate) struct ClientWire {
    lines: mpsc::Receiver<Line>,
    outbox: Arc<Outbox>,
    busy: Arc<Busy>,
    /// The handler of calls that do not go through the library.
    calls: Arc<dyn TakesCalls>,
    straight: Arc<StraightCalls>,
}

/// The requests being answered.
#[derive(Default)]
struct Busy {
    requests: AtomicUsize,
    bytes: AtomicUsize,
}

/// While it lives, a request is being answered.
struct InFlight {
    busy: Arc<Busy>,
    bytes: usize,
}

impl Busy {
    /// Takes a request in, where there is room for it.
    fn enter(self: &Arc<Self>, bytes: usize) -> Option<InFlight> {
        let requests = self.requests.fetch_add(1, Ordering::AcqRel);
        let before = self.bytes.fetch_add(bytes, Ordering::AcqRel);
        let entered = InFlight { busy: Arc::clone(self), bytes };
        let room = requests < REQUESTS_MAX && before < REQUEST_BYTES_MAX;
        room.then_some(entered)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.busy.requests.fetch_sub(1, Ordering::AcqRel);
        self.busy.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

impl ClientWire {
    /// A transport over two streams. `eof` is cancelled when the client's input has ended, or it
    /// can't be written to any more.
    pub(crate) fn new(
        read: impl AsyncRead + Unpin + Send + 'static,
        write: impl AsyncWrite + Unpin + Send + 'static,
        outbox: &Arc<Outbox>,
        calls: Arc<dyn TakesCalls>,
        eof: CancellationToken,
    ) -> Self {
        let (sender, lines) = mpsc::channel(1);
        tokio::spawn(input::read(read, sender, eof.clone()));
        let (writes, outbox) = (Arc::clone(outbox), Arc::clone(outbox));
        tokio::spawn(async move {
            if let Err(error) = writes.write(write).await {
                say(&format!("the client can't be answered any more: {error}"));
                eof.cancel();
            }
        });
        Self { lines, outbox, busy: Arc::default(), calls, straight: Arc::default() }
    }

    /// The library's part of a line; the rest is answered here.
    fn hear(&self, line: Line) -> Option<ClientJsonRpcMessage> {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong(head) => {
                say("a line of the client is too long");
                self.outbox.answer(&message::too_long(&head));
                return None;
            }
        };
        if self.calls.is_ready()
            && let Some(call) = StraightCall::read(&line)
        {
            match self.busy.enter(line.len()) {
                Some(entered) => {
                    let boarded = self.straight.enter(&call.id, entered);
                    self.calls.make(call, boarded);
                }
                None => self.outbox.answer(&message::too_much(&call.id)),
            }
            return None;
        }
        let mut message = match message::hear(&line) {
            Heard::Message(message) => *message,
            Heard::Answer(answer) => {
                self.outbox.answer(&answer);
                return None;
            }
            Heard::Nothing => return None,
        };
        if let JsonRpcMessage::Notification(told) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &told.notification
            && let Some(id) = &cancelled.params.request_id
        {
            self.straight.give_up(id);
        }
        if let JsonRpcMessage::Request(request) = &mut message {
            let Some(entered) = self.busy.enter(line.len()) else {
                self.outbox.answer(&message::too_much(&request.id));
                return None;
            };
            // Dropped with the request, when it has been answered.
            request.request.extensions_mut().insert(Arc::new(entered));
            if let ClientRequest::ListToolsRequest(_)
            | ClientRequest::ListPromptsRequest(_)
            | ClientRequest::ListResourcesRequest(_)
            | ClientRequest::ListResourceTemplatesRequest(_) = &request.request
            {
                let list = self.outbox.enter_list();
                request.request.extensions_mut().insert(Arc::new(list));
            }
        }
        Some(message)
    }

    fn put(&self, message: &ServerJsonRpcMessage) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        match message {
            JsonRpcMessage::Request(_) => {
                let full = |full| io::Error::new(io::ErrorKind::WouldBlock, full);
                return self.outbox.ask(&line).map_err(full);
            }
            JsonRpcMessage::Notification(told) => match &told.notification {
                ServerNotification::ToolListChangedNotification(_)
                | ServerNotification::PromptListChangedNotification(_)
                | ServerNotification::ResourceListChangedNotification(_)
                | ServerNotification::ResourceUpdatedNotification(_) => {
                    self.outbox.tell(line, Repeats::Same);
                }
                ServerNotification::ProgressNotification(_)
                | ServerNotification::LoggingMessageNotification(_) => {
                    self.outbox.tell(line, Repeats::News);
                }
                // They answer something, and are as few as that.
                _ => self.outbox.answer(&line),
            },
            JsonRpcMessage::Response(response) if is_list(&response.result) => {
                self.outbox.answer_list(&line);
            }
            _ => self.outbox.answer(&line),
        }
        Ok(())
    }
}

const fn is_list(result: &ServerResult) -> bool {
    matches!(
        result,
        ServerResult::ListToolsResult(_)
            | ServerResult::ListPromptsResult(_)
            | ServerResult::ListResourcesResult(_)
            | ServerResult::ListResourceTemplatesResult(_)
    )
}

impl Transport<RoleServer> for ClientWire {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        std::future::ready(self.put(&message))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            self.outbox.room_for_requests().await;
            let Some(line) = self.lines.recv().await else {
                // The library waits as long for those that it knows of.
                timeout(DRAIN, self.straight.answered()).await.ok();
                return None;
            };
            if let Some(message) = self.hear(line) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // What waits there is written by a task of its own.
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_much_is_answered_at_once() {
        let busy = Arc::<Busy>::default();
        let large = busy.enter(REQUEST_BYTES_MAX);
        assert!(large.is_some() && busy.enter(1).is_none());
        drop(large);
        let many: Vec<_> = (0..REQUESTS_MAX).map(|_| busy.enter(1)).collect();
        assert!(many.iter().all(Option::is_some) && busy.enter(1).is_none());
        drop(many);
        assert!(busy.enter(1).is_some());
    }
}
