//! Inboxes that somebody fills at the moment.

use std::{
    collections::BTreeSet,
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

use syscap_format::id::AgentId;

/// How long one waits for others at the most: well within the time that a call sets aside, so that
/// nobody's token is used up by those who flood an inbox.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Whose inboxes are filled. How full one is and what comes into it is one step: else two senders
/// would find the same last place. Who sends to others waits for nobody.
#[derive(Default)]
pub(super) struct Busy {
    agents: Mutex<BTreeSet<AgentId>>,
    freed: Condvar,
}

impl Busy {
    /// Waits until none of them is filled by somebody else; `None` where that takes too long. All
    /// are taken at once: so nobody waits for one who waits for it.
    pub(super) fn take<'a>(&'a self, agents: &'a [AgentId]) -> Option<Taken<'a>> {
        // Every change is one step.
        let taken = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let is_busy = |taken: &mut BTreeSet<AgentId>| agents.iter().any(|one| taken.contains(one));
        let waited = self.freed.wait_timeout_while(taken, WAIT_MAX, is_busy);
        let (mut taken, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        taken.extend(agents.iter().cloned());
        Some(Taken { busy: self, agents })
    }
}

/// Inboxes of which nobody else finds out how full they are.
pub(super) struct Taken<'a> {
    busy: &'a Busy,
    agents: &'a [AgentId],
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut taken = self.busy.agents.lock().unwrap_or_else(PoisonError::into_inner);
        self.agents.iter().for_each(|agent| {
            taken.remove(agent);
        });
        drop(taken);
        self.busy.freed.notify_all();
    }
}
