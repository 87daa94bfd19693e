//! Drives the real kernel over a store, step by step.

pub mod kin;
pub mod log;
pub mod scenario;
pub mod tools;
pub mod vectors;

use ed25519_dalek::{Signer, SigningKey};
use syscap_format::{
    AgentId, Budget, CONTROL_CONTEXT, CallSalts, Control, ControlBody, Durability, Form, Grants,
    Head, HomeId, HomeLimits, KeyChange, Leaf, MapBuilder, POSSESSION_CONTEXT, Possession,
    PublicKey, RecordKind, Refused, Role, RoleSet, Roles, Salt, Scope, Seq, Signature, Signed,
    SnapshotId, Source, TOKEN_CONTEXT, Token, TokenBody, TokenFlags, TokenId, ToolGrant, ToolId,
    ToolResult, UnixMillis, VaultEntry, possession, preimage,
};
use syscap_kernel::{
    Ack, Anchor, Effect, Event, Halt, Job, Kernel, Lost, Measured, NewHome, Parts, PolicyEngine,
    Proposal, Ran, Reading, Registry, Store, Submit, Ticket, ToolsDelta, object_of, vault_entry,
};

use tools::AllowAll;

/// When the tests' logs begin.
pub const START_MS: u64 = 1_800_000_000_000;
pub const HOUR_MS: u64 = 3_600_000;

pub fn key(role: Role) -> SigningKey {
    SigningKey::from_bytes(&[u8::try_from(role.code()).unwrap(); 32])
}

pub fn public(key: &SigningKey) -> PublicKey {
    PublicKey::new(key.verifying_key().to_bytes()).unwrap()
}

pub fn roles() -> Roles {
    Roles::new(
        [Role::Issuer, Role::Policy, Role::Revoker, Role::Approver, Role::Operator]
            .map(|role| public(&key(role))),
    )
}

pub fn sign(key: &SigningKey, context: &[u8], message: &[u8]) -> Signature {
    Signature::from_bytes(key.sign(&preimage(context, message)).to_bytes())
}

pub fn signed(
    home: &HomeId,
    key: &SigningKey,
    counter: u64,
    kind: RecordKind,
    body: Vec<u8>,
) -> Control {
    // The home's id is the leaf of its first record.
    let head = Head { seq: Seq::GENESIS, leaf: Leaf::from_bytes(*home.as_bytes()) };
    signed_at(home, head, key, counter, kind, body)
}

/// The same, over a head of the signer's choice.
pub fn signed_at(
    home: &HomeId,
    head: Head,
    key: &SigningKey,
    counter: u64,
    kind: RecordKind,
    body: Vec<u8>,
) -> Control {
    let message = Control::message(home, &head, &public(key), counter, kind, &body);
    let signature = sign(key, CONTROL_CONTEXT, &message);
    Control::by_one(head, body, Signed { key: public(key), counter, signature })
}

/// A role's only key from now on, with the proof that it is held.
pub fn key_change(home: &HomeId, role: Role, key: &SigningKey) -> KeyChange {
    let message = possession(home, role, &public(key));
    let signature = sign(key, POSSESSION_CONTEXT, &message);
    let proof = Possession { key: public(key), signature };
    let set = RoleSet::any_of(role, [public(key)]);
    KeyChange { set, proofs: vec![proof], cut_off: None }
}

pub fn agent(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

pub fn tool(name: &str) -> ToolId {
    ToolId::new(name).unwrap()
}

/// All that the tests' tools touch.
pub fn all_parts() -> ToolGrant {
    ToolGrant::new().with("part", Scope::ints(0, 15).unwrap())
}

/// A token for the tests' tools, valid for an hour from the start.
pub fn body(home: HomeId, nonce: u8, agent: &AgentId) -> TokenBody {
    let grants = ["echo", "disk.write", "post", "trim"]
        .into_iter()
        .fold(Grants::new(), |grants, name| grants.with(tool(name), all_parts()));
    TokenBody {
        version: 2,
        nonce: [nonce; 16],
        issuer: public(&key(Role::Issuer)),
        holder: None,
        agent: agent.clone(),
        parent: None,
        depth: 0,
        depth_max: 0,
        not_before: UnixMillis::new(START_MS),
        expires: UnixMillis::new(START_MS + HOUR_MS),
        epoch: 0,
        grants,
        budget: Budget::standard(),
        caveats: Vec::new(),
        policy: None,
        flags: TokenFlags::default(),
        ext: MapBuilder::new().finish(),
        audience: home,
        head: Some(Head { seq: Seq::GENESIS, leaf: Leaf::from_bytes(*home.as_bytes()) }),
        renews: None,
    }
}

pub fn wire(body: &TokenBody) -> Vec<u8> {
    let bytes = body.to_bytes();
    let signature = sign(&key(Role::Issuer), TOKEN_CONTEXT, &bytes);
    Token::wire(&bytes, &signature)
}

/// A kernel, its store and the host around them.
pub struct Driver<S: Store> {
    pub kernel: Kernel,
    pub store: S,
    pub reading: Reading,
    pub replies: Vec<(Ticket, ToolResult)>,
    pub acks: Vec<(Ticket, Result<Ack, Refused>)>,
    /// Jobs that were not run yet.
    pub jobs: Vec<Job>,
    /// Whether jobs are run at once.
    pub run: Run,
    pub error: Option<Halt>,
    pub next: u64,
    /// Whether reads of the vault are handed on at once.
    pub fetch: Run,
    /// Reads that were not handed on yet.
    pub fetched: Vec<Event>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Run {
    AtOnce,
    Later,
}

pub fn parts(engine: impl PolicyEngine + 'static) -> Parts {
    let mut registry = Registry::new();
    registry.add_read(tools::Echo::new()).unwrap();
    registry.add(tools::DiskWrite::new()).unwrap();
    registry.add(tools::Post::new()).unwrap();
    registry.add(tools::Trim::new()).unwrap();
    Parts { engine: Box::new(engine), registry }
}

pub fn new_home(entropy: u8) -> NewHome {
    NewHome {
        entropy: [entropy; 32],
        origin: Box::from("test"),
        limits: HomeLimits::default(),
        durability: Durability::Full,
        roles: roles(),
        recovery: None,
    }
}

pub fn start() -> Reading {
    Reading { wall: UnixMillis::new(START_MS), boottime_ms: 0 }
}

impl<S: Store> Driver<S> {
    pub fn create(store: S, entropy: u8) -> Self {
        let reading = start();
        let kernel = Kernel::create(new_home(entropy), parts(AllowAll::new(0)), reading).unwrap();
        Self::with(kernel, store, reading)
    }

    pub fn open(mut store: S, reading: Reading, engine: u8) -> Result<Self, Halt> {
        let kernel = Kernel::open(&mut store, parts(AllowAll::new(engine)), &Anchor::default())?;
        Ok(Self::with(kernel, store, reading))
    }

    pub fn with(kernel: Kernel, store: S, reading: Reading) -> Self {
        Self {
            kernel,
            store,
            reading,
            replies: Vec::new(),
            acks: Vec::new(),
            jobs: Vec::new(),
            run: Run::AtOnce,
            error: None,
            next: 0,
            fetch: Run::AtOnce,
            fetched: Vec::new(),
        }
    }

    /// A home with tools and policy, booted.
    pub fn ready(store: S) -> Self {
        let mut driver = Self::create(store, 7);
        driver.boot();
        driver.set_tools();
        driver.set_policy(0);
        driver
    }

    pub fn pass(&mut self, ms: u64) {
        self.reading.wall = self.reading.wall.plus(ms);
        self.reading.boottime_ms += ms;
    }

    pub fn ticket(&mut self) -> Ticket {
        self.next += 1;
        Ticket(self.next)
    }

    /// One event, and all that follows from it.
    pub fn event(&mut self, event: Event) {
        self.kernel.handle(event, self.reading);
        self.pump();
    }

    pub fn pump(&mut self) {
        loop {
            while let Some(effect) = self.kernel.poll_effect() {
                self.effect(effect);
            }
            if !self.kernel.wants_commit() || !self.commit() {
                break;
            }
        }
    }

    /// Makes durable what waits, even if nobody waits for it.
    pub fn flush(&mut self) {
        while self.commit() {
            self.pump();
        }
    }

    fn commit(&mut self) -> bool {
        let Some(batch) = self.kernel.take_batch() else {
            return false;
        };
        match batch.commit(&mut self.store) {
            Ok(stored) => self.kernel.handle(Event::Stored(stored), self.reading),
            Err(halt) => {
                self.error = Some(halt.clone());
                self.kernel.halt(halt);
            }
        }
        true
    }

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Fetch(ticket, fetching) => {
                let fetched = fetching.run(&mut self.store).expect("the store reads");
                let fetched = Event::Fetched(ticket, fetched);
                match self.fetch {
                    Run::AtOnce => self.kernel.handle(fetched, self.reading),
                    Run::Later => self.fetched.push(fetched),
                }
            }
            Effect::Resolve(ticket, links) => {
                self.kernel.handle(Event::Resolved(ticket, links.run()), self.reading);
            }
            Effect::Inspect(ticket, what) => {
                self.kernel.handle(Event::Inspected(ticket, Some(what.run())), self.reading);
            }
            Effect::Run(_, job) if self.run == Run::AtOnce => {
                let ran = job.run();
                self.kernel
                    .handle(Event::Ran(ran, Measured { cpu_us: 3, wall_us: 5 }), self.reading);
            }
            Effect::Run(_, job) => self.jobs.push(*job),
            Effect::Reply(ticket, result) => self.replies.push((ticket, *result)),
            Effect::Ack(ticket, ack) => self.acks.push((ticket, ack)),
        }
    }

    pub fn boot(&mut self) {
        let ticket = self.ticket();
        self.event(Event::Boot {
            ticket,
            id: [1; 16],
            software: Box::from("test"),
            durability: Durability::Full,
            probed: Vec::new(),
        });
        self.acked(ticket).unwrap();
    }

    pub fn shutdown(&mut self) {
        let ticket = self.ticket();
        self.event(Event::Shutdown(ticket));
    }

    pub fn acked(&self, ticket: Ticket) -> Result<Ack, Refused> {
        let found = self.acks.iter().find(|(t, _)| *t == ticket);
        found.expect("acknowledged").1.clone()
    }

    /// What the vault has of a call.
    pub fn entry(&mut self, first: Seq, outcome: Seq) -> VaultEntry {
        vault_entry(&mut self.store, first, outcome).unwrap()
    }

    /// Signs over the durable head.
    pub fn sign(&mut self, key: &SigningKey, kind: RecordKind, body: Vec<u8>) -> Control {
        let counter = self.kernel.counter(&public(key)) + 1;
        let head = self.kernel.durable().unwrap();
        signed_at(&self.kernel.home(), head, key, counter, kind, body)
    }

    pub fn control(&mut self, role: Role, body: &impl ControlBodyKind) -> Result<Ack, Refused> {
        self.control_by(&key(role), body)
    }

    pub fn control_by(
        &mut self,
        key: &SigningKey,
        body: &impl ControlBodyKind,
    ) -> Result<Ack, Refused> {
        let control = self.sign(key, body.kind(), body.bytes());
        let ticket = self.ticket();
        self.event(Event::Control(ticket, body.kind(), control, None, None));
        self.acked(ticket)
    }

    pub fn set_tools(&mut self) {
        self.set_tools_by(&key(Role::Operator));
    }

    pub fn set_tools_by(&mut self, key: &SigningKey) {
        let body = syscap_format::ToolsChange { tools: self.kernel.registry_hash() };
        let control = self.sign(key, RecordKind::Tools, body.to_bytes());
        let ticket = self.ticket();
        self.event(Event::Tools(ticket, control, None, ToolsDelta::default()));
        self.acked(ticket).unwrap();
    }

    pub fn set_policy(&mut self, number: u8) {
        self.set_policies(number, None);
    }

    /// A policy, and a shadow beside it.
    pub fn set_policies(&mut self, number: u8, shadow: Option<u8>) {
        let engine = AllowAll::new(number);
        let beside = shadow.map(AllowAll::new);
        let policy = object_of(&engine).hash();
        let shadow = beside.as_ref().map(|engine| object_of(engine).hash());
        let body = syscap_format::PolicyChange { policy, shadow };
        let control = self.sign(&key(Role::Policy), RecordKind::Policy, body.to_bytes());
        let ticket = self.ticket();
        let mut engines: Vec<Box<dyn PolicyEngine>> = vec![Box::new(engine)];
        engines.extend(beside.map(|engine| Box::new(engine) as Box<dyn PolicyEngine>));
        self.event(Event::Policy(ticket, control, None, engines, None));
        self.acked(ticket).unwrap();
    }

    /// Proposes a change of the state of a session's agent.
    pub fn propose(
        &mut self,
        session: Seq,
        writer: Source,
        json: &str,
    ) -> Result<SnapshotId, Refused> {
        self.propose_from(session, writer, Vec::new(), json)
    }

    pub fn propose_from(
        &mut self,
        session: Seq,
        writer: Source,
        inputs: Vec<Seq>,
        json: &str,
    ) -> Result<SnapshotId, Refused> {
        let ticket = self.ticket();
        let changes = syscap_format::json::to_cbor(json.as_bytes()).unwrap();
        let (base, salts) = (None, salts(self.next));
        let proposal = Proposal { ticket, session, writer, inputs, base, changes, salts };
        self.event(Event::Propose(Box::new(proposal)));
        match self.acked(ticket)? {
            Ack::State(snapshot, _) => Ok(snapshot),
            other => panic!("{other:?}"),
        }
    }

    /// Registers a token, over the durable head.
    pub fn issue(&mut self, body: &TokenBody) -> TokenId {
        let body = TokenBody { head: self.kernel.durable(), ..body.clone() };
        let ticket = self.ticket();
        self.event(Event::Issue(ticket, wire(&body), None));
        match self.acked(ticket).unwrap() {
            Ack::Token(id) => id,
            other => panic!("{other:?}"),
        }
    }

    pub fn session(&mut self, agent: &AgentId, token: TokenId) -> Seq {
        let ticket = self.ticket();
        self.event(Event::OpenSession(ticket, agent.clone(), token, None));
        match self.acked(ticket).unwrap() {
            Ack::Session(opened) => opened.session,
            other => panic!("{other:?}"),
        }
    }

    /// A token and a session for it.
    pub fn agent(&mut self, name: &str, nonce: u8) -> (TokenId, Seq) {
        let body = body(self.kernel.home(), nonce, &agent(name));
        let token = self.issue(&body);
        (token, self.session(&agent(name), token))
    }

    /// Sends a call; its answer, if there is one yet, is the last of the replies.
    pub fn call(&mut self, session: Seq, json: &str) -> Ticket {
        let ticket = self.ticket();
        self.event(Event::Submit(Submit {
            proof: None,
            unasked: false,
            ticket,
            session,
            received: json.as_bytes().to_vec(),
            form: Form::Json,
            source: Source::Agent,
            salts: salts(self.next),
        }));
        ticket
    }

    pub fn reply(&self, ticket: Ticket) -> &ToolResult {
        &self.replies.iter().find(|(t, _)| *t == ticket).expect("answered").1
    }

    pub fn ran(&mut self, ran: Ran<'static>) {
        self.event(Event::Ran(ran, Measured { cpu_us: 1, wall_us: 1 }));
    }

    pub fn lost(&mut self, intent: Seq, lost: Lost) {
        self.event(Event::Lost(intent, lost, Measured { cpu_us: 1, wall_us: 1 }));
    }

    /// What is left when the process dies: the store.
    pub fn crash(self) -> S {
        self.store
    }
}

pub fn salts(n: u64) -> CallSalts {
    let salt = |kind: u8| {
        let mut bytes = [kind; 32];
        bytes[..8].copy_from_slice(&n.to_be_bytes());
        Salt::from_bytes(bytes)
    };
    CallSalts { call: salt(1), args: salt(2), result: salt(3) }
}

/// A control body whose kind is known.
pub trait ControlBodyKind {
    fn kind(&self) -> RecordKind;
    fn bytes(&self) -> Vec<u8>;
}

impl<T: ControlBody> ControlBodyKind for T {
    fn kind(&self) -> RecordKind {
        T::KIND
    }

    fn bytes(&self) -> Vec<u8> {
        self.to_bytes()
    }
}
