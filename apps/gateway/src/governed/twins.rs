//! Calls that are the same: each is decided before the next is sent.
//!
//! Two that come to the kernel at one moment would each ask a person, and by an approval of the
//! first neither would go on. In turn the second finds the question of the first. A running call
//! holds up no other: it has been decided.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

/// The common identity of calls of one tool with the same arguments. Others may share it by chance,
/// and are then decided in turn, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Like(u64);

/// The turn to be decided, until it is dropped.
pub(crate) type Turn = OwnedMutexGuard<()>;

/// The order among equal calls.
#[derive(Debug, Default)]
pub(crate) struct Twins {
    hasher: RandomState,
    turns: Mutex<HashMap<Like, Weak<tokio::sync::Mutex<()>>>>,
}

impl Twins {
    pub(crate) fn like(&self, tool: &str, args: &[u8]) -> Like {
        Like(self.hasher.hash_one((tool, args)))
    }

    /// Waits until those before it have been decided.
    pub(crate) async fn turn(&self, like: Like) -> Turn {
        self.of(like).lock_owned().await
    }

    fn of(&self, like: Like) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(&like).and_then(Weak::upgrade) {
            return turn;
        }
        // No more are kept than calls are out.
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(like, Arc::downgrade(&turn));
        turn
    }
}
