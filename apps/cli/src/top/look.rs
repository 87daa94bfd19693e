//! Looking at a home: by its holder, else by its log.

use std::path::Path;

use syscap::audit::{LockState, SqliteReader};
use syscap::format::{
    AggregatePhase, Body, OutcomeFlags, PolicyHash, Record, Seq, Status, UnixMillis,
};
use syscap::kernel::{Next, StoreError};
use syscap::view::View;
use syscap::{Connect, Counts, Error, Runtime};

use super::asks::Asks;
use crate::{exit::Failure, policy::Loaded, runtime, token::now};

/// The state of the home's server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// A process that serves it, and says what it knows.
    Serves,
    /// A process that serves it to nobody.
    Silent,
    /// No process.
    Nobody,
}

impl Holder {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Serves => "serves",
            Self::Silent => "silent",
            Self::Nobody => "nobody",
        }
    }
}

/// The view.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) holder: Holder,
    pub(super) view: View,
    /// The time at which it was seen.
    pub(super) at: UnixMillis,
    pub(super) policy: Option<Named>,
    /// How often a person was asked in the last hour.
    pub(super) asks: u64,
}

/// A policy, in words.
#[derive(Clone, Debug)]
pub(super) struct Named {
    hash: PolicyHash,
    pub(super) preset: Option<&'static str>,
    pub(super) records_only: bool,
}

/// Looks again and again.
pub(super) struct Looker<'h> {
    home: &'h Path,
    attached: Option<Runtime>,
    /// The log's view, as long as the log has no more.
    logged: Option<(View, Seq)>,
    policy: Option<Named>,
    asks: Asks,
}

impl<'h> Looker<'h> {
    pub(super) fn new(home: &'h Path) -> Self {
        Self { home, attached: None, logged: None, policy: None, asks: Asks::default() }
    }

    pub(super) fn look(&mut self) -> Result<Seen, Failure> {
        let mut reader = SqliteReader::open(self.home).map_err(self.store())?;
        let lock = reader.lock_state().map_err(self.store())?;
        let (holder, view) = match self.asked(lock)? {
            Some(view) => (Holder::Serves, view),
            None => {
                let head = reader.head().map_err(self.store())?.map(|head| head.seq);
                let silent = lock == LockState::Held;
                let holder = if silent { Holder::Silent } else { Holder::Nobody };
                (holder, self.logged(head)?)
            }
        };
        let policy = self.named(view.policy)?;
        let at = now(view.now);
        let asks = self.asks.count(&mut reader, at).map_err(self.store())?;
        Ok(Seen { holder, at, policy, view, asks })
    }

    /// The server's view, if there is a server.
    fn asked(&mut self, lock: LockState) -> Result<Option<View>, Failure> {
        if lock == LockState::Free {
            self.attached = None;
            return Ok(None);
        }
        if self.attached.is_none() {
            self.attached = match Connect::to(self.home).stays().open() {
                Ok(access) => Some(access),
                Err(Error::NoServer { .. }) => None,
                Err(error) => return Err(Failure::home(self.home)(error)),
            };
        }
        match self.attached.as_ref().map(Runtime::view) {
            Some(Ok(view)) => Ok(Some(view)),
            Some(Err(Error::HolderGone | Error::NoServer { .. } | Error::Unserved(_))) => {
                self.attached = None;
                Ok(None)
            }
            Some(Err(error)) => Err(error.into()),
            None => Ok(None),
        }
    }

    fn logged(&mut self, head: Option<Seq>) -> Result<View, Failure> {
        if let Some((view, seen)) = &self.logged
            && Some(*seen) == head
        {
            return Ok(view.clone());
        }
        let mut view = runtime::look(self.home)?.view();
        view.counts = counts(self.home).map_err(self.store())?;
        self.logged = Some((view.clone(), view.head));
        Ok(view)
    }

    fn named(&mut self, hash: Option<PolicyHash>) -> Result<Option<Named>, Failure> {
        if self.policy.as_ref().map(|named| named.hash) != hash {
            let loaded = match hash {
                Some(hash) => Loaded::on_record(self.home, hash)?,
                None => None,
            };
            self.policy = loaded.map(|loaded| Named {
                hash: loaded.hash,
                preset: loaded.preset().map(syscap::policy::Preset::name),
                records_only: loaded.document().is_some_and(syscap::policy::Policy::is_recording),
            });
        }
        Ok(self.policy.clone())
    }

    fn store(&self) -> impl Fn(StoreError) -> Failure + use<'h> {
        let home = self.home;
        move |error| Failure::home(home)(Error::Home(error))
    }
}

/// The log's counters of the last run. Refusals that were only counted have no reason there.
fn counts(home: &Path) -> Result<Counts, StoreError> {
    let mut counts = Counts::default();
    let mut reader = SqliteReader::open(home)?;
    reader.records(Seq::GENESIS, &mut |_, bytes| {
        if let Ok(record) = Record::decode(bytes) {
            count(&mut counts, &record.body);
        }
        Next::More
    })?;
    Ok(counts)
}

fn count(counts: &mut Counts, body: &Body) {
    let add = |count: &mut u64, more: u64| *count = count.saturating_add(more);
    match body {
        Body::Boot(_) => *counts = Counts::default(),
        Body::Outcome(outcome) => {
            add(&mut counts.calls, 1);
            let failed = outcome.flags.has(OutcomeFlags::TOOL_FAILED);
            match outcome.status {
                Status::Ok if !failed => add(&mut counts.allowed, 1),
                Status::Ok | Status::Error => add(&mut counts.failed, 1),
            }
        }
        Body::Repeat(_) => {
            add(&mut counts.calls, 1);
            add(&mut counts.allowed, 1);
        }
        Body::Refusal(refusal) => {
            add(&mut counts.calls, 1);
            add(counts.refused.entry(refusal.reason).or_default(), 1);
        }
        Body::Ask(_) => {
            add(&mut counts.calls, 1);
            add(counts.refused.entry(syscap::format::Reason::Asked).or_default(), 1);
        }
        Body::Refusals(run) if run.phase != AggregatePhase::Open => {
            add(&mut counts.calls, run.count.unwrap_or(0));
        }
        _ => {}
    }
}
