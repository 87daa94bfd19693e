//! A home with a policy, a clock that is moved by hand, and two tools that count their effects.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use host_support::Still;
use syscap::Inspection;
use syscap::audit::SqliteReader;
use syscap::format::{
    Body, Canonical, Control, Durability, EffectClass, Manifest, Param, ParamType, Record, Refusal,
    Refused, Seq, TxOutcome,
};
use syscap::kernel::{Demands, Next, Permit, Plan, Ran, Request, Tool};
use syscap::policy::Policy;
use syscap::prelude::*;

/// One constraint as JSON.
pub(crate) fn constraint(
    id: &str,
    effect: &str,
    subject: &str,
    when: &str,
    on_fail: &str,
) -> String {
    format!(
        r#"{{"id": "{id}", "effect": "{effect}", "subject": {subject}, "when": {when},
            "on_fail": "{on_fail}", "reason": "{id}"}}"#
    )
}

/// A document of constraints.
pub(crate) fn document(constraints: &[String]) -> String {
    format!(r#"{{"v": 1, "constraints": [{}]}}"#, constraints.join(","))
}

/// Every call.
pub(crate) fn allow_all() -> String {
    document(&[constraint("all", "allow", "null", r#"{"op": "all", "args": []}"#, "block")])
}

/// What the tools have done.
#[derive(Clone, Default)]
pub(crate) struct Effects {
    count: Arc<AtomicU64>,
    gate: Arc<(Mutex<(bool, bool)>, Condvar)>,
}

impl Effects {
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until `wait` runs.
    pub(crate) fn await_started(&self) {
        let (state, changed) = &*self.gate;
        let started = state.lock().unwrap();
        drop(changed.wait_while(started, |(started, _)| !*started).unwrap());
    }

    /// Lets `wait` return, now and from now on.
    pub(crate) fn release(&self) {
        let (state, changed) = &*self.gate;
        state.lock().unwrap().1 = true;
        changed.notify_all();
    }

    fn wait(&self) {
        let (state, changed) = &*self.gate;
        let mut state = state.lock().unwrap();
        state.0 = true;
        changed.notify_all();
        drop(changed.wait_while(state, |(_, released)| !*released).unwrap());
    }
}

/// `mail`, which writes elsewhere, and `wait`, which waits until it is told not to.
struct Act {
    manifest: Manifest,
    effects: Effects,
    waits: bool,
}

struct ActPlan {
    demands: Demands,
    effects: Effects,
    waits: bool,
}

impl Tool for Act {
    type Plan = ActPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, _: &Request<'_>) -> Result<ActPlan, Refused> {
        let effects = self.effects.clone();
        Ok(ActPlan { demands: Demands::default(), effects, waits: self.waits })
    }
}

impl Plan for ActPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        if self.waits {
            self.effects.wait();
        }
        self.effects.count.fetch_add(1, Ordering::SeqCst);
        permit.ok(Canonical::text("done"), TxOutcome::Committed)
    }
}

/// A home.
pub(crate) struct World {
    pub(crate) runtime: Runtime,
    pub(crate) effects: Effects,
    pub(crate) clock: Still,
    folder: tempfile::TempDir,
}

impl World {
    /// A home with this policy.
    pub(crate) fn new(policy: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (effects, clock) = (Effects::default(), Still::default());
        let runtime = options(&effects, &clock)
            .policy(Policy::from_json(policy.as_bytes()).unwrap())
            .create(folder.path().join("home"))
            .unwrap();
        Self { runtime, effects, clock, folder }
    }

    /// The home's log as it stands, beside the process that holds it.
    pub(crate) fn inspect(&self) -> Inspection {
        options(&self.effects, &self.clock).inspect(self.home()).unwrap()
    }

    /// Closes the home and keeps its folder.
    pub(crate) fn close(self) -> tempfile::TempDir {
        self.runtime.close().unwrap();
        self.folder
    }

    /// Opens a home again, with the policy that is on record.
    pub(crate) fn open(home: &Path) -> (Runtime, Effects) {
        let effects = Effects::default();
        (options(&effects, &Still::default()).open(home).unwrap(), effects)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn workspace(&self, agent: &str) -> PathBuf {
        self.home().join("files/agents").join(agent.replace('/', "+")).join("workspace")
    }

    /// An agent with a token for these tools, its workspace and `shared`.
    pub(crate) fn seat<const N: usize>(&self, agent: &str, tools: [&str; N]) -> (TokenId, Session) {
        self.seat_with(agent, tools, Budget::standard())
    }

    pub(crate) fn seat_with<const N: usize>(
        &self,
        agent: &str,
        tools: [&str; N],
        budget: Budget,
    ) -> (TokenId, Session) {
        let grant = Grant::to(agent).tools(tools).workspace().read("shared").write("shared");
        let grant = grant.budget(budget).expires_in(Duration::from_secs(3_600));
        let token = self.runtime.issue(grant).unwrap();
        (token, self.runtime.session(agent, token).unwrap())
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        let mut each = |_, bytes: &[u8]| {
            records.push(Record::decode(bytes).unwrap());
            Next::More
        };
        SqliteReader::open(&self.home()).unwrap().records(Seq::GENESIS, &mut each).unwrap();
        records
    }

    pub(crate) fn last_refusal(&self) -> Refusal {
        let refusals = self.records().into_iter().rev().find_map(|record| match record.body {
            Body::Refusal(refusal) => Some(*refusal),
            _ => None,
        });
        refusals.unwrap()
    }

    pub(crate) fn refusals(&self) -> usize {
        self.records().iter().filter(|r| matches!(r.body, Body::Refusal(_))).count()
    }

    pub(crate) fn class_of(&self, tool: &str) -> EffectClass {
        self.runtime
            .look(|kernel| {
                kernel.manifests().find(|manifest| manifest.tool.as_str() == tool).unwrap().effect
            })
            .unwrap()
    }

    /// Hands the kernel a signed policy event as it is.
    pub(crate) fn control_policy(&self, control: Control, engine: Policy) -> Reason {
        match self.runtime.submit_policy(control, engine) {
            Err(Error::Refused(refused)) => refused.reason(),
            other => panic!("{other:?}"),
        }
    }
}

/// A home with both tools, of whose records none is promised to survive a power cut.
fn options(effects: &Effects, clock: &Still) -> Options {
    let mail = Manifest::new(ToolId::new("mail").unwrap(), EffectClass::ExternalWrite)
        .param(Param::required("to", ParamType::Text, "Whom."))
        .param(Param::optional("subject", ParamType::Text, "What about."));
    let wait = Manifest::new(ToolId::new("wait").unwrap(), EffectClass::LocalWrite);
    let act = |manifest, waits| Act { manifest, effects: effects.clone(), waits };
    let options = Options::new().durability(Durability::Process).clock(clock.clone());
    options.tool(act(mail, false)).unwrap().tool(act(wait, true)).unwrap()
}
