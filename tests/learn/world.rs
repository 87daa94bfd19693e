//! A home in which runs are played again, call by call.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use syscap::Written;
use syscap::analysis::learn::{Proposal, Settings, propose};
use syscap::format::{Budget, Dimension, Durability, FactKey, Label, Reason, TokenId};
use syscap::learn::{Recorded, Scan, grant};
use syscap::policy::{Policy, Preset};
use syscap::verify::{Options as VerifyOptions, Soundness, TrustSource, verify_home};
use syscap::{Grant, Options, Runtime, Session, args};

use crate::learn::data::{Data, Run};
use crate::learn::tools::{self, Next, TOOLS};

pub(crate) const SUITES: [&str; 2] = ["banking", "workspace"];
pub(crate) const TASK: &str = "goal.task";

/// What counts as one piece of evidence.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A task: five models did each.
    Task,
    /// A session.
    Session,
}

pub(crate) struct World<'d> {
    data: &'d Data,
    home: PathBuf,
    next: Next,
    pub(crate) rt: Runtime,
    tokens: BTreeMap<&'static str, TokenId>,
}

/// What became of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) runs: usize,
    pub(crate) runs_refused: usize,
    pub(crate) calls: usize,
    pub(crate) refused: usize,
    pub(crate) attacks: usize,
    pub(crate) attacks_refused: usize,
    /// Refused calls by tool and by what was wrong.
    pub(crate) why: BTreeMap<(String, Reason, String), usize>,
    /// Attacks and those refused, by tool.
    pub(crate) attack_tools: BTreeMap<String, (usize, usize)>,
}

fn options(label: Label, next: &Next) -> Options {
    let options = Options::new().durability(Durability::Process);
    tools::Recorded::all(label, next).fold(options, |options, tool| options.tool(tool).unwrap())
}

impl Figures {
    /// One set of figures for several.
    pub(crate) fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.runs_refused += other.runs_refused;
        self.calls += other.calls;
        self.refused += other.refused;
        for (key, count) in &other.why {
            *self.why.entry(key.clone()).or_default() += count;
        }
    }

    /// Refused because the tool was never called while it was recorded.
    pub(crate) fn never_seen(&self) -> usize {
        self.why.iter().filter(|((_, why, _), _)| *why == Reason::NotGranted).map(|(_, n)| n).sum()
    }
}

impl<'d> World<'d> {
    /// A home under the recording policy, and an agent for each suite that may use all of its
    /// tools. What the tools bring carries `label`.
    pub(crate) fn recording(data: &'d Data, folder: &Path, label: Label) -> Self {
        let (home, next) = (folder.join("home"), Next::default());
        let options = options(label, &next).policy(Policy::preset(Preset::Recording).unwrap());
        let rt = options.create(&home).unwrap();
        let mut tokens = BTreeMap::new();
        for suite in SUITES {
            let tools = TOOLS.iter().filter(|(of, ..)| *of == suite);
            let tools = tools.map(|(_, name, ..)| format!("{suite}.{name}"));
            let all = Budget::standard()
                .with(Dimension::Calls, 1 << 20)
                .with(Dimension::CpuUs, 1 << 40)
                .with(Dimension::WallUs, 1 << 40);
            let grant = Grant::to(suite).tools(tools).budget(all);
            let token = rt.issue(grant.expires_in(Duration::from_hours(24))).unwrap();
            tokens.insert(suite, token);
        }
        Self { data, home, next, rt, tokens }
    }

    /// Ends, and has the log verified.
    pub(crate) fn close(self) -> Soundness {
        self.rt.close().unwrap();
        let trust = TrustSource::File(self.home.join("trust.cbor"));
        let options = VerifyOptions { trust, ..VerifyOptions::default() };
        verify_home(&self.home, &options).unwrap().verdict()
    }

    /// Plays runs, each in a session of its own, which says what it is for.
    pub(crate) fn play<'r>(&self, runs: impl IntoIterator<Item = &'r Run>) -> Figures {
        let mut figures = Figures::default();
        for run in runs {
            let token = self.tokens[&*run.suite];
            let session = self.rt.session(&run.suite, token).unwrap();
            session.propose(args! { "goal.task": &run.task }).unwrap();
            self.run(run, &session, &mut figures);
            session.close().unwrap();
        }
        figures
    }

    fn run(&self, run: &Run, session: &Session, figures: &mut Figures) {
        let before = figures.refused;
        for call in &run.calls {
            let text = self.data.texts.get(&call.result).cloned().unwrap_or_default();
            *self.next.lock().unwrap() = (text, call.failed);
            let tool = format!("{}.{}", run.suite, call.tool);
            let envelope = serde_json::json!({ "tool_id": tool, "args": call.args }).to_string();
            let result = session.envelope(envelope.as_bytes(), Written::Json).wait().unwrap();
            // A run that fails is no refusal.
            let refused = result.reason().filter(|reason| *reason != Reason::Failed);
            figures.calls += 1;
            if call.exact_attack {
                figures.attacks += 1;
                let tool = figures.attack_tools.entry(tool.clone()).or_default();
                tool.0 += 1;
                tool.1 += usize::from(refused.is_some());
                figures.attacks_refused += usize::from(refused.is_some());
            }
            if let Some(reason) = refused {
                figures.refused += 1;
                let error =
                    result.delivered().item().get("field").and_then(|field| field.as_text());
                let field = error.unwrap_or_default().to_owned();
                *figures.why.entry((tool, reason, field)).or_default() += 1;
            }
        }
        figures.runs += 1;
        figures.runs_refused += usize::from(figures.refused > before);
    }

    pub(crate) fn recorded(&self, by: Unit) -> Recorded {
        let task = FactKey::new(TASK).filter(|_| by == Unit::Task);
        let scan = Scan { task, ..Scan::default() };
        Options::new().inspect(&self.home).unwrap().recorded(&scan).unwrap()
    }

    pub(crate) fn learn(&self, by: Unit, settings: &Settings) -> Proposal {
        propose(&self.recorded(by).recording, settings).unwrap()
    }

    /// Puts a proposal in force, and opens the home again with tools whose results are a
    /// stranger's word. The budgets are for one session: there is room for more here.
    pub(crate) fn apply(self, proposal: Proposal) -> Self {
        let Self { data, home, next, rt, .. } = self;
        let mut tokens = BTreeMap::new();
        for one in &proposal.agents {
            let suite = SUITES.into_iter().find(|suite| *suite == one.agent.as_str()).unwrap();
            let token = rt.issue(grant(one).expires_in(Duration::from_hours(24))).unwrap();
            tokens.insert(suite, token);
        }
        rt.set_policy(proposal.policy).unwrap();
        rt.close().unwrap();
        let rt = options(Label::UNTRUSTED, &next).open(&home).unwrap();
        Self { data, home, next, rt, tokens }
    }
}

/// The tasks of runs.
pub(crate) fn of<'d>(
    data: &'d Data,
    tasks: &BTreeSet<crate::learn::data::Task>,
) -> impl Iterator<Item = &'d Run> {
    data.benign().filter(move |run| tasks.contains(&run.task()))
}
