//! Tools that come while the operator's key is sealed: they wait, and hang nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use host_support::new_home;
use syscap::format::{
    Amounts, Canonical, Control, EffectClass, Manifest, MapBuilder, ObjectId, RecordKind, Role,
    ToolsChange, ToolsHash, TxOutcome,
};
use syscap::host::ToolUse;
use syscap::kernel::{Demands, Permit, Plan, Ran, Request, Tool};
use syscap::prelude::*;
use syscap::provide::{HostCall, HostRan, Provider, Standing};
use syscap::view::ToolInfo;
use syscap::{Beside, Error, Options, Runtime, Signer as _};

use crate::keys::sealed::reason;
use crate::keys::world::{World, asked};

struct Counts(AtomicU64);

impl Provider for Counts {
    fn run(&self, _: HostCall) -> HostRan {
        self.0.fetch_add(1, Ordering::SeqCst);
        let (result, used) = (Ok(Canonical::null()), Amounts::ZERO);
        HostRan::new(result, TxOutcome::Committed, used)
    }
}

fn provider() -> (Arc<dyn Provider>, Arc<Counts>) {
    let counts = Arc::new(Counts(AtomicU64::new(0)));
    (Arc::clone(&counts) as Arc<dyn Provider>, counts)
}

fn tool(name: &str) -> ToolId {
    ToolId::new(name).unwrap()
}

fn manifest(name: &str, says: &str) -> Manifest {
    Manifest::new(tool(name), EffectClass::LocalWrite).described(name, says)
}

/// The operator's word on what the tools are, from the log.
fn signed(world: &World, change: impl Fn(&syscap::Inspection) -> ToolsChange) -> Control {
    let (keys, _) = asked(world, b"secret");
    let (log, key) = (world.log(), keys.public_key(Role::Operator).unwrap());
    log.sign(&change(&log), &key, |message| keys.sign(Role::Operator, message)).unwrap()
}

fn accepts(world: &World, tools: &[(ToolId, ObjectId)]) -> Control {
    signed(world, |log| log.tools_change(tools, &[]).unwrap())
}

fn call(rt: &Runtime, name: &str) -> Option<Reason> {
    let token = rt.issue(Grant::to("a").tools([name])).unwrap();
    let agent = rt.session("a", token).unwrap();
    agent.call(name, args! {}).unwrap().reason()
}

/// A new tool is offered, is seen to wait, can't be called, and runs once it is accepted. Nothing
/// is on record of it before.
#[test]
fn a_new_tool_waits_for_the_operator() {
    let world = World::sealed();
    let rt = world.open();
    let (mine, runs) = provider();
    let before = world.records().len();
    let offers = rt
        .provide(vec![manifest("t.one", "1"), manifest("t.two", "2")], Arc::clone(&mine))
        .unwrap();
    assert!(offers.iter().all(|offer| offer.standing == Standing::New));
    assert_eq!(world.records().len(), before, "nobody signed");
    let offered = offers[0].manifest.id();
    let access = rt;
    let seen = |name: &str| access.view().unwrap().tool(&tool(name)).cloned();
    let info: ToolInfo = seen("t.one").unwrap();
    assert_eq!((info.standing, info.offered), (Standing::New, Some(offered)));
    assert_eq!(access.tool(&tool("t.one")).unwrap().offered.unwrap().id(), offered);
    assert!(matches!(
        access.issue(Grant::to("a").tools(["t.one"])),
        Err(Error::NoSuch { what: "the tool", .. })
    ));
    let one = [(tool("t.one"), offered)];
    // Without the operator nothing changes, and it is said whose key it takes.
    assert!(matches!(access.accept_as(&one), Err(Error::Signer(_))));
    // What was not looked at is not accepted, whoever signed.
    let other = [(tool("t.one"), manifest("t.one", "other").id())];
    let submit = |control: &Control, tools: &[(ToolId, ObjectId)]| {
        access.submit_with(RecordKind::Tools, control.clone(), &Beside::Accepted(tools.to_vec()))
    };
    assert!(matches!(submit(&accepts(&world, &other), &other), Err(Error::NoSuch { .. })));
    // A word for other tools than these puts nothing on record.
    let wrong = signed(&world, |_| ToolsChange { tools: ToolsHash::from_bytes([7; 32]) });
    assert_eq!(reason(submit(&wrong, &one)), Reason::ToolsMismatch);
    assert_eq!(world.count(RecordKind::Tools), 1);
    submit(&accepts(&world, &one), &one).unwrap();
    assert_eq!(world.count(RecordKind::Tools), 2);
    assert_eq!(seen("t.one").unwrap().standing, Standing::Ready);
    assert_eq!(seen("t.two").unwrap().standing, Standing::New);
    // Forgotten by a word of the same kind; it is not offered again by itself.
    let token = access.issue(Grant::to("a").tools(["t.one"])).unwrap();
    let caller = access.session("a", token).unwrap();
    assert_eq!(caller.call("t.one", args! {}).unwrap().reason(), None);
    assert_eq!(runs.0.load(Ordering::SeqCst), 1);
    let gone = vec![tool("t.one")];
    let control = signed(&world, |log| log.tools_change(&[], &gone).unwrap());
    access.submit_with(RecordKind::Tools, control.clone(), &Beside::Forgotten(gone)).unwrap();
    assert!(seen("t.one").is_none());
    caller.close().unwrap();
    access.close().unwrap();
    world.is_sound();
}

/// What waits is its connection's: it goes with it, or when it is taken back.
#[test]
fn signing_request_ends_with_its_connection() {
    let world = World::sealed();
    let rt = world.open();
    let attached = || Runtime::connect(&world.home).unwrap();
    let (one, two) = (attached(), attached());
    let (mine, _) = provider();
    let waiting = |rt: &Runtime| {
        let names = ["t.one", "t.two"].map(tool);
        let control = |tool: &ToolId| {
            let manifest =
                rt.provide(vec![manifest(tool.as_str(), "x")], Arc::clone(&mine)).unwrap();
            manifest[0].standing
        };
        names.each_ref().map(control)
    };
    let both = vec![manifest("t.one", "1"), manifest("t.two", "2")];
    let ids: Vec<(ToolId, ObjectId)> = one
        .provide(both, Arc::clone(&mine))
        .unwrap()
        .iter()
        .map(|offer| (offer.tool().clone(), offer.manifest.id()))
        .collect();
    one.withdraw(&[tool("t.one")]).unwrap();
    let submit = |ids: &[(ToolId, ObjectId)]| {
        let beside = Beside::Accepted(ids.to_vec());
        rt.submit_with(RecordKind::Tools, accepts(&world, ids), &beside)
    };
    assert!(matches!(submit(&ids[..1]), Err(Error::NoSuch { .. })));
    submit(&ids[1..]).unwrap();
    assert_eq!(waiting(&two), [Standing::New, Standing::Changed]);
    two.close().unwrap();
    let again = attached();
    let offers = again.provide(vec![manifest("t.one", "1")], Arc::clone(&mine)).unwrap();
    assert_eq!(offers[0].standing, Standing::New);
    again.close().unwrap();
    assert!(matches!(submit(&ids[..1]), Err(Error::NoSuch { .. })));
    rt.close().unwrap();
    world.is_sound();
}

/// A hook's tool that is not on record is refused with the command that puts it there; once it is,
/// its uses go through.
#[test]
fn a_use_of_a_new_tool_names_what_to_do() {
    let world = World::sealed();
    let rt = world.open();
    let token = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
    let access = rt;
    let used = ToolUse {
        agent: AgentId::new("a").unwrap(),
        conversation: "c".to_owned(),
        id: None,
        tool: tool("client.bash"),
        args: MapBuilder::new().finish(),
        place: None,
        location: None,
        part: None,
    };
    let manifest = manifest("client.bash", "runs things");
    for _ in 0..2 {
        let error = access.begin_use(token, &used, &manifest).unwrap_err();
        assert!(matches!(&error, Error::Awaits(tool) if *tool == used.tool), "{error}");
        assert!(error.to_string().contains("syscap tools accept"), "{error}");
    }
    let offered = access.tool(&used.tool).unwrap().offered.unwrap().id();
    let accepted = vec![(used.tool.clone(), offered)];
    let control = accepts(&world, &accepted);
    access.submit_with(RecordKind::Tools, control.clone(), &Beside::Accepted(accepted)).unwrap();
    // It is on record: what the token grants is another question.
    let refused = access.begin_use(token, &used, &manifest).unwrap();
    let syscap::host::Begun::Answered(answer) = refused else { panic!("it is let through") };
    assert_eq!(answer.reason(), Some(Reason::NotGranted));
    access.close().unwrap();
    world.is_sound();
}

/// A tool of the host's own, of one version or another.
struct Own(Manifest, Arc<AtomicU64>);

struct OwnPlan(Demands, Arc<AtomicU64>);

impl Tool for Own {
    type Plan = OwnPlan;

    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn plan(&self, _: &Request<'_>) -> Result<OwnPlan, syscap::format::Refused> {
        Ok(OwnPlan(Demands::default(), Arc::clone(&self.1)))
    }
}

impl Plan for OwnPlan {
    fn demands(&self) -> &Demands {
        &self.0
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        self.1.fetch_add(1, Ordering::SeqCst);
        permit.ok(Canonical::null(), TxOutcome::Committed)
    }
}

/// A program whose own tools are others than those on record opens a sealed home: calls are
/// refused, tokens and stops work, and a person puts the tools on record. What others offer stays.
#[test]
fn own_tools_wait_for_the_operator_too() {
    let runs = Arc::new(AtomicU64::new(0));
    let own = |says: &str| {
        let own = Own(manifest("own.act", says), Arc::clone(&runs));
        Options::new().tool(own).unwrap()
    };
    let (dir, home) = new_home();
    let rt = own("before").seal(crate::keys::world::seal()).create(&home).unwrap();
    let (mine, delegated) = provider();
    let offers = rt.provide(vec![manifest("t.one", "1")], Arc::clone(&mine)).unwrap();
    assert_eq!(offers[0].standing, Standing::Ready, "whoever makes a home signs");
    rt.close().unwrap();
    let world = World { dir, home };
    let rt = own("after").open(&world.home).unwrap();
    let (tools, before) = (world.count(RecordKind::Tools), world.records().len());
    assert_eq!(call(&rt, "own.act"), Some(Reason::ToolsMismatch));
    assert_eq!(call(&rt, "echo"), Some(Reason::ToolsMismatch));
    assert!(world.records().len() > before);
    let token = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
    rt.revoke(token).unwrap();
    let log = own("after").inspect(&world.home).unwrap();
    // Nothing else is signed over tools that are not those on record.
    assert!(log.tools_change(&[], &[tool("t.one")]).is_none());
    let change = log.own_tools_change().unwrap();
    let control = signed(&world, |_| change.clone());
    rt.submit_with(RecordKind::Tools, control, &Beside::OwnTools).unwrap();
    assert_eq!(world.count(RecordKind::Tools), tools + 1);
    assert_eq!(call(&rt, "own.act"), None);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    // The delegated one is as it was on record, and its offer is ready again.
    let offers = rt.provide(vec![manifest("t.one", "1")], Arc::clone(&mine)).unwrap();
    assert_eq!(offers[0].standing, Standing::Ready);
    assert_eq!(call(&rt, "t.one"), None);
    assert_eq!(delegated.0.load(Ordering::SeqCst), 1);
    rt.close().unwrap();
    let log = own("after").inspect(&world.home).unwrap();
    assert!(log.own_tools_change().is_none());
    world.is_sound();
}
