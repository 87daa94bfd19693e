//! Delegated tools: the kernel decides and records, and the process that offered the tool runs
//! it.
//!
//! Their manifests on record are pins. A tool that is offered for the first time is put on
//! record; one whose definition is another than that on record is refused until an operator
//! accepts it; one that nobody offers stays known, and is refused as that.

pub(crate) mod commands;
mod finding;
pub mod host;
mod location;
pub(crate) mod place;
pub mod provide;
mod room;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use syscap_format::{
    AgentId, Amounts, Canonical, DefinitionHash, Dimension, EffectClass, Enforcement, Leaf,
    Manifest, ObjectId, ObjectKind, Profile, Reason, Refused, Seq, ToolId, ToolsObject, TxOutcome,
};
use syscap_kernel::{
    Demands, Kernel, Live, Permit, Plan, Ran, Registry, Request, Store, Ticket, Tool, ToolsDelta,
};

use syscap_syscalls::net::Network;
use syscap_syscalls::stated::{NamedResources, Stated};

use crate::Error;
use crate::driver::run::clock::{Clock, Pause};
use crate::driver::run::{self, given_up};
use crate::runtime::session::call::CallContext;
use crate::tools::place::{Chosen, Known, Place};
use crate::tools::provide::{Cancel, HostCall, Location, Offer, Provider};
pub(crate) use crate::tools::room::{DELEGATED_MAX, MANIFEST_BYTES_MAX};

/// The identity of an accepted tool: its foreign definition if it has one, else its manifest as it
/// would stand on record.
pub(crate) fn identity(manifest: &Manifest) -> DefinitionHash {
    let own = || DefinitionHash::from_bytes(*bounded(manifest.clone()).id().as_bytes());
    manifest.definition.unwrap_or_else(own)
}

/// A process that offers tools and opens sessions: the server, or a client of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(pub(crate) u64);

impl ConnectionId {
    /// The process that holds the home.
    pub(crate) const HOLDER: Self = Self(0);
    /// The holder's desk for tools that an agent's client runs itself.
    pub(crate) const DESK: Self = Self(u64::MAX);
}

/// How long a delegated run may take where its manifest does not say: it can always block.
const WALL_MS_DEFAULT: u64 = 60_000;
/// The longest that it may ask for.
const WALL_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// The wall time that a run reserves beyond its limit: a run that ends just at the limit measures a
/// little more.
const WALL_US_SLACK: u64 = 1_000_000;
/// The least of the server's own processor time that a run reserves: it is measured, and more than
/// the reserved amount would exhaust the token.
const CPU_US_MIN: u64 = 1_000_000;

/// The providers of tools, and the calls that they run. Shared by the runtime and the tools in the
/// kernel.
pub(crate) struct Providers {
    table: Mutex<Table>,
    /// The maker of tools from their manifests' settings.
    network: Network,
}

#[derive(Default)]
pub(crate) struct Table {
    /// The delegated tools as they are on record, and who offers each.
    pub(crate) tools: BTreeMap<ToolId, Known>,
    /// The processes that offer tools which are not on record, since no signer was available.
    pub(crate) awaiting: BTreeMap<ToolId, Vec<Place>>,
    /// Which connection opened a session.
    pub(crate) sessions: BTreeMap<Seq, ConnectionId>,
    /// The callers' contexts of the calls in flight.
    pub(crate) contexts: BTreeMap<Ticket, CallContext>,
    /// The uses that agents' clients make, by their tags.
    pub(crate) uses: BTreeMap<u64, UseHere>,
    /// The bytes of the desk's events that each agent has not paid for.
    owed: BTreeMap<AgentId, u64>,
    pub(crate) runs: BTreeMap<Seq, RunOut>,
    /// The connections that have shown a ticket, each with its name: they run calls of each other's
    /// sessions, and nobody else's.
    pub(crate) tickets: BTreeMap<ConnectionId, Leaf>,
    /// How many tools an attached process has had put on record.
    pub(crate) pins: BTreeMap<ConnectionId, usize>,
    /// How often tools came on record here, or went.
    pub(crate) changes: u64,
}

/// A use that an agent's client makes.
#[derive(Default)]
pub(crate) struct UseHere {
    /// Where it acts: the client states it with each.
    pub(crate) location: Option<Location>,
    /// Who waits for its report, where its session is not the desk's own.
    pub(crate) by: Option<Arc<dyn Provider>>,
}

pub(crate) struct RunOut {
    session: Seq,
    cancel: Cancel,
    clock: Option<Arc<Clock>>,
}

impl Providers {
    pub(crate) fn over(network: Network) -> Self {
        Self { table: Mutex::default(), network }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Table> {
        // Every change to the table is one step that can't break off half way.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the network can make the tool of a manifest.
    pub(crate) fn try_made(&self, manifest: &Manifest) -> Result<(), Error> {
        let bad = |why: String| Error::BadName { what: "a tool's settings", got: why };
        if !Network::makes(manifest) {
            return Err(bad(manifest.tool.as_str().to_owned()));
        }
        let made = self.network.add(manifest, &mut Registry::new());
        made.map_err(|error| bad(error.to_string()))
    }

    /// Notes what the caller says of a call, until [`Providers::forget`].
    pub(crate) fn note(&self, ticket: Ticket, context: CallContext) {
        self.lock().contexts.insert(ticket, context);
    }

    pub(crate) fn forget(&self, ticket: Ticket) {
        self.lock().contexts.remove(&ticket);
    }

    /// Abandons the runs of a session.
    fn give_up_session(&self, session: Seq) {
        let of_it = |run: &RunOut| (run.session == session).then(|| run.cancel.clone());
        let cancels: Vec<Cancel> = self.lock().runs.values().filter_map(of_it).collect();
        cancels.iter().for_each(Cancel::cancel);
    }

    /// Forgets a session that has ended, and gives up what it still runs.
    pub(crate) fn unbind(&self, session: Seq) {
        self.give_up_session(session);
        self.lock().sessions.remove(&session);
    }

    /// The newest offer of each tool that waits for an operator to put it on record.
    pub(crate) fn awaiting(&self) -> Vec<Manifest> {
        let table = self.lock();
        let newest = table.awaiting.values().filter_map(|places| places.last());
        newest.map(|place| place.offered.clone()).collect()
    }

    /// True if a process offers it, and it waits for an operator.
    pub(crate) fn awaits(&self, tool: &ToolId) -> bool {
        self.lock().awaiting.contains_key(tool)
    }

    /// As [`Holding::delegated`].
    pub(crate) fn delegated(&self) -> Vec<(Manifest, Vec<Offer>)> {
        let table = self.lock();
        let known = table.tools.values().map(|known| {
            let offers = known.places.iter().map(|place| Offer {
                manifest: place.offered.clone(),
                standing: place.standing(identity(&known.pinned)),
            });
            (known.pinned.clone(), offers.collect())
        });
        known.collect()
    }

    /// Counts bytes of an event of the desk's, which the agent's next use pays as `disk_write_bytes`:
    /// the vault keeps them.
    pub(crate) fn owes(&self, agent: &AgentId, bytes: usize) {
        let mut table = self.lock();
        let owed = table.owed.entry(agent.clone()).or_default();
        *owed = owed.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    /// The bytes that the agent has not paid for.
    pub(crate) fn owed(&self, agent: &AgentId) -> u64 {
        self.lock().owed.get(agent).copied().unwrap_or_default()
    }

    /// Takes off what a use pays, at most so much. Another use may have paid it meanwhile.
    fn pays(&self, agent: &AgentId, most: u64) -> u64 {
        let mut table = self.lock();
        let Some(owed) = table.owed.get_mut(agent) else { return 0 };
        let paid = most.min(*owed);
        *owed = owed.saturating_sub(paid);
        table.owed.retain(|_, owed| *owed > 0);
        paid
    }

    /// Notes a use of a client, as long as what is given back is kept.
    pub(crate) fn at(self: &Arc<Self>, tag: u64, here: UseHere) -> UseAt {
        self.lock().uses.insert(tag, here);
        UseAt { providers: Arc::clone(self), tag }
    }

    /// Checks that a provider runs the call; where. It holds, and so drops, nothing of a provider's:
    /// the kernel is locked.
    fn check(
        &self,
        tool: &ToolId,
        pinned: DefinitionHash,
        live: Live,
    ) -> Result<Option<Location>, Reason> {
        let table = self.lock();
        let chosen = table.chosen(tool, pinned, live)?;
        Ok(table.location(&chosen, live).cloned())
    }

    /// The provider of the call, and its caller's context. It must act where the call was let
    /// through for.
    fn pick(
        &self,
        tool: &ToolId,
        pinned: DefinitionHash,
        live: Live,
        location: Option<&Location>,
    ) -> Result<(Arc<dyn Provider>, CallContext), Reason> {
        let table = self.lock();
        let context = table.contexts.get(&live.ticket).cloned().unwrap_or_default();
        let chosen = table.chosen(tool, pinned, live)?;
        if table.location(&chosen, live) != location {
            return Err(Reason::ProviderGone);
        }
        let by = table.use_here(live).and_then(|here| here.by.as_ref());
        Ok((Arc::clone(by.unwrap_or(chosen.provider)), context))
    }

    /// Stops the time of runs on whose behalf a person is asked by a call of `session`. Only runs
    /// that the same process made are stopped.
    fn pause(&self, session: Seq, within: &[Seq]) -> Vec<Pause> {
        let table = self.lock();
        let own = table.sessions.get(&session);
        let runs = within.iter().filter_map(|intent| table.runs.get(intent));
        let own_runs = runs.filter(|run| table.sessions.get(&run.session) == own);
        let clocks: Vec<Arc<Clock>> = own_runs.filter_map(|run| run.clock.clone()).collect();
        drop(table);
        clocks.iter().map(Clock::pause).collect()
    }

    /// A tool that an agent's client runs itself has the client's word alone.
    fn enforcement(&self, live: Live) -> Enforcement {
        match self.is_of_the_desk(live) {
            true => Enforcement::Hearsay,
            false => Enforcement::Delegated,
        }
    }

    fn is_of_the_desk(&self, live: Live) -> bool {
        let table = self.lock();
        table.is_desks(live.session) || table.use_here(live).is_some_and(|here| here.by.is_some())
    }
}

impl Table {
    fn chosen(
        &self,
        tool: &ToolId,
        pinned: DefinitionHash,
        live: Live,
    ) -> Result<Chosen<'_>, Reason> {
        let own = self.sessions.get(&live.session).copied();
        let known = self.tools.get(tool).ok_or(Reason::NoProvider)?;
        known.provider(own, pinned, |connection| self.tickets.get(&connection))
    }

    fn is_desks(&self, session: Seq) -> bool {
        self.sessions.get(&session) == Some(&ConnectionId::DESK)
    }

    /// The use that a call is, if a client makes it. A tag is drawn at random and told to nobody: a call
    /// that came otherwise does not meet it.
    fn use_here(&self, live: Live) -> Option<&UseHere> {
        self.contexts.get(&live.ticket).and_then(|context| self.uses.get(&context.tag))
    }

    /// Where a call acts: a client states it with each use, any other when it offers.
    fn location<'a>(&'a self, chosen: &Chosen<'a>, live: Live) -> Option<&'a Location> {
        match self.use_here(live) {
            Some(here) if here.by.is_some() || self.is_desks(live.session) => {
                here.location.as_ref()
            }
            None if self.is_desks(live.session) => None,
            _ => chosen.location,
        }
    }
}

/// A tool that some process runs.
pub(crate) struct Delegated {
    manifest: Manifest,
    identity: DefinitionHash,
    /// The operator's statements; `None` if their version is unknown here.
    stated: Option<Stated>,
    providers: Arc<Providers>,
}

/// A call of it.
pub(crate) struct DelegatedPlan {
    agent: AgentId,
    args: Canonical,
    demands: Demands,
    untouched: Vec<&'static str>,
    /// The effect class of a shell's command.
    effect: Option<EffectClass>,
    /// The definition for which the kernel allowed the call.
    pinned: DefinitionHash,
    /// Where it acts, and for which the kernel allowed it, too.
    location: Option<Location>,
    providers: Arc<Providers>,
}

impl Tool for Delegated {
    type Plan = DelegatedPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<DelegatedPlan, Refused> {
        let tool = &self.manifest.tool;
        let location = match request.live {
            Some(live) => {
                let refused = |reason| Refused::new(reason).field("tool_id").got(tool.as_str());
                self.providers.check(tool, self.identity, live).map_err(refused)?
            }
            None => None,
        };
        // Nothing is let through for want of what was said to hold it.
        let unread = || Refused::new(Reason::ToolChanged).field("tool_id").got(tool.as_str());
        let stated = self.stated.as_ref().ok_or_else(unread)?;
        let resources = stated.demands(request, self.manifest.effect)?;
        let made_by = match request.live {
            // One that is decided again was let in as it stands.
            None => commands::MadeBy::Record,
            Some(live) if self.providers.is_of_the_desk(live) => commands::MadeBy::Client,
            Some(_) => commands::MadeBy::Other,
        };
        let mut judged = match commands::is_shell(&self.manifest) {
            true => commands::judge(request, made_by)?,
            false => commands::Judged { demands: Demands::default(), effect: None },
        };
        judged.demands.resources.extend(commands::marks(&resources));
        judged.demands.resources.extend(resources);
        let named = NamedResources::of(&self.manifest, request.args)?;
        judged.demands.resources.extend(named.resources);
        if made_by == commands::MadeBy::Client {
            let owed = self.providers.owed(request.agent);
            judged.demands.hold.set(Dimension::DiskWriteBytes, owed);
        }
        let mut untouched = stated.untouched(request);
        untouched.extend(named.untouched);
        Ok(DelegatedPlan {
            agent: request.agent.clone(),
            args: Canonical::check(request.args.as_bytes().to_vec(), Profile::DATA)
                .map_err(|_| Refused::new(Reason::TooDeep).field("args"))?,
            demands: judged.demands,
            untouched,
            effect: judged.effect,
            pinned: self.identity,
            location,
            providers: Arc::clone(&self.providers),
        })
    }
}

impl Plan for DelegatedPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn untouched(&self) -> &[&'static str] {
        &self.untouched
    }

    fn effect(&self) -> Option<EffectClass> {
        self.effect
    }

    fn location(&self) -> Option<&str> {
        self.location.as_ref().map(Location::as_str)
    }

    fn run(self, mut permit: Permit<'_, Self>) -> Ran<'_> {
        let live = permit.live();
        permit.enforced_by(self.providers.enforcement(live));
        // Asked again: whoever ran the tool may have gone, or offer another by now.
        let location = self.location.as_ref();
        let picked = self.providers.pick(permit.tool(), self.pinned, live, location);
        let Ok((provider, context)) = picked else {
            return permit.failed(Refused::new(Reason::ProviderGone), TxOutcome::NoOp);
        };
        let (intent, session) = (permit.intent(), permit.live().session);
        let cancel = given_up();
        let running = Running { providers: self.providers, intent };
        let run = RunOut { session, cancel: cancel.clone(), clock: run::time() };
        running.providers.lock().runs.insert(intent, run);
        let pauses = running.providers.pause(session, &context.within);
        let owed = self.demands.hold.get(Dimension::DiskWriteBytes);
        let paid = running.providers.pays(&self.agent, owed);
        let mut ran = provider.run(HostCall {
            tool: permit.tool().clone(),
            definition: self.pinned,
            agent: self.agent,
            session,
            intent,
            args: self.args,
            hold: *permit.hold(),
            result_bytes_max: permit.result_bytes_max(),
            read_only: permit.is_read_only(),
            tag: context.tag,
            cancel,
        });
        drop(pauses);
        drop(running);
        let used = ran.used.get(Dimension::DiskWriteBytes);
        ran.used.set(Dimension::DiskWriteBytes, used.saturating_add(paid));
        ran.report(permit)
    }
}

/// Forgets where a use acts.
pub(crate) struct UseAt {
    providers: Arc<Providers>,
    tag: u64,
}

impl Drop for UseAt {
    fn drop(&mut self) {
        self.providers.lock().uses.remove(&self.tag);
    }
}

/// Takes a run off the table, also where its provider panics.
struct Running {
    providers: Arc<Providers>,
    intent: Seq,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.providers.lock().runs.remove(&self.intent);
    }
}

/// Gives a kernel that has not booted the tools on record that it has not, as delegated ones
/// that nobody offers; gives back those that it did not take, since its other tools are not those
/// on record.
pub(crate) fn adopt(
    kernel: &mut Kernel,
    store: &mut dyn Store,
    providers: &Arc<Providers>,
) -> Result<ToolsDelta, Error> {
    let absent = absent(kernel, store, providers)?;
    if kernel.adopt_tools(&absent) {
        providers.pin(&absent);
        return Ok(ToolsDelta::default());
    }
    Ok(absent)
}

fn absent(
    kernel: &Kernel,
    store: &mut dyn Store,
    providers: &Arc<Providers>,
) -> Result<ToolsDelta, Error> {
    let Some(hash) = kernel.tools_hash().filter(|hash| *hash != kernel.registry_hash()) else {
        return Ok(ToolsDelta::default());
    };
    let object = store.object(&ObjectId::from_bytes(*hash.as_bytes()))?;
    let object = object.filter(|object| object.kind == ObjectKind::Tools);
    let tools = object.and_then(|object| ToolsObject::from_bytes(&object.bytes).ok());
    let here: Vec<ToolId> = names(kernel);
    let own = |tool: &ToolId| kernel.manifests().any(|manifest| manifest.tool == *tool);
    let (mut manifests, mut replaced) = (Vec::new(), Vec::new());
    for entry in tools.map(|tools| tools.tools).unwrap_or_default() {
        let object = store.object(&entry.manifest)?;
        let object = object.filter(|object| object.kind == ObjectKind::Manifest);
        let manifest = object.and_then(|object| Manifest::from_bytes(&object.bytes).ok());
        let Some(manifest) = manifest else { continue };
        // What an operator has set stands in the place of the same tool where nothing is set.
        let is_set = Network::makes(&manifest) && own(&manifest.tool);
        let free = |name: &ToolId| !here.contains(name) || (is_set && *name == manifest.tool);
        if names_of(&manifest).all(free) {
            replaced.extend(is_set.then(|| manifest.tool.clone()));
            manifests.push(manifest);
        }
    }
    delta(manifests, replaced, providers)
}

/// The change that takes tools off and puts others in: those that the network makes of their
/// settings, and delegated ones.
pub(crate) fn delta(
    add: Vec<Manifest>,
    remove: Vec<ToolId>,
    providers: &Arc<Providers>,
) -> Result<ToolsDelta, Error> {
    let mut registry = Registry::new();
    for manifest in add {
        // What this program can't make anything of is there, and nobody runs it.
        if Network::makes(&manifest) && providers.network.add(&manifest, &mut registry).is_ok() {
            continue;
        }
        let (identity, stated) = (identity(&manifest), Stated::of(&manifest).ok());
        let providers = Arc::clone(providers);
        registry.add(Delegated { manifest, identity, stated, providers })?;
    }
    Ok(ToolsDelta { remove, add: registry })
}

impl Providers {
    /// These are on record now.
    pub(crate) fn pin(&self, delta: &ToolsDelta) {
        let mut gone = Vec::new();
        let mut table = self.lock();
        table.changes = table.changes.saturating_add(1);
        for tool in &delta.remove {
            if !delta.add.manifests().any(|manifest| manifest.tool == *tool) {
                gone.extend(table.tools.remove(tool));
            }
        }
        for manifest in delta.add.manifests().filter(|manifest| !Network::makes(manifest)) {
            let (pinned, bytes) = (manifest.clone(), manifest.to_bytes().len());
            match table.tools.get_mut(&manifest.tool) {
                Some(known) => (known.pinned, known.bytes) = (pinned, bytes),
                None => {
                    // Who offered it before it was on record offers it now.
                    let places = table.awaiting.remove(&manifest.tool).unwrap_or_default();
                    let known = Known { pinned, bytes, places };
                    table.tools.insert(manifest.tool.clone(), known);
                }
            }
        }
        drop(table);
        drop(gone);
    }
}

pub(crate) fn names_of(manifest: &Manifest) -> impl Iterator<Item = &ToolId> {
    std::iter::once(&manifest.tool).chain(&manifest.aliases)
}

pub(crate) fn names(kernel: &Kernel) -> Vec<ToolId> {
    kernel.manifests().flat_map(names_of).cloned().collect()
}

/// A delegated run can always block, so it has a limit, and sets aside what it may take.
pub(crate) fn bounded(mut manifest: Manifest) -> Manifest {
    // Only an operator sets a tool.
    manifest.settings = None;
    // A definition that is not the one named is not kept: an operator would read the wrong one.
    if manifest.whole_definition().is_none() {
        manifest.definition_bytes = None;
    }
    let wall_ms = manifest.wall_ms_max.unwrap_or(WALL_MS_DEFAULT).min(WALL_MS_MAX);
    manifest.wall_ms_max = Some(wall_ms);
    let wall_us = wall_ms.saturating_mul(1_000).saturating_add(WALL_US_SLACK);
    let hold: Amounts = manifest.hold;
    let wall_us = wall_us.max(hold.get(Dimension::WallUs));
    let cpu_us = CPU_US_MIN.max(hold.get(Dimension::CpuUs));
    manifest.hold = hold.with(Dimension::WallUs, wall_us).with(Dimension::CpuUs, cpu_us);
    manifest
}

/// Which tools are taken back.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Withdrawn<'a> {
    /// All that the connection offers.
    All,
    /// These.
    These(&'a [ToolId]),
}
