//! Calls that wait for a person, and what was answered.

use alloc::{collections::BTreeMap, vec::Vec};

use crate::approvals::sets::{Bounds, Set, Terms, at_location, committed, is_formed};
use crate::authority::tokens::TokenIndex;
use crate::state::fold::State;
use crate::tool::Demand;
use syscap_format::field::count;
use syscap_format::{
    AgentId, ApprovalAnswer, ApprovalBody, ApprovalChannel, ArgsHash, Ask, AskImage, CallFields,
    Control, ControlBody, Decision, Leaf, ObjectId, PolicyHash, Precondition, PublicKey, Role,
    SET_LIFE_MS, Salt, Seq, TextHash, ToolId, UnixMillis,
};

/// Most calls that wait for a person in a home, and of one agent: whoever is asked too often does
/// not read any more.
pub(crate) const ASKS_MAX: usize = 1_024;
pub(crate) const ASKS_OF_AGENT_MAX: usize = 32;

/// A call that waits, or was answered and has not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApprovalRequest {
    pub(crate) leaf: Leaf,
    pub(crate) agent: AgentId,
    pub(crate) tool: ToolId,
    pub(crate) manifest: ObjectId,
    pub(crate) args_hash: ArgsHash,
    pub(crate) eligible: Vec<PublicKey>,
    pub(crate) threshold: u64,
    pub(crate) means: Vec<ApprovalChannel>,
    pub(crate) expires: UnixMillis,
    /// True if a person of a level was asked.
    pub(crate) elevated: bool,
    /// The preconditions that were shown, and must hold when it runs.
    pub(crate) preconditions: Vec<Precondition>,
    pub(crate) bounds: Bounds,
    pub(crate) standing: Standing,
}

/// The answers so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// These keys approve, and agree on that; more are needed.
    Pending(Vec<PublicKey>, Option<Terms>),
    /// The approval that was the last one needed, and when it ends.
    Granted(Seq, UnixMillis),
    /// Somebody said no, and why, where that was said.
    Denied(Seq, Option<TextHash>),
}

impl Standing {
    /// The record that answers; `None` while answers are needed.
    pub(crate) const fn answer(&self) -> Option<Seq> {
        match self {
            Self::Pending(..) => None,
            Self::Granted(by, _) | Self::Denied(by, _) => Some(*by),
        }
    }
}

/// Why an answer does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswerable {
    /// It is not of its form, or by a means that does not count.
    Form,
    /// There is no such ask, or it is over.
    Unknown,
    /// It has expired.
    Expired,
    /// It was answered.
    Answered,
    /// The key may not answer it, or has.
    Key,
}

/// All that wait, by their records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asks(pub(crate) BTreeMap<Seq, ApprovalRequest>);

impl Asks {
    /// One more waits. It forgets the requests that are over by then, and the oldest denied ones,
    /// if there are too many.
    fn begin(&mut self, seq: Seq, now: UnixMillis, ask: ApprovalRequest) {
        self.0.retain(|_, ask| now < ask.expires);
        self.0.insert(seq, ask);
        let refused = self.0.iter().filter(|(_, ask)| !ask.waits()).map(|(seq, _)| *seq);
        let refused: Vec<Seq> = refused.collect();
        let over = refused.len().saturating_sub(ASKS_MAX);
        for seq in refused.iter().take(over) {
            self.0.remove(seq);
        }
    }

    /// One that is not over.
    pub(crate) fn get(&self, seq: Seq, now: UnixMillis) -> Option<&ApprovalRequest> {
        self.0.get(&seq).filter(|ask| now < ask.expires)
    }

    /// True if there is one, even if it is over and not forgotten yet.
    pub(crate) fn has(&self, seq: Seq) -> bool {
        self.0.contains_key(&seq)
    }

    /// All, also those that are over and not forgotten yet.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Seq, &ApprovalRequest)> {
        self.0.iter().map(|(seq, ask)| (*seq, ask))
    }

    /// The requests that are not over.
    pub(crate) fn live(&self, now: UnixMillis) -> impl Iterator<Item = (Seq, &ApprovalRequest)> {
        self.all().filter(move |(_, ask)| now < ask.expires)
    }

    /// True if an agent has room for one more.
    pub(crate) fn has_room(&self, agent: &AgentId, now: UnixMillis) -> bool {
        let waiting = || self.live(now).filter(|(_, ask)| ask.waits());
        let of_agent = waiting().filter(|(_, ask)| ask.agent == *agent).count();
        of_agent < ASKS_OF_AGENT_MAX && waiting().count() < ASKS_MAX
    }

    pub(crate) fn granted(&self, approval: Seq) -> Option<(Seq, &ApprovalRequest)> {
        let is = |ask: &ApprovalRequest| matches!(ask.standing, Standing::Granted(by, _) if by == approval);
        self.0.iter().find(|(_, ask)| is(ask)).map(|(seq, ask)| (*seq, ask))
    }

    pub(crate) fn images(&self) -> impl Iterator<Item = AskImage> {
        self.0.iter().map(|(seq, ask)| {
            let (mut granted, mut until, mut denied) = (None, None, None);
            let (mut approved, mut terms) = (Vec::new(), None);
            match &ask.standing {
                Standing::Pending(keys, agreed) => {
                    approved.clone_from(keys);
                    terms = agreed.as_ref().map(Terms::image);
                }
                Standing::Granted(by, end) => (granted, until) = (Some(*by), Some(*end)),
                Standing::Denied(by, _) => denied = Some(*by),
            }
            AskImage { ask: *seq, leaf: ask.leaf, approved, granted, until, denied, terms }
        })
    }
}

impl ApprovalRequest {
    /// True if it still waits, or was approved and has not run.
    const fn waits(&self) -> bool {
        !matches!(self.standing, Standing::Denied(..))
    }

    /// True if it asked for a person of the level that this policy means.
    pub(crate) fn is_of_level(&self, policy: Option<PolicyHash>) -> bool {
        self.elevated && policy == Some(self.bounds.policy)
    }

    /// True if the waiting call may run under that token: its own, or a renewal of it.
    pub(crate) fn goes_on(&self, state: &State, token: TokenIndex) -> bool {
        state.tokens.renews(token, self.bounds.token)
    }

    /// The set that an approval with these terms makes of it, no later to end than its token.
    fn becomes_set(
        self,
        number: Seq,
        terms: Terms,
        now: UnixMillis,
        end: UnixMillis,
    ) -> Option<Set> {
        let most = now.plus(SET_LIFE_MS).min(end);
        Some(Set {
            ask: number,
            agent: self.agent,
            tool: self.tool,
            manifest: self.manifest,
            leaf: self.leaf,
            session: self.bounds.session.filter(|_| terms.with_session),
            bounds: self.bounds,
            eligible: self.eligible,
            means: self.means,
            scopes: terms.scopes,
            left: terms.uses?,
            until: terms.expires.unwrap_or(most).min(most),
        })
    }

    /// True if a person was shown exactly these resources and this location, by the salt of the
    /// call.
    pub(crate) fn shows(&self, demands: &[Demand], location: Option<&str>, salt: &Salt) -> bool {
        let all = demands.iter().map(|demand| committed(demand.dimension, &demand.resource, salt));
        let location = location.map(|location| at_location(location, salt));
        all.chain(location).eq(self.bounds.shown.iter().copied())
    }

    /// True if no eligible approver holds the token, or one above it: a request under one token
    /// gives the holder of another no answer.
    pub(crate) fn is_others(&self, state: &State, token: TokenIndex) -> bool {
        state.tokens.holders(token).all(|holder| !self.eligible.contains(&holder))
    }
}

impl State {
    /// The keys that may answer for a token: those of the approvers, without who holds the token,
    /// or one above it: nobody approves what is their own.
    pub(crate) fn eligible(&self, token: TokenIndex) -> Vec<PublicKey> {
        let holders: Vec<PublicKey> = self.tokens.holders(token).collect();
        let keys = self.roles.set(Role::Approver).into_iter().flat_map(|set| set.keys());
        keys.filter(|key| !holders.contains(key)).collect()
    }

    /// How many of them must approve.
    pub(crate) fn approvals_needed(&self) -> u64 {
        self.roles.set(Role::Approver).map_or(1, |set| set.threshold)
    }

    /// Checks that an answer that a key has signed counts.
    pub(crate) fn answers(
        &self,
        control: &Control,
        now: UnixMillis,
    ) -> Result<ApprovalBody, Unanswerable> {
        let body = ApprovalBody::from_bytes(&control.body).map_err(|_| Unanswerable::Form)?;
        let [signed] = &control.signatures[..] else { return Err(Unanswerable::Form) };
        if let Some(set) = self.sets.has(body.ask, now) {
            return if body.answer != ApprovalAnswer::Deny {
                Err(Unanswerable::Answered)
            } else if !is_formed(&body, now) || !set.means.contains(&body.means) {
                Err(Unanswerable::Form)
            } else if set.eligible.contains(&signed.key) {
                Ok(body)
            } else {
                Err(Unanswerable::Key)
            };
        }
        let named = self.asks.0.values().find(|ask| ask.leaf == body.ask);
        let ask = named.ok_or(Unanswerable::Unknown)?;
        let set = body.answer == ApprovalAnswer::Set;
        let session = ask.bounds.session();
        let open = session.is_some_and(|session| self.sessions.contains_key(&session));
        if !is_formed(&body, now)
            || !ask.means.contains(&body.means)
            || (set && (body.means.is_a_clients() || !ask.bounds.permit(&ask.tool, &body, open)))
        {
            return Err(Unanswerable::Form);
        }
        if now >= ask.expires {
            return Err(Unanswerable::Expired);
        }
        let Standing::Pending(approved, agreed) = &ask.standing else {
            return Err(Unanswerable::Answered);
        };
        if !ask.eligible.contains(&signed.key) || approved.contains(&signed.key) {
            return Err(Unanswerable::Key);
        }
        let agrees = |agreed: &Terms| agreed.clone().meet(&Terms::of(&body)).is_some();
        if body.answer != ApprovalAnswer::Deny && !agreed.as_ref().is_none_or(agrees) {
            return Err(Unanswerable::Form);
        }
        Ok(body)
    }

    /// Folds an ask in. `None` where the record contradicts the state.
    pub(crate) fn ask(&mut self, seq: Seq, leaf: Leaf, time: UnixMillis, ask: &Ask) -> Option<()> {
        self.pay(ask.call.session, &ask.call.used)?;
        let token = self.tokens.find(&ask.call.capability_token_id?)?;
        let elevated = elevated(&ask.call);
        let bounds = Bounds::of(ask, token)?;
        let agent = ask.call.agent_id.clone()?;
        let ask = ApprovalRequest {
            leaf,
            agent,
            tool: ask.call.tool_id.clone()?,
            manifest: ask.call.manifest?,
            args_hash: ask.call.args_hash?,
            eligible: ask.eligible.clone(),
            threshold: ask.threshold,
            means: ask.means.clone(),
            expires: ask.expires,
            elevated,
            preconditions: ask.preconditions.clone(),
            bounds,
            standing: Standing::Pending(Vec::new(), None),
        };
        self.asks.begin(seq, time, ask);
        Some(())
    }

    /// Folds an answer in.
    pub(crate) fn answered(&mut self, seq: Seq, time: UnixMillis, control: &Control) -> Option<()> {
        let body = self.answers(control, time).ok()?;
        let key = control.signatures.first()?.key;
        if body.answer == ApprovalAnswer::Deny && self.sets.end(body.ask) {
            return Some(());
        }
        let (number, ask) = self.asks.0.iter_mut().find(|(_, ask)| ask.leaf == body.ask)?;
        let number = *number;
        let Standing::Pending(approved, agreed) = &mut ask.standing else { return None };
        if body.answer == ApprovalAnswer::Deny {
            ask.standing = Standing::Denied(seq, body.reason);
            return Some(());
        }
        approved.push(key);
        let said = Terms::of(&body);
        let terms = match agreed.take() {
            Some(agreed) => agreed.meet(&said)?,
            None => said,
        };
        if count(approved.len()) < ask.threshold {
            *agreed = Some(terms);
        } else if terms.is_set() {
            let ask = self.asks.0.remove(&number)?;
            let end = self.tokens.body(ask.bounds.token)?.expires;
            self.sets.begin(seq, time, ask.becomes_set(number, terms, time, end)?);
        } else {
            // It never outlives what it answers.
            let until = terms.expires.unwrap_or(ask.expires).min(ask.expires);
            ask.standing = Standing::Granted(seq, until);
        }
        Some(())
    }
}

/// True if the policy asked for a person of a level.
pub(crate) fn elevated(call: &CallFields) -> bool {
    call.decision.as_ref().is_some_and(Decision::asks_for_a_level)
}
