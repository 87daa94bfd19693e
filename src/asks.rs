//! Calls that wait for a person, as they can be shown, and what is answered.

use syscap_format::{
    cbor::Canonical,
    id::{AgentId, Seq, TokenId, ToolId},
    label::Label,
    record::{Answer, ApprovalBody, Body, Means, Record},
    sign::PublicKey,
    time::UnixMillis,
    vault::{Commitment, VaultText},
};
use syscap_kernel::{
    kernel::AskView,
    store::{Next, Store, StoreError, vault_entry},
};

use crate::{Error, Inspection};

/// The key under which the reason of an answer is committed to.
const REASON: u64 = 7;

/// A call that waits for a person.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WaitingCall {
    /// The record that says so, by which it is answered.
    pub ask: Seq,
    /// Since when, in kernel time.
    pub since: UnixMillis,
    /// From then on it is expired.
    pub expires: UnixMillis,
    /// The agent.
    pub agent: AgentId,
    /// The token.
    pub token: Option<TokenId>,
    /// The tool.
    pub tool: ToolId,
    /// The arguments, as the tool would get them: what an approval is for. `None` where they were
    /// erased, or the vault has others than the record commits to.
    pub args: Option<Canonical>,
    /// What it would touch, each as `dimension: resource`.
    pub resources: Vec<String>,
    /// The constraint of the policy that asks.
    pub constraint: Option<String>,
    /// What the session had been given before carries this.
    pub label: Label,
    /// The keys that may answer.
    pub eligible: Vec<PublicKey>,
    /// How many of them must approve.
    pub threshold: u64,
    /// How many have; `None` once it is answered.
    pub approved: Option<u64>,
}

impl Inspection {
    /// The calls that wait for a person, or were answered and have not run, in the order in which
    /// they came.
    ///
    /// # Errors
    /// As [`Options::open`](crate::Options::open).
    pub fn waiting(&self) -> Result<Vec<WaitingCall>, Error> {
        let mut store = self.store();
        let asks: Vec<AskView> = self.kernel().asks().collect();
        let shown = asks.into_iter().map(|ask| shown(&mut **store, ask));
        Ok(shown.collect::<Result<Vec<_>, StoreError>>()?.into_iter().flatten().collect())
    }

    /// What is to be signed to answer a call that waits; `None` where none does under that number.
    /// With a reason, its salted text goes [beside](crate::Beside::Why) the event.
    #[must_use]
    pub fn answer(
        &self,
        ask: Seq,
        answer: Answer,
        (means, why): (Means, Option<&VaultText>),
    ) -> Option<ApprovalBody> {
        let found = self.kernel().asks().find(|waiting| waiting.ask == ask)?;
        let reason = why.map(VaultText::hash);
        let (scopes, uses, expires) = (None, None, None);
        Some(ApprovalBody { ask: found.leaf, answer, means, scopes, uses, expires, reason })
    }
}

/// A reason, with the salt of its commitment.
#[must_use]
pub fn reason_given(why: &str, salt: [u8; 32]) -> VaultText {
    let salt = syscap_format::id::Salt::from_bytes(salt);
    VaultText { salt, field: REASON, text: Box::from(why) }
}

fn shown(store: &mut dyn Store, view: AskView) -> Result<Option<WaitingCall>, StoreError> {
    let Some(record) = record(store, view.ask)? else { return Ok(None) };
    let Body::Ask(ask) = record.body else { return Ok(None) };
    let entry = vault_entry(store, view.ask, view.ask)?;
    let call = &ask.call;
    let arguments = match (call.args_hash, &call.tool_id, &call.manifest) {
        (Some(hash), Some(tool), Some(manifest)) => {
            entry.committed(Commitment::Arguments(hash, tool, manifest))
        }
        _ => None,
    };
    let resources = ask.resources.iter().filter_map(|hash| entry.text(hash).map(str::to_owned));
    let deciding = call.decision.as_ref().and_then(|decision| decision.deciding.as_ref());
    Ok(Some(WaitingCall {
        ask: view.ask,
        since: record.time,
        expires: view.expires,
        agent: view.agent,
        token: call.capability_token_id,
        tool: view.tool,
        args: arguments,
        resources: resources.collect(),
        constraint: deciding.map(ToString::to_string),
        label: ask.label,
        eligible: view.eligible,
        threshold: view.threshold,
        approved: view.approved,
    }))
}

fn record(store: &mut dyn Store, seq: Seq) -> Result<Option<Record>, StoreError> {
    let mut found = None;
    store.records(seq, &mut |at, bytes| {
        if at == seq {
            found = Record::decode(bytes).ok();
        }
        Next::Enough
    })?;
    Ok(found)
}
