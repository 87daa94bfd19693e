//! From start to end: the home, the client's streams, signals, and an end in order.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use rmcp::{ServiceExt, service::ServerInitializeError, transport::stdio_pipes};
use syscap::format::TokenId;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::begin;
use crate::client::direct::Direct;
use crate::client::downstream::ClientWire;
use crate::client::face::Face;
use crate::error::Error;
use crate::gateway::{Gateway, NoBeginning};
use crate::governed::kernelside::{Kernelside, blocking};
use crate::governed::names;
use crate::options::Options;
use crate::say::say;
use crate::token::home::HomeKernel;
use crate::token::incoming;
use crate::upstream;
use crate::upstream::server::McpServer;

/// Threads for calls that wait for the kernel, beside some for other work.
const THREADS_MAX: usize = 576;
/// How long calls may go on once the client's input has ended.
const FINISH: Duration = Duration::from_millis(1_000);
/// How long they have to end once they were given up.
const DRAIN: Duration = Duration::from_secs(3);
/// How long the client may take to read the last answers.
const FLUSH: Duration = Duration::from_secs(2);
/// How long servers and home have to be closed.
const CLOSE: Duration = Duration::from_secs(10);

/// A gateway with its home, and the threads for it.
struct Begun {
    runtime: tokio::runtime::Runtime,
    home: Arc<HomeKernel>,
    gateway: Arc<Gateway>,
}

impl Begun {
    fn new(options: Options) -> Result<Self, Error> {
        let mut seen = BTreeSet::new();
        for server in &options.servers {
            if !names::is_server(&server.name) || !seen.insert(server.name.clone()) {
                return Err(Error::Name(server.name.clone()));
            }
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(THREADS_MAX)
            .enable_all()
            .build()
            .map_err(Error::Threads)?;
        let home = Arc::new(HomeKernel::open(&options, incoming::read_by(runtime.handle()))?);
        let kernel: Arc<dyn Kernelside> = Arc::<HomeKernel>::clone(&home);
        let gateway = Arc::new(Gateway::new(options, kernel));
        gateway.starter.check_all(&gateway.options.servers)?;
        Ok(Self { runtime, home, gateway })
    }

    fn end(self) -> Result<(), Error> {
        if let Some(uses) = &self.gateway.options.uses
            && let Err(error) = uses.withdraw(&self.gateway.run)
        {
            say(&format!("the names for the run's hook are left behind: {error}"));
        }
        drop(self.gateway);
        // A thread that still reads standard input, or waits for a call without end, is left behind.
        self.runtime.shutdown_timeout(DRAIN);
        Ok(self.home.close()?)
    }
}

/// See [`crate::run`].
pub(crate) fn run(options: Options) -> Result<(), Error> {
    let begun = Begun::new(options)?;
    let served = begun.runtime.block_on(serve(&begun.gateway));
    let failed = begun.gateway.failed.get().map(NoBeginning::for_operator);
    begun.end()?;
    match failed {
        Some(why) => Err(Error::Begin(why)),
        None => served,
    }
}

/// The token of a run's gateway, and the servers that it goes without.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settled {
    /// Its token; `None` where no server could be started.
    pub token: Option<TokenId>,
    /// The servers that could not be started.
    pub left_out: Vec<String>,
}

/// See [`crate::settle`].
pub(crate) fn settle(options: Options) -> Result<Settled, Error> {
    let begun = Begun::new(options)?;
    let gateway = &begun.gateway;
    let settled = begun.runtime.block_on(async {
        let settled = begin::settle(gateway).await;
        let runs = |server: &&McpServer| server.connection().is_some();
        let left_out = gateway.servers.iter().filter(|server| !runs(server));
        let left_out = left_out.map(|server| server.name.clone()).collect();
        let token = gateway.open().map(|open| open.session.token().id);
        gateway.closing.cancel();
        close(gateway).await;
        match settled {
            Ok(()) | Err(NoBeginning::NoServer(_)) => Ok(Settled { token, left_out }),
            Err(error) => Err(Error::Begin(error.for_operator())),
        }
    });
    begun.end()?;
    settled
}

async fn serve(gateway: &Arc<Gateway>) -> Result<(), Error> {
    let eof = gateway.client.deaf.clone();
    let (read, write) = stdio_pipes();
    let calls = Arc::new(Direct(Arc::clone(gateway)));
    let transport = ClientWire::new(read, write, &gateway.client.outbox, calls, eof.clone());
    let end = tokio::spawn(end(Arc::clone(gateway), eof));
    let face = Face { gateway: Arc::clone(gateway) };
    let serving = async {
        match face.serve_with_ct(transport, gateway.closing.clone()).await {
            // It ends when the input does, or when it is closed, with what is drained by then.
            Ok(running) => drop(running.waiting().await),
            Err(error) if gateway.closing.is_cancelled() => drop(error),
            // Why is told by `run`.
            Err(_) if gateway.failed.get().is_some() => {}
            Err(ServerInitializeError::ConnectionClosed(_)) => return Err(Error::NoClient),
            Err(error) => {
                let why = upstream::handshake(&error.to_string());
                say(&format!("the client did not begin: {why}"));
            }
        }
        Ok(())
    };
    let served = serving.await;
    timeout(FLUSH, gateway.client.outbox.flushed()).await.ok();
    gateway.closing.cancel();
    gateway.flights.give_up();
    drained(gateway, DRAIN).await;
    end.abort();
    close(gateway).await;
    served
}

/// Gives calls up when nobody waits for them any more, and closes when asked to.
async fn end(gateway: Arc<Gateway>, eof: CancellationToken) {
    let asked = async {
        let (Ok(mut term), Ok(mut int)) =
            (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
        else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    };
    tokio::select! {
        () = asked => {}
        // What is out is answered first; when all is, this ends with the rest.
        () = async { eof.cancelled().await; sleep(FINISH).await } => {}
        () = gateway.closing.cancelled() => {}
    }
    gateway.flights.give_up();
    drained(&gateway, DRAIN).await;
    gateway.closing.cancel();
}

/// Waits until no call is out, for so long at most.
async fn drained(gateway: &Gateway, at_most: Duration) {
    let empty = async {
        while gateway.flights.count() > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(at_most, empty).await.ok();
}

async fn close(gateway: &Arc<Gateway>) {
    gateway.tasks.close();
    let closing = async {
        if let Some(open) = gateway.open()
            && let Ok(Err(error)) = blocking(move || open.session.close()).await
        {
            say(&format!("the session was not closed: {}", error.for_operator()));
        }
        gateway.tasks.wait().await;
    };
    if timeout(CLOSE, closing).await.is_err() {
        say("a server or a call did not end in time");
    }
}
