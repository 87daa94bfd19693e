//! Calls that wait for a person: put on record, answered, and taken up by being made again.

use alloc::{boxed::Box, string::String, vec::Vec};

use crate::approvals::answers::{ApprovalRequest, Standing, Unanswerable};
use crate::approvals::conditions::{CONDITIONS_MAX, Condition};
use crate::approvals::index::{SameCall, Shown, located};
use crate::approvals::people::People;
use crate::approvals::request::{Asking, waits};
use crate::approvals::sets::{self, RESOURCES};
use crate::call::Stopped;
use crate::events::Submit;
use crate::halt::Halt;
use crate::machine::Kernel;
use crate::run::answer::Reply;
use syscap_format::field::{count, shape};
use syscap_format::{
    ASK_LIFE_MS, AgentId, ApprovalAnswer, ApprovalChannel, Ask, BodyView, CallFields, Canonical,
    Control, ErrorKind, Grants, Label, Leaf, PublicKey, Reason, Refused, Salt, Seq, Status,
    TokenId, ToolId, TxOutcome, UnixMillis, VaultEntry, VaultText, VaultWrite, result_hash,
};

/// The key under which the reason of an answer is committed to.
const REASON: u64 = 7;

/// A call that waits, for those who look.
#[derive(Clone, Debug)]
pub struct AskView {
    /// The record.
    pub ask: Seq,
    /// Its leaf: what an answer is signed over.
    pub leaf: Leaf,
    /// The agent.
    pub agent: AgentId,
    /// The tool.
    pub tool: ToolId,
    /// The keys that may answer.
    pub eligible: Vec<PublicKey>,
    /// How many must approve.
    pub threshold: u64,
    /// From then on it is expired.
    pub expires: UnixMillis,
    /// How many have approved, while more are needed; `None` once it is answered.
    pub approved: Option<u64>,
    /// True if the answer was no.
    pub denied: bool,
    /// The session that asked, while it is open: what an answer without an end ends with.
    pub session: Option<Seq>,
    /// Most calls that one answer may let through; 0: this one alone.
    pub uses_max: u64,
    /// True if an answer may cover more than the resources that this call touches: not where its
    /// session had been given untrusted content.
    pub may_widen: bool,
}

shape! {
    /// An approval of more than one call, for those who look.
    pub struct SetView {
        /// The approval that was the last one needed.
        1 => pub set: Seq,
        /// The call that asked.
        2 => pub ask: Seq,
        /// Its leaf: by a no to it the set ends.
        3 => pub leaf: Leaf,
        /// The agent.
        4 => pub agent: AgentId,
        /// The tool.
        5 => pub tool: ToolId,
        /// The session that it ends with; `None` for none.
        6 => pub session: Option<Seq>,
        /// The scopes covered besides the resources of that call.
        7 => pub scopes: Option<Grants>,
        /// For how many calls it still stands.
        8 => pub left: u64,
        /// When it ends.
        9 => pub until: UnixMillis,
        /// The token.
        10 => pub token: Option<TokenId>,
        /// The label of everything that the session had been given when a person saw the call. A
        /// session that has been given more asks anew.
        11 => pub label: Label,
        /// The label of everything that sessions by the token have been given by now.
        12 => pub given: Label,
        /// The keys that may end it.
        13 => pub eligible: Vec<PublicKey>,
    }
}

impl SetView {
    /// True if no session by its token can use it any more: one of them has been given what the person
    /// was not shown, such as untrusted content.
    #[must_use]
    pub fn is_outlived(&self) -> bool {
        !self.given.leq(self.label)
    }
}

impl Kernel {
    /// Has a call wait for a person, where there is somebody who may answer, and room for it. A
    /// call that can't wait is refused as before.
    pub(crate) fn ask(
        &mut self,
        submit: &Submit,
        fields: CallFields,
        stopped: Stopped,
        asking: &Asking,
        seen: &[Condition],
    ) -> Result<(), Halt> {
        let texts = texts(submit.salts.args, asking, seen);
        let Some((ask, texts)) = self.askable(submit, &fields, asking).zip(texts) else {
            return self.refuse(submit, fields, stopped);
        };
        self.close_aggregate(Some(submit.session))?;
        // It names itself: what is said of it later is found by that.
        let number = self.state.head.seq.next();
        let refused = waits(number);
        let delivered = refused.error_object(ErrorKind::Asked);
        let hash = result_hash(&submit.salts.result, Status::Error.code(), delivered.item());
        let mut ask = Ask { call: fields, ..ask };
        ask.call.result_hash = Some(hash);
        ask.call.session = Some(submit.session);
        ask.call.used = self.refusal_fee(submit.session);
        let resources = texts.iter().filter(|text| text.field == RESOURCES);
        ask.resources = resources.map(VaultText::hash).collect();
        ask.preconditions = seen.iter().map(|one| one.recorded(submit.salts.args)).collect();
        let (seq, leaf) = self.append(BodyView::Ask(&ask))?;
        if let (Some(tool), Some(manifest), Some(args)) =
            (&ask.call.tool_id, &ask.call.manifest, &stopped.args)
            && let Some(agent) = &ask.call.agent_id
        {
            let call = SameCall::of(agent, tool, manifest, args.item());
            let shown = Shown { salt: submit.salts.args, at: located(&texts) };
            self.requests.add(seq, call, shown, &self.state);
        }
        let entry = VaultEntry {
            salts: Some(submit.salts),
            args: stopped.args.map(Canonical::into_bytes),
            result: Some(delivered.as_bytes().into()),
            texts,
            ..VaultEntry::default()
        };
        self.pending.keep(VaultWrite { seq, row: entry.to_row() });
        let reply = Reply {
            ticket: submit.ticket,
            intent: None,
            reason: Some(Reason::Asked),
            delivered,
            tx: TxOutcome::NoOp,
            left: self.left_of(submit.session),
            degraded: Vec::new(),
        };
        self.answer(seq, leaf, &ask.call, reply);
        Ok(())
    }

    /// The record of a call that waits, but for what the call itself says; `None` where it can't.
    pub(crate) fn askable(
        &self,
        submit: &Submit,
        fields: &CallFields,
        asking: &Asking,
    ) -> Option<Ask> {
        if self.people == People::Absent || submit.unasked {
            return None;
        }
        let now = self.now();
        let session = self.state.sessions.get(&submit.session)?;
        let token = self.state.tokens.view(session.token)?;
        let mut eligible = self.state.eligible(session.token);
        let mut threshold = self.state.approvals_needed();
        // By the agent's own client too, where the policy says so.
        let own = self.engine.level("client").map(|own| own.means).unwrap_or_default();
        let counts = |one: &ApprovalChannel| !one.is_a_clients() || own.contains(one);
        let mut means: Vec<_> = ApprovalChannel::ALL.iter().copied().filter(counts).collect();
        let asked = fields.decision.as_ref().map_or(&[][..], |decision| &decision.obligations);
        for asked in asked.iter().filter(|asked| asked.kind.asks_for_a_level()) {
            // What needs a level that nobody is known to have waits in vain.
            let level = self.engine.level(asked.name.as_deref()?)?;
            eligible.retain(|key| level.keys.contains(key));
            threshold = threshold.max(level.approvals);
            means.retain(|one| level.means.contains(one));
        }
        means.retain(|one| threshold < 2 || !one.is_a_clients());
        let room = self.state.asks.has_room(&session.agent, now);
        if !room || means.is_empty() || count(eligible.len()) < threshold {
            return None;
        }
        Some(Ask {
            call: CallFields::unknown(),
            effect: asking.effect,
            call_effect: asking.call_effect,
            arguments: Vec::new(),
            label: self.state.label_of(session),
            resources: Vec::new(),
            preconditions: Vec::new(),
            eligible,
            threshold,
            means,
            expires: now.plus(ASK_LIFE_MS).min(token.body.expires),
        })
    }

    /// A person may answer so, with that reason: it is the one that the answer commits to.
    pub(crate) fn answerable(
        &self,
        control: &Control,
        why: Option<&VaultText>,
    ) -> Result<(), Refused> {
        let body = self.state.answers(control, self.now()).map_err(|why| match why {
            Unanswerable::Form => Refused::new(Reason::BadControl).field("body"),
            Unanswerable::Unknown => Refused::new(Reason::UnknownAsk).field("ask"),
            Unanswerable::Expired => Refused::new(Reason::ApprovalExpired).field("ask"),
            Unanswerable::Answered => Refused::new(Reason::UnknownAsk).field("answer"),
            Unanswerable::Key => Refused::new(Reason::NotEligible).field("key"),
        })?;
        // State knows what was asked, and only the tools in force what is a shell.
        let unbounded = |ask: AskView| ask.leaf == body.ask && ask.uses_max == 0;
        if body.answer == ApprovalAnswer::Set && self.asks().any(unbounded) {
            return Err(Refused::new(Reason::BadControl).field("body"));
        }
        let field = why.is_none_or(|why| why.field == REASON && why.is_short());
        let same = why.map(VaultText::hash) == body.reason && field;
        if same { Ok(()) } else { Err(Refused::new(Reason::BadControl).field("reason")) }
    }

    /// How many calls one answer may let through: more than one only where what the tool does is
    /// bounded by what a set names. A tool that runs code is not bounded so, nor is a call that
    /// names a location and no resource; if the tool is missing that is unknown.
    fn uses_max(&self, ask: Seq, found: &ApprovalRequest) -> u64 {
        let tool = self.registry.find(found.tool.as_str());
        let tool = tool.filter(|tool| tool.manifest_id == found.manifest);
        let (resources, _) = found.bounds.parts(self.requests.shown(ask));
        tool.filter(|tool| !tool.manifest.runs_code() && !resources.is_empty())
            .map_or(0, |_| found.bounds.uses_max)
    }

    /// The calls that wait for a person, or were answered and have not run.
    pub fn asks(&self) -> impl Iterator<Item = AskView> + '_ {
        self.state.asks.live(self.now()).map(|(ask, found)| AskView {
            ask,
            leaf: found.leaf,
            agent: found.agent.clone(),
            tool: found.tool.clone(),
            eligible: found.eligible.clone(),
            threshold: found.threshold,
            expires: found.expires,
            approved: match &found.standing {
                Standing::Pending(keys, _) => Some(count(keys.len())),
                Standing::Granted(..) | Standing::Denied(..) => None,
            },
            denied: matches!(found.standing, Standing::Denied(..)),
            session: found.bounds.session().filter(|open| self.state.sessions.contains_key(open)),
            uses_max: self.uses_max(ask, found),
            may_widen: found.bounds.may_widen(),
        })
    }

    /// The approvals of more than one call that stand.
    pub fn sets(&self) -> impl Iterator<Item = SetView> + '_ {
        self.state.sets.live(self.now()).map(|(by, set)| SetView {
            set: by,
            ask: set.ask,
            leaf: set.leaf,
            agent: set.agent.clone(),
            tool: set.tool.clone(),
            session: set.session,
            scopes: set.scopes.clone(),
            left: set.left,
            until: set.until,
            token: self.state.tokens.view(set.bounds.token).map(|token| token.id),
            label: set.bounds.label(),
            given: self.state.tokens.begins(set.bounds.token),
            eligible: set.eligible.clone(),
        })
    }
}

/// The resources that it would touch, and the location where it would act, in words, by the salt of
/// its arguments: they are erased together. `None` where not all of it can be shown: nobody approves
/// what they have not seen.
fn texts(salt: Salt, asking: &Asking, seen: &[Condition]) -> Option<Vec<VaultText>> {
    let text = |shown: String| VaultText { salt, field: RESOURCES, text: Box::from(shown) };
    if asking.resources.len() > RESOURCES_MAX || seen.len() > CONDITIONS_MAX {
        return None;
    }
    let location = asking.location.as_deref().map(sets::shown_location);
    let shown = asking.resources.iter().cloned().chain(location).map(text);
    let texts: Vec<_> = shown.chain(seen.iter().flat_map(|one| one.texts(salt))).collect();
    texts.iter().all(VaultText::is_short).then_some(texts)
}

/// Most resources that an ask names.
pub(crate) const RESOURCES_MAX: usize = 64;
