//! The kernel: events in, effects out.
//!
//! The host tells the kernel what happened ([`Kernel::handle`]) and carries out what it asks for
//! ([`Kernel::poll_effect`], [`Kernel::take_batch`]). The kernel never blocks, has no clock, no
//! randomness and no I/O, and owns policy, tools, tokens, budgets and the log's head; it lends
//! none of them.
//!
//! | step of a call | can say no with | recorded as |
//! |---|---|---|
//! | decode | 1xx | `refusal` |
//! | check: binding, revoked, frozen, expired, granted; repeat | 2xx | `refusal`, `repeat` |
//! | resolve references | 25x | `refusal` |
//! | follow links | 3xx | `refusal` |
//! | plan, scopes | 3xx | `refusal` |
//! | decide | 4xx | `refusal` |
//! | reserve | 5xx | `refusal` |
//! | intend; *durable*; run | 7xx | `intent` |
//! | settle; *durable*; reply | | `outcome` |

mod admit;
mod boot;
mod control;
mod log;
mod refuse;
mod replay;
mod settle;
mod state;
mod tools;

pub use crate::state::TokenView;
pub use boot::{Anchor, NewHome, Parts};
pub use replay::{NotAsked, Redecided, Tally};
pub use state::Proposal;

use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};

use crate::{
    halt::Halt,
    policy::PolicyEngine,
    registry::{Registry, ToolsDelta},
    resolve::{Found, Resolving},
    state::State,
    store::{Ancestor, Batch, Room, Stored},
    time::{KernelClock, Reading},
    tool::{Job, Ran},
};
use admit::Parked;
use log::Pending;
use refuse::LiveRun;
use settle::{InFlight, Waiting};
use syscap_format::{
    budget::Amounts,
    control::{Control, Freeze, FreezeChange, FreezeTarget, Roles},
    envelope::{Form, ToolResult},
    facts::Facts,
    hash::Domain,
    id::{
        AgentId, CallDigest, HomeId, PolicyHash, RecoveryHash, Seq, SnapshotId, StateHash, TokenId,
        ToolsHash,
    },
    label::Label,
    manifest::Manifest,
    provenance::Source,
    reason::Refused,
    record::{CallFields, Durability, Head, Kind, Opened},
    sign::PublicKey,
    snapshot::Snapshot,
    time::UnixMillis,
    vault::{CallSalts, VaultEntry},
};

/// The host's name for a request, echoed with its answer. The host must not use one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A call as it comes in.
#[derive(Debug)]
pub struct Submit {
    /// The host's name for it.
    pub ticket: Ticket,
    /// The session that it comes through.
    pub session: Seq,
    /// The envelope's bytes.
    pub received: Vec<u8>,
    /// How they are written.
    pub form: Form,
    /// Who brought the call about, by the host's word: an agent, unless the host knows better.
    /// What the envelope says of it is recorded as a claim.
    pub source: Source,
    /// Random salts for its commitments.
    pub salts: CallSalts,
}

/// Time that a run took, as the host measured it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Processor time of the thread, in microseconds.
    pub cpu_us: u64,
    /// Wall-clock time, in microseconds.
    pub wall_us: u64,
}

/// Why a run will not be reported, or not in time. The host says so of a job that it no longer
/// has, or that has not returned: to run it afterwards would be the host's own act, unrecorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// It panicked.
    Panicked,
    /// It has not returned in time; it may still run.
    TimedOut,
    /// The host dropped it.
    Abandoned,
}

/// What the host tells the kernel.
pub enum Event {
    /// The kernel starts on this home. Before this no call is admitted.
    Boot {
        /// Whom to tell.
        ticket: Ticket,
        /// 16 random bytes.
        id: [u8; 16],
        /// The version of the software.
        software: Box<str>,
        /// What an acknowledged record survives from here on.
        durability: Durability,
    },
    /// A call.
    Submit(Submit),
    /// What [`Effect::Fetch`] asked for, in its order.
    Fetched(Ticket, Vec<VaultEntry>),
    /// What came of [`Effect::Resolve`].
    Resolved(Ticket, Result<Found, Refused>),
    /// A run came back.
    Ran(Ran<'static>, Measured),
    /// A run will not come back, or not in time.
    Lost(Seq, Lost, Measured),
    /// A batch is durable.
    Stored(Stored),
    /// A signed event: of kind `key`, `revoke`, `freeze`, `config` or `recovery`. Where the head
    /// that it names is none that [the kernel remembers](Kernel::remembers), the proof that it is
    /// durable; so with those below.
    Control(Ticket, Kind, Control, Option<Ancestor>),
    /// A signed event of kind `policy`, and those of the engines that it names which the kernel
    /// does not have.
    Policy(Ticket, Control, Option<Ancestor>, Vec<Box<dyn PolicyEngine>>),
    /// A policy document that no engine could be made of: where it is wrong, and how. It is
    /// refused on the record.
    BadPolicy(Ticket, Box<str>, Box<str>),
    /// A change to an agent's state.
    Propose(Box<Proposal>),
    /// A signed event of kind `tools`, for the tools that the kernel has, changed so.
    Tools(Ticket, Control, Option<Ancestor>, ToolsDelta),
    /// A token's wire.
    Issue(Ticket, Vec<u8>, Option<Ancestor>),
    /// The host opens a slot for an agent with a token.
    OpenSession(Ticket, AgentId, TokenId),
    /// The host closes a slot.
    CloseSession(Ticket, Seq),
    /// The host posts model tokens and credits after the fact.
    Charge(Ticket, Seq, Amounts),
    /// Whether the disk has room.
    Room(Room),
    /// Time passed.
    Tick,
    /// The host closes the home.
    Shutdown(Ticket),
}

/// What a control event came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ack {
    /// It is on record.
    Recorded(Seq),
    /// A token is registered.
    Token(TokenId),
    /// A session is open.
    Session(Opened),
    /// An agent's state has changed: its head, and the record.
    State(SnapshotId, Seq),
}

/// What the kernel asks of the host.
#[derive(Debug)]
#[must_use = "an effect must be carried out"]
pub enum Effect {
    /// Fetch these pairs of intent and outcome from the vault.
    Fetch(Ticket, Vec<(Seq, Seq)>),
    /// Follow these links.
    Resolve(Ticket, Box<Resolving>),
    /// Run this.
    Run(Ticket, Box<Job>),
    /// Answer this call.
    Reply(Ticket, Box<ToolResult>),
    /// Answer this control event.
    Ack(Ticket, Result<Ack, Refused>),
}

/// An open session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionView<'a> {
    /// The record that opened it.
    pub number: Seq,
    /// The agent.
    pub agent: &'a AgentId,
    /// The token.
    pub token: TokenId,
    /// The join of what was delivered to it.
    pub label: Label,
}

/// The reference monitor.
pub struct Kernel {
    state: State,
    engine: Box<dyn PolicyEngine>,
    engine_hash: PolicyHash,
    /// Whether the engine names a tool by an alias: what it says of that would be lost.
    aliased: bool,
    /// Asked beside the engine, for the record only.
    shadow: Option<(PolicyHash, Box<dyn PolicyEngine>)>,
    /// The values of the agents' facts: what the state knows by commitment only.
    facts: BTreeMap<AgentId, Facts>,
    registry: Registry,
    tools_hash: ToolsHash,
    clock: Option<KernelClock>,
    gap: bool,
    room: Room,
    closing: bool,
    pending: Pending,
    waiting: VecDeque<(Seq, Waiting)>,
    in_flight: BTreeMap<Seq, InFlight>,
    /// The plans of runs that were given up and may still come back.
    late: BTreeMap<Seq, CallDigest>,
    /// Calls that wait for what the host was asked for.
    parked: BTreeMap<Ticket, Parked>,
    runs: BTreeMap<Option<Seq>, LiveRun>,
    overloaded: LiveRun,
    effects: VecDeque<Effect>,
    halted: Option<Halt>,
}

impl Kernel {
    /// Moves the kernel forward by one event. It never blocks; if it can't go on it halts, and
    /// from then on ignores everything.
    pub fn handle(&mut self, event: Event, reading: Reading) {
        if self.halted.is_some() {
            return;
        }
        if let Some(clock) = &mut self.clock {
            clock.advance(reading);
        }
        if let Err(halt) = self.dispatch(event, reading) {
            self.halt(halt);
        }
    }

    fn dispatch(&mut self, event: Event, reading: Reading) -> Result<(), Halt> {
        match event {
            Event::Boot { ticket, id, software, durability } => {
                self.boot(ticket, id, software, durability, reading)
            }
            Event::Submit(submit) => self.submit(submit, None, None),
            Event::Fetched(ticket, entries) => self.fetched(ticket, &entries),
            Event::Resolved(ticket, found) => self.resolved(ticket, found),
            Event::Ran(ran, measured) => self.ran(ran, measured),
            Event::Lost(intent, lost, measured) => self.lost(intent, lost, measured),
            Event::Stored(stored) => self.stored(&stored),
            Event::Control(ticket, kind, control, ancestor) => {
                self.control(ticket, kind, (control, ancestor))
            }
            Event::Policy(ticket, control, ancestor, engines) => {
                self.policy(ticket, (control, ancestor), engines)
            }
            Event::BadPolicy(ticket, place, why) => self.bad_policy(ticket, &place, &why),
            Event::Propose(proposal) => self.propose(*proposal),
            Event::Tools(ticket, control, ancestor, delta) => {
                self.tools(ticket, (control, ancestor), &delta)
            }
            Event::Issue(ticket, wire, ancestor) => self.issue(ticket, (wire, ancestor)),
            Event::OpenSession(ticket, agent, token) => self.open_session(ticket, agent, token),
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

    /// Whether an answer or a run waits for records that no batch has taken yet.
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
    #[must_use]
    pub const fn halted(&self) -> Option<&Halt> {
        self.halted.as_ref()
    }

    /// The home's id.
    #[must_use]
    pub const fn home(&self) -> HomeId {
        self.state.home
    }

    /// The log's last record, durable or not.
    #[must_use]
    pub const fn head(&self) -> Head {
        self.state.head
    }

    /// Kernel time at the last event.
    #[must_use]
    pub fn now(&self) -> UnixMillis {
        self.clock.as_ref().map_or(self.state.time, KernelClock::now)
    }

    /// The keys of the roles.
    #[must_use]
    pub const fn roles(&self) -> &Roles {
        &self.state.roles
    }

    /// Hash of the recovery key.
    #[must_use]
    pub const fn recovery(&self) -> Option<RecoveryHash> {
        self.state.recovery
    }

    /// The last counter of a key, 0 if it has signed nothing.
    #[must_use]
    pub fn counter(&self, key: &PublicKey) -> u64 {
        self.state.signer(key).counter
    }

    /// The last record that a key signed: the next head that it names must not lie before.
    #[must_use]
    pub fn last_signed(&self, key: &PublicKey) -> Seq {
        self.state.signer(key).last
    }

    /// The policy on record.
    #[must_use]
    pub const fn policy_hash(&self) -> Option<PolicyHash> {
        self.state.policy
    }

    /// The shadow on record: a policy that is asked for the record only.
    #[must_use]
    pub const fn shadow_hash(&self) -> Option<PolicyHash> {
        self.state.shadow
    }

    /// The engine that the kernel asks.
    #[must_use]
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
    #[must_use]
    pub const fn tools_hash(&self) -> Option<ToolsHash> {
        self.state.tools
    }

    /// The hash of the engine that the kernel was given.
    #[must_use]
    pub const fn engine_hash(&self) -> PolicyHash {
        self.engine_hash
    }

    /// The hash of the tools that the kernel was given.
    #[must_use]
    pub const fn registry_hash(&self) -> ToolsHash {
        self.tools_hash
    }

    /// The hash of the tools that the kernel would have after a change; `None` where two would
    /// have one name.
    #[must_use]
    pub fn registry_hash_after(&self, delta: &ToolsDelta) -> Option<ToolsHash> {
        self.registry.changed(delta).ok().map(|tools| tools.tools_object().hash())
    }

    /// What the open sessions are, and what they have been given.
    pub fn sessions(&self) -> impl Iterator<Item = SessionView<'_>> {
        self.state.sessions.iter().map(|(number, session)| SessionView {
            number: *number,
            agent: &session.agent,
            token: session.token_id,
            label: session.label,
        })
    }

    /// What is frozen, each as the event that froze it.
    #[must_use]
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
        self.in_flight.iter().map(|(intent, flight)| (*intent, flight.since, &*flight.fields))
    }

    /// The manifests of the tools.
    pub fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.registry.manifests()
    }

    /// All tokens and their standing.
    pub fn tokens(&self) -> impl Iterator<Item = TokenView<'_>> {
        self.state.tokens.views()
    }

    /// One token and its standing.
    #[must_use]
    pub fn token(&self, id: &TokenId) -> Option<TokenView<'_>> {
        self.state.tokens.find(id).and_then(|token| self.state.tokens.view(token))
    }

    /// Calls between their intent and their answer.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The state as canonical bytes, a [`StateImage`](syscap_format::image::StateImage): equal
    /// states have equal images.
    #[must_use]
    pub fn state_image(&self) -> Vec<u8> {
        self.state.image()
    }

    /// Digest of the state's image.
    #[must_use]
    pub fn state_hash(&self) -> StateHash {
        StateHash::from_bytes(Domain::STATE.hash(&[&self.state_image()]))
    }
}
