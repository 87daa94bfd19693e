//! One call, moved forward by value: each step names the only next one.
//!
//! The types are crate-private, so no other crate can make, skip, repeat or reorder a step; and
//! they are fed from the kernel's own tokens, tools, policy and budgets, so no other can be put
//! in their place. A step that says no gives back what is known of the call, to be recorded.

use alloc::{borrow::Cow, boxed::Box, vec::Vec};

use crate::{
    args::{self, References},
    decide::{Engines, Kept, keep, refusal},
    policy::Question,
    registry::{Mode, Registered, Registry},
    resolve::AsSent,
    state::{AgentState, KeySlot, Released, Session, State, TokenIndex},
    told::{keyed, named, over_budget, unknown_record, with_tools},
    tool::{AnyPlan, Demand, Demands, Live, Request},
};
use syscap_format::{
    budget::{Amounts, Dimension},
    cbor::{Canonical, Item},
    decision::Verdict,
    envelope::{Defaults, Form, ToolCall},
    facts::Facts,
    hash::{args_hash, call_digest, call_hash, sent_hash},
    id::{CallDigest, SentHash, Seq, SnapshotId, TokenId, ToolId},
    provenance::{Provenance, Source},
    reason::{ErrorKind, Reason, Refused},
    record::{CallFields, RefusalKind},
    time::UnixMillis,
    token::TokenFlags,
    vault::CallSalts,
};

mod follow;

pub(crate) use follow::Seen;

mod step {
    /// Marks the steps; sealed.
    pub(crate) trait Step {}
}
use step::Step;

/// A call at step `S`. No `Clone`; every method takes it by value.
#[must_use = "a call must be moved forward or refused on the record"]
pub(crate) struct Call<S: Step> {
    fields: Box<CallFields>,
    at: S,
}

/// The envelope was read and completed.
pub(crate) struct Decoded {
    call: ToolCall,
}

/// The session's token is live, and grants the tool.
pub(crate) struct Checked {
    call: ToolCall,
    token: TokenIndex,
    references: References,
}

/// The arguments are resolved, fit the manifest and are hashed.
pub(crate) struct Resolved {
    call: ToolCall,
    token: TokenIndex,
    args: Canonical,
    /// The argument whose links were followed.
    sent: Option<AsSent>,
}

/// The tool made a plan, and all that it would touch lies in scope.
pub(crate) struct Planned {
    call: ToolCall,
    token: TokenIndex,
    args: Canonical,
    sent: Option<AsSent>,
    plan: Box<dyn AnyPlan>,
    demands: Vec<Demand>,
    /// What the plan says that it will need.
    needed: Amounts,
    hold: Amounts,
}

/// The policy allows it.
pub(crate) struct Approved {
    call: ToolCall,
    token: TokenIndex,
    args: Canonical,
    plan: Box<dyn AnyPlan>,
    hold: Amounts,
    kept: Kept,
}

/// The budget of the token and of all its ancestors has room.
pub(crate) struct Reserved {
    pub(crate) call: ToolCall,
    pub(crate) args: Canonical,
    pub(crate) plan: Box<dyn AnyPlan>,
    pub(crate) digest: CallDigest,
    pub(crate) mode: Mode,
    pub(crate) sent: Option<SentHash>,
    pub(crate) kept: Kept,
}

impl Step for Decoded {}
impl Step for Checked {}
impl Step for Resolved {}
impl Step for Planned {}
impl Step for Approved {}
impl Step for Reserved {}

/// A call that a step said no to.
#[must_use = "a refusal must be recorded"]
pub(crate) struct Stopped {
    pub(crate) fields: Box<CallFields>,
    pub(crate) refused: Refused,
    pub(crate) kind: RefusalKind,
    /// The resolved arguments, where the policy said no: they are kept, so that another policy
    /// can be asked about the call later.
    pub(crate) args: Option<Canonical>,
}

impl Stopped {
    pub(crate) fn new(fields: Box<CallFields>, refused: impl Into<Refused>) -> Self {
        Self { fields, refused: refused.into(), kind: RefusalKind::Refused, args: None }
    }

    pub(crate) const fn error_kind(&self) -> ErrorKind {
        match self.kind {
            RefusalKind::Refused | RefusalKind::Control => ErrorKind::Refused,
            RefusalKind::Asked => ErrorKind::Asked,
            RefusalKind::Deferred => ErrorKind::Deferred,
        }
    }
}

type Stepped<S> = Result<Call<S>, Box<Stopped>>;

fn stop<T>(fields: Box<CallFields>, refused: impl Into<Refused>) -> Result<T, Box<Stopped>> {
    Err(Box::new(Stopped::new(fields, refused)))
}

/// What a call must have from the vault before it can go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    /// The first outcome of an idempotency key: intent, outcome.
    Repeat(Seq, Seq),
    /// Results that its arguments refer to.
    Results(Vec<Released>),
}

impl Needs {
    /// The pairs of intent and outcome that must be fetched.
    pub(crate) fn wanted(&self) -> Vec<(Seq, Seq)> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Repeat(intent, outcome) => [(*intent, *outcome)].into(),
            Self::Results(found) => found.iter().map(|r| (r.intent, r.outcome)).collect(),
        }
    }
}

impl Call<Decoded> {
    /// Reads the envelope; what it leaves out comes from the session and the state.
    pub(crate) fn decode(
        received: &[u8],
        form: Form,
        salts: &CallSalts,
        seat: &Seat<'_>,
        registry: &Registry,
        now: UnixMillis,
    ) -> Stepped<Decoded> {
        let mut fields = Box::new(CallFields::unknown());
        fields.agent_id = Some(seat.session.agent.clone());
        fields.session = Some(seat.number);
        fields.policy_hash = seat.state.policy;
        let Some(policy) = seat.state.policy else {
            fields.call_hash = Some(call_hash(&salts.call, received));
            return stop(fields, Refused::new(Reason::PolicyMismatch).field("policy_hash"));
        };
        let defaults = Defaults {
            agent: &seat.session.agent,
            token: seat.session.token_id,
            snapshot: seat.head().unwrap_or(seat.session.snapshot),
            policy,
            provenance: Provenance::new(seat.source, now),
        };
        let decoded = ToolCall::decode(received, form, defaults);
        let named = match &decoded {
            Ok(call) => call.named(),
            Err(faulty) => faulty.named(),
        };
        fields.provenance = named.provenance.cloned();
        // What a record names, the home knows: what a caller made up is not recorded.
        let registered = named.tool.and_then(|tool| registry.find(tool));
        fields.tool_id = registered.map(|found| found.manifest.tool.clone());
        fields.manifest = registered.map(|found| found.manifest_id);
        let is_token = |token: &TokenId| seat.state.tokens.find(token).is_some();
        fields.capability_token_id = named.token.filter(is_token);
        let is_known = |snapshot: &SnapshotId| seat.agent.is_some_and(|a| a.knows(snapshot));
        fields.state_snapshot_id = named.snapshot.filter(is_known);
        match decoded {
            Ok(call) => {
                fields.call_hash = Some(call_hash(&salts.call, call.as_bytes()));
                Ok(Self { fields, at: Decoded { call } })
            }
            Err(faulty) => {
                fields.call_hash = Some(call_hash(&salts.call, received));
                stop(fields, with_tools(faulty.refused().clone(), seat))
            }
        }
    }

    /// Binding, revocation, freeze, expiry, grant: in this order.
    pub(crate) fn check(
        self,
        seat: &Seat<'_>,
        registry: &Registry,
        now: UnixMillis,
    ) -> Stepped<Checked> {
        let call = self.at.call;
        match standing(&call, seat, registry.find(call.tool()), now) {
            Ok(token) => {
                let references = References::default();
                Ok(Call { fields: self.fields, at: Checked { call, token, references } })
            }
            Err(refused) => stop(self.fields, refused),
        }
    }
}

/// Where a call comes in: a session, and the state around it.
pub(crate) struct Seat<'a> {
    pub(crate) state: &'a State,
    pub(crate) session: &'a Session,
    pub(crate) number: Seq,
    /// The agent's state, looked up once.
    pub(crate) agent: Option<&'a AgentState>,
    /// The facts of the agent's head.
    pub(crate) facts: &'a Facts,
    /// Who brought the call about, by the host's word.
    pub(crate) source: Source,
    /// The last record that is durable: what lies behind it may still be lost.
    pub(crate) durable: Seq,
}

impl Seat<'_> {
    /// The agent's head snapshot.
    pub(crate) fn head(&self) -> Option<SnapshotId> {
        self.agent.map(AgentState::id)
    }
}

fn standing(
    call: &ToolCall,
    seat: &Seat<'_>,
    registered: Option<&Registered>,
    now: UnixMillis,
) -> Result<TokenIndex, Refused> {
    let Seat { state, session, .. } = seat;
    let token = session.token;
    if *call.agent() != session.agent || call.token() != session.token_id {
        let field = if *call.agent() == session.agent { "capability_token_id" } else { "agent_id" };
        return Err(Refused::new(Reason::NotBound).field(field));
    }
    if state.tokens.is_revoked(token) {
        return Err(Refused::new(Reason::Revoked));
    }
    let tool = registered.map_or(call.tool(), |found| &found.manifest.tool);
    if state.frozen.stops(&session.agent, tool) {
        return Err(Refused::new(Reason::Frozen));
    }
    let Some(body) = state.tokens.body(token) else {
        return Err(Refused::new(Reason::NotBound));
    };
    if now >= body.expires {
        return Err(Refused::new(Reason::Expired));
    }
    if now < body.not_before {
        return Err(Refused::new(Reason::NotYetValid));
    }
    if state.unconfirmed_before.is_some_and(|boot| state.tokens.issued(token) < Some(boot)) {
        return Err(Refused::new(Reason::ClockUnconfirmed));
    }
    let Some(registered) = registered else {
        let refused = Refused::new(Reason::UnknownTool).field("tool_id");
        let got = call.tool().as_str();
        return Err(refused.got(got).allowed(&body.grants.names(got)));
    };
    if body.grants.get(tool).is_none() {
        let refused = Refused::new(Reason::NotGranted).field("tool_id");
        return Err(refused.got(tool.as_str()).allowed(&body.grants.names(tool.as_str())));
    }
    if body.flags.has(TokenFlags::READ_ONLY) && !registered.manifest.effect.is_read_only() {
        return Err(Refused::new(Reason::ReadOnlyToken).field("tool_id").got(tool.as_str()));
    }
    Ok(token)
}

impl Call<Checked> {
    /// What has to be fetched: the first outcome, for a repeat; else the results referred to.
    pub(crate) fn needs(
        mut self,
        seat: &Seat<'_>,
        now: UnixMillis,
    ) -> Result<(Self, Needs), Box<Stopped>> {
        // Nothing is looked up, fetched or answered again for a token that has no call left.
        let call = Amounts::ZERO.with(Dimension::Calls, 1);
        if seat.state.tokens.lacks(self.at.token, &call).is_some() {
            return stop(self.fields, over_budget(seat, self.at.token, Dimension::Calls, 1));
        }
        if let Some(slot) = self.key_slot()
            && let Some(used) = seat.state.keys.get(&slot, now)
        {
            use crate::state::KeyState::{Done, InFlight, Unknown};
            // An id that is present must be right, also for an answer that is given again.
            if let Err(refused) = named(&self.at.call, &self.at.token, seat) {
                return stop(self.fields, refused);
            }
            // The answer was given under the first call's token: another may not permit it.
            if used.token != self.at.token {
                return stop(self.fields, Refused::new(Reason::NotBound).field("idempotency_key"));
            }
            return match used.state {
                Done(outcome) if outcome <= seat.durable => {
                    Ok((self, Needs::Repeat(used.intent, outcome)))
                }
                Unknown(said) if said <= seat.durable => {
                    stop(self.fields, keyed(Reason::OutcomeUnknown))
                }
                InFlight | Done(_) | Unknown(_) => stop(self.fields, keyed(Reason::KeyInFlight)),
            };
        }
        self.at.references = match args::references(self.at.call.args()) {
            Ok(references) => references,
            Err(refused) => return stop(self.fields, refused),
        };
        let wanted = &self.at.references.records;
        if wanted.is_empty() {
            return Ok((self, Needs::Nothing));
        }
        let found: Option<Vec<Released>> =
            wanted.iter().map(|outcome| seat.session.released(*outcome)).collect();
        match found {
            Some(found) if found.iter().any(|result| result.outcome > seat.durable) => {
                stop(self.fields, Refused::new(Reason::ReferenceInFlight).field("$ref.record"))
            }
            Some(found) => Ok((self, Needs::Results(found))),
            None => stop(self.fields, unknown_record(&wanted[..], seat)),
        }
    }

    /// Where the call's idempotency key belongs, if it has one.
    pub(crate) fn key_slot(&self) -> Option<KeySlot> {
        let key = self.at.call.key().cloned()?;
        let (agent, tool) = (self.fields.agent_id.clone()?, self.fields.tool_id.clone()?);
        Some(KeySlot { agent, tool, key })
    }

    /// The commitment to the arguments as sent, by the salt of an earlier call.
    pub(crate) fn sent_by(&self, salts: &CallSalts) -> Option<SentHash> {
        let tool = self.fields.tool_id.as_ref()?;
        Some(sent_hash(&salts.args, tool, self.at.call.args()))
    }

    /// What is known of the call, where it goes no further.
    pub(crate) fn into_fields(self) -> Box<CallFields> {
        self.fields
    }

    /// Puts fetched results in the place of references, checks the arguments against the
    /// manifest, adds defaults, and commits to what came of it.
    pub(crate) fn resolve(
        mut self,
        fetched: &[(Seq, Canonical)],
        registry: &Registry,
        salts: &CallSalts,
    ) -> Stepped<Resolved> {
        let Some(registered) = registry.find(self.at.call.tool()) else {
            return stop(self.fields, Reason::UnknownTool);
        };
        let manifest = &registered.manifest;
        let sent = self.at.call.args();
        let resolved = args::resolve(sent, &self.at.references, |reference| {
            let found = fetched.iter().find(|(outcome, _)| *outcome == reference.record);
            let unknown = || Refused::new(Reason::UnknownReference).field("$ref.record");
            let (_, result) = found.ok_or_else(unknown)?;
            reference.pick(result.item())
        });
        let conformed = resolved.and_then(|resolved| {
            let given = resolved.as_ref().map_or(sent, Canonical::item);
            Ok(args::conform(manifest, given)?.or(resolved))
        });
        let args = match conformed {
            Ok(args) => args.unwrap_or_else(|| sent.into()),
            Err(refused) => return stop(self.fields, refused),
        };
        self.fields.args_hash =
            Some(args_hash(&salts.args, &manifest.tool, &registered.manifest_id, args.item()));
        let Checked { call, token, .. } = self.at;
        Ok(Call { fields: self.fields, at: Resolved { call, token, args, sent: None } })
    }
}

impl Call<Resolved> {
    /// Lets the tool parse the arguments and holds the plan against the token's scopes.
    pub(crate) fn plan(self, seat: &Seat<'_>, registry: &Registry, live: Live) -> Stepped<Planned> {
        let Resolved { call, token, args, sent } = self.at;
        match planned(&call, token, args.item(), seat, registry, live) {
            Ok((plan, Demands { resources: demands, hold: needed }, hold)) => {
                let at = Planned { call, token, args, sent, plan, demands, needed, hold };
                Ok(Call { fields: self.fields, at })
            }
            Err(refused) => stop(self.fields, as_sent(sent.as_ref(), refused)),
        }
    }
}

/// A refusal of a call whose links were followed, which tells nothing of where they led.
fn as_sent(sent: Option<&AsSent>, refused: Refused) -> Refused {
    match sent {
        Some(sent) => sent.shown(refused),
        None => refused,
    }
}

/// A plan, what it would touch and need, and what it sets aside.
type Plans = (Box<dyn AnyPlan>, Demands, Amounts);

fn planned(
    call: &ToolCall,
    token: TokenIndex,
    args: Item<'_>,
    seat: &Seat<'_>,
    registry: &Registry,
    live: Live,
) -> Result<Plans, Refused> {
    let registered = registry.find(call.tool()).ok_or(Refused::new(Reason::UnknownTool))?;
    let manifest = &registered.manifest;
    let body = seat.state.tokens.body(token).ok_or(Refused::new(Reason::NotBound))?;
    let grant = body.grants.get(&manifest.tool).ok_or(Refused::new(Reason::NotGranted))?;
    let agent = &seat.session.agent;
    let request = Request { agent, args, grant, live: Some(live) };
    let plan = registered.tool.plan(&request)?;
    // Asked once: scopes, policy and budget see the same demands.
    let demands = plan.demands().clone();
    for demand in &demands.resources {
        let scope = grant.scope(demand.dimension);
        if !scope.is_some_and(|scope| scope.permits(&demand.resource)) {
            let allowed =
                scope.map_or(Cow::Borrowed("nothing"), |s| s.advice(&demand.resource).into());
            return Err(Refused::new(Reason::OutOfScope)
                .field(demand.argument)
                .got(&alloc::format!("{:#}", demand.resource))
                .allowed(&allowed));
        }
    }
    let hold = manifest.hold_for(&demands.hold);
    Ok((plan, demands, hold))
}

impl Call<Planned> {
    /// Asks the kernel's own engines.
    pub(crate) fn decide(
        mut self,
        seat: &Seat<'_>,
        registry: &Registry,
        engines: Engines<'_>,
        now: UnixMillis,
    ) -> Stepped<Approved> {
        let at = self.at;
        if let Err(refused) = named(&at.call, &at.token, seat) {
            return stop(self.fields, refused);
        }
        let left = seat.state.tokens.left(at.token);
        let place = (&at.demands[..], &at.hold, &left);
        let asked = question(seat, at.token, registry, at.call.tool(), at.args.item(), place, now);
        let Some(question) = asked else {
            return stop(self.fields, Reason::NotBound);
        };
        let (decision, shadow) = engines.ask(&question);
        let head = seat.head();
        self.fields.head = head.filter(|head| *head != at.call.snapshot());
        self.fields.shadow = shadow;
        let mut hold = at.hold;
        let kept = match decision.verdict {
            Verdict::Allow | Verdict::Degrade => {
                let obligations = &decision.obligations.0;
                keep(obligations, question.manifest, &at.needed, &mut hold)
                    .map_err(|refused| (refused, RefusalKind::Refused))
            }
            verdict => {
                let advice = engines.policy.advise(&question, &decision);
                Err(refusal(verdict, &advice, question.args))
            }
        };
        self.fields.decision = Some(decision);
        match kept {
            Ok(kept) => {
                let Planned { call, token, args, plan, .. } = at;
                let at = Approved { call, token, args, plan, hold, kept };
                Ok(Call { fields: self.fields, at })
            }
            Err((refused, kind)) => {
                let refused = as_sent(at.sent.as_ref(), refused);
                let (fields, args) = (self.fields, Some(at.args));
                Err(Box::new(Stopped { fields, refused, kind, args }))
            }
        }
    }
}

/// The question to an engine. All in it is the kernel's own.
pub(crate) fn question<'a>(
    seat: &Seat<'a>,
    token: TokenIndex,
    registry: &'a Registry,
    tool: &ToolId,
    args: Item<'a>,
    (demands, hold, left): (&'a [Demand], &'a Amounts, &'a Amounts),
    now: UnixMillis,
) -> Option<Question<'a>> {
    let manifest = &registry.find(tool)?.manifest;
    let body = seat.state.tokens.body(token)?;
    Some(Question {
        agent: &seat.session.agent,
        token: seat.session.token_id,
        body,
        grant: body.grants.get(&manifest.tool)?,
        manifest,
        args,
        demands,
        hold,
        left,
        facts: seat.facts,
        source: seat.source,
        now,
    })
}

impl Call<Approved> {
    /// Holds the plan's cost against the budget of the token and of all its ancestors.
    pub(crate) fn reserve(
        mut self,
        seat: &Seat<'_>,
        registry: &Registry,
        salts: &CallSalts,
    ) -> Stepped<Reserved> {
        let Approved { call, token, args, plan, hold, kept } = self.at;
        let tokens = &seat.state.tokens;
        if tokens.is_exhausted(token) {
            return stop(self.fields, Reason::Exhausted);
        }
        if let Some(dimension) = tokens.lacks(token, &hold) {
            let refused = over_budget(seat, token, dimension, hold.get(dimension));
            return stop(self.fields, refused);
        }
        let Some(registered) = registry.find(call.tool()) else {
            return stop(self.fields, Reason::UnknownTool);
        };
        let sent = call
            .key()
            .is_some()
            .then(|| sent_hash(&salts.args, &registered.manifest.tool, call.args()));
        let digest = call_digest(
            &seat.state.home,
            (&registered.manifest.tool, &registered.manifest_id),
            args.item(),
            (&seat.session.agent, &seat.session.token_id),
            call.key(),
        );
        let mode = registered.mode;
        self.fields.held = hold;
        let at = Reserved { call, args, plan, digest, mode, sent, kept };
        Ok(Call { fields: self.fields, at })
    }
}

impl Call<Reserved> {
    /// Takes the call apart for its intent. The caller is `Kernel::intend`, the only one.
    pub(crate) fn into_parts(self) -> (Box<CallFields>, Reserved) {
        (self.fields, self.at)
    }
}
