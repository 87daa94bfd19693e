//! The kernel's lock, and who sees to what was brought meanwhile.

use std::{
    ops::{Deref, DerefMut},
    sync::MutexGuard,
    thread,
};

use super::{Core, Shared};

/// The kernel's lock. What was brought meanwhile is seen to before it is let go of, and after.
pub(super) struct Locked<'a> {
    shared: MutexGuard<'a, Shared>,
    // Dropped after the guard: fields drop in this order.
    after: After<'a>,
}

/// Looks into the inbox when the lock was let go of: who brought something at that moment may
/// have found it taken.
struct After<'a>(&'a Core);

impl<'a> Locked<'a> {
    pub(super) const fn new(shared: MutexGuard<'a, Shared>, core: &'a Core) -> Self {
        Self { shared, after: After(core) }
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
        // After a panic nothing more goes on record.
        if !thread::panicking() {
            self.after.0.see_to(&mut self.shared);
        }
    }
}

impl Drop for After<'_> {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.0.see_to_the_rest();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::channel, time::Duration};

    use syscap_audit::memory::MemoryStore;

    use super::*;
    use crate::{Grant, Options, args};

    /// The one moment that no test meets by chance: whoever has the lock has looked into the
    /// inbox, and not let go of it yet.
    #[test]
    fn what_is_brought_at_the_last_moment_is_seen_to() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new().store(MemoryStore::new());
        let rt = options.create(folder.path().join("home")).unwrap();
        let token = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
        let agent = rt.session("a", token).unwrap();
        let core = rt.here(|holding| Ok(holding.core.clone())).unwrap();
        let (answered, answer) = channel();
        let held = core.shared.lock().unwrap();
        std::thread::spawn(move || {
            let result = agent.call("echo", args! { "value": "hello" });
            answered.send(result.map(|result| result.reason())).unwrap();
        });
        while core.inbox().is_empty() {
            std::thread::yield_now();
        }
        // Until it sleeps; where it does not yet, it finds the lock free.
        std::thread::sleep(Duration::from_millis(50));
        drop(held);
        drop(After(&core));
        let answer = answer.recv_timeout(Duration::from_secs(20)).expect("an answer");
        assert_eq!(answer.unwrap(), None);
    }
}
