//! Calls from asynchronous code: what blocks runs elsewhere, and a future waits for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::{io, thread};

use syscap_format::{AgentId, TokenId, ToolResult};

use crate::driver::guard::caught;
use crate::error::Error;
use crate::runtime::args::Args;
use crate::runtime::session::{Call, Handle, Session};
use crate::tools::provide::Cancel;

/// Blocking work, for its runner.
pub type Work = Box<dyn FnOnce() + Send>;

/// Gives work to a thread.
type Spawn = dyn Fn(Work) -> io::Result<()> + Send + Sync;

/// A session whose calls are futures. Cloned, it is the same session.
///
/// A call is begun when its future is polled first. Dropping the future does not undo it: the
/// tool is told that nobody waits any more ([`ToolCall::is_cancelled`](crate::host::ToolCall)), and what
/// was begun is ended, metered and recorded.
#[derive(Clone)]
pub struct AsyncSession {
    session: Arc<Session>,
    spawn: Arc<Spawn>,
}

impl AsyncSession {
    /// Each call on a thread of its own.
    pub fn new(session: Session) -> Self {
        Self { session: Arc::new(session), spawn: Arc::new(on_a_thread) }
    }

    /// Each call where `spawn` puts what blocks: with tokio
    /// `move |work| { handle.spawn_blocking(work); }`.
    pub fn on(session: Session, spawn: impl Fn(Work) + Send + Sync + 'static) -> Self {
        let spawn = move |work: Work| {
            spawn(work);
            Ok(())
        };
        Self { session: Arc::new(session), spawn: Arc::new(spawn) }
    }

    /// Calls a tool, as [`Session::call`]. The future's error is [`Error::NotStarted`] where
    /// nobody would run what blocks: then nothing was sent.
    pub fn call(&self, tool: &str, args: Args) -> Background<Result<ToolResult, Error>> {
        self.make(self.request(tool).args(args))
    }

    /// Begins a call, as [`Session::request`]: [`make`](Self::make) makes it.
    pub fn request(&self, tool: &str) -> Call<'static> {
        Call::of(Handle::Shared(Arc::clone(&self.session)), tool)
    }

    /// Makes a call. Dropping the future cancels it.
    pub fn make(&self, call: Call<'static>) -> Background<Result<ToolResult, Error>> {
        let cancel = call.cancels();
        background(&self.spawn, cancel, move || call.wait())
    }

    /// Closes the session, as [`Session::close`].
    pub fn close(&self) -> Background<Result<(), Error>> {
        let session = Arc::clone(&self.session);
        background(&self.spawn, Cancel::new(), move || session.end())
    }

    /// The agent.
    pub fn agent(&self) -> &AgentId {
        self.session.agent()
    }

    /// The token.
    pub fn token(&self) -> TokenId {
        self.session.token()
    }

    /// The session itself.
    pub fn session(&self) -> &Session {
        &self.session
    }
}

/// Runs what blocks on a thread of its own, as a future: for what is not a session's call, such
/// as that of an attached process. It is begun when the future is polled first, and not undone
/// when that is dropped.
pub fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Background<Result<T, Error>> {
    let spawn: Arc<Spawn> = Arc::new(on_a_thread);
    background(&spawn, Cancel::new(), work)
}

fn on_a_thread(work: Work) -> io::Result<()> {
    thread::Builder::new().name("syscap-call".to_owned()).spawn(work).map(drop)
}

fn background<T: Send + 'static>(
    spawn: &Arc<Spawn>,
    cancel: Cancel,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Background<Result<T, Error>> {
    let shared = Arc::new(Shared { state: Mutex::new(State { answer: None, waker: None }) });
    let mut owed = Owed { shared: Arc::clone(&shared), begun: false };
    let work = move || {
        owed.begun = true;
        // What the host's code does when it panics is the thread's own affair; the future ends.
        if let Some(answer) = caught(work) {
            owed.shared.answer(answer);
        }
    };
    Background { begin: Some((Arc::clone(spawn), Box::new(work))), cancel, ended: false, shared }
}

/// Says what became of work that ended without an answer.
struct Owed<T> {
    shared: Arc<Shared<Result<T, Error>>>,
    begun: bool,
}

impl<T> Drop for Owed<T> {
    fn drop(&mut self) {
        let error = if self.begun { Error::BrokeOff } else { Error::NotStarted };
        self.shared.answer(Err(error));
    }
}

struct Shared<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    answer: Option<T>,
    waker: Option<Waker>,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first answer counts.
    fn answer(&self, answer: T) {
        let mut state = self.lock();
        if state.answer.is_some() {
            return;
        }
        state.answer = Some(answer);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Blocking work, as a future.
#[must_use = "futures do nothing unless polled"]
pub struct Background<T> {
    begin: Option<(Arc<Spawn>, Work)>,
    /// Says that nobody waits any more, where it is dropped before its end.
    cancel: Cancel,
    ended: bool,
    shared: Arc<Shared<T>>,
}

impl<T> Future for Background<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // Before it is begun: the answer may come at once.
        self.shared.lock().waker = Some(context.waker().clone());
        if let Some((spawn, work)) = self.begin.take() {
            // Where that fails the work is dropped, and says so.
            drop(spawn(work));
        }
        let answer = self.shared.lock().answer.take();
        self.ended |= answer.is_some();
        answer.map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        if self.begin.is_none() && !self.ended {
            self.cancel.cancel();
        }
    }
}
