//! Signed control events.

use std::collections::BTreeMap;

use syscap_kernel::{
    control::{
        ConfigChange, Control, ControlBody, Freeze, FreezeChange, FreezeTarget, KeyChange,
        PolicyChange, Revocation, Role, ToolsChange,
    },
    id::{AgentId, ObjectId, Seq, ToolId},
    manifest::Manifest,
    object::ObjectKind,
    record::Kind,
    registry::ToolsObject,
    store::StoreError,
};

use super::{Entry, Fault, Ledger, Registered, Source, object};

impl Ledger {
    /// The role's current key signed it, for this home and kind, with a counter that has grown.
    pub(super) fn signed(&mut self, entry: &mut Entry<'_>, kind: Kind, control: &Control) {
        let key = Role::of(kind).map(|role| self.roles.key(role));
        entry.expect(key == Some(control.key), Fault::WrongRole);
        let counter = self.counters.entry(control.key).or_insert(0);
        entry.expect(control.counter > *counter, Fault::StaleCounter);
        *counter = control.counter.max(*counter);
        entry.expect(control.verify(&self.home, kind).is_ok(), Fault::BadSignature);
    }

    /// The same, with the body.
    fn event<B: ControlBody>(&mut self, entry: &mut Entry<'_>, control: &Control) -> Option<B> {
        self.signed(entry, B::KIND, control);
        let body = B::from_bytes(&control.body).ok();
        entry.expect(body.is_some(), Fault::BadControl);
        body
    }

    pub(super) fn key(&mut self, entry: &mut Entry<'_>, control: &Control) {
        if let Some(change) = self.event::<KeyChange>(entry, control) {
            self.roles.set(change.role, change.key);
        }
    }

    pub(super) fn revoke(&mut self, entry: &mut Entry<'_>, control: &Control) {
        let Some(revocation) = self.event::<Revocation>(entry, control) else {
            return;
        };
        match self.accounts.find(&revocation.token) {
            Some(account) => self.accounts.revoke(account),
            None => entry.fault(Fault::UnknownToken),
        }
    }

    pub(super) fn freeze(&mut self, entry: &mut Entry<'_>, control: &Control) {
        let Some(freeze) = self.event::<Freeze>(entry, control) else {
            return;
        };
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

    pub(super) fn policy(
        &mut self,
        entry: &mut Entry<'_>,
        control: &Control,
        source: &mut dyn Source,
    ) -> Result<(), StoreError> {
        if let Some(change) = self.event::<PolicyChange>(entry, control) {
            for policy in [Some(change.policy), change.shadow].into_iter().flatten() {
                object(entry, source, ObjectKind::Policy, *policy.as_bytes())?;
            }
            self.policy = Some(change.policy);
            self.shadow = change.shadow;
        }
        Ok(())
    }

    pub(super) fn tools(
        &mut self,
        entry: &mut Entry<'_>,
        control: &Control,
        source: &mut dyn Source,
    ) -> Result<(), StoreError> {
        let Some(change) = self.event::<ToolsChange>(entry, control) else {
            return Ok(());
        };
        let found = object(entry, source, ObjectKind::Tools, *change.tools.as_bytes())?;
        let mut tools = BTreeMap::new();
        let list = found.and_then(|found| ToolsObject::from_bytes(&found.bytes).ok());
        for listed in list.into_iter().flat_map(|list| list.tools.0) {
            let id = listed.manifest;
            if let Some(manifest) = manifest(entry, source, &listed.tool, id)? {
                tools.insert(listed.tool, Registered { id, manifest });
            }
        }
        self.tools = tools;
        Ok(())
    }

    pub(super) fn config(&mut self, entry: &mut Entry<'_>, control: &Control) {
        let change = self.event::<ConfigChange>(entry, control);
        if change.is_some_and(|change| change.confirm_time.is_some()) {
            self.unconfirmed_before = Seq::GENESIS;
        }
    }
}

/// A manifest, which must be that of the tool.
fn manifest(
    entry: &mut Entry<'_>,
    source: &mut dyn Source,
    tool: &ToolId,
    id: ObjectId,
) -> Result<Option<Manifest>, StoreError> {
    let found = object(entry, source, ObjectKind::Manifest, *id.as_bytes())?;
    let manifest = found.and_then(|found| Manifest::from_bytes(&found.bytes).ok());
    if let Some(manifest) = &manifest {
        entry.expect(manifest.tool == *tool, Fault::ObjectUnsound);
    }
    Ok(manifest)
}
