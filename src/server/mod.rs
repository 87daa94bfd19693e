//! A home that this process holds: its kernel, and what goes with it.

pub(crate) mod accept;
mod asks;
mod challenges;
pub(crate) mod client;
mod desk;
pub(crate) mod issuing;
pub(crate) mod lend;
pub(crate) mod notify;
pub(crate) mod offered;
pub(crate) mod org;
mod record;
pub(crate) mod request;
pub(crate) mod seat;
mod session;
mod shares;
mod signing;
mod tools;
pub(crate) mod uses;
pub(crate) mod waits;
pub(crate) mod work;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use syscap_format::{AgentId, HomeId, Opening, Refused, Seq, TokenId};
use syscap_kernel::{Ack, Event, Halt, Kernel, ToolsDelta};
use syscap_syscalls::fs::Files;

use crate::driver::core::{Answer, Core};
use crate::driver::counters::Counters;
use crate::error::Error;
use crate::home::Home;
use crate::keys::Signer;
use crate::server::lend::Lent;
pub(crate) use crate::server::record::By;
pub(crate) use crate::server::session::{LocalSession, acknowledged, check_said};
use crate::server::uses::Uses;
use crate::server::waits::Waits;
use crate::tools::Providers;
use crate::{server::challenges::Challenges, server::desk::Desk};

/// A kernel on a home. It can be shared between threads.
pub(crate) struct Holding {
    pub(crate) core: Arc<Core>,
    pub(crate) providers: Arc<Providers>,
    inner: Arc<Inner>,
}

/// A handle that keeps no home open.
pub(crate) struct WeakHolding {
    core: Weak<Core>,
    providers: Weak<Providers>,
    inner: Weak<Inner>,
}

impl WeakHolding {
    /// `None` where the home is closed.
    pub(crate) fn upgrade(&self) -> Option<Holding> {
        let (core, providers) = (self.core.upgrade()?, self.providers.upgrade()?);
        Some(Holding { core, providers, inner: self.inner.upgrade()? })
    }
}

/// The parts beside the kernel, shared with the threads that serve it.
struct Inner {
    signer: Arc<dyn Signer>,
    files: Files,
    home: Home,
    /// Held while a counter is read, signed and recorded.
    signing: Mutex<()>,
    /// Held while tools are offered and put on record.
    tooling: Mutex<()>,
    /// The tools on record that the kernel lacks, until its own are on record too.
    absent: Mutex<ToolsDelta>,
    /// The broker for tools that the agents' clients execute.
    desk: Desk,
    challenges: Challenges,
    /// The sessions that its clients have delegated.
    lent: Lent,
    /// Until when it is served.
    uses: Uses,
    /// The requests that wait for a person's answer.
    waits: Waits,
}

impl Holding {
    pub(crate) fn new(
        core: Arc<Core>,
        providers: Arc<Providers>,
        signer: Arc<dyn Signer>,
        files: Files,
        home: Home,
        absent: ToolsDelta,
    ) -> Self {
        let (signing, tooling, absent) = (Mutex::default(), Mutex::default(), Mutex::new(absent));
        let (desk, challenges) = (Desk::default(), Challenges::default());
        let (lent, uses, waits) = (Lent::default(), Uses::default(), Waits::default());
        let inner = Inner {
            signer,
            files,
            home,
            signing,
            tooling,
            absent,
            desk,
            challenges,
            lent,
            uses,
            waits,
        };
        Self { core, providers, inner: Arc::new(inner) }
    }

    /// Opens a session for an agent with a token that is for it.
    ///
    /// # Errors
    /// [`Error::BadName`]; [`Error::Refused`] where there is no such token or it is another
    /// agent's; [`Error::Base`] where the agent's folder can't be made.
    pub(crate) fn session(&self, agent: &str, token: TokenId) -> Result<LocalSession, Error> {
        self.session_by(agent, token, None)
    }

    /// The same, for the token's holder, who is elsewhere.
    pub(crate) fn session_by(
        &self,
        agent: &str,
        token: TokenId,
        opening: Option<Opening>,
    ) -> Result<LocalSession, Error> {
        let got = agent.to_owned();
        let agent = AgentId::new(agent).ok_or(Error::BadName { what: "the agent", got })?;
        let event = |ticket| Event::OpenSession(ticket, agent.clone(), token, opening);
        let opened = self.core.request(event)?;
        match opened {
            Answer::Ack(Ok(Ack::Session(opened))) => {
                let prepared = self.inner.files.prepare(&agent);
                let session = self.handle(opened.session, agent, token);
                if let Err(error) = prepared {
                    session.end()?;
                    return Err(error.into());
                }
                Ok(session)
            }
            Answer::Ack(Err(refused)) => Err(Error::Refused(refused)),
            _ => Err(Error::Halted(Halt::Halted)),
        }
    }

    /// A handle on a session, open or not.
    pub(crate) fn handle(&self, session: Seq, agent: AgentId, token: TokenId) -> LocalSession {
        let (core, providers) = (Arc::clone(&self.core), Arc::clone(&self.providers));
        LocalSession::new(core, providers, session, agent, token)
    }

    /// The home's id.
    pub(crate) fn id(&self) -> HomeId {
        self.core.look(Kernel::home)
    }

    /// The home's folder.
    pub(crate) fn home(&self) -> &Home {
        &self.inner.home
    }

    /// A look at the kernel: tokens, tools, policy, head.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Kernel) -> T) -> T {
        self.core.look(look)
    }

    /// Tells the kernel that time has passed, so that open aggregates close.
    pub(crate) fn tick(&self) {
        self.core.post(Event::Tick);
    }

    /// Closes every session and the home, and says by which record: from here on their calls are
    /// errors. A run that still continues then can't be stopped: see
    /// [`Runtime::close`](crate::Runtime::close).
    pub(crate) fn end(&self) -> Result<Seq, Error> {
        self.inner.desk.close();
        notify::finish(&self.core);
        let recorded = acknowledged(self.core.request(Event::Shutdown));
        let closed = self.core.close();
        recorded.and_then(|record| Ok(closed.map(|()| record)?))
    }

    /// Another handle on the same runtime, for one who serves it.
    pub(crate) fn share(&self) -> Self {
        let (core, providers) = (Arc::clone(&self.core), Arc::clone(&self.providers));
        Self { core, providers, inner: Arc::clone(&self.inner) }
    }

    /// The same, for one who must not keep the home open.
    pub(crate) fn weak(&self) -> WeakHolding {
        let (core, inner) = (Arc::downgrade(&self.core), Arc::downgrade(&self.inner));
        WeakHolding { core, providers: Arc::downgrade(&self.providers), inner }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.core.counters
    }

    /// True once another program has kept the log from being written for too long.
    pub(crate) fn has_let_go(&self) -> bool {
        self.core.has_let_go()
    }

    /// Has this done when that happens.
    pub(crate) fn when_let_go(&self, then: impl Fn() + Send + Sync + 'static) {
        self.core.when_let_go(then);
    }

    /// Refuses an operator's act while no record can be made of it.
    pub(crate) fn may_act(&self) -> Result<(), Refused> {
        self.core.may_act()
    }

    /// Abandons all runs in flight.
    pub(crate) fn give_up_runs(&self) {
        self.core.give_up_runs();
    }

    pub(crate) fn challenges(&self) -> &Challenges {
        &self.inner.challenges
    }

    pub(crate) fn lent(&self) -> &Lent {
        &self.inner.lent
    }

    pub(crate) fn uses(&self) -> &Uses {
        &self.inner.uses
    }

    pub(crate) fn waits(&self) -> &Waits {
        &self.inner.waits
    }

    pub(crate) fn desk(&self) -> &Desk {
        &self.inner.desk
    }

    pub(crate) fn absent(&self) -> MutexGuard<'_, ToolsDelta> {
        self.inner.absent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tooling(&self) -> MutexGuard<'_, ()> {
        self.inner.tooling.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
