//! The shared parts: servers, kernel, client, catalog.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use syscap::format::{DefinitionHash, Dimension, GRANTS_MAX, Reason, ToolId};
use syscap::provide::Standing;
use syscap::remedy::HiddenHome;
use tokio::sync::{OnceCell, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::client::McpClient;
use crate::client::missing::Missing;
use crate::client::requests::Requests;
use crate::client::subscriptions::Subscriptions;
use crate::governed::catalog::{Catalog, ServerTool};
use crate::governed::flight::{Flights, ServerRuns, random};
use crate::governed::kernelside::{KernelSession, Kernelside, Unreached, blocking};
use crate::governed::twins::Twins;
use crate::options::Options;
use crate::say::say;
use crate::upstream::method::Method;
use crate::upstream::routes::Routes;
use crate::upstream::server::McpServer;
use crate::upstream::view::Starter;

/// How long it holds that something is let through, or nothing.
const STOP_AGE: Duration = Duration::from_millis(500);
/// Most calls that are waited for a person for at once.
const WAITS_MAX: usize = 64;
/// Most calls of the client that are out, whatever its token allows; more wait.
const CALLS_MAX: usize = 512;

/// Why the gateway can't begin.
#[derive(Clone, Debug)]
pub(crate) enum NoBeginning {
    Kernel(Unreached),
    /// Why each server could not be started.
    NoServer(String),
    Ends,
}

impl From<Unreached> for NoBeginning {
    fn from(why: Unreached) -> Self {
        Self::Kernel(why)
    }
}

impl NoBeginning {
    /// The text for the client.
    pub(crate) fn for_client(&self) -> String {
        match self {
            Self::Kernel(why) => why.for_client().to_owned(),
            Self::NoServer(why) => format!("no server could be started: {why}"),
            Self::Ends => String::from("the gateway ends"),
        }
    }

    /// The text for the operator.
    pub(crate) fn for_operator(&self) -> String {
        match self {
            Self::Kernel(why) => why.for_operator().to_owned(),
            // Why, each server's line says.
            Self::NoServer(_) => String::from("no server could be started, so the gateway ends"),
            Self::Ends => self.for_client(),
        }
    }
}

pub(crate) struct Gateway {
    pub(crate) options: Options,
    /// The parts of the home that no model learns.
    pub(crate) hidden: HiddenHome,
    pub(crate) kernel: Arc<dyn Kernelside>,
    pub(crate) client: Arc<McpClient>,
    pub(crate) servers: Vec<McpServer>,
    pub(crate) starter: Arc<Starter>,
    pub(crate) flights: Flights,
    pub(crate) runs: ServerRuns,
    pub(crate) requests: Requests,
    /// Before the request's id in idempotency keys.
    pub(crate) run: String,
    /// Cancelled when a server runs.
    pub(crate) running: CancellationToken,
    /// Cancelled when the session is open.
    pub(crate) opened: CancellationToken,
    /// Cancelled when the gateway ends.
    pub(crate) closing: CancellationToken,
    /// Set where it can't even begin.
    pub(crate) failed: OnceLock<NoBeginning>,
    pub(crate) tasks: TaskTracker,
    pub(crate) routes: Routes,
    pub(crate) subscriptions: Subscriptions,
    catalog: watch::Sender<Arc<Catalog>>,
    open: RwLock<Option<Arc<Open>>>,
    /// One at a time looks for another token.
    pub(crate) renewing: tokio::sync::Mutex<()>,
    /// Set once it has begun.
    pub(crate) begun: OnceCell<()>,
    pub(crate) offering: tokio::sync::Mutex<()>,
    /// The definitions of which the command line's word is on record: it counts once, as it was
    /// said, and what comes on record later is the newer word.
    restated: Mutex<BTreeSet<(ToolId, DefinitionHash)>>,
    /// The missing grants that the operator was told of.
    missing: Mutex<BTreeSet<Missing>>,
    /// Turns of calls that are waited for a person for.
    pub(crate) waits: Semaphore,
    pub(crate) twins: Twins,
    /// When it was last looked whether anything is let through, and that nothing is.
    stop: tokio::sync::Mutex<Option<(Instant, bool)>>,
}

impl Gateway {
    pub(crate) fn new(options: Options, kernel: Arc<dyn Kernelside>) -> Self {
        let all = options.servers.len();
        let server = |command| McpServer::new(command, options.passed(), all);
        let servers = options.servers.iter().cloned().map(server).collect();
        let hidden = HiddenHome::of(&options.home);
        let starter = Arc::new(Starter::new(&options));
        Self {
            options,
            starter,
            hidden,
            kernel,
            client: Arc::default(),
            servers,
            flights: Flights::default(),
            runs: ServerRuns::default(),
            requests: Requests::default(),
            run: format!("{:016x}", random()),
            running: CancellationToken::new(),
            opened: CancellationToken::new(),
            closing: CancellationToken::new(),
            failed: OnceLock::new(),
            tasks: TaskTracker::new(),
            routes: Routes::default(),
            subscriptions: Subscriptions::default(),
            catalog: watch::Sender::default(),
            open: RwLock::default(),
            renewing: tokio::sync::Mutex::default(),
            begun: OnceCell::new(),
            offering: tokio::sync::Mutex::default(),
            restated: Mutex::default(),
            missing: Mutex::default(),
            waits: Semaphore::new(WAITS_MAX),
            twins: Twins::default(),
            stop: tokio::sync::Mutex::default(),
        }
    }

    /// The tools as they stand.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.borrow())
    }

    /// The tools as they stand, now and after each change.
    pub(crate) fn catalogs(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    /// Puts another catalog in its place.
    pub(crate) fn set_catalog(&self, catalog: Catalog) {
        self.catalog.send_replace(Arc::new(catalog));
        self.note_offered();
    }

    pub(crate) fn server(&self, place: usize) -> Option<&McpServer> {
        self.servers.get(place)
    }

    /// The server of a tool, whether it runs or not: its name is the first part of the id.
    pub(crate) fn server_of(&self, tool: &ToolId) -> Option<&McpServer> {
        let name = tool.as_str().split('.').next();
        self.servers.iter().find(|server| Some(server.name.as_str()) == name)
    }

    /// The session that calls go by, once there is one.
    pub(crate) fn open(&self) -> Option<Arc<Open>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls go by this session from now on; those that are out end by the one before.
    pub(crate) fn set_session(&self, session: Arc<dyn KernelSession>) {
        let most = session.token().limits.get(Dimension::Concurrent);
        let slots = usize::try_from(most).unwrap_or(usize::MAX).clamp(1, CALLS_MAX);
        let open = Arc::new(Open { session, slots: Semaphore::new(slots) });
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = Some(open);
        self.note_offered();
    }

    /// Notes for the hook of this run which names the client is shown, before it is shown them. A name
    /// that is not noted is judged there, too.
    fn note_offered(&self) {
        let Some(uses) = &self.options.uses else { return };
        let tools = self.catalog().list(&self.granted());
        if let Err(error) = uses.offer(&self.run, tools.iter().map(|tool| &*tool.name)) {
            say(&format!("the run's hook asks about each tool once more: {error}"));
        }
    }

    /// True if the command line's class of a definition is new.
    pub(crate) fn is_said_first(&self, tool: &ToolId, definition: DefinitionHash) -> bool {
        let mut restated = self.restated.lock().unwrap_or_else(PoisonError::into_inner);
        restated.insert((tool.clone(), definition))
    }

    /// Notes what is missing now; gives what was not before.
    pub(crate) fn told_missing(&self, all: &BTreeSet<Missing>) -> Vec<Missing> {
        let mut told = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let news = all.difference(&told).cloned().collect();
        told.clone_from(all);
        news
    }

    /// The prefix of a server's tools and prompts.
    pub(crate) fn prefix(&self, place: usize) -> String {
        match self.servers.get(place) {
            Some(server) if self.options.is_prefixed() => format!("{}_", server.name),
            _ => String::new(),
        }
    }

    /// Why nothing is let through at present, of what is seen without a call.
    pub(crate) async fn stopped(&self) -> Result<Option<Reason>, Unreached> {
        let Some(open) = self.open() else { return Ok(None) };
        let (kernel, token) = (Arc::clone(&self.kernel), open.session.token().id);
        blocking(move || kernel.stopped(token)).await?
    }

    /// The same, as it was a moment ago, of what a server says unasked.
    pub(crate) async fn is_stopped(&self) -> bool {
        let mut known = self.stop.lock().await;
        match *known {
            Some((at, stopped)) if at.elapsed() < STOP_AGE => stopped,
            _ => {
                let stopped = !matches!(self.stopped().await, Ok(None));
                *known = Some((Instant::now(), stopped));
                stopped
            }
        }
    }

    /// The grants of a token that is issued here: all callable names, tools first, as far as a
    /// token grants so much.
    pub(crate) fn grantable(&self) -> Vec<ToolId> {
        let catalog = self.catalog();
        let ready = catalog.all().iter().filter(|(_, tool)| tool.standing == Standing::Ready);
        let is_tool = |tool: &ServerTool| tool.definition.method == Method::Tool;
        let (mut all, rest): (Vec<_>, Vec<_>) = ready.partition(|(_, tool)| is_tool(tool));
        let own = if self.options.built_in { catalog.own() } else { 0 };
        let room = GRANTS_MAX.saturating_sub(own).saturating_sub(all.len());
        all.extend(rest.into_iter().take(room));
        all.into_iter().map(|(id, _)| id.clone()).collect()
    }

    /// The ids of the tools that the session's token grants.
    pub(crate) fn granted(&self) -> BTreeSet<ToolId> {
        let open = self.open();
        open.map(|open| open.session.token().tools.iter().cloned().collect()).unwrap_or_default()
    }
}

/// A session that is open.
pub(crate) struct Open {
    pub(crate) session: Arc<dyn KernelSession>,
    /// As many calls as its token lets run at once; more wait, and are not refused.
    pub(crate) slots: Semaphore,
}
