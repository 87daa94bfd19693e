//! Control documents, tokens' bodies and policies, of as many forms as there are.

use syscap::format::{
    AgentId, Budget, CancelBody, Cidr, ConfigChange, ControlBody, CreditChange, EffectClass,
    FactKey, Freeze, FreezeChange, FreezeTarget, Grants, KeyChange, Manifest, MapBuilder,
    POSSESSION_CONTEXT, Param, ParamType, PolicyChange, PortRange, Possession, PublicKey,
    Recovered, Resolution, Revocation, Rights, Role, RoleSet, Root, RootedPath, Rule, Salt, Scope,
    Seq, Signature, Snapshot, TextHash, TokenBody, TokenFlags, TokenId, ToolGrant, ToolId,
    ToolsChange, Trust, UnixMillis, fact_id, json, possession, preimage,
};
use syscap::kernel::object_of;
use syscap::policy::WithinToken;

use ed25519_dalek::{Signer as _, SigningKey};

use crate::vectors::seeds::Seeds;
use crate::vectors::targets::{sim, token};

/// A body of each signed kind, and documents that stand apart.
pub(crate) fn control() -> Seeds {
    let sim = sim::home();
    let token = TokenId::from_bytes([0xbb; 32]);
    let key = token::issuer();
    let freeze = |target, name: &str, change| Freeze { target, name: Box::from(name), change };
    let manifest = Manifest::new(ToolId::new("fs.read").unwrap(), EffectClass::Read)
        .param(Param::required("path", ParamType::Path, "Where."))
        .param(
            Param::optional("n", ParamType::Int, "").within(0, 9).or(json::to_cbor(b"5").unwrap()),
        )
        .needs("path");
    let topic = FactKey::new("goal.topic").unwrap();
    let value = MapBuilder::new().text("a", "b").finish();
    let fact = fact_id(&Salt::from_bytes([1; 32]), &topic, value.item());
    let snapshot = Snapshot::genesis(AgentId::new("team/a").unwrap());
    let policy = object_of(&WithinToken);
    let mut made = vec![
        ("key-beside", key_change(&sim, Role::Revoker, 0x91).to_bytes()),
        (
            "key-issuer",
            KeyChange { cut_off: Some(Seq::new(2)), ..key_change(&sim, Role::Issuer, 0x92) }
                .to_bytes(),
        ),
        ("revoke", Revocation::subtree(token).to_bytes()),
        ("revoke-children", Revocation::children(token).to_bytes()),
        ("revoke-epoch", Revocation::epoch(7).to_bytes()),
        ("revoke-key", Revocation::key(key).because(TextHash::from_bytes([7; 32])).to_bytes()),
        ("cancel", CancelBody { intent: Seq::new(9), cause: None }.to_bytes()),
        ("freeze", freeze(FreezeTarget::Kernel, "", FreezeChange::Freeze).to_bytes()),
        ("freeze-agent", freeze(FreezeTarget::Agent, "a/b", FreezeChange::Freeze).to_bytes()),
        ("thaw-tool", freeze(FreezeTarget::Tool, "spend", FreezeChange::Thaw).to_bytes()),
        (
            "policy",
            PolicyChange { policy: sim.kernel.engine_hash(), shadow: Some(policy.hash()) }
                .to_bytes(),
        ),
        ("tools", ToolsChange { tools: sim.kernel.registry_hash() }.to_bytes()),
        (
            "config",
            ConfigChange { confirm_time: Some(UnixMillis::new(1_800_000_000_000)) }.to_bytes(),
        ),
        ("config-none", ConfigChange { confirm_time: None }.to_bytes()),
        (
            "credit",
            CreditChange { agent: AgentId::new("a/b").unwrap(), added: 2_500_000 }.to_bytes(),
        ),
        ("manifest", manifest.to_bytes()),
        ("policy-object", policy.to_bytes()),
        ("snapshot", snapshot.next(&[(topic, fact)].into()).to_bytes()),
        ("tools-object", sim::parts(&sim.world).registry.tools_object().to_bytes()),
        ("trust", Trust::new(sim.kernel.home(), sim::roles()).to_bytes()),
    ];
    let resolved = |verdict| Resolution { intent: Seq::new(3), verdict }.to_bytes();
    made.push(("resolution", resolved(Recovered::ALL[0])));
    made.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

/// A key beside the one that a role of the simulated home has.
fn key_change(sim: &sim::Sim, role: Role, seed: u8) -> KeyChange {
    let new = SigningKey::from_bytes(&[seed; 32]);
    let key = PublicKey::new(new.verifying_key().to_bytes()).unwrap();
    let home = sim.kernel.home();
    let message = preimage(POSSESSION_CONTEXT, &possession(&home, role, &key));
    let signature = Signature::from_bytes(new.sign(&message).to_bytes());
    let old = sim.kernel.roles().set(role).unwrap().keys();
    let set = RoleSet::any_of(role, old.chain([key]));
    KeyChange { set, proofs: vec![Possession { key, signature }], cut_off: None }
}

fn tool(name: &str) -> ToolId {
    ToolId::new(name).unwrap()
}

/// A root that may be delegated.
fn root(grants: Grants) -> TokenBody {
    let mut sim = sim::home();
    let mut body = sim.token_body("team", Budget::standard(), 3_600_000);
    body.holder = Some(token::issuer());
    (body.depth_max, body.grants) = (3, grants);
    body
}

/// Parents and what is derived from them, by name.
pub(crate) fn bodies() -> Vec<(&'static str, TokenBody, TokenBody)> {
    let path = |name: &str, below: &[&str], rights| {
        let root = Root::named(name).unwrap();
        Rule { path: RootedPath::new(root, below.iter().copied()).unwrap(), rights }
    };
    let own = Rule {
        path: RootedPath::new(Root::Workspace(AgentId::new("team/a").unwrap()), ["n"]).unwrap(),
        rights: Rights::READ,
    };
    let wide = [path("shared", &[], Rights::READ), path("shared", &["a", "b"], Rights::WRITE)];
    let narrow = [path("shared", &["x"], Rights::READ)];
    let ports = [(80, 90), (443, 443)].map(|(first, last)| PortRange::new(first, last).unwrap());
    let ports = Scope::ports(ports).unwrap();
    let scopes = |pairs: Vec<(&str, Scope)>| {
        pairs.into_iter().fold(ToolGrant::new(), |grant, (name, scope)| grant.with(name, scope))
    };
    let parent = scopes(vec![
        ("path", Scope::paths(wide.into_iter().chain([own])).unwrap()),
        ("host", Scope::hosts(["*.example", "one.test"]).unwrap()),
        ("port", ports),
    ]);
    let child = scopes(vec![
        ("path", Scope::paths(narrow).unwrap()),
        ("host", Scope::hosts(["a.example"]).unwrap()),
    ]);
    let cidrs = |blocks: &[(&str, u8)]| {
        let block =
            |(addr, prefix): &(&str, u8)| Cidr::new(addr.parse().unwrap(), *prefix).unwrap();
        Scope::cidrs(blocks.iter().map(block)).unwrap()
    };
    let other = scopes(vec![
        ("name", Scope::names(["a", "b", "c"]).unwrap()),
        ("int", Scope::ints(-10, 10).unwrap()),
        ("addr", cidrs(&[("10.0.0.0", 8), ("fd00::", 16)])),
    ]);
    let less = scopes(vec![
        ("name", Scope::names(["a"]).unwrap()),
        ("int", Scope::ints(0, 0).unwrap()),
        ("addr", cidrs(&[("10.1.0.0", 16)])),
    ]);
    let pairs = [
        (
            "paths",
            Grants::new().with(tool("fs.read"), parent),
            Grants::new().with(tool("fs.read"), child),
        ),
        ("names", Grants::new().with(tool("echo"), other), Grants::new().with(tool("echo"), less)),
        ("none", Grants::new(), Grants::new().with(tool("echo"), ToolGrant::new())),
    ];
    let pairs = pairs.into_iter().map(|(name, parent, child)| {
        let parent = root(parent);
        let id = TokenBody::id_of(&parent.to_bytes());
        let mut derived =
            TokenBody { grants: child, depth: 1, head: None, parent: Some(id), ..parent.clone() };
        derived.agent = AgentId::new("team/a").unwrap();
        derived.flags = TokenFlags::READ_ONLY;
        derived.holder = None;
        (name, parent, derived)
    });
    pairs.collect()
}

/// Documents with a bit of everything, each with a scenario.
pub(crate) fn policies() -> Vec<(&'static str, &'static str)> {
    vec![
        (
            r#"{"v": 1, "constraints": [
                {"id": "a", "effect": "allow", "subject": {"tool_id": "fs.read"},
                 "when": {"op": "all", "args": [
                    {"op": "within", "args": ["args.path", "shared"]},
                    {"op": "le", "args": ["args.n", 10]},
                    {"op": "not", "args": [{"op": "exists", "args": ["fact.gone"]}]}]},
                 "on_fail": "ask", "reason": "Only there."},
                {"id": "b", "effect": "deny", "subject": {"capability": "external_write"},
                 "when": {"op": "any", "args": [
                    {"op": "in", "args": ["args.to", ["a@b.example", "x"]]},
                    {"op": "suffix", "args": ["args.to", ".example"]},
                    {"op": "missing", "args": ["goal.aim"]}]},
                 "on_fail": "degrade", "reason": "Less.",
                 "obligations": [{"type": "read_only"}, {"type": "notify", "topic": "b"}]}]}"#,
            r#"{"call.tool": "fs.read", "call.effect": "read", "args.path": {"path": "shared/x"},
                "args.n": 3}"#,
        ),
        (
            r#"{"v": 1, "constraints": [
                {"id": "all", "effect": "allow", "subject": null,
                 "when": {"op": "all", "args": []}, "on_fail": "block", "reason": ""},
                {"id": "late", "effect": "deny", "subject": null,
                 "when": {"op": "ge", "args": ["now.hour", {"param": "evening"}]},
                 "on_fail": "defer", "reason": ""},
                {"id": "far", "effect": "deny", "subject": {"tool_id": "net"},
                 "when": {"op": "any", "args": [
                    {"op": "domain", "args": ["args.host", "far.example"]},
                    {"op": "cidr", "args": ["args.addr", "10.0.0.0/8"]},
                    {"op": "within", "args": ["call.agent", "team"]},
                    {"op": "gt", "args": ["risk", 50]}]},
                 "on_fail": "block", "reason": "Far.",
                 "examples": [{"holds": true, "given":
                    {"call.tool": "net", "args.host": {"host": "b.far.example"}}}]}],
              "params": {"tools": ["net", "fs.read"], "agents": {"bob": ["net"]},
                "risk": {"net": 70}, "evening": 18}}"#,
            r#"{"call.tool": "net", "call.effect": "external_read",
                "args.host": {"host": "a.far.example"}, "now.hour": 20, "risk": 60}"#,
        ),
    ]
}
