//! Envelopes, in both forms, through a kernel whose tool takes every type of argument and whose
//! policy looks at them: each is answered, and the answer is on record.

use kernel_support::fault::{FaultPoint, FaultStore};
use syscap::audit::MemoryStore;
use syscap::format::{
    Amounts, Budget, Canonical, Dimension, EffectClass, Form, Grants, HomeLimits, Host, Item,
    Manifest, Name, Param, ParamType, Profile, Reason, Record, RecordKind, Refused, Resource,
    Rights, Root, RootedPath, Rule, Scope, Seq, Status, ToolGrant, ToolId, TxOutcome, json,
};
use syscap::kernel::{
    Demand, Demands, Event, Next, Parts, Permit, Plan, Ran, Registry, Request, Store as _, Ticket,
    Tool,
};
use syscap::policy::Policy;

use super::sim::tools::Look;
use super::sim::{self, Ending, Sim};
use super::sound;

pub fn envelope(data: &[u8]) {
    let (mut sim, session) = seated();
    // Something to refer to.
    let look = br#"{"tool_id": "look", "args": {"at": {"a": [1, "x"]}}}"#;
    assert_eq!(answer(&mut sim, session, look, Form::Json), None);
    let cbor = answer(&mut sim, session, data, Form::Cbor);
    let text = answer(&mut sim, session, data, Form::Json);
    if Item::check(data, Profile::DATA).is_err() {
        assert!(cbor.is_some(), "what is not canonical was run");
    }
    match json::to_cbor(data) {
        // A host may convert before the kernel does: then the answer is the same.
        Err(error) => {
            assert!(text.is_some());
            assert_eq!(answer(&mut sim, session, data, Form::NotJson(error)), text);
        }
        Ok(read) => {
            // Under its key the same call is answered as before, and no other one is.
            answer(&mut sim, session, read.as_bytes(), Form::Cbor);
        }
    }
    sim.commit();
    assert_eq!(sim.kernel.halted(), None);
    sound::verifies(&mut sim.store);
    sim.check();
}

/// Submits, runs what is to be run, and looks at the answer: why it was refused, if it was.
fn answer(sim: &mut Sim, session: Seq, received: &[u8], form: Form) -> Option<Reason> {
    let ticket = sim.submit(session, received.to_vec(), form);
    sim.commit();
    while !sim.jobs.is_empty() {
        sim.end_job(0, Ending::Runs);
    }
    sim.commit();
    assert_eq!(sim.kernel.halted(), None);
    recorded(sim, ticket)
}

fn recorded(sim: &mut Sim, ticket: Ticket) -> Option<Reason> {
    let result = sim.reply_to(ticket).expect("answered").clone();
    let (reason, receipt) = (result.reason(), result.receipt());
    assert_eq!(result.status() == Status::Ok, reason.is_none());
    assert_eq!(reason.and_then(|reason| Reason::from_code(reason.code())), reason);
    Item::check(result.to_canonical().as_bytes(), Profile::DATA).unwrap();
    let mut found = None;
    let mut each = |seq, bytes: &[u8]| {
        if seq == receipt.outcome_seq {
            found = Some(Record::decode(bytes).unwrap());
        }
        Next::More
    };
    sim.store.records(receipt.outcome_seq, &mut each).unwrap();
    let record = found.expect("a record of the answer");
    assert_eq!(record.leaf(), receipt.outcome_leaf);
    let kinds =
        [RecordKind::Outcome, RecordKind::Refusal, RecordKind::Refusals, RecordKind::Repeat];
    assert!(kinds.contains(&record.body.kind()));
    assert!(reason.is_some() || record.body.kind() != RecordKind::Refusal);
    reason
}

/// What is asked of a call: most of it runs, by one constraint or another.
const POLICY: &[u8] = br#"{"v": 1, "constraints": [
    {"id": "all", "effect": "allow", "subject": null, "when": {"op": "all", "args": []},
     "on_fail": "block", "reason": ""},
    {"id": "far", "effect": "deny", "subject": {"tool_id": "probe"}, "on_fail": "block",
     "reason": "Not there.", "when": {"op": "any", "args": [
        {"op": "within", "args": ["args.path", "shared/secret"]},
        {"op": "domain", "args": ["args.host", "far.example"]},
        {"op": "gt", "args": ["args.int", 1000]}]}},
    {"id": "less", "effect": "deny", "subject": {"tool_id": "probe"}, "on_fail": "degrade",
     "obligations": [{"type": "result_cap", "bytes": 100}], "reason": "Less.",
     "when": {"op": "eq", "args": ["args.text", "less"]}}]}"#;

/// A home with one agent, one token and one session.
fn seated() -> (Sim, Seq) {
    let mut sim = home();
    let paths = [("shared", Rights::READ), ("notes", Rights::WRITE)];
    let rules = paths.map(|(name, rights)| Rule {
        path: RootedPath::new(Root::named(name).unwrap(), [""; 0]).unwrap(),
        rights,
    });
    let grant = ToolGrant::new()
        .with("path", Scope::paths(rules).unwrap())
        .with("host", Scope::hosts(["*.example"]).unwrap())
        .with("int", Scope::ints(-5, 2_000).unwrap())
        .with("name", Scope::names(["a", "b"]).unwrap());
    let tool = |name| ToolId::new(name).unwrap();
    let budget = Budget::standard().with(Dimension::DiskWriteBytes, 1_000);
    let mut body = sim.token_body("a0", budget, 1_000_000);
    body.grants = Grants::new().with(tool("probe"), grant).with(tool("look"), ToolGrant::new());
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(&body), None));
    sim.open("a0", syscap::format::TokenBody::id_of(&body.to_bytes()));
    sim.commit();
    let session = sim.sessions[0];
    (sim, session)
}

fn home() -> Sim {
    let store = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    let mut registry = Registry::new();
    registry.add(Probe::new()).unwrap();
    registry.add_read(Look::new()).unwrap();
    let engine = Box::new(Policy::from_json(POLICY).unwrap());
    let made = (sim::Shared::default(), Parts { engine, registry });
    Sim::of(store, HomeLimits::default(), sim::Policed::ByToken, made)
}

/// A tool with an argument of each type, some of which are resources.
struct Probe {
    manifest: Manifest,
}

impl Probe {
    fn new() -> Self {
        let optional = |name: &str, kind| Param::optional(name, kind, "");
        let mut manifest = Manifest::new(ToolId::new("probe").unwrap(), EffectClass::LocalWrite)
            .alias(ToolId::new("probe.it").unwrap())
            .param(optional("any", ParamType::Any))
            .param(optional("text", ParamType::Text).within(1, 20))
            .param(
                optional("int", ParamType::Int)
                    .or(Canonical::check(vec![1], Profile::DATA).unwrap()),
            )
            .param(optional("bool", ParamType::Bool))
            .param(optional("bytes", ParamType::Bytes).within(0, 8))
            .param(optional("list", ParamType::List).within(0, 3))
            .param(optional("map", ParamType::Map))
            .param(optional("path", ParamType::Path))
            .param(optional("number", ParamType::Number))
            .param(optional("host", ParamType::Text))
            .param(optional("name", ParamType::Text))
            .param(optional("units", ParamType::Int).within(0, 50))
            .needs("path");
        manifest.hold = Amounts::ZERO.with(Dimension::WallUs, 1_000).with(Dimension::CpuUs, 500);
        Self { manifest }
    }
}

impl Tool for Probe {
    type Plan = ProbePlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<ProbePlan, Refused> {
        let bad = |field| Refused::new(Reason::BadArgument).field(field);
        let text = |name| request.args.get(name).and_then(Item::as_text);
        let mut resources = Vec::new();
        let mut demand = |name, resource| {
            resources.push(Demand { dimension: name, resource, argument: name });
        };
        if let Some(path) = text("path") {
            let (root, rest) = path.split_once('/').unwrap_or((path, ""));
            let root = Root::named(root).map_err(|_| bad("path"))?;
            let components = rest.split('/').filter(|component| !component.is_empty());
            let path = RootedPath::new(root, components).map_err(|_| bad("path"))?;
            demand("path", Resource::Path { path, needs: Rights::READ });
        }
        if let Some(host) = text("host") {
            demand("host", Resource::Host(Host::new(host).map_err(|_| bad("host"))?));
        }
        if let Some(name) = text("name") {
            demand("name", Resource::Name(Name::new(name).map_err(|_| bad("name"))?));
        }
        if let Some(int) = request.args.get("int").and_then(Item::as_int) {
            demand("int", Resource::Int(int));
        }
        let units = request.args.get("units").and_then(Item::as_uint).unwrap_or(0);
        let hold = Amounts::ZERO.with(Dimension::DiskWriteBytes, units);
        Ok(ProbePlan { demands: Demands { resources, hold }, units, args: request.args.into() })
    }
}

struct ProbePlan {
    demands: Demands,
    units: u64,
    args: Canonical,
}

impl Plan for ProbePlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn untouched(&self) -> &[&'static str] {
        if self.demands.resources.iter().any(|demand| demand.dimension == "path") {
            &[]
        } else {
            &["path"]
        }
    }

    fn run(self, mut permit: Permit<'_, Self>) -> Ran<'_> {
        permit.meter(Dimension::DiskWriteBytes, self.units).unwrap();
        permit.ok(self.args, TxOutcome::Committed)
    }
}
