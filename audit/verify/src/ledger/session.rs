//! Tokens, sessions, charges.

use std::collections::VecDeque;

use syscap_format::{
    Charge, Dimension, Input, Issue, Label, ObjectKind, Reason, Role, Seq, SessionChange,
    SessionPhase, Snapshot, Token, TokenBody, attenuates,
};

use super::{Account, Entry, Fault, Heads, Ledger, Phase, Row, Session, Source, object};

impl Ledger {
    pub(super) fn issue<E>(
        &mut self,
        entry: &mut Entry<'_>,
        issue: &Issue,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        entry.expect(self.phase == Phase::Running, Fault::Closed);
        let Some(wire) = object(entry, source, ObjectKind::Token, *issue.token.as_bytes())? else {
            return Ok(());
        };
        let token = match Token::read(&wire.bytes) {
            Ok(token) => token,
            Err(refused) => {
                let signature = refused.reason() == Reason::BadSignature;
                entry.fault(if signature { Fault::BadSignature } else { Fault::BadToken });
                return Ok(());
            }
        };
        let body = token.body();
        let same =
            (issue.issuer, issue.parent, &issue.agent) == (body.issuer, body.parent, &body.agent);
        entry.expect(same, Fault::IssueForm);
        entry.expect(body.audience == self.home, Fault::WrongAudience);
        entry.expect(entry.time < body.expires, Fault::IssuedLate);
        if self.accounts.find(&issue.token).is_some() {
            entry.fault(Fault::IssuedTwice);
            return Ok(());
        }
        let ended = self.revoked_keys.contains(&body.issuer)
            || body.holder.is_some_and(|holder| self.revoked_keys.contains(&holder))
            || (body.parent.is_none() && body.epoch < self.epoch)
            || self.listed.contains(&issue.token);
        entry.expect(!ended, Fault::Revoked);
        let parent = self.parent(entry, &token, source)?;
        if body.parent.is_none() {
            let signer = self.signers.entry(body.issuer).or_default();
            signer.last = entry.seq;
        }
        self.accounts.open(issue.token, body.clone(), parent, entry.seq);
        self.accounts.renew(body, entry.time);
        Ok(())
    }

    /// A root is by a current key of the issuer's and names a head; any other token takes away
    /// from one before it.
    fn parent<E>(
        &self,
        entry: &mut Entry<'_>,
        token: &Token,
        source: &mut dyn Source<Error = E>,
    ) -> Result<Option<Account>, E> {
        let Some(parent) = token.body().parent else {
            let issuer = token.body().issuer;
            entry.expect(self.roles.holds(Role::Issuer, &issuer), Fault::WrongIssuer);
            let last = self.signers.get(&issuer).copied().unwrap_or_default().last;
            // Every root names one: without it is no token.
            if let Some(head) = token.body().head {
                entry.expect(head.seq >= last, Fault::StaleHead);
                entry.expect(self.leaves.has(&head, source)?, Fault::NamedHead);
            }
            self.renewal(entry, token.body());
            return Ok(None);
        };
        let Some(account) = self.accounts.find(&parent) else {
            entry.fault(Fault::UnknownToken);
            return Ok(None);
        };
        entry.expect(!self.accounts.is_revoked(account, entry.time), Fault::Revoked);
        let wire = object(entry, source, ObjectKind::Token, *parent.as_bytes())?;
        let above = wire.and_then(|wire| Token::read(&wire.bytes).ok());
        let narrower =
            above.is_some_and(|above| attenuates(token.body(), parent, above.body()).is_ok());
        entry.expect(narrower, Fault::Attenuation);
        Ok(Some(account))
    }

    /// A root that takes the place of another is of the same agent as that, which is a root and was
    /// not revoked.
    fn renewal(&self, entry: &mut Entry<'_>, body: &TokenBody) {
        let Some(renews) = &body.renews else {
            return;
        };
        let Some(old) = self.accounts.find(renews) else {
            return entry.fault(Fault::UnknownToken);
        };
        entry.expect(!self.accounts.is_revoked(old, entry.time), Fault::Revoked);
        let said = self.accounts.body(old);
        let fine = said.is_some_and(|old| old.parent.is_none() && old.agent == body.agent);
        entry.expect(fine, Fault::Renewal);
    }

    pub(super) fn session<E>(
        &mut self,
        entry: &mut Entry<'_>,
        change: SessionChange,
        alone: bool,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        match (change.phase, change.session) {
            (SessionPhase::Open, None) => {
                return self.open_session(entry, change, alone, source);
            }
            (SessionPhase::Close, Some(number)) => match self.sessions.remove(&number) {
                Some(session) => {
                    let same = (&session.agent, session.token, session.snapshot)
                        == (&change.agent, change.token, change.snapshot);
                    entry.expect(same, Fault::SessionForm);
                    entry.expect(session.row.aggregate.is_none(), Fault::Aggregate);
                    self.end_sets(Some(number));
                }
                None => entry.fault(Fault::UnknownSession),
            },
            _ => entry.fault(Fault::SessionForm),
        }
        Ok(())
    }

    fn open_session<E>(
        &mut self,
        entry: &mut Entry<'_>,
        change: SessionChange,
        alone: bool,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        entry.expect(self.phase == Phase::Running, Fault::Closed);
        let SessionChange { agent, token, snapshot, .. } = change;
        let Some(account) = self.accounts.find(&token) else {
            entry.fault(Fault::UnknownToken);
            return Ok(());
        };
        let owner = self.accounts.body(account).map(|body: &TokenBody| &body.agent);
        entry.expect(owner == Some(&agent), Fault::SessionForm);
        match self.heads.get(&agent) {
            Some(heads) => entry.expect(heads.head() == snapshot, Fault::Snapshot),
            None => {
                let found = object(entry, source, ObjectKind::Snapshot, *snapshot.as_bytes())?;
                let found = found.and_then(|found| Snapshot::from_bytes(&found.bytes).ok());
                let first = found.is_none_or(|found| found == Snapshot::genesis(agent.clone()));
                entry.expect(first, Fault::Snapshot);
                self.heads.insert(agent.clone(), Heads::begin(snapshot));
            }
        }
        let (row, released) = (Row::default(), VecDeque::new());
        let alone = alone.then(|| self.accounts.handed(account));
        self.accounts.give(account, alone.unwrap_or_else(|| self.accounts.begins(account)));
        let session = Session { agent, token, account, snapshot, row, alone, released };
        self.sessions.insert(entry.seq, session);
        Ok(())
    }

    pub(super) fn charge(&mut self, entry: &mut Entry<'_>, charge: &Charge) {
        let posted = [Dimension::LlmTokens, Dimension::CreditsMicro];
        let fine = charge.amounts.iter().all(|(d, amount)| amount == 0 || posted.contains(&d));
        entry.expect(fine, Fault::ChargeForm);
        let Some(session) = self.sessions.get(&charge.session) else {
            return entry.fault(Fault::UnknownSession);
        };
        entry.expect(session.token == charge.token, Fault::ChargeForm);
        self.accounts.charge(session.account, &charge.amounts);
        self.credits.pay(&session.agent, entry.seq, &charge.amounts);
    }

    /// A user's message, to an open session of that agent.
    pub(super) fn input(&mut self, entry: &mut Entry<'_>, input: &Input) {
        let Some(session) = self.sessions.get(&input.session) else {
            return entry.fault(Fault::UnknownSession);
        };
        entry.expect(session.agent == input.agent, Fault::NotBound);
        self.given(input.session, input.label);
    }

    /// A session was given something of that label: so was its family.
    pub(super) fn given(&mut self, session: Seq, label: Label) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.is_given(label);
            self.accounts.give(session.account, label);
        }
    }

    /// The label of what a session was given, or may have been.
    pub(super) fn label_of(&self, session: &Session) -> Label {
        session.alone.unwrap_or_else(|| self.accounts.label(session.account))
    }
}
