//! What an operator states of tools that other processes run: what they count as, and which of
//! their arguments name what.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use host_support::{end, new_home, records};
use syscap::Configured;
use syscap::approvals::{SetTerms, Waited};
use syscap::format::{
    Amounts, ApprovalAnswer, Body, Canonical, Cidr, EffectClass, Enforcement, Extra, Label,
    Manifest, Param, ParamType, Record, Scope, TxOutcome, definition_hash,
};
use syscap::policy::Policy;
use syscap::prelude::*;
use syscap::provide::{HostCall, HostRan, Provider, Standing};
use syscap::syscalls::stated::{ArgumentKind, Declared, PathRoot, Stated, StatedError, carried};

/// Answers every call, and counts.
struct Counts(Arc<AtomicU64>);

impl Provider for Counts {
    fn run(&self, _: HostCall) -> HostRan {
        self.0.fetch_add(1, Ordering::SeqCst);
        HostRan::new(Ok(Canonical::text("done")), TxOutcome::Committed, Amounts::ZERO)
    }
}

fn tool(name: &str) -> ToolId {
    ToolId::new(name).unwrap()
}

/// A tool of a host's own: without a foreign definition.
fn own() -> Manifest {
    Manifest::new(tool("docs.put"), EffectClass::LocalWrite)
        .param(Param::optional("at", ParamType::Text, "where"))
        .param(Param::optional("to", ParamType::Any, "whom"))
        .param(Param::optional("run", ParamType::List, "what"))
        .param(Param::optional("count", ParamType::Int, "how often"))
}

struct World {
    _dir: tempfile::TempDir,
    home: std::path::PathBuf,
    rt: Runtime,
    runs: Arc<AtomicU64>,
}

impl World {
    fn new(manifest: Manifest) -> Self {
        let (dir, home) = new_home();
        let rt = Runtime::create(&home).unwrap();
        let runs = Arc::new(AtomicU64::new(0));
        rt.provide(vec![manifest], Arc::new(Counts(Arc::clone(&runs)))).unwrap();
        Self { _dir: dir, home, rt, runs }
    }

    fn manifest(&self) -> Manifest {
        self.rt.tool(&tool("docs.put")).unwrap().manifest
    }

    fn state(&self, stated: impl FnOnce(&mut Stated)) {
        let manifest = self.manifest();
        let mut now = Stated::of(&manifest).unwrap();
        stated(&mut now);
        let set = vec![now.on(&manifest).unwrap()];
        self.rt.configure(&Configured { set, unset: Vec::new() }).unwrap();
    }

    fn declare(&self, name: &str, declared: Declared) {
        self.state(|stated| drop(stated.arguments.insert(Box::from(name), declared)));
    }

    fn session(&self, grant: Grant) -> Session {
        let token = self.rt.issue(grant.tools(["docs.put"]).budget(Budget::standard())).unwrap();
        self.rt.session("a", token).unwrap()
    }

    fn ran(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }

    fn sound(self) {
        let Self { _dir, home, rt, .. } = self;
        end(&rt, &home);
    }
}

fn at(root: &str) -> Declared {
    Declared::new(ArgumentKind::Path(vec![PathRoot::parse(root).unwrap()]))
}

fn reason(result: &ToolResult) -> Option<Reason> {
    result.reason()
}

fn call(agent: &Session, name: &str, value: &str) -> Option<Reason> {
    let text = format!(r#"{{"{name}": {value}}}"#);
    reason(
        &agent.request("docs.put").json(&text, syscap::format::json::Escapes::Data).wait().unwrap(),
    )
}

/// A tool of a host's own is the same tool whatever is stated of it, also after the host has
/// offered it again; what is stated goes on record by one event.
#[test]
fn statement_about_a_hosts_tool_is_kept() {
    let world = World::new(own());
    let before = world.manifest();
    world.state(|stated| stated.class = Some(EffectClass::Read));
    world.declare("at", at("docs=/srv"));
    let stated = world.manifest();
    assert_eq!(stated.effect, EffectClass::Read);
    assert_eq!(stated.params[0].kind, ParamType::Path);
    assert_eq!(stated.dimensions, [Box::from("path")]);
    let offers = world.rt.provide(vec![own()], Arc::new(Counts(Arc::clone(&world.runs)))).unwrap();
    assert_eq!(offers[0].standing, Standing::Ready);
    assert_eq!(offers[0].manifest, stated);
    // What is offered is no other definition, and there is nothing to accept.
    assert_eq!(world.rt.tool(&tool("docs.put")).unwrap().offered, None);
    assert!(world.rt.accept(&[tool("docs.put")]).is_err());
    let agent = world.session(Grant::to("a").read("docs"));
    assert_eq!(call(&agent, "at", r#""/srv/a""#), None);
    assert_eq!(call(&agent, "at", r#""/srv/../a""#), Some(Reason::BadPath));
    // Opened anew it is what it was.
    let World { _dir, home, rt, runs } = world;
    rt.close().unwrap();
    let rt = Runtime::open(&home).unwrap();
    let offers = rt.provide(vec![own()], Arc::new(Counts(Arc::clone(&runs)))).unwrap();
    assert_eq!((offers[0].standing, &offers[0].manifest), (Standing::Ready, &stated));
    let world = World { _dir, home, rt, runs };
    // Taken back, all is as it was offered; only what names it stays.
    world.state(|stated| *stated = Stated::default());
    let plain = world.manifest();
    assert_eq!((plain.effect, &plain.params), (before.effect, &before.params));
    assert!(plain.dimensions.is_empty() && plain.settings.is_none());
    let agent = world.session(Grant::to("a"));
    assert_eq!(call(&agent, "at", r#""anywhere""#), None);
    world.sound();
}

/// Whoever offers a tool states nothing of it: settings and dimensions of an offer count for
/// nothing.
#[test]
fn offer_states_nothing_about_its_tool() {
    let mut hostile = own();
    let word = Stated { class: Some(EffectClass::Pure), ..Stated::default() };
    hostile = word.on(&hostile).unwrap();
    hostile.effect = EffectClass::LocalWrite;
    let world = World::new(hostile);
    assert_eq!(Stated::of(&world.manifest()).unwrap(), Stated::default());
    let mut needy = own();
    needy.dimensions = vec![Box::from("path")];
    let offers = world.rt.provide(vec![needy], Arc::new(Counts(Arc::default()))).unwrap();
    assert_eq!(offers[0].standing, Standing::Taken);
    // Nor is anything put on record as stated that is not of the tool there.
    let mut other = Stated::default().on(&world.manifest()).unwrap();
    other.description = Box::from("another tool");
    let refused = world.rt.configure(&Configured { set: vec![other], unset: Vec::new() });
    assert!(refused.is_err());
    let mut built_in = world.rt.tool(&tool("echo")).unwrap().manifest;
    built_in = word.on(&built_in).unwrap();
    assert!(world.rt.configure(&Configured { set: vec![built_in], unset: Vec::new() }).is_err());
    world.sound();
}

/// A kind, and what comes of each text.
type Cases = (ArgumentKind, Vec<(&'static str, Option<Reason>)>);

fn cases() -> [Cases; 4] {
    let ok = None;
    let (out, arg, path) =
        (Some(Reason::OutOfScope), Some(Reason::BadArgument), Some(Reason::BadPath));
    let tree = ArgumentKind::Tree(vec![PathRoot::parse("docs").unwrap()]);
    [
        (
            ArgumentKind::Url,
            vec![
                (r#""https://a.example.com/x""#, ok),
                (r#"["https://a.example.com/x", "https://b.example.com"]"#, ok),
                (r#"["https://a.example.com/x", "https://evil.test"]"#, out),
                (r#""http://a.example.com/x""#, out),
                (r#""https://a.example.com:8443/x""#, out),
                (r#""https://a.example.com@evil.test/""#, arg),
                (r#""ftp://a.example.com/""#, arg),
                (r#""a.example.com""#, arg),
                (r#"{"url": "https://a.example.com/x"}"#, arg),
            ],
        ),
        (
            ArgumentKind::Host,
            vec![
                (r#""a.example.com""#, ok),
                (r#""A.EXAMPLE.com""#, ok),
                (r#""10.1.2.3""#, ok),
                (r#""11.1.2.3""#, out),
                (r#""evil.test""#, out),
                (r#""a.example.com:80""#, arg),
                (r#""a.example.com/x""#, arg),
            ],
        ),
        (
            ArgumentKind::Recipient,
            vec![
                (r##""#general""##, ok),
                (r#""ann@EXAMPLE.com""#, ok),
                (r#""bob@example.com""#, out),
                (r#""ann@example.com, bob@evil.test""#, arg),
                (r##"["#general", "#random"]"##, out),
                (r##""#general,#random""##, arg),
            ],
        ),
        (
            tree,
            vec![
                (r#""open/x""#, ok),
                (r#""open""#, ok),
                (r#""closed""#, out),
                (r#""/open""#, path),
                (r#""open/../closed""#, path),
            ],
        ),
    ]
}

/// Each kind: what its texts are, what a token must permit, and what is refused.
#[test]
fn arguments_of_each_kind_are_held_against_scopes() {
    let world = World::new(own());
    let ten = Scope::cidrs([Cidr::new("10.0.0.0".parse().unwrap(), 8).unwrap()]).unwrap();
    let grant = || {
        Grant::to("a")
            .scope("host", Scope::hosts(["*.example.com"]).unwrap())
            .scope("address", ten.clone())
            .scope("recipient", Scope::names(["ann@example.com", "#general"]).unwrap())
            .read("docs/open")
            .write("docs/open")
    };
    // A scope is granted where the tool compares it.
    world.declare("at", Declared::new(ArgumentKind::Host));
    world.declare("to", Declared::new(ArgumentKind::Recipient));
    let agent = world.session(grant());
    world.state(|stated| drop(stated.arguments.remove("at")));
    let out = Some(Reason::OutOfScope);
    for (kind, cases) in cases() {
        world.declare("to", Declared::new(kind.clone()));
        for (value, expected) in cases {
            let ran = world.ran();
            assert_eq!(call(&agent, "to", value), expected, "{kind} {value}");
            assert_eq!(world.ran() - ran, u64::from(expected.is_none()), "{kind} {value}");
        }
        // What is left out names nothing.
        assert_eq!(call(&agent, "to", "null"), None);
    }
    // A token without a scope of the kind lets nothing be named.
    let bare = world.session(Grant::to("a"));
    assert_eq!(call(&bare, "to", r#""open/x""#), out);
    world.sound();
}

/// By its class a tool reads, or reads and writes; or what was said that it does there.
#[test]
fn path_rights_follow_the_class_or_the_statement() {
    let world = World::new(own());
    world.declare("at", at("docs"));
    let reads = world.session(Grant::to("a").read("docs"));
    let both = world.session(Grant::to("a").read("docs").write("docs"));
    let value = r#""a""#;
    assert_eq!(call(&reads, "at", value), Some(Reason::OutOfScope));
    assert_eq!(call(&both, "at", value), None);
    world.state(|stated| stated.class = Some(EffectClass::Read));
    assert_eq!(call(&reads, "at", value), None);
    let write = syscap::format::Rights::WRITE;
    world.declare("at", at("docs").needing(write));
    assert_eq!(call(&reads, "at", value), Some(Reason::OutOfScope));
    world.sound();
}

/// Policies read what the argument names, not its text.
#[test]
fn policies_read_what_is_named() {
    let world = World::new(own());
    let document = br#"{"v": 1, "constraints": [{"id": "open", "effect": "allow", "subject": null,
        "when": {"op": "within", "args": ["args.at", "docs/open"]}, "on_fail": "block",
        "reason": "only below docs/open"}]}"#;
    world.rt.set_policy(Policy::from_json(document).unwrap()).unwrap();
    let agent = world.session(Grant::to("a").read("docs").write("docs"));
    // Text is no path.
    assert_eq!(call(&agent, "at", r#""/srv/open/a""#), Some(Reason::Constraint));
    world.declare("at", at("docs=/srv"));
    assert_eq!(call(&agent, "at", r#""/srv/open/a""#), None);
    assert_eq!(call(&agent, "at", r#""/srv/other/a""#), Some(Reason::Constraint));
    world.sound();
}

/// What is run is bounded by nothing: a person who lets one such call through lets no other
/// through.
#[test]
fn code_is_approved_call_by_call() {
    let world = World::new(own());
    let document = br#"{"v": 1, "constraints": [{"id": "ask-first", "effect": "allow",
        "subject": null, "when": {"op": "missing", "args": ["args.count"]}, "on_fail": "block",
        "reason": "asked"}, {"id": "ask", "effect": "deny", "subject": null,
        "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "a person says",
        "obligations": [{"type": "approval_uses", "max": 3}]}]}"#;
    world.rt.set_policy(Policy::from_json(document).unwrap()).unwrap();
    world.declare("to", Declared::new(ArgumentKind::Recipient));
    let grant = Grant::to("a").scope("recipient", Scope::names(["x"]).unwrap());
    let agent = world.session(grant);
    let data = syscap::format::json::Escapes::Data;
    let text = r#"{"run": ["ls"], "to": "x"}"#;
    let ask = |agent: &Session| agent.request("docs.put").json(text, data).wait().unwrap().ask();
    let terms = SetTerms { uses: 3, scopes: None, expires: None };
    let waits = ask(&agent).unwrap();
    assert!(world.rt.answer_set(waits, &terms, None).is_ok());
    world.declare("run", Declared::new(ArgumentKind::Command));
    assert_eq!(world.manifest().params[2].kind, ParamType::Argv);
    assert!(world.manifest().runs_code());
    let waits = ask(&agent).unwrap();
    assert!(world.rt.answer_set(waits, &terms, None).is_err());
    assert!(world.rt.answer(waits, ApprovalAnswer::Once, None).is_ok());
    assert_eq!(reason(&agent.request("docs.put").json(text, data).wait().unwrap()), None);
    world.sound();
}

/// What can't be told by an argument is not declared.
#[test]
fn only_what_an_argument_can_name_is_declared() {
    let manifest = own();
    let declare = |name: &str, kind: ArgumentKind| {
        let mut stated = Stated::default();
        stated.arguments.insert(Box::from(name), Declared::new(kind));
        stated.on(&manifest)
    };
    assert!(matches!(declare("count", ArgumentKind::Url), Err(StatedError::Type { .. })));
    assert!(matches!(declare("nothing", ArgumentKind::Url), Err(StatedError::NoArgument { .. })));
    let mut open = manifest.clone();
    open.extra = Extra::Taken;
    let mut stated = Stated::default();
    stated.arguments.insert(Box::from("nothing"), Declared::new(ArgumentKind::Url));
    let declared = stated.on(&open).unwrap();
    assert_eq!(declared.params.len(), open.params.len() + 1);
    assert_eq!(Stated::of(&declared).unwrap(), stated);
    let back = Stated::default().on(&declared).unwrap();
    assert_eq!(back.params, open.params);
}

/// Another definition waits for the operator as ever. Accepted, what was declared of arguments
/// holds it too; a class that was set lower does not, one that was set higher does.
#[test]
fn another_definition_is_held_as_the_one_before_and_not_trusted_as_it() {
    let defined = |text: &str| {
        own().defined_by(definition_hash(Canonical::text(text).item())).labelled(Label::UNTRUSTED)
    };
    for (class, kept) in [
        (EffectClass::Read, EffectClass::LocalWrite),
        (EffectClass::Irreversible, EffectClass::Irreversible),
    ] {
        let world = World::new(defined("one"));
        world.state(|stated| stated.class = Some(class));
        world.declare("at", at("docs"));
        let provider = Arc::new(Counts(Arc::clone(&world.runs)));
        let offers = world.rt.provide(vec![defined("two")], provider).unwrap();
        assert_eq!(offers[0].standing, Standing::Changed);
        let agent = world.session(Grant::to("a").read("docs").write("docs"));
        assert_eq!(call(&agent, "at", r#""a""#), Some(Reason::ToolChanged));
        world.rt.accept(&[tool("docs.put")]).unwrap();
        let accepted = world.manifest();
        assert_eq!(accepted.effect, kept);
        assert_eq!(accepted.dimensions, [Box::from("path")]);
        if class == EffectClass::Read {
            assert_eq!(call(&agent, "at", r#""/etc/passwd""#), Some(Reason::BadPath));
            assert_eq!(call(&agent, "at", r#""a""#), None);
        }
        world.sound();
    }
    // An argument that it has no more, and can't be given, is declared no more.
    let mut stated = Stated::default();
    stated.arguments.insert(Box::from("at"), at("docs"));
    let on_record = stated.on(&defined("one")).unwrap();
    let mut without = defined("two");
    without.params.retain(|param| *param.name != *"at");
    assert_eq!(carried(without.clone(), &on_record), without);
    without.extra = Extra::Taken;
    assert_eq!(Stated::of(&carried(without, &on_record)).unwrap(), stated);
}

/// What ran is on record as delegated: what the scope held was the text, not what the tool did.
#[test]
fn a_held_argument_is_delegated_all_the_same() {
    let world = World::new(own());
    world.declare("at", at("docs"));
    let agent = world.session(Grant::to("a").read("docs").write("docs"));
    assert_eq!(call(&agent, "at", r#""a""#), None);
    assert_eq!(enforced(&world.home), [Enforcement::Delegated]);
    world.sound();
}

fn enforced(home: &Path) -> Vec<Enforcement> {
    let outcome = |record: Record| match record.body {
        Body::Outcome(outcome) => outcome.call.enforcement,
        _ => None,
    };
    records(home).into_iter().filter_map(outcome).collect()
}

/// A call that waits for a person is of the tool as it was: once that is another, no yes to it is
/// taken, and the same call asks anew.
#[test]
fn a_call_that_waits_is_not_approved_for_another_tool() {
    let world = World::new(own());
    world.state(|stated| stated.class = Some(EffectClass::ExternalWrite));
    let agent = world.session(Grant::to("a"));
    let data = syscap::format::json::Escapes::Data;
    let ask = || agent.request("docs.put").json(r#"{"at": "x"}"#, data).wait().unwrap().ask();
    let superseded = |ask: syscap::format::Seq| {
        let log = syscap::Options::new().inspect(&world.home).unwrap();
        let waiting = log.waiting().unwrap();
        waiting.iter().find(|call| call.ask == ask).map(|call| call.superseded)
    };
    let [first, again] = [ask().unwrap(), ask().unwrap()];
    assert_eq!((first, superseded(first)), (again, Some(false)));
    let waited = || agent.wait(first, std::time::Duration::ZERO).unwrap();
    assert_eq!(waited(), Waited::Waiting);
    world.state(|stated| stated.class = Some(EffectClass::Irreversible));
    assert_eq!(superseded(first), Some(true));
    assert_eq!(waited(), Waited::Over);
    let refused = |answer| match world.rt.answer(first, answer, None) {
        Err(Error::Refused(refused)) => Some(refused.reason()),
        other => other.map(|_| None).unwrap(),
    };
    assert_eq!(refused(ApprovalAnswer::Once), Some(Reason::ToolChanged));
    assert_eq!(world.ran(), 0);
    // A no is taken, and what is asked now is another.
    assert_eq!(refused(ApprovalAnswer::Deny), None);
    assert_ne!(ask(), Some(first));
    world.sound();
}
