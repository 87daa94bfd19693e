//! Calls that a crash broke off and of which nothing is known: what an operator is asked about.

use syscap_format::{
    AgentId, Amounts, Body, Canonical, Commitment, IdempotencyKey, Intent, Manifest, ObjectId,
    Record, Seq, ToolId, UnixMillis,
};
use syscap_kernel::{Kernel, Probed, Store, StoreError, record_at, vault_entry};

use crate::{Error, Inspection, driver::guard::caught};

/// A call that a boot closed as unknown, and of which no operator has said what became of it: by a
/// [`Resolution`](syscap_format::Resolution).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// Its intent.
    pub intent: Seq,
    /// When it was about to run.
    pub time: UnixMillis,
    /// The agent.
    pub agent: Option<AgentId>,
    /// The tool.
    pub tool: Option<ToolId>,
    /// Its idempotency key: it is refused until somebody knows more.
    pub key: Option<IdempotencyKey>,
    /// The reserved amounts, which are charged.
    pub held: Amounts,
    /// Its arguments; `None` where they were erased, or are not those that were recorded.
    pub args: Option<Canonical>,
    /// The tool that takes back what it did, as its manifest said then.
    pub compensated_by: Option<ToolId>,
}

impl Inspection {
    /// The calls that boots have closed as unknown, and that nobody has resolved.
    ///
    /// # Errors
    /// [`Error::Halted`] or [`Error::Home`]: the log or the vault can't be read.
    pub fn unresolved(&self) -> Result<Vec<Unresolved>, Error> {
        let mut store = self.store();
        let mut all = Vec::new();
        for intent in self.kernel().unresolved() {
            let (time, said) = intent_at(&mut **store, intent)?;
            let entry = vault_entry(&mut **store, intent, intent)?;
            let call = said.call;
            let named = call.args_hash.zip(call.tool_id.as_ref()).zip(call.manifest.as_ref());
            let args = named.and_then(|((hash, tool), manifest)| {
                entry.committed(Commitment::Arguments(hash, tool, manifest))
            });
            let compensated_by = match &call.manifest {
                Some(manifest) => manifest_of(&mut **store, manifest)?.compensated_by,
                None => None,
            };
            all.push(Unresolved {
                intent,
                time,
                agent: call.agent_id,
                tool: call.tool_id,
                key: said.key,
                held: call.held,
                args,
                compensated_by,
            });
        }
        Ok(all)
    }

    /// The calls that run, or were broken off, of tools that this program has not itself. If no
    /// server holds the home, only a program that has these tools can probe such runs, and only if
    /// it is the first to open the home. Any other program closes them as unknown.
    ///
    /// # Errors
    /// As [`Inspection::unresolved`].
    pub fn unasked(&self) -> Result<Vec<(Seq, ToolId)>, Error> {
        let mut store = self.store();
        let mut all = Vec::new();
        for intent in self.kernel().open_intents() {
            let (_, said) = intent_at(&mut **store, intent)?;
            let others = |tool: &ToolId| self.providers.lock().tools.contains_key(tool);
            all.extend(said.call.tool_id.filter(others).map(|tool| (intent, tool)));
        }
        Ok(all)
    }
}

/// Asks the tools what became of the runs that were broken off. One that panics says nothing.
pub(crate) fn probed(kernel: &Kernel, store: &mut dyn Store) -> Result<Vec<Probed>, Error> {
    let mut probed = Vec::new();
    for intent in kernel.open_intents() {
        let probing = kernel.probing(intent, store)?;
        probed.extend(probing.and_then(|probing| caught(|| probing.run())));
    }
    Ok(probed)
}

fn manifest_of(store: &mut dyn Store, id: &ObjectId) -> Result<Manifest, StoreError> {
    let object = store.object(id)?.ok_or(StoreError::Damaged)?;
    Manifest::from_bytes(&object.bytes).map_err(|_| StoreError::Damaged)
}

fn intent_at(store: &mut dyn Store, seq: Seq) -> Result<(UnixMillis, Intent), StoreError> {
    let bytes = record_at(store, seq)?.ok_or(StoreError::Damaged)?;
    match Record::decode(&bytes).map_err(|_| StoreError::Damaged)? {
        Record { time, body: Body::Intent(intent), .. } => Ok((time, *intent)),
        _ => Err(StoreError::Damaged),
    }
}
