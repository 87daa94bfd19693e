//! The signatures that a record must carry before it is folded in.
//!
//! Live, an event is held against this when it comes in; of a log that is opened every record is,
//! before anything in it is believed.

use crate::halt::{Forgery, Halt};
use crate::state::apply::Objects;
use crate::state::fold::State;
use syscap_format::{
    Amounts, Body, CancelBody, Control, ControlBody, Head, Issue, KeyChange, Leaf, ObjectId,
    Reason, Record, RecordKind, Resolution, Revocation, RevocationList, Role, RoleSet, Seq, Token,
    TokenBody, UnixMillis, attenuates, recovery_hash,
};

/// The fold's access to earlier records.
pub(crate) trait Past: Objects {
    /// The leaf of a record before; `None` where there is none.
    fn leaf(&mut self, seq: Seq) -> Result<Option<Leaf>, Halt>;
}

impl State {
    /// Checks that an event is signed as its kind requires. That the head it names is a durable
    /// record of this log is the caller's question.
    pub(crate) fn authorises(&self, kind: RecordKind, control: &Control) -> Result<(), Forgery> {
        let role = self.limits.role_of(kind, &control.body);
        let set = role.and_then(|role| self.roles.set(role)).ok_or(Forgery::Form)?;
        if !control.is_sound() {
            return Err(Forgery::Form);
        }
        let signed = &control.signatures;
        if !(kind == RecordKind::Key && self.is_recovery(control)) {
            if !signed.iter().all(|signed| set.holds(&signed.key)) {
                return Err(Forgery::Role);
            }
            // Approvals come one by one, and are counted by what they answer.
            if kind != RecordKind::Approval
                && syscap_format::field::count(signed.len()) < set.threshold
            {
                return Err(Forgery::Threshold);
            }
        }
        for signed in signed {
            let signer = self.signer(&signed.key);
            if signed.counter <= signer.counter {
                return Err(Forgery::Counter);
            }
            if control.head.seq < signer.last {
                return Err(Forgery::StaleHead);
            }
        }
        let replaced = match kind {
            RecordKind::Policy => self.replaced.policy,
            RecordKind::Tools => self.replaced.tools,
            // Of the role whose keys these are. The recovery key need not have seen them: a thief
            // who goes on changing keys would keep it out.
            RecordKind::Key if !self.is_recovery(control) => {
                let change = KeyChange::from_bytes(&control.body);
                change.map_or(Seq::GENESIS, |change| self.replaced.keys_of(change.set.role))
            }
            _ => Seq::GENESIS,
        };
        if control.head.seq < replaced {
            return Err(Forgery::StaleHead);
        }
        control.verify(&self.home, kind).map_err(|_| Forgery::Signature)
    }

    /// The recovery key alone signed it: it can do nothing but give roles other keys.
    fn is_recovery(&self, control: &Control) -> bool {
        match (&control.signatures[..], self.recovery) {
            ([signed], Some(hash)) => recovery_hash(&signed.key) == hash,
            _ => false,
        }
    }

    /// Checks that a change of keys, signed over that head by an eligible key, keeps to its rules.
    pub(crate) fn allows(&self, change: &KeyChange, head: &Head) -> Result<(), Forgery> {
        let before: &RoleSet = self.roles.set(change.set.role).ok_or(Forgery::Form)?;
        let cut_off = match change.cut_off {
            Some(seq) => change.set.role == Role::Issuer && seq <= head.seq,
            None => true,
        };
        if !cut_off || !change.set.is_sound() {
            return Err(Forgery::Form);
        }
        if change.is_proved(&self.home, before) { Ok(()) } else { Err(Forgery::Possession) }
    }

    /// Checks that a root token, whose signature verifies, is by a key that may issue now, and
    /// names a head that is not too old.
    pub(crate) fn issues(&self, token: &Token) -> Result<(), Forgery> {
        let body = token.body();
        if body.audience != self.home {
            return Err(Forgery::Audience);
        }
        if !self.roles.holds(Role::Issuer, &body.issuer) {
            return Err(Forgery::Role);
        }
        match body.head {
            Some(head) if head.seq >= self.signer(&body.issuer).last => Ok(()),
            _ => Err(Forgery::StaleHead),
        }
    }

    /// Checks that a root token may answer the idempotency keys of the one that it renews: an
    /// unrevoked root of the same agent.
    pub(crate) fn renewable(&self, body: &TokenBody, now: UnixMillis) -> Result<(), Reason> {
        let Some(renews) = &body.renews else {
            return Ok(());
        };
        let old = self.tokens.find(renews).and_then(|old| self.tokens.view(old));
        match old {
            None => Err(Reason::UnknownToken),
            Some(old) if old.is_revoked(now) => Err(Reason::Revoked),
            Some(old) if old.body.parent.is_some() || old.body.agent != body.agent => {
                Err(Reason::BadToken)
            }
            Some(_) => Ok(()),
        }
    }

    /// Holds a record of a log that is opened against its signatures.
    pub(crate) fn believe(&self, record: &Record, past: &mut dyn Past) -> Result<(), Halt> {
        let forged = |why| Halt::Forged { seq: record.seq, why };
        let event = match &record.body {
            Body::Key(event)
            | Body::Revoke(event)
            | Body::Freeze(event)
            | Body::Policy(event)
            | Body::Redact(event)
            | Body::Tools(event)
            | Body::Config(event)
            | Body::Credit(event)
            | Body::Approval(event) => &event.control,
            Body::Recovery(recovery) => match &recovery.control {
                Some(control) => control,
                None => return Ok(()),
            },
            // By the one or by the other.
            Body::Cancel(cancel) => match (&cancel.control, cancel.session) {
                (Some(control), None) => control,
                (None, Some(_)) => return Ok(()),
                _ => return Err(forged(Forgery::Form)),
            },
            Body::Issue(issue) => {
                return self.believe_token(record.seq, record.time, issue, past);
            }
            _ => return Ok(()),
        };
        self.authorises(record.body.kind(), event).map_err(forged)?;
        is_before(record.seq, &event.head, past)?;
        match &record.body {
            Body::Key(_) => match KeyChange::from_bytes(&event.body) {
                Ok(change) if !Role::IN_USE.contains(&change.set.role) => {
                    Err(Halt::Reserved { seq: record.seq, name: change.set.role.name() })
                }
                Ok(change) => self.allows(&change, &event.head).map_err(forged),
                Err(_) => Err(forged(Forgery::Form)),
            },
            Body::Revoke(_) => match Revocation::from_bytes(&event.body) {
                Ok(revocation) if revocation.revoked().is_some() => Ok(()),
                _ if RevocationList::from_bytes(&event.body).is_ok() => Ok(()),
                _ => Err(forged(Forgery::Form)),
            },
            // The record repeats what was signed.
            Body::Cancel(cancel) => match CancelBody::from_bytes(&event.body) {
                Ok(said) if said.intent == cancel.intent => Ok(()),
                _ => Err(forged(Forgery::Form)),
            },
            Body::Approval(_) => {
                let counts = self.answers(event, record.time).map(drop);
                counts.map_err(|_| forged(Forgery::Form))
            }
            Body::Recovery(recovery) => {
                // The record repeats what was signed, says nothing else, and charges nothing.
                let said = Resolution { intent: recovery.intent, verdict: recovery.verdict };
                let same = Resolution::from_bytes(&event.body) == Ok(said);
                let is_free = recovery.used == Amounts::ZERO;
                if same && is_free { Ok(()) } else { Err(forged(Forgery::Form)) }
            }
            _ => Ok(()),
        }
    }

    fn believe_token(
        &self,
        seq: Seq,
        now: UnixMillis,
        issue: &Issue,
        past: &mut dyn Past,
    ) -> Result<(), Halt> {
        let forged = |why| Halt::Forged { seq, why };
        let token = wire(seq, issue.token.as_bytes(), past)?;
        let token = Token::read(&token).map_err(|refused| {
            let mut reserved = ["caveats", "flags"].into_iter();
            match reserved.find(|field| refused.is_about(field)) {
                Some(name) => Halt::Reserved { seq, name },
                None if refused.reason() == Reason::BadSignature => forged(Forgery::Signature),
                None => forged(Forgery::Form),
            }
        })?;
        if token.id() != issue.token {
            return Err(Halt::Object { seq });
        }
        let body = token.body();
        // The record repeats what the token says: it must not say otherwise.
        if (issue.issuer, issue.parent, &issue.agent) != (body.issuer, body.parent, &body.agent) {
            return Err(forged(Forgery::Form));
        }
        if self.ended_before(&token).is_some() {
            return Err(forged(Forgery::Ended));
        }
        let Some(parent) = body.parent else {
            self.issues(&token).map_err(forged)?;
            self.renewable(body, now).map_err(|_| forged(Forgery::Renewal))?;
            let head = body.head.ok_or_else(|| forged(Forgery::Head))?;
            return is_before(seq, &head, past);
        };
        let above = self.tokens.find(&parent).and_then(|above| self.tokens.view(above));
        let above = above.ok_or(Halt::Contradiction { seq })?;
        match attenuates(body, parent, above.body) {
            Ok(()) if !above.is_revoked(now) => Ok(()),
            _ => Err(forged(Forgery::Attenuation)),
        }
    }
}

/// The head lies before the record, and is what the log has there.
fn is_before(seq: Seq, head: &Head, past: &mut dyn Past) -> Result<(), Halt> {
    let there = head.seq < seq && past.leaf(head.seq)? == Some(head.leaf);
    if there { Ok(()) } else { Err(Halt::Forged { seq, why: Forgery::Head }) }
}

fn wire(seq: Seq, id: &[u8; 32], past: &mut dyn Past) -> Result<alloc::vec::Vec<u8>, Halt> {
    let object = past.find(&ObjectId::from_bytes(*id))?.ok_or(Halt::Object { seq })?;
    Ok(object.bytes)
}
