//! Calls that wait for a person, asked of the server: it says how each stands, and what is shown of it
//! is read from the rows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use syscap_format::field::shape;
use syscap_format::{Manifest, ObjectId, Reason, Refused, Seq, ToolId, UnixMillis};
use syscap_kernel::{AskView, Kernel, SetView, StoreError};

use crate::approvals::asks::{WaitingCall, asked_for, of_rows};
use crate::home::options::read_store;
use crate::server::Holding;
use crate::transport::limits::{OWN_WAIT_TIME, WAIT_TIME, WAITING_MAX};
use crate::transport::{Ask, Watched};
use crate::{Error, Runtime};

shape! {
    /// The calls that wait, or were answered and have not run, all of them.
    pub(crate) struct Waiting {
        /// The kernel's time.
        1 => pub(crate) now: UnixMillis,
        2 => pub(crate) list: Vec<AskStands> [..WAITING_MAX],
    }
}

shape! {
    /// What of a request does not stand in its record.
    pub(crate) struct AskStands {
        1 => pub(crate) ask: Seq,
        2 => pub(crate) approved: Option<u64>,
        3 => pub(crate) denied: bool,
        4 => pub(crate) session: Option<Seq>,
        5 => pub(crate) uses_max: u64,
        6 => pub(crate) may_widen: bool,
        7 => pub(crate) superseded: bool,
    }
}

impl AskStands {
    /// Of one that waits no more.
    pub(crate) const fn over(ask: Seq) -> Self {
        let (denied, may_widen, superseded) = (false, false, false);
        Self { ask, approved: None, denied, session: None, uses_max: 0, may_widen, superseded }
    }

    fn of(view: AskView, superseded: bool) -> Self {
        let AskView { ask, approved, denied, session, uses_max, may_widen, .. } = view;
        Self { ask, approved, denied, session, uses_max, may_widen, superseded }
    }
}

shape! {
    /// The standing approvals, all of them.
    pub(crate) struct Sets {
        /// The kernel's time.
        1 => now: UnixMillis,
        2 => list: Vec<SetView> [..WAITING_MAX],
    }
}

impl Holding {
    /// The standing approvals.
    pub(crate) fn sets(&self) -> Result<Sets, Error> {
        self.tick();
        let few = |kernel: &Kernel| {
            let list: Vec<SetView> = kernel.sets().take(WAITING_MAX.saturating_add(1)).collect();
            Sets { now: kernel.now(), list }
        };
        let sets = self.look(few);
        if sets.list.len() > WAITING_MAX {
            return Err(Refused::new(Reason::TooLarge).field("sets").into());
        }
        Ok(sets)
    }

    /// How the calls stand that wait for a person.
    pub(crate) fn waiting(&self) -> Result<Waiting, Error> {
        // The kernel's time is that of its last event.
        self.tick();
        let (now, asks, manifests) = self.look(|kernel| {
            let asks: Vec<AskView> = kernel.asks().take(WAITING_MAX.saturating_add(1)).collect();
            let tools: BTreeSet<&ToolId> = asks.iter().map(|ask| &ask.tool).collect();
            let meant = kernel.manifests().filter(|manifest| tools.contains(&manifest.tool));
            let meant: Vec<Manifest> = meant.cloned().collect();
            (kernel.now(), asks, meant)
        });
        if asks.len() > WAITING_MAX {
            // A part of them would be taken for all.
            return Err(Refused::new(Reason::TooLarge).field("asks").into());
        }
        // Hashed with nothing locked: calls go on meanwhile.
        let ids: BTreeMap<ToolId, ObjectId> =
            manifests.into_iter().map(|one| (one.tool.clone(), one.id())).collect();
        let list = self.core.read(|store| {
            let stands = asks.into_iter().map(|view| {
                let asked = asked_for(store, view.ask)?;
                let superseded = asked.is_some() && asked.as_ref() != ids.get(&view.tool);
                Ok(AskStands::of(view, superseded))
            });
            Ok(stands.collect::<Result<Vec<_>, StoreError>>()?)
        })?;
        Ok(Waiting { now, list })
    }
}

/// The records and the vault of a home, read without replaying its log: another process may hold it.
#[cfg(feature = "sqlite")]
pub struct Rows(syscap_audit::SqliteReader);

#[cfg(feature = "sqlite")]
impl Rows {
    /// Opens them.
    ///
    /// # Errors
    /// As [`Options::inspect`](crate::Options::inspect).
    pub fn open(home: impl AsRef<std::path::Path>) -> Result<Self, Error> {
        Ok(Self(syscap_audit::SqliteReader::open(home.as_ref())?))
    }

    /// A call that asked for a person, as it was then: nothing is said of its session, and of
    /// whether it still waits or was answered. `None` where the record of that number is another.
    ///
    /// # Errors
    /// [`Error::Home`]: the log or the vault can't be read.
    pub fn asked(&mut self, ask: Seq) -> Result<Option<WaitingCall>, Error> {
        Ok(of_rows(&mut self.0, &AskStands::over(ask))?)
    }

    pub(crate) fn store(&mut self) -> &mut dyn syscap_kernel::Store {
        &mut self.0
    }

    pub(crate) fn head(&mut self) -> Result<Seq, StoreError> {
        Ok(self.0.head()?.map_or(Seq::GENESIS, |head| head.seq))
    }
}

impl Runtime {
    /// The approvals of more than one call that stand, and the kernel's time: 4,096 at most.
    ///
    /// # Errors
    /// [`Error::HolderGone`]; [`Error::Refused`] where there are more.
    pub fn sets(&self) -> Result<(Vec<SetView>, UnixMillis), Error> {
        let Sets { now, list } = self.in_haste(Ask::Sets)?;
        Ok((list, now))
    }

    /// How often calls have begun to wait for a person, or were answered, since the home was opened:
    /// at once where that is another number than `seen`, else once it is, or after a time: so long,
    /// 30 seconds at most, and 250 ms where this process holds the home. A call that runs by its
    /// answer, or that nobody answered in time, is no change.
    ///
    /// # Errors
    /// [`Error::HolderGone`], also where the server ended meanwhile: the next one counts from 0.
    pub fn watch(&self, seen: u64, limit: Duration) -> Result<u64, Error> {
        // A home of this process can be closed meanwhile: it waits for what it does itself.
        let most = if self.is_holder() { OWN_WAIT_TIME } else { WAIT_TIME };
        let limit = u64::try_from(limit.min(most).as_millis()).unwrap_or(u64::MAX);
        self.act(Ask::Watch(Watched { seen, limit }))
    }

    /// The calls that wait for a person, or were answered and have not run, in the order in which
    /// they came, and the kernel's time. How they stand the server says; what is asked is read from the
    /// records and the vault, and checked against them.
    ///
    /// # Errors
    /// [`Error::HolderGone`]; [`Error::Refused`] where there are more than 4,096; [`Error::Home`] where the home's database can't be read, as where
    /// another process keeps the log elsewhere.
    pub fn waiting(&self) -> Result<(Vec<WaitingCall>, UnixMillis), Error> {
        let Waiting { now, list } = self.in_haste(Ask::Waiting)?;
        let found = match self.is_holder() {
            true => self.here(|holding| {
                let calls = |store: &mut dyn syscap_kernel::Store| -> Result<_, StoreError> {
                    list.iter().map(|stands| of_rows(store, stands)).collect()
                };
                Ok(holding.core.read(|store| Ok(calls(store)?))?)
            })?,
            false => {
                let mut store = read_store(self.home())?;
                let calls = list.iter().map(|stands| of_rows(&mut *store, stands));
                calls.collect::<Result<Vec<_>, StoreError>>()?
            }
        };
        Ok((found.into_iter().flatten().collect(), now))
    }
}
