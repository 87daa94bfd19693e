//! The kernel itself: what it owns, which event goes where, and what can be asked of it.
//!
//! The host tells the kernel what happened ([`Kernel::handle`]) and carries out what it asks for
//! ([`Kernel::poll_effect`], [`Kernel::take_batch`]). The kernel never blocks, has no clock, no
//! randomness and no I/O, and owns policy, tools, tokens, budgets and the log's head; it lends
//! none of them.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use crate::approvals::index::Requests;
use crate::approvals::people::People;
use crate::authority::credits::AccountView;
use crate::authority::tokens::TokenView;
use crate::events::{Effect, Event, SessionView};
use crate::halt::Halt;
use crate::policy::PolicyEngine;
use crate::registry::{Registry, ToolsDelta};
use crate::run::aggregate::Counted;
use crate::run::flight::{Brought, InFlight, Parked, Waiting};
use crate::run::pending::Pending;
use crate::state::fold::State;
use crate::store::{Batch, Room};
use crate::time::{KernelClock, Reading};
use crate::tool::Ticket;
use syscap_format::{
    AgentId, CallDigest, CallFields, Domain, Facts, Freeze, FreezeChange, FreezeTarget, Head,
    HomeId, HomeLimits, Manifest, Notify, PolicyHash, PublicKey, RecoveryHash, RevocationList,
    Roles, Seq, Snapshot, StateHash, TokenId, ToolId, ToolsHash, UnixMillis,
};

/// The reference monitor.
#[must_use]
pub struct Kernel {
    pub(crate) state: State,
    pub(crate) engine: Box<dyn PolicyEngine>,
    pub(crate) engine_hash: PolicyHash,
    /// True if the engine names a tool by an alias: its statement about that would be lost.
    pub(crate) aliased: bool,
    /// Asked beside the engine, for the record only.
    pub(crate) shadow: Option<(PolicyHash, Box<dyn PolicyEngine>)>,
    /// The values of the agents' facts: what the state knows by commitment only.
    pub(crate) facts: BTreeMap<AgentId, Facts>,
    /// Which request a call is about.
    pub(crate) requests: Requests,
    /// The last durable record that erased rows; genesis before the first.
    pub(crate) erased: Seq,
    /// Those that are on their way.
    pub(crate) redacting: VecDeque<Seq>,
    pub(crate) registry: Registry,
    pub(crate) tools_hash: ToolsHash,
    pub(crate) clock: Option<KernelClock>,
    pub(crate) gap: bool,
    pub(crate) room: Room,
    pub(crate) closing: bool,
    pub(crate) people: People,
    pub(crate) pending: Pending,
    pub(crate) waiting: VecDeque<(Seq, Waiting)>,
    pub(crate) in_flight: BTreeMap<Seq, Box<InFlight>>,
    /// The plans of runs that were given up and may still come back.
    pub(crate) late: BTreeMap<Seq, CallDigest>,
    /// Calls that wait for what the host was asked for.
    pub(crate) parked: BTreeMap<Ticket, Parked>,
    /// The sessions of holders who are elsewhere: the challenge that each was opened over, and the
    /// last counter. They end with the process, as all sessions do.
    pub(crate) remote: BTreeMap<Seq, ([u8; 32], u64)>,
    /// The open aggregates of refusals.
    pub(crate) aggregates: BTreeMap<Option<Seq>, Counted>,
    pub(crate) overloaded: Counted,
    pub(crate) effects: VecDeque<Effect>,
    pub(crate) halted: Option<Halt>,
}

impl Kernel {
    /// Moves the kernel forward by one event. It never blocks; if it can't go on it halts, and
    /// from then on ignores everything.
    pub fn handle(&mut self, event: Event, reading: Reading) {
        self.follow(reading);
        let done = if self.halted.is_some() { Ok(()) } else { self.dispatch(event, reading) };
        if let Err(halt) = done {
            self.halt(halt);
        }
    }

    /// Follows the clocks without an event: what is looked at is then as it is now, however long
    /// nothing has happened.
    pub fn follow(&mut self, reading: Reading) {
        if let Some(clock) = &mut self.clock {
            clock.advance(reading);
        }
    }

    fn dispatch(&mut self, event: Event, reading: Reading) -> Result<(), Halt> {
        // A log has no record between its genesis, or the end of another boot, and a boot.
        if self.clock.is_none()
            && !matches!(event, Event::Boot { .. } | Event::Stored(_) | Event::Room(_))
        {
            return Err(Halt::NotBooted);
        }
        match event {
            Event::Boot { ticket, id, software, durability, probed } => {
                self.boot(ticket, id, software, durability, &probed, reading)
            }
            Event::Submit(submit) => self.submit(submit),
            Event::Fetched(ticket, fetched) => {
                self.go_on(ticket, Brought::Fetched(Box::new(fetched)))
            }
            Event::Resolved(ticket, found) => self.go_on(ticket, Brought::Found(found)),
            Event::Inspected(ticket, seen) => self.go_on(ticket, Brought::Seen(seen)),
            Event::Ran(ran, measured) => self.ran(ran, measured),
            Event::Lost(intent, lost, measured) => self.lost(intent, lost, measured),
            Event::Reported(ticket, report) => self.reported(ticket, report),
            Event::GivenBack(job) => self.given_back(*job),
            Event::Stored(stored) => self.stored(stored),
            Event::Redact(ticket, event, past, rows, text) => {
                self.redact(ticket, event, past, &rows, text)
            }
            Event::Control(ticket, kind, event, past, text) => {
                self.control(ticket, kind, event, past, text)
            }
            Event::Heard(ticket, input, text) => self.heard(ticket, &input, text),
            Event::Cancel(ticket, session, intent) => self.cancel_own(ticket, session, intent),
            Event::Policy(ticket, event, past, engines, text) => {
                self.policy(ticket, event, past, engines, text)
            }
            Event::BadPolicy(ticket, place, why) => self.bad_policy(ticket, &place, &why),
            Event::Propose(proposal) => self.propose(*proposal),
            Event::Tools(ticket, event, past, delta) => self.tools(ticket, event, past, &delta),
            Event::Issue(ticket, wire, past) => self.issue(ticket, wire, past),
            Event::OpenSession(ticket, agent, token, by) => {
                self.open_session(ticket, agent, token, by)
            }
            Event::CloseSession(ticket, session) => self.close_session(ticket, session),
            Event::Charge(ticket, session, amounts) => self.charge(ticket, session, amounts),
            Event::Room(room) => {
                self.room = room;
                Ok(())
            }
            Event::Tick => self.tick(),
            Event::Shutdown(ticket) => self.shutdown(ticket),
        }
    }

    /// The next thing for the host to do.
    #[must_use = "an effect must be carried out"]
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// True if an answer or a run waits for records that no batch has taken yet.
    #[must_use]
    pub fn wants_commit(&self) -> bool {
        let waits_for = self.waiting.back().map(|(seq, _)| *seq);
        self.halted.is_none() && waits_for >= self.pending.first() && self.pending.first().is_some()
    }

    /// Takes all records that no batch has taken yet.
    #[must_use = "a batch must be committed, or the kernel halted"]
    pub fn take_batch(&mut self) -> Option<Batch> {
        if self.halted.is_some() {
            return None;
        }
        self.pending.take(self.state.home)
    }

    /// Stops the kernel: the host found that it can't go on.
    pub fn halt(&mut self, halt: Halt) {
        // First, so that nothing that goes wrong in the next line leaves the kernel running.
        self.halted.get_or_insert(halt);
        self.effects.clear();
    }

    /// Why the kernel stopped.
    pub const fn halted(&self) -> Option<&Halt> {
        self.halted.as_ref()
    }

    /// The home's id.
    pub const fn home(&self) -> HomeId {
        self.state.home
    }

    /// The log's last record, durable or not.
    pub const fn head(&self) -> Head {
        self.state.head
    }

    /// Kernel time, when [followed](Self::follow) last.
    pub fn now(&self) -> UnixMillis {
        self.clock.as_ref().map_or(self.state.time, KernelClock::now)
    }

    /// The limits that were fixed when the home was made.
    pub const fn limits(&self) -> &HomeLimits {
        &self.state.limits
    }

    /// The keys of the roles.
    pub const fn roles(&self) -> &Roles {
        &self.state.roles
    }

    /// Hash of the recovery key.
    pub const fn recovery(&self) -> Option<RecoveryHash> {
        self.state.recovery
    }

    /// The last counter of a key, 0 if it has signed nothing.
    pub fn counter(&self, key: &PublicKey) -> u64 {
        self.state.signer(key).counter
    }

    /// The last record that a key signed: the next head that it names must not lie before.
    pub fn last_signed(&self, key: &PublicKey) -> Seq {
        self.state.signer(key).last
    }

    /// The intents that a boot closed as unknown, and of which no operator has said what became.
    pub fn unresolved(&self) -> Vec<Seq> {
        self.state.recovered.iter().copied().collect()
    }

    /// The runs that were closed without their providers' word: their intents, and tools. They are the
    /// newest, as many as may be in flight.
    pub fn unreported(&self) -> impl Iterator<Item = (Seq, &ToolId)> {
        self.state.unreported.iter().map(|(intent, run)| (*intent, &run.tool))
    }

    /// The least epoch that a root token may be of: what is issued is of this one.
    pub const fn epoch(&self) -> u64 {
        self.state.epoch
    }

    /// The policy on record.
    pub const fn policy_hash(&self) -> Option<PolicyHash> {
        self.state.policy
    }

    /// The shadow on record: a policy that is asked for the record only.
    pub const fn shadow_hash(&self) -> Option<PolicyHash> {
        self.state.shadow
    }

    /// The engine that the kernel asks.
    pub fn engine(&self) -> &dyn PolicyEngine {
        &*self.engine
    }

    /// The agents that have a state: head snapshot, and what is known of its facts.
    pub fn states(&self) -> impl Iterator<Item = (&AgentId, &Snapshot, &Facts)> {
        self.state.agents.iter().map(|(agent, state)| {
            let facts = self.facts.get(agent).unwrap_or(Facts::none());
            (agent, state.head(), facts)
        })
    }

    /// The tools on record.
    pub const fn tools_hash(&self) -> Option<ToolsHash> {
        self.state.tools
    }

    /// The hash of the engine that the kernel was given.
    pub const fn engine_hash(&self) -> PolicyHash {
        self.engine_hash
    }

    /// The hash of the tools that the kernel was given.
    pub const fn registry_hash(&self) -> ToolsHash {
        self.tools_hash
    }

    /// The hash of the tools that the kernel would have after a change; `None` where two would
    /// have one name.
    pub fn registry_hash_after(&self, delta: &ToolsDelta) -> Option<ToolsHash> {
        self.registry.changed(delta).ok().map(|tools| tools.tools_object().hash())
    }

    /// The open sessions, and the labels of everything that they have been given.
    pub fn sessions(&self) -> impl DoubleEndedIterator<Item = SessionView<'_>> + ExactSizeIterator {
        self.state.sessions.iter().map(|(number, session)| SessionView {
            number: *number,
            agent: &session.agent,
            token: session.token_id,
            label: self.state.label_of(session),
        })
    }

    /// The freezes in force, each as the event that made it.
    pub fn frozen(&self) -> Vec<Freeze> {
        let frozen = &self.state.frozen;
        let of = |target, name: &str| {
            let (name, change) = (Box::from(name), FreezeChange::Freeze);
            Freeze { target, name, change }
        };
        let all = frozen.kernel.then(|| of(FreezeTarget::Kernel, ""));
        let agents = frozen.agents.iter().map(|agent| of(FreezeTarget::Agent, agent.as_str()));
        let tools = frozen.tools.iter().map(|tool| of(FreezeTarget::Tool, tool.as_str()));
        all.into_iter().chain(agents).chain(tools).collect()
    }

    /// The calls that run: their intents, since when, and what the intents hold.
    pub fn running(&self) -> impl Iterator<Item = (Seq, UnixMillis, &CallFields)> {
        self.in_flight.iter().map(|(intent, flight)| (*intent, flight.since, &flight.fields))
    }

    /// The manifests of the tools.
    pub fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.registry.manifests()
    }

    /// All tokens and their standing, in the order in which they were registered.
    pub fn tokens(&self) -> impl DoubleEndedIterator<Item = TokenView<'_>> {
        self.state.tokens.views()
    }

    /// The accounts of agents, in the order of their names.
    pub fn accounts(&self) -> impl Iterator<Item = AccountView<'_>> {
        self.state.credits.views()
    }

    /// The last list of revocations, as of when it is believed to be whole, with the tokens of all
    /// lists that are not registered.
    pub const fn list(&self) -> Option<&RevocationList> {
        self.state.tokens.list()
    }

    /// The program to run when a call begins to wait for a person.
    pub const fn notify(&self) -> Option<&Notify> {
        self.state.notify.as_ref()
    }

    /// How many tokens there are.
    pub fn token_count(&self) -> usize {
        self.state.tokens.count()
    }

    /// One token and its standing.
    pub fn token(&self, id: &TokenId) -> Option<TokenView<'_>> {
        self.state.tokens.find(id).and_then(|token| self.state.tokens.view(token))
    }

    /// Calls between their intent and their answer.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The state as canonical bytes, a [`StateImage`](syscap_format::StateImage): equal
    /// states have equal images.
    pub fn state_image(&self) -> Vec<u8> {
        self.state.image()
    }

    /// Digest of the state's image.
    pub fn state_hash(&self) -> StateHash {
        StateHash::from_bytes(Domain::STATE.hash(&[&self.state_image()]))
    }
}
