//! A home while this process holds it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use syscap_format::{Reason, Refused, Seq, ToolResult};

use crate::Error;
use crate::driver::guard::caught;
use crate::driver::pool;
use crate::runtime::backend::{Backend, Place, Step, Told};
use crate::runtime::session::call::Sent;
use crate::server::accept::Server;
use crate::server::client::Client;
use crate::server::request::Request;
use crate::server::{Holding, LocalSession};
use crate::tools::ConnectionId;
use crate::tools::provide::{Cancel, Offer, Offered, Provider};
use crate::transport::limits::{DRAIN_TIME, END_TIME, TRY_PAUSE};
use crate::transport::{Ask, Command};

/// The home, held by this process.
pub(crate) struct Held {
    pub(crate) holding: Holding,
    /// This process, as a client of its own home.
    client: Client,
    /// `None` where it is served to nobody.
    pub(super) server: Option<Server>,
    /// The number of uses by this process itself at present.
    working: AtomicUsize,
}

/// Something that this process does; counted off also where it panics.
pub(super) struct Working<'a>(&'a AtomicUsize);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Held {
    pub(super) fn new(holding: Holding, server: Option<Server>) -> Self {
        let client = Client::new(ConnectionId::HOLDER, None);
        Self { holding, client, server, working: AtomicUsize::new(0) }
    }

    /// Says that this process uses its home, until that is dropped.
    pub(super) fn works(&self) -> Working<'_> {
        self.working.fetch_add(1, Ordering::SeqCst);
        Working(&self.working)
    }

    /// A session. One that is closed is the kernel's to refuse, on the record.
    pub(super) fn session(&self, at: Place<'_>) -> Arc<LocalSession> {
        let closed = || Arc::new(self.holding.handle(at.session, at.agent.clone(), at.token));
        self.client.session(at.session).unwrap_or_else(|_| closed())
    }

    /// Ends it: the attached first, then what this process does itself. The record that ends the
    /// log is told to those who asked for it.
    pub(super) fn end(&self) -> Result<Seq, Error> {
        let since = Instant::now();
        if let Some(server) = &self.server {
            // Whatever panics with it, the home is closed.
            caught(|| server.close()).unwrap_or(());
        }
        let works = || self.working.load(Ordering::SeqCst) > 0;
        while works() && since.elapsed() < DRAIN_TIME {
            thread::sleep(TRY_PAUSE);
        }
        let since = Instant::now();
        // More than once: what was about to run has no run to give up yet.
        loop {
            caught(|| self.holding.give_up_runs()).unwrap_or(());
            if !works() || since.elapsed() > END_TIME {
                break;
            }
            thread::sleep(TRY_PAUSE);
        }
        let ended = self.holding.end();
        if let Some(server) = &self.server {
            caught(|| server.tell_closed(&ended)).unwrap_or(());
        }
        ended
    }
}

impl Backend for Held {
    fn bytes(&self, request: Request, _: Duration) -> Step<Vec<u8>> {
        let _working = self.works();
        Step::Done(match request {
            // Who holds the home opens sessions, and takes none.
            Request::Take(_) => Err(Refused::new(Reason::WrongLane).into()),
            Request::Operator(Ask::Lend(_) | Ask::Ticket(_)) if self.server.is_none() => {
                Err(Error::Unserved(self.holding.home().folder().to_path_buf()))
            }
            request => self.holding.serve(&self.client, request),
        })
    }

    fn operate(&self, command: Command) -> Step<Vec<u8>> {
        let _working = self.works();
        Step::Done(self.holding.operate(&command))
    }

    fn misread(&self) -> Error {
        Error::BrokeOff
    }

    fn call(&self, at: Place<'_>, sent: &mut Option<Sent>, cancel: &Cancel) -> Step<ToolResult> {
        // Once the kernel has had it, it is not sent again.
        let Some(sent) = sent.take() else { return Step::Done(Err(Error::HolderGone)) };
        let session = self.session(at);
        let working = self.works();
        let answer = session.send(sent, cancel);
        drop(working);
        session.hold_up(&answer);
        Step::Done(answer)
    }

    fn submit(&self, at: Place<'_>, sent: Sent, told: Told) {
        let session = self.session(at);
        apart(told, move |told| {
            let counted = Arc::clone(&session);
            session.send_then(sent, &Cancel::new(), move |answer| {
                counted.hold_up(&answer);
                told(Step::Done(answer));
            });
        });
    }

    fn call_all(&self, at: Place<'_>, all: &[Sent]) -> Step<Vec<Option<ToolResult>>> {
        let session = self.session(at);
        let working = self.works();
        let answers = session.send_all(all.to_vec(), &Cancel::new());
        drop(working);
        session.hold_up(answers.iter().flatten());
        Step::Done(answers.map(|answers| answers.into_iter().map(Some).collect()))
    }

    fn provide(
        &self,
        tools: Vec<Offered>,
        provider: &Arc<dyn Provider>,
        _: Duration,
    ) -> Step<Vec<Offer>> {
        let _working = self.works();
        Step::Done(self.holding.provide(ConnectionId::HOLDER, tools, provider))
    }

    fn held(&self) -> Option<&Held> {
        Some(self)
    }

    fn is_over(&self) -> bool {
        self.holding.has_let_go()
    }

    fn close(&self, _: bool) -> Result<Option<Seq>, Error> {
        self.end().map(Some)
    }
}

/// Has something done by a thread of the pool, which is given `told`; where there is none that is
/// told so.
pub(super) fn apart(told: Told, act: impl FnOnce(Told) + Send + 'static) {
    let told = Arc::new(Mutex::new(Some(told)));
    let theirs = Arc::clone(&told);
    let take =
        |told: &Mutex<Option<Told>>| told.lock().unwrap_or_else(PoisonError::into_inner).take();
    let started = pool::spawn(move || {
        if let Some(told) = take(&theirs) {
            act(told);
        }
    });
    // Only then: else it would be taken from who tells it.
    if started.is_err()
        && let Some(told) = take(&told)
    {
        told(Step::Done(Err(Error::NotStarted)));
    }
}
