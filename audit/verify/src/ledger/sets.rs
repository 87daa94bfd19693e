//! Answers to more than one call: what they let through, and how often.

use syscap_format::{
    AgentId, ApprovalBody, Ask, CallFields, ConstraintId, Decision, EffectClass, Grants, Label,
    Leaf, ObjectId, ObligationKind, PolicyHash, PublicKey, SET_LIFE_MS, SET_USES_MAX, Scope, Seq,
    TokenId, ToolId, UnixMillis,
};

/// The request that a standing approval can be made of.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    token: Option<TokenId>,
    session: Option<Seq>,
    policy: Option<PolicyHash>,
    deciding: Option<ConstraintId>,
    matches: Vec<ConstraintId>,
    label: Label,
    uses_max: u64,
}

impl Bounds {
    pub(super) fn of(ask: &Ask, runs_code: bool) -> Self {
        let decision = ask.call.decision.as_ref();
        let asked = decision.map_or(&[][..], |said| &said.obligations);
        let level = asked.iter().any(|asked| asked.kind == ObligationKind::Approval);
        let for_good = [ask.effect, ask.call_effect].contains(&EffectClass::Irreversible);
        let cap = asked.iter().filter(|asked| asked.kind == ObligationKind::ApprovalUses);
        let cap = cap.filter_map(|asked| asked.max).min().unwrap_or(SET_USES_MAX);
        let none = level || for_good || runs_code || ask.resources.is_empty();
        Self {
            token: ask.call.capability_token_id,
            session: ask.call.session,
            policy: ask.call.policy_hash,
            deciding: decision.and_then(|said| said.deciding.clone()),
            matches: decision.map(|said| said.matches.clone()).unwrap_or_default(),
            label: ask.label,
            uses_max: if none { 0 } else { cap.min(SET_USES_MAX) },
        }
    }

    pub(super) const fn token(&self) -> Option<TokenId> {
        self.token
    }

    pub(super) const fn session(&self) -> Option<Seq> {
        self.session
    }

    pub(super) const fn policy(&self) -> Option<PolicyHash> {
        self.policy
    }

    /// True if a decision asks for the same as then, and no more.
    fn answer(&self, decision: &Decision) -> bool {
        let listed = u64::try_from(decision.matches.len()).ok() == Some(decision.match_count);
        let level = decision.obligations.iter().any(|one| one.kind == ObligationKind::Approval);
        let known = decision.matches.iter().all(|id| self.matches.contains(id));
        listed && known && !level && decision.deciding == self.deciding
    }
}

/// The terms on which the approvers agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    uses: Option<u64>,
    scopes: Option<Grants>,
    pub(super) expires: Option<UnixMillis>,
    with_session: bool,
}

impl Terms {
    pub(super) fn of(body: &ApprovalBody) -> Self {
        let (uses, scopes, expires) = (body.uses, body.scopes.clone(), body.expires);
        Self { uses, scopes, expires, with_session: expires.is_none() }
    }

    /// The terms that both allow; `None` if they name other scopes.
    pub(super) fn and(self, other: Self) -> Option<Self> {
        let with_session = self.with_session || other.with_session;
        let expires = match (self.expires, other.expires) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        let (Some(one), Some(two)) = (self.uses, other.uses) else {
            return Some(Self { uses: None, scopes: None, expires, with_session });
        };
        let same = self.scopes == other.scopes;
        same.then(|| Self { uses: Some(one.min(two)), scopes: self.scopes, expires, with_session })
    }

    pub(super) const fn is_set(&self) -> bool {
        self.uses.is_some()
    }
}

/// An answer to more than one call.
#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) of: Of,
    pub(super) leaf: Leaf,
    pub(super) eligible: Vec<PublicKey>,
    bounds: Bounds,
    session: Option<Seq>,
    left: u64,
    pub(super) until: UnixMillis,
}

/// The caller and the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Of {
    pub(super) agent: Option<AgentId>,
    pub(super) tool: Option<ToolId>,
    pub(super) manifest: Option<ObjectId>,
}

impl Of {
    pub(super) fn call(call: &CallFields) -> Self {
        let CallFields { agent_id, tool_id, manifest, .. } = call;
        Self { agent: agent_id.clone(), tool: tool_id.clone(), manifest: *manifest }
    }
}

impl Bounds {
    /// True if a standing approval may be given for a call of that tool; `open`: while the
    /// session that asked is.
    pub(super) fn permit(&self, tool: Option<&ToolId>, body: &ApprovalBody, open: bool) -> bool {
        let scopes: Vec<_> = body.scopes.iter().flat_map(Grants::iter).collect();
        let wide = match (&body.scopes, &scopes[..]) {
            (None, _) => true,
            (Some(_), [(of, grant)]) => {
                tool == Some(of)
                    && !grant.iter().any(|(_, scope)| matches!(scope, Scope::Names(_)))
                    && !self.label.is_untrusted()
                    && body.expires.is_some()
            }
            (Some(_), _) => false,
        };
        body.uses.is_some_and(|uses| uses > 0 && uses <= self.uses_max)
            && wide
            && (open || body.expires.is_some())
    }
}

impl Set {
    /// `None` where there is no set in what was said.
    pub(super) fn begin(
        of: Of,
        leaf: Leaf,
        eligible: Vec<PublicKey>,
        bounds: Bounds,
        end: UnixMillis,
        now: UnixMillis,
        terms: &Terms,
    ) -> Option<Self> {
        let most = now.plus(SET_LIFE_MS).min(end);
        let until = terms.expires.map_or(most, |end| end.min(most));
        let session = if terms.with_session { bounds.session } else { None };
        Some(Self { of, leaf, eligible, bounds, session, left: terms.uses?, until })
    }

    /// Counts a call of a session that had been given so much, by a token that `goes_on`. Returns
    /// true if it is a call that the approval is for; the log does not show its resources.
    pub(super) fn spend(
        &mut self,
        call: &CallFields,
        goes_on: bool,
        given: Option<Label>,
        now: UnixMillis,
    ) -> bool {
        let bounds = &self.bounds;
        let fine = self.of == Of::call(call)
            && goes_on
            && bounds.policy == call.policy_hash
            && (self.session.is_none() || self.session == call.session)
            && given.is_some_and(|given| given.leq(bounds.label))
            && call.decision.as_ref().is_some_and(|decision| bounds.answer(decision))
            && now < self.until
            && self.left > 0;
        self.left = self.left.saturating_sub(1);
        fine
    }

    /// The token of the call that asked.
    pub(super) const fn token(&self) -> Option<TokenId> {
        self.bounds.token
    }

    /// True if one of these may answer.
    pub(super) fn is_answered_by(&self, keys: &[PublicKey]) -> bool {
        keys.iter().any(|key| self.eligible.contains(key))
    }

    pub(super) const fn policy(&self) -> Option<PolicyHash> {
        self.bounds.policy
    }

    pub(super) const fn is_used_up(&self) -> bool {
        self.left == 0
    }

    /// True if it ends when that session closes, or by a boot.
    pub(super) fn ends_with(&self, session: Option<Seq>) -> bool {
        match session {
            Some(closed) => self.session == Some(closed),
            None => self.session.is_some(),
        }
    }
}
