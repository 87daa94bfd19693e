//! A server's notifications, and the lists that they announce as changed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// A server's notification.
#[derive(Debug)]
pub(crate) enum Notice {
    /// `notifications/progress`.
    Progress(Value),
    /// `notifications/message`.
    Log(Value),
    /// `notifications/resources/updated`.
    Updated(Value),
    /// One of the lists is another now.
    Changed(ChangedList),
    /// Not the server's: answered when all before it has been passed on.
    Mark(oneshot::Sender<()>),
}

/// A notice that waits, and the room that it takes.
#[derive(Debug)]
pub(crate) struct WaitingNotice {
    pub(crate) notice: Notice,
    /// Its bytes; what takes none has none.
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

impl From<Notice> for WaitingNotice {
    fn from(notice: Notice) -> Self {
        Self { notice, room: None }
    }
}

/// A list that a server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangedList {
    Tools,
    Prompts,
    Resources,
}

/// How often a server has said that what is pinned of it is another now: its tools, its prompts.
#[derive(Debug, Default)]
pub(crate) struct Changes([AtomicU64; 2]);

impl Changes {
    const fn of(&self, list: ChangedList) -> Option<&AtomicU64> {
        let [tools, prompts] = &self.0;
        match list {
            ChangedList::Tools => Some(tools),
            ChangedList::Prompts => Some(prompts),
            ChangedList::Resources => None,
        }
    }

    /// It has said so once more.
    pub(crate) fn count(&self, list: ChangedList) {
        if let Some(changes) = self.of(list) {
            changes.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// How often it has said so.
    pub(crate) fn get(&self, list: ChangedList) -> u64 {
        self.of(list).map_or(0, |changes| changes.load(Ordering::Acquire))
    }
}

/// Lists of which it could not be said that they changed, since too much waited.
#[derive(Debug, Default)]
pub(crate) struct Missed([AtomicBool; 3]);

impl Missed {
    /// Notes that a change of that list could not be said.
    pub(crate) fn set(&self, list: ChangedList) {
        let [tools, prompts, resources] = &self.0;
        let flag = match list {
            ChangedList::Tools => tools,
            ChangedList::Prompts => prompts,
            ChangedList::Resources => resources,
        };
        flag.store(true, Ordering::Release);
    }

    /// Takes what was missed.
    pub(crate) fn take(&self) -> Vec<ChangedList> {
        let lists = [ChangedList::Tools, ChangedList::Prompts, ChangedList::Resources];
        let missed = lists.into_iter().zip(&self.0);
        missed.filter(|(_, flag)| flag.swap(false, Ordering::AcqRel)).map(|(l, _)| l).collect()
    }
}
