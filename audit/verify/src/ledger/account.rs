//! Tokens and what they have used and hold.

use std::collections::HashMap;

use super::more;
use syscap_format::{Amounts, Dimension, Label, PublicKey, Seq, TokenBody, TokenId, UnixMillis};

/// Number of a token's account. Accounts are never dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Account(usize);

/// One token.
#[derive(Clone, Debug)]
struct Holder {
    parent: Option<Account>,
    issued: Seq,
    body: TokenBody,
    revoked: bool,
    /// From then on it counts as revoked.
    renew_by: Option<UnixMillis>,
    exhausted: bool,
    used: Amounts,
    held: Amounts,
    /// The place of its family's label.
    family: usize,
}

/// All tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct Accounts {
    holders: Vec<Holder>,
    /// The labels of what the sessions of each family were given: of an agent's tokens that renew
    /// each other, or are derived from each other.
    families: Vec<Label>,
    index: HashMap<TokenId, Account>,
    /// The tokens that a key issued or holds and that no revocation of the key has ended: an empty
    /// list is of a key that has been revoked.
    of_key: HashMap<PublicKey, Vec<Account>>,
    /// The children of each that no revocation of all has ended.
    children: HashMap<Account, Vec<Account>>,
    /// How many were passed over in all.
    pub(super) passed_over: u64,
}

impl Accounts {
    pub(super) fn find(&self, id: &TokenId) -> Option<Account> {
        self.index.get(id).copied()
    }

    pub(super) fn open(
        &mut self,
        id: TokenId,
        body: TokenBody,
        parent: Option<Account>,
        issued: Seq,
    ) {
        let (used, held) = (Amounts::ZERO, Amounts::ZERO);
        let (revoked, exhausted) = (false, false);
        let account = Account(self.holders.len());
        self.index.insert(id, account);
        for key in [Some(body.issuer), body.holder].into_iter().flatten() {
            self.of_key.entry(key).or_default().push(account);
        }
        if let Some(parent) = parent {
            self.children.entry(parent).or_default().push(account);
        }
        let renew_by = body.renew_by();
        let kin = parent.or_else(|| body.renews.and_then(|id| self.find(&id)));
        let kin = kin.and_then(|kin| self.holders.get(kin.0));
        let family = match kin.filter(|kin| kin.body.agent == body.agent) {
            Some(kin) => kin.family,
            None => {
                self.families.push(Label::PUBLIC);
                self.families.len().saturating_sub(1)
            }
        };
        self.holders.push(Holder {
            parent,
            issued,
            body,
            revoked,
            renew_by,
            exhausted,
            used,
            held,
            family,
        });
    }

    pub(super) fn body(&self, account: Account) -> Option<&TokenBody> {
        self.holders.get(account.0).map(|holder| &holder.body)
    }

    /// True if a token is the old one, renews it, or renews one that does.
    pub(super) fn renews(&self, token: Account, old: Account) -> bool {
        let before = |at: &Account| {
            let renewed = self.body(*at).and_then(|body| body.renews);
            renewed.and_then(|id| self.find(&id)).filter(|renewed| renewed < at)
        };
        std::iter::successors(Some(token), before).any(|at| at == old)
    }

    /// The record that registered the root of its chain: nothing of it is younger.
    pub(super) fn rooted(&self, account: Account) -> Option<Seq> {
        self.chain(account).last().map(|root| root.issued)
    }

    /// How old the list of revocations may be, as the root says.
    pub(super) fn fresh_within(&self, account: Account) -> Option<u64> {
        self.chain(account).last().and_then(|root| root.body.fresh_within())
    }

    pub(super) fn is_revoked(&self, account: Account, now: UnixMillis) -> bool {
        self.chain(account).any(|holder| holder.is_revoked(now))
    }

    /// A token takes the place of others: of those that were not revoked by now it says how long
    /// they go on. Each was opened before the one that renews it.
    pub(super) fn renew(&mut self, by: &TokenBody, now: UnixMillis) {
        let until = by.renew_by().unwrap_or(by.expires);
        let mut next = by.renews;
        while let Some(account) = next.and_then(|id| self.find(&id)) {
            let Some(holder) = self.holders.get_mut(account.0) else { return };
            let Some(end) = holder.renew_by.filter(|end| now < *end) else { return };
            self.passed_over = self.passed_over.saturating_add(1);
            holder.renew_by = Some(end.max(until));
            next = holder.body.renews;
        }
    }

    /// Its holder, and those of its ancestors.
    pub(super) fn holders(&self, account: Account) -> Vec<PublicKey> {
        self.chain(account).filter_map(|holder| holder.body.holder).collect()
    }

    pub(super) fn is_exhausted(&self, account: Account) -> bool {
        self.chain(account).any(|holder| holder.exhausted)
    }

    /// True if every token of the chain has `wanted` left.
    pub(super) fn covers(&self, account: Account, wanted: &Amounts) -> bool {
        self.chain(account).all(|holder| wanted.leq(&holder.left()))
    }

    /// The `calls` that are left, the least of the chain.
    pub(super) fn calls_left(&self, account: Account) -> u64 {
        let left = self.chain(account).map(|holder| holder.left().get(Dimension::Calls));
        left.min().unwrap_or(0)
    }

    /// Ends the roots of which `ends` says so, by their bodies and records.
    pub(super) fn revoke_roots(&mut self, ends: impl Fn(&TokenBody, Seq) -> bool) {
        self.passed_over = more(self.passed_over, self.holders.len());
        let roots = self.holders.iter_mut().filter(|holder| holder.parent.is_none());
        roots.for_each(|holder| holder.revoked |= ends(&holder.body, holder.issued));
    }

    /// Ends what was derived from it so far, by ending its children.
    pub(super) fn revoke_below(&mut self, account: Account) {
        let children = self.children.remove(&account).unwrap_or_default();
        self.passed_over = more(self.passed_over, children.len());
        children.into_iter().for_each(|child| self.revoke(child));
    }

    /// Ends the tokens by a key or held by it; says whether there are any.
    pub(super) fn revoke_by(&mut self, key: &PublicKey) -> bool {
        let Some(of_key) = self.of_key.get_mut(key) else { return false };
        let of_key = std::mem::take(of_key);
        self.passed_over = more(self.passed_over, of_key.len());
        of_key.into_iter().for_each(|account| self.revoke(account));
        true
    }

    pub(super) fn revoke(&mut self, account: Account) {
        if let Some(holder) = self.holders.get_mut(account.0) {
            holder.revoked = true;
        }
    }

    pub(super) fn exhaust(&mut self, account: Account) {
        if let Some(holder) = self.holders.get_mut(account.0) {
            holder.exhausted = true;
        }
    }

    pub(super) fn hold(&mut self, account: Account, amounts: &Amounts) {
        self.each(account, |holder| holder.held = holder.held.plus(amounts));
    }

    pub(super) fn free(&mut self, account: Account, amounts: &Amounts) {
        self.each(account, |holder| holder.held = holder.held.minus(amounts));
    }

    pub(super) fn pay(&mut self, account: Account, amounts: &Amounts) {
        self.each(account, |holder| holder.used = holder.used.plus(amounts));
    }

    pub(super) fn refund(&mut self, account: Account, amounts: &Amounts) {
        self.each(account, |holder| holder.used = holder.used.minus(amounts));
    }

    /// A charge after the fact: it may use a dimension up, and then the token is exhausted.
    pub(super) fn charge(&mut self, account: Account, amounts: &Amounts) {
        self.each(account, |holder| {
            holder.used = holder.used.plus(amounts);
            for (dimension, _) in amounts.iter().filter(|(_, amount)| *amount > 0) {
                let limit = holder.body.budget.amounts().get(dimension);
                holder.exhausted |= holder.used.get(dimension) >= limit;
            }
        });
    }

    /// A boot ends all runs.
    pub(super) fn free_gauge(&mut self) {
        self.passed_over = more(self.passed_over, self.holders.len());
        for holder in &mut self.holders {
            holder.held = holder.held.with(Dimension::Concurrent, 0);
        }
    }

    /// What its chain says of those who handed it on.
    pub(super) fn handed(&self, account: Account) -> Label {
        let labels = self.chain(account).map(|holder| holder.body.label());
        labels.fold(Label::PUBLIC, Label::join)
    }

    /// The label with which its sessions begin: that, and the families' of its chain.
    pub(super) fn begins(&self, account: Account) -> Label {
        let families = self.chain(account).filter_map(|holder| self.families.get(holder.family));
        families.copied().fold(self.handed(account), Label::join)
    }

    /// The label of what the sessions of its family were given.
    pub(super) fn label(&self, account: Account) -> Label {
        let family = self.holders.get(account.0).map(|holder| holder.family);
        family.and_then(|family| self.families.get(family)).copied().unwrap_or(Label::PUBLIC)
    }

    /// A session of its family was given something.
    pub(super) fn give(&mut self, account: Account, label: Label) {
        let family = self.holders.get(account.0).map(|holder| holder.family);
        if let Some(family) = family.and_then(|family| self.families.get_mut(family)) {
            *family = family.join(label);
        }
    }

    /// The token and those that it was derived from. A parent comes before its child.
    fn chain(&self, account: Account) -> impl Iterator<Item = &Holder> {
        let mut next = self.holders.get(account.0);
        std::iter::from_fn(move || {
            let holder = next?;
            next = holder.parent.and_then(|parent| self.holders.get(parent.0));
            Some(holder)
        })
    }

    fn each(&mut self, account: Account, mut change: impl FnMut(&mut Holder)) {
        let mut next = Some(account);
        while let Some(holder) = next.and_then(|account| self.holders.get_mut(account.0)) {
            change(holder);
            next = holder.parent;
        }
    }
}

impl Holder {
    fn is_revoked(&self, now: UnixMillis) -> bool {
        self.revoked || self.renew_by.is_some_and(|end| now >= end)
    }

    fn left(&self) -> Amounts {
        self.body.budget.amounts().minus(&self.used.plus(&self.held))
    }
}
