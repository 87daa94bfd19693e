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
