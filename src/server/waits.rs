//! Requests that wait for a person's answer. None of them holds a thread: one looks for all, as long
//! as there are any.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use syscap_format::{AgentId, Reason, Refused, Seq};
use syscap_kernel::{AskStanding, vault_entry};

use crate::driver::core::Core;
use crate::driver::guard::caught;
use crate::driver::pool;
use crate::error::Error;
use crate::runtime::session::{Stands, Waited};
use crate::server::Holding;

/// How long nobody looks whether something has expired.
const LOOK: Duration = Duration::from_millis(250);

/// A request that waits, and what is told its end.
pub(crate) struct Parked {
    pub(crate) agent: AgentId,
    pub(crate) ask: Seq,
    pub(crate) until: Instant,
    /// How often what waits had changed when the rows were read for it.
    pub(crate) read: Option<u64>,
    /// Whether who asks is still there: the session, or the connection.
    pub(crate) is_there: Box<dyn Fn() -> bool + Send>,
    pub(crate) done: Box<dyn FnOnce(Result<Stands, Error>) + Send>,
}

/// The requests that wait.
#[derive(Default)]
pub(crate) struct Waits(Mutex<State>);

#[derive(Default)]
struct State {
    parked: Vec<Parked>,
    /// True while a thread looks.
    looks: bool,
}

/// What waits for a person has changed.
pub(crate) fn ring(core: &Core) {
    core.asks.ring();
    core.waits.ring();
}

impl Waits {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step that can't break off half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holding {
    /// Has a request wait: it is told how its call stands once that waits no more, the time is over,
    /// or the server ends. It costs the caller nothing.
    pub(crate) fn park(&self, parked: Parked) {
        let mut state = self.waits().state();
        state.parked.push(parked);
        let looks = std::mem::replace(&mut state.looks, true);
        drop(state);
        self.core.waits.ring();
        if looks {
            return;
        }
        let home = self.weak();
        let look = move || {
            while let Some(home) = home.upgrade() {
                match caught(|| home.look_after_waits()) {
                    Some(true) => {}
                    Some(false) => return,
                    None => return home.waits_for_nobody(),
                }
            }
        };
        if pool::spawn(Box::new(look)).is_err() {
            self.waits_for_nobody();
        }
    }

    /// Nobody looks: who waits is told to come again.
    fn waits_for_nobody(&self) {
        let mut state = self.waits().state();
        state.looks = false;
        let parked = std::mem::take(&mut state.parked);
        drop(state);
        for parked in parked {
            (parked.done)(Err(Refused::new(Reason::Overloaded).into()));
        }
    }

    /// Looks at all that wait, once, and rests; false once none does.
    fn look_after_waits(&self) -> bool {
        let bell = &self.core.waits;
        let (rung, changes) = (bell.count(), self.core.asks.count());
        // The kernel's time is that of its last event.
        self.tick();
        let all = std::mem::take(&mut self.waits().state().parked);
        let mut still = Vec::new();
        for mut parked in all {
            let reads = parked.read != Some(changes);
            parked.read = Some(changes);
            match self.comes_to(&parked, reads) {
                Some(answer) => caught(|| (parked.done)(answer)).unwrap_or(()),
                None => still.push(parked),
            }
        }
        let mut state = self.waits().state();
        state.parked.append(&mut still);
        state.looks = !state.parked.is_empty();
        let first = state.parked.iter().map(|parked| parked.until).min();
        drop(state);
        if let Some(first) = first {
            bell.wait(rung, LOOK.min(first.saturating_duration_since(Instant::now())));
        }
        first.is_some()
    }

    /// The end of a wait, if it has come.
    fn comes_to(&self, parked: &Parked, reads: bool) -> Option<Result<Stands, Error>> {
        if !(parked.is_there)() {
            return Some(Err(Refused::new(Reason::NoSession).field("session").into()));
        }
        match self.stands_for(&parked.agent, parked.ask, reads) {
            Ok(found) if found.waited == Waited::Waiting => {
                if self.uses().is_closing() {
                    return Some(Err(Refused::new(Reason::Closing).into()));
                }
                (Instant::now() >= parked.until).then_some(Ok(found))
            }
            found => Some(found),
        }
    }

    /// How a call of an agent's stands that waits for a person: once it waits no more, the time is
    /// over, or the server ends. The caller's thread waits.
    pub(crate) fn wait(&self, agent: &AgentId, ask: Seq, limit: Duration) -> Result<Stands, Error> {
        let (since, bell) = (Instant::now(), &self.core.asks);
        loop {
            let rung = bell.count();
            self.tick();
            let found = self.stands_for(agent, ask, true)?;
            let left = limit.saturating_sub(since.elapsed());
            if found.waited != Waited::Waiting || left.is_zero() || self.uses().is_closing() {
                return Ok(found);
            }
            bell.wait(rung, left.min(LOOK));
        }
    }

    fn stands_for(&self, agent: &AgentId, ask: Seq, reads: bool) -> Result<Stands, Error> {
        let standing = self.look(|kernel| kernel.standing(agent, ask));
        let why = match standing {
            Some(AskStanding::Denied(by, Some(hash))) => {
                let entry = self.core.read(|store| Ok(vault_entry(store, by, by)?))?;
                entry.text(&hash).map(str::to_owned)
            }
            _ => None,
        };
        let found = Stands { waited: standing.into(), why };
        if !matches!(found.waited, Waited::Waiting | Waited::Approved)
            || (!reads && found.waited == Waited::Waiting)
        {
            return Ok(found);
        }
        match self.stands(|view| view.ask == ask) {
            // No yes is taken any more, and none that was given lets it through.
            Err(Error::Refused(why)) if why.reason() == Reason::ToolChanged => {
                Ok(Stands { waited: Waited::Over, why: None })
            }
            stands => stands.map(|()| found),
        }
    }
}
