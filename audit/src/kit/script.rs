//! A real kernel that writes a log by a script: the same steps make the same batches, byte for
//! byte, whatever store they go to. Only a kernel makes batches, so the kit has one.

use ed25519_dalek::{Signer as _, SigningKey};
use syscap_format::{
    AgentId, Budget, CONTROL_CONTEXT, CallSalts, Control, ControlBody, Dimension, Durability, Form,
    Grants, HomeLimits, MapBuilder, Object, PolicyChange, PublicKey, RedactBody, Role, Roles, Salt,
    Seq, Signature, Signed, Source, Status, TOKEN_CONTEXT, Token, TokenBody, TokenFlags, ToolGrant,
    ToolId, ToolsChange, UnixMillis, VaultWrite, preimage,
};
use syscap_kernel::{
    Ack, Batch, Effect, Event, Kernel, Link, Measured, NewHome, Parts, Reading, Registry, Store,
    Submit, Ticket, ToolsDelta, WithRows, object_of,
};

use super::found::Found;
use super::tool::{AllowAll, FILL, Fill};

const START_MS: u64 = 1_800_000_000_000;
const AGENT: &str = "kit";
/// More than any script makes.
const CALLS: u64 = 1 << 40;

/// The contents of a script's next batch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The first record.
    Genesis,
    /// Boot, tools, policy, a token and a session.
    Setup,
    /// A policy of a number and so many bytes; that of the setup has number 0 and none.
    Policy(u64, usize),
    /// So many calls, each with a result of so many bytes.
    Calls(usize, usize),
    /// Both: a policy of the number, and a few calls.
    Mixed(u64),
}

impl Step {
    /// The script's step of a number.
    pub(super) fn of(number: usize) -> Self {
        match number {
            0 => Self::Genesis,
            1 => Self::Setup,
            2 => Self::Calls(1, 0),
            _ => Self::Calls((number % 3).saturating_add(1), number.saturating_mul(997) % 20_000),
        }
    }
}

/// The contents of a batch.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) links: Vec<Link>,
    pub(super) objects: Vec<Object>,
    pub(super) vault: Vec<VaultWrite>,
}

impl Kept {
    pub(super) fn of(batch: &Batch) -> Self {
        let (links, objects) = (batch.links().to_vec(), batch.objects().to_vec());
        Self { links, objects, vault: batch.vault().to_vec() }
    }
}

/// A kernel on its way through the script.
pub(super) struct Script {
    kernel: Kernel,
    session: Option<Seq>,
    tickets: u64,
    /// How many batches were taken.
    steps: usize,
}

impl Script {
    /// A new home. Its seed makes it another one than those of other seeds; its name makes its
    /// first record longer.
    pub(super) fn begin(seed: u8, name: &str) -> Result<Self, Found> {
        let roles = [Role::Issuer, Role::Policy, Role::Revoker, Role::Approver, Role::Operator];
        let [issuer, policy, revoker, approver, operator] = roles.map(public);
        let keys = [issuer?, policy?, revoker?, approver?, operator?];
        let new = NewHome {
            entropy: [seed; 32],
            origin: Box::from(name),
            limits: HomeLimits::default(),
            durability: Durability::Full,
            roles: Roles::new(keys),
            recovery: None,
        };
        let mut registry = Registry::new();
        let fill = Fill::new().ok_or(Found::Script)?;
        registry.add_read(fill).map_err(|_| Found::Script)?;
        let parts = Parts { engine: Box::new(AllowAll::of(0, 0)), registry };
        let kernel = Kernel::create(new, parts, reading())?;
        Ok(Self { kernel, session: None, tickets: 0, steps: 0 })
    }

    /// The next batch, which is not committed yet. The next step needs it to be committed.
    pub(super) fn propose(&mut self) -> Result<Batch, Found> {
        let step = Step::of(self.steps);
        self.take(step)
    }

    /// Commits the next batch.
    pub(super) fn next(&mut self, store: &mut dyn Store) -> Result<Kept, Found> {
        let step = Step::of(self.steps);
        self.commit(step, store)
    }

    /// Commits a batch of one step.
    pub(super) fn commit(&mut self, step: Step, store: &mut dyn Store) -> Result<Kept, Found> {
        let batch = self.take(step)?;
        let kept = Kept::of(&batch);
        let stored = batch.commit(store)?;
        self.handle(Event::Stored(stored))?;
        Ok(kept)
    }

    /// Commits a batch that erases rows.
    pub(super) fn erase(&mut self, records: &[Seq], store: &mut dyn Store) -> Result<Kept, Found> {
        let rows = WithRows::find(store, records)?.map_err(Found::Vault)?;
        let body = RedactBody { records: records.to_vec(), cause: None };
        let (ticket, control) = (self.ticket(), self.signed(&body)?);
        self.handle(Event::Redact(ticket, control, None, rows, None))?;
        let batch = self.kernel.take_batch().ok_or(Found::Script)?;
        let kept = Kept::of(&batch);
        let stored = batch.commit(store)?;
        self.handle(Event::Stored(stored))?;
        Ok(kept)
    }

    pub(super) fn take(&mut self, step: Step) -> Result<Batch, Found> {
        match step {
            Step::Genesis => {}
            Step::Setup => self.set_up()?,
            Step::Policy(number, bytes) => self.set_policy(AllowAll::of(number, bytes))?,
            Step::Calls(calls, bytes) => {
                (0..calls).try_for_each(|_| self.call(bytes))?;
            }
            Step::Mixed(number) => {
                self.set_policy(AllowAll::of(number, 2_000))?;
                (0..3).try_for_each(|call| self.call(call))?;
            }
        }
        self.steps = self.steps.saturating_add(1);
        self.kernel.take_batch().ok_or(Found::Script)
    }

    fn set_up(&mut self) -> Result<(), Found> {
        let ticket = self.ticket();
        let software = Box::from("syscap-kit");
        self.handle(Event::Boot {
            ticket,
            id: [1; 16],
            software,
            durability: Durability::Full,
            probed: Vec::new(),
        })?;
        let tools = self.kernel.registry_hash();
        let (ticket, control) = (self.ticket(), self.signed(&ToolsChange { tools })?);
        self.handle(Event::Tools(ticket, control, None, ToolsDelta::default()))?;
        self.set_policy(AllowAll::of(0, 0))?;
        let (agent, body) = self.token()?;
        let signature = key(Role::Issuer).sign(&preimage(TOKEN_CONTEXT, &body)).to_bytes();
        let wire = Token::wire(&body, &Signature::from_bytes(signature));
        let ticket = self.ticket();
        self.handle(Event::Issue(ticket, wire, None))?;
        let ticket = self.ticket();
        self.handle(Event::OpenSession(ticket, agent, TokenBody::id_of(&body), None))
    }

    fn set_policy(&mut self, engine: AllowAll) -> Result<(), Found> {
        let policy = object_of(&engine).hash();
        let control = self.signed(&PolicyChange { policy, shadow: None })?;
        let ticket = self.ticket();
        self.handle(Event::Policy(ticket, control, None, vec![Box::new(engine)], None))
    }

    fn call(&mut self, bytes: usize) -> Result<(), Found> {
        let (session, ticket) = (self.session.ok_or(Found::Script)?, self.ticket());
        let received = format!(r#"{{"tool_id":"{FILL}","args":{{"bytes":{bytes}}}}}"#).into_bytes();
        let mut salt = [0; 32];
        if let Some(first) = salt.first_chunk_mut() {
            *first = self.tickets.to_le_bytes();
        }
        let salt = Salt::from_bytes(salt);
        let salts = CallSalts { call: salt, args: salt, result: salt };
        let form = Form::Json;
        let source = Source::Agent;
        self.handle(Event::Submit(Submit {
            ticket,
            session,
            received,
            form,
            source,
            salts,
            proof: None,
            unasked: false,
        }))
    }

    /// One event, and all that the kernel asks for besides a commit.
    fn handle(&mut self, event: Event) -> Result<(), Found> {
        self.kernel.handle(event, reading());
        while let Some(effect) = self.kernel.poll_effect() {
            match effect {
                Effect::Run(_, job) => {
                    self.kernel.handle(Event::Ran(job.run(), Measured::default()), reading());
                }
                Effect::Ack(_, Ok(Ack::Session(opened))) => self.session = Some(opened.session),
                Effect::Ack(_, Ok(_)) => {}
                Effect::Reply(_, result) if result.status() == Status::Ok => {}
                Effect::Ack(..)
                | Effect::Reply(..)
                | Effect::Fetch(..)
                | Effect::Resolve(..)
                | Effect::Inspect(..) => return Err(Found::Script),
            }
        }
        self.kernel.halted().map_or(Ok(()), |halt| Err(Found::from(halt.clone())))
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets = self.tickets.saturating_add(1);
        Ticket(self.tickets)
    }

    fn signed<B: ControlBody>(&self, body: &B) -> Result<Control, Found> {
        let body = body.to_bytes();
        let role = self.kernel.limits().role_of(B::KIND, &body).ok_or(Found::Script)?;
        let (key, signer) = (public(role)?, key(role));
        let counter = self.kernel.counter(&key).saturating_add(1);
        let (home, head) = (self.kernel.home(), self.kernel.durable().ok_or(Found::Script)?);
        let message = Control::message(&home, &head, &key, counter, B::KIND, &body);
        let signature = signer.sign(&preimage(CONTROL_CONTEXT, &message)).to_bytes();
        let signature = Signature::from_bytes(signature);
        Ok(Control::by_one(head, body, Signed { key, counter, signature }))
    }

    fn token(&self) -> Result<(AgentId, Vec<u8>), Found> {
        let agent = AgentId::new(AGENT).ok_or(Found::Script)?;
        let fill = ToolId::new(FILL).ok_or(Found::Script)?;
        let budget = Budget::none().with(Dimension::Calls, CALLS).with(Dimension::Concurrent, 1);
        let body = TokenBody {
            version: 2,
            head: self.kernel.durable(),
            renews: None,
            nonce: [1; 16],
            issuer: public(Role::Issuer)?,
            holder: None,
            agent: agent.clone(),
            parent: None,
            depth: 0,
            depth_max: 0,
            not_before: reading().wall,
            expires: reading().wall.plus(3_600_000),
            epoch: 0,
            grants: Grants::new().with(fill, ToolGrant::new()),
            budget,
            caveats: Vec::new(),
            policy: None,
            flags: TokenFlags::default(),
            ext: MapBuilder::new().finish(),
            audience: self.kernel.home(),
        };
        Ok((agent, body.to_bytes()))
    }
}

/// The script's clock stands still.
const fn reading() -> Reading {
    Reading { wall: UnixMillis::new(START_MS), boottime_ms: 0 }
}

fn key(role: Role) -> SigningKey {
    SigningKey::from_bytes(&[u8::try_from(role.code()).unwrap_or(0); 32])
}

fn public(role: Role) -> Result<PublicKey, Found> {
    PublicKey::new(key(role).verifying_key().to_bytes()).map_err(|_| Found::Script)
}
