//! A token whole, and what may take its place.

use std::collections::BTreeMap;

use syscap_format::{
    Budget, Dimension, Grants, Reason, Refused, Rights, Scope, TokenBody, TokenFlags, TokenId,
    ToolId, UnixMillis,
};
use syscap_kernel::{Kernel, TokenView};
use syscap_syscalls::net::URL_PATH_DIMENSION;

use crate::inspect::view::{TOKENS_SCANNED_MAX, TokenDetail, TokenInfo, TokenStanding};
use crate::{Error, Grant};

impl TokenInfo {
    /// What is left, as the budget of another token: as many calls at once, of all else the rest.
    pub fn rest(&self) -> Budget {
        let left = self.left.with(Dimension::Concurrent, self.limits.get(Dimension::Concurrent));
        left.iter().fold(Budget::none(), |budget, (of, left)| budget.with(of, left))
    }
}

impl TokenDetail {
    /// Those whose ids begin with these digits, the newest first and two of them at most; of a part of
    /// an id so many of the newest are looked through.
    pub(crate) fn named(kernel: &Kernel, digits: &str, at: UnixMillis, most: usize) -> Vec<Self> {
        let whole = TokenId::from_hex(digits).map(|id| kernel.token(&id));
        let begins = |token: &TokenView<'_>| token.id.to_string().starts_with(digits);
        let found: Vec<TokenView<'_>> = match whole {
            Some(token) => token.into_iter().collect(),
            None => kernel.tokens().rev().take(most).filter(begins).take(2).collect(),
        };
        found.iter().map(|token| Self::of(token, at)).collect()
    }

    /// The grant to repeat when the token has ended or is spent: [the same, with nothing
    /// used](Grant::like). Sessions of the new token begin with everything that sessions by the old
    /// one, and by what it renewed, were given, so that no earlier reading is forgotten. If the old
    /// token is an unrevoked root without a bound of its own, the new one [renews](Grant::renews)
    /// it: its approvals and idempotency keys stay valid.
    ///
    /// # Errors
    /// [`Error::Attenuated`] where it was derived from another: what is issued is a root, which
    /// would spend no budget above it and outlive it.
    pub fn grant_like(&self) -> Result<Grant, Error> {
        let Self { info, body, .. } = self;
        if let Some(parent) = body.parent {
            return Err(Error::Attenuated { token: info.id, parent });
        }
        let grant = Grant::like(body).begins_with(info.label);
        let goes_on = !info.revoked && self.renew_by.is_none();
        Ok(if goes_on { grant.renews(info.id) } else { grant })
    }

    fn of(token: &TokenView<'_>, at: UnixMillis) -> Self {
        let (renew_by, fresh_until) = (token.renew_by, token.fresh_until);
        let (info, body) = (TokenInfo::of(token, at), token.body.clone());
        Self { info, body, renew_by, fresh_until, at }
    }

    /// What is granted without some tools, and below no paths but these, where some are given. A tool
    /// that has no path left is not granted.
    ///
    /// # Errors
    /// [`Error::BadName`] or [`Error::Scope`] where a path is not of its form.
    pub fn less(&self, without: &[ToolId], below: &[String]) -> Result<Grants, Error> {
        let whole = Grant::to(self.body.agent.as_str());
        let whole = below.iter().fold(whole, |grant, path| grant.path(path, Rights::ALL));
        let below = match below {
            [] => None,
            _ => Some(Scope::Paths(whole.rules(&self.body.agent)?)),
        };
        let kept = self.body.grants.iter().filter(|(tool, _)| !without.contains(tool));
        Ok(kept.fold(Grants::new(), |grants, (tool, grant)| {
            let mut less = Some(grant.clone());
            for (dimension, scope) in grant.iter() {
                if let (Scope::Paths(_), Some(below)) = (scope, &below)
                    && dimension != URL_PATH_DIMENSION
                {
                    let met = scope.meet(below);
                    less = less.zip(met).map(|(less, met)| less.with(dimension, met));
                }
            }
            match less {
                Some(less) => grants.with(tool.clone(), less),
                None => grants,
            }
        }))
    }

    /// The grant of a token that renews this one, with other grants, what is left of it, and its end:
    /// nothing is refilled. To be followed by this one's revocation.
    ///
    /// # Errors
    /// As [`TokenDetail::grant_like`]; [`Error::Refused`] where it is bound to a policy, which no
    /// token is that is issued here.
    pub fn replaced_by(&self, grants: Grants) -> Result<Grant, Error> {
        let Self { info, body, renew_by, at, .. } = self;
        if let Some(parent) = body.parent {
            return Err(Error::Attenuated { token: info.id, parent });
        }
        if body.policy.is_some() {
            return Err(Refused::new(Reason::BadToken).field("policy").into());
        }
        let like = TokenBody { grants, budget: info.rest(), ..body.clone() };
        let grant = Grant::like(&like).begins_with(info.label).ends_at(body.expires);
        let grant = grant.renews(info.id);
        Ok(match renew_by {
            Some(by) => grant.renew_within(std::time::Duration::from_millis(by.since(*at))),
            None => grant,
        })
    }

    /// The token by which whoever names this one goes on: itself while it can be used, or where nothing
    /// took its place.
    pub(crate) fn going_on(kernel: &Kernel, token: TokenId) -> TokenId {
        let is_live =
            |token: &TokenView<'_>| TokenStanding::of(token, kernel.now()) == TokenStanding::Live;
        if kernel.token(&token).as_ref().is_some_and(is_live) {
            return token;
        }
        let next = Self::successor(kernel, token).map(|next| next.info);
        next.filter(|next| next.standing == TokenStanding::Live).map_or(token, |next| next.id)
    }

    /// See [`Runtime::successor`](crate::Runtime::successor).
    pub(crate) fn successor(kernel: &Kernel, token: TokenId) -> Option<Self> {
        let (own, now) = (kernel.token(&token)?, kernel.now());
        let renews = |id: TokenId| kernel.token(&id)?.body.renews;
        // Every token is walked over once, however long the lines are.
        let mut known = BTreeMap::from([(token, true)]);
        let mut is_of_line = |id| {
            let (mut walked, mut at) = (Vec::new(), Some(id));
            let found = loop {
                let Some(id) = at else { break false };
                if let Some(found) = known.get(&id) {
                    break *found;
                }
                walked.push(id);
                at = renews(id);
            };
            known.extend(walked.into_iter().map(|id| (id, found)));
            found
        };
        let mut between = None;
        // What renews it was registered later.
        let later = kernel.tokens().rev().take_while(|next| next.issued > own.issued);
        for next in later.take(TOKENS_SCANNED_MAX) {
            let fits = next.body.agent == own.body.agent
                && !next.is_revoked(now)
                && gives_no_more(next.body, own.body);
            if !fits || !is_of_line(next.id) {
                continue;
            }
            if TokenStanding::of(&next, now) == TokenStanding::Live {
                return Some(Self::of(&next, now));
            }
            // What goes on longer, or less long, was issued for itself: it stands for no other.
            if next.body.expires == own.body.expires && between.is_none() {
                between = Some(next);
            }
        }
        between.map(|next| Self::of(&next, now))
    }
}

/// True if a token lets through nothing that the other would not, but for what it may use up.
fn gives_no_more(body: &TokenBody, other: &TokenBody) -> bool {
    let flags = [TokenFlags::READ_ONLY, TokenFlags::TERMINAL];
    body.grants.leq(&other.grants)
        && flags.into_iter().all(|flag| !other.flags.has(flag) || body.flags.has(flag))
        && (other.policy.is_none() || body.policy == other.policy)
}
