//! Control events that are signed by a process which need not hold the home: it has the key, or a
//! person at a terminal who unseals it.

use syscap_format::field::{choice, shape};
use syscap_format::{
    Control, ControlBody, Manifest, ObjectId, PolicyChange, PolicyObject, PublicKey, Reason,
    RecordKind, RedactBody, Refused, Seq, Signature, Signed, ToolEntry, ToolId, ToolsChange,
    ToolsObject, VaultText, preimage,
};
use syscap_kernel::{Event, Halt, Kernel, Settled, WithRows};

use syscap_syscalls::net::Network;

use crate::keys::SignerError;
use crate::server::{By, Holding};
use crate::tools::DELEGATED_MAX;
use crate::{Error, Inspection};

choice! {
    /// The data beside a signed event against which the kernel checks it.
    pub enum Beside {
        /// Nothing.
        1 => Nothing,
        /// The document of a policy.
        2 => Policy(Box<PolicyObject>),
        /// The offered manifests of these tools, each by its id.
        3 => Accepted(Vec<(ToolId, ObjectId)> [..DELEGATED_MAX]),
        /// These tools are taken off the record.
        4 => Forgotten(Vec<ToolId> [..DELEGATED_MAX]),
        /// The tools that the holder has itself.
        5 => OwnTools,
        /// The text of the reason that an answer, a revocation, a freeze or a `cancel` commits to.
        6 => Why(VaultText),
        /// An operator's settings of tools.
        7 => Configured(Box<Configured>),
        /// The document of a policy, where one is needed, and the text of the reason that its event
        /// commits to.
        8 => PolicyWhy(Box<PolicyWhy>),
    }
}

shape! {
    /// A policy's document, and why it is put in force.
    pub struct PolicyWhy {
        /// The document; null where the change needs none.
        1 => pub policy: Option<PolicyObject>,
        /// The text of the reason.
        2 => pub why: VaultText,
    }
}

shape! {
    /// Tools as an operator sets them, and tools for which nothing is to be set any more.
    pub struct Configured {
        /// The manifests, with their settings, each in the place of its tool's.
        1 => pub set: Vec<Manifest> [..CONFIGURED_MAX],
        /// Tools of the template end; the two built-in ones return to their defaults.
        2 => pub unset: Vec<ToolId> [..CONFIGURED_MAX],
    }
}

/// Most tools that one change sets.
const CONFIGURED_MAX: usize = 64;

shape! {
    /// A signed event and what it needs.
    pub(crate) struct Submission {
        1 => pub(crate) kind: RecordKind,
        2 => pub(crate) control: Control,
        3 => pub(crate) beside: Beside,
    }
}

impl Holding {
    /// See [`Runtime::submit_with`](crate::Runtime::submit_with).
    pub(crate) fn submit_with(&self, submission: &Submission) -> Result<Seq, Error> {
        let Submission { kind, control, beside } = submission;
        let control = control.clone();
        let by = |control| By::Event(Box::new(control));
        match (kind, beside) {
            (RecordKind::Policy, Beside::Nothing) => self.submit_policy_object(control, None, None),
            (RecordKind::Policy, Beside::Policy(object)) => {
                self.submit_policy_object(control, Some(object), None)
            }
            (RecordKind::Policy, Beside::PolicyWhy(beside)) => {
                let PolicyWhy { policy, why } = &**beside;
                self.submit_policy_object(control, policy.as_ref(), Some(why.clone()))
            }
            (RecordKind::Tools, Beside::Accepted(tools)) => self.accept_by(tools, by(control)),
            (RecordKind::Tools, Beside::Forgotten(tools)) => self.forget_by(tools, by(control)),
            (RecordKind::Tools, Beside::Configured(change)) => {
                self.configure_by(change, by(control))
            }
            (RecordKind::Tools, Beside::OwnTools) => self.record_own_tools(by(control)),
            (RecordKind::Approval, Beside::Nothing) => self.submit_answer(control, None),
            (RecordKind::Approval, Beside::Why(why)) => {
                self.submit_answer(control, Some(why.clone()))
            }
            (RecordKind::Revoke | RecordKind::Freeze | RecordKind::Cancel, Beside::Why(why)) => {
                let (kind, why) = (*kind, why.clone());
                self.submit_as(control, |ticket, control, ancestor| {
                    Event::Control(ticket, kind, control, ancestor, Some(why))
                })
            }
            (RecordKind::Redact, Beside::Nothing) => self.redact(control, None),
            (RecordKind::Redact, Beside::Why(why)) => self.redact(control, Some(why.clone())),
            // The kernel refuses what is of no such kind, on the record.
            (_, Beside::Nothing) => self.submit(*kind, control),
            _ => Err(Error::Refused(Refused::new(Reason::BadControl).field("kind"))),
        }
    }
}

impl Holding {
    /// Erases rows of the vault. What is left of them in the store's files goes by
    /// [`Holding::purge`].
    fn redact(&self, control: Control, why: Option<VaultText>) -> Result<Seq, Error> {
        let bad = || Refused::new(Reason::BadControl).field("records");
        let body = RedactBody::from_bytes(&control.body).map_err(|_| Error::Refused(bad()))?;
        let rows = self.core.ask(|store| Ok(WithRows::find(store, &body.records)?))?;
        let rows = rows.map_err(|seq| Error::Refused(bad().got(&seq)))?;
        self.submit_as(control, |ticket, control, ancestor| {
            Event::Redact(ticket, control, ancestor, rows, why)
        })
    }

    /// See [`Runtime::purge`](crate::Runtime::purge).
    pub(crate) fn purge(&self) -> Result<bool, Error> {
        Ok(self.core.ask(|store| Ok(store.purge()?))? == Settled::Whole)
    }
}

impl Inspection {
    /// Signs an event over the last record that there is, by a key that is not the kernel's
    /// affair: `sign` is given the bytes, which begin with their context.
    ///
    /// # Errors
    /// What `sign` says.
    pub fn sign<B: ControlBody>(
        &self,
        body: &B,
        key: &PublicKey,
        sign: impl FnOnce(&[u8]) -> Result<Signature, SignerError>,
    ) -> Result<Control, Error> {
        let kernel = self.kernel();
        let (home, head) = (kernel.home(), kernel.durable().ok_or(Halt::Empty)?);
        let (counter, body) = (kernel.counter(key).saturating_add(1), body.to_bytes());
        let message = Control::message(&home, &head, key, counter, B::KIND, &body);
        let message = preimage(syscap_format::CONTROL_CONTEXT, &message);
        let signature = sign(&message)?;
        Ok(Control::by_one(head, body, Signed { key: *key, counter, signature }))
    }

    /// The change that puts a policy in force, or beside the one in force; the other stays.
    pub fn policy_change(&self, change: &PolicyPlace) -> Option<PolicyChange> {
        let (policy, shadow) = (self.kernel().policy_hash(), self.kernel().shadow_hash());
        Some(match change {
            PolicyPlace::InForce(object) => PolicyChange { policy: object.hash(), shadow },
            PolicyPlace::Shadow(object) => {
                PolicyChange { policy: policy?, shadow: Some(object.hash()) }
            }
            PolicyPlace::NoShadow => PolicyChange { policy: policy?, shadow: None },
        })
    }

    /// The change that puts manifests on record, each in the place of its tool's, and takes tools
    /// off it. `None` where this program's own tools are not those on record: then they come
    /// first.
    pub fn tools_change(
        &self,
        accepted: &[(ToolId, ObjectId)],
        forgotten: &[ToolId],
    ) -> Option<ToolsChange> {
        let kernel = self.kernel();
        if kernel.tools_hash() != Some(kernel.registry_hash()) {
            return None;
        }
        let gone = |tool: &ToolId| {
            forgotten.contains(tool) || accepted.iter().any(|(named, _)| named == tool)
        };
        let stay = kernel.manifests().filter(|manifest| !gone(&manifest.tool));
        let stay = stay.map(|manifest| (manifest.tool.clone(), manifest.id()));
        let entry = |(tool, manifest)| ToolEntry { tool, manifest };
        let mut tools: Vec<ToolEntry> = stay.chain(accepted.to_vec()).map(entry).collect();
        tools.sort_by(|one, other| one.tool.cmp(&other.tool));
        Some(ToolsChange { tools: ToolsObject { tools }.hash() })
    }

    /// The change that sets tools, and unsets tools. As [`Inspection::tools_change`].
    pub fn settings_change(&self, change: &Configured) -> Option<ToolsChange> {
        let unset = change.unset.iter().filter_map(Network::unset);
        let set: Vec<(ToolId, ObjectId)> = (change.set.iter().cloned().chain(unset))
            .map(|manifest| (manifest.tool.clone(), manifest.id()))
            .collect();
        self.tools_change(&set, &change.unset)
    }

    /// The change that puts this program's own tools on record. `None` where they are there.
    pub fn own_tools_change(&self) -> Option<ToolsChange> {
        let kernel: &Kernel = self.kernel();
        let tools = kernel.registry_hash_after(&self.absent)?;
        (kernel.tools_hash() != Some(tools)).then_some(ToolsChange { tools })
    }
}

/// Which policy a change is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyPlace {
    /// The one in force becomes this.
    InForce(PolicyObject),
    /// This is asked beside it, for the record only.
    Shadow(PolicyObject),
    /// None is any more.
    NoShadow,
}
