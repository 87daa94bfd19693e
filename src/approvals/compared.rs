//! The differences between a waiting call and the last similar call that a person approved.

use std::collections::BTreeSet;

use syscap_format::json::from_data;
use syscap_format::{
    ApprovalAnswer, ApprovalBody, Body, Canonical, Commitment, ControlBody as _, Seq,
};
use syscap_kernel::vault_entry;

use crate::{Error, Inspection, approvals::asks::WaitingCall, approvals::proposals::look_back};

/// A call that waits beside the last call of the same agent and tool that ran by an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compared {
    /// The intent of that one.
    pub intent: Seq,
    /// The arguments that differ, by name. `None` where those of one of both were erased: then
    /// nothing can be said.
    pub changed: Option<Vec<Changed>>,
}

/// An argument that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its name.
    pub name: String,
    /// The value before, as JSON; `None` if it was left out.
    pub was: Option<String>,
    /// The value now, as JSON; `None` if it is left out.
    pub is: Option<String>,
}

impl Inspection {
    /// The differences between a waiting call and the last call of the same agent and tool that ran
    /// by an approval of just that call, among the last 100,000 records; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Home`]: the log or the vault can't be read.
    pub fn compared(&self, call: &WaitingCall) -> Result<Option<Compared>, Error> {
        let mut store = self.store();
        let (mut last, mut seen) = (None, BTreeSet::new());
        let same = (Some(&call.agent), Some(&call.tool));
        look_back(&mut **store, self.kernel().head().seq, |seq, body| match body {
            // Calls that a set lets through nobody was shown.
            Body::Approval(event)
                if ApprovalBody::from_bytes(&event.control.body)
                    .is_ok_and(|body| body.answer == ApprovalAnswer::Once) =>
            {
                seen.insert(seq);
            }
            Body::Intent(intent)
                if intent.approval.is_some_and(|approval| seen.contains(&approval))
                    && (intent.call.agent_id.as_ref(), intent.call.tool_id.as_ref()) == same =>
            {
                last = Some((seq, intent));
            }
            _ => {}
        })?;
        let Some((intent, said)) = last else { return Ok(None) };
        let entry = vault_entry(&mut **store, intent, intent)?;
        let of = &said.call;
        let committed = match (of.args_hash, &of.tool_id, &of.manifest) {
            (Some(hash), Some(tool), Some(manifest)) => {
                entry.committed(Commitment::Arguments(hash, tool, manifest))
            }
            _ => None,
        };
        let both = committed.as_ref().zip(call.args.as_ref());
        let changed = both.map(|(was, is)| changed(was, is));
        Ok(Some(Compared { intent, changed }))
    }
}

fn changed(was: &Canonical, is: &Canonical) -> Vec<Changed> {
    let names = |args: &Canonical| -> BTreeSet<String> {
        args.item().entries().map(|(name, _)| name.to_owned()).collect()
    };
    let value = |args: &Canonical, name: &str| args.item().get(name).map(Canonical::from);
    let all: BTreeSet<String> = names(was).union(&names(is)).cloned().collect();
    let differs = all.into_iter().filter_map(|name| {
        let (was, is) = (value(was, &name), value(is, &name));
        let shown = |value: Option<Canonical>| value.map(|value| from_data(value.item()));
        (was != is).then(|| Changed { name, was: shown(was), is: shown(is) })
    });
    differs.collect()
}
