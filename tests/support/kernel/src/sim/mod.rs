//! A world in which the kernel is driven by hand: events in any order, a clock that jumps, jobs
//! that are held back, a store that can fail; and what must hold after every step.

mod answers;
mod credits;
mod ends;
pub mod flights;
pub mod keys;
pub mod links;
pub mod rule;
pub mod tokens;
pub mod tools;

use std::collections::VecDeque;

use crate::fault::FaultStore;
use ed25519_dalek::{Signer as _, SigningKey};
use syscap_audit::MemoryStore;
use syscap_format::{
    AgentId, CONTROL_CONTEXT, CallSalts, Control, ControlBody, Dimension, Durability, Form, Freeze,
    FreezeChange, FreezeTarget, Head, HomeLimits, PolicyChange, PublicKey, Reason, Record,
    RecordKind, Refused, Revocation, Rights, Role, Salt, Scope, Seq, Signature, Signed, SnapshotId,
    Source, Status, TokenId, ToolResult, ToolsChange, UnixMillis, json, preimage,
};
use syscap_kernel::{
    Ack, Anchor, Effect, Event, Halt, Job, Kernel, Lost, Measured, NewHome, Next, Parts,
    PolicyEngine, Probing, Proposal, Ran, Reading, Registry, Resolving, Store, Submit, Ticket,
    ToolsDelta, object_of,
};
use syscap_policy::WithinToken;

use flights::Flight;
pub use keys::{key, roles};
use links::Open;
use rule::{Rule, Trim};
pub use tools::Shared;
use tools::{Look, Spend};

/// The engine that a simulated home begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policed {
    /// The token alone decides.
    ByToken,
    /// A rule decides.
    ByRule,
}

impl Policed {
    fn engine(self) -> Box<dyn PolicyEngine> {
        match self {
            Self::ByToken => Box::new(WithinToken),
            Self::ByRule => Box::new(Rule(0)),
        }
    }
}

pub fn parts(world: &Shared) -> Parts {
    parts_of(world, Policed::ByToken)
}

pub fn parts_of(world: &Shared, policed: Policed) -> Parts {
    let mut registry = Registry::new();
    registry.add(Spend::new(world)).unwrap();
    registry.add(Trim::new(world)).unwrap();
    registry.add_read(Look::new()).unwrap();
    registry.add_read(Open::new(world)).unwrap();
    Parts { engine: policed.engine(), registry }
}

/// How a held-back job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Runs,
    Panics,
    TimesOut,
    Dropped,
}

/// The kernel, its store, and everything that the host has in its hands.
pub struct Sim {
    pub kernel: Kernel,
    pub store: FaultStore<MemoryStore>,
    pub world: Shared,
    pub policed: Policed,
    /// What the tokens that are issued let be opened.
    pub paths: Scope,
    pub wall: u64,
    pub boottime: u64,
    pub tickets: u64,
    pub salt: u64,
    pub jobs: Vec<(Ticket, Box<Job>)>,
    /// Links that are still to be followed.
    pub lookups: Vec<(Ticket, Box<Resolving>)>,
    /// Runs that were given up and may still come back.
    pub late: Vec<Ran<'static>>,
    pub replies: Vec<(Ticket, ToolResult)>,
    pub acks: Vec<(Ticket, Result<Ack, Refused>)>,
    pub tokens: Vec<(TokenId, u64)>,
    pub sessions: Vec<Seq>,
    /// Heads that there were, of any agent.
    pub snapshots: Vec<SnapshotId>,
    /// Batches that were taken and of which the kernel has not heard, oldest first.
    pub flights: VecDeque<Flight>,
    /// Credits that were posted after the fact: by so much an account may be overdrawn.
    pub posted: u64,
}

impl Sim {
    /// A new home, booted, with policy and tools on record.
    pub fn new(store: FaultStore<MemoryStore>) -> Self {
        Self::with_limits(store, HomeLimits::default())
    }

    pub fn with_limits(store: FaultStore<MemoryStore>, limits: HomeLimits) -> Self {
        Self::with(store, limits, Policed::ByToken)
    }

    pub fn with(store: FaultStore<MemoryStore>, limits: HomeLimits, policed: Policed) -> Self {
        let world = Shared::default();
        let parts = parts_of(&world, policed);
        Self::of(store, limits, policed, (world, parts))
    }

    /// The same with an engine and tools of the caller's. It can't be reopened by the simulator.
    pub fn of(
        store: FaultStore<MemoryStore>,
        limits: HomeLimits,
        policed: Policed,
        (world, parts): (Shared, Parts),
    ) -> Self {
        let new = NewHome {
            entropy: [7; 32],
            origin: Box::from("sim"),
            limits,
            durability: Durability::Memory,
            roles: roles(),
            recovery: None,
        };
        let (wall, boottime) = (1_800_000_000_000, 1_000);
        let reading = Reading { wall: UnixMillis::new(wall), boottime_ms: boottime };
        let kernel = Kernel::create(new, parts, reading).unwrap();
        let mut sim = Self {
            kernel,
            store,
            world,
            policed,
            paths: links::scope(Rights::ALL, Rights::NONE),
            wall,
            boottime,
            tickets: 0,
            salt: 0,
            jobs: Vec::new(),
            lookups: Vec::new(),
            late: Vec::new(),
            replies: Vec::new(),
            acks: Vec::new(),
            tokens: Vec::new(),
            sessions: Vec::new(),
            snapshots: Vec::new(),
            flights: VecDeque::new(),
            posted: 0,
        };
        sim.boot();
        sim
    }

    /// Boots the kernel and puts what it has on record.
    pub fn boot(&mut self) {
        self.salt += 1;
        let id = [u8::try_from(self.salt % 251).unwrap(); 16];
        let ticket = self.ticket();
        let software = Box::from("sim");
        let open = self.kernel.open_intents().into_iter();
        let probing = open.filter_map(|seq| self.kernel.probing(seq, &mut self.store).unwrap());
        let probed: Vec<_> = probing.map(Probing::run).collect();
        self.event(Event::Boot { ticket, id, software, durability: Durability::Memory, probed });
        self.commit();
        if self.kernel.tools_hash().is_none() && self.kernel.halted().is_none() {
            let tools = self.kernel.registry_hash();
            let control = self.signed(&ToolsChange { tools });
            let ticket = self.ticket();
            self.event(Event::Tools(ticket, control, None, ToolsDelta::default()));
            let policy = self.kernel.engine_hash();
            let control = self.signed(&PolicyChange { policy, shadow: None });
            let ticket = self.ticket();
            self.event(Event::Policy(ticket, control, None, Vec::new(), None));
            self.commit();
        }
    }

    pub fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    pub fn salts(&mut self) -> CallSalts {
        self.salt += 1;
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.salt.to_le_bytes());
        let salt = Salt::from_bytes(bytes);
        CallSalts { call: salt, args: salt, result: salt }
    }

    pub fn reading(&self) -> Reading {
        Reading { wall: UnixMillis::new(self.wall), boottime_ms: self.boottime }
    }

    /// Brings an event before the kernel and takes up what it asks for. Jobs are held back.
    pub fn event(&mut self, event: Event) {
        let reading = self.reading();
        self.kernel.handle(event, reading);
        self.effects();
        self.check();
    }

    fn effects(&mut self) {
        while let Some(effect) = self.kernel.poll_effect() {
            match effect {
                Effect::Run(ticket, job) => self.jobs.push((ticket, job)),
                Effect::Resolve(ticket, links) => self.lookups.push((ticket, links)),
                Effect::Inspect(ticket, what) => {
                    self.event(Event::Inspected(ticket, Some(what.run())));
                }
                Effect::Reply(ticket, result) => {
                    // No answer leaves before its own record is durable.
                    let head = self.durable_head();
                    assert!(result.receipt().outcome_seq <= head, "answered unrecorded");
                    self.replies.push((ticket, *result));
                }
                Effect::Ack(ticket, ack) => {
                    match &ack {
                        Ok(Ack::Session(opened)) => self.sessions.push(opened.session),
                        Ok(Ack::State(snapshot, seq)) => {
                            assert!(*seq <= self.durable_head());
                            self.snapshots.push(*snapshot);
                        }
                        Ok(Ack::Recorded(seq) | Ack::Cancelled(seq, _)) => {
                            assert!(*seq <= self.durable_head());
                        }
                        _ => {}
                    }
                    self.acks.push((ticket, ack));
                }
                Effect::Fetch(ticket, fetching) => {
                    let reading = self.reading();
                    match fetching.run(&mut self.store) {
                        Ok(fetched) => self.kernel.handle(Event::Fetched(ticket, fetched), reading),
                        Err(error) => self.kernel.halt(error.into()),
                    }
                }
            }
        }
    }

    pub fn durable_head(&mut self) -> Seq {
        let mut head = Seq::GENESIS;
        let probe = self.store.records(Seq::GENESIS, &mut |seq, _| {
            head = seq;
            syscap_kernel::Next::More
        });
        if probe.is_err() {
            // A store that is down answers nothing: then nothing may be answered either.
            return Seq::GENESIS;
        }
        head
    }

    /// Commits what is pending. A failed commit halts the kernel.
    pub fn commit(&mut self) {
        self.take();
        self.land();
    }

    /// The process dies; another opens the log as it is on disk. Nothing in hand survives.
    pub fn crash(&mut self) -> Result<(), Halt> {
        self.die();
        self.kernel = self.reopened()?;
        Ok(())
    }

    /// The same with a kernel of the caller's.
    pub fn crash_into(&mut self, open: impl FnOnce(&mut dyn Store) -> Result<Kernel, Halt>) {
        self.die();
        self.kernel = open(&mut self.store).unwrap();
    }

    fn die(&mut self) {
        let store = std::mem::replace(
            &mut self.store,
            FaultStore::new(MemoryStore::new(), crate::fault::FaultPoint::Nowhere),
        );
        self.store = FaultStore::new(store.into_inner().share(), crate::fault::FaultPoint::Nowhere);
        self.flights.clear();
        self.jobs.clear();
        self.lookups.clear();
        // What was read and not answered is in no record.
        self.world.lock().unwrap().opened.clear();
        self.late.clear();
        self.sessions.clear();
    }

    /// Opens a session of `a0` by a token: its number.
    pub fn seat(&mut self, token: TokenId) -> Seq {
        self.open("a0", token);
        self.commit();
        *self.sessions.last().unwrap()
    }

    /// Another kernel over the same store, with the engines that are on record.
    pub fn reopened(&mut self) -> Result<Kernel, Halt> {
        let mut kernel =
            Kernel::open(&mut self.store, parts_of(&self.world, self.policed), &Anchor::default())?;
        let taken = Rule::ALL.filter(|number| kernel.adopt(Box::new(Rule(*number)))).count();
        assert!(taken <= 2, "the policy and the shadow");
        Ok(kernel)
    }

    /// Puts a rule in force, and perhaps another one beside it.
    pub fn rule(&mut self, number: u8, shadow: Option<u8>) -> Ticket {
        let hash = |number| object_of(&Rule(number)).hash();
        let change = PolicyChange { policy: hash(number), shadow: shadow.map(hash) };
        let engine = |number| Box::new(Rule(number)) as Box<dyn PolicyEngine>;
        let engines = std::iter::once(number).chain(shadow).map(engine).collect();
        let (control, ticket) = (self.signed(&change), self.ticket());
        self.event(Event::Policy(ticket, control, None, engines, None));
        ticket
    }

    /// Proposes a change of the state of a session's agent.
    pub fn propose(&mut self, session: Seq, writer: Source, json: &str) -> Ticket {
        self.propose_from(session, writer, None, json)
    }

    pub fn propose_from(
        &mut self,
        session: Seq,
        writer: Source,
        base: Option<SnapshotId>,
        json: &str,
    ) -> Ticket {
        let (ticket, salts) = (self.ticket(), self.salts());
        let changes = json::to_cbor(json.as_bytes()).unwrap();
        let inputs = Vec::new();
        let proposal = Proposal { ticket, session, writer, inputs, base, changes, salts };
        self.event(Event::Propose(Box::new(proposal)));
        ticket
    }

    /// The answer to what is not a call.
    pub fn acked(&self, ticket: Ticket) -> Option<&Result<Ack, Refused>> {
        self.acks.iter().find(|(t, _)| *t == ticket).map(|(_, ack)| ack)
    }

    /// A key signs again only once it has seen its last record durable.
    fn catch_up(&mut self, key: &PublicKey) -> Head {
        let last = self.kernel.last_signed(key);
        if self.kernel.durable().is_none_or(|head| head.seq < last) {
            self.commit();
        }
        self.kernel.durable().unwrap()
    }

    pub fn signed<B: ControlBody>(&mut self, body: &B) -> Control {
        let role = self.kernel.limits().role_of(B::KIND, &body.to_bytes());
        self.signed_by(body, role.unwrap())
    }

    pub fn signed_by<B: ControlBody>(&mut self, body: &B, role: Role) -> Control {
        self.signed_with(body, &key(role))
    }

    pub fn signed_with<B: ControlBody>(&mut self, body: &B, signer: &SigningKey) -> Control {
        let key = keys::public_of(signer);
        let counter = self.kernel.counter(&key) + 1;
        let body = body.to_bytes();
        let (home, head) = (self.kernel.home(), self.catch_up(&key));
        let message = Control::message(&home, &head, &key, counter, B::KIND, &body);
        let signature = signer.sign(&preimage(CONTROL_CONTEXT, &message)).to_bytes();
        let signature = Signature::from_bytes(signature);
        Control::by_one(head, body, Signed { key, counter, signature })
    }

    pub fn open(&mut self, agent: &str, token: TokenId) {
        let ticket = self.ticket();
        self.event(Event::OpenSession(ticket, AgentId::new(agent).unwrap(), token, None));
    }

    pub fn submit(&mut self, session: Seq, envelope: Vec<u8>, form: Form) -> Ticket {
        self.submit_by(Source::Agent, session, envelope, form)
    }

    pub fn submit_by(
        &mut self,
        source: Source,
        session: Seq,
        received: Vec<u8>,
        form: Form,
    ) -> Ticket {
        let submit = self.submission(source, session, received, form);
        let ticket = submit.ticket;
        self.event(Event::Submit(submit));
        ticket
    }

    /// A call that is not sent yet.
    pub fn submission(
        &mut self,
        source: Source,
        session: Seq,
        received: Vec<u8>,
        form: Form,
    ) -> Submit {
        let (ticket, salts) = (self.ticket(), self.salts());
        let (proof, unasked) = (None, false);
        Submit { ticket, session, received, form, source, salts, proof, unasked }
    }

    pub fn submit_json(&mut self, session: Seq, json: &str) -> Ticket {
        self.submit(session, json.as_bytes().to_vec(), Form::Json)
    }

    pub fn revoke(&mut self, token: TokenId) {
        let control = self.signed(&Revocation::subtree(token));
        let ticket = self.ticket();
        self.event(Event::Control(ticket, RecordKind::Revoke, control, None, None));
    }

    pub fn freeze(&mut self, change: FreezeChange) {
        let freeze = Freeze { target: FreezeTarget::Kernel, name: Box::from(""), change };
        let control = self.signed(&freeze);
        let ticket = self.ticket();
        self.event(Event::Control(ticket, RecordKind::Freeze, control, None, None));
    }

    /// Ends a held-back job.
    pub fn end_job(&mut self, place: usize, ending: Ending) {
        if self.jobs.is_empty() {
            return;
        }
        let (_, job) = self.jobs.remove(place % self.jobs.len());
        let intent = job.intent();
        let measured = Measured { cpu_us: 100, wall_us: 200 };
        match ending {
            Ending::Runs => {
                let ran = self.run(*job);
                self.event(Event::Ran(ran, measured));
            }
            Ending::Panics => self.event(Event::Lost(intent, Lost::Panicked, measured)),
            Ending::Dropped => self.event(Event::Lost(intent, Lost::Abandoned, measured)),
            Ending::TimesOut => {
                self.event(Event::Lost(intent, Lost::TimedOut, measured));
                let ran = self.run(*job);
                self.late.push(ran);
            }
        }
    }

    /// Follows links that were held back; or the host says that it broke off.
    pub fn end_lookup(&mut self, place: usize, ending: Ending) {
        if self.lookups.is_empty() {
            return;
        }
        let (ticket, links) = self.lookups.remove(place % self.lookups.len());
        let found = match ending {
            Ending::Panics => Err(Refused::new(Reason::Panicked)),
            _ => links.run(),
        };
        self.event(Event::Resolved(ticket, found));
    }

    /// Runs a job, holding it against what is durable at that moment.
    fn run(&mut self, job: Job) -> Ran<'static> {
        let (intent, before) = (job.intent(), self.world.lock().unwrap().spent.len());
        let durable = self.durable_head();
        let ran = job.run();
        let acted = self.world.lock().unwrap().spent.len() > before;
        assert!(!acted || intent <= durable, "an effect without a durable intent");
        ran
    }

    pub fn reply_to(&self, ticket: Ticket) -> Option<&ToolResult> {
        self.replies.iter().find(|(t, _)| *t == ticket).map(|(_, result)| result)
    }

    pub fn reason_of(&self, ticket: Ticket) -> Option<Reason> {
        self.reply_to(ticket).and_then(ToolResult::reason)
    }

    /// Holds after every step: nothing counted is overspent, by the books or in the world.
    pub fn check(&mut self) {
        let counted = [Dimension::Calls, Dimension::DiskWriteBytes, Dimension::Concurrent];
        for view in self.kernel.tokens() {
            let limits = view.body.budget.amounts();
            for dimension in counted {
                let booked = view.used.get(dimension) + view.held.get(dimension);
                assert!(booked <= limits.get(dimension), "{dimension:?} is overbooked");
            }
        }
        for account in self.kernel.accounts() {
            let booked = account.used + account.held;
            assert!(booked <= account.granted + self.posted, "{account:?} is overdrawn");
        }
        let limit: u64 = self.tokens.iter().map(|(_, units)| units).sum();
        let spent: u64 = self.world.lock().unwrap().spent.iter().map(|(_, n)| n).sum();
        assert!(spent <= limit, "more was spent than any token had");
        let opened = &self.world.lock().unwrap().opened;
        let denied = opened.iter().find(|(_, at)| at.starts_with("shared/secret"));
        assert_eq!(denied, None, "what no token lets be opened was opened");
    }
}

/// A new home over a store that never fails.
pub fn home() -> Sim {
    let nowhere = crate::fault::FaultPoint::Nowhere;
    Sim::new(FaultStore::new(MemoryStore::new(), nowhere))
}

/// A home with one agent, one token of 100 calls and 100 units, and one session.
pub fn seated() -> (Sim, Seq) {
    let mut sim = home();
    let token = sim.issue("a0", 100, 100, 1_000_000);
    let session = sim.seat(token);
    (sim, session)
}

/// All records, decoded.
pub fn records(sim: &mut Sim) -> Vec<Record> {
    let mut records = Vec::new();
    sim.store
        .records(Seq::GENESIS, &mut |_, bytes| {
            records.push(Record::decode(bytes).unwrap());
            Next::More
        })
        .unwrap();
    records
}

/// A call that is admitted, run and answered.
pub fn ok(sim: &mut Sim, session: Seq) {
    let ticket = sim.submit_json(session, r#"{"tool_id": "look", "args": {"at": 1}}"#);
    while !sim.jobs.is_empty() {
        sim.end_job(0, Ending::Runs);
    }
    sim.commit();
    assert_eq!(sim.reply_to(ticket).map(|r| r.status()), Some(Status::Ok));
}

/// A call that is refused for this reason.
pub fn refused_with(sim: &mut Sim, session: Seq, json: &str, reason: Reason) {
    let ticket = sim.submit_json(session, json);
    sim.commit();
    assert_eq!(sim.reason_of(ticket), Some(reason));
}
