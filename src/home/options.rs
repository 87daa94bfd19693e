//! How a home is made or opened.

mod builtin;
mod place;
mod served;

use std::{path::Path, sync::Arc, time::Duration};

use syscap_audit::HomeLock;
#[cfg(feature = "sqlite")]
use syscap_audit::{SqliteReader, SqliteStore};
use syscap_format::{Durability, HomeLimits, PolicyChange, PublicKey, Seq, recovery_hash};
use syscap_kernel::{
    Anchor, Clock, Entropy, Event, Kernel, NewHome, Parts, PolicyEngine, Probed, ReadTool,
    Registry, RegistryError, Store, StoreError, Tool, ToolsDelta,
};
#[cfg(feature = "shell")]
use syscap_launch::Launcher;
use syscap_policy::{Policy, Preset};
use syscap_syscalls::fs::Files;
#[cfg(feature = "http")]
use syscap_syscalls::net::lookup::{Lookup, SystemLookup};
#[cfg(feature = "http")]
use syscap_syscalls::net::secret::Secrets;

use crate::driver::clock::SystemClock;
use crate::driver::core::{Core, Held, STALL_TIME};
use crate::driver::entropy::{Salts, SystemEntropy};
use crate::driver::guard::{Guarded, GuardedEngine, SharedEngine};
use crate::error::Error;
use crate::home::files::write_new;
use crate::home::options::served::served;
use crate::home::{BasePlace, Home, Kept, claim, engine};
use crate::inspect::Inspection;
use crate::inspect::recover::probed;
use crate::inspect::verify::Trust;
use crate::keys::{FileKeys, KeyFile, KeyUse, Seal, Signer, known_keys, roles};
use crate::runtime::Runtime;
use crate::server::org::Office;
use crate::server::uses::Until;
use crate::server::{By, Holding, acknowledged};
use crate::tools::{self, Providers};

type AddTool = dyn Fn(&mut Registry) -> Result<(), RegistryError> + Send;

/// How a home is made or opened. [`Runtime::create`] and [`Runtime::open`] use the defaults.
///
/// ```
/// use syscap::{policy::{Policy, Preset}, prelude::*};
///
/// # fn main() -> Result<(), Error> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// # let home = folder.path().join("home");
/// # let files = folder.path().join("files");
/// # std::fs::create_dir(&files).expect("a folder");
/// let policy = Policy::preset(Preset::ReadOnly).expect("a preset loads");
/// let rt = Options::new().policy(policy).base(&files).create(&home)?;
/// let agent = rt.session("a", rt.issue(Grant::to("a").tools(["fs.write"]).workspace())?)?;
/// let refused = agent.call("fs.write", args! { "path": "a.txt", "text": "hello" })?;
/// assert_eq!(refused.reason(), Some(Reason::Denied));
/// rt.close()
/// # }
/// ```
#[must_use]
pub struct Options {
    base: BasePlace,
    durability: Durability,
    engine: Option<Arc<dyn PolicyEngine + Sync>>,
    /// The host's tools: each can be had again, for another kernel.
    tools: Vec<Box<AddTool>>,
    /// The same, to find what contradicts.
    registry: Registry,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    signer: Option<Arc<dyn Signer>>,
    store: Option<Box<dyn Store>>,
    kept: Kept,
    limits: HomeLimits,
    trust: Option<Trust>,
    seal: Seal,
    recovery: RecoveryKey,
    asks: Asks,
    stall_time: Duration,
    /// Until when it is served; `None`: to nobody.
    until: Option<Until>,
    #[cfg(feature = "shell")]
    launcher: Option<Arc<Launcher>>,
    #[cfg(feature = "http")]
    lookup: Arc<dyn Lookup>,
    #[cfg(feature = "http")]
    secrets: Option<Arc<dyn Secrets>>,
}

/// Decides if calls may wait for a person.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Asks {
    /// They may.
    #[default]
    Wait,
    /// No person is available.
    Refused,
}

impl Asks {
    fn kernel(self, kernel: Kernel) -> Kernel {
        match self {
            Self::Wait => kernel,
            Self::Refused => kernel.headless(),
        }
    }
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
            base: BasePlace::default(),
            durability: Durability::Full,
            engine: None,
            tools: Vec::new(),
            registry: Registry::new(),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            signer: None,
            store: None,
            kept: Kept::InHome,
            limits: HomeLimits::default(),
            trust: None,
            seal: Seal::Open,
            recovery: RecoveryKey::Made,
            asks: Asks::Wait,
            stall_time: STALL_TIME,
            until: Some(Until::Told),
            #[cfg(feature = "shell")]
            launcher: None,
            #[cfg(feature = "http")]
            lookup: Arc::new(SystemLookup::default()),
            #[cfg(feature = "http")]
            secrets: None,
        }
    }
}

impl Options {
    /// The defaults: files in the home, full durability, the preset
    /// [`Standard`](syscap_policy::Preset::Standard) for a new home and the policy on record for
    /// one that is there, the built-in tools, keys in the home.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what an acknowledged record survives. Weaker than [`Durability::Full`] is recorded.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the policy engine. If the engine panics, the call is denied. A home that is opened with
    /// another policy than that on record refuses calls until the policy is set.
    pub fn policy(mut self, engine: impl PolicyEngine + Sync + 'static) -> Self {
        self.engine = Some(Arc::new(GuardedEngine::new(engine)));
        self
    }

    /// Adds a tool of the host's. Its intent is durable before it runs. A call is refused where
    /// [`Tool::plan`] panics, and the kernel halts where the plan's `demands` do.
    ///
    /// # Errors
    /// [`Error::Registry`].
    pub fn tool(self, tool: impl Tool) -> Result<Self, Error> {
        let tool = Arc::new(tool);
        self.add(move |registry| registry.add(Guarded(Arc::clone(&tool))))
    }

    /// Adds a tool that only reads, to be trusted like a built-in one: its intent is made
    /// durable with its outcome.
    ///
    /// # Errors
    /// [`Error::Registry`].
    pub fn trusted_read(self, tool: impl ReadTool) -> Result<Self, Error> {
        let tool = Arc::new(tool);
        self.add(move |registry| registry.add_read(Guarded(Arc::clone(&tool))))
    }

    /// Sets the clocks.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the source of randomness.
    pub fn entropy(mut self, entropy: impl Entropy + 'static) -> Self {
        self.entropy = Arc::new(entropy);
        self
    }

    /// Keeps the keys elsewhere than in the home.
    pub fn signer(mut self, signer: impl Signer + 'static) -> Self {
        self.signer = Some(Arc::new(signer));
        self
    }

    /// Keeps log, documents and vault in another store than the home's database. The home is
    /// locked all the same, before anything is asked of the store and until it is dropped.
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        self.store = Some(Box::new(store));
        self.kept = Kept::ByHost;
        self
    }

    /// Sets how long a commit is tried while another program holds a lock of the database, as one
    /// that copies or browses it may; 60 seconds by default. Calls wait so long, none begins, and
    /// what an operator does is refused as [`Busy`](syscap_format::Reason::Busy): it is not in
    /// force. Then the kernel halts ([`Error::Home`] with
    /// [`StoreError::Busy`](syscap_kernel::StoreError::Busy)), and a call that gets this error was
    /// not made: no record of it was written.
    pub const fn stall_time(mut self, time: Duration) -> Self {
        self.stall_time = time;
        self
    }

    /// Sets until when the home is served, beside being told to end: whoever serves it asks
    /// [`Runtime::wait_unused`].
    pub const fn serve_until(mut self, until: Until) -> Self {
        self.until = Some(until);
        self
    }

    /// Serves the home to nobody: whoever else needs it waits until it is closed, or is told that it
    /// is not served.
    pub const fn alone(mut self) -> Self {
        self.until = None;
        self
    }

    /// Sets what is fixed for a home, when it is made.
    pub fn limits(mut self, limits: HomeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Opens only the home that a trust file from elsewhere is for. Without it the one that lies in
    /// the home is taken, where there is one: that protects against nobody who owns the folder.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// Sets the recovery key of a home that is made: it can give every role other keys, whoever
    /// has stolen the operator's. Keep it where nobody who has the others can reach it. Without
    /// this one is made in the home, as `keys/recovery.key`, where the keys lie there.
    pub fn recovery(mut self, key: PublicKey) -> Self {
        self.recovery = RecoveryKey::Given(key);
        self
    }

    /// Seals the keys that are made with the home, as [`KeyUse::SEALED`] says. The runtime that
    /// makes it signs with them all the same.
    pub fn seal(mut self, seal: Seal) -> Self {
        self.seal = seal;
        self
    }

    /// The resolver of names for `http_request` and `net.egress`; the system's by default. Its
    /// addresses are judged all the same.
    #[cfg(feature = "http")]
    pub fn lookup(mut self, lookup: impl Lookup) -> Self {
        self.lookup = Arc::new(lookup);
        self
    }

    /// The store of the secrets that those tools may send; by default they lie sealed [in the
    /// home](crate::keys::secrets).
    #[cfg(feature = "http")]
    pub fn secrets(mut self, secrets: impl Secrets) -> Self {
        self.secrets = Some(Arc::new(secrets));
        self
    }

    /// Makes a home in a folder that has none, and holds it and serves it.
    ///
    /// # Errors
    /// As [`Options::open`]; [`Error::Home`] where there is a home already.
    pub fn create(self, folder: impl AsRef<Path>) -> Result<Runtime, Error> {
        let (until, has_own) = (self.until, self.has_own());
        served(self.make(folder.as_ref())?, until, has_own)
    }

    /// Holds a home, and serves it to other processes until it is closed.
    ///
    /// # Errors
    /// [`Error::Home`] where it is missing, held by another process, damaged or of a newer
    /// version; [`Error::File`] where its socket can't be made; [`Error`] besides.
    pub fn open(mut self, folder: impl AsRef<Path>) -> Result<Runtime, Error> {
        let (until, has_own) = (self.until, self.has_own());
        served(self.hold(folder.as_ref())?, until, has_own)
    }

    /// For a command that soon ends: connects to the server, where there is one; else it holds the
    /// home and serves it to nobody, and others wait until it has ended. While a server comes or goes
    /// it tries for some seconds.
    ///
    /// # Errors
    /// [`Error::Unserved`] where another process holds the home and serves it to nobody;
    /// [`Error::Version`] or [`Error::Foreign`] where it can't be connected to; else as
    /// [`Options::open`].
    pub fn command(self, folder: impl AsRef<Path>) -> Result<Runtime, Error> {
        Runtime::reach(folder.as_ref(), self)
    }

    pub(crate) fn make(mut self, folder: &Path) -> Result<Holding, Error> {
        let home = Home::at(folder);
        self.base
            .folder
            .as_ref()
            .map_or(Ok(()), |base| home.check_claim(base, self.base.claimed))?;
        home.make(self.kept)?;
        home.check_base(&self.base)?;
        let lock = HomeLock::take(home.folder())?;
        let mut store = match self.store.take() {
            Some(store) => store,
            None => self.create_store(&home)?,
        };
        let (signer, recovery) = self.signer_of_new(&home)?;
        home.settle_base(&self.base)?;
        let files = home.open_files()?;
        files.prepare_root("shared")?;
        let (network, office) = (self.network(&home), Arc::<Office>::default());
        let registry = self.tools(&files, &network, &office)?;
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
        let engine = match self.engine() {
            Some(engine) => engine,
            None => Box::new(Policy::preset(Preset::Standard)?),
        };
        let kernel = Kernel::create(new, Parts { engine, registry }, self.clock.read())?;
        let mut kernel = self.asks.kernel(kernel);
        let claim = home.claim(&files, &kernel.home(), self.base.claimed)?;
        if let Some(batch) = kernel.take_batch() {
            kernel.handle(Event::Stored(batch.commit(&mut *store)?), self.clock.read());
        }
        let trust = Trust::new(kernel.home(), roles(&*signer)?);
        write_new(&home.trust(), &trust.to_bytes())?;
        let (providers, absent) = (Arc::new(Providers::over(network)), ToolsDelta::default());
        let store = Held { store, _claim: claim, _lock: lock };
        let probed = Vec::new();
        let opened = Opened { kernel, signer, files, providers, absent, probed, office };
        self.boot(home, store, opened)
    }

    /// Holds the home. The options stay here, except a store of the host's: once that is used up,
    /// the home can't be held again.
    pub(crate) fn hold(&mut self, folder: &Path) -> Result<Holding, Error> {
        let home = Home::at(folder);
        let lock = home.lock(self.kept)?;
        let mut store = match (self.store.take(), self.kept) {
            (Some(store), _) => store,
            (None, Kept::InHome) => self.open_store(&home)?,
            (None, Kept::ByHost) => return Err(StoreError::Missing.into()),
        };
        match self.replay(&home, &mut *store) {
            Ok((opened, claim)) => {
                self.boot(home, Held { store, _claim: claim, _lock: lock }, opened)
            }
            Err(error) => {
                self.store = Some(store).filter(|_| self.kept == Kept::ByHost);
                Err(error)
            }
        }
    }

    fn replay(&self, home: &Home, store: &mut dyn Store) -> Result<(Opened, claim::Held), Error> {
        let signer = match &self.signer {
            Some(signer) => Arc::clone(signer),
            None => Arc::new(FileKeys::open(&home.keys())?),
        };
        let files = home.open_files()?;
        let (network, office) = (self.network(home), Arc::<Office>::default());
        let registry = self.tools(&files, &network, &office)?;
        let anchor = Anchor { trust: self.trust_of(home)?, keys: known_keys(&*signer)? };
        let kernel = engine::open(store, self.engine(), registry, &anchor)?;
        // Before anything is changed, as what interrupted runs left.
        let claim = home.claim(&files, &kernel.home(), self.base.claimed)?;
        let mut kernel = self.asks.kernel(kernel);
        let providers = Arc::new(Providers::over(network));
        let absent = tools::adopt(&mut kernel, store, &providers)?;
        signer.renew(kernel.roles());
        office.opens(&kernel);
        let probed = probed(&kernel, store)?;
        Ok((Opened { kernel, signer, files, providers, absent, probed, office }, claim))
    }

    /// Replays the log of a home, to look at: out of the store that these options have, or the
    /// home's database. It writes nothing, and calls nothing; another process may hold the home.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn inspect(mut self, folder: impl AsRef<Path>) -> Result<Inspection, Error> {
        let home = Home::at(folder);
        let mut store: Box<dyn Store> = match self.store.take() {
            Some(store) => store,
            None => read_store(&home)?,
        };
        let network = self.network(&home);
        let registry = self.tools(&home.look_at_files()?, &network, &Arc::default())?;
        let anchor = Anchor { trust: self.trust_of(&home)?, keys: Vec::new() };
        let mut kernel = engine::open(&mut *store, self.engine(), registry, &anchor)?;
        let providers = Arc::new(Providers::over(network));
        let absent = tools::adopt(&mut kernel, &mut *store, &providers)?;
        Ok(Inspection::new(kernel, store, providers, absent))
    }

    /// The signer of a new home, and its recovery key.
    fn signer_of_new(
        &mut self,
        home: &Home,
    ) -> Result<(Arc<dyn Signer>, Option<PublicKey>), Error> {
        let given = match self.recovery {
            RecoveryKey::Given(key) => Some(key),
            _ => None,
        };
        if let Some(signer) = self.signer.take() {
            return Ok((signer, given));
        }
        let keys = FileKeys::create(&home.keys(), &self.seal, &*self.entropy)?;
        if !matches!(self.recovery, RecoveryKey::Made) {
            return Ok((Arc::new(keys), given));
        }
        let (file, _) = KeyFile::generate(KeyUse::Recovery, &self.seal, &*self.entropy)?;
        file.write_new(&KeyUse::Recovery.path(&home.keys()))?;
        Ok((Arc::new(keys), Some(file.public_key())))
    }

    fn add(
        mut self,
        add: impl Fn(&mut Registry) -> Result<(), RegistryError> + Send + 'static,
    ) -> Result<Self, Error> {
        add(&mut self.registry)?;
        self.tools.push(Box::new(add));
        Ok(self)
    }

    #[cfg(feature = "sqlite")]
    fn create_store(&self, home: &Home) -> Result<Box<dyn Store>, Error> {
        Ok(Box::new(SqliteStore::create(home.folder(), self.durability)?))
    }

    #[cfg(feature = "sqlite")]
    fn open_store(&self, home: &Home) -> Result<Box<dyn Store>, Error> {
        Ok(Box::new(SqliteStore::open(home.folder(), self.durability)?))
    }

    #[cfg(not(feature = "sqlite"))]
    fn create_store(&self, _: &Home) -> Result<Box<dyn Store>, Error> {
        Err(Error::NoStore)
    }

    #[cfg(not(feature = "sqlite"))]
    fn open_store(&self, _: &Home) -> Result<Box<dyn Store>, Error> {
        Err(Error::NoStore)
    }

    fn trust_of(&self, home: &Home) -> Result<Option<Trust>, Error> {
        match &self.trust {
            Some(trust) => Ok(Some(trust.clone())),
            None => home.read_trust(),
        }
    }

    fn engine(&self) -> Option<Box<dyn PolicyEngine>> {
        let engine = self.engine.as_ref().map(Arc::clone)?;
        Some(Box::new(SharedEngine(engine)))
    }

    /// Boots the kernel; puts tools and policy on record where they are others than those there.
    fn boot(&self, home: Home, store: Held, opened: Opened) -> Result<Holding, Error> {
        let Opened { kernel, signer, files, providers, absent, probed, office } = opened;
        let salts = Salts::new(Arc::clone(&self.entropy));
        let core = Core::new(kernel, store, Arc::clone(&self.clock), salts, self.stall_time)?;
        let (id, durability) = (core.salts.bytes()?, self.durability);
        let software = Box::from(concat!("syscap ", env!("CARGO_PKG_VERSION")));
        let boot = |ticket| Event::Boot { ticket, id, software, durability, probed };
        acknowledged(core.request(boot))?;
        core.settle()?;
        let holding = Holding::new(core, providers, signer, files, home, absent);
        office.holds(&holding);
        let (tools, on_record) = holding.look(|k| (k.registry_hash(), k.tools_hash()));
        if on_record != Some(tools) {
            unless_unsigned(holding.record_own_tools(By::Signer))?;
        }
        let (policy, on_record) = holding.look(|k| (k.engine_hash(), k.policy_hash()));
        if on_record.is_none() {
            // The first policy is the engine that the kernel was made with.
            let change = PolicyChange { policy, shadow: None };
            unless_unsigned(holding.sign(&change, |ticket, control, ancestor| {
                Event::Policy(ticket, control, ancestor, Vec::new(), None)
            }))?;
        }
        Ok(holding)
    }
}

/// A kernel that has its log, and has not booted.
struct Opened {
    kernel: Kernel,
    signer: Arc<dyn Signer>,
    files: Files,
    providers: Arc<Providers>,
    /// The tools on record that the kernel still lacks.
    absent: ToolsDelta,
    /// The probe results of interrupted runs.
    probed: Vec<Probed>,
    /// The office that its tools ask.
    office: Arc<Office>,
}

#[cfg(feature = "sqlite")]
pub(crate) fn read_store(home: &Home) -> Result<Box<dyn Store>, Error> {
    Ok(Box::new(SqliteReader::open(home.folder())?))
}

#[cfg(not(feature = "sqlite"))]
pub(crate) fn read_store(_: &Home) -> Result<Box<dyn Store>, Error> {
    Err(Error::NoStore)
}

/// A home opens without those who sign for it: where they can't be had, what differs from the
/// record stays so, and the kernel refuses all calls until a person has put it there.
fn unless_unsigned(recorded: Result<Seq, Error>) -> Result<(), Error> {
    match recorded {
        Ok(_) | Err(Error::Signer(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
