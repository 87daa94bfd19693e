//! A store that fails where a test wants it to, as a crash or a bad disk would.

use std::collections::BTreeSet;

use syscap_format::{Object, ObjectId, Seq};
use syscap_kernel::{Batch, Next, Room, Settled, Store, StoreError};

/// What [`FaultStore`] reports at its fault: `EIO`.
pub const FAULT: StoreError = StoreError::Io(5);

/// Where a store fails. Commits are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPoint {
    /// Never.
    Nowhere,
    /// Before a commit: nothing of it is durable.
    Before(u64),
    /// After a commit: all of it is durable, but it is not acknowledged.
    After(u64),
    /// At a commit: all of it is in a file that has lost its name.
    Replaced(u64),
    /// Not at all, but at this try to commit, and the next, another program is in the way.
    Busy(u64),
}

/// A store that fails at one commit and from then on answers nothing.
#[derive(Debug)]
pub struct FaultStore<S> {
    inner: S,
    point: FaultPoint,
    commits: u64,
    down: bool,
    erased: BTreeSet<Seq>,
}

impl<S: Store> FaultStore<S> {
    /// Wraps a store.
    #[must_use]
    pub const fn new(inner: S, point: FaultPoint) -> Self {
        Self { inner, point, commits: 0, down: false, erased: BTreeSet::new() }
    }

    /// How many commits were tried, that which failed included.
    #[must_use]
    pub const fn commits(&self) -> u64 {
        self.commits
    }

    /// Whether the fault has happened.
    #[must_use]
    pub const fn is_down(&self) -> bool {
        self.down
    }

    /// The vault's row of a record is gone from here on.
    pub fn erase(&mut self, seq: Seq) {
        self.erased.insert(seq);
    }

    /// The store as the fault left it.
    #[must_use]
    pub fn into_inner(self) -> S {
        self.inner
    }

    fn up(&mut self) -> Result<&mut S, StoreError> {
        if self.down { Err(StoreError::Poisoned) } else { Ok(&mut self.inner) }
    }
}

impl<S: Store> Store for FaultStore<S> {
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.up()?;
        self.commits = self.commits.saturating_add(1);
        match self.point {
            FaultPoint::Before(commit) if commit == self.commits => {}
            FaultPoint::After(commit) if commit == self.commits => self.inner.commit(batch)?,
            FaultPoint::Replaced(commit) if commit == self.commits => {
                self.down = true;
                return Err(StoreError::Replaced);
            }
            FaultPoint::Busy(n) if (n..=n.saturating_add(1)).contains(&self.commits) => {
                return Err(StoreError::Busy);
            }
            _ => return self.inner.commit(batch),
        }
        self.down = true;
        Err(FAULT)
    }

    fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError> {
        self.up()?.records(from, each)
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        self.up()?.object(id)
    }

    fn vault(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        let is_erased = self.erased.contains(&seq);
        self.up()?.vault(seq).map(|row| row.filter(|_| !is_erased))
    }

    fn room(&mut self) -> Result<Room, StoreError> {
        self.up()?.room()
    }

    fn settle(&mut self) -> Result<Settled, StoreError> {
        self.up()?.settle()
    }

    fn idle(&mut self) -> Result<(), StoreError> {
        self.up()?.idle()
    }

    fn purge(&mut self) -> Result<Settled, StoreError> {
        self.up()?.purge()
    }
}
