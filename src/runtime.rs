//! The runtime: a kernel on a home.

mod signing;

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::verify::Trust;
use syscap_audit::{
    lock::HomeLock,
    sqlite::{SqliteReader, SqliteStore},
};
use syscap_format::{
    control::{PolicyChange, recovery_hash},
    id::{AgentId, HomeId, Seq, TokenId},
    record::{Durability, HomeLimits},
    sign::PublicKey,
};
use syscap_kernel::{
    kernel::{Ack, Anchor, Event, Kernel, NewHome, Parts, Tally},
    policy::PolicyEngine,
    ports::{Clock, Entropy},
    registry::{Registry, ToolsDelta},
    store::Store,
    tool::{ReadTool, Tool},
};
use syscap_policy::{Policy, Preset};
use syscap_syscalls::{
    builtin::{CurrentTime, Echo},
    fs::Files,
};

use crate::{
    clock::SystemClock,
    core::{Answer, Core, Held},
    counters::{Counters, Counts},
    engine,
    entropy::{Salts, SystemEntropy},
    error::Error,
    guard::{Guarded, GuardedEngine},
    home::{BasePlace, Home, Kept},
    host::desk::Desk,
    keys::{FileKeys, KeyFile, KeyUse, Seal, Signer, known_keys, roles, write_new},
    session::{Session, acknowledged},
    state::{AgentState, states},
    tools::{self, By, Providers},
};

/// How a home is made or opened. [`Runtime::create`] and [`Runtime::open`] use the defaults.
pub struct Options {
    base: BasePlace,
    durability: Durability,
    engine: Option<Box<dyn PolicyEngine>>,
    registry: Registry,
    clock: Arc<dyn Clock>,
    entropy: Box<dyn Entropy>,
    signer: Option<Box<dyn Signer>>,
    store: Option<Box<dyn Store>>,
    limits: HomeLimits,
    trust: Option<Trust>,
    seal: Seal,
    recovery: RecoveryKey,
}

/// The recovery key of a home that is made.
#[derive(Default)]
enum RecoveryKey {
    /// One is made with the other keys, where they are made.
    #[default]
    Made,
    /// This one.
    Given(PublicKey),
    /// None.
    Without,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            base: BasePlace::InHome,
            durability: Durability::Full,
            engine: None,
            registry: Registry::new(),
            clock: Arc::new(SystemClock),
            entropy: Box::new(SystemEntropy),
            signer: None,
            store: None,
            limits: HomeLimits::default(),
            trust: None,
            seal: Seal::Open,
            recovery: RecoveryKey::Made,
        }
    }
}

impl Options {
    /// The defaults: files in the home, full durability, the preset
    /// [`Standard`](syscap_policy::Preset::Standard) for a new home and the policy on record for
    /// one that is there, the built-in tools, keys in the home.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts the agents' files below a folder that exists, when the home is made.
    #[must_use]
    pub fn base(mut self, folder: impl AsRef<Path>) -> Self {
        self.base = BasePlace::Elsewhere(folder.as_ref().to_path_buf());
        self
    }

    /// Sets what an acknowledged record survives. Weaker than [`Durability::Full`] is recorded.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the policy engine. Where it panics instead of deciding, the call is denied. A home
    /// that is opened with another policy than that on record refuses calls until the policy is
    /// set.
    #[must_use]
    pub fn policy(mut self, engine: impl PolicyEngine + 'static) -> Self {
        self.engine = Some(Box::new(GuardedEngine::new(engine)));
        self
    }

    /// Adds a tool of the host's. Its intent is durable before it runs. A call is refused where
    /// [`Tool::plan`] panics, and the kernel halts where the plan's `demands` do.
    ///
    /// # Errors
    /// [`Error::Registry`].
    pub fn tool(mut self, tool: impl Tool) -> Result<Self, Error> {
        self.registry.add(Guarded(tool))?;
        Ok(self)
    }

    /// Adds a tool that only reads, to be trusted like a built-in one: its intent is made
    /// durable with its outcome.
    ///
    /// # Errors
    /// [`Error::Registry`].
    pub fn trusted_read(mut self, tool: impl ReadTool) -> Result<Self, Error> {
        self.registry.add_read(Guarded(tool))?;
        Ok(self)
    }

    /// Sets the clocks.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the source of randomness.
    #[must_use]
    pub fn entropy(mut self, entropy: impl Entropy + 'static) -> Self {
        self.entropy = Box::new(entropy);
        self
    }

    /// Keeps the keys elsewhere than in the home.
    #[must_use]
    pub fn signer(mut self, signer: impl Signer + 'static) -> Self {
        self.signer = Some(Box::new(signer));
        self
    }

    /// Keeps log, documents and vault in another store than the home's database. The home is
    /// locked all the same, before anything is asked of the store and until it is dropped.
    #[must_use]
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        self.store = Some(Box::new(store));
        self
    }

    /// Sets what is fixed for a home, when it is made.
    #[must_use]
    pub fn limits(mut self, limits: HomeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Opens only the home that a trust file from elsewhere is for. Without it the one that lies in
    /// the home is taken, where there is one: that protects against nobody who owns the folder.
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// Sets the recovery key of a home that is made: it can give every role other keys, whoever
    /// has stolen the operator's. Keep it where nobody who has the others can reach it. Without
    /// this one is made in the home, as `keys/recovery.key`, where the keys lie there.
    #[must_use]
    pub fn recovery(mut self, key: PublicKey) -> Self {
        self.recovery = RecoveryKey::Given(key);
        self
    }

    /// Makes the home without a recovery key: who steals the operator's key has the home for good.
    #[must_use]
    pub fn no_recovery(mut self) -> Self {
        self.recovery = RecoveryKey::Without;
        self
    }

    /// Seals the keys that are made with the home, as [`KeyUse::SEALED`] says. The runtime that
    /// makes it signs with them all the same.
    #[must_use]
    pub fn seal(mut self, seal: Seal) -> Self {
        self.seal = seal;
        self
    }

    /// Makes a home in a folder that has none.
    ///
    /// # Errors
    /// [`Error`].
    pub fn create(mut self, folder: impl AsRef<Path>) -> Result<Runtime, Error> {
        let home = Home::at(folder);
        home.make(self.kept())?;
        home.check_base(&self.base)?;
        let lock = HomeLock::take(home.folder())?;
        let mut store = match self.store.take() {
            Some(store) => store,
            None => Box::new(SqliteStore::create(home.folder(), self.durability)?),
        };
        let (signer, recovery) = self.signer_of_new(&home)?;
        home.settle_base(&self.base)?;
        let files = home.open_files()?;
        files.prepare_root("shared")?;
        self.add_builtins(&files)?;
        let mut entropy = [0; 32];
        self.entropy.fill(&mut entropy)?;
        let new = NewHome {
            entropy,
            origin: Box::from("syscap"),
            limits: self.limits.clone(),
            durability: self.durability,
            roles: roles(&*signer)?,
            recovery: recovery.as_ref().map(recovery_hash),
        };
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => Box::new(Policy::preset(Preset::Standard)?),
        };
        let parts = Parts { engine, registry: self.registry };
        let mut kernel = Kernel::create(new, parts, self.clock.read())?;
        if let Some(batch) = kernel.take_batch() {
            kernel.handle(Event::Stored(batch.commit(&mut *store)?), self.clock.read());
        }
        let trust = Trust::new(kernel.home(), roles(&*signer)?);
        write_new(&home.trust(), &trust.to_bytes())?;
        let (providers, absent) = (Arc::default(), ToolsDelta::default());
        let store = Held { store, _lock: lock };
        let started = Started { kernel, store, signer, files, home, providers, absent };
        started.boot(self.clock, self.entropy, self.durability)
    }

    /// Opens a home.
    ///
    /// # Errors
    /// [`Error::Home`] where it is missing, held by another process, damaged or of a newer
    /// version; [`Error`] besides.
    pub fn open(mut self, folder: impl AsRef<Path>) -> Result<Runtime, Error> {
        let home = Home::at(folder);
        let lock = home.lock(self.kept())?;
        let mut store = match self.store.take() {
            Some(store) => store,
            None => Box::new(SqliteStore::open(home.folder(), self.durability)?),
        };
        let signer = match self.signer.take() {
            Some(signer) => signer,
            None => Box::new(FileKeys::open(&home.keys())?),
        };
        let files = home.open_files()?;
        self.add_builtins(&files)?;
        let trust = self.trust.map_or_else(|| home.read_trust(), |trust| Ok(Some(trust)))?;
        let anchor = Anchor { trust, keys: known_keys(&*signer)? };
        let mut kernel = engine::open(&mut *store, self.engine, self.registry, &anchor)?;
        let providers = Arc::default();
        let absent = tools::adopt(&mut kernel, &mut *store, &providers)?;
        signer.renew(kernel.roles());
        let store = Held { store, _lock: lock };
        let started = Started { kernel, store, signer, files, home, providers, absent };
        started.boot(self.clock, self.entropy, self.durability)
    }

    /// Replays the log of a home, to look at. Nothing is written and nothing can be called, and
    /// another process may hold the home.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn inspect(mut self, folder: impl AsRef<Path>) -> Result<Inspection, Error> {
        let home = Home::at(folder);
        let mut store = SqliteReader::open(home.folder())?;
        self.add_builtins(&home.open_files()?)?;
        let trust = self.trust.take().map_or_else(|| home.read_trust(), |trust| Ok(Some(trust)))?;
        let anchor = Anchor { trust, keys: Vec::new() };
        let mut kernel = engine::open(&mut store, self.engine, self.registry, &anchor)?;
        let providers = Arc::default();
        let absent = tools::adopt(&mut kernel, &mut store, &providers)?;
        Ok(Inspection { kernel, home, providers, absent })
    }

    /// Who signs for a home that is made, and its recovery key.
    fn signer_of_new(
        &mut self,
        home: &Home,
    ) -> Result<(Box<dyn Signer>, Option<PublicKey>), Error> {
        let given = match self.recovery {
            RecoveryKey::Given(key) => Some(key),
            _ => None,
        };
        if let Some(signer) = self.signer.take() {
            return Ok((signer, given));
        }
        let keys = FileKeys::create(&home.keys(), &self.seal, &*self.entropy)?;
        if !matches!(self.recovery, RecoveryKey::Made) {
            return Ok((Box::new(keys), given));
        }
        let (file, _) = KeyFile::generate(KeyUse::Recovery, &self.seal, &*self.entropy)?;
        file.write_new(&KeyUse::Recovery.path(&home.keys()))?;
        Ok((Box::new(keys), Some(file.public_key())))
    }

    const fn kept(&self) -> Kept {
        if self.store.is_some() { Kept::ByHost } else { Kept::InHome }
    }

    fn add_builtins(&mut self, files: &Files) -> Result<(), Error> {
        let bad = || Error::BadName { what: "a built-in tool", got: String::new() };
        let registry = &mut self.registry;
        registry.add_read(files.read().ok_or_else(bad)?)?;
        registry.add_read(files.list().ok_or_else(bad)?)?;
        registry.add(files.write().ok_or_else(bad)?)?;
        registry.add_read(Echo::new().ok_or_else(bad)?)?;
        registry.add_read(CurrentTime::new(Arc::clone(&self.clock)).ok_or_else(bad)?)?;
        Ok(())
    }
}

/// A home's log as it was replayed. It lends the kernel and never gives it away: its tools are
/// the home's own, and whoever had it could make them run with a store that keeps nothing.
pub struct Inspection {
    kernel: Kernel,
    pub(crate) home: Home,
    /// The delegated tools on record, which nobody offers here.
    pub(crate) providers: Arc<Providers>,
    /// Those of them that the kernel still lacks, since its own are not those on record.
    pub(crate) absent: ToolsDelta,
}

impl Inspection {
    /// The kernel, as the log leaves it.
    #[must_use]
    pub const fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The states of all agents that have one.
    #[must_use]
    pub fn states(&self) -> Vec<AgentState> {
        states(&self.kernel)
    }

    /// What another policy would have said of every call in the log that one has decided.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn replay(&self, against: &dyn PolicyEngine) -> Result<Tally, Error> {
        let mut store = SqliteReader::open(self.home.folder())?;
        let mut tally = Tally::default();
        self.kernel.replay(&mut store, against, &mut |redecided| tally.add(redecided))?;
        Ok(tally)
    }
}

/// A kernel that has its log, and has not booted.
struct Started {
    kernel: Kernel,
    store: Held,
    signer: Box<dyn Signer>,
    files: Files,
    home: Home,
    providers: Arc<Providers>,
    /// The tools on record that the kernel still lacks.
    absent: ToolsDelta,
}

impl Started {
    /// Boots the kernel; puts tools and policy on record where they are others than those there.
    fn boot(
        self,
        clock: Arc<dyn Clock>,
        entropy: Box<dyn Entropy>,
        durability: Durability,
    ) -> Result<Runtime, Error> {
        let Self { kernel, store, signer, files, home, providers, absent } = self;
        let core = Core::new(kernel, store, clock, Salts::new(entropy));
        let id = core.salts.bytes()?;
        let software = Box::from(concat!("syscap ", env!("CARGO_PKG_VERSION")));
        acknowledged(core.request(|ticket| Event::Boot { ticket, id, software, durability }))?;
        let (signing, tooling) = (Mutex::default(), Mutex::default());
        let desk = Desk::default();
        let absent = Mutex::new(absent);
        let inner = Arc::new(Inner { signer, files, home, signing, tooling, absent, desk });
        let runtime = Runtime { core, providers, inner };
        let (tools, on_record) = runtime.core.look(|k| (k.registry_hash(), k.tools_hash()));
        if on_record != Some(tools) {
            unless_unsigned(runtime.record_own_tools(By::Signer))?;
        }
        let (policy, on_record) = runtime.core.look(|k| (k.engine_hash(), k.policy_hash()));
        if on_record.is_none() {
            // The first policy is the engine that the kernel was made with.
            let change = PolicyChange { policy, shadow: None };
            unless_unsigned(runtime.sign(&change, |ticket, control, ancestor| {
                Event::Policy(ticket, control, ancestor, Vec::new())
            }))?;
        }
        Ok(runtime)
    }
}

/// A home opens without those who sign for it: where they can't be had, what differs from the
/// record stays so, and the kernel refuses all calls until a person has put it there.
fn unless_unsigned(recorded: Result<Seq, Error>) -> Result<(), Error> {
    match recorded {
        Ok(_) | Err(Error::Signer(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A kernel on a home. It can be shared between threads.
pub struct Runtime {
    pub(crate) core: Arc<Core>,
    pub(crate) providers: Arc<Providers>,
    inner: Arc<Inner>,
}

/// What the runtime has beside the kernel, shared with those that serve it.
struct Inner {
    signer: Box<dyn Signer>,
    files: Files,
    home: Home,
    /// Held while a counter is read, signed and recorded.
    signing: Mutex<()>,
    /// Held while tools are offered and put on record.
    tooling: Mutex<()>,
    /// The tools on record that the kernel lacks, until its own are on record too.
    absent: Mutex<ToolsDelta>,
    /// What agents' clients run themselves.
    desk: Desk,
}

impl Runtime {
    /// Makes a home in a folder, with [`Options::new`].
    ///
    /// # Errors
    /// [`Error`]; also where there is a home already.
    pub fn create(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Options::new().create(folder)
    }

    /// Opens a home, with [`Options::new`].
    ///
    /// # Errors
    /// [`Error`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Options::new().open(folder)
    }

    /// Opens a session for an agent with a token that is for it.
    ///
    /// # Errors
    /// [`Error::BadName`]; [`Error::Refused`] where there is no such token or it is another
    /// agent's; [`Error::Base`] where the agent's folder can't be made.
    pub fn session(&self, agent: &str, token: TokenId) -> Result<Session, Error> {
        let got = agent.to_owned();
        let agent = AgentId::new(agent).ok_or(Error::BadName { what: "the agent", got })?;
        let opened =
            self.core.request(|ticket| Event::OpenSession(ticket, agent.clone(), token))?;
        match opened {
            Answer::Ack(Ok(Ack::Session(opened))) => {
                let prepared = self.inner.files.prepare(&agent);
                let (core, providers) = (Arc::clone(&self.core), Arc::clone(&self.providers));
                let session = Session::new(core, providers, opened.session, agent, token);
                if let Err(error) = prepared {
                    session.close()?;
                    return Err(error.into());
                }
                Ok(session)
            }
            Answer::Ack(Err(refused)) => Err(Error::Refused(refused)),
            _ => Err(Error::Halted(syscap_kernel::halt::Halt::Halted)),
        }
    }

    /// The home's id.
    #[must_use]
    pub fn id(&self) -> HomeId {
        self.core.look(Kernel::home)
    }

    /// The home's folder.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.inner.home
    }

    /// A look at the kernel: tokens, tools, policy, head.
    pub fn look<T>(&self, look: impl FnOnce(&Kernel) -> T) -> T {
        self.core.look(look)
    }

    /// Tells the kernel that time has passed, so that open aggregates close.
    pub fn tick(&self) {
        self.core.post(Event::Tick);
    }

    /// Closes every session and the home: from here on their calls are errors.
    ///
    /// What still runs can't be stopped. While it does, the process holds the home, and opening
    /// it fails as [`Locked`](syscap_kernel::store::StoreError::Locked): who opens it takes what
    /// is open for ended. The last run that comes back is recorded, where the kernel has not
    /// stopped, and frees the home; so does the end of the process, and then the next boot finds
    /// open what had not come back.
    ///
    /// # Errors
    /// [`Error::Halted`] or [`Error::Home`] where the kernel has stopped.
    pub fn close(self) -> Result<(), Error> {
        self.end().map(drop)
    }

    /// Closes it, and says by which record.
    pub(crate) fn end(&self) -> Result<Seq, Error> {
        self.inner.desk.close();
        let recorded = acknowledged(self.core.request(Event::Shutdown));
        let closed = self.core.close();
        recorded.and_then(|record| Ok(closed.map(|()| record)?))
    }

    /// Another handle on the same runtime, for one who serves it.
    pub(crate) fn share(&self) -> Self {
        let (core, providers) = (Arc::clone(&self.core), Arc::clone(&self.providers));
        Self { core, providers, inner: Arc::clone(&self.inner) }
    }

    /// What was counted since the home was opened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counters().counts()
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.core.counters
    }

    /// Nobody waits for the delegated runs that are out any more.
    pub(crate) fn give_up_runs(&self) {
        self.providers.give_up_all();
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
