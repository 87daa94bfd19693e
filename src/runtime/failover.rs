//! Failover: finds the server again whenever the last one has ended.

mod offers;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(feature = "sqlite")]
use syscap_audit::SqliteReader;
use syscap_format::{HomeId, Manifest, Seq, field::Field};
use syscap_kernel::StoreError;

use crate::home::Home;
use crate::runtime::backend::{Backend, Step};
use crate::runtime::connect::{Setup, Starter};
use crate::runtime::held::Held;
use crate::server::Holding;
use crate::server::accept::Server;
use crate::server::uses::Until;
use crate::tools::provide::Provider;
use crate::transport::client::{Entry, Found, Holder, attach};
use crate::transport::limits::{TRY_PAUSE, TRY_TIME};
use crate::transport::message::Ticketed;
use crate::transport::{Command, Lane};
use crate::{Error, Options};

/// How long a process that only offers tools rests when it has found no holder: at first, and at
/// most.
const REST: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(60);

/// How often one is started in a search: it may be ended before it is found.
const STARTS_MAX: u32 = 3;

/// A tool, and who runs it.
type Provided = (Manifest, Arc<dyn Provider>);

/// What a process does at a home.
pub(crate) enum Mode {
    /// It holds it, from the first moment.
    Hold,
    /// It connects to the server; where there is none it holds the home, with these options, and
    /// serves it to nobody.
    Command(Box<Mutex<Options>>),
    /// It connects to the server, and never holds the home.
    Connect(Setup),
}

/// The way to a home, whoever holds it.
pub(crate) struct Failover {
    home_at: Home,
    mode: Mode,
    entry: Entry,
    me: Weak<Self>,
    /// The home's id, once a holder was found: no other home is meant by the folder's name.
    home: OnceLock<HomeId>,
    /// Not in the state: a look for a holder ends when it is set.
    closed: AtomicBool,
    /// Held while it is closed: another caller of close waits for it. If it was closed for an
    /// operator, the owner gets the error.
    closing: Mutex<Option<Error>>,
    /// The last one that was found.
    state: Mutex<Option<Arc<dyn Backend>>>,
    /// The tools of this process, to be offered to each new server.
    offered: Mutex<Vec<Provided>>,
    /// The tickets of this process, to be registered with each new server.
    tickets: Mutex<Vec<Ticketed>>,
}

impl Failover {
    pub(crate) fn new(home: Home, mode: Mode, entry: Entry) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            home_at: home,
            mode,
            entry,
            me: Weak::clone(me),
            home: OnceLock::new(),
            closed: AtomicBool::new(false),
            closing: Mutex::default(),
            state: Mutex::default(),
            offered: Mutex::default(),
            tickets: Mutex::default(),
        })
    }

    /// What it does with each connection, where it never holds the home.
    const fn setup(&self) -> Option<&Setup> {
        match &self.mode {
            Mode::Connect(setup) => Some(setup),
            _ => None,
        }
    }

    fn starter(&self) -> Option<&Starter> {
        self.setup()?.starter.as_ref()
    }

    fn stays(&self) -> bool {
        self.setup().is_some_and(|setup| setup.stays)
    }

    /// True if no call of this process waits for a person.
    pub(crate) fn asks_nobody(&self) -> bool {
        self.setup().is_some_and(|setup| setup.headless)
    }

    pub(crate) const fn home(&self) -> &Home {
        &self.home_at
    }

    fn folder(&self) -> &Path {
        self.home_at.folder()
    }

    /// The home's id; `None` before a holder was found.
    pub(crate) fn id(&self) -> Option<HomeId> {
        self.home.get().copied()
    }

    pub(crate) fn is_holder(&self) -> bool {
        self.state().as_ref().is_some_and(|up| up.held().is_some())
    }

    /// The holder; found again, where the one that was known has gone. A caller that arrives
    /// meanwhile waits for the same search.
    pub(crate) fn up(&self) -> Result<Arc<dyn Backend>, Error> {
        self.search(self.starter(), TRY_TIME)
    }

    /// The same for so long at most. Where there is none, and a starter, one is started; anew where
    /// that went before it was found.
    fn search(
        &self,
        starter: Option<&Starter>,
        limit: Duration,
    ) -> Result<Arc<dyn Backend>, Error> {
        let state = self.state();
        self.check_open()?;
        if let Some(up) = there(&state) {
            return Ok(up);
        }
        drop(state);
        self.let_go();
        let mut state = self.state();
        self.check_open()?;
        if let Some(up) = there(&state) {
            return Ok(up);
        }
        // One that is full may be gone before it has been heard: once is enough.
        let (mut since, mut full, mut starts) = (Instant::now(), false, 0_u32);
        loop {
            *state = None;
            let why = match self.establish()? {
                Ok(up) => {
                    *state = Some(Arc::clone(&up));
                    self.set_up(&*up);
                    if !up.is_over() {
                        return Ok(up);
                    }
                    self.unserved()
                }
                Err(why @ Error::NoServer { .. }) => match starter {
                    Some(start) if starts < STARTS_MAX => {
                        starts = starts.saturating_add(1);
                        start.start()?;
                        since = Instant::now();
                        continue;
                    }
                    _ => why,
                },
                Err(why) => why,
            };
            full |= matches!(why, Error::Full(_));
            self.check_open()?;
            if since.elapsed() > limit {
                *state = None;
                return Err(if full { self.full() } else { why });
            }
            thread::sleep(TRY_PAUSE);
        }
    }

    /// The holder, where it is known and there, and nobody looks for one.
    pub(crate) fn now(&self) -> Option<Arc<dyn Backend>> {
        self.check_open().ok()?;
        there(&*self.state.try_lock().ok()?)
    }

    /// Finds the server at first, where one is there; else one is started, or there is none.
    pub(crate) fn connect(&self) -> Result<(), Error> {
        if self.look()? {
            return Ok(());
        }
        match self.starter() {
            Some(_) => self.up().map(drop),
            None => Err(self.no_server()),
        }
    }

    /// Looks for a holder once, and does not wait for one to come; says whether there is one.
    pub(crate) fn look(&self) -> Result<bool, Error> {
        let mut state = self.state();
        let (since, mut full) = (Instant::now(), false);
        loop {
            match self.attach()? {
                Found::Holder(holder) => {
                    *state = Some(Arc::<Holder>::clone(&holder));
                    self.set_up(&*holder);
                    return Ok(true);
                }
                found @ (Found::NotNow | Found::Full) if since.elapsed() <= TRY_TIME => {
                    full |= matches!(found, Found::Full);
                    thread::sleep(TRY_PAUSE);
                }
                Found::Full => return Err(self.full()),
                Found::NotNow if full => return Err(self.full()),
                Found::NotNow | Found::Nobody => return Ok(false),
            }
        }
    }

    /// This process holds the home already; it serves it until then, if at all.
    pub(crate) fn hold(&self, holding: Holding, until: Option<Until>) -> Result<(), Error> {
        self.is_it(holding.id());
        let server = until.map(|until| {
            holding.uses().set(until);
            self.server(&holding)
        });
        let server = match server.transpose() {
            Ok(server) => server,
            Err(error) => {
                // The log ends properly, and why it ends is what is said.
                drop(holding.end());
                return Err(error);
            }
        };
        *self.state() = Some(self.held(holding, server));
        Ok(())
    }

    /// Stops serving once nobody uses the home; waits for that so long at most.
    pub(crate) fn wait_unused(&self, limit: Duration) -> Result<bool, Error> {
        let up = self.state().clone();
        let held = up.as_deref().and_then(Backend::held).ok_or(Error::NotHolder)?;
        Ok(held.server.as_ref().is_some_and(|server| server.wait_unused(limit)))
    }

    /// True if it is on the agent channel: no session can be opened there.
    pub(crate) fn is_agents(&self) -> bool {
        self.entry == Entry::Lane(Lane::Agents)
    }

    /// Does something with the holder; with the next one, where this one goes and has not begun.
    pub(crate) fn each<T>(
        &self,
        mut act: impl FnMut(&Arc<dyn Backend>) -> Step<T>,
    ) -> Result<T, Error> {
        let since = Instant::now();
        loop {
            let up = self.up()?;
            match act(&up) {
                Step::Done(done) => return done,
                Step::Again if since.elapsed() > TRY_TIME => return Err(self.unserved()),
                Step::Again => self.gone(&up),
            }
        }
    }

    /// Does what an operator may ask in every version of the protocol.
    pub(crate) fn operate<T: Field>(&self, command: &Command) -> Result<T, Error> {
        self.each(|up| up.read(up.operate(command.clone())))
    }

    /// Lets the kernel notice that time has passed, where this process holds the home.
    pub(crate) fn tick(&self) -> Result<(), Error> {
        let up = self.state().clone();
        let Some(held) = up.as_deref().and_then(Backend::held) else { return Ok(()) };
        held.holding.tick();
        match held.holding.look(|kernel| kernel.halted().cloned()) {
            Some(halt) => Err(halt.into()),
            None => Ok(()),
        }
    }

    /// Ends it; by which record, where this process held the home.
    pub(crate) fn close(&self) -> Result<Option<Seq>, Error> {
        self.closed.store(true, Ordering::SeqCst);
        let mut told = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        match told.take() {
            Some(error) => Err(error),
            None => self.close_it(),
        }
    }

    /// The same, for an operator elsewhere who asks for it. The owner hears of it when it closes
    /// it too, or wants anything else of it.
    fn shut_down(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let mut told = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = self.close_it() {
            *told = Some(error);
        }
    }

    fn close_it(&self) -> Result<Option<Seq>, Error> {
        let up = self.state().take();
        up.map_or(Ok(None), |up| up.close(self.stays()))
    }

    /// Closes a home whose log could not be written for too long, so that the next one can open it.
    /// The state is not locked meanwhile: whoever works with the home may need it.
    fn let_go(&self) {
        let over = self.state().take_if(|up| up.held().is_some() && up.is_over());
        // Why it ended those were told who waited for it.
        drop(over.map(|over| over.close(false)));
    }

    /// Attaches, or opens the home. The inner error is one that may pass.
    fn establish(&self) -> Result<Result<Arc<dyn Backend>, Error>, Error> {
        if matches!(self.mode, Mode::Hold) {
            // It was held from the first, and is not any more.
            return Err(Error::Closed);
        }
        let options = match (self.attach()?, &self.mode) {
            (Found::Holder(holder), _) => return Ok(Ok(holder)),
            (Found::NotNow, _) => return Ok(Err(self.unserved())),
            (Found::Full, _) => return Ok(Err(self.full())),
            (Found::Nobody, Mode::Command(options)) => options,
            (Found::Nobody, _) => return Ok(Err(self.no_server())),
        };
        // Before it is opened, so that nothing is written to another. Where it can't be read,
        // opening it says why.
        if let (Some(home), Ok(id)) = (self.home.get(), id_at(self.folder()))
            && *home != id
        {
            return Err(self.other_home());
        }
        let held = options.lock().unwrap_or_else(PoisonError::into_inner).hold(self.folder());
        match held {
            Ok(holding) if self.is_it(holding.id()) => Ok(Ok(self.held(holding, None))),
            // It was put there a moment ago.
            Ok(holding) => {
                holding.end()?;
                Err(self.other_home())
            }
            Err(Error::Home(StoreError::Locked)) => Ok(Err(self.unserved())),
            Err(error) => Err(error),
        }
    }

    fn held(&self, holding: Holding, server: Option<Server>) -> Arc<dyn Backend> {
        let me = Weak::clone(&self.me);
        holding.when_let_go(move || {
            let Some(me) = me.upgrade() else { return };
            let let_go = move || me.let_go();
            // Without a thread the next one who needs the home does it.
            drop(thread::Builder::new().name("syscap-let-go".to_owned()).spawn(let_go));
        });
        Arc::new(Held::new(holding, server))
    }

    /// Serves a home that this process holds.
    fn server(&self, holding: &Holding) -> Result<Server, Error> {
        let me = Weak::clone(&self.me);
        Server::start(holding, move || {
            if let Some(me) = me.upgrade() {
                me.shut_down();
            }
        })
    }

    fn attach(&self) -> Result<Found, Error> {
        let me = Weak::clone(&self.me);
        let read_by = self.setup().and_then(|setup| setup.read_by.as_ref());
        let found = attach(self.folder(), self.entry, read_by, move |orderly| {
            // Others call what this process offers: it must not wait until it needs the home.
            let (mut rest, mut first) = (REST, true);
            while let Some(me) = me.upgrade() {
                // A server that was told to end stays away until somebody needs it.
                let starter = me.starter().filter(|_| first && !orderly);
                let limit = if first { TRY_TIME } else { Duration::ZERO };
                let is_done = me.offers_nothing() || me.check_open().is_err();
                if is_done || me.search(starter, limit).is_ok() {
                    break;
                }
                drop(me);
                thread::sleep(rest);
                (rest, first) = (rest.saturating_mul(2).min(REST_MAX), false);
            }
        })?;
        match &found {
            Found::Holder(holder) if !self.is_it(holder.home()) => {
                drop(holder.close(false));
                Err(self.other_home())
            }
            _ => Ok(found),
        }
    }

    /// True if this is the intended home: the first one that is found is.
    fn is_it(&self, home: HomeId) -> bool {
        *self.home.get_or_init(|| home) == home
    }

    fn other_home(&self) -> Error {
        Error::OtherHome(self.folder().to_path_buf())
    }

    fn gone(&self, up: &Arc<dyn Backend>) {
        // Dropped when nothing is locked: it may be the last that has a provider.
        let gone = self.state().take_if(|now| Arc::ptr_eq(now, up));
        drop(gone);
        thread::sleep(TRY_PAUSE);
    }

    pub(crate) fn check_open(&self) -> Result<(), Error> {
        match self.closed.load(Ordering::SeqCst) {
            true => Err(Error::Closed),
            false => Ok(()),
        }
    }

    fn full(&self) -> Error {
        Error::Full(self.folder().to_path_buf())
    }

    fn no_server(&self) -> Error {
        Error::NoServer { home: self.folder().to_path_buf(), why: String::new() }
    }

    pub(crate) fn unserved(&self) -> Error {
        Error::Unserved(self.folder().to_path_buf())
    }

    fn state(&self) -> MutexGuard<'_, Option<Arc<dyn Backend>>> {
        // Every change is one step that can't break off half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A home that this process uses, until nothing of it needs it any more.
pub(crate) struct Open(pub(crate) Arc<Failover>);

impl std::ops::Deref for Open {
    type Target = Failover;

    fn deref(&self) -> &Failover {
        &self.0
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // Whoever wants to know what comes of it closes it.
        drop(self.0.close());
    }
}

/// The one that was found, where it takes requests.
fn there(found: &Option<Arc<dyn Backend>>) -> Option<Arc<dyn Backend>> {
    found.as_ref().filter(|up| !up.is_over()).map(Arc::clone)
}

/// The id of the home in a folder, from its log's first record.
#[cfg(feature = "sqlite")]
fn id_at(folder: &Path) -> Result<HomeId, Error> {
    let (mut reader, mut id) = (SqliteReader::open(folder)?, None);
    reader.records(Seq::GENESIS, &mut |_, bytes| {
        id = Some(HomeId::from_bytes(*syscap_format::leaf(bytes).as_bytes()));
        syscap_kernel::Next::Enough
    })?;
    id.ok_or(Error::Home(StoreError::Damaged))
}

/// Without a database it is known once the home is open.
#[cfg(not(feature = "sqlite"))]
fn id_at(_: &Path) -> Result<HomeId, Error> {
    Err(Error::NoStore)
}
