//! Futures that run calls, on an executor of the host's.
//!
//! The thread of the run waits; a [`Driven`] future goes to the executor. It answers once, however
//! it ends: with what it came to, or by being dropped.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::driver::guard::caught;
use crate::runtime::args::IntoArg;
use crate::tools::host::closure::Ended;
use crate::tools::host::failure::Failure;
use crate::tools::provide::Cancel;

/// A future for an executor.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How long a future may go on that was told that nobody waits any more.
const GRACE: Duration = Duration::from_secs(1);

/// Gives a future to an executor and waits until it has ended, or is dropped.
pub(crate) fn block_on<T, W>(future: W, cancel: &Cancel, spawn: &dyn Fn(Task)) -> Ended
where
    T: IntoArg,
    W: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let shared = Arc::new(Shared::default());
    let told = Arc::clone(&shared);
    cancel.on_cancel(move || told.cancelled());
    let future = async move { Ended::of(future.await) };
    spawn(Box::pin(Driven { inner: Some(Box::pin(future)), shared: Arc::clone(&shared) }));
    match shared.wait() {
        Some(ended) => ended,
        // Its panic is the run's.
        None => resume_unwind(Box::new("the future panicked")),
    }
}

/// Between the thread that waits and the future.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The result; `None` within if it panicked.
    answer: Option<Option<Ended>>,
    /// From when on it is to be dropped.
    until: Option<Instant>,
    /// True if it is to be dropped.
    let_go: bool,
    waker: Option<Waker>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cancelled(&self) {
        self.lock().until = Some(Instant::now() + GRACE);
        self.changed.notify_all();
    }

    /// The first answer counts.
    fn answer(&self, ended: Option<Ended>) {
        let mut state = self.lock();
        if state.answer.is_none() {
            state.answer = Some(ended);
            self.changed.notify_all();
        }
    }

    fn wait(&self) -> Option<Ended> {
        let mut state = self.lock();
        loop {
            if let Some(answer) = state.answer.take() {
                // Whatever comes now is late.
                state.answer = Some(None);
                return answer;
            }
            state = match state.until {
                Some(until) if !state.let_go => {
                    match until.checked_duration_since(Instant::now()) {
                        Some(left) => {
                            let waited = self.changed.wait_timeout(state, left);
                            waited.unwrap_or_else(PoisonError::into_inner).0
                        }
                        None => self.let_go(state),
                    }
                }
                _ => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Asks the executor to drop the future, where it comes by.
    fn let_go<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.let_go = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            // The executor's code: its panic is not the run's.
            caught(|| waker.wake()).unwrap_or_default();
        }
        self.lock()
    }
}

/// A future that answers however it ends.
struct Driven {
    inner: Option<Pin<Box<dyn Future<Output = Ended> + Send>>>,
    shared: Arc<Shared>,
}

impl Driven {
    /// Drops the future, then says so: after the answer nothing of it runs any more.
    fn drop_inner(&mut self) {
        let dropped = caught(|| self.inner = None);
        self.shared.answer(dropped.map(|()| Ended::Dropped));
    }
}

impl Future for Driven {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let let_go = {
            let mut state = self.shared.lock();
            state.waker = Some(context.waker().clone());
            state.let_go
        };
        if let_go {
            self.drop_inner();
            return Poll::Ready(());
        }
        let Some(inner) = self.inner.as_mut() else {
            return Poll::Ready(());
        };
        let ended = match caught(|| inner.as_mut().poll(context)) {
            Some(Poll::Pending) => return Poll::Pending,
            Some(Poll::Ready(ended)) => Some(ended),
            None => None,
        };
        let dropped = caught(|| self.inner = None);
        self.shared.answer(dropped.and(ended));
        Poll::Ready(())
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        if self.inner.is_some() {
            self.drop_inner();
        }
    }
}
