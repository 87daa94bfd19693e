//! The tools: how others come in force.

use alloc::vec::Vec;

use crate::events::Ack;
use crate::halt::Halt;
use crate::machine::Kernel;
use crate::registry::{Registry, ToolsDelta};
use crate::store::Ancestor;
use crate::tool::Ticket;
use syscap_format::{
    BodyView, Control, ControlBody, OBJECT_BYTES_MAX, Object, Reason, RecordKind, Refused,
    SignedEvent, ToolId, ToolsChange, ToolsHash, ToolsObject,
};

impl Kernel {
    /// The tools that the kernel has, changed as the host says, are put on record and in force in
    /// one step. A call with an intent runs as it was planned.
    pub(crate) fn tools(
        &mut self,
        ticket: Ticket,
        control: Control,
        ancestor: Option<Ancestor>,
        delta: &ToolsDelta,
    ) -> Result<(), Halt> {
        let named = ToolsChange::from_bytes(&control.body).map(|change| change.tools);
        let checked =
            self.authorised(RecordKind::Tools, &control, ancestor).and_then(|()| match named {
                Ok(named) => self.tools_of(named, delta),
                Err(_) => Err(Refused::new(Reason::BadControl).field("body")),
            });
        let (registry, object) = match checked {
            Ok(changed) => changed,
            Err(refused) => return self.refuse_control(ticket, refused),
        };
        let mut objects: Vec<Object> = registry.manifests().map(Object::manifest).collect();
        objects.push(Object::tools(&object));
        let body = SignedEvent { control };
        let (seq, _) = self.append_with(BodyView::Tools(&body), objects)?;
        self.aliased = self.aliases_in(&registry).is_some();
        (self.registry, self.tools_hash) = (registry, object.hash());
        self.acknowledge(seq, ticket, Ack::Recorded(seq));
        Ok(())
    }

    /// The tools after a change, if they are those that are named, and the policy names none of
    /// them by an alias: what it says of that would be lost.
    fn tools_of(
        &self,
        named: ToolsHash,
        delta: &ToolsDelta,
    ) -> Result<(Registry, ToolsObject), Refused> {
        let mismatch = Refused::new(Reason::ToolsMismatch).field("tools");
        let registry = self
            .registry
            .changed(delta)
            .map_err(|error| mismatch.clone().got(&alloc::format!("{error}")))?;
        let object = registry.tools_object();
        if object.hash() != named {
            return Err(mismatch);
        }
        if object.to_bytes().len() > OBJECT_BYTES_MAX {
            return Err(mismatch.allowed("fewer tools"));
        }
        match self.aliases_in(&registry) {
            Some((alias, tool)) if !self.aliased => {
                Err(mismatch.got(alias.as_str()).allowed(tool.as_str()))
            }
            _ => Ok((registry, object)),
        }
    }

    /// A tool that the policy or its shadow names by an alias, and its own id.
    fn aliases_in(&self, registry: &Registry) -> Option<(ToolId, ToolId)> {
        let shadow = self.shadow.iter().map(|(_, engine)| &**engine);
        let mut engines = core::iter::once(&*self.engine).chain(shadow);
        engines.find_map(|engine| registry.alias_in(engine))
    }

    /// Takes tools, if with them the kernel has those that are on record. No other tools can be put
    /// in force in this way, and none at all once the kernel has booted.
    #[must_use = "tools that are not those on record were not taken"]
    pub fn adopt_tools(&mut self, delta: &ToolsDelta) -> bool {
        let Ok(registry) = self.registry.changed(delta) else {
            return false;
        };
        let hash = registry.tools_object().hash();
        if self.clock.is_some() || self.state.tools != Some(hash) {
            return false;
        }
        self.aliased = self.aliases_in(&registry).is_some();
        (self.registry, self.tools_hash) = (registry, hash);
        true
    }
}
