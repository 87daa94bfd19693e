//! What a person was shown beside a call must still be so when it runs.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use host_support::{end, new_home, records};
use syscap::approvals::{SetTerms, WaitingCall};
use syscap::format::{
    ApprovalAnswer, Body, Canonical, EffectClass, Manifest, Param, ParamType, PreconditionKind,
    Refused, Seq, TxOutcome,
};
use syscap::kernel::{Condition, Demands, Inspect, Permit, Plan, Ran, Request, Tool};
use syscap::policy::Policy;
use syscap::prelude::*;

const POLICY: &str = r#"{"v": 1, "constraints": [
    {"id": "all", "effect": "allow", "subject": null, "when": {"op": "all", "args": []},
     "on_fail": "block", "reason": "Fine."},
    {"id": "writes", "effect": "deny", "subject": {"capability": "local_write"},
     "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "Somebody looks at it."}
]}"#;

struct World {
    _folder: tempfile::TempDir,
    home: PathBuf,
    rt: Runtime,
    agent: Session,
}

fn world() -> World {
    world_with(Options::new(), &["fs.write"])
}

fn world_with(options: Options, tools: &[&str]) -> World {
    let (folder, home) = new_home();
    let rt = options.policy(Policy::from_json(POLICY.as_bytes()).unwrap()).create(&home).unwrap();
    let grant = Grant::to("a").tools(tools.iter().copied()).write("workspace");
    let agent = rt.session("a", rt.issue(grant).unwrap()).unwrap();
    World { _folder: folder, home, rt, agent }
}

impl World {
    fn write(&self, text: &str) -> ToolResult {
        self.agent.call("fs.write", args! { "path": "a.txt", "text": text }).unwrap()
    }

    fn file(&self) -> PathBuf {
        self.home.join("files/agents/a/workspace/a.txt")
    }

    fn waiting(&self, ask: Seq) -> WaitingCall {
        let log = Options::new().inspect(&self.home).unwrap();
        log.waiting().unwrap().into_iter().find(|call| call.ask == ask).unwrap()
    }

    fn approve(&self, ask: Seq) {
        self.rt.answer(ask, ApprovalAnswer::Once, None).unwrap();
    }

    fn end(self) {
        drop(self.agent);
        end(&self.rt, &self.home);
    }
}

/// Of "hello", by FIPS 180-4.
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

#[test]
fn a_file_that_was_shown_is_the_one_that_is_replaced() {
    let world = world();
    fs::write(world.file(), "hello").unwrap();
    let ask = world.write("new").ask().unwrap();
    let condition = Condition {
        kind: PreconditionKind::Digest,
        subject: "workspace/a.txt of a".into(),
        seen: Some(HELLO.into()),
    };
    assert_eq!(world.waiting(ask).conditions, [condition]);
    world.approve(ask);
    // Somebody else was quicker.
    fs::write(world.file(), "theirs").unwrap();
    let refused = world.write("new");
    assert_eq!((refused.reason(), refused.retry()), (Some(Reason::Changed), Some(Retry::Ask)));
    assert_eq!(refused.tx_outcome(), TxOutcome::NoOp);
    assert_eq!(fs::read_to_string(world.file()).unwrap(), "theirs");
    // The approval is used up: what there is now is asked about anew.
    let anew = world.write("new").ask().unwrap();
    assert!(anew > ask);
    world.approve(anew);
    assert_eq!(world.write("new").reason(), None);
    assert_eq!(fs::read_to_string(world.file()).unwrap(), "new");
    let all = records(&world.home);
    let of = |seq: Seq| match &all[usize::try_from(seq.get()).unwrap()].body {
        Body::Ask(ask) => ask.preconditions.clone(),
        other => panic!("{other:?}"),
    };
    let intents = all.iter().filter_map(|record| match &record.body {
        Body::Intent(intent) => Some(intent.preconditions.clone()),
        _ => None,
    });
    assert_eq!(intents.collect::<Vec<_>>(), [of(ask), of(anew)]);
    // Another time, another salt: what was seen can't be told from the log.
    assert_ne!(of(ask)[0].subject, of(anew)[0].subject);
    world.end();
}

#[test]
fn a_file_that_was_not_there_is_still_not_there() {
    let world = world();
    fs::create_dir_all(world.file().parent().unwrap()).unwrap();
    let ask = world.write("new").ask().unwrap();
    let conditions = world.waiting(ask).conditions;
    assert_eq!((conditions[0].kind, &conditions[0].seen), (PreconditionKind::Absent, &None));
    world.approve(ask);
    fs::write(world.file(), "theirs").unwrap();
    assert_eq!(world.write("new").reason(), Some(Reason::Changed));
    assert_eq!(fs::read_to_string(world.file()).unwrap(), "theirs");
    let anew = world.write("new").ask().unwrap();
    world.approve(anew);
    // And one that was there is.
    fs::remove_file(world.file()).unwrap();
    assert_eq!(world.write("new").reason(), Some(Reason::Changed));
    assert!(!world.file().exists());
    world.end();
}

/// A set is for calls that change what they touch: nothing is held against them.
#[test]
fn a_set_is_bound_to_no_content() {
    let world = world();
    let ask = world.write("1").ask().unwrap();
    world.rt.answer_set(ask, &SetTerms { uses: 3, scopes: None, expires: None }, None).unwrap();
    for text in ["1", "2", "3"] {
        assert_eq!(world.write(text).reason(), None);
        assert_eq!(fs::read_to_string(world.file()).unwrap(), text);
    }
    world.end();
}

/// A tool that looks at as much as it is told to, or breaks off; and says what its permit says.
#[derive(Clone)]
struct Careful {
    manifest: Manifest,
    sees: Arc<Mutex<Vec<Condition>>>,
    breaks: Arc<AtomicBool>,
    looks: Arc<AtomicUsize>,
    told: Arc<Mutex<Vec<Condition>>>,
}

impl Careful {
    fn new() -> Self {
        let id = ToolId::new("careful").unwrap();
        let manifest = Manifest::new(id, EffectClass::LocalWrite).param(Param::optional(
            "n",
            ParamType::Int,
            "",
        ));
        Self {
            manifest,
            sees: Arc::default(),
            breaks: Arc::default(),
            looks: Arc::default(),
            told: Arc::default(),
        }
    }
}

impl Tool for Careful {
    type Plan = CarefulPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, _: &Request<'_>) -> Result<CarefulPlan, Refused> {
        Ok(CarefulPlan { demands: Demands::default(), told: Arc::clone(&self.told) })
    }

    fn inspector(&self, _: &Request<'_>) -> Result<Option<Box<dyn Inspect>>, Refused> {
        Ok(Some(Box::new(self.clone())))
    }
}

impl Inspect for Careful {
    fn inspect(self: Box<Self>) -> Vec<Condition> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        assert!(!self.breaks.load(Ordering::SeqCst), "a tool that breaks off");
        self.sees.lock().unwrap().clone()
    }
}

struct CarefulPlan {
    demands: Demands,
    told: Arc<Mutex<Vec<Condition>>>,
}

impl Plan for CarefulPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        *self.told.lock().unwrap() = permit.conditions().to_vec();
        permit.ok(Canonical::null(), TxOutcome::Committed)
    }
}

#[test]
fn a_tools_own_conditions_reach_its_run() {
    let tool = Careful::new();
    let world = world_with(Options::new().tool(tool.clone()).unwrap(), &["careful"]);
    let call = |n: i64| world.agent.call("careful", args! { "n": n }).unwrap();
    let condition = |n: usize| Condition {
        kind: PreconditionKind::Version,
        subject: format!("branch {n}").into(),
        seen: Some("r1".into()),
    };
    *tool.sees.lock().unwrap() = (0..16).map(condition).collect();
    let ask = call(1).ask().unwrap();
    assert_eq!(world.waiting(ask).conditions, *tool.sees.lock().unwrap());
    world.approve(ask);
    assert_eq!(call(1).reason(), None);
    assert_eq!(*tool.told.lock().unwrap(), *tool.sees.lock().unwrap());
    // Nobody approves what they have not seen.
    let long = Condition { subject: "x".repeat(4_097).into(), ..condition(0) };
    for too_much in [(0..17).map(condition).collect(), vec![long]] {
        *tool.sees.lock().unwrap() = too_much;
        let asked = call(2);
        assert_eq!((asked.reason(), asked.ask()), (Some(Reason::Asked), None));
    }
    // One that breaks off harms its own call, and that is on record.
    tool.breaks.store(true, Ordering::SeqCst);
    let broken = call(3);
    assert_eq!((broken.reason(), broken.ask()), (Some(Reason::Panicked), None));
    assert!(matches!(records(&world.home).pop().unwrap().body, Body::Refusal(_)));
    tool.breaks.store(false, Ordering::SeqCst);
    tool.sees.lock().unwrap().clear();
    let ask = call(4).ask().unwrap();
    world.approve(ask);
    assert_eq!(call(4).reason(), None);
    assert_eq!(*tool.told.lock().unwrap(), []);
    world.end();
}

/// To look costs something: it is not done for a call that nobody will be asked about.
#[test]
fn precondition_is_read_for_asked_calls_only() {
    let tool = Careful::new();
    let world = world_with(Options::new().tool(tool.clone()).unwrap(), &["careful"]);
    let call = |n: i64| world.agent.call("careful", args! { "n": n }).unwrap();
    let asks = (0..100).filter(|n| call(*n).ask().is_some()).count();
    assert_eq!((asks, tool.looks.load(Ordering::SeqCst)), (32, 32));
    // Nor for one that waits already.
    assert!(call(0).ask().is_some());
    assert_eq!(tool.looks.load(Ordering::SeqCst), 32);
    world.end();
}
