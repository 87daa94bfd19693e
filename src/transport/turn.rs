//! Reader hand-off. When one call arrives alone, the thread that read it executes it, which saves a
//! wake-up. If the call requests something over the same connection, that thread reads the answer
//! itself. If it is busy otherwise for longer than a moment, another thread reads on.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::driver::run::limit::{Limited, limit};
use crate::driver::{pool, run};
use crate::transport::peer::{Lost, NotSent, Peer, Pending};
use crate::transport::reply::Reply;
use crate::transport::wire::Broken;

/// How long a connection is not read while its thread makes a call: longer than one takes that
/// waits for nothing but its turn of a busy machine.
const UNREAD_MAX: Duration = Duration::from_millis(100);
/// The same where the call's tool runs here: too short to be noticed by who gives the call up, or
/// makes another.
const UNREAD_RUN_MAX: Duration = Duration::from_millis(10);

/// A call that has come, to be made on a thread that it may block.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// A connection, for the thread that reads it. Dropping it ends the connection.
pub(crate) trait Reads: Send {
    /// Reads a frame, and does what it asks for; a call is left to be made.
    fn next(&mut self) -> Result<Option<PeerCall>, Broken>;

    /// True if no other request is visible without reading on.
    fn is_alone(&self) -> bool;

    /// Has a call made by another thread; the peer is told where there is none.
    fn make_apart(&self, call: PeerCall);

    fn peer(&self) -> &Arc<Peer>;
}

pub(crate) type Turn = Box<dyn Reads>;

/// A call of a peer's that was taken in: under which id it is answered, and what makes it.
pub(crate) struct PeerCall {
    pub(crate) id: u64,
    pub(crate) make: Job,
}

/// The place where a thread leaves its reader for others.
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
    /// The place of this thread, while it makes a call.
    static LAID: RefCell<Option<Arc<Laid>>> = const { RefCell::new(None) };
}

/// While it lives this thread makes a call.
struct Makes;

impl Makes {
    fn begin(laid: &Arc<Laid>) -> Self {
        LAID.set(Some(Arc::clone(laid)));
        let runs = Arc::clone(laid);
        run::before(Some(Box::new(move || runs.limit(UNREAD_RUN_MAX))));
        Self
    }
}

impl Drop for Makes {
    fn drop(&mut self) {
        LAID.set(None);
        run::before(None);
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
        self.limit(UNREAD_MAX);
        self.held().unread.is_some()
    }

    /// From here on it lies there for so long at most.
    fn limit(self: &Arc<Self>, most: Duration) {
        let unread = limit(most, self.read_on());
        let before = match unread {
            Some(unread) => self.held().unread.replace(unread),
            // The one before is as good.
            None => None,
        };
        before.map(Limited::ends);
    }

    fn take(&self) -> Option<Turn> {
        let Held { turn, unread } = std::mem::take(&mut *self.held());
        unread.map(Limited::ends);
        turn
    }

    /// The work of another thread: it reads on.
    fn read_on(self: &Arc<Self>) -> impl FnOnce() + Send + use<> {
        let laid = Arc::clone(self);
        move || laid.take().into_iter().for_each(read)
    }
}

/// Reads a connection to its end, or until another thread does.
pub(crate) fn read(mut turn: Turn) {
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
fn make(turn: Turn, call: PeerCall) -> Option<Turn> {
    let laid = Arc::new(Laid { peer: Arc::clone(turn.peer()), held: Mutex::default() });
    if laid.lay(turn) {
        let makes = Makes::begin(&laid);
        (call.make)();
        drop(makes);
        return laid.take();
    }
    let turn = laid.take()?;
    turn.make_apart(call);
    Some(turn)
}

/// Asks a peer for something and waits for its answer, on a thread that may have to read it itself.
pub(crate) fn ask(
    peer: &Arc<Peer>,
    ask: impl FnOnce() -> Result<Pending, NotSent>,
    asked: impl FnOnce(&Pending),
) -> Result<Result<Reply, Lost>, NotSent> {
    let laid = LAID.with_borrow(Option::clone).filter(|laid| Arc::ptr_eq(&laid.peer, peer));
    // Before it asks: the other side may answer before this thread goes on.
    let taken = laid.and_then(|laid| Some((laid.take()?, laid)));
    let pending = match (ask(), taken) {
        (Ok(pending), Some((turn, laid))) => {
            asked(&pending);
            return Ok(read_for(&laid, turn, pending));
        }
        (pending, taken) => {
            if let Some((turn, laid)) = taken {
                lay_down(&laid, turn);
            }
            pending?
        }
    };
    asked(&pending);
    Ok(pending.wait())
}

/// Reads until an answer has come.
fn read_for(laid: &Arc<Laid>, mut turn: Turn, pending: Pending) -> Result<Reply, Lost> {
    loop {
        if let Some(answer) = pending.come() {
            lay_down(laid, turn);
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

/// Lays it down again for a moment; where others wait for what comes, a thread reads on at once. If
/// no thread is available, this one reads on after the call.
fn lay_down(laid: &Arc<Laid>, turn: Turn) {
    if turn.is_alone() {
        laid.lay(turn);
    } else {
        laid.held().turn = Some(turn);
        pool::spawn(laid.read_on()).unwrap_or(());
    }
}
