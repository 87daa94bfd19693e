//! Whose turn it is to read a connection: a call that comes alone is made by the thread that has
//! read it, which so is not woken only to wake another. Where the call asks for something over the
//! same connection, that thread reads what it waits for. Where it is busy otherwise for longer than
//! a moment, another reads on.

use std::{
    cell::RefCell,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{
    peer::{Lost, Peer, Pending},
    reply::Reply,
    wire::Broken,
};
use crate::{
    pool,
    run::limit::{Limited, limit},
};

/// How long a connection is not read while its thread makes a call: longer than nearly all take that
/// wait for nobody, and too short to be noticed by who gives a call up.
const UNREAD_MAX: Duration = Duration::from_millis(3);

/// A call that has come, to be made on a thread that it may block.
pub(super) type Job = Box<dyn FnOnce() + Send>;

/// A connection, for the thread that reads it. Whoever drops it sees to its end.
pub(super) trait Reads: Send {
    /// Reads a frame, and does what it asks for; a call is left to be made.
    fn next(&mut self) -> Result<Option<(u64, Job)>, Broken>;

    /// Whether nothing else is asked for, as far as that can be seen without reading on.
    fn is_alone(&self) -> bool;

    /// Has a call made by another thread; the peer is told where there is none.
    fn make_apart(&self, call: (u64, Job));

    fn peer(&self) -> &Arc<Peer>;
}

pub(super) type Turn = Box<dyn Reads>;

/// Where a thread lays down what it has to read.
struct Laid {
    peer: Arc<Peer>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    turn: Option<Turn>,
    /// Sees to it that it does not lie there for long.
    unread: Option<Limited>,
}

thread_local! {
    /// Where this thread has laid it down, while it makes a call.
    static LAID: RefCell<Option<Arc<Laid>>> = const { RefCell::new(None) };
}

/// While it lives this thread makes a call.
struct Makes;

impl Makes {
    fn begin(laid: &Arc<Laid>) -> Self {
        LAID.set(Some(Arc::clone(laid)));
        Self
    }
}

impl Drop for Makes {
    fn drop(&mut self) {
        LAID.set(None);
    }
}

impl Laid {
    fn held(&self) -> MutexGuard<'_, Held> {
        // Every change is one step.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lays it down. `false` where no other thread will take it up.
    fn lay(self: &Arc<Self>, turn: Turn) -> bool {
        self.held().turn = Some(turn);
        let unread = limit(UNREAD_MAX, self.read_on());
        let limited = unread.is_some();
        self.held().unread = unread;
        limited
    }

    fn take(&self) -> Option<Turn> {
        let Held { turn, unread } = std::mem::take(&mut *self.held());
        unread.map(Limited::ends);
        turn
    }

    /// What another thread does: it reads on.
    fn read_on(self: &Arc<Self>) -> impl FnOnce() + Send + use<> {
        let laid = Arc::clone(self);
        move || laid.take().into_iter().for_each(read)
    }
}

/// Reads a connection to its end, or until another thread does.
pub(super) fn read(mut turn: Turn) {
    while let Ok(next) = turn.next() {
        let Some(call) = next else { continue };
        if !turn.is_alone() {
            turn.make_apart(call);
            continue;
        }
        match make(turn, call) {
            Some(back) => turn = back,
            None => return,
        }
    }
}

/// Makes a call. `None` where another thread reads on meanwhile.
fn make(turn: Turn, call: (u64, Job)) -> Option<Turn> {
    let laid = Arc::new(Laid { peer: Arc::clone(turn.peer()), held: Mutex::default() });
    if laid.lay(turn) {
        let makes = Makes::begin(&laid);
        (call.1)();
        drop(makes);
        return laid.take();
    }
    let turn = laid.take()?;
    turn.make_apart(call);
    Some(turn)
}

/// Waits for the answer of a peer, on a thread that may have to read it itself.
pub(super) fn wait(peer: &Arc<Peer>, pending: Pending) -> Result<Reply, Lost> {
    let laid = LAID.with_borrow(Option::clone).filter(|laid| Arc::ptr_eq(&laid.peer, peer));
    let taken = laid.and_then(|laid| Some((laid.take()?, laid)));
    let Some((mut turn, laid)) = taken else { return pending.wait() };
    loop {
        if let Some(answer) = pending.come() {
            lay_down(&laid, turn);
            return answer;
        }
        match turn.next() {
            Ok(Some(call)) => turn.make_apart(call),
            Ok(None) => {}
            Err(_) => {
                // On another thread: whoever sees to its end waits for the call of this one.
                pool::spawn(move || drop(turn)).unwrap_or(());
                return pending.wait();
            }
        }
    }
}

/// Lays it down again for a moment; where others wait for what comes, a thread reads on at once.
/// Where none is to be had, this one does when it has made the call.
fn lay_down(laid: &Arc<Laid>, turn: Turn) {
    if turn.is_alone() {
        laid.lay(turn);
    } else {
        laid.held().turn = Some(turn);
        pool::spawn(laid.read_on()).unwrap_or(());
    }
}
