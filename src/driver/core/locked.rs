//! The kernel's lock, and who sees to what was brought meanwhile.

use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;
use std::thread;

use crate::driver::core::{Core, Shared};

/// The kernel's lock. Requests that arrived meanwhile are processed before the lock is released,
/// and after.
pub(crate) struct Locked<'a> {
    shared: MutexGuard<'a, Shared>,
    // Dropped after the guard: fields drop in this order.
    after: After<'a>,
}

/// Looks into the inbox when the lock was let go of: who brought something at that moment may
/// have found it taken.
struct After<'a> {
    core: &'a Core,
    /// True if the thread was already panicking when it took the lock. A panic since then may have
    /// left the kernel between two states, and nothing more goes on record; one from before has
    /// not.
    panicking: bool,
}

impl<'a> After<'a> {
    fn new(core: &'a Core) -> Self {
        Self { core, panicking: thread::panicking() }
    }

    fn is_sound(&self) -> bool {
        self.panicking || !thread::panicking()
    }
}

impl<'a> Locked<'a> {
    pub(crate) fn new(shared: MutexGuard<'a, Shared>, core: &'a Core) -> Self {
        Self { shared, after: After::new(core) }
    }
}

impl Deref for Locked<'_> {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Shared {
        &mut self.shared
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if self.after.is_sound() {
            self.after.core.see_to(&mut self.shared);
        }
    }
}

impl Drop for After<'_> {
    fn drop(&mut self) {
        if self.is_sound() {
            self.core.see_to_the_rest();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use syscap_audit::MemoryStore;
    use syscap_format::Reason;

    use super::*;
    use crate::args;
    use crate::{Error, Grant, Options, Session};

    fn world() -> (tempfile::TempDir, Arc<Core>, Session) {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new().store(MemoryStore::new());
        let rt = options.create(folder.path().join("home")).unwrap();
        let token = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
        let core = rt.here(|holding| Ok(Arc::clone(&holding.core))).unwrap();
        (folder, core, rt.session("a", token).unwrap())
    }

    type Answered = Receiver<Result<Option<Reason>, Error>>;

    /// Calls while somebody else has the lock, until it is brought and the caller sleeps.
    fn brought(core: &Core, agent: Session) -> Answered {
        let (answered, answer) = channel();
        thread::spawn(move || {
            let result = agent.call("echo", args! { "value": "hello" });
            answered.send(result.map(|result| result.reason())).unwrap();
        });
        while core.inbox().is_empty() {
            thread::yield_now();
        }
        // Where it does not sleep yet, it finds the lock free.
        thread::sleep(Duration::from_millis(50));
        answer
    }

    fn is_answered(answer: &Answered) {
        let answer = answer.recv_timeout(Duration::from_secs(20)).expect("an answer");
        assert_eq!(answer.unwrap(), None);
    }

    /// The one moment that no test meets by chance: whoever has the lock has looked into the
    /// inbox, and not let go of it yet.
    #[test]
    fn last_moment_request_is_processed() {
        let (_folder, core, agent) = world();
        let held = core.shared.lock().unwrap();
        let answer = brought(&core, agent);
        drop(held);
        drop(After::new(&core));
        is_answered(&answer);
    }

    /// A thread that panics for a reason of its own drops what it has, its session too.
    #[test]
    fn panicking_lock_owner_still_processes_the_inbox() {
        struct Drops(Arc<Core>, Option<Session>, std::sync::mpsc::Sender<Answered>);
        impl Drop for Drops {
            fn drop(&mut self) {
                let held = self.0.lock();
                let answer = brought(&self.0, self.1.take().unwrap());
                drop(held);
                self.2.send(answer).unwrap();
            }
        }
        let (_folder, core, agent) = world();
        let (tell, told) = channel();
        let panicked = thread::spawn(move || {
            let _drops = Drops(core, Some(agent), tell);
            panic!("for a reason of its own");
        });
        assert!(panicked.join().is_err());
        is_answered(&told.recv().unwrap());
    }
}
