//! Signed control events.

use std::collections::BTreeMap;

use syscap_format::{
    AgentId, Cancel, CancelBody, ConfigChange, Control, ControlBody, CreditChange, Freeze,
    FreezeChange, FreezeTarget, KeyChange, Manifest, Notify, ObjectId, ObjectKind, PolicyChange,
    RecordKind, RedactBody, Revocation, RevocationList, RevokeTarget, Role, Seq, TokenBody, ToolId,
    ToolsChange, ToolsObject, recovery_hash,
};

use super::{Entry, Ledger, Registered, object};
use crate::{report::Fault, source::Source};

impl Ledger {
    /// Keys of the role signed it, for this home and kind, each with a counter that has grown and
    /// over a head that the log has, not before the last record that the key signed.
    pub(super) fn signed<E>(
        &mut self,
        entry: &mut Entry<'_>,
        kind: RecordKind,
        control: &Control,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        let signed = &control.signatures;
        let role = self.limits.role_of(kind, &control.body);
        let set = role.and_then(|role| self.roles.set(role));
        let recovers = kind == RecordKind::Key && self.is_recovery(control);
        let of_role = set.is_some_and(|set| signed.iter().all(|signed| set.holds(&signed.key)));
        let count = u64::try_from(signed.len()).unwrap_or(0);
        let enough = set.is_some_and(|set| count >= set.threshold);
        entry.expect(control.is_sound(), Fault::BadControl);
        entry.expect(recovers || of_role, Fault::WrongRole);
        // Approvals come one by one, and are counted by what they answer.
        entry.expect(recovers || enough || kind == RecordKind::Approval, Fault::Threshold);
        for signed in signed {
            let signer = self.signers.entry(signed.key).or_default();
            entry.expect(signed.counter > signer.counter, Fault::StaleCounter);
            entry.expect(control.head.seq >= signer.last, Fault::StaleHead);
            signer.counter = signed.counter.max(signer.counter);
            signer.last = entry.seq;
        }
        // What replaces the whole of something was signed by somebody who knew what that was.
        let replaced = match kind {
            RecordKind::Policy => self.policy_changed,
            RecordKind::Tools => self.tools_changed,
            _ => Seq::GENESIS,
        };
        entry.expect(control.head.seq >= replaced, Fault::StaleHead);
        entry.expect(self.leaves.has(&control.head, source)?, Fault::NamedHead);
        entry.expect(control.verify(&self.home, kind).is_ok(), Fault::BadSignature);
        Ok(())
    }

    /// The recovery key signed it, alone.
    fn is_recovery(&self, control: &Control) -> bool {
        let hashes = control.signatures.iter().map(|signed| Some(recovery_hash(&signed.key)));
        self.recovery.is_some() && hashes.eq([self.recovery])
    }

    /// The same, with the body.
    pub(super) fn event<B: ControlBody, E>(
        &mut self,
        entry: &mut Entry<'_>,
        control: &Control,
        source: &mut dyn Source<Error = E>,
    ) -> Result<Option<B>, E> {
        self.signed(entry, B::KIND, control, source)?;
        let body = B::from_bytes(&control.body).ok();
        entry.expect(body.is_some(), Fault::BadControl);
        Ok(body)
    }

    pub(super) fn key<E>(
        &mut self,
        entry: &mut Entry<'_>,
        control: &Control,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        let Some(change) = self.event::<KeyChange, _>(entry, control, source)? else {
            return Ok(());
        };
        let before = self.roles.set(change.set.role);
        let proved = before.is_some_and(|before| change.is_proved(&self.home, before));
        entry.expect(proved, Fault::KeySet);
        let last = self.keys_changed.insert(change.set.role, entry.seq).unwrap_or_default();
        let seen = control.head.seq >= last || self.is_recovery(control);
        entry.expect(seen, Fault::StaleHead);
        if let Some(cut_off) = change.cut_off {
            let fits = change.set.role == Role::Issuer && cut_off <= control.head.seq;
            entry.expect(fits, Fault::BadControl);
            let ends =
                |body: &TokenBody, issued| issued > cut_off && !change.set.holds(&body.issuer);
            self.accounts.revoke_roots(ends);
        }
        if change.set.role == Role::Approver {
            // Those of now have approved nothing yet.
            (self.asks, self.sets) = Default::default();
        }
        self.roles.replace(change.set);
        Ok(())
    }

    pub(super) fn revoke<E>(
        &mut self,
        entry: &mut Entry<'_>,
        control: &Control,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        if let Ok(list) = RevocationList::from_bytes(&control.body) {
            self.signed(entry, RecordKind::Revoke, control, source)?;
            self.revoke_list(entry, list);
            return Ok(());
        }
        let Some(revocation) = self.event::<Revocation, _>(entry, control, source)? else {
            return Ok(());
        };
        let Revocation { target, token, epoch, key, cause: _ } = revocation;
        match (target, token, epoch, key) {
            (RevokeTarget::Subtree, Some(token), None, None) => match self.accounts.find(&token) {
                Some(account) => self.accounts.revoke(account),
                None => entry.fault(Fault::UnknownToken),
            },
            (RevokeTarget::Children, Some(token), None, None) => match self.accounts.find(&token) {
                Some(account) => self.accounts.revoke_below(account),
                None => entry.fault(Fault::UnknownToken),
            },
            (RevokeTarget::Epoch, None, Some(least), None) => {
                entry.expect(least > self.epoch, Fault::BadControl);
                self.epoch = least.max(self.epoch);
                self.accounts.revoke_roots(|body, _| body.epoch < least);
            }
            (RevokeTarget::Key, None, None, Some(key)) => {
                let issues = self.roles.holds(Role::Issuer, &key);
                let known = self.accounts.revoke_by(&key) || issues;
                entry.expect(known, Fault::BadControl);
                self.revoked_keys.insert(key);
            }
            _ => entry.fault(Fault::BadControl),
        }
        Ok(())
    }

    /// A list is newer than the one before, names each token once, and is as of a time that is not
    /// before that of the other, nor after its record.
    fn revoke_list(&mut self, entry: &mut Entry<'_>, list: RevocationList) {
        let is_newer = match self.list {
            Some((version, as_of)) => list.version > version && list.as_of >= as_of,
            None => true,
        };
        entry.expect(list.is_sound(self.listed.len()) && is_newer, Fault::BadControl);
        self.list = Some((list.version, list.as_of.min(entry.time)));
        for id in list.tokens {
            match self.accounts.find(&id) {
                Some(account) => self.accounts.revoke(account),
                None => drop(self.listed.insert(id)),
            }
        }
    }

    /// A call that is open, and was not cancelled before: by the revoker, or by the session that it
    /// is of.
    pub(super) fn cancel<E>(
        &mut self,
        entry: &mut Entry<'_>,
        cancel: &Cancel,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        match (&cancel.control, cancel.session) {
            (Some(control), None) => {
                let said = self.event::<CancelBody, _>(entry, control, source)?;
                let same = said.is_none_or(|said| said.intent == cancel.intent);
                entry.expect(same, Fault::BadControl);
            }
            (None, Some(session)) => {
                let is_open = self.sessions.contains_key(&session);
                entry.expect(is_open, Fault::UnknownSession);
                let open = self.open.get(&cancel.intent);
                let own = open.is_none_or(|open| open.call.session == Some(session));
                entry.expect(own, Fault::NotBound);
            }
            _ => entry.fault(Fault::BadControl),
        }
        match self.open.get_mut(&cancel.intent) {
            Some(open) if !open.cancelled => open.cancelled = true,
            _ => entry.fault(Fault::NoIntent),
        }
        Ok(())
    }

    pub(super) fn freeze(&mut self, entry: &mut Entry<'_>, said: Option<Freeze>) {
        let Some(freeze) = said else { return };
        let on = freeze.change == FreezeChange::Freeze;
        let frozen = &mut self.frozen;
        let (agent, tool) = (AgentId::new(&freeze.name), ToolId::new(&freeze.name));
        match (freeze.target, agent, tool) {
            (FreezeTarget::Kernel, _, _) => {
                entry.expect(freeze.name.is_empty(), Fault::BadControl);
                frozen.kernel = on;
            }
            (FreezeTarget::Agent, Some(agent), _) if on => drop(frozen.agents.insert(agent)),
            (FreezeTarget::Agent, Some(agent), _) => drop(frozen.agents.remove(&agent)),
            (FreezeTarget::Tool, _, Some(tool)) if on => drop(frozen.tools.insert(tool)),
            (FreezeTarget::Tool, _, Some(tool)) => drop(frozen.tools.remove(&tool)),
            (FreezeTarget::Agent | FreezeTarget::Tool, _, _) => entry.fault(Fault::BadControl),
        }
    }

    pub(super) fn policy<E>(
        &mut self,
        entry: &mut Entry<'_>,
        said: Option<PolicyChange>,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        if let Some(change) = said {
            for policy in [Some(change.policy), change.shadow].into_iter().flatten() {
                object(entry, source, ObjectKind::Policy, *policy.as_bytes())?;
            }
            self.policy_changed = entry.seq;
            self.policy = Some(change.policy);
            self.passes(self.sets.len());
            self.sets.retain(|_, set| set.policy() == Some(change.policy));
            self.shadow = change.shadow;
        }
        Ok(())
    }

    pub(super) fn tools<E>(
        &mut self,
        entry: &mut Entry<'_>,
        control: &Control,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        let Some(change) = self.event::<ToolsChange, _>(entry, control, source)? else {
            return Ok(());
        };
        let found = object(entry, source, ObjectKind::Tools, *change.tools.as_bytes())?;
        let mut tools = BTreeMap::new();
        let list = found.and_then(|found| ToolsObject::from_bytes(&found.bytes).ok());
        for listed in list.into_iter().flat_map(|list| list.tools) {
            let id = listed.manifest;
            if let Some(manifest) = manifest(entry, source, &listed.tool, id)? {
                tools.insert(listed.tool, Registered { id, manifest });
            }
        }
        self.tools_changed = entry.seq;
        self.tools = tools;
        Ok(())
    }

    pub(super) fn config<E>(
        &mut self,
        entry: &mut Entry<'_>,
        control: &Control,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        if let Ok(notify) = Notify::from_bytes(&control.body) {
            self.signed(entry, RecordKind::Config, control, source)?;
            entry.expect(notify.is_sound(), Fault::BadControl);
            return Ok(());
        }
        let change = self.event::<ConfigChange, _>(entry, control, source)?;
        if change.is_some_and(|change| change.confirm_time.is_some()) {
            self.unconfirmed_before = Seq::GENESIS;
        }
        Ok(())
    }

    /// Rows were erased: of records before it, of kinds that may have one, and of no open intent.
    pub(super) fn redact<E>(
        &mut self,
        entry: &mut Entry<'_>,
        control: &Control,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        if let Some(body) = self.event::<RedactBody, _>(entry, control, source)? {
            let may_go = |seq: &Seq| self.rows.contains(*seq) && !self.open.contains_key(seq);
            let fine = body.is_sound(entry.seq) && body.records.iter().all(may_go);
            entry.expect(fine, Fault::BadControl);
        }
        Ok(())
    }

    pub(super) fn credit<E>(
        &mut self,
        entry: &mut Entry<'_>,
        control: &Control,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        if let Some(change) = self.event::<CreditChange, _>(entry, control, source)? {
            let given = self.credits.give(entry.seq, change);
            entry.expect(given.is_some(), Fault::BadControl);
        }
        Ok(())
    }
}

/// A manifest, which must be that of the tool.
fn manifest<E>(
    entry: &mut Entry<'_>,
    source: &mut dyn Source<Error = E>,
    tool: &ToolId,
    id: ObjectId,
) -> Result<Option<Manifest>, E> {
    let found = object(entry, source, ObjectKind::Manifest, *id.as_bytes())?;
    let manifest = found.and_then(|found| Manifest::from_bytes(&found.bytes).ok());
    if let Some(manifest) = &manifest {
        entry.expect(manifest.tool == *tool, Fault::ObjectUnsound);
    }
    Ok(manifest)
}
