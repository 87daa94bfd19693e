//! Replay: what another policy would have said of the calls in a log.
//!
//! The state is folded record by record, as when a home is opened. Before each record that holds a
//! decision the same question is put together again - from the state, from the arguments in the
//! vault, from what the tool plans with them - and another engine is asked. It writes nothing, and
//! runs nothing.

use alloc::{collections::BTreeMap, vec::Vec};

use crate::call::context::Context;
use crate::call::decide::{question, sound};
use crate::call::{Found, arguments};
use crate::demands::distinct;
use crate::halt::Halt;
use crate::lifecycle::replay::{FromStore, decode, read_chunk};
use crate::machine::Kernel;
use crate::policy::PolicyEngine;
use crate::registry::{Registered, Registry};
use crate::state::fold::State;
use crate::store::Store;
use crate::tool::{Demands, Request};
use crate::vault::vault_entry;
use syscap_format::{
    AgentId, AggregatePhase, Amounts, Body, CallFields, Canonical, Commitment, Decision, Facts,
    Item, Record, RecordKind, Seq, StateChange, ToolId, UnixMillis, leaf,
};

/// A call of the log, and what another policy says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redecided {
    /// The record that holds the decision.
    pub seq: Seq,
    /// That record's kind: `intent`, `refusal` or `ask`. Only a call with an intent was let run.
    pub kind: RecordKind,
    /// The agent.
    pub agent: AgentId,
    /// The tool.
    pub tool: ToolId,
    /// The decision on record.
    pub was: Decision,
    /// The other policy's decision, or the reason why there is none.
    pub now: Result<Decision, NotAsked>,
}

/// Why a call of a log can't be decided again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotAsked {
    /// Its arguments were erased, or are not those that the record commits to.
    Erased,
    /// The tool is not here, or another than it was.
    ToolChanged,
    /// An aggregate of refusals was closed at the same moment, and the answer depends on whether
    /// the budget had got its share back by then.
    BudgetUnclear,
}

impl NotAsked {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Erased => "erased",
            Self::ToolChanged => "tool_changed",
            Self::BudgetUnclear => "budget_unclear",
        }
    }
}

/// The state of a walk along a log.
struct Walk<'a> {
    registry: &'a Registry,
    engine: &'a dyn PolicyEngine,
    facts: BTreeMap<AgentId, Facts>,
    /// The rest before the aggregate of this session was closed in the record before.
    before_close: Option<(Seq, Amounts)>,
}

impl Kernel {
    /// Asks another engine about every call of a log that a policy has decided, in their order.
    /// The log must be this kernel's home's, or another made with the same tools.
    ///
    /// # Errors
    /// [`Halt`]: the log is damaged, of a newer version or contradicts itself.
    pub fn replay(
        &self,
        store: &mut dyn Store,
        engine: &dyn PolicyEngine,
        each: &mut dyn FnMut(Redecided),
    ) -> Result<(), Halt> {
        let facts = BTreeMap::new();
        let mut walk = Walk { registry: &self.registry, engine, facts, before_close: None };
        let mut state: Option<State> = None;
        loop {
            let from = state.as_ref().map_or(Seq::GENESIS, |state| state.head.seq.next());
            let chunk = read_chunk(store, from)?;
            if chunk.is_empty() {
                return Ok(());
            }
            for (seq, bytes) in chunk {
                let record = decode(seq, &bytes)?;
                let leaf = leaf(&bytes);
                let Some(state) = &mut state else {
                    state = Some(State::begin(&record, leaf)?);
                    continue;
                };
                let call = match &record.body {
                    Body::Intent(intent) => Some(&intent.call),
                    Body::Refusal(refusal) => Some(&refusal.call),
                    Body::Ask(ask) => Some(&ask.call),
                    _ => None,
                };
                if let Some(call) = call
                    && let Some(redecided) = walk.decide(state, &record, call, store)?
                {
                    each(redecided);
                }
                walk.look_back(state, &record.body);
                state.apply(record.view(), leaf, &mut FromStore { store })?;
                if let Body::State(change) = &record.body {
                    walk.learn(seq, change, store)?;
                }
            }
        }
    }
}

impl Walk<'_> {
    /// `None` where no policy was asked.
    fn decide(
        &self,
        state: &State,
        record: &Record,
        call: &CallFields,
        store: &mut dyn Store,
    ) -> Result<Option<Redecided>, Halt> {
        let (Some(was), Some(agent), Some(tool)) = (&call.decision, &call.agent_id, &call.tool_id)
        else {
            return Ok(None);
        };
        let (seq, kind, now) = (record.seq, record.body.kind(), record.time);
        let registered = self.registry.find(tool.as_str());
        let registered = registered.filter(|found| Some(found.manifest_id) == call.manifest);
        let now = match (registered, call.args_hash) {
            (None, _) => Err(NotAsked::ToolChanged),
            (Some(_), None) => Err(NotAsked::Erased),
            (Some(found), Some(hash)) => {
                let entry = vault_entry(store, seq, seq)?;
                let arguments = Commitment::Arguments(hash, tool, &found.manifest_id);
                let args = entry.committed(arguments).ok_or(NotAsked::Erased);
                args.and_then(|args| self.ask(state, call, found, args.item(), now))
            }
        };
        let (agent, tool, was) = (agent.clone(), tool.clone(), was.clone());
        Ok(Some(Redecided { seq, kind, agent, tool, was, now }))
    }

    fn ask(
        &self,
        state: &State,
        call: &CallFields,
        tool: &Registered,
        args: Item<'_>,
        now: UnixMillis,
    ) -> Result<Decision, NotAsked> {
        let unplanned = NotAsked::ToolChanged;
        let number = call.session.ok_or(unplanned)?;
        let source = call.provenance.as_ref().ok_or(unplanned)?.source;
        let context = Context::of(state, number, &self.facts, source, state.head.seq, now);
        let context = context.ok_or(unplanned)?;
        let grant = context.token.body.grants.get(&tool.manifest.tool).ok_or(unplanned)?;
        let (agent, token) = (&context.session.agent, context.token.body);
        let request = Request { agent, args, grant, token, live: None };
        let plan = tool.tool.plan(&request).map_err(|_| unplanned)?;
        let Demands { resources, hold } = plan.demands();
        let resources = distinct(resources).map_err(|_| unplanned)?;
        let hold = tool.manifest.hold_for(hold);
        let decided = arguments::decided(&tool.manifest, args);
        let asked = |left: &Amounts| {
            let found = Found { tool, grant };
            let args = decided.as_ref().map_or(args, Canonical::item);
            let question = question(&context, found, args, &*plan, &resources, &hold, left);
            sound(self.engine.decide(&question))
        };
        let decision = asked(&context.token.left);
        match self.before_close {
            Some((closed, left)) if closed == number && asked(&left) != decision => {
                Err(NotAsked::BudgetUnclear)
            }
            _ => Ok(decision),
        }
    }

    /// Keeps what was left of a token before an aggregate gives back what it did not need.
    fn look_back(&mut self, state: &State, body: &Body) {
        self.before_close = match body {
            Body::Refusals(refusals) if refusals.phase == AggregatePhase::Close => {
                let session = refusals.session.and_then(|number| {
                    state.sessions.get(&number).map(|session| (number, session.token))
                });
                session.map(|(number, token)| (number, state.left(token)))
            }
            _ => None,
        };
    }

    /// The values of facts that a record wrote, as far as the vault has them.
    fn learn(&mut self, seq: Seq, change: &StateChange, store: &mut dyn Store) -> Result<(), Halt> {
        let Some(agent) = &change.call.agent_id else {
            return Ok(());
        };
        let entry = vault_entry(store, seq, seq)?;
        let hash = change.call.args_hash;
        let committed = hash.and_then(|hash| entry.committed(Commitment::Changes(hash)));
        let facts = self.facts.entry(agent.clone()).or_default();
        change.removed.iter().for_each(|key| facts.remove(key));
        for key in &change.set {
            let value = committed.as_ref().and_then(|c| c.item().get(key.as_str()));
            facts.set(key.clone(), value.map(Canonical::from));
        }
        Ok(())
    }
}

/// Decisions of one log, counted by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls with the same decision.
    pub same: u64,
    /// Calls with another verdict or other obligations.
    pub changed: Vec<Redecided>,
    /// Calls that can't be decided again.
    pub not_asked: Vec<Redecided>,
}

impl Tally {
    /// Counts one more.
    pub fn add(&mut self, redecided: Redecided) {
        match &redecided.now {
            Err(_) => self.not_asked.push(redecided),
            Ok(now)
                if now.verdict == redecided.was.verdict
                    && now.obligations == redecided.was.obligations =>
            {
                self.same = self.same.saturating_add(1);
            }
            Ok(_) => self.changed.push(redecided),
        }
    }
}
