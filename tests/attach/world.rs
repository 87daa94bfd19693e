//! Homes, calls, and a tool that waits.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use syscap::Session;
use syscap::format::{
    Amounts, Body, EffectClass, Item, Manifest, MapBuilder, Outcome, PolicyObject, Record, Refused,
    Seq, ToolResult, TxOutcome,
};
use syscap::kernel::object_of;
use syscap::policy::{Policy, Preset};
use syscap::prelude::*;
use syscap::provide::{HostCall, HostRan, Provider};

pub(crate) use host_support::{new_home, records, verdict};

/// A new home, whose policy lets every call run that its token grants.
pub(crate) fn home() -> (tempfile::TempDir, PathBuf) {
    let (dir, home) = new_home();
    let runtime = Runtime::create(&home).unwrap();
    runtime.set_policy(Policy::preset(Preset::Recording).unwrap()).unwrap();
    runtime.close().unwrap();
    (dir, home)
}

pub(crate) fn preset(preset: Preset) -> PolicyObject {
    object_of(&Policy::preset(preset).unwrap())
}

/// As many calls as a test may need.
pub(crate) fn budget(calls: u64) -> Budget {
    let budget = Budget::standard().with(Dimension::Calls, calls);
    let budget = budget.with(Dimension::WallUs, 1 << 40).with(Dimension::CpuUs, 1 << 40);
    budget.with(Dimension::Concurrent, 1_000).with(Dimension::DiskFiles, calls)
}

pub(crate) fn call(caller: &Session, tool: &str, args: syscap::Args) -> Result<ToolResult, Error> {
    caller.call(tool, args)
}

pub(crate) fn echo(caller: &Session) -> Result<ToolResult, Error> {
    call(caller, "echo", args! { "value": "hello" })
}

/// A session of an agent `a` with a new token for these tools.
pub(crate) fn caller(access: &Runtime, tools: &[&str]) -> Session {
    let grant = Grant::to("a").tools(tools).workspace().budget(budget(100_000));
    let token = access.issue(grant).unwrap();
    access.session("a", token).unwrap()
}

pub(crate) fn record(home: &Path, seq: Seq) -> Record {
    records(home).into_iter().find(|record| record.seq == seq).unwrap()
}

/// The outcome of an answer.
pub(crate) fn outcome(home: &Path, answer: &ToolResult) -> Outcome {
    let record = record(home, answer.receipt().outcome_seq);
    let Body::Outcome(outcome) = record.body else { panic!("{:?}", record.body) };
    *outcome
}

/// Waits until it is so, and fails where it does not come to that.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !so() {
        assert!(since.elapsed() < Duration::from_secs(30), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn tool(name: &str) -> ToolId {
    ToolId::new(name).unwrap()
}

/// A tool that changes something.
pub(crate) fn manifest(name: &str) -> Manifest {
    let mut manifest = Manifest::new(tool(name), EffectClass::LocalWrite);
    manifest.wall_ms_max = Some(60_000);
    manifest
}

/// What a provider does once it is told that nobody waits any more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenCancelled {
    Ends,
    GoesOn,
}

/// Runs calls that wait until they are let go.
#[derive(Clone)]
pub(crate) struct Gate {
    state: Arc<(Mutex<GateState>, Condvar)>,
    when_cancelled: WhenCancelled,
}

#[derive(Default)]
struct GateState {
    open: bool,
    /// Intent, session and tag of each call that has come.
    came: Vec<(Seq, Seq, u64)>,
    cancelled: Vec<Seq>,
}

impl Gate {
    pub(crate) fn new(when_cancelled: WhenCancelled) -> Self {
        Self { state: Arc::default(), when_cancelled }
    }

    /// One that keeps nobody.
    pub(crate) fn opened() -> Self {
        let gate = Self::new(WhenCancelled::Ends);
        gate.open();
        gate
    }

    pub(crate) fn open(&self) {
        self.state.0.lock().unwrap().open = true;
        self.state.1.notify_all();
    }

    /// From here on calls wait again.
    pub(crate) fn shut(&self) {
        self.state.0.lock().unwrap().open = false;
    }

    pub(crate) fn came(&self) -> Vec<(Seq, Seq, u64)> {
        self.state.0.lock().unwrap().came.clone()
    }

    pub(crate) fn cancelled(&self) -> Vec<Seq> {
        self.state.0.lock().unwrap().cancelled.clone()
    }

    pub(crate) fn provider(&self) -> Arc<dyn Provider> {
        Arc::new(self.clone())
    }
}

impl Provider for Gate {
    fn run(&self, call: HostCall) -> HostRan {
        let intent = call.intent;
        self.state.0.lock().unwrap().came.push((intent, call.session, call.tag));
        let told = Arc::clone(&self.state);
        call.cancel.on_cancel(move || {
            told.0.lock().unwrap().cancelled.push(intent);
            told.1.notify_all();
        });
        let ends = self.when_cancelled == WhenCancelled::Ends;
        let waits =
            |state: &mut GateState| !(state.open || ends && state.cancelled.contains(&intent));
        let (state, _) = self
            .state
            .1
            .wait_timeout_while(self.state.0.lock().unwrap(), Duration::from_secs(60), waits)
            .unwrap();
        let given = call.args.item().get("n").and_then(Item::as_uint).unwrap_or(0);
        let done = MapBuilder::new().uint("n", given).text("text", "done").finish();
        let result = if state.open { Ok(done) } else { Err(Refused::new(Reason::Cancelled)) };
        let tx = if state.open { TxOutcome::Committed } else { TxOutcome::Unknown };
        HostRan::new(result, tx, Amounts::ZERO)
    }
}
