//! The state image of a home in which something happened.

use syscap_audit::MemoryStore;
use syscap_format::{
    Amounts, ControlBody, Dimension, EffectClass, Form, Freeze, FreezeChange, FreezeTarget, Grants,
    KeyChange, Manifest, MapBuilder, PolicyChange, Refused, Role, RoleSet, Seq, Source, Status,
    TOKEN_CONTEXT, Token, TokenFlags, TokenId, ToolGrant, ToolId, ToolsChange, TxOutcome,
};
use syscap_kernel::{
    Ack, Anchor, Demands, Effect, Event, Kernel, Lost, Measured, Parts, Permit, Plan, Proposal,
    Ran, Registry, Request, Submit, Ticket, Tool, ToolsDelta,
};
use syscap_policy::WithinToken;

use crate::records::changes;
use crate::world::{
    RECOVERY, REVOKER_TOO, event, opened, proof, public, reading, salts, seed, signed, token_body,
};

/// A tool that does nothing, and says that it has.
struct Keep {
    manifest: Manifest,
}

impl Keep {
    fn new() -> Self {
        let mut manifest = Manifest::new(ToolId::new("keep").unwrap(), EffectClass::LocalWrite);
        manifest.hold = Amounts::ZERO.with(Dimension::WallUs, 1_000).with(Dimension::CpuUs, 500);
        Self { manifest }
    }
}

impl Tool for Keep {
    type Plan = Nothing;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, _: &Request<'_>) -> Result<Nothing, Refused> {
        Ok(Nothing(Demands::default()))
    }
}

struct Nothing(Demands);

impl Plan for Nothing {
    fn demands(&self) -> &Demands {
        &self.0
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        permit.ok(MapBuilder::new().finish(), TxOutcome::Committed)
    }
}

fn registry() -> Registry {
    let mut registry = Registry::new();
    registry.add(Keep::new()).unwrap();
    registry
}

/// A kernel on a store in memory, a millisecond later with each event.
struct Host {
    kernel: Kernel,
    store: MemoryStore,
    clock: u64,
}

impl Host {
    /// Brings an event before the kernel and makes durable what comes of it.
    fn event(&mut self, event: Event) -> Vec<Effect> {
        self.clock += 1;
        self.kernel.handle(event, reading(self.clock));
        self.commit()
    }

    fn commit(&mut self) -> Vec<Effect> {
        let Some(batch) = self.kernel.take_batch() else { return Vec::new() };
        let stored = batch.commit(&mut self.store).unwrap();
        self.kernel.handle(Event::Stored(stored), reading(self.clock));
        std::iter::from_fn(|| self.kernel.poll_effect()).collect()
    }

    fn acknowledged(&mut self, event: Event) -> Ack {
        let effects = self.event(event);
        let [Effect::Ack(_, Ok(ack))] = &effects[..] else { panic!("{effects:?}") };
        ack.clone()
    }

    fn signed<B: ControlBody>(&self, body: &B) -> syscap_format::Control {
        let head = self.kernel.durable().unwrap();
        let role = self.kernel.limits().role_of(B::KIND, &body.to_bytes());
        event(&self.kernel.home(), head, body, &[seed(role.unwrap())])
    }

    fn ticket(&self) -> Ticket {
        Ticket(100 + self.clock)
    }

    fn token(&mut self) -> TokenId {
        let grants = Grants::new().with(ToolId::new("keep").unwrap(), ToolGrant::new());
        let (home, head) = (self.kernel.home(), self.kernel.durable().unwrap());
        let body = token_body(home, head, grants, TokenFlags::default()).to_bytes();
        let wire = Token::wire(&body, &signed(seed(Role::Issuer), TOKEN_CONTEXT, &body));
        match self.acknowledged(Event::Issue(self.ticket(), wire, None)) {
            Ack::Token(token) => token,
            ack => panic!("{ack:?}"),
        }
    }

    fn call(&mut self, session: Seq, tool: &str, key: &str) -> Vec<Effect> {
        let received =
            format!(r#"{{"tool_id": "{tool}", "args": {{}}, "idempotency_key": "{key}"}}"#);
        self.event(Event::Submit(Submit {
            proof: None,
            unasked: false,
            ticket: self.ticket(),
            session,
            received: received.into_bytes(),
            source: syscap_format::Source::Agent,
            form: Form::Json,
            salts: salts(),
        }))
    }
}

fn happened() -> Host {
    let kernel = opened(registry());
    let mut host = Host { kernel, store: MemoryStore::new(), clock: 1 };
    host.commit();
    let tools = host.signed(&ToolsChange { tools: host.kernel.registry_hash() });
    host.acknowledged(Event::Tools(host.ticket(), tools, None, ToolsDelta::default()));
    let change = PolicyChange { policy: host.kernel.engine_hash(), shadow: None };
    let policy = host.signed(&change);
    host.acknowledged(Event::Policy(host.ticket(), policy, None, Vec::new(), None));
    let token = host.token();
    let agent = crate::world::agent();
    let Ack::Session(opened) =
        host.acknowledged(Event::OpenSession(host.ticket(), agent, token, None))
    else {
        panic!("no session");
    };
    let session = opened.session;
    let freeze = Freeze {
        target: FreezeTarget::Agent,
        name: Box::from("team/writer"),
        change: FreezeChange::Freeze,
    };
    let control = host.signed(&freeze);
    host.acknowledged(Event::Control(host.ticket(), Freeze::KIND, control, None, None));
    let proposal = Proposal {
        ticket: host.ticket(),
        session,
        writer: Source::User,
        base: None,
        inputs: Vec::new(),
        changes: changes(),
        salts: salts(),
    };
    host.acknowledged(Event::Propose(Box::new(proposal)));
    // One call runs, one is given up, one is still open, one is refused.
    let Some(Effect::Run(_, job)) = host.call(session, "keep", "turn-1:1").pop() else {
        panic!("no job");
    };
    let measured = Measured { cpu_us: 20, wall_us: 30 };
    let effects = host.event(Event::Ran(job.run(), measured));
    let [Effect::Reply(_, result)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(result.status(), Status::Ok);
    let Some(Effect::Run(_, late)) = host.call(session, "keep", "turn-1:2").pop() else {
        panic!("no job");
    };
    drop(host.event(Event::Lost(late.intent(), Lost::TimedOut, measured)));
    assert!(matches!(host.call(session, "keep", "turn-1:3")[..], [Effect::Run(..)]));
    assert!(matches!(host.call(session, "lose", "turn-1:4")[..], [Effect::Reply(..)]));
    let keys = [seed(Role::Revoker), REVOKER_TOO].map(public);
    let proofs = vec![proof(&host.kernel.home(), Role::Revoker, REVOKER_TOO)];
    let set = RoleSet::any_of(Role::Revoker, keys);
    let (home, head) = (host.kernel.home(), host.kernel.durable().unwrap());
    let control = event(&home, head, &KeyChange { set, proofs, cut_off: None }, &[RECOVERY]);
    host.acknowledged(Event::Control(host.ticket(), KeyChange::KIND, control, None, None));
    host
}

/// The image and its digest, which the log alone makes again.
pub(crate) fn image() -> (Vec<u8>, syscap_format::StateHash) {
    let mut host = happened();
    let (image, digest) = (host.kernel.state_image(), host.kernel.state_hash());
    let parts = Parts { engine: Box::new(WithinToken), registry: registry() };
    let again = Kernel::open(&mut host.store, parts, &Anchor::default()).expect("opens");
    assert_eq!(again.state_image(), image);
    (image, digest)
}
