//! Homes that earlier versions made: every later one opens and verifies them.

mod reader;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use host_support::{end, new_home, records};
use syscap::approvals::SetTerms;
use syscap::audit::SqliteReader;
use syscap::format::{
    AgentId, Amounts, ApprovalAnswer, Body, Canonical, Cidr, ControlBody as _, CreditChange,
    EffectClass, Freeze, FreezeBecause, FreezeChange, FreezeTarget, Item, Label, Manifest, Param,
    ParamType, PolicyBecause, PolicyChange, PortRange, Record, RecordKind, Role, Salt, Scope, Seq,
    TokenId, TxOutcome, VaultText, json,
};
use syscap::kernel::{Next, vault_entry};
use syscap::keys::{KeyFile, KeyUse, Rotation, Seal, replacing};
use syscap::policy::{Policy, Preset, WithinToken};
use syscap::prelude::*;
use syscap::provide::{HostCall, HostRan, Provider};
use syscap::secrets::SecretFiles;
use syscap::syscalls::net::Network;
use syscap::syscalls::stated::{ArgumentKind, Declared, PathRoot, Stated};
use syscap::verify::{Options as VerifyOptions, Soundness, TrustSource, verify_home};
use syscap::{Beside, Configured, FileKeys, Home, Options, PolicyWhy, Signer as _, SystemEntropy};

/// Where they lie, each under the name of what it was made for.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
}

fn kinds(home: &Path) -> BTreeSet<RecordKind> {
    let mut kinds = BTreeSet::new();
    let mut reader = SqliteReader::open(home).unwrap();
    let each = &mut |_: Seq, bytes: &[u8]| {
        kinds.insert(Record::decode(bytes).unwrap().body.kind());
        Next::More
    };
    reader.records(Seq::GENESIS, each).unwrap();
    kinds
}

fn verdict(home: &Path) -> Soundness {
    let trust = TrustSource::File(home.join("trust.cbor"));
    let report = verify_home(home, &VerifyOptions { trust, ..VerifyOptions::default() }).unwrap();
    assert_eq!(report.findings, []);
    report.verdict()
}

/// From the settled formats on a home made by any version opens, goes on and verifies.
#[test]
fn homes_of_earlier_versions_open_and_verify() {
    let (mut seen, mut labelled) = (0, 0);
    for entry in fs::read_dir(fixtures()).unwrap() {
        let entry = entry.unwrap();
        if !entry.file_type().unwrap().is_dir() {
            continue;
        }
        let (_dir, home) = new_home();
        copy(&entry.path(), &home);
        assert_eq!(verdict(&home), Soundness::Sound, "{:?}", entry.file_name());
        // What was read before is known to those that go on.
        let given = given(&home);
        let kept = Options::new().inspect(&home).unwrap().view().tokens;
        for (token, label) in &given {
            let begins = kept.iter().find(|one| one.id == *token).unwrap().label;
            assert!(label.leq(begins), "{token}");
            labelled += usize::from(begins.is_untrusted());
        }
        let rt = Runtime::open(&home).unwrap();
        let token = rt.issue(Grant::to("ada").tools(["fs.read", "fs.write"]).workspace()).unwrap();
        let session = rt.session("ada", token).unwrap();
        session.call("fs.write", args! { "path": "new.txt", "text": "x" }).unwrap().text().unwrap();
        end(&rt, &home);
        seen += 1;
    }
    assert_eq!(seen, 6, "a home for each set of formats, and none that is gone");
    assert!(labelled > 0);
}

/// The labels of all that was delivered, with the token of its call.
fn given(home: &Path) -> Vec<(TokenId, Label)> {
    let delivered = |record: Record| match record.body {
        Body::Outcome(outcome) => Some((outcome.call.capability_token_id?, outcome.label)),
        _ => None,
    };
    records(home).into_iter().filter_map(delivered).collect()
}

/// Makes a home with a record of most kinds, as `SYSCAP_FIXTURE` names it; and, always, one in a
/// temporary folder, so that what is committed can be made again.
#[test]
fn a_home_for_later_versions() {
    let dir = tempfile::tempdir().unwrap();
    let home = match std::env::var_os("SYSCAP_FIXTURE") {
        Some(name) => fixtures().join(name),
        None => dir.path().join("home"),
    };
    make(&home);
    let wanted = [
        RecordKind::Genesis,
        RecordKind::Boot,
        RecordKind::Shutdown,
        RecordKind::Issue,
        RecordKind::Session,
        RecordKind::Revoke,
        RecordKind::Freeze,
        RecordKind::Policy,
        RecordKind::Tools,
        RecordKind::State,
        RecordKind::Charge,
        RecordKind::Intent,
        RecordKind::Outcome,
        RecordKind::Refusal,
        RecordKind::Refusals,
        RecordKind::Repeat,
        RecordKind::Key,
        RecordKind::Ask,
        RecordKind::Approval,
        RecordKind::Credit,
    ];
    let made = kinds(&home);
    assert!(wanted.iter().all(|kind| made.contains(kind)), "{made:?}");
    // A freeze or a policy with a reason is of version 3, and has its text.
    let with_reason =
        |record: &Record| matches!(record.body, Body::FreezeBecause(_) | Body::PolicyBecause(_));
    let reasons: Vec<Record> = records(&home).into_iter().filter(with_reason).collect();
    assert_eq!(reasons.len(), 3);
    let mut reader = SqliteReader::open(&home).unwrap();
    for record in reasons {
        assert_eq!(record.encode()[2], 3);
        assert_eq!(vault_entry(&mut reader, record.seq, record.seq).unwrap().texts.len(), 1);
    }
    assert_eq!(verdict(&home), Soundness::Sound);
}

fn make(home: &Path) {
    let rt = Runtime::create(home).unwrap();
    let tools = ["fs.read", "fs.list", "fs.write", "echo"];
    let token = rt.issue(Grant::to("ada").tools(tools).workspace()).unwrap();
    let session = rt.session("ada", token).unwrap();
    let write = || args! { "path": "a.txt", "text": "hello" };
    session.request("fs.write").args(write()).key("k-1").wait().unwrap().text().unwrap();
    session.request("fs.write").args(write()).key("k-1").wait().unwrap().text().unwrap();
    session.call("fs.read", args! { "path": "a.txt" }).unwrap().text().unwrap();
    session.propose(args! { "goal.topic": "bees" }).unwrap();
    let amounts = syscap::format::Amounts::ZERO.with(Dimension::LlmTokens, 1);
    session.charge(amounts).unwrap();
    for _ in 0..20 {
        session.call("fs.read", args! { "path": "../../../etc/passwd" }).unwrap();
    }
    let freeze = |change| Freeze { target: FreezeTarget::Kernel, name: Box::from(""), change };
    rt.freeze(&freeze(FreezeChange::Freeze)).unwrap();
    rt.freeze(&freeze(FreezeChange::Thaw)).unwrap();
    let other = rt.issue(Grant::to("bob").tools(["echo"])).unwrap();
    rt.revoke(other).unwrap();
    rt.set_shadow(WithinToken).unwrap();
    session.call("fs.list", args! { "path": "." }).unwrap().value().unwrap();
    rt.close().unwrap();
    rotate(home, Role::Issuer);
    authorise(home);
    act(home);
    offer(home);
    reason(home);
}

/// A freeze, its end and a policy, each for a reason.
fn reason(home: &Path) {
    let rt = Runtime::open(home).unwrap();
    let agent = AgentId::new("ada").unwrap();
    for freeze in [Freeze::agent(&agent), Freeze::agent(&agent).thaw()] {
        let because = |why| FreezeBecause::new(freeze.clone(), why);
        rt.control_because("a fire drill", because).unwrap();
    }
    let keys = FileKeys::open(&Home::at(home).keys()).unwrap();
    let log = Options::new().inspect(home).unwrap();
    let why = VaultText {
        salt: Salt::from_bytes([5; 32]),
        field: PolicyBecause::CAUSE,
        text: "as before".into(),
    };
    let change = PolicyChange { policy: log.kernel().policy_hash().unwrap(), shadow: None };
    let body = PolicyBecause::new(change, why.hash());
    let key = keys.public_key(Role::Policy).unwrap();
    let control = log.sign(&body, &key, |message| keys.sign(Role::Policy, message)).unwrap();
    let beside = Beside::PolicyWhy(Box::new(PolicyWhy { policy: None, why }));
    rt.submit_with(RecordKind::Policy, control, &beside).unwrap();
    rt.close().unwrap();
}

/// Asks whether somebody looks at what is written.
const ASKS: &str = r#"{"v": 1, "constraints": [
    {"id": "all", "effect": "allow", "subject": null, "when": {"op": "all", "args": []},
     "on_fail": "block", "reason": "Fine."},
    {"id": "writes", "effect": "deny", "subject": {"tool_id": "fs.write"},
     "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "Somebody looks at it."}
]}"#;

/// Credits, a lease, what is handed on; and calls that wait: approved once, refused, approved for
/// more, and still waiting.
fn authorise(home: &Path) {
    let rt = Runtime::open(home).unwrap();
    let agent = syscap::format::AgentId::new("team").unwrap();
    rt.control(&CreditChange { agent, added: 5_000_000 }).unwrap();
    rt.set_policy(Policy::from_json(ASKS.as_bytes()).unwrap()).unwrap();
    let half = Duration::from_secs(1_800);
    let grant = Grant::to("team").tools(["fs.write"]).workspace().delegable(2);
    let root = rt.issue(grant.renew_within(half)).unwrap();
    let part = rt.attenuate(root, Grant::to("team/a").tools(["fs.write"]).workspace()).unwrap();
    let agent = rt.session("team/a", part).unwrap();
    let write = |path: &str, text: &str| {
        agent.call("fs.write", args! { "path": path, "text": text }).unwrap()
    };
    let once = write("once.txt", "1").ask().unwrap();
    rt.answer(once, ApprovalAnswer::Once, Some("as agreed")).unwrap();
    write("once.txt", "1").value().unwrap();
    let no = write("no.txt", "1").ask().unwrap();
    rt.answer(no, ApprovalAnswer::Deny, None).unwrap();
    write("no.txt", "1").value().unwrap_err();
    let set = write("set.txt", "1").ask().unwrap();
    let expires = Some(rt.look(|kernel| kernel.now()).unwrap().plus(3_600_000));
    rt.answer_set(set, &SetTerms { uses: 5, scopes: None, expires }, None).unwrap();
    write("set.txt", "1").value().unwrap();
    write("set.txt", "2").value().unwrap();
    write("waits.txt", "1").ask().unwrap();
    agent.close().unwrap();
    // What goes on in an earlier home writes: nobody is there to be asked.
    rt.set_policy(WithinToken).unwrap();
    rt.close().unwrap();
}

/// Tools that an operator has set, calls that do less than their tools can, secrets, an agent that
/// another one made, with the label of what that had read.
fn act(home: &Path) {
    let rt = Runtime::open(home).unwrap();
    rt.set_policy(Policy::preset(Preset::Standard).unwrap()).unwrap();
    let settings = br#"{"allowed_methods": ["GET", "POST"], "timeout_ms": 1000,
        "secrets": [{"secret": "desk", "header": "x-api-key"}]}"#;
    let tool = ToolId::new("tickets").unwrap();
    let manifest = Network::manifest(tool, json::to_data(settings).unwrap()).unwrap();
    rt.configure(&Configured { set: vec![manifest], unset: Vec::new() }).unwrap();
    SecretFiles::of(&Home::at(home)).set("desk", "of-no-use-0123", &["https://a.test"]).unwrap();
    // Nobody listens there.
    let url = "http://127.0.0.1:9/";
    let here = Cidr::new("127.0.0.1".parse().unwrap(), 32).unwrap();
    let grant = Grant::to("lab")
        .tools(["tickets", "org.create_agent", "memory.write", "memory.read"])
        .scope("address", Scope::cidrs([here]).unwrap())
        .scope("port", Scope::ports([PortRange::new(9, 9).unwrap()]).unwrap())
        .scope("scheme", Scope::names(["http"]).unwrap())
        .delegable(1);
    let lab = rt.session("lab", rt.issue(grant).unwrap()).unwrap();
    let call = |args: &str| lab.request("tickets").json(args, Escapes::Data).wait().unwrap();
    let read = call(&format!(r#"{{"url": "{url}"}}"#));
    assert_eq!(read.reason(), Some(Reason::Unreachable));
    let asked = call(&format!(r#"{{"url": "{url}", "method": "POST", "body": "x"}}"#));
    assert_eq!(asked.reason(), Some(Reason::Asked));
    let made = r#"{"name": "scout", "tools": ["memory.read"]}"#;
    let made = lab.request("org.create_agent").json(made, Escapes::Data).wait().unwrap();
    let token = made.value().unwrap().get("token").and_then(Item::as_text).unwrap();
    let scout = rt.session("lab/scout", TokenId::from_hex(token).unwrap()).unwrap();
    scout.close().unwrap();
    lab.close().unwrap();
    rt.set_policy(WithinToken).unwrap();
    rt.close().unwrap();
}

/// Answers every call, and says of the second that it failed.
struct Notes(AtomicU64);

impl Provider for Notes {
    fn run(&self, _: HostCall) -> HostRan {
        let text = Canonical::text("written");
        let ran = HostRan::new(Ok(text), TxOutcome::Committed, Amounts::ZERO);
        let failed = self.0.fetch_add(1, Ordering::SeqCst) == 1;
        HostRan { failed, ..ran }
    }
}

/// A tool of another process, of which the operator has stated what it counts as and what an
/// argument names; one that failed by its own word; a token that is issued once more.
fn offer(home: &Path) {
    let rt = Runtime::open(home).unwrap();
    let tool = ToolId::new("notes.write").unwrap();
    let manifest = Manifest::new(tool.clone(), EffectClass::ExternalWrite).param(Param::required(
        "at",
        ParamType::Text,
        "where",
    ));
    rt.provide(vec![manifest], Arc::new(Notes(AtomicU64::new(0)))).unwrap();
    let manifest = rt.tool(&tool).unwrap().manifest;
    let mut stated = Stated::of(&manifest).unwrap();
    stated.class = Some(EffectClass::LocalWrite);
    let root = PathRoot::parse("notes").unwrap();
    let declared = Declared::new(ArgumentKind::Path(vec![root]));
    stated.arguments.insert(Box::from("at"), declared);
    let set = vec![stated.on(&manifest).unwrap()];
    rt.configure(&Configured { set, unset: Vec::new() }).unwrap();
    let grant = Grant::to("pia").tools(["notes.write"]).read("notes").write("notes");
    let token = rt.issue(grant).unwrap();
    let session = rt.session("pia", token).unwrap();
    for at in ["a.txt", "b.txt"] {
        assert!(session.call("notes.write", args! { "at": at }).unwrap().output().is_some());
    }
    let out = session.call("notes.write", args! { "at": "../c.txt" }).unwrap();
    assert!(out.reason().is_some());
    session.close().unwrap();
    rt.close().unwrap();
    let again = Options::new().inspect(home).unwrap().grant_like(token).unwrap();
    let rt = Runtime::open(home).unwrap();
    rt.issue(again).unwrap();
    rt.close().unwrap();
}

/// Another key for a role, as `syscap keys rotate` puts it there; then a token by it.
fn rotate(home: &Path, role: Role) {
    let keys = home.join("keys");
    let make = || Ok(KeyFile::generate(KeyUse::Role(role), &Seal::Open, &SystemEntropy)?.0);
    let rotation = Rotation::begin(&keys, role, make).unwrap();
    let old = KeyFile::read(&KeyUse::Role(role).path(&keys)).unwrap().public_key();
    let operator = KeyFile::read(&KeyUse::Role(Role::Operator).path(&keys)).unwrap();
    let log = Options::new().inspect(home).unwrap();
    let set = log.kernel().roles().set(role).unwrap();
    let proof = rotation.next().open().unwrap().possession(&log.kernel().home(), role);
    let change = replacing(set, &[old], proof).unwrap();
    let key = operator.open().unwrap();
    let signed = log.sign(&change, &key.public_key(), |message| Ok(key.sign(message))).unwrap();
    let rt = Runtime::open(home).unwrap();
    rt.submit_with(RecordKind::Key, signed, &Beside::Nothing).unwrap();
    rotation.finish().unwrap();
    rt.issue(Grant::to("eve").tools(["echo"])).unwrap();
    rt.close().unwrap();
}
