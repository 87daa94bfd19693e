//! Who holds the home, found again whenever the one who did has gone.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use syscap_audit::sqlite::SqliteReader;
use syscap_format::{
    cbor::Item,
    hash::leaf,
    id::{HomeId, Seq, ToolId},
    manifest::Manifest,
};
use syscap_kernel::{
    halt::Halt,
    store::{Next, StoreError},
};

use crate::{
    ConnectionId, Error, Runtime, Session, Withdrawn,
    attach::{
        Command, Lane, SessionTicket,
        client::{Entry, Found, Holder, Step, attach},
        limits::{DRAIN_TIME, END_TIME, TOOLS_MAX, TRY_PAUSE, TRY_TIME},
        server::Server,
        wire::Broken,
    },
    guard::caught,
    provide::{Offer, Provider},
};

/// How long a process that only offers tools rests when it has found no holder.
const REST: Duration = Duration::from_secs(1);

/// A tool, and who runs it.
type Offered = (Manifest, Arc<dyn Provider>);

/// What a process does where nobody holds the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// It holds it, and serves it.
    Serve,
    /// It holds it for itself.
    Command,
    /// It waits for another to hold it.
    Attach,
    /// The same, on the agents' lane.
    Agent,
    /// It holds it for itself. Where somebody holds it, only an operator's frames that never
    /// change are sent there.
    Operator,
}

impl Mode {
    const fn entry(self) -> Entry {
        match self {
            Self::Serve | Self::Command | Self::Attach => Entry::Lane(Lane::Operator),
            Self::Agent => Entry::Lane(Lane::Agents),
            Self::Operator => Entry::Bare,
        }
    }
}

/// The way to the home.
pub(super) struct Link {
    folder: PathBuf,
    mode: Mode,
    me: Weak<Self>,
    /// The home's id, once a holder was found: no other home is meant by the folder's name.
    home: OnceLock<HomeId>,
    /// Not in the state: a look for a holder ends when it is set.
    closed: AtomicBool,
    /// Held while it is closed: whoever closes it too waits for that. What went wrong, where it
    /// was closed for an operator, is told to the owner.
    closing: Mutex<Option<Error>>,
    state: Mutex<State>,
    /// What this process offers, to be offered to each new holder.
    offered: Mutex<Vec<Offered>>,
}

struct State {
    seat: Option<Up>,
    /// How many holders there have been.
    number: u64,
}

/// A holder: this process or another.
#[derive(Clone)]
pub(super) struct Up {
    /// Which one it is of those that this process has known.
    pub(super) number: u64,
    pub(super) seat: Seat,
}

#[derive(Clone)]
pub(super) enum Seat {
    Held(Arc<Held>),
    Attached(Arc<Holder>),
}

/// The home, held by this process.
pub(super) struct Held {
    pub(super) runtime: Runtime,
    server: Option<Server>,
    /// What this process itself does with it at present.
    working: AtomicUsize,
}

/// Something that this process does; counted off also where it panics.
struct Working<'a>(&'a AtomicUsize);

impl<'a> Working<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Held {
    /// Ends it: the attached first, then what this process does itself. The record that ends the
    /// log is told to those who asked for it.
    fn close(&self) -> Result<Seq, Error> {
        let since = Instant::now();
        if let Some(server) = &self.server {
            // Whatever panics with it, the home is closed.
            caught(|| server.close()).unwrap_or(());
        }
        let works = || self.working.load(Ordering::SeqCst) > 0;
        while works() && since.elapsed() < DRAIN_TIME {
            thread::sleep(TRY_PAUSE);
        }
        let since = Instant::now();
        // More than once: what was about to run has no run to give up yet.
        loop {
            caught(|| self.runtime.give_up_runs()).unwrap_or(());
            if !works() || since.elapsed() > END_TIME {
                break;
            }
            thread::sleep(TRY_PAUSE);
        }
        let ended = self.runtime.end();
        if let Some(server) = &self.server {
            caught(|| server.tell_closed(&ended)).unwrap_or(());
        }
        ended
    }

    /// Gives a session of this process away, to whoever has the ticket.
    pub(super) fn lend(&self, session: Arc<Session>) -> Result<SessionTicket, Error> {
        let folder = || self.runtime.home().folder().to_path_buf();
        self.server.as_ref().ok_or_else(|| Error::Unserved(folder()))?.lend(session)
    }
}

impl Up {
    /// The holder, where it is another process.
    pub(super) fn attached(&self) -> Option<&Holder> {
        match &self.seat {
            Seat::Held(_) => None,
            Seat::Attached(holder) => Some(holder),
        }
    }

    fn is_over(&self) -> bool {
        match &self.seat {
            Seat::Held(_) => false,
            Seat::Attached(holder) => holder.is_over(),
        }
    }
}

impl Link {
    pub(super) fn new(folder: &Path, mode: Mode) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            folder: folder.to_path_buf(),
            mode,
            me: Weak::clone(me),
            home: OnceLock::new(),
            closed: AtomicBool::new(false),
            closing: Mutex::default(),
            state: Mutex::new(State { seat: None, number: 0 }),
            offered: Mutex::default(),
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn is_holder(&self) -> bool {
        let state = self.state();
        state.seat.as_ref().is_some_and(|up| matches!(up.seat, Seat::Held(_)))
    }

    /// The holder; found again, where the one that was known has gone. Who comes meanwhile
    /// waits for the same.
    pub(super) fn up(&self) -> Result<Up, Error> {
        let mut state = self.state();
        self.check_open()?;
        if let Some(up) = state.seat.as_ref().filter(|up| !up.is_over()) {
            return Ok(up.clone());
        }
        state.seat = None;
        // One that is full may be gone before it has been heard: once is enough.
        let (since, mut full) = (Instant::now(), false);
        loop {
            let why = match self.establish()? {
                Ok(seat) => {
                    let up = state.take(seat);
                    self.offer_all(&up);
                    if !up.is_over() {
                        return Ok(up);
                    }
                    state.seat = None;
                    self.unserved()
                }
                Err(why) => why,
            };
            full |= matches!(why, Error::Full(_));
            self.check_open()?;
            if since.elapsed() > TRY_TIME {
                return Err(if full { self.full() } else { why });
            }
            thread::sleep(TRY_PAUSE);
        }
    }

    /// Looks for a holder once, and does not wait for one to come; says whether there is one.
    pub(super) fn look(&self) -> Result<bool, Error> {
        let mut state = self.state();
        let (since, mut full) = (Instant::now(), false);
        loop {
            match self.attach()? {
                Found::Holder(holder) => {
                    state.take(Seat::Attached(holder));
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

    /// This process holds the home already.
    pub(super) fn hold(&self, runtime: Runtime) -> Result<(), Error> {
        self.is_it(runtime.id());
        let held = self.held(runtime)?;
        self.state().take(held);
        Ok(())
    }

    /// Whether it is on the agents' lane: no session can be opened there.
    pub(super) fn is_agents(&self) -> bool {
        self.mode == Mode::Agent
    }

    /// The holder of that number, if it still is the one.
    pub(super) fn still(&self, number: u64) -> Option<Up> {
        self.state().seat.clone().filter(|up| up.number == number)
    }

    /// Does something with the holder; with the next one, where this one goes and has not begun.
    pub(super) fn each<T>(&self, mut act: impl FnMut(&Up) -> Step<T>) -> Result<T, Error> {
        let since = Instant::now();
        loop {
            let up = self.up()?;
            let working = match &up.seat {
                Seat::Held(held) => Some(Working::begin(&held.working)),
                Seat::Attached(_) => None,
            };
            let step = act(&up);
            drop(working);
            match step {
                Step::Done(done) => return done,
                Step::Again if since.elapsed() > TRY_TIME => {
                    return Err(Error::Unserved(self.folder.clone()));
                }
                Step::Again => self.gone(&up),
            }
        }
    }

    /// Does what an operator does in any version: here, or by a frame that never changes.
    pub(super) fn operate<T>(
        &self,
        command: &Command,
        here: impl Fn(&Runtime) -> Result<T, Error>,
        read: impl Fn(Item<'_>) -> Result<T, Broken>,
    ) -> Result<T, Error> {
        self.each(|up| match &up.seat {
            Seat::Held(held) => Step::Done(here(&held.runtime)),
            Seat::Attached(holder) => holder.operate(command, &read),
        })
    }

    /// Offers tools, now and to each new holder.
    pub(super) fn provide(
        &self,
        tools: Vec<Manifest>,
        provider: Arc<dyn Provider>,
    ) -> Result<Vec<Offer>, Error> {
        let names: Vec<ToolId> = tools.iter().map(|manifest| manifest.tool.clone()).collect();
        let named = |(manifest, _): &Offered| names.contains(&manifest.tool);
        let mut offered = self.offered();
        let others = offered.iter().filter(|offer| !named(offer)).count();
        if others.saturating_add(tools.len()) > TOOLS_MAX {
            return Err(Error::TooManyTools);
        }
        let before: Vec<Offered> = offered.extract_if(.., |offer| named(offer)).collect();
        offered.extend(tools.iter().map(|manifest| (manifest.clone(), Arc::clone(&provider))));
        drop(offered);
        let offers = self.each(|up| offer(up, &tools, &provider, Duration::MAX));
        if offers.is_err() {
            // What was offered before still is.
            let mut offered = self.offered();
            let ours = |offer: &mut Offered| named(offer) && Arc::ptr_eq(&offer.1, &provider);
            let gone: Vec<Offered> = offered.extract_if(.., ours).collect();
            for old in before {
                if offered.iter().all(|(manifest, _)| manifest.tool != old.0.tool) {
                    offered.push(old);
                }
            }
            drop(offered);
            drop(gone);
        }
        offers
    }

    /// Does not offer them to the next holder.
    pub(super) fn forget(&self, tools: &[ToolId]) {
        self.offered().retain(|(manifest, _)| !tools.contains(&manifest.tool));
    }

    /// Lets the kernel notice that time has passed, where this process holds the home.
    pub(super) fn tick(&self) -> Result<(), Error> {
        let seat = self.state().seat.clone();
        let Some(Seat::Held(held)) = seat.map(|up| up.seat) else { return Ok(()) };
        held.runtime.tick();
        match held.runtime.look(|kernel| kernel.halted().cloned()) {
            Some(halt) => Err(halt.into()),
            None => Ok(()),
        }
    }

    /// Ends it; by which record, where this process held the home.
    pub(super) fn close(&self) -> Result<Option<Seq>, Error> {
        self.closed.store(true, Ordering::SeqCst);
        let mut told = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        match told.take() {
            Some(error) => Err(error),
            None => self.close_seat(),
        }
    }

    /// The same, for an operator elsewhere who asks for it. The owner hears of it when it closes
    /// it too, or wants anything else of it.
    fn shut_down(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let mut told = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = self.close_seat() {
            *told = Some(error);
        }
    }

    fn close_seat(&self) -> Result<Option<Seq>, Error> {
        let seat = self.state().seat.take();
        match seat.map(|up| up.seat) {
            Some(Seat::Held(held)) => held.close().map(Some),
            Some(Seat::Attached(holder)) => {
                holder.close();
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// Attaches, or opens the home. The inner error is one that may pass.
    fn establish(&self) -> Result<Result<Seat, Error>, Error> {
        match self.attach()? {
            Found::Holder(holder) => return Ok(Ok(Seat::Attached(holder))),
            Found::NotNow => return Ok(Err(self.unserved())),
            Found::Full => return Ok(Err(self.full())),
            Found::Nobody if matches!(self.mode, Mode::Attach | Mode::Agent) => {
                return Ok(Err(Error::HolderGone));
            }
            Found::Nobody => {}
        }
        // Before it is opened, so that nothing is written to another. Where it can't be read,
        // opening it says why.
        if let (Some(home), Ok(id)) = (self.home.get(), id_at(&self.folder))
            && *home != id
        {
            return Err(self.other_home());
        }
        match Runtime::open(&self.folder) {
            Ok(runtime) if self.is_it(runtime.id()) => self.held(runtime).map(Ok),
            // It was put there a moment ago.
            Ok(runtime) => {
                runtime.close()?;
                Err(self.other_home())
            }
            Err(Error::Home(StoreError::Locked)) => Ok(Err(self.unserved())),
            Err(error) => Err(error),
        }
    }

    fn held(&self, runtime: Runtime) -> Result<Seat, Error> {
        let started = match self.mode {
            Mode::Serve => {
                let link = Weak::clone(&self.me);
                let shut_down = move || {
                    if let Some(link) = link.upgrade() {
                        link.shut_down();
                    }
                };
                Server::start(&runtime, shut_down).map(Some)
            }
            Mode::Command | Mode::Attach | Mode::Agent | Mode::Operator => Ok(None),
        };
        let server = match started {
            Ok(server) => server,
            Err(error) => {
                // The log ends properly, and why it ends is what is said.
                drop(runtime.close());
                return Err(error);
            }
        };
        Ok(Seat::Held(Arc::new(Held { runtime, server, working: AtomicUsize::new(0) })))
    }

    fn attach(&self) -> Result<Found, Error> {
        let link = Weak::clone(&self.me);
        let found = attach(&self.folder, self.mode.entry(), move || {
            // Others call what this process offers: it must not wait until it needs the home.
            while let Some(link) = link.upgrade() {
                if link.offered().is_empty() || link.check_open().is_err() || link.up().is_ok() {
                    break;
                }
                drop(link);
                thread::sleep(REST);
            }
        })?;
        match &found {
            Found::Holder(holder) if !self.is_it(holder.home()) => {
                holder.close();
                Err(self.other_home())
            }
            _ => Ok(found),
        }
    }

    /// Whether this is the home that is meant: the first one that is found is.
    fn is_it(&self, home: HomeId) -> bool {
        *self.home.get_or_init(|| home) == home
    }

    fn other_home(&self) -> Error {
        Error::OtherHome(self.folder.clone())
    }

    /// Offers everything to a new holder. What it does not take, nobody can call.
    fn offer_all(&self, up: &Up) {
        let offered = self.offered().clone();
        let mut rest = &offered[..];
        while let Some((_, provider)) = rest.first() {
            let same = |(_, other): &&Offered| Arc::ptr_eq(provider, other);
            let count = rest.iter().take_while(same).count();
            let (these, others) = rest.split_at(count);
            let tools: Vec<Manifest> = these.iter().map(|(tool, _)| tool.clone()).collect();
            drop(offer(up, &tools, provider, TRY_TIME));
            rest = others;
        }
    }

    fn gone(&self, up: &Up) {
        let mut state = self.state();
        if state.seat.as_ref().is_some_and(|now| now.number == up.number) {
            state.seat = None;
        }
        drop(state);
        thread::sleep(TRY_PAUSE);
    }

    fn check_open(&self) -> Result<(), Error> {
        match self.closed.load(Ordering::SeqCst) {
            true => Err(Error::Halted(Halt::Halted)),
            false => Ok(()),
        }
    }

    fn full(&self) -> Error {
        Error::Full(self.folder.clone())
    }

    fn unserved(&self) -> Error {
        Error::Unserved(self.folder.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step that can't break off half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn offered(&self) -> MutexGuard<'_, Vec<Offered>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, seat: Seat) -> Up {
        self.number = self.number.saturating_add(1);
        let up = Up { number: self.number, seat };
        self.seat = Some(up.clone());
        up
    }
}

fn offer(
    up: &Up,
    tools: &[Manifest],
    provider: &Arc<dyn Provider>,
    limit: Duration,
) -> Step<Vec<Offer>> {
    match &up.seat {
        Seat::Held(held) => {
            let tools = tools.to_vec();
            Step::Done(held.runtime.provide(ConnectionId::HOLDER, tools, provider))
        }
        Seat::Attached(holder) => holder.provide(tools, provider, limit),
    }
}

/// The id of the home in a folder, from its log's first record.
fn id_at(folder: &Path) -> Result<HomeId, Error> {
    let (mut reader, mut id) = (SqliteReader::open(folder)?, None);
    reader.records(Seq::GENESIS, &mut |_, bytes| {
        id = Some(HomeId::from_bytes(*leaf(bytes).as_bytes()));
        Next::Enough
    })?;
    id.ok_or(Error::Home(StoreError::Damaged))
}

/// Takes back what this process offers as the holder.
pub(super) fn withdraw(runtime: &Runtime, tools: &[ToolId]) {
    runtime.withdraw(ConnectionId::HOLDER, Withdrawn::These(tools));
}
