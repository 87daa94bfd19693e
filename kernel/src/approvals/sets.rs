//! Approvals of more than one call: what they let through, and how much is left of them.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use crate::approvals::index::Shown;
use crate::authority::tokens::{TokenIndex, Tokens};
use crate::tool::Demand;
use syscap_format::field::count;
use syscap_format::{
    AgentId, ApprovalAnswer, ApprovalBody, ApprovalChannel, Ask, ConstraintId, Decision,
    EffectClass, Grants, Label, Leaf, ObjectId, ObligationKind, PolicyHash, PublicKey, Resource,
    SET_USES_MAX, SETS_MAX, Salt, Scope, Seq, SetImage, TermsImage, TextHash, ToolGrant, ToolId,
    UnixMillis, VaultText,
};

/// The key under which a resource's text is committed to.
pub(crate) const RESOURCES: u64 = 34;

/// The terms of an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// For how many calls; `None` for the one that waits.
    pub(crate) uses: Option<u64>,
    pub(crate) scopes: Option<Grants>,
    pub(crate) expires: Option<UnixMillis>,
    /// A set whose end nobody named ends with the session that asked.
    pub(crate) with_session: bool,
}

impl Terms {
    pub(crate) fn of(body: &ApprovalBody) -> Self {
        Self {
            uses: body.uses,
            scopes: body.scopes.clone(),
            expires: body.expires,
            with_session: body.expires.is_none(),
        }
    }

    /// The terms that both allow: if one says once, once. `None` where they name other scopes.
    pub(crate) fn meet(self, other: &Self) -> Option<Self> {
        let (uses, scopes) = match (self.uses, other.uses) {
            (Some(one), Some(two)) if self.scopes == other.scopes => {
                (Some(one.min(two)), self.scopes)
            }
            (Some(_), Some(_)) => return None,
            _ => (None, None),
        };
        let expires = [self.expires, other.expires].into_iter().flatten().min();
        let with_session = self.with_session || other.with_session;
        Some(Self { uses, scopes, expires, with_session })
    }

    pub(crate) const fn is_set(&self) -> bool {
        self.uses.is_some()
    }

    pub(crate) fn image(&self) -> TermsImage {
        let Self { uses, scopes, expires, with_session } = self.clone();
        TermsImage { uses, scopes, expires, with_session }
    }
}

/// The request that a standing approval can be made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) token: TokenIndex,
    pub(crate) session: Option<Seq>,
    pub(crate) policy: PolicyHash,
    /// The constraint that asked, and all that matched.
    deciding: Option<ConstraintId>,
    matches: Vec<ConstraintId>,
    /// The label of the session when a person saw the call.
    label: Label,
    /// The commitments to all that was shown: the resources, and the location where there is one.
    pub(crate) shown: Vec<TextHash>,
    /// Most calls that one answer may let through; 0: none but this one.
    pub(crate) uses_max: u64,
}

impl Bounds {
    pub(crate) fn of(ask: &Ask, token: TokenIndex) -> Option<Self> {
        let decision = ask.call.decision.as_ref()?;
        let asked = &decision.obligations;
        let undoable =
            ask.call_effect != EffectClass::Irreversible && ask.effect != EffectClass::Irreversible;
        let level = decision.asks_for_a_level();
        // What touches nothing that has a name is bounded by nothing. The record does not tell a
        // location from a resource: the index does, and the kernel takes no answer for more.
        let uses_max = if undoable && !level && !ask.resources.is_empty() {
            let caps = asked.iter().filter(|asked| asked.kind == ObligationKind::ApprovalUses);
            caps.filter_map(|cap| cap.max).fold(SET_USES_MAX, u64::min)
        } else {
            0
        };
        Some(Self {
            token,
            session: ask.call.session,
            policy: ask.call.policy_hash?,
            deciding: decision.deciding.clone(),
            matches: decision.matches.clone(),
            label: ask.label,
            shown: ask.resources.clone(),
            uses_max,
        })
    }

    /// The commitments to the resources, and to the location, which the vault says is the last.
    pub(crate) fn parts(&self, shown: Option<&Shown>) -> (&[TextHash], Option<TextHash>) {
        let at = shown.and_then(|shown| shown.at);
        match self.shown.split_last() {
            Some((last, resources)) if Some(*last) == at => (resources, at),
            _ => (&self.shown, None),
        }
    }

    /// True if it may cover more than the resources that were shown: not if they may come from
    /// untrusted content.
    pub(crate) const fn may_widen(&self) -> bool {
        !self.label.is_untrusted()
    }

    /// The label of the session when a person saw the call.
    pub(crate) const fn label(&self) -> Label {
        self.label
    }

    /// The session that asked.
    pub(crate) const fn session(&self) -> Option<Seq> {
        self.session
    }

    /// True if a decision asks for the same as then, and no more.
    fn answer(&self, decision: &Decision) -> bool {
        let known = |id: &ConstraintId| self.matches.contains(id);
        let all = count(decision.matches.len()) == decision.match_count;
        let same = decision.deciding == self.deciding && decision.matches.iter().all(known);
        same && all && !decision.asks_for_a_level()
    }

    /// True if the answer is permitted. Texts that people wrote are named by their commitments
    /// only, so a list of names is none of its scopes. `open` says whether the session that asked
    /// is open still.
    pub(crate) fn permit(&self, tool: &ToolId, body: &ApprovalBody, open: bool) -> bool {
        let Some(uses) = body.uses else { return false };
        let wide = |grants: &Grants| {
            let named = |grant: &ToolGrant| grant.iter().any(|(_, s)| matches!(s, Scope::Names(_)));
            let mut all = grants.iter();
            let one = all.next().is_some_and(|(of, grant)| of == tool && !named(grant));
            one && all.next().is_none() && self.may_widen() && body.expires.is_some()
        };
        (1..=self.uses_max).contains(&uses)
            && body.scopes.as_ref().is_none_or(wide)
            && (body.expires.is_some() || open)
    }
}

/// An approval of more than one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) ask: Seq,
    pub(crate) agent: AgentId,
    pub(crate) tool: ToolId,
    pub(crate) manifest: ObjectId,
    pub(crate) leaf: Leaf,
    pub(crate) bounds: Bounds,
    pub(crate) eligible: Vec<PublicKey>,
    pub(crate) means: Vec<ApprovalChannel>,
    /// With which session it ends.
    pub(crate) session: Option<Seq>,
    pub(crate) scopes: Option<Grants>,
    pub(crate) left: u64,
    pub(crate) until: UnixMillis,
}

/// The place of a call.
pub(crate) struct Place<'a> {
    pub(crate) agent: &'a AgentId,
    pub(crate) tool: &'a ToolId,
    pub(crate) manifest: &'a ObjectId,
    pub(crate) token: TokenIndex,
    pub(crate) tokens: &'a Tokens,
    pub(crate) session: Seq,
    pub(crate) policy: Option<PolicyHash>,
    /// The label of everything that its session was given.
    pub(crate) label: Label,
    pub(crate) now: UnixMillis,
}

impl Set {
    /// True if a call in that place is one that it is for, whatever its resources.
    fn is_for(&self, place: &Place<'_>) -> bool {
        self.agent == *place.agent
            && (&self.tool, &self.manifest) == (place.tool, place.manifest)
            && place.tokens.renews(place.token, self.bounds.token)
            // Nor by who holds the token that it goes on with.
            && place.tokens.holders(place.token).all(|holder| !self.eligible.contains(&holder))
            && Some(self.bounds.policy) == place.policy
            && self.session.is_none_or(|session| session == place.session)
            && place.label.leq(self.bounds.label)
            && place.now < self.until
    }

    /// True if it covers what a call would touch, at that location: each resource was shown, or lies
    /// in scope. A call that names no resource is covered by none.
    pub(crate) fn covers(
        &self,
        demands: &[Demand],
        location: Option<&str>,
        shown: Option<&Shown>,
    ) -> bool {
        let (resources, at) = self.bounds.parts(shown);
        let wide = self.scopes.as_ref().and_then(|scopes| scopes.get(&self.tool));
        let covered = |demand: &Demand| {
            let (dimension, resource) = (demand.dimension, &demand.resource);
            let is_shown =
                |shown: &Shown| resources.contains(&committed(dimension, resource, &shown.salt));
            wide.is_some_and(|grant| grant.permits(dimension, resource))
                || shown.is_some_and(is_shown)
        };
        let is_there = match (location, shown) {
            (Some(location), Some(Shown { salt, .. })) => at == Some(at_location(location, salt)),
            (Some(_), None) => false,
            (None, _) => at.is_none(),
        };
        is_there && !demands.is_empty() && demands.iter().all(covered)
    }

    /// True if it answers the policy's question.
    pub(crate) fn answers(&self, decision: &Decision) -> bool {
        self.bounds.answer(decision)
    }
}

/// A resource as it is shown to a person, all of it.
pub(crate) fn shown(dimension: &str, resource: &Resource) -> String {
    alloc::format!("{dimension}: {}", resource.in_full())
}

/// The commitment to what is shown of a resource.
pub(crate) fn committed(dimension: &str, resource: &Resource, salt: &Salt) -> TextHash {
    commitment(shown(dimension, resource), salt)
}

/// The beginning of a location's text.
const LOCATION: &str = "where: ";

/// The location that a request shows by this text; `None` for a resource.
#[must_use]
pub fn location_of(shown: &str) -> Option<&str> {
    shown.strip_prefix(LOCATION)
}

/// A location as it is shown to a person, after the resources.
pub(crate) fn shown_location(location: &str) -> String {
    alloc::format!("{LOCATION}{location}")
}

/// The commitment to what is shown of a location.
pub(crate) fn at_location(location: &str, salt: &Salt) -> TextHash {
    commitment(shown_location(location), salt)
}

fn commitment(text: String, salt: &Salt) -> TextHash {
    VaultText { salt: *salt, field: RESOURCES, text: text.into_boxed_str() }.hash()
}

/// All that stand, by the approvals that were the last ones needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sets(BTreeMap<Seq, Set>);

impl Sets {
    pub(crate) fn begin(&mut self, by: Seq, now: UnixMillis, set: Set) {
        self.0.retain(|_, set| now < set.until);
        self.0.insert(by, set);
        // One that goes too early is asked about again.
        if self.0.len() > SETS_MAX {
            self.0.pop_first();
        }
    }

    /// The standing approvals that may cover a call.
    pub(crate) fn of<'a>(&'a self, place: &Place<'_>) -> impl Iterator<Item = (Seq, &'a Set)> {
        let all = self.0.iter().map(|(by, set)| (*by, set));
        all.filter(move |(_, set)| set.is_for(place))
    }

    /// One call fewer. `None` where there is no such set, or the call is none that it is for.
    pub(crate) fn spend(&mut self, by: Seq, place: &Place<'_>, decision: &Decision) -> Option<()> {
        let set = self.0.get_mut(&by)?;
        if !set.is_for(place) || !set.answers(decision) {
            return None;
        }
        set.left = set.left.checked_sub(1)?;
        if set.left == 0 {
            self.0.remove(&by);
        }
        Some(())
    }

    /// All, also those that are over and not forgotten yet.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Set> {
        self.0.values()
    }

    pub(crate) fn live(&self, now: UnixMillis) -> impl Iterator<Item = (Seq, &Set)> {
        let all = self.0.iter().map(|(by, set)| (*by, set));
        all.filter(move |(_, set)| now < set.until)
    }

    /// Ends those that were given for that ask. True if there was one.
    pub(crate) fn end(&mut self, ask: Leaf) -> bool {
        let before = self.0.len();
        self.0.retain(|_, set| set.leaf != ask);
        self.0.len() < before
    }

    pub(crate) fn has(&self, ask: Leaf, now: UnixMillis) -> Option<&Set> {
        self.live(now).map(|(_, set)| set).find(|set| set.leaf == ask)
    }

    /// Another policy is in force: what another one asked for ends.
    pub(crate) fn swap(&mut self, policy: PolicyHash) {
        self.0.retain(|_, set| set.bounds.policy == policy);
    }

    /// Ends those that end with the session.
    pub(crate) fn close(&mut self, session: Option<Seq>) {
        self.0.retain(|_, set| match session {
            Some(closed) => set.session != Some(closed),
            // A boot has ended them all.
            None => set.session.is_none(),
        });
    }

    pub(crate) fn images(&self) -> impl Iterator<Item = SetImage> {
        self.0.iter().map(|(by, set)| SetImage {
            set: *by,
            ask: set.ask,
            token: u64::from(set.bounds.token.get()),
            session: set.session,
            left: set.left,
            until: set.until,
            scopes: set.scopes.clone(),
        })
    }
}

/// True if an answer has the form of its kind.
pub(crate) fn is_formed(body: &ApprovalBody, now: UnixMillis) -> bool {
    let bare = body.scopes.is_none() && body.uses.is_none();
    match body.answer {
        ApprovalAnswer::Once => bare && body.expires.is_none_or(|until| now < until),
        ApprovalAnswer::Deny => bare && body.expires.is_none(),
        ApprovalAnswer::Set => body.uses.is_some() && body.expires.is_none_or(|until| now < until),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscap_format::Verdict;

    fn decision(matches: &[&str], match_count: u64) -> Decision {
        let id = |id: &&str| ConstraintId::new(id).unwrap();
        let matches: Vec<ConstraintId> = matches.iter().map(id).collect();
        let deciding = matches.first().cloned();
        Decision { deciding, matches, match_count, ..Decision::plain(Verdict::Ask) }
    }

    /// A standing approval answers what was asked: no other constraint, and none that is not listed.
    #[test]
    fn standing_approval_answers_no_constraint_that_was_not_asked_about() {
        let asked = decision(&["a", "b"], 2);
        let bounds = Bounds {
            token: TokenIndex::of_test(0),
            session: None,
            policy: PolicyHash::from_bytes([1; 32]),
            deciding: asked.deciding.clone(),
            matches: asked.matches.clone(),
            label: Label::PUBLIC,
            shown: Vec::new(),
            uses_max: 1,
        };
        for (again, wanted) in [
            (decision(&["a", "b"], 2), true),
            (decision(&["a"], 1), true),
            (decision(&["b"], 1), false),
            (decision(&["a", "c"], 2), false),
            // More matched than stand in the list.
            (decision(&["a", "b"], 3), false),
        ] {
            assert_eq!(bounds.answer(&again), wanted, "{again:?}");
        }
    }
}
