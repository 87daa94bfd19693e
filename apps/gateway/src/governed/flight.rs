//! Calls that are out: which request of the client a run belongs to.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{InputResponses, LoggingLevel, ProgressToken, RequestMetaObject};
use rmcp::service::RequestContext;
use syscap::{SystemEntropy, format::Seq, kernel::Entropy};
use tokio_util::sync::CancellationToken;

use crate::{client::capabilities::Able, governed::twins::Turn};

/// A request of the client, as far as a server that works for it needs to know.
#[derive(Debug)]
pub(crate) struct Flight {
    /// Cancelled when the client no longer waits.
    pub(crate) cancel: CancellationToken,
    /// Under which name the client wants to hear of progress.
    pub(crate) progress: Option<ProgressToken>,
    /// The client's capabilities.
    pub(crate) able: Able,
    /// The client's answers to what a server has asked, on the newer wire.
    pub(crate) input: Option<RetryInput>,
    /// The trace that the request belongs to.
    pub(crate) trace: Option<String>,
    /// Which log messages the client wants to hear for this request, on the newer wire.
    pub(crate) log: Option<LoggingLevel>,
    /// True if it is a server's question, and no request of the client's.
    pub(crate) question: bool,
    /// For a question, the intents of the calls on whose behalf it is asked.
    pub(crate) within: Vec<Seq>,
    /// The turn of a call that has not been decided yet.
    turn: Mutex<Option<Turn>>,
}

/// A client's part of a call for which a server had asked more.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RetryInput {
    pub(crate) responses: Option<InputResponses>,
    pub(crate) state: Option<String>,
}

impl Flight {
    pub(crate) fn new(context: &RequestContext<RoleServer>, input: Option<RetryInput>) -> Self {
        Self {
            cancel: context.ct.clone(),
            progress: context.meta.get_progress_token(),
            able: Able::of(context),
            input,
            trace: context.meta.get_traceparent().map(String::from),
            log: context.meta.log_level(),
            question: false,
            within: Vec::new(),
            turn: Mutex::default(),
        }
    }

    /// A server's question, on behalf of these calls, to a client that is able to do so much.
    pub(crate) const fn question(able: Able, within: Vec<Seq>, cancel: CancellationToken) -> Self {
        let (progress, input, trace, log) = (None, None, None, None);
        let turn = Mutex::new(None);
        Self { cancel, progress, able, input, trace, log, question: true, within, turn }
    }

    /// It is decided next, and others like it wait.
    pub(crate) fn has_turn(&self, turn: Turn) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = Some(turn);
    }

    /// It runs, or does not: those like it are decided now.
    pub(crate) fn is_decided(&self) {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// The metadata for a server: no more than is on record, and how much the server is to log.
    pub(crate) fn meta(&self) -> RequestMetaObject {
        let mut meta = RequestMetaObject::new();
        if let Some(trace) = &self.trace {
            meta.set_traceparent(trace.clone());
        }
        if let Some(level) = self.log {
            meta.set_log_level(level);
        }
        meta
    }
}

/// The calls that are out, by the tag under which the kernel knows them.
#[derive(Default)]
pub(crate) struct Flights {
    out: Mutex<HashMap<u64, Arc<Flight>>>,
    /// True if all of them are abandoned, and those to come.
    given_up: AtomicBool,
}

/// Forgets a call when it is dropped.
pub(crate) struct Boarded<'f> {
    flights: &'f Flights,
    pub(crate) tag: u64,
}

impl Flights {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Flight>>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a call in, under a tag that nobody can guess: another caller of the home may name
    /// its calls as it likes.
    pub(crate) fn board(&self, flight: Arc<Flight>) -> Boarded<'_> {
        let mut tag = random();
        let mut flights = self.lock();
        while tag == 0 || flights.contains_key(&tag) {
            tag = tag.wrapping_add(1);
        }
        if self.given_up.load(Ordering::Acquire) {
            flight.cancel.cancel();
        }
        flights.insert(tag, flight);
        Boarded { flights: self, tag }
    }

    /// The call of that tag.
    pub(crate) fn find(&self, tag: u64) -> Option<Arc<Flight>> {
        self.lock().get(&tag).cloned()
    }

    /// Says that nobody waits for any of them, nor for any that comes.
    pub(crate) fn give_up(&self) {
        let flights = self.lock();
        self.given_up.store(true, Ordering::Release);
        flights.values().for_each(|flight| flight.cancel.cancel());
    }

    /// True if one of them wants log messages, on the newer wire.
    pub(crate) fn wants_log(&self) -> bool {
        self.lock().values().any(|flight| flight.log.is_some())
    }

    /// How many are out.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }
}

impl Drop for Boarded<'_> {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.tag);
    }
}

/// The runs that are out, each with the place of its server.
#[derive(Default)]
pub(crate) struct ServerRuns(Mutex<HashMap<Seq, (usize, CancellationToken)>>);

impl ServerRuns {
    fn lock(&self) -> MutexGuard<'_, HashMap<Seq, (usize, CancellationToken)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server of that place has this call out, until this is dropped.
    pub(crate) fn enter(
        &self,
        intent: Seq,
        place: usize,
        cancel: &CancellationToken,
    ) -> Entered<'_> {
        self.lock().insert(intent, (place, cancel.child_token()));
        Entered(self, intent)
    }

    /// A server's calls in flight, each with what is cancelled when it ends, however it does; the
    /// oldest first.
    pub(crate) fn of(&self, place: usize) -> Vec<(Seq, CancellationToken)> {
        let runs = self.lock();
        let own = runs.iter().filter(|(_, (at, _))| *at == place);
        let mut own: Vec<_> = own.map(|(intent, (_, cancel))| (*intent, cancel.clone())).collect();
        drop(runs);
        own.sort_by_key(|(intent, _)| *intent);
        own
    }
}

/// Forgets a run when it is dropped: what the server asks for it ends too.
pub(crate) struct Entered<'r>(&'r ServerRuns, Seq);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if let Some((_, ended)) = self.0.lock().remove(&self.1) {
            ended.cancel();
        }
    }
}

/// A number that can't be guessed; one that can, where the system has no randomness: then the
/// kernel makes no call either.
pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    match SystemEntropy.fill(&mut bytes) {
        Ok(()) => u64::from_ne_bytes(bytes),
        Err(_) => 1,
    }
}
