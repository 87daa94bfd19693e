//! A server: started, listed, asked, watched, and started again when it breaks off.

pub(crate) mod keep;
pub(crate) mod listing;
pub(crate) mod lists;
pub(crate) mod method;
pub(crate) mod notice;
mod process;
pub(crate) mod quota;
pub(crate) mod routes;
pub(crate) mod server;
mod server_requests;
pub(crate) mod starting;
mod stderr;
mod straight;
pub(crate) mod tools;
pub(crate) mod view;
mod wire;

use std::collections::HashMap;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestMethod, CallToolRequestParams, CancelledNotificationParam,
    ClientConfig, ClientRequest, ConstString, GetExtensions, Implementation, NumberOrString,
    ProgressToken, ProtocolVersion, RequestId, RequestMetaObject, ServerCapabilities, ServerResult,
    SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, PeerRequestOptions,
    RunningService, ServiceError, Subscription,
};
use rmcp::{ErrorData, RoleClient};
use serde_json::Value;
use syscap::format::DefinitionHash;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::client::capabilities::{Able, WireKind};
use crate::governed::flight::Flight;
use crate::options::{Question, ServerCommand};
use crate::upstream::listing::ToolListing;
use crate::upstream::method::Method;
use crate::upstream::notice::{ChangedList, Changes, Missed, Notice, WaitingNotice};
use crate::upstream::process::Exited;
pub(crate) use crate::upstream::server_requests::Asking;
use crate::upstream::server_requests::ServerRequests;
use crate::upstream::straight::{Params, Request, Straight, WriteLine};
use crate::upstream::view::{NotStarted, Starter, Unsafe};
use crate::upstream::wire::{NOTICE_BYTES_MAX, Wanting, Wants};

/// How long a server may take until it has said what it is. A package runner may load it first.
const START_MAX: Duration = Duration::from_secs(90);
/// How long what it said before an answer may take on its way to the client.
const MARK_MAX: Duration = Duration::from_secs(5);
/// How long it may take to say that a call is given up.
const CANCEL_MAX: Duration = Duration::from_secs(1);
/// How long a call waits for the list of tools that a server said is another now: longer than a
/// list may take.
const LISTED_MAX: Duration = Duration::from_secs(35);

/// A call is not sent: its server does not list what was let through, has announced another list and
/// does not give it, or has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Undefined;

/// Why a server did not answer with a result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// It answered with an error.
    #[error("the server answered with error {}: {}", .0.code.0, .0.message)]
    Refused(ErrorData),
    /// It broke off.
    #[error("the server broke off")]
    Gone,
    /// The call was abandoned.
    #[error("the call was given up")]
    Cancelled,
}

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoStart {
    #[error("can't start `{program}`: {}", cause(error))]
    Process { program: String, error: io::Error },
    #[error(transparent)]
    Unsafe(#[from] Unsafe),
    #[error("it did not say what it is: {0}")]
    Handshake(String),
    #[error("it refused to say what it is: {0}")]
    Refused(ErrorData),
    #[error("it said nothing for {} s", START_MAX.as_secs())]
    Silent,
    #[error("it ended before it said what it is: {0}")]
    Exited(Exited),
}

fn cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such program in PATH".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "it is no program, or this user may not run it".to_owned()
        }
        _ => error.to_string(),
    }
}

/// The fault at the beginning, without the library's rendering of the message: that is shown as its
/// own source has it.
pub(crate) fn handshake(said: &str) -> String {
    match said.split_once(", but received") {
        Some((wanted, _)) => format!("{wanted}, but what came was not of that form"),
        None => said.to_owned(),
    }
}

/// A connection to a running server.
pub(crate) struct Connection {
    peer: Peer<RoleClient>,
    /// Its capabilities.
    pub(crate) capabilities: ServerCapabilities,
    /// Its instructions to models.
    pub(crate) instructions: Option<String>,
    /// Which wire it speaks.
    pub(crate) wire: WireKind,
    /// Cancelled when nothing comes from it any more.
    pub(crate) gone: CancellationToken,
    /// Its permitted requests to the client.
    asks: Vec<Question>,
    changes: Arc<Changes>,
    tools: watch::Sender<Arc<ToolListing>>,
    prompts: watch::Sender<Arc<ToolListing>>,
    /// Wakes who rests before the next list: a call waits for it.
    tools_awaited: Notify,
    prompts_awaited: Notify,
    marks: mpsc::Sender<WaitingNotice>,
    wants: Arc<Wants>,
    /// Room for notices, in bytes: all of it, while none waits.
    room: Arc<Semaphore>,
    straight: Arc<Straight>,
    lines: Arc<dyn WriteLine>,
    running: Mutex<Option<RunningService<RoleClient, ServerRequests>>>,
    process: Mutex<Option<JoinHandle<Exited>>>,
    /// The subscriptions that keep the server sending notifications, on the newer wire.
    held: tokio::sync::Mutex<HashMap<String, Subscription>>,
}

/// A server's notifications, in order.
pub(crate) struct NoticeStream {
    pub(crate) notices: mpsc::Receiver<WaitingNotice>,
    pub(crate) missed: Arc<Missed>,
}

/// A server's requests to the client.
pub(crate) type Questions = mpsc::Receiver<Asking>;

impl Connection {
    /// Starts a server, whose end a task sees to, and learns what it is. The wire that the client
    /// speaks is tried first. A server of the older wire alone may print pages at the newer wire's
    /// first request, which it does not know: what it writes until it has answered is said only
    /// where it speaks the newer wire, or does not start.
    pub(crate) async fn open(
        starter: &Arc<Starter>,
        command: &ServerCommand,
        tasks: &TaskTracker,
        able: &Able,
    ) -> Result<(Self, NoticeStream, Questions), NoStart> {
        let able = &able.told(&command.asks);
        let first = Self::try_open(starter, command, tasks, able, able.wire).await;
        match (first, able.wire) {
            // One of the newer wire alone refuses `initialize`.
            (Err(NoStart::Refused(_)), WireKind::Session) => {
                Self::try_open(starter, command, tasks, able, WireKind::Stateless).await
            }
            // One of the older wire may break off at a question that it doesn't know.
            (Err(NoStart::Handshake(_) | NoStart::Exited(_)), WireKind::Stateless) => {
                Self::try_open(starter, command, tasks, able, WireKind::Session).await
            }
            (first, _) => first,
        }
    }

    async fn try_open(
        starter: &Arc<Starter>,
        command: &ServerCommand,
        tasks: &TaskTracker,
        able: &Able,
        wire: WireKind,
    ) -> Result<(Self, NoticeStream, Questions), NoStart> {
        let program = command.command.first().cloned().unwrap_or_default();
        let started = process::start(starter, command).await;
        let (process, stdout, stdin) = started.map_err(|error| match error {
            NotStarted::Unsafe(why) => NoStart::Unsafe(why),
            NotStarted::System(error) => NoStart::Process { program, error },
        })?;
        let heard = process.stderr_gate();
        if wire == WireKind::Session {
            heard.open();
        }
        let (transport, reports) = wire::Wire::new(stdout, stdin, able.in_session());
        let gone = reports.gone.clone();
        let process = tasks.spawn(process::see_off(process, gone.clone()));
        // Who does not wait for it any more has it ended.
        let given_up = gone.clone().drop_guard();
        let mut config = ClientConfig::new(
            able.capabilities.clone(),
            Implementation::new("syscap", env!("CARGO_PKG_VERSION")),
        );
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        let (handler, questions) = ServerRequests::new(config);
        let started = timeout(START_MAX, handler.serve_with_lifecycle(transport, lifecycle(wire)));
        let running = match started.await {
            Ok(Ok(running)) => running,
            Ok(Err(ClientInitializeError::JsonRpcError(error))) => {
                return Err(NoStart::Refused(error));
            }
            Ok(Err(error)) => {
                drop(given_up);
                let exited = process.await.unwrap_or_default();
                return Err(match exited.status {
                    Some(_) => NoStart::Exited(exited),
                    None => NoStart::Handshake(handshake(&error.to_string())),
                });
            }
            Err(_) => return Err(NoStart::Silent),
        };
        given_up.disarm();
        let peer = running.peer().clone();
        let info = peer.peer_info();
        let version = info.as_ref().map(|info| info.protocol_version.clone());
        let modern = version.is_some_and(|version| !version.has_initialize());
        match modern {
            true => heard.open(),
            // It was asked what it does not know, and has said so.
            false => heard.forget(),
        }
        let connection = Self {
            peer,
            capabilities: info.as_ref().map(|info| info.capabilities.clone()).unwrap_or_default(),
            instructions: info.and_then(|info| info.instructions.clone()),
            wire: if modern { WireKind::Stateless } else { WireKind::Session },
            gone,
            asks: command.asks.clone(),
            changes: reports.changes,
            tools: watch::Sender::default(),
            prompts: watch::Sender::default(),
            tools_awaited: Notify::new(),
            prompts_awaited: Notify::new(),
            marks: reports.marks,
            wants: reports.wants,
            room: reports.room,
            straight: reports.straight,
            lines: reports.lines,
            running: Mutex::new(Some(running)),
            process: Mutex::new(Some(process)),
            held: tokio::sync::Mutex::default(),
        };
        let notices = NoticeStream { notices: reports.notices, missed: reports.missed };
        Ok((connection, notices, questions))
    }

    /// Asks for something, for a client that waits for it.
    pub(crate) async fn ask(
        &self,
        mut request: ClientRequest,
        flight: Option<&Arc<Flight>>,
        cancel: &CancellationToken,
    ) -> Result<Value, Trouble> {
        let meta = flight.map_or_else(RequestMetaObject::new, |flight| self.meta(flight));
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let wants = flight.filter(|flight| flight.progress.is_some());
        if let Some(flight) = wants {
            request.extensions_mut().insert(Wanting(Arc::clone(flight)));
        }
        let sent = self.peer.send_cancellable_request(request, options).await;
        let handle = sent.map_err(|_| Trouble::Gone)?;
        let (id, token) = (handle.id.clone(), handle.progress_token.clone());
        let answer = tokio::select! {
            biased;
            answer = handle.await_response() => read(answer),
            () = self.gone.cancelled() => Err(Trouble::Gone),
            () = cancel.cancelled() => {
                self.give_up(id).await;
                Err(Trouble::Cancelled)
            }
        };
        if flight.is_some() {
            self.pass_on().await;
            self.wants.forget(&token);
        }
        answer
    }

    /// Calls a tool, for a client that waits for it.
    pub(crate) async fn call(
        &self,
        params: CallToolRequestParams,
        flight: Option<&Arc<Flight>>,
        cancel: &CancellationToken,
    ) -> Result<Value, Trouble> {
        let input = params.input_responses.is_some() || params.request_state.is_some();
        if self.wire == WireKind::Stateless || input {
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            return self.ask(request, flight, cancel).await;
        }
        let mut out = self.straight.begin();
        let mut meta = flight.map_or_else(RequestMetaObject::new, |flight| self.meta(flight));
        let token = ProgressToken(NumberOrString::Number(out.id));
        let wants = flight.filter(|flight| flight.progress.is_some());
        if let Some(flight) = wants {
            meta.set_progress_token(token.clone());
            self.wants.note(token.clone(), Arc::clone(flight));
        }
        let request = Request {
            jsonrpc: "2.0",
            id: out.id,
            method: CallToolRequestMethod::VALUE,
            params: Params {
                meta: (!meta.is_empty()).then_some(meta),
                name: &params.name,
                arguments: params.arguments.as_ref(),
            },
        };
        let answer = match serde_json::to_vec(&request) {
            Ok(mut line) => {
                line.push(b'\n');
                self.answer_to(&mut out, line, cancel).await
            }
            Err(_) => Err(Trouble::Gone),
        };
        self.pass_on().await;
        if wants.is_some() {
            self.wants.forget(&token);
        }
        answer
    }

    /// Writes a call and waits for its answer.
    async fn answer_to(
        &self,
        out: &mut straight::Out,
        line: Vec<u8>,
        cancel: &CancellationToken,
    ) -> Result<Value, Trouble> {
        let mut writing = Arc::clone(&self.lines).line(line);
        let at_once = poll_fn(|context| Poll::Ready(writing.as_mut().poll(context))).await;
        let written = async {
            let written = match at_once {
                Poll::Ready(written) => written,
                // Half a line would spoil the next: it is written whole, whoever gives it up.
                Poll::Pending => {
                    tokio::spawn(writing).await.unwrap_or(Err(ErrorKind::Other.into()))
                }
            };
            match written {
                Ok(()) => (&mut out.answer).await.ok(),
                Err(_) => None,
            }
        };
        tokio::select! {
            biased;
            answer = written => match answer {
                Some(answer) => answer.map_err(Trouble::Refused),
                None => Err(Trouble::Gone),
            },
            () = self.gone.cancelled() => Err(Trouble::Gone),
            () = cancel.cancelled() => {
                self.give_up(NumberOrString::Number(out.id)).await;
                Err(Trouble::Cancelled)
            }
        }
    }

    /// Tells the server that nobody waits for an answer any more.
    async fn give_up(&self, id: RequestId) {
        let reason = Some(String::from("nobody waits for it any more"));
        let notice = CancelledNotificationParam::new(Some(id), reason);
        timeout(CANCEL_MAX, self.peer.notify_cancelled(notice)).await.ok();
    }

    /// How often the server has said that its tools, or its prompts, changed.
    pub(crate) fn changes(&self, list: ChangedList) -> u64 {
        self.changes.get(list)
    }

    const fn listings(&self, list: ChangedList) -> &watch::Sender<Arc<ToolListing>> {
        match list {
            ChangedList::Prompts => &self.prompts,
            ChangedList::Tools | ChangedList::Resources => &self.tools,
        }
    }

    /// Its tools, or its prompts, as it last listed them.
    pub(crate) fn listing(&self, list: ChangedList) -> Arc<ToolListing> {
        Arc::clone(&self.listings(list).borrow())
    }

    /// It has listed its tools, or its prompts, or failed to.
    pub(crate) fn set_listing(&self, list: ChangedList, listing: ToolListing) {
        self.listings(list).send_replace(Arc::new(listing));
    }

    /// True if it has listed its tools, or its prompts, and announced no change since.
    pub(crate) fn is_listed(&self, list: ChangedList) -> bool {
        let listing = self.listing(list);
        listing.definitions.is_some() && listing.changes == self.changes(list)
    }

    /// Returns as soon as a call waits for the list.
    pub(crate) async fn awaited(&self, list: ChangedList) {
        match list {
            ChangedList::Prompts => self.prompts_awaited.notified().await,
            ChangedList::Tools | ChangedList::Resources => self.tools_awaited.notified().await,
        }
    }

    /// The name of the tool or the prompt of that definition, where the server lists it. After a
    /// change that it has announced by now, it must have listed them again. A single method needs no
    /// name.
    pub(crate) async fn defined(
        &self,
        method: Method,
        hash: DefinitionHash,
    ) -> Result<String, Undefined> {
        let (list, awaited) = match method {
            Method::Tool => (ChangedList::Tools, &self.tools_awaited),
            Method::Prompt => (ChangedList::Prompts, &self.prompts_awaited),
            _ => return Ok(String::new()),
        };
        let announced = self.changes(list);
        let mut seen = self.listings(list).subscribe();
        let name = async {
            loop {
                let listing = Arc::clone(&seen.borrow_and_update());
                if listing.changes >= announced {
                    return listing.name(hash).ok_or(Undefined);
                }
                awaited.notify_one();
                seen.changed().await.map_err(|_| Undefined)?;
            }
        };
        tokio::select! {
            name = timeout(LISTED_MAX, name) => name.unwrap_or(Err(Undefined)),
            () = self.gone.cancelled() => Err(Undefined),
        }
    }

    fn meta(&self, flight: &Flight) -> RequestMetaObject {
        let mut meta = flight.meta();
        if self.wire == WireKind::Stateless {
            meta.set_client_capabilities(flight.able.told(&self.asks).capabilities);
        }
        meta
    }

    /// Waits until what the server said before has been passed on.
    async fn pass_on(&self) {
        let silent = self.room.available_permits() == NOTICE_BYTES_MAX;
        if silent && self.marks.capacity() == self.marks.max_capacity() {
            return;
        }
        let (mark, passed) = oneshot::channel();
        let passed = async {
            if self.marks.send(Notice::Mark(mark).into()).await.is_ok() {
                passed.await.ok();
            }
        };
        timeout(MARK_MAX, passed).await.ok();
    }

    /// The request that wants to hear of progress under that token.
    pub(crate) fn flight_of(&self, token: &ProgressToken) -> Option<Arc<Flight>> {
        self.wants.find(token)
    }

    /// The protocol library's end of the connection.
    pub(crate) const fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    /// Wants to hear what the server says unasked, on the newer wire, under a name of ours.
    pub(crate) async fn listen(
        &self,
        name: &str,
        filter: SubscriptionFilter,
    ) -> Result<(), ServiceError> {
        let subscription = self.peer.listen(filter).await?;
        self.held.lock().await.insert(name.to_owned(), subscription);
        Ok(())
    }

    /// Wants to hear it no more.
    pub(crate) async fn unlisten(&self, name: &str) {
        let subscription = self.held.lock().await.remove(name);
        if let Some(mut subscription) = subscription {
            timeout(CANCEL_MAX, subscription.cancel()).await.ok();
        }
    }

    /// Ends the connection and the process; says how that ended.
    pub(crate) async fn close(&self) -> Exited {
        // A server that still serves a subscription may wait for its end.
        let held: Vec<Subscription> =
            self.held.lock().await.drain().map(|(_, subscription)| subscription).collect();
        for mut subscription in held {
            if !self.gone.is_cancelled() {
                timeout(CANCEL_MAX, subscription.cancel()).await.ok();
            }
        }
        self.gone.cancel();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(running) = running {
            running.cancellation_token().cancel();
        }
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        match process {
            Some(process) => process.await.unwrap_or_default(),
            None => Exited::default(),
        }
    }
}

fn lifecycle(wire: WireKind) -> ClientLifecycleMode {
    match wire {
        WireKind::Session => ClientLifecycleMode::Initialize,
        WireKind::Stateless => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    }
}

fn read(answer: Result<ServerResult, ServiceError>) -> Result<Value, Trouble> {
    match answer {
        Ok(ServerResult::CustomResult(result)) => Ok(result.0),
        Ok(result) => serde_json::to_value(result).map_err(|_| Trouble::Gone),
        Err(ServiceError::McpError(error)) => Err(Trouble::Refused(error)),
        Err(ServiceError::Cancelled { .. }) => Err(Trouble::Cancelled),
        Err(_) => Err(Trouble::Gone),
    }
}
