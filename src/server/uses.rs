//! Who uses a served home, and until when it is served.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::server::Holding;
use crate::tools::ConnectionId;

/// Until when a process serves a home, beside being told to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Until {
    /// Until it is told to end.
    #[default]
    Told,
    /// Until nobody was connected, and nothing ran, for so long.
    Idle(Duration),
    /// The same; and at once where the last client has gone that [stays](crate::Connect::stays).
    LastOut(Duration),
}

/// How long a server waits for its first client, whatever it was told.
const FIRST: Duration = Duration::from_secs(15);

/// Who uses a home.
pub(crate) struct Uses {
    state: Mutex<State>,
    /// Told when a client goes, or says that it does.
    moved: Condvar,
}

struct State {
    until: Until,
    /// Clients that the server stays for.
    staying: BTreeSet<ConnectionId>,
    /// Clients that have said that they leave: they ask nothing more. The last of them waits for the
    /// end of the server.
    leaving: BTreeSet<ConnectionId>,
    /// True if the last client that stayed has gone.
    left: bool,
    /// When a client was there last.
    since: Instant,
    /// True if there was one.
    came: bool,
    /// True if the server ends: nobody waits here any longer.
    closing: bool,
    /// How often a client went, or said that it does.
    moves: u64,
}

impl Default for Uses {
    fn default() -> Self {
        let (staying, leaving) = (BTreeSet::new(), BTreeSet::new());
        let (until, since) = (Until::Told, Instant::now());
        let (left, came, closing, moves) = (false, false, false, 0);
        let state = State { until, staying, leaving, left, since, came, closing, moves };
        Self { state: Mutex::new(state), moved: Condvar::new() }
    }
}

impl Uses {
    pub(crate) fn set(&self, until: Until) {
        self.state().until = until;
    }

    /// The server ends.
    pub(crate) fn close(&self) {
        self.state().closing = true;
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.state().closing
    }

    /// A client has gone, by itself or not.
    pub(crate) fn gone(&self, client: ConnectionId) {
        let mut state = self.state();
        (state.since, state.came) = (Instant::now(), true);
        state.leaving.remove(&client);
        if state.staying.remove(&client) && state.staying.is_empty() {
            state.left = true;
        }
        state.moves = state.moves.wrapping_add(1);
        self.moved.notify_all();
    }

    /// How often a client went: to be asked before it is looked whether any is there.
    pub(crate) fn moves(&self) -> u64 {
        self.state().moves
    }

    /// Waits until one more goes, or so long.
    pub(crate) fn wait(&self, since: u64, limit: Duration) {
        let waited = self.moved.wait_timeout_while(self.state(), limit, |s| s.moves == since);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// True if this client has said that it leaves.
    pub(crate) fn is_leaving(&self, client: ConnectionId) -> bool {
        self.state().leaving.contains(&client)
    }

    /// The clients that wait for the end; from then on none does.
    pub(crate) fn let_go(&self) -> BTreeSet<ConnectionId> {
        std::mem::take(&mut self.state().leaving)
    }

    /// The clients that wait for an end which does not come: another stays.
    pub(crate) fn in_vain(&self) -> BTreeSet<ConnectionId> {
        let mut state = self.state();
        match state.staying.is_empty() {
            true => BTreeSet::new(),
            false => std::mem::take(&mut state.leaving),
        }
    }

    /// True if the home is served no longer, where nobody uses it.
    pub(crate) fn are_over(&self) -> bool {
        let state = self.state();
        let least = if state.came { Duration::ZERO } else { FIRST };
        let is_idle = |idle: Duration| state.since.elapsed() >= idle.max(least);
        match state.until {
            Until::Told => false,
            Until::Idle(idle) => is_idle(idle),
            Until::LastOut(idle) => state.left && state.staying.is_empty() || is_idle(idle),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step that can't break off half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holding {
    /// A client asks the server to stay for it, or leaves. True to one that leaves where the server
    /// ends with it: its connection lasts until then.
    pub(crate) fn stays(&self, client: ConnectionId, stays: bool) -> bool {
        let runs = self.is_running();
        let mut state = self.uses().state();
        state.moves = state.moves.wrapping_add(1);
        self.uses().moved.notify_all();
        if stays {
            state.staying.insert(client);
            state.left = false;
            return false;
        }
        let stayed = state.staying.remove(&client);
        let is_last = stayed && state.staying.is_empty();
        state.left |= is_last;
        state.leaving.insert(client);
        is_last && !runs && matches!(state.until, Until::LastOut(_))
    }

    /// True if a call has begun and has not ended, or a use that a client's hook let through.
    pub(crate) fn is_running(&self) -> bool {
        self.look(|kernel| kernel.running().next().is_some())
    }
}
