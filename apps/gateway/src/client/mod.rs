//! The client: how it is told and asked.

pub(crate) mod approval;
pub(crate) mod capabilities;
pub(crate) mod direct;
pub(crate) mod downstream;
pub(crate) mod face;
pub(crate) mod missing;
pub(crate) mod requests;
pub(crate) mod subscriptions;
pub(crate) mod watch;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use rmcp::model::{
    CancelledNotificationParam, ClientResult, ErrorCode, InputRequest, LoggingMessageNotification,
    LoggingMessageNotificationParam, ProgressNotification, ProgressNotificationParam,
    PromptListChangedNotification, RequestId, ResourceListChangedNotification,
    ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerNotification,
    ServerRequest, ToolListChangedNotification,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext, ServiceError, SubscriptionSink};
use rmcp::{ErrorData, RoleServer};

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::client::capabilities::{Able, WireKind};
use crate::client::downstream::Outbox;
use crate::upstream::notice::ChangedList;

/// How long a client, and the person before it, may take for an answer.
const ASK_MAX: Duration = Duration::from_secs(600);
/// Most subscriptions of a client.
const SINKS_MAX: usize = 64;

/// A question that the client has got, and not answered.
struct Asked {
    /// `None` where it is answered, or the library has told the client that its time is over.
    id: Option<RequestId>,
    peer: Peer<RoleServer>,
    deaf: CancellationToken,
}

impl Asked {
    fn ended(mut self) {
        self.id = None;
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let reason = Some(String::from("nobody waits for the answer any more"));
        let notice = CancelledNotificationParam::new(Some(id), reason);
        let (peer, deaf) = (self.peer.clone(), self.deaf.clone());
        let told = async move {
            tokio::select! {
                told = peer.notify_cancelled(notice) => drop(told),
                () = deaf.cancelled() => {}
            }
        };
        // Without a runtime there is no connection either.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(told);
        }
    }
}

#[derive(Default)]
pub(crate) struct McpClient {
    peer: RwLock<Option<Peer<RoleServer>>>,
    able: RwLock<Able>,
    sinks: Mutex<Vec<SubscriptionSink>>,
    /// The messages that wait to be written to it.
    pub(crate) outbox: Arc<Outbox>,
    /// Cancelled when its input has ended: then it gets answers, and nothing else.
    pub(crate) deaf: CancellationToken,
}

impl McpClient {
    /// Notes who sent a request. The peer of a request that only asks what there is can't be
    /// told anything, so a later one takes its place.
    pub(crate) fn see(&self, context: &RequestContext<RoleServer>) {
        let mut peer = self.peer.write().unwrap_or_else(PoisonError::into_inner);
        if peer.as_ref().is_none_or(Peer::is_transport_closed) {
            *peer = Some(context.peer.clone());
            *self.able.write().unwrap_or_else(PoisonError::into_inner) = Able::of(context);
        }
    }

    /// Notes what a client says of itself when it begins a session.
    pub(crate) fn begins(&self, able: Able) {
        *self.able.write().unwrap_or_else(PoisonError::into_inner) = able;
    }

    /// Its capabilities when it was first seen.
    pub(crate) fn able(&self) -> Able {
        self.able.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Which wire it speaks, once it was seen.
    pub(crate) fn wire(&self) -> Option<WireKind> {
        let peer = self.peer.read().unwrap_or_else(PoisonError::into_inner);
        let able = self.able.read().unwrap_or_else(PoisonError::into_inner);
        peer.as_ref().filter(|peer| peer.peer_info().is_some()).map(|_| able.wire)
    }

    /// The library's end of the way to it.
    pub(crate) fn peer(&self) -> Option<Peer<RoleServer>> {
        self.peer.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn sinks(&self) -> MutexGuard<'_, Vec<SubscriptionSink>> {
        self.sinks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a subscription; whether there was room for it.
    pub(crate) fn subscribe(&self, sink: SubscriptionSink) -> bool {
        let mut sinks = self.sinks();
        let room = sinks.len() < SINKS_MAX;
        if room {
            sinks.push(sink);
        }
        room
    }

    /// Forgets a subscription.
    pub(crate) fn unsubscribe(&self, sink: &SubscriptionSink) {
        self.sinks().retain(|known| known.id() != sink.id());
    }

    /// Asks the client what a server asks, on the older wire, where it can be asked that. If this
    /// is dropped before the answer, the client is told that nobody waits for it.
    pub(crate) async fn ask(&self, request: InputRequest) -> Result<ClientResult, ErrorData> {
        let able = self.able();
        let cannot =
            || ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "the client can't be asked", None);
        let peer = self.peer().ok_or_else(cannot)?;
        if able.wire != WireKind::Session || !able.can(&request) {
            return Err(cannot());
        }
        let request = match request {
            InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
            InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
            InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
            _ => return Err(cannot()),
        };
        let options = PeerRequestOptions::with_timeout(ASK_MAX);
        let asked = async {
            let request = peer.send_request_with_option(request, options).await?;
            let asked = Asked { id: Some(request.id.clone()), peer, deaf: self.deaf.clone() };
            let answer = request.await_response().await;
            asked.ended();
            answer
        };
        asked.await.map_err(|error| match error {
            ServiceError::McpError(error) => error,
            other => ErrorData::internal_error(format!("the client did not answer: {other}"), None),
        })
    }

    /// Tells it how far a request has come.
    pub(crate) async fn progress(&self, progress: ProgressNotificationParam) {
        self.tell(ServerNotification::ProgressNotification(ProgressNotification::new(progress)))
            .await;
    }

    /// Passes a log message on.
    pub(crate) async fn log(&self, message: LoggingMessageNotificationParam) {
        let message = LoggingMessageNotification::new(message);
        self.tell(ServerNotification::LoggingMessageNotification(message)).await;
    }

    async fn tell(&self, notification: ServerNotification) {
        let Some(peer) = self.peer() else { return };
        tokio::select! {
            told = peer.send_notification(notification) => drop(told),
            () = self.deaf.cancelled() => {}
        }
    }

    /// Tells it that a list is another now.
    pub(crate) async fn changed(&self, list: ChangedList) {
        let notification = match list {
            ChangedList::Tools => ToolListChangedNotification::default().into(),
            ChangedList::Prompts => PromptListChangedNotification::default().into(),
            ChangedList::Resources => ResourceListChangedNotification::default().into(),
        };
        self.spread(notification).await;
    }

    /// Tells it that a resource has changed.
    pub(crate) async fn updated(&self, uri: &str) {
        let params = ResourceUpdatedNotificationParam::new(uri);
        self.spread(ResourceUpdatedNotification::new(params).into()).await;
    }

    /// Tells it by its subscriptions; on the older wire it needs none.
    async fn spread(&self, notification: ServerNotification) {
        let sinks = self.sinks().clone();
        for sink in sinks {
            tokio::select! {
                // A subscription that did not ask for it takes nothing.
                told = sink.send(notification.clone()) => drop(told),
                () = self.deaf.cancelled() => return,
            }
        }
        if self.able().wire == WireKind::Session {
            self.tell(notification).await;
        }
    }
}
