//! The kernel alone, driven by hand: no runtime, no files, no threads. Run it by
//! `cargo run --package syscap-kernel --example drive`.
//!
//! The order is always the same. A home is made, and booted. Its tools and its policy come on
//! record, signed. A token is issued, signed, and a session is opened with it. Then a call is
//! submitted: its intent must be durable before the kernel gives its job away, and its outcome
//! before the answer.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "an example")]

use std::collections::BTreeMap;

use ed25519_dalek::{Signer as _, SigningKey};
use syscap_format::{
    AgentId, Budget, CONTROL_CONTEXT, CallSalts, Canonical, Control, ControlBody, Decision,
    Durability, EffectClass, EngineIdentity, Form, Grants, HomeLimits, Manifest, MapBuilder,
    Object, ObjectId, Param, ParamType, PolicyChange, PublicKey, Refused, Roles, Salt, Seq,
    Signature, Signed, Source, TOKEN_CONTEXT, Token, TokenBody, TokenFlags, TokenId, ToolGrant,
    ToolId, ToolResult, ToolsChange, TxOutcome, UnixMillis, Verdict, preimage,
};
use syscap_kernel::{
    Ack, Batch, Demands, Effect, Event, Halt, Kernel, Measured, NewHome, Next, Parts, Permit, Plan,
    PolicyEngine, Question, Ran, Reading, Registry, Request, Room, Store, StoreError, Submit,
    Ticket, Tool, ToolsDelta,
};

/// A tool whose effect is a line on the terminal.
struct Say(Manifest);

/// A call of it, planned: what it would touch, and what to say.
struct SayPlan(Demands, String);

impl Tool for Say {
    type Plan = SayPlan;

    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn plan(&self, request: &Request<'_>) -> Result<SayPlan, Refused> {
        let word = request.args.get("word").and_then(|word| word.as_text()).unwrap_or("nothing");
        Ok(SayPlan(Demands::default(), word.to_owned()))
    }
}

impl Plan for SayPlan {
    fn demands(&self) -> &Demands {
        &self.0
    }

    /// The permit is the kernel's leave: there is no other way to make a [`Ran`].
    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        println!("the tool says: {}", self.1);
        permit.ok(MapBuilder::new().text("text", &self.1).finish(), TxOutcome::Committed)
    }
}

/// A policy that lets through whatever the token grants.
struct Granted;

impl PolicyEngine for Granted {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from("granted"), version: 1 }
    }

    fn document(&self) -> Vec<u8> {
        Canonical::null().into_bytes()
    }

    fn decide(&self, _: &Question<'_>) -> Decision {
        Decision::plain(Verdict::Allow)
    }
}

/// A log that ends with the process. `syscap-audit` has stores that don't, and a kit that proves
/// any other.
#[derive(Default)]
struct Log {
    records: Vec<Vec<u8>>,
    objects: BTreeMap<ObjectId, Object>,
    vault: BTreeMap<Seq, Vec<u8>>,
}

impl Store for Log {
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.records.extend(batch.links().iter().map(|link| link.bytes.to_vec()));
        let objects = batch.objects().iter().map(|object| (object.id, object.clone()));
        self.objects.extend(objects);
        self.vault.extend(batch.vault().iter().map(|row| (row.seq, row.row.clone())));
        Ok(())
    }

    fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError> {
        let numbered = (0..).map(Seq::new).zip(&self.records);
        for (seq, record) in numbered.skip_while(|(seq, _)| *seq < from) {
            if each(seq, record) == Next::Enough {
                break;
            }
        }
        Ok(())
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        Ok(self.objects.get(id).cloned())
    }

    fn vault(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.vault.get(&seq).cloned())
    }

    fn room(&mut self) -> Result<Room, StoreError> {
        Ok(Room::Enough)
    }
}

/// What drives the kernel: it has the store, the keys and the clocks, which the kernel has not.
struct Host {
    kernel: Kernel,
    log: Log,
    key: SigningKey,
}

/// What an event came to.
enum Came {
    Ack(Result<Ack, Refused>),
    Answer(Box<ToolResult>),
}

impl Host {
    /// A home with one tool and one policy. One key has all roles here; in earnest each has its
    /// own.
    fn new() -> Result<Self, Halt> {
        let key = SigningKey::from_bytes(&[7; 32]);
        let mut registry = Registry::new();
        let manifest = Manifest::new(ToolId::new("say").expect("a name"), EffectClass::LocalWrite)
            .param(Param::required("word", ParamType::Text, "What to say."));
        registry.add(Say(manifest)).expect("there is no other tool");
        let new = NewHome {
            // A host draws these at random.
            entropy: [1; 32],
            origin: Box::from("an example"),
            limits: HomeLimits::default(),
            durability: Durability::Memory,
            roles: Roles::new([public(&key); 5]),
            recovery: None,
        };
        let parts = Parts { engine: Box::new(Granted), registry };
        let mut host =
            Self { kernel: Kernel::create(new, parts, clocks())?, log: Log::default(), key };
        host.commit()?;
        Ok(host)
    }

    /// Hands an event in, and carries out what the kernel asks for until there is nothing more:
    /// batches to be made durable, jobs to be run, and the answer.
    fn drive(&mut self, event: Event) -> Result<Option<Came>, Halt> {
        self.kernel.handle(event, clocks());
        let mut came = None;
        loop {
            self.commit()?;
            match self.kernel.poll_effect() {
                None => break Ok(came),
                Some(Effect::Run(_, job)) => {
                    let ran = job.run();
                    self.kernel.handle(Event::Ran(ran, Measured::default()), clocks());
                }
                Some(Effect::Ack(_, ack)) => came = Some(Came::Ack(ack)),
                Some(Effect::Reply(_, answer)) => came = Some(Came::Answer(answer)),
                // An earlier result, which the call refers to by `$ref` or asks for again.
                Some(Effect::Fetch(ticket, fetching)) => {
                    let fetched = fetching.run(&mut self.log)?;
                    self.kernel.handle(Event::Fetched(ticket, fetched), clocks());
                }
                // Links that a path goes through: a tool's own code follows them.
                Some(Effect::Resolve(ticket, links)) => {
                    self.kernel.handle(Event::Resolved(ticket, links.run()), clocks());
                }
                // What a call would change, before a person is asked about it.
                Some(Effect::Inspect(ticket, what)) => {
                    self.kernel.handle(Event::Inspected(ticket, Some(what.run())), clocks());
                }
            }
        }
    }

    /// What the kernel says of an event that is not a call.
    fn ask(&mut self, event: Event) -> Result<Ack, Refused> {
        match self.drive(event) {
            Ok(Some(Came::Ack(ack))) => ack,
            _ => panic!("the kernel halted: {:?}", self.kernel.halted()),
        }
    }

    fn call(&mut self, session: Seq, envelope: Canonical) -> ToolResult {
        let salt = |byte| Salt::from_bytes([byte; 32]);
        let submit = Submit {
            proof: None,
            unasked: false,
            ticket: Ticket(0),
            session,
            received: envelope.into_bytes(),
            form: Form::Cbor,
            source: Source::Agent,
            // A host draws these at random: by them a record tells nothing of what it is about.
            salts: CallSalts { call: salt(1), args: salt(2), result: salt(3) },
        };
        match self.drive(Event::Submit(submit)) {
            Ok(Some(Came::Answer(answer))) => *answer,
            _ => panic!("the kernel halted: {:?}", self.kernel.halted()),
        }
    }

    fn commit(&mut self) -> Result<(), Halt> {
        while let Some(batch) = self.kernel.take_batch() {
            let stored = batch.commit(&mut self.log)?;
            self.kernel.handle(Event::Stored(stored), clocks());
        }
        Ok(())
    }

    /// A control event, signed over the head of the log as it is.
    fn signed<B: ControlBody>(&self, body: &B) -> Control {
        let (key, body) = (public(&self.key), body.to_bytes());
        let (home, head) = (self.kernel.home(), self.kernel.durable().expect("it has begun"));
        let counter = self.kernel.counter(&key) + 1;
        let message = Control::message(&home, &head, &key, counter, B::KIND, &body);
        let signature = self.sign(&preimage(CONTROL_CONTEXT, &message));
        Control::by_one(head, body, Signed { key, counter, signature })
    }

    /// A token for an agent that may call one tool, and its id.
    fn token(&self, agent: &str, tool: &str) -> Vec<u8> {
        let (home, now, head) = (self.kernel.home(), self.kernel.now(), self.kernel.durable());
        let body = TokenBody {
            version: 2,
            nonce: [3; 16],
            issuer: public(&self.key),
            holder: None,
            agent: AgentId::new(agent).expect("a name"),
            parent: None,
            depth: 0,
            depth_max: 0,
            not_before: now,
            expires: now.plus(60_000),
            epoch: 0,
            grants: Grants::new().with(ToolId::new(tool).expect("a name"), ToolGrant::new()),
            budget: Budget::standard(),
            caveats: Vec::new(),
            policy: None,
            flags: TokenFlags::default(),
            ext: MapBuilder::new().finish(),
            audience: home,
            head,
            renews: None,
        }
        .to_bytes();
        Token::wire(&body, &self.sign(&preimage(TOKEN_CONTEXT, &body)))
    }

    fn sign(&self, message: &[u8]) -> Signature {
        Signature::from_bytes(self.key.sign(message).to_bytes())
    }
}

fn public(key: &SigningKey) -> PublicKey {
    PublicKey::new(key.verifying_key().to_bytes()).expect("a key")
}

/// A host reads its clocks.
fn clocks() -> Reading {
    Reading { wall: UnixMillis::new(1_800_000_000_000), boottime_ms: 1_000 }
}

/// The order in which a home comes to take calls.
fn ready(host: &mut Host) -> Result<(Seq, TokenId), Refused> {
    let (software, durability) = (Box::from("example"), Durability::Memory);
    host.ask(Event::Boot {
        ticket: Ticket(0),
        id: [2; 16],
        software,
        durability,
        probed: Vec::new(),
    })?;
    let tools = host.signed(&ToolsChange { tools: host.kernel.registry_hash() });
    host.ask(Event::Tools(Ticket(0), tools, None, ToolsDelta::default()))?;
    let policy = PolicyChange { policy: host.kernel.engine_hash(), shadow: None };
    let policy = host.signed(&policy);
    host.ask(Event::Policy(Ticket(0), policy, None, Vec::new(), None))?;
    let wire = host.token("ada", "say");
    let Ack::Token(token) = host.ask(Event::Issue(Ticket(0), wire, None))? else {
        panic!("a token was asked for");
    };
    let ada = AgentId::new("ada").expect("a name");
    let Ack::Session(opened) = host.ask(Event::OpenSession(Ticket(0), ada, token, None))? else {
        panic!("a session was asked for");
    };
    Ok((opened.session, token))
}

fn main() {
    let mut host = Host::new().expect("a new home");
    let (session, token) = ready(&mut host).expect("everything is in order");
    let args = MapBuilder::new().text("word", "hello").finish();
    let envelope = MapBuilder::new().text("tool_id", "say").item("args", args.item()).finish();
    let answer = host.call(session, envelope);
    println!("answer: {:?}, record {}", answer.text(), answer.receipt().outcome_seq);
    assert_eq!(answer.text().ok(), Some("hello"));
    // What one call brought is an argument of the next, by its record.
    let path = Canonical::list([Canonical::text("text")].into_iter());
    let record = MapBuilder::new().uint("record", answer.receipt().outcome_seq.get());
    let reference = record.item("path", path.item()).finish();
    let word = MapBuilder::new().item("$ref", reference.item()).finish();
    let again = MapBuilder::new().item("word", word.item()).finish();
    let envelope = MapBuilder::new().text("tool_id", "say").item("args", again.item()).finish();
    assert_eq!(host.call(session, envelope).text().ok(), Some("hello"));
    // What was not granted is refused, and that too is on record.
    let other = MapBuilder::new().text("tool_id", "shout").item("args", args.item()).finish();
    let refused = host.call(session, other);
    println!("refused: {:?}", refused.reason().map(|reason| reason.name()));
    assert_eq!(refused.reason().map(|reason| reason.name()), Some("unknown_tool"));
    let view = host.kernel.token(&token).expect("it was issued");
    println!("used: {:?}; {} records", view.used, host.log.records.len());
    assert_eq!(host.log.records.len(), 11, "genesis, boot, tools, policy, issue, session, ..");
}
