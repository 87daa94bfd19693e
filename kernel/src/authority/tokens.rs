//! The tokens and what they have used: arrays, indexed by a number that a session keeps.

use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};

use crate::lookups;
use syscap_format::{
    AgentId, Amounts, Dimension, Label, PublicKey, RevocationList, Seq, TokenBody, TokenId,
    TokenImage, UnixMillis,
};

/// Place of a token in the arrays. Tokens are never dropped, so it stays good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TokenIndex(u32);

#[cfg(test)]
impl TokenIndex {
    pub(crate) const fn of_test(place: u32) -> Self {
        Self(place)
    }
}

impl TokenIndex {
    pub(crate) const fn get(self) -> u32 {
        self.0
    }
}

/// The fold's part of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    id: TokenId,
    parent: Option<TokenIndex>,
    issued: Seq,
    revoked: bool,
    /// From then on it is as revoked: as it says, or what renewed it before that.
    renew_by: Option<UnixMillis>,
    /// Measured time overran, or a charge used up a dimension.
    exhausted: bool,
    used: Amounts,
    held: Amounts,
    /// The place of its family's label.
    family: usize,
    body: Arc<TokenBody>,
}

impl Entry {
    /// The rest of its own budget.
    fn left(&self) -> Amounts {
        self.body.budget.amounts().minus(&self.used.plus(&self.held))
    }
}

/// All tokens of a home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    entries: Vec<Entry>,
    /// The labels of everything that the sessions of each family were given. A *family* is the
    /// tokens of one agent that renew each other, or are derived from each other.
    families: Vec<Label>,
    index: BTreeMap<TokenId, TokenIndex>,
    /// The last list of revocations, as of when it is believed to be whole, with the tokens of all
    /// lists that are not registered.
    list: Option<RevocationList>,
}

/// A token and its standing, for those who look.
#[derive(Clone, Debug)]
pub struct TokenView<'a> {
    /// The id.
    pub id: TokenId,
    /// The token's body.
    pub body: &'a TokenBody,
    /// The record that registered it.
    pub issued: Seq,
    /// The record that registered its root: as old is what it may do.
    pub rooted: Seq,
    /// True if it, or an ancestor, was revoked.
    pub revoked: bool,
    /// From then on it, or one that it was derived from, is as revoked, unless that is renewed
    /// before. Null: it need not be.
    pub renew_by: Option<UnixMillis>,
    /// From then on it is not valid until there is a newer list of revocations. Null: it needs
    /// none.
    pub fresh_until: Option<UnixMillis>,
    /// True if it, or an ancestor, was exhausted by a measurement or a charge.
    pub exhausted: bool,
    /// The amounts used, by it and all tokens derived from it.
    pub used: Amounts,
    /// The amounts reserved for calls in flight.
    pub held: Amounts,
    /// The amounts left, the tightest of its chain.
    pub left: Amounts,
    /// The label of everything that sessions by it, and by the other tokens of its family, were
    /// given.
    pub label: Label,
    /// The label with which a session by it would begin: its family's, those of the tokens that it
    /// was derived from, and what they say of whoever handed them on.
    pub begins: Label,
}

impl TokenView<'_> {
    /// True if at that time it was revoked, or counts as revoked because it was not renewed.
    #[must_use]
    pub fn is_revoked(&self, now: UnixMillis) -> bool {
        self.revoked || self.renew_by.is_some_and(|by| now >= by)
    }

    /// The first dimension in which `wanted` exceeds what is left anywhere in the chain.
    pub(crate) fn lacks(&self, wanted: &Amounts) -> Option<Dimension> {
        wanted.iter().find(|(d, amount)| *amount > self.left.get(*d)).map(|(d, _)| d)
    }
}

impl Tokens {
    pub(crate) fn insert(
        &mut self,
        id: TokenId,
        body: Arc<TokenBody>,
        parent: Option<TokenIndex>,
        issued: Seq,
    ) -> Option<TokenIndex> {
        let place = TokenIndex(u32::try_from(self.entries.len()).ok()?);
        if self.index.insert(id, place).is_some() {
            return None;
        }
        let (used, held) = (Amounts::ZERO, Amounts::ZERO);
        let (revoked, exhausted, renew_by) = (false, false, body.renew_by());
        // A token that renews is a root: it has no more than one of them.
        let before = parent.or_else(|| body.renews.and_then(|id| self.index.get(&id).copied()));
        let kin = before.and_then(|before| self.entry(before));
        let family = match kin.filter(|kin| kin.body.agent == body.agent) {
            Some(kin) => kin.family,
            None => {
                self.families.push(Label::PUBLIC);
                self.families.len().saturating_sub(1)
            }
        };
        self.entries.push(Entry {
            id,
            parent,
            issued,
            revoked,
            renew_by,
            exhausted,
            used,
            held,
            family,
            body,
        });
        Some(place)
    }

    pub(crate) fn find(&self, id: &TokenId) -> Option<TokenIndex> {
        lookups::token();
        self.index.get(id).copied()
    }

    pub(crate) fn body(&self, token: TokenIndex) -> Option<&Arc<TokenBody>> {
        self.entry(token).map(|entry| &entry.body)
    }

    /// True if a token replaces another: it renews it, or a renewal of it.
    pub(crate) fn renews(&self, token: TokenIndex, old: TokenIndex) -> bool {
        let mut at = token;
        // Each was registered after the one that it renews.
        while at > old {
            let renewed = self.body(at).and_then(|body| body.renews);
            match renewed.and_then(|id| self.index.get(&id)) {
                Some(before) if *before < at => at = *before,
                _ => return false,
            }
        }
        at == old
    }

    /// True if the token or one of its ancestors was revoked, or counts as revoked at that time.
    pub(crate) fn is_revoked(&self, token: TokenIndex, now: UnixMillis) -> bool {
        let lapsed = |entry: &Entry| entry.renew_by.is_some_and(|by| now >= by);
        self.chain(token).any(|entry| entry.revoked || lapsed(entry))
    }

    /// A token was registered that renews another: that one, and those that it renewed itself, go
    /// on as long as it does. None of them has ended: one that has is not renewed, and what it
    /// renewed ends no earlier than it.
    pub(crate) fn renewed(&mut self, by: TokenIndex) {
        let Some(body) = self.body(by).cloned() else { return };
        let until = body.renew_by().unwrap_or(body.expires);
        let mut renews = body.renews;
        while let Some(at) = renews.and_then(|id| self.index.get(&id).copied()) {
            let Some(entry) = self.entry_mut(at) else { return };
            match &mut entry.renew_by {
                Some(end) => *end = until.max(*end),
                None => return,
            }
            renews = entry.body.renews;
        }
    }

    /// The amounts left in each dimension, the tightest of the chain.
    pub(crate) fn left(&self, token: TokenIndex) -> Amounts {
        self.chain(token).map(Entry::left).reduce(|a, b| a.meet(&b)).unwrap_or_default()
    }

    /// The agent that the root of the chain is for.
    pub(crate) fn root_agent(&self, token: TokenIndex) -> Option<AgentId> {
        self.chain(token).last().map(|root| root.body.agent.clone())
    }

    /// What those had read who handed the token on, as it says itself.
    pub(crate) fn handed(&self, token: TokenIndex) -> Label {
        self.chain(token).fold(Label::PUBLIC, |label, at| label.join(at.body.label()))
    }

    /// The label with which a session begins.
    pub(crate) fn begins(&self, token: TokenIndex) -> Label {
        let families = self.chain(token).map(|at| self.label_of(at));
        families.fold(self.handed(token), Label::join)
    }

    /// The label of everything that the sessions of the token's family were given.
    pub(crate) fn label(&self, token: TokenIndex) -> Option<Label> {
        self.entry(token).map(|entry| self.label_of(entry))
    }

    fn label_of(&self, entry: &Entry) -> Label {
        self.families.get(entry.family).copied().unwrap_or(Label::PUBLIC)
    }

    /// A session of the token's family was given something of that label.
    pub(crate) fn give(&mut self, token: TokenIndex, label: Label) -> Option<()> {
        let family = self.entry(token)?.family;
        let before = self.families.get_mut(family)?;
        *before = before.join(label);
        Some(())
    }

    /// The holders of the token, and of its ancestors.
    pub(crate) fn holders(&self, token: TokenIndex) -> impl Iterator<Item = PublicKey> {
        self.chain(token).filter_map(|entry| entry.body.holder)
    }

    pub(crate) fn revoke(&mut self, token: TokenIndex) {
        if let Some(entry) = self.entry_mut(token) {
            entry.revoked = true;
        }
    }

    /// Ends what was derived from it so far: with its children all that is below them.
    pub(crate) fn revoke_children(&mut self, token: TokenIndex) {
        self.revoke_where(|entry| entry.parent == Some(token));
    }

    /// Ends the tokens by a key, or held by it.
    pub(crate) fn revoke_key(&mut self, key: &PublicKey) {
        self.revoke_where(|entry| entry.body.concerns(key));
    }

    /// True if a token is issued or held by that key.
    pub(crate) fn concerns(&self, key: &PublicKey) -> bool {
        self.entries.iter().any(|entry| entry.body.concerns(key))
    }

    /// Ends the root tokens of which `ends` says so, by their bodies and records.
    pub(crate) fn revoke_roots(&mut self, ends: impl Fn(&TokenBody, Seq) -> bool) {
        self.revoke_where(|entry| entry.parent.is_none() && ends(&entry.body, entry.issued));
    }

    fn revoke_where(&mut self, ends: impl Fn(&Entry) -> bool) {
        self.entries.iter_mut().for_each(|entry| entry.revoked |= ends(entry));
    }

    pub(crate) fn exhaust(&mut self, token: TokenIndex) {
        if let Some(entry) = self.entry_mut(token) {
            entry.exhausted = true;
        }
    }

    /// Sets amounts aside.
    pub(crate) fn hold(&mut self, token: TokenIndex, amounts: &Amounts) {
        self.each_in_chain(token, |entry| entry.held = entry.held.plus(amounts));
    }

    /// Frees what was set aside and charges what was used.
    pub(crate) fn settle(&mut self, token: TokenIndex, held: &Amounts, used: &Amounts) {
        self.each_in_chain(token, |entry| {
            entry.held = entry.held.minus(held);
            entry.used = entry.used.plus(used);
        });
    }

    /// Gives back what was charged and not needed.
    pub(crate) fn refund(&mut self, token: TokenIndex, amounts: &Amounts) {
        self.each_in_chain(token, |entry| entry.used = entry.used.minus(amounts));
    }

    /// Frees every slot of the gauge: nothing runs across a boot.
    pub(crate) fn free_gauge(&mut self) {
        for entry in &mut self.entries {
            entry.held.set(Dimension::Concurrent, 0);
        }
    }

    /// The last list of revocations, with the tokens of all lists that are not registered.
    pub(crate) const fn list(&self) -> Option<&RevocationList> {
        self.list.as_ref()
    }

    /// Ends the tokens of a list. One that was signed ahead of the time is as of now.
    pub(crate) fn revoke_listed(&mut self, mut list: RevocationList, now: UnixMillis) {
        list.as_of = list.as_of.min(now);
        let before = self.list.take().map_or_else(Vec::new, |last| last.tokens);
        for id in core::mem::replace(&mut list.tokens, before) {
            match self.find(&id) {
                Some(token) => self.revoke(token),
                None => list.tokens.push(id),
            }
        }
        list.tokens.sort_unstable();
        list.tokens.dedup();
        self.list = Some(list);
    }

    /// Until when what is asked of lists is new enough for a token that so says.
    fn fresh_until(&self, body: &TokenBody) -> Option<UnixMillis> {
        let as_of = self.list.as_ref().map(|list| list.as_of);
        let until = |within| as_of.map_or(UnixMillis::new(0), |as_of| as_of.plus(within));
        body.fresh_within().map(until)
    }

    /// Marks every token of the chain that a charge has used up in a dimension it charged.
    pub(crate) fn exhaust_where_used_up(&mut self, token: TokenIndex, charged: &Amounts) {
        self.each_in_chain(token, |entry| {
            let used_up = |(d, amount): (Dimension, u64)| {
                amount > 0 && entry.used.get(d) >= entry.body.budget.amounts().get(d)
            };
            entry.exhausted |= charged.iter().any(used_up);
        });
    }

    pub(crate) fn images(&self) -> impl Iterator<Item = TokenImage> {
        self.entries.iter().map(|entry| TokenImage {
            token: entry.id,
            parent: entry.parent.map(|parent| u64::from(parent.0)),
            issued: entry.issued,
            revoked: entry.revoked,
            renew_by: entry.renew_by,
            exhausted: entry.exhausted,
            used: entry.used,
            held: entry.held,
            label: self.label_of(entry),
        })
    }

    /// In the order in which they were registered.
    pub(crate) fn views(&self) -> impl DoubleEndedIterator<Item = TokenView<'_>> {
        let end = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        (0..end).map(TokenIndex).filter_map(|token| self.view(token))
    }

    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn view(&self, token: TokenIndex) -> Option<TokenView<'_>> {
        let entry = self.entry(token)?;
        let Entry { id, issued, revoked, renew_by, exhausted, used, held, .. } = *entry;
        let (body, left) = (&*entry.body, entry.left());
        let (rooted, fresh_until) = (issued, self.fresh_until(body));
        let label = self.label_of(entry);
        let begins = label.join(body.label());
        let mut view = TokenView {
            id,
            body,
            issued,
            rooted,
            revoked,
            renew_by,
            fresh_until,
            exhausted,
            used,
            held,
            left,
            label,
            begins,
        };
        for above in entry.parent.into_iter().flat_map(|parent| self.chain(parent)) {
            view.rooted = above.issued;
            view.revoked |= above.revoked;
            // Of a chain only the root has one.
            view.renew_by = view.renew_by.or(above.renew_by);
            view.fresh_until = view.fresh_until.or(self.fresh_until(&above.body));
            view.exhausted |= above.exhausted;
            view.left = view.left.meet(&above.left());
            view.begins = view.begins.join(self.label_of(above)).join(above.body.label());
        }
        Some(view)
    }

    fn entry(&self, token: TokenIndex) -> Option<&Entry> {
        lookups::token();
        self.entries.get(usize::try_from(token.0).ok()?)
    }

    fn entry_mut(&mut self, token: TokenIndex) -> Option<&mut Entry> {
        self.entries.get_mut(usize::try_from(token.0).ok()?)
    }

    /// The token and its ancestors. A parent is registered before its child, so this ends.
    fn chain(&self, token: TokenIndex) -> impl Iterator<Item = &Entry> {
        let mut next = Some(token);
        core::iter::from_fn(move || {
            let entry = self.entry(next?)?;
            next = entry.parent;
            Some(entry)
        })
    }

    fn each_in_chain(&mut self, token: TokenIndex, mut f: impl FnMut(&mut Entry)) {
        let mut next = Some(token);
        while let Some(entry) = next.and_then(|token| self.entry_mut(token)) {
            f(entry);
            next = entry.parent;
        }
    }
}
