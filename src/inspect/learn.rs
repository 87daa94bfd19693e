//! Learning the least capability: reads what was recorded, for [`syscap_analysis::learn`].
//!
//! ```no_run
//! use syscap::{Options, learn::Scan, analysis::learn::{Settings, propose}};
//!
//! # fn main() -> Result<(), syscap::Error> {
//! let recorded = Options::new().inspect("home")?.recorded(&Scan::default())?;
//! let proposal = propose(&recorded.recording, &Settings::default())?;
//! println!("{}", proposal.policy.to_json());
//! # Ok(())
//! # }
//! ```

mod poison;
mod preview;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use syscap_kernel::{Demand, Kernel, Next, PolicyEngine, Question, Store, StoreError, vault_entry};

use syscap_analysis::learn::{
    Authority, Context, Denial, Ended, ForAgent, Lost, Observation, Paid, RecordedSession,
    Recording, Touched,
};
use syscap_format::{
    AgentId, AggregatePhase, Amounts, ApprovalAnswer, ApprovalBody, Body, CallFields, Commitment,
    ControlBody as _, Decision, EngineIdentity, FactKey, Intent, Leaf, Manifest, ObjectId,
    ObjectKind, Outcome, OutcomeFlags, Reason, Record, Resource, Seq, SessionPhase, StateChange,
    Status, UnixMillis, Verdict,
};
use syscap_policy::{Policy, path_text};

use crate::{Error, Grant, Inspection};

use poison::Track;

pub use poison::{AFTER_MAX, After, Origin, POISONED_MAX, Poisoned};
pub use preview::{Loosened, PREVIEWED_MAX, Preview, Previewed, PreviewedCall, Was, WhyNot};

/// Most calls that are learned from: of a longer log, the newest.
pub const CALLS_MAX: usize = 200_000;
/// Most bytes of arguments that are learned from: of a larger log, the newest.
pub const ARGUMENTS_BYTES_MAX: usize = 256 << 20;
/// How many records are read before they are looked at.
const CHUNK: usize = 512;

/// Which part of a log to learn from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The first record.
    pub from: Seq,
    /// The key of an agent's state that says what a session is for. Sessions of one agent that
    /// had the same value at their first call are no independent evidence. `None` where each
    /// session stands for itself.
    pub task: Option<FactKey>,
}

impl Default for Scan {
    fn default() -> Self {
        Self { from: Seq::GENESIS, task: None }
    }
}

/// A log's input to the learner.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// The calls.
    pub recording: Recording,
    /// Calls that are too many, or whose arguments are: the oldest.
    pub dropped: u64,
    /// Refusals that were only counted, or that name no tool or session.
    pub unnamed: u64,
    /// Sessions that were given a stranger's word before they did more than read here, in the order
    /// of their records.
    pub poisoned: Vec<Poisoned>,
    /// More of those: the oldest.
    pub poisoned_dropped: u64,
    /// Calls that a person denied, wherever the learner begins.
    pub denied: Vec<Denial>,
}

/// The warning wherever calls are made under a policy that only records.
pub const RECORDING: &str = "the policy in force is a recording: it allows every call that the \
    token and its budget allow; put another one in force when you have learned";

/// True if the policy in force only records.
#[must_use]
pub fn is_recording(kernel: &Kernel) -> bool {
    let policy = Policy::from_cbor(&kernel.engine().document());
    policy.is_ok_and(|policy| policy.is_recording())
}

/// The grant of a token that was proposed.
pub fn grant(proposed: &ForAgent) -> Grant {
    let grant = Grant::to(proposed.agent.as_str()).budget(proposed.budget);
    let tools = proposed.grants.iter();
    tools.fold(grant, |grant, (tool, scopes)| grant.tool_with(tool.clone(), scopes.clone()))
}

impl Inspection {
    /// The calls on record, with what they were made with. Another process may hold the home.
    ///
    /// # Errors
    /// As [`Options::open`](crate::Options::open).
    pub fn recorded(&self, scan: &Scan) -> Result<Recorded, Error> {
        let mut store = self.store();
        let reader = &mut **store;
        let witness = Witness::default();
        let mut touched = BTreeMap::new();
        self.kernel().replay(reader, &witness, &mut |redecided| {
            let demands = witness.0.take();
            if let Some(demands) = demands {
                touched.insert(redecided.seq, demands);
            }
        })?;
        let mut walk = Walk::new(self.kernel(), scan, touched);
        let end = self.kernel().head().seq;
        let mut from = Seq::GENESIS;
        loop {
            let chunk = read(reader, from)?;
            let Some((last, _)) = chunk.last() else { break };
            from = last.next();
            for (_, bytes) in chunk.iter().filter(|(seq, _)| *seq <= end) {
                let record = Record::decode(bytes).map_err(|_| StoreError::Damaged)?;
                walk.take(&record, reader)?;
            }
        }
        Ok(walk.finish())
    }
}

fn read(reader: &mut dyn Store, from: Seq) -> Result<Vec<(Seq, Vec<u8>)>, StoreError> {
    let mut chunk = Vec::new();
    reader.records(from, &mut |seq, bytes| {
        chunk.push((seq, bytes.to_vec()));
        if chunk.len() < CHUNK { Next::More } else { Next::Enough }
    })?;
    Ok(chunk)
}

/// Sees what each call touched: of all that decide, only an engine is told.
#[derive(Default)]
struct Witness(RefCell<Option<Vec<Demand>>>);

impl PolicyEngine for Witness {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from("witness"), version: 0 }
    }

    fn document(&self) -> Vec<u8> {
        vec![0xa0]
    }

    fn decide(&self, question: &Question<'_>) -> Decision {
        self.0.replace(Some(question.demands.to_vec()));
        Decision::plain(Verdict::Deny)
    }
}

/// The arguments that name one path each.
fn paths(demands: &[Demand]) -> BTreeMap<String, String> {
    let path = |resource: &Resource| match resource {
        Resource::Path { path, .. } | Resource::Tree { path, .. } => Some(path_text(path)),
        _ => None,
    };
    let mut paths = BTreeMap::new();
    for demand in demands {
        let others = demands.iter().filter(|other| other.argument == demand.argument).count();
        if let (1, Some(path)) = (others, path(&demand.resource)) {
            paths.insert(demand.argument.to_owned(), path);
        }
    }
    paths
}

/// The state of a walk along a log.
struct Walk<'a> {
    kernel: &'a Kernel,
    scan: &'a Scan,
    touched: BTreeMap<Seq, Vec<Demand>>,
    manifests: BTreeMap<ObjectId, Option<Arc<Manifest>>>,
    /// The current task of each agent.
    tasks: BTreeMap<AgentId, Vec<u8>>,
    /// Sessions that have made a call.
    begun: BTreeSet<Seq>,
    /// Calls that wait for a person, and until when.
    asks: BTreeMap<Leaf, (UnixMillis, Denial)>,
    calls: BTreeMap<Seq, Observation>,
    bytes: usize,
    track: Track,
    recorded: Recorded,
}

impl<'a> Walk<'a> {
    fn new(kernel: &'a Kernel, scan: &'a Scan, touched: BTreeMap<Seq, Vec<Demand>>) -> Self {
        let recorded = Recorded {
            recording: Recording {
                tools: kernel.manifests().cloned().collect(),
                ..Recording::default()
            },
            ..Recorded::default()
        };
        Self {
            kernel,
            scan,
            touched,
            manifests: BTreeMap::new(),
            tasks: BTreeMap::new(),
            begun: BTreeSet::new(),
            asks: BTreeMap::new(),
            calls: BTreeMap::new(),
            bytes: 0,
            track: Track::default(),
            recorded,
        }
    }

    fn take(&mut self, record: &Record, reader: &mut dyn Store) -> Result<(), Error> {
        let (seq, new) = (record.seq, record.seq >= self.scan.from);
        match &record.body {
            Body::Session(change) | Body::SessionAlone(change)
                if change.phase == SessionPhase::Open =>
            {
                let opened = RecordedSession {
                    agent: change.agent.clone(),
                    token: change.token,
                    task: None,
                };
                self.recorded.recording.sessions.insert(seq, opened);
                if let Some(token) = self.kernel.token(&change.token) {
                    let grants = token.body.grants.clone();
                    let authority =
                        Authority { issued: token.issued, grants, budget: token.body.budget };
                    self.recorded.recording.tokens.insert(change.token, authority);
                }
            }
            Body::State(change) => {
                self.learn_task(seq, change, reader)?;
                if new {
                    self.pay(seq, change.call.session, change.call.used);
                }
            }
            Body::Charge(charge) if new => self.pay(seq, Some(charge.session), charge.amounts),
            Body::Intent(intent) if new => {
                let (effect, given) = (intent.call_effect, intent.label);
                self.track.called(seq, &intent.call, effect, given, Ended::Open);
                self.intend(seq, intent, reader)?;
            }
            Body::Outcome(outcome) => {
                self.track.delivered(seq, &outcome.call, outcome.label);
                self.end(outcome);
            }
            Body::Repeat(repeat) => self.track.delivered(seq, &repeat.call, repeat.label),
            Body::Refusal(refusal) if new => {
                let ended = Ended::Refused(refusal.reason);
                if let Some(manifest) = self.manifest(refusal.call.manifest, reader)? {
                    self.track.refused(seq, &refusal.call, manifest.effect, ended);
                }
                self.refuse(seq, &refusal.call, ended);
            }
            Body::Ask(ask) => {
                // So few wait at a time.
                self.asks.retain(|_, (expires, _)| *expires > record.time);
                if let Some(asked) = self.asked(seq, &ask.call, reader)? {
                    self.asks.insert(record.leaf(), (ask.expires, asked));
                }
                if new {
                    let ended = Ended::Refused(Reason::Asked);
                    self.track.called(seq, &ask.call, ask.call_effect, ask.label, ended);
                    self.refuse(seq, &ask.call, ended);
                }
            }
            Body::Approval(event) => {
                let said = ApprovalBody::from_bytes(&event.control.body);
                self.answered(&said.map_err(|_| StoreError::Damaged)?);
            }
            Body::Refusals(run) if new && run.phase != AggregatePhase::Open => {
                let unnamed = &mut self.recorded.unnamed;
                *unnamed = unnamed.saturating_add(run.count.unwrap_or(0));
            }
            _ => {}
        }
        Ok(())
    }

    /// The denial of a request; `None` if its record names no agent or no tool.
    fn asked(
        &mut self,
        ask: Seq,
        call: &CallFields,
        reader: &mut dyn Store,
    ) -> Result<Option<Denial>, Error> {
        let (Some(agent), Some(tool)) = (&call.agent_id, &call.tool_id) else { return Ok(None) };
        let entry = vault_entry(reader, ask, ask)?;
        let committed = call.args_hash.zip(call.manifest.as_ref());
        let args = committed.and_then(|(hash, manifest)| {
            entry.committed(Commitment::Arguments(hash, tool, manifest))
        });
        let paths = paths(&self.touched.remove(&ask).unwrap_or_default());
        Ok(Some(Denial { ask, agent: agent.clone(), tool: tool.clone(), args, paths }))
    }

    fn answered(&mut self, said: &ApprovalBody) {
        // A no that ends a standing approval denies no call.
        let Some((_, asked)) = self.asks.remove(&said.ask) else { return };
        if said.answer == ApprovalAnswer::Deny {
            self.recorded.denied.push(asked);
        }
    }

    /// Learns an agent's task from a change of its state.
    fn learn_task(
        &mut self,
        seq: Seq,
        change: &StateChange,
        reader: &mut dyn Store,
    ) -> Result<(), Error> {
        let (Some(key), Some(agent)) = (&self.scan.task, &change.call.agent_id) else {
            return Ok(());
        };
        if change.removed.contains(key) {
            self.tasks.remove(agent);
        }
        if change.set.contains(key) {
            let entry = vault_entry(reader, seq, seq)?;
            let hash = change.call.args_hash;
            let committed = hash.and_then(|hash| entry.committed(Commitment::Changes(hash)));
            let value = committed.and_then(|changes| {
                changes.item().get(key.as_str()).map(|value| value.as_bytes().to_vec())
            });
            match value {
                Some(value) => drop(self.tasks.insert(agent.clone(), value)),
                // Erased: what is not known is no task.
                None => drop(self.tasks.remove(agent)),
            }
        }
        Ok(())
    }

    fn pay(&mut self, seq: Seq, session: Option<Seq>, amounts: Amounts) {
        if let Some(session) = session {
            self.recorded.recording.charges.push(Paid { session, seq, amounts });
        }
    }

    fn intend(&mut self, seq: Seq, intent: &Intent, reader: &mut dyn Store) -> Result<(), Error> {
        let call = &intent.call;
        let (Some(tool), Some(session)) = (&call.tool_id, call.session) else {
            return Ok(());
        };
        if let Some(opened) = self.recorded.recording.sessions.get_mut(&session)
            && self.begun.insert(session)
        {
            opened.task = self.tasks.get(&opened.agent).cloned();
        }
        let manifest = self.manifest(call.manifest, reader)?;
        let entry = vault_entry(reader, seq, seq)?;
        let committed = call.args_hash.zip(call.manifest.as_ref());
        let kept = committed.filter(|_| entry.salts.is_some() && entry.args.is_some());
        let args = kept.ok_or(Lost::Erased).and_then(|(hash, manifest)| {
            let arguments = Commitment::Arguments(hash, tool, manifest);
            entry.committed(arguments).ok_or(Lost::Altered)
        });
        self.bytes = self.bytes.saturating_add(args.as_ref().map_or(0, |a| a.as_bytes().len()));
        let nothing = manifest.as_ref().is_some_and(|m| m.dimensions == Vec::new());
        let touched = match self.touched.remove(&seq) {
            Some(demands) => Touched::Known(demands),
            // A tool that needs no scope touches nothing that one would hold.
            None if nothing => Touched::Known(Vec::new()),
            None => Touched::Unknown,
        };
        let untrusted = intent.label.is_untrusted();
        let context = if untrusted { Context::Untrusted } else { Context::Trusted };
        let observation = Observation {
            seq,
            session,
            tool: tool.clone(),
            manifest,
            args,
            touched,
            ended: Ended::Open,
            context,
            held: call.held,
            used: call.used,
        };
        self.calls.insert(seq, observation);
        while self.calls.len() > CALLS_MAX || self.bytes > ARGUMENTS_BYTES_MAX {
            let Some((_, oldest)) = self.calls.pop_first() else { break };
            let bytes = oldest.args.map_or(0, |args| args.as_bytes().len());
            self.bytes = self.bytes.saturating_sub(bytes);
            self.recorded.dropped = self.recorded.dropped.saturating_add(1);
        }
        Ok(())
    }

    fn end(&mut self, outcome: &Outcome) {
        let ended = match outcome.status {
            Status::Ok if outcome.flags.has(OutcomeFlags::TOOL_FAILED) => Ended::ToolFailed,
            Status::Ok => Ended::Done,
            Status::Error if outcome.reason == Some(Reason::ToolFailed) => Ended::ToolFailed,
            Status::Error => Ended::Failed,
        };
        self.track.ended(outcome.intent, ended);
        if let Some(call) = self.calls.get_mut(&outcome.intent) {
            call.used = outcome.call.used;
            call.ended = ended;
        }
    }

    fn refuse(&mut self, seq: Seq, call: &CallFields, ended: Ended) {
        let (Some(tool), Some(session)) = (&call.tool_id, call.session) else {
            self.recorded.unnamed = self.recorded.unnamed.saturating_add(1);
            return;
        };
        let observation = Observation {
            seq,
            session,
            tool: tool.clone(),
            manifest: None,
            args: Err(Lost::Erased),
            touched: Touched::Unknown,
            ended,
            context: Context::Untrusted,
            held: Amounts::ZERO,
            used: call.used,
        };
        self.calls.insert(seq, observation);
    }

    fn manifest(
        &mut self,
        id: Option<ObjectId>,
        reader: &mut dyn Store,
    ) -> Result<Option<Arc<Manifest>>, Error> {
        let Some(id) = id else { return Ok(None) };
        if let Some(known) = self.manifests.get(&id) {
            return Ok(known.clone());
        }
        let object = reader.object(&id)?.filter(|object| object.kind == ObjectKind::Manifest);
        let manifest = object.and_then(|object| Manifest::from_bytes(&object.bytes).ok());
        let manifest = manifest.map(Arc::new);
        self.manifests.insert(id, manifest.clone());
        Ok(manifest)
    }

    fn finish(mut self) -> Recorded {
        self.recorded.recording.calls = self.calls.into_values().collect();
        self.recorded.poisoned_dropped = self.track.dropped;
        self.recorded.poisoned = self.track.finish();
        self.recorded
    }
}
