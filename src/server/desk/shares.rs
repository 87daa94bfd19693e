//! Shares of what is bounded for all agents together. If there is no room, the agent that has most
//! gives one up, and no agent loses its last.

use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use syscap_format::{AgentId, Reason};

use super::{SeatKey, Shared, State, USES_MAX, refused};
use crate::Error;
use crate::server::LocalSession;
use crate::server::shares::who_gives_up;

/// How long a use waits until one that gives way to it has ended.
const GIVEN_WAY_TIME: Duration = Duration::from_secs(5);

impl State {
    /// Takes a conversation away for a new one of an agent: of the agent that has most, the one that
    /// was silent longest, those with nothing in flight first. The uses of another agent's are
    /// abandoned; an agent that has most itself is refused.
    pub(super) fn give_seat_up(&mut self, asking: &AgentId) -> Result<Arc<LocalSession>, Error> {
        let none = || refused(Reason::TooManySessions, "conversation");
        let from = who_gives_up(self.seats.keys().map(|(agent, ..)| agent), asking);
        let from = from.ok_or_else(none)?;
        let is_busy = |key: &SeatKey| self.uses.values().any(|one| one.is_in(key));
        let own = self.seats.iter().filter(|((agent, ..), _)| agent == from);
        let silent = own.min_by_key(|(key, (_, last))| (is_busy(key), *last));
        let (key, busy) = silent.map(|(key, _)| (key.clone(), is_busy(key))).ok_or_else(none)?;
        if busy && key.0 == *asking {
            return Err(none());
        }
        let in_it = self.uses.values_mut().filter(|one| one.is_in(&key));
        in_it.for_each(|one| one.cancelled = true);
        self.seats.remove(&key).map(|(session, _)| session).ok_or_else(none)
    }
}

impl Shared {
    /// The state with room for a use of an agent. If there is none the oldest of the agent that has
    /// most is abandoned; an agent that has most itself is refused.
    pub(super) fn room_for(&self, asking: &AgentId) -> Result<MutexGuard<'_, State>, Error> {
        let none = || refused(Reason::Overloaded, "tool_id");
        let mut state = self.lock();
        if state.uses.len() < USES_MAX {
            return Ok(state);
        }
        let owners = state.uses.values().filter(|one| !one.cancelled).map(|one| &one.used.agent);
        let from = who_gives_up(owners, asking).filter(|from| *from != asking).cloned();
        let from = from.ok_or_else(none)?;
        let own = state.uses.values_mut().filter(|one| !one.cancelled && one.used.agent == from);
        if let Some(oldest) = own.min_by_key(|one| one.number) {
            oldest.cancelled = true;
        }
        self.changed.notify_all();
        let until = Instant::now() + GIVEN_WAY_TIME;
        while state.uses.len() >= USES_MAX {
            let left = until.checked_duration_since(Instant::now()).ok_or_else(none)?;
            state = self.wait(state, left);
        }
        Ok(state)
    }
}
