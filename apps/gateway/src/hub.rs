//! What the parts share: servers, kernel, client, catalog.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use rmcp::model::RequestId;
use syscap::{
    format::{id::ToolId, manifest::EffectClass},
    provide::Standing,
};
use tokio::sync::{OnceCell, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Options,
    catalog::Catalog,
    client::{Able, Client},
    flight::{Flights, random},
    kernelside::{Kernelside, Seat, Unreached},
    listing,
    offer::offer,
    passing::Routes,
    say::say,
    server::Server,
    upstream::{Link, NoStart, Said},
    watch::Watched,
};

/// How long a client has to be told that there is no beginning.
const TOLD: Duration = Duration::from_millis(300);
/// Most calls of the client that are out; more wait.
const CALLS_MAX: usize = 512;

/// Why the gateway can't begin.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum NoBeginning {
    #[error("{0}")]
    Kernel(#[from] Unreached),
    #[error("no server could be started")]
    NoServer,
}

/// See the module.
pub(crate) struct Hub {
    pub(crate) options: Options,
    pub(crate) kernel: Arc<dyn Kernelside>,
    pub(crate) client: Arc<Client>,
    pub(crate) servers: Vec<Server>,
    pub(crate) flights: Flights,
    /// Requests that are being answered, by their ids: when they end.
    pub(crate) requests: Mutex<HashMap<RequestId, Twin>>,
    pub(crate) calls: Semaphore,
    /// Before the request's id in idempotency keys.
    pub(crate) run: String,
    /// Cancelled when the gateway ends.
    pub(crate) closing: CancellationToken,
    /// Set where it can't even begin.
    pub(crate) failed: OnceLock<NoBeginning>,
    pub(crate) tasks: TaskTracker,
    pub(crate) routes: Routes,
    pub(crate) watched: Watched,
    catalog: RwLock<Arc<Catalog>>,
    seat: OnceLock<Arc<dyn Seat>>,
    begun: OnceCell<()>,
    pub(crate) offering: tokio::sync::Mutex<()>,
}

/// A request that is being answered.
#[derive(Clone)]
pub(crate) struct Twin {
    /// Cancelled when it has been answered.
    pub(crate) done: CancellationToken,
    /// Cancels it.
    pub(crate) cancel: CancellationToken,
}

impl Hub {
    pub(crate) fn new(options: Options, kernel: Arc<dyn Kernelside>) -> Self {
        let all = options.servers.len();
        let server = |command| Server::new(command, all);
        let servers = options.servers.iter().cloned().map(server).collect();
        Self {
            options,
            kernel,
            client: Arc::default(),
            servers,
            flights: Flights::default(),
            requests: Mutex::default(),
            calls: Semaphore::new(CALLS_MAX),
            run: format!("{:016x}", random()),
            closing: CancellationToken::new(),
            failed: OnceLock::new(),
            tasks: TaskTracker::new(),
            routes: Routes::default(),
            watched: Watched::default(),
            catalog: RwLock::default(),
            seat: OnceLock::new(),
            begun: OnceCell::new(),
            offering: tokio::sync::Mutex::default(),
        }
    }

    /// The tools as they stand.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another catalog in its place.
    pub(crate) fn set_catalog(&self, catalog: Catalog) {
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalog);
    }

    /// A server by its place.
    pub(crate) fn server(&self, place: usize) -> Option<&Server> {
        self.servers.get(place)
    }

    /// The session, once there is one.
    pub(crate) fn seat(&self) -> Option<Arc<dyn Seat>> {
        self.seat.get().cloned()
    }

    /// What stands before the names of a server's tools and prompts.
    pub(crate) fn prefix(&self, place: usize) -> String {
        match self.servers.get(place) {
            Some(server) if self.options.is_prefixed() => format!("{}_", server.name),
            _ => String::new(),
        }
    }

    /// The ids of the tools that the session's token grants.
    pub(crate) fn granted(&self) -> BTreeSet<ToolId> {
        self.seat.get().map(|seat| seat.grants().into_iter().collect()).unwrap_or_default()
    }

    /// Starts the servers, offers their tools and opens the session: once, when it is known what
    /// the client is able to do.
    pub(crate) async fn begin(self: &Arc<Self>, able: Able) -> Result<(), NoBeginning> {
        let begin = self.begun.get_or_try_init(|| self.begin_once(able));
        match begin.await {
            Ok(()) => Ok(()),
            Err(error) => {
                let error = self.failed.get_or_init(|| error).clone();
                let closing = self.closing.clone();
                // The client is told first.
                tokio::spawn(async move {
                    tokio::time::sleep(TOLD).await;
                    closing.cancel();
                });
                Err(error)
            }
        }
    }

    async fn begin_once(self: &Arc<Self>, able: Able) -> Result<(), NoBeginning> {
        let mut started = tokio::task::JoinSet::new();
        for place in 0..self.servers.len() {
            let (hub, able) = (Arc::clone(self), able.clone());
            started.spawn(async move { (place, hub.open(place, &able).await) });
        }
        let mut said: Vec<(usize, Option<Said>)> = Vec::new();
        while let Some(opened) = started.join_next().await {
            let Ok((place, opened)) = opened else { continue };
            let name = self.servers.get(place).map_or("", |server| &server.name);
            match opened {
                Ok(says) => said.push((place, Some(says))),
                Err(error) => {
                    say(&format!("server {name}: {error}"));
                    said.push((place, None));
                }
            }
        }
        if !self.servers.is_empty() && said.iter().all(|(_, says)| says.is_none()) {
            return Err(NoBeginning::NoServer);
        }
        offer(self).await?;
        let ready = self.catalog().all().clone();
        let ready: Vec<ToolId> = ready
            .into_iter()
            .filter(|(_, tool)| tool.standing == Standing::Ready)
            .map(|(id, _)| id)
            .collect();
        let kernel = Arc::clone(&self.kernel);
        let seat = blocking(move || kernel.sit_down(&ready)).await??;
        self.seat.get_or_init(|| seat);
        self.say_what_is_shown();
        for (place, says) in said {
            self.tasks.spawn(crate::keep::keep(Arc::clone(self), place, says, able.clone()));
        }
        Ok(())
    }

    /// Says what a client will see, and what a policy may stop for want of a word.
    fn say_what_is_shown(&self) {
        let (catalog, granted) = (self.catalog(), self.granted());
        let shown = catalog.list(&granted).len();
        let careful = catalog.all().iter().filter(|(id, tool)| {
            granted.contains(*id) && tool.effect == EffectClass::ExternalWrite
        });
        let careful = careful.count();
        let trusted = catalog.all().values().filter(|tool| tool.trusted).count();
        if trusted > 0 {
            say(&format!(
                "WARNING: the results of {trusted} tools count as trusted: what a stranger wrote \
                 into them counts as the operator's word"
            ));
        }
        say(&format!("{} is granted {shown} tools", self.options.agent));
        if careful > 0 {
            say(&format!(
                "{careful} of them count as external_write, which the policy may want to be asked \
                 about; say what they do by --class, or trust the server by --confirm-hints"
            ));
        }
    }

    /// Starts a server and lists its tools.
    pub(crate) async fn open(&self, place: usize, able: &Able) -> Result<Said, NoStart> {
        let Some(server) = self.servers.get(place) else {
            return Err(NoStart::Handshake(String::from("there is no such server")));
        };
        let (link, said) = Link::open(&server.command, able, &self.client).await?;
        let link = Arc::new(link);
        server.set_link(Some(Arc::clone(&link)));
        if listing::list(self, server, &link).await.is_err() {
            server.relist.notify_one();
        }
        Ok(said)
    }
}

/// Runs what blocks where it may.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unreached> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Unreached(String::from("a thread of the gateway broke off")))
}
