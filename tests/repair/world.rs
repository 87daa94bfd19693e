//! A home with a policy, five tools beside the built-in ones, and strings that must never leak.

use std::{fs, path::PathBuf};

use serde_json::Value;
use syscap::Written;
use syscap::format::{
    Canonical, Durability, EffectClass, Host, Item, Manifest, MapBuilder, Name, ObligationKind,
    Param, ParamType, PortRange, Refused, Resource, Rights, Scope, Source, TxOutcome, json,
};
use syscap::kernel::{Demand, Demands, Permit, Plan, Ran, Request, Tool};
use syscap::policy::Policy;
use syscap::prelude::*;

/// What stands in everything that the caller must not be told.
pub(crate) const MARK: &str = "leakmark";

/// A tool that does nothing but answer.
struct Act {
    manifest: Manifest,
    demands: fn(&Request<'_>) -> Vec<Demand>,
    result: fn(Item<'_>) -> Canonical,
}

struct ActPlan {
    demands: Demands,
    result: Canonical,
}

impl Tool for Act {
    type Plan = ActPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<ActPlan, Refused> {
        let resources = (self.demands)(request);
        Ok(ActPlan {
            demands: Demands { resources, ..Demands::default() },
            result: (self.result)(request.args),
        })
    }
}

impl Plan for ActPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        permit.ok(self.result, TxOutcome::Committed)
    }
}

/// An item as JSON.
pub(crate) fn shown(item: Item<'_>) -> Value {
    serde_json::from_str(&json::from_data(item)).unwrap()
}

fn nothing(_: &Request<'_>) -> Vec<Demand> {
    Vec::new()
}

fn done(_: Item<'_>) -> Canonical {
    Canonical::text("done")
}

/// As many hits of 20 bytes as are asked for.
fn hits(args: Item<'_>) -> Canonical {
    let limit = args.get("limit").and_then(Item::as_uint).unwrap();
    let hits = (0..limit).map(|n| Canonical::text(&format!("a hit, number {n:05}")));
    MapBuilder::new()
        .item("hits", Canonical::list(hits.collect::<Vec<_>>().into_iter()).item())
        .finish()
}

fn text_of<'a>(request: &Request<'a>, name: &str) -> &'a str {
    request.args.get(name).and_then(Item::as_text).unwrap_or_default()
}

/// The host and the port of a URL.
fn reached(request: &Request<'_>) -> Vec<Demand> {
    let url = text_of(request, "url");
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', ':', '?']).next().unwrap_or_default();
    let port = request.args.get("port").and_then(Item::as_uint).unwrap_or(443);
    let host = Host::new(host).map(|host| Demand {
        dimension: "host",
        resource: Resource::Host(host),
        argument: "url",
    });
    let port = u16::try_from(port).map(|port| Demand {
        dimension: "port",
        resource: Resource::Port(port),
        argument: "port",
    });
    [host.ok(), port.ok()].into_iter().flatten().collect()
}

fn paid(request: &Request<'_>) -> Vec<Demand> {
    let amount = request.args.get("amount").and_then(Item::as_int).unwrap_or_default();
    let account = Name::new(text_of(request, "account")).map(|name| Demand {
        dimension: "account",
        resource: Resource::Name(name),
        argument: "account",
    });
    let amount =
        Demand { dimension: "amount", resource: Resource::Int(amount), argument: "amount" };
    account.ok().into_iter().chain([amount]).collect()
}

fn tools() -> Vec<Act> {
    use EffectClass::{ExternalRead, ExternalWrite, LocalWrite, Read};
    use ParamType::{Any, Bool, Bytes, Int, List, Map, Number, Text};
    let manifest = |name, effect| Manifest::new(ToolId::new(name).unwrap(), effect);
    let mail = manifest("mail.send", ExternalWrite)
        .param(Param::required("to", Text, "Whom.").within(3, 64))
        .param(Param::optional("subject", Text, "What about.").within(1, 40))
        .param(Param::optional("body", Text, "What."))
        .param(Param::optional("cc", List, "Who else.").within(1, 3))
        .param(Param::optional("bcc", Text, "Who else, unseen."))
        .param(Param::optional("priority", Int, "How soon.").within(1, 5))
        .param(Param::optional("options", Map, "More."));
    let fetch = manifest("web.fetch", ExternalRead)
        .param(Param::required("url", Text, "What."))
        .param(Param::optional("port", Int, "Where.").within(1, 65_535))
        .needs("host")
        .needs("port");
    let search = manifest("search", Read)
        .param(Param::required("query", Text, "What for.").within(1, 200))
        .param(Param::optional("limit", Int, "How many.").within(1, 1_000).or(ten()))
        .param(Param::optional("exact", Bool, "As it stands."))
        .param(Param::optional("weight", Number, "How much."))
        .honours(ObligationKind::ResultCap);
    let pay = manifest("pay", ExternalWrite)
        .param(Param::required("account", Text, "To whom."))
        .param(Param::required("amount", Int, "How much."))
        .needs("account")
        .needs("amount");
    let store = manifest("store", LocalWrite)
        .param(Param::required("key", Text, "Under what name.").within(1, 16))
        .param(Param::optional("data", Bytes, "What."))
        .param(Param::optional("tags", List, "Words for it.").within(1, 3))
        .param(Param::optional("meta", Any, "What else."));
    let act = |manifest, demands, result| Act { manifest, demands, result };
    vec![
        act(mail, nothing, done),
        act(fetch, reached, done),
        act(search, nothing, hits),
        act(pay, paid, done),
        act(store, nothing, done),
    ]
}

fn ten() -> Canonical {
    let mut encoder = syscap::format::Encoder::new();
    encoder.uint(10);
    Canonical::check(encoder.into_bytes(), syscap::format::Profile::DATA).unwrap()
}

/// A home, and a session of the agent `a`.
pub(crate) struct World {
    pub(crate) runtime: Runtime,
    pub(crate) session: Session,
    folder: tempfile::TempDir,
}

/// Denies that never apply to the cases, and whose constants nobody must be told.
const SECRETS: &str = r#"
{"id": "secret.to", "effect": "deny", "subject": {"tool_id": "mail.send"}, "when":
    {"op": "all", "args": [{"op": "exists", "args": ["args.to"]},
        {"op": "in", "args": ["args.to", ["mallory@example.com", "leakmark@example.org"]]}]},
    "on_fail": "block", "reason": "Not to them."},
{"id": "secret.path", "effect": "deny", "subject": {"tool_id": "fs.write"}, "when":
    {"op": "within", "args": ["args.path", "workspace/leakmark"]},
    "on_fail": "block", "reason": "Not there."},
{"id": "secret.url", "effect": "deny", "subject": {"tool_id": "web.fetch"}, "when":
    {"op": "domain", "args": ["args.url", "leakmark.example"]},
    "on_fail": "block", "reason": "Not them."},
{"id": "secret.amount", "effect": "deny", "subject": {"tool_id": "pay"}, "when":
    {"op": "any", "args": [{"op": "ge", "args": ["args.amount", 900]},
        {"op": "eq", "args": ["args.account", "leakmark"]}]},
    "on_fail": "block", "reason": "Not so much."},
{"id": "secret.agent", "effect": "deny", "subject": null, "when":
    {"op": "within", "args": ["call.agent", "leakmark/team"]},
    "on_fail": "block", "reason": "Not that team."},
{"id": "secret.fact", "effect": "deny", "subject": null, "when":
    {"op": "all", "args": [{"op": "exists", "args": ["fact.code"]},
        {"op": "eq", "args": ["fact.code", "leakmark-of-policy"]}]},
    "on_fail": "block", "reason": "Not now."}"#;

/// One allow for a tool; `when` is a condition.
fn allow(tool: &str, when: &str) -> String {
    format!(
        r#"{{"id": "may.{tool}", "effect": "allow", "subject": {{"tool_id": "{tool}"}},
            "when": {when}, "on_fail": "block", "reason": "As the author says."}}"#
    )
}

/// Every call of a tool.
fn any(tool: &str) -> String {
    allow(tool, r#"{"op": "all", "args": []}"#)
}

const TOOLS: [&str; 11] = [
    "echo",
    "fs.delete",
    "fs.edit",
    "fs.list",
    "fs.read",
    "fs.write",
    "mail.send",
    "pay",
    "search",
    "store",
    "web.fetch",
];

impl World {
    /// A home where all is allowed, but where `constraints` speak of a tool.
    pub(crate) fn new(constraints: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spoken = |tool: &&str| {
            let id = format!(r#""id": "may.{tool}""#);
            constraints.iter().any(|constraint| constraint.contains(&id))
        };
        let others = TOOLS.iter().filter(|tool| !spoken(tool)).map(|tool| any(tool));
        let all: Vec<String> =
            constraints.iter().cloned().chain(others).chain([SECRETS.to_owned()]).collect();
        let document = format!(r#"{{"v": 1, "constraints": [{}]}}"#, all.join(","));
        let policy = Policy::from_json(document.as_bytes())
            .unwrap_or_else(|error| panic!("{error}: {document}"));
        let mut options = Options::new().durability(Durability::Process).policy(policy);
        for tool in tools() {
            options = options.tool(tool).unwrap();
        }
        let runtime = options.create(folder.path().join("home")).unwrap();
        let session = seat(&runtime, Budget::standard());
        let world = Self { runtime, session, folder };
        world.marked();
        world.put("agents/a/workspace/notes.txt", "bees");
        world.put("agents/a/workspace/notes/old.txt", "wasps");
        world.put("shared/notes/plan.txt", "a plan");
        world
    }

    /// Puts marks wherever the agent has no business.
    fn marked(&self) {
        let mark = AgentId::new(MARK).unwrap();
        let grant = Grant::to(mark.as_str()).tools(["fs.read", "pay"]).workspace().read("leakmark");
        let grant = grant.scope("account", Scope::names(["leakmark-account"]).unwrap());
        let token = self.runtime.issue(grant).unwrap();
        drop(self.runtime.session(MARK, token).unwrap());
        self.put("agents/leakmark/workspace/leakmark.txt", MARK);
        self.put("agents/a/workspace/private/leakmark.txt", MARK);
        self.put("shared/leakmark.txt", MARK);
        let facts = args! { "fact.code": "leakmark-of-state" };
        self.runtime.observe(&self.session, Source::Tool, &[], facts).unwrap();
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.files().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn files(&self) -> PathBuf {
        self.folder.path().join("home/files")
    }

    /// Sends JSON; what stands under `result` or `error`, and the reason where there is one.
    pub(crate) fn send(&self, text: &str) -> (Option<Reason>, Value) {
        let result = self.session.envelope(text.as_bytes(), Written::Json).wait().unwrap();
        (result.reason(), shown(result.delivered().item()))
    }

    /// A call that is made before; the record that its result can be referred to by.
    pub(crate) fn before(&self, text: &str) -> u64 {
        let result = self.session.envelope(text.as_bytes(), Written::Json).wait().unwrap();
        assert_eq!(result.reason(), None, "{text}: {:?}", shown(result.delivered().item()));
        result.receipt().outcome_seq.get()
    }
}

/// The agent `a` with its workspace, parts of `shared`, and scopes for the test's tools.
pub(crate) fn seat(runtime: &Runtime, budget: Budget) -> Session {
    let ports = [PortRange::new(443, 443).unwrap(), PortRange::new(8_000, 8_080).unwrap()];
    let grant = Grant::to("a")
        .tools(TOOLS)
        .workspace()
        .path("shared/notes", Rights::READ.union(Rights::WRITE))
        .read("shared/public")
        .scope("host", Scope::hosts(["docs.example.com", "*.example.org"]).unwrap())
        .scope("port", Scope::ports(ports).unwrap())
        .scope("account", Scope::names(["rent", "water"]).unwrap())
        .scope("amount", Scope::ints(1, 1_000).unwrap())
        .budget(budget);
    let token = runtime.issue(grant).unwrap();
    runtime.session("a", token).unwrap()
}
