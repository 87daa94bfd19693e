//! The differences between a waiting call and the last similar call that a person approved, and what
//! the call would change in a file.

use std::collections::{BTreeMap, BTreeSet};

use syscap_format::json::from_data;
use syscap_format::{
    ApprovalAnswer, ApprovalBody, Body, CallFields, Canonical, Commitment, ControlBody as _, Seq,
    leaf,
};
use syscap_kernel::vault_entry;

use crate::approvals::{asks::WaitingCall, live::Rows, proposals::look_back, proposals::parts};
use crate::{Error, Home};

/// A call that waits beside the last call of the same agent and tool that ran by an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compared {
    /// The intent of that one.
    pub intent: Seq,
    /// The arguments that differ, by name. `None` where those of one of both were erased: then
    /// nothing can be said.
    pub changed: Option<Vec<Changed>>,
    /// The location, named `where`, if it differs.
    pub location: Option<Changed>,
}

/// An argument, or a location, that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its name.
    pub name: String,
    /// The value before, as JSON; `None` if it was left out.
    pub was: Option<String>,
    /// The value now, as JSON; `None` if it is left out.
    pub is: Option<String>,
}

impl WaitingCall {
    /// What it would change in the file that its run is bound to, as a unified diff of at most 8 KiB,
    /// read now beneath the base of its home.
    ///
    /// `None` where that can't be shown: it is no call of `fs.write`, `fs.edit` or `fs.delete`, the
    /// file is another by now or can't be read, its name has a character that is escaped, or one of
    /// both contents is no text, or too large.
    pub fn difference(&self, home: &Home) -> Option<String> {
        let ([condition], Some(args)) = (&*self.conditions, &self.args) else { return None };
        home.look_at_files().ok()?.difference(&self.tool, args.item(), condition)
    }
}

impl Rows {
    /// The differences between a waiting call and the last call of the same agent and tool that ran
    /// by an approval of just that call, among the last 100,000 records; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Home`]: the log or the vault can't be read.
    pub fn compared(&mut self, call: &WaitingCall) -> Result<Option<Compared>, Error> {
        let head = self.head()?;
        let store = self.store();
        let (mut last, mut asked, mut seen) = (None, BTreeMap::new(), BTreeMap::new());
        let same = (Some(&call.agent), Some(&call.tool));
        let is_same = |call: &CallFields| (call.agent_id.as_ref(), call.tool_id.as_ref()) == same;
        look_back(store, head, |seq, bytes, body| match body {
            Body::Ask(ask) if is_same(&ask.call) => {
                asked.insert(leaf(bytes), (seq, ask.resources));
            }
            Body::Approval(event) => {
                let body = ApprovalBody::from_bytes(&event.control.body).ok();
                // Calls that a set lets through nobody was shown.
                let once = body.filter(|body| body.answer == ApprovalAnswer::Once);
                seen.extend(once.and_then(|body| Some((seq, asked.get(&body.ask)?.clone()))));
            }
            Body::Intent(intent) if is_same(&intent.call) => {
                let shown = intent.approval.and_then(|approval| seen.get(&approval).cloned());
                if let Some(shown) = shown {
                    last = Some((seq, intent, shown));
                }
            }
            _ => {}
        })?;
        let Some((intent, said, (ask, shown))) = last else { return Ok(None) };
        let location = vault_entry(store, ask, ask)?;
        let texts = shown.iter().filter_map(|hash| location.text(hash).map(str::to_owned));
        let texts: Vec<String> = texts.collect();
        let (_, was) = parts(&texts);
        let quoted = |text: Option<&str>| text.map(|text| from_data(Canonical::text(text).item()));
        let location = (was != call.location.as_deref()).then(|| {
            let (was, is) = (quoted(was), quoted(call.location.as_deref()));
            Changed { name: "where".to_owned(), was, is }
        });
        let entry = vault_entry(store, intent, intent)?;
        let of = &said.call;
        let committed = match (of.args_hash, &of.tool_id, &of.manifest) {
            (Some(hash), Some(tool), Some(manifest)) => {
                entry.committed(Commitment::Arguments(hash, tool, manifest))
            }
            _ => None,
        };
        let both = committed.as_ref().zip(call.args.as_ref());
        let changed = both.map(|(was, is)| changed(was, is));
        Ok(Some(Compared { intent, changed, location }))
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
