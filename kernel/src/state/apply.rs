//! `apply`: the only way in which the state changes, live and on replay.

use alloc::{sync::Arc, vec::Vec};

use crate::approvals::answers::Asks;
use crate::approvals::sets::Sets;
use crate::authority::credits::Credits;
use crate::authority::signers::{Replaced, Signer};
use crate::authority::tokens::Tokens;
use crate::halt::Halt;
use crate::state::agents::AgentState;
use crate::state::fold::{Frozen, LateRun, OpenIntent, State, Unreported};
use crate::state::idempotency::{KeySlot, KeyState, KeyUse, Keys, Moment};
use crate::state::rates::{Doer, Rates};
use crate::state::sessions::{Aggregate, Released, Session, Streak};
use syscap_format::{
    AgentId, AggregatePhase, Amounts, Body, BodyView, CallFields, ClockFlags, ConfigChange,
    Control, ControlBody, CreditChange, Dimension, Freeze, FreezeBecause, FreezeChange,
    FreezeTarget, Genesis, Head, HomeId, Input, Intent, Issue, KeyChange, Label, Late, LateReport,
    Leaf, Notify, Object, ObjectId, Outcome, OutcomeFlags, PolicyBecause, PolicyChange,
    PreviousRun, Reason, Record, RecordView, Recovered, Recovery, RedactBody, Refusals, Role, Seq,
    SessionChange, SessionPhase, Snapshot, StateChange, Token, TokenBody, ToolId, ToolsChange,
    TxOutcome, UnixMillis,
};

/// The access of `apply` to the control documents that a record names.
pub(crate) trait Objects {
    /// `None` where there is none of that name; an error where that can't be said.
    fn find(&mut self, id: &ObjectId) -> Result<Option<Object>, Halt>;
}

impl State {
    /// The state after the genesis record.
    pub(crate) fn begin(record: &Record, leaf: Leaf) -> Result<Self, Halt> {
        let zeros = Leaf::from_bytes([0; 32]);
        let Body::Genesis(genesis) = &record.body else {
            return Err(Halt::Contradiction { seq: record.seq });
        };
        if record.seq != Seq::GENESIS || record.prev != zeros || record.boot != 0 {
            return Err(Halt::Unchained { seq: record.seq });
        }
        let Genesis { limits, durability, roles, recovery, .. } = &**genesis;
        Ok(Self {
            home: HomeId::from_bytes(*leaf.as_bytes()),
            limits: limits.clone(),
            durability: *durability,
            head: Head { seq: record.seq, leaf },
            time: record.time,
            boot: 0,
            ended: PreviousRun::First,
            roles: roles.clone(),
            recovery: *recovery,
            signers: alloc::collections::BTreeMap::new(),
            replaced: Replaced::default(),
            policy: None,
            shadow: None,
            tools: None,
            tokens: Tokens::default(),
            credits: Credits::default(),
            rates: Rates::default(),
            epoch: 0,
            revoked_keys: alloc::collections::BTreeSet::new(),
            sessions: alloc::collections::BTreeMap::new(),
            agents: alloc::collections::BTreeMap::new(),
            frozen: Frozen::default(),
            open: alloc::collections::BTreeMap::new(),
            running: alloc::collections::BTreeMap::new(),
            keys: Keys::default(),
            asks: Asks::default(),
            sets: Sets::default(),
            recovered: alloc::collections::BTreeSet::new(),
            unreported: alloc::collections::BTreeMap::new(),
            unconfirmed_before: None,
            unbound: Streak::default(),
            notify: None,
            shared_labels: false,
        })
    }

    /// Folds one more record in.
    pub(crate) fn apply(
        &mut self,
        record: RecordView<'_>,
        leaf: Leaf,
        objects: &mut dyn Objects,
    ) -> Result<(), Halt> {
        let seq = record.seq;
        let boots = matches!(record.body, BodyView::Boot(_));
        let boot = if boots { self.boot.saturating_add(1) } else { self.boot };
        if seq != self.head.seq.next() || record.prev != self.head.leaf {
            return Err(Halt::Unchained { seq });
        }
        if record.time < self.time || record.boot != boot {
            return Err(Halt::Contradiction { seq });
        }
        self.apply_body(record, leaf, objects).ok_or(Halt::Contradiction { seq })??;
        self.head = Head { seq, leaf };
        self.time = record.time;
        Ok(())
    }

    /// `None` where the record contradicts the state.
    fn apply_body(
        &mut self,
        record: RecordView<'_>,
        leaf: Leaf,
        objects: &mut dyn Objects,
    ) -> Option<Result<(), Halt>> {
        match record.body {
            BodyView::Genesis(_) => return None,
            BodyView::Boot(boot) => {
                self.boot = record.boot;
                self.ended = PreviousRun::Unclean;
                self.durability = boot.durability;
                self.sessions.clear();
                self.sets.close(None);
                self.running.clear();
                self.unbound = Streak::default();
                self.tokens.free_gauge();
                if record.clock.has(ClockFlags::GAP) {
                    self.unconfirmed_before = Some(record.seq);
                }
                let (time, unconfirmed) = (record.time, self.unconfirmed_before);
                self.keys.forget(Moment { time, unconfirmed });
            }
            BodyView::Shutdown(_) => self.ended = PreviousRun::Clean,
            BodyView::Issue(issue) => return Some(self.issue(record, issue, objects)),
            BodyView::Session(change) => {
                self.shared_labels = true;
                self.session(record.seq, change, None)?;
            }
            BodyView::SessionAlone(change) => self.session_of_before(record.seq, change)?,
            BodyView::Key(event)
            | BodyView::Revoke(event)
            | BodyView::Freeze(event)
            | BodyView::FreezeBecause(event)
            | BodyView::Policy(event)
            | BodyView::PolicyBecause(event)
            | BodyView::Tools(event)
            | BodyView::Config(event)
            | BodyView::Credit(event) => self.control(record, &event.control)?,
            BodyView::State(change) => return self.state(record.seq, change, objects).transpose(),
            BodyView::Charge(charge) => self.posted(record.seq, charge)?,
            BodyView::Intent(intent) => self.intent(record, intent)?,
            BodyView::Outcome(outcome) => self.outcome(record.seq, outcome)?,
            BodyView::Refusal(refusal) => {
                self.pay(refusal.call.session, &refusal.call.used)?;
                self.streak_of_mut(refusal.call.session)?.count();
                self.turned_away(record.time, &refusal.call);
            }
            BodyView::Refusals(refusals) => self.refusals(record.seq, record.time, refusals)?,
            BodyView::Repeat(repeat) => {
                // It pays a call, but breaks no row: it is no work of its own.
                self.pay(repeat.call.session, &repeat.call.used)?;
                self.given(repeat.call.session?, repeat.label)?;
            }
            BodyView::Late(late) => self.late(record.seq, late)?,
            BodyView::LateReport(report) => self.late_report(record.seq, report)?,
            BodyView::Recovery(recovery) => self.recovery(record.seq, recovery)?,
            BodyView::Ask(ask) => {
                self.ask(record.seq, leaf, record.time, ask)?;
                self.turned_away(record.time, &ask.call);
            }
            BodyView::Approval(event) => {
                self.answered(record.seq, record.time, &event.control)?;
                self.signed(record.seq, &event.control)?;
            }
            BodyView::Cancel(cancel) => {
                if let Some(control) = &cancel.control {
                    self.signed(record.seq, control)?;
                }
                let intent = self.cancellable(cancel.intent, cancel.session).ok()?;
                self.open.get_mut(&intent)?.cancelled = true;
            }
            BodyView::Input(input) => self.heard(input)?,
            BodyView::Redact(event) => self.redact(record.seq, &event.control)?,
            // Reserved: not decoded.
            BodyView::Declassify(_) | BodyView::Prune(_) | BodyView::Checkpoint(_) => return None,
        }
        Some(Ok(()))
    }

    fn issue(
        &mut self,
        record: RecordView<'_>,
        issue: &Issue,
        objects: &mut dyn Objects,
    ) -> Result<(), Halt> {
        let seq = record.seq;
        let name = ObjectId::from_bytes(*issue.token.as_bytes());
        let object = objects.find(&name)?.ok_or(Halt::Object { seq })?;
        // Whoever folds it in has verified it: live when it came, of a log before this.
        let body = Token::body_of(&object.bytes).ok_or(Halt::Object { seq })?;
        if TokenBody::id_of(body) != issue.token {
            return Err(Halt::Object { seq });
        }
        let body = TokenBody::from_bytes(body).map_err(|_| Halt::Object { seq })?;
        let parent = match &issue.parent {
            Some(parent) => Some(self.tokens.find(parent).ok_or(Halt::Contradiction { seq })?),
            None => None,
        };
        let body = Arc::new(body);
        if parent.is_none() {
            self.signers.entry(body.issuer).or_default().last = seq;
        }
        let inserted = self.tokens.insert(issue.token, body, parent, seq);
        self.tokens.renewed(inserted.ok_or(Halt::Contradiction { seq })?);
        Ok(())
    }

    /// Of version 2: a session of it has a label of its own. None is written after one of version 3.
    fn session_of_before(&mut self, seq: Seq, change: &SessionChange) -> Option<()> {
        if self.shared_labels {
            return None;
        }
        let handed = self.tokens.handed(self.tokens.find(&change.token)?);
        self.session(seq, change, Some(handed))
    }

    fn session(&mut self, seq: Seq, change: &SessionChange, alone: Option<Label>) -> Option<()> {
        match (change.phase, change.session) {
            (SessionPhase::Open, None) => {
                let token = self.tokens.find(&change.token)?;
                let agent = change.agent.clone();
                let genesis = || AgentState::genesis(agent.clone());
                let state = self.agents.entry(agent.clone()).or_insert_with(genesis);
                if state.id() != change.snapshot {
                    return None;
                }
                let root = self.tokens.root_agent(token)?;
                self.tokens.give(token, alone.unwrap_or_else(|| self.tokens.begins(token)))?;
                let session =
                    Session::new(agent, root, alone, token, change.token, change.snapshot);
                self.sessions.insert(seq, session);
            }
            (SessionPhase::Close, Some(session)) => {
                self.sessions.remove(&session)?;
                self.sets.close(Some(session));
            }
            _ => return None,
        }
        Some(())
    }

    /// `None` where the record contradicts the state.
    fn state(
        &mut self,
        seq: Seq,
        change: &StateChange,
        objects: &mut dyn Objects,
    ) -> Result<Option<()>, Halt> {
        let name = ObjectId::from_bytes(*change.snapshot.as_bytes());
        let object = objects.find(&name)?.ok_or(Halt::Object { seq })?;
        let next = Snapshot::from_bytes(&object.bytes).map_err(|_| Halt::Object { seq })?;
        let agent = change.call.agent_id.as_ref().and_then(|agent| self.agents.get_mut(agent));
        let advanced = agent.and_then(|agent| agent.advance(seq, change, next));
        Ok(advanced.and_then(|()| self.pay(change.call.session, &change.call.used)))
    }

    fn control(&mut self, record: RecordView<'_>, control: &Control) -> Option<()> {
        self.signed(record.seq, control)?;
        let bytes = &control.body;
        match record.body {
            BodyView::Key(_) => self.change_keys(record.seq, KeyChange::from_bytes(bytes).ok()?),
            BodyView::Revoke(_) => {
                self.end(self.ended_by(bytes).ok()?, record.time);
            }
            BodyView::Freeze(_) => self.freeze(&Freeze::from_bytes(bytes).ok()?)?,
            BodyView::FreezeBecause(_) => {
                self.freeze(&FreezeBecause::from_bytes(bytes).ok()?.freeze())?;
            }
            BodyView::Policy(_) | BodyView::PolicyBecause(_) => {
                let change = match record.body {
                    BodyView::Policy(_) => PolicyChange::from_bytes(bytes).ok()?,
                    _ => PolicyBecause::from_bytes(bytes).ok()?.change(),
                };
                self.policy = Some(change.policy);
                self.sets.swap(change.policy);
                self.shadow = change.shadow;
                self.replaced.policy = record.seq;
            }
            BodyView::Tools(_) => {
                self.tools = Some(ToolsChange::from_bytes(bytes).ok()?.tools);
                self.replaced.tools = record.seq;
            }
            BodyView::Config(_) => {
                if let Ok(notify) = Notify::from_bytes(bytes) {
                    self.notify = Some(notify).filter(|notify| !notify.program.is_empty());
                } else if ConfigChange::from_bytes(bytes).ok()?.confirm_time.is_some() {
                    self.unconfirmed_before = None;
                }
            }
            BodyView::Credit(_) => {
                self.credits.grant(record.seq, &CreditChange::from_bytes(bytes).ok()?)?;
            }
            _ => return None,
        }
        Some(())
    }

    /// Rows were erased: none that a run still needs.
    fn redact(&mut self, seq: Seq, control: &Control) -> Option<()> {
        let body = RedactBody::from_bytes(&control.body).ok()?;
        if !body.is_sound(seq) || body.records.iter().any(|record| self.open.contains_key(record)) {
            return None;
        }
        self.signed(seq, control)
    }

    /// Counts the signatures of an event. `None` where a counter has not grown.
    fn signed(&mut self, seq: Seq, control: &Control) -> Option<()> {
        for signed in &control.signatures {
            let signer = self.signers.entry(signed.key).or_default();
            if signed.counter <= signer.counter {
                return None;
            }
            *signer = Signer { counter: signed.counter, last: seq };
        }
        Some(())
    }

    /// A role has other keys. Tokens by one that was cut off end with it.
    fn change_keys(&mut self, seq: Seq, change: KeyChange) {
        if let Some(cut_off) = change.cut_off {
            self.tokens
                .revoke_roots(|body, issued| issued > cut_off && !change.set.holds(&body.issuer));
        }
        // What waits is asked anew of those who may answer now, and what was answered ends.
        if change.set.role == Role::Approver {
            (self.asks, self.sets) = (Asks::default(), Sets::default());
        }
        self.replaced.keys.insert(change.set.role, seq);
        self.roles.replace(change.set);
    }

    fn freeze(&mut self, freeze: &Freeze) -> Option<()> {
        let on = freeze.change == FreezeChange::Freeze;
        let frozen = &mut self.frozen;
        match freeze.target {
            FreezeTarget::Kernel => frozen.kernel = on,
            FreezeTarget::Agent => {
                let agent = AgentId::new(&freeze.name)?;
                if on {
                    frozen.agents.insert(agent)
                } else {
                    frozen.agents.remove(&agent)
                };
            }
            FreezeTarget::Tool => {
                let tool = ToolId::new(&freeze.name)?;
                if on {
                    frozen.tools.insert(tool)
                } else {
                    frozen.tools.remove(&tool)
                };
            }
        }
        Some(())
    }

    fn intent(&mut self, record: RecordView<'_>, intent: &Intent) -> Option<()> {
        let seq = record.seq;
        let number = intent.call.session?;
        let session = self.sessions.get_mut(&number)?;
        // A call is paid by its session's token, and by no other.
        if intent.call.capability_token_id != Some(session.token_id) {
            return None;
        }
        session.streak.reset();
        let (token, agent) = (session.token, session.agent.clone());
        let (root, tool, time) = (session.root.clone(), intent.call.tool_id.clone()?, record.time);
        let doer = Doer { agent: root, tool, time };
        if let Some(approval) = intent.approval {
            let (call, conditions) = (&intent.call, &intent.preconditions[..]);
            self.use_up(approval, record.time, token, call, conditions)?;
        } else if !intent.preconditions.is_empty() {
            return None;
        }
        let key = match &intent.key {
            Some(key) => {
                let agent = intent.call.agent_id.clone()?;
                let tool = intent.call.tool_id.clone()?;
                let slot = KeySlot { agent, tool, key: key.clone() };
                let used = KeyUse {
                    intent: seq,
                    sent: intent.sent_hash?,
                    token,
                    until: record.time.plus(self.limits.key_life_ms),
                    state: KeyState::InFlight,
                    result: None,
                    degraded: Vec::new(),
                    given: intent.label,
                    label: Label::PUBLIC,
                };
                self.keys.begin(slot.clone(), used);
                Some(slot)
            }
            None => None,
        };
        self.hold(seq, token, &agent, &intent.call.held);
        let (held, effect) = (intent.call.held, intent.effect);
        self.rates.admitted(&doer, &held);
        let cancelled = false;
        let open = OpenIntent { token, session: number, held, effect, key, cancelled, doer };
        self.open.insert(seq, open);
        Some(())
    }

    /// A run that was given up came back. Its effect is known now, and its result is not kept.
    fn late(&mut self, seq: Seq, late: &Late) -> Option<()> {
        let LateRun { token, key } = self.running.remove(&late.intent)?;
        let slot = Amounts::ZERO.with(Dimension::Concurrent, 1);
        self.tokens.settle(token, &slot, &Amounts::ZERO);
        match (key, late.tx) {
            (Some(key), TxOutcome::Committed) => self.keys.end(&key, KeyState::Done(seq)),
            (Some(key), TxOutcome::RolledBack | TxOutcome::NoOp) => self.keys.release(&key),
            (_, TxOutcome::Unknown) | (None, _) => {}
        }
        Some(())
    }

    /// A run was closed without its provider's word, who may still report it.
    fn unreported(&mut self, intent: Seq, open: OpenIntent) {
        let OpenIntent { token, effect, doer, .. } = open;
        self.unreported.insert(intent, Unreported { token, tool: doer.tool, effect });
        while syscap_format::field::count(self.unreported.len()) > self.limits.in_flight_max {
            self.unreported.pop_first();
        }
    }

    /// A run that was closed without its provider's word is reported. Its key follows the report, unless
    /// an operator has said what became of it; whoever has the result has its label.
    fn late_report(&mut self, seq: Seq, report: &LateReport) -> Option<()> {
        let run = self.unreported.remove(&report.intent)?;
        let verdict = report.verdict();
        if verdict != Recovered::Unknown {
            self.recovered.remove(&report.intent);
            self.keys.resolve(report.intent, verdict, seq);
        }
        self.tokens.give(run.token, report.label)
    }

    fn outcome(&mut self, seq: Seq, outcome: &Outcome) -> Option<()> {
        let open = self.open.remove(&outcome.intent)?;
        let mut freed = open.held;
        if outcome.flags.has(OutcomeFlags::RUNNING) {
            freed.set(Dimension::Concurrent, 0);
            let run = LateRun { token: open.token, key: open.key.clone() };
            self.running.insert(outcome.intent, run);
        }
        self.settle(outcome.intent, open.token, &freed, &outcome.call.used);
        self.rates.settled(&open.doer, &open.held, &outcome.call.used);
        if outcome.flags.has(OutcomeFlags::OVERRUN) {
            self.tokens.exhaust(open.token);
        }
        if let Some(slot) = &open.key {
            match (outcome.reason, outcome.tx) {
                (Some(Reason::NotRun), _) => self.keys.release(slot),
                (_, TxOutcome::Unknown) => {
                    self.keys.end(slot, KeyState::Unknown(seq));
                }
                _ => {
                    let (hash, degraded) = (outcome.call.result_hash?, outcome.call.degraded());
                    self.keys.done(slot, seq, hash, outcome.status, degraded, outcome.label);
                }
            }
        }
        // Of a session that has ended as well: its agent may repeat the call, or look at its result.
        self.tokens.give(open.token, outcome.label)?;
        if let Some(session) = self.sessions.get_mut(&open.session) {
            session.is_given(outcome.label);
            if outcome.is_of_the_tool() {
                let result_hash = outcome.call.result_hash?;
                session.release(Released { outcome: seq, intent: outcome.intent, result_hash });
            }
        }
        if outcome.may_be_reported() {
            self.unreported(outcome.intent, open);
        }
        Some(())
    }

    /// Joins the label of a user's message into the session's.
    fn heard(&mut self, input: &Input) -> Option<()> {
        let its = |session: &&mut Session| session.agent == input.agent;
        self.sessions.get_mut(&input.session).filter(its)?;
        self.given(input.session, input.label)
    }

    /// A session was given something of that label: so was its family.
    fn given(&mut self, session: Seq, label: Label) -> Option<()> {
        let session = self.sessions.get_mut(&session)?;
        session.is_given(label);
        self.tokens.give(session.token, label)
    }

    /// Charges what a refused or repeated call pays: its session's token, if there is one.
    pub(crate) fn pay(&mut self, session: Option<Seq>, used: &Amounts) -> Option<()> {
        if let Some(session) = session {
            let token = self.sessions.get(&session)?.token;
            self.tokens.settle(token, &Amounts::ZERO, used);
        }
        Some(())
    }

    /// Counts a call that was refused, or asked about, in its session's agent's history.
    fn turned_away(&mut self, time: UnixMillis, call: &CallFields) {
        if let Some(session) = call.session.and_then(|session| self.sessions.get(&session)) {
            self.rates.refused(&session.root, call.tool_id.as_ref(), time, 1);
        }
    }

    fn refusals(&mut self, seq: Seq, now: UnixMillis, refusals: &Refusals) -> Option<()> {
        let calls = |amount| Amounts::ZERO.with(Dimension::Calls, amount);
        match refusals.phase {
            AggregatePhase::Open => {
                self.pay(refusals.session, &calls(refusals.reserved))?;
                self.streak_of_mut(refusals.session)?.open(Aggregate {
                    opened: seq,
                    answers_max: refusals.answers_max,
                    reserved: refusals.reserved,
                });
                // How many it is will be known when it closes. Until then it is all of them, and so
                // it stays: a decision falls before what closes one, and its record behind.
                if let Some(session) = refusals.session.and_then(|s| self.sessions.get(&s)) {
                    self.rates.refused(&session.root, None, now, refusals.answers_max);
                }
            }
            AggregatePhase::Close => {
                let aggregate = self.streak_of_mut(refusals.session)?.aggregate.take()?;
                let unused = aggregate.reserved.saturating_sub(refusals.count?);
                if let Some(session) = refusals.session {
                    let token = self.sessions.get(&session)?.token;
                    self.tokens.refund(token, &calls(unused));
                }
            }
            AggregatePhase::Overload => {}
        }
        Some(())
    }

    fn recovery(&mut self, seq: Seq, recovery: &Recovery) -> Option<()> {
        match &recovery.control {
            None => {
                let open = self.open.remove(&recovery.intent)?;
                if recovery.verdict == Recovered::Unknown {
                    self.recovered.insert(recovery.intent);
                }
                self.settle(recovery.intent, open.token, &open.held, &recovery.used);
                self.rates.settled(&open.doer, &open.held, &recovery.used);
                if let Some(slot) = &open.key {
                    match recovery.verdict {
                        Recovered::NotDone => self.keys.release(slot),
                        Recovered::Done => self.keys.end(slot, KeyState::Done(seq)),
                        Recovered::Unknown => self.keys.end(slot, KeyState::Unknown(seq)),
                    }
                }
                self.unreported(recovery.intent, open);
            }
            // The operator's word changes no charge, and settles what was not known.
            Some(control) => {
                if !self.recovered.contains(&recovery.intent) {
                    return None;
                }
                if recovery.verdict != Recovered::Unknown {
                    self.recovered.remove(&recovery.intent);
                }
                self.keys.resolve(recovery.intent, recovery.verdict, seq);
                self.signed(seq, control)?;
            }
        }
        Some(())
    }
}

/// Objects that came with the record itself.
impl Objects for &[Object] {
    fn find(&mut self, id: &ObjectId) -> Result<Option<Object>, Halt> {
        Ok(self.iter().find(|object| object.id == *id).cloned())
    }
}
