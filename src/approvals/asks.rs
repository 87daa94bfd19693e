//! Calls that wait for a person, as they can be shown, and what is answered.

use syscap_format::{
    AgentId, ApprovalAnswer, ApprovalBody, ApprovalChannel, Body, Canonical, Commitment, Grants,
    Label, Leaf, Manifest, ObjectId, PublicKey, Record, Seq, TokenId, ToolId, UnixMillis,
    VaultEntry, VaultText, leaf,
};
use syscap_kernel::{AskView, Condition, Kernel, Store, StoreError, record_at, vault_entry};

use crate::{Error, Inspection, approvals::live::AskStands, approvals::proposals::parts};

/// The key under which the reason of an answer is committed to.
const REASON: u64 = 7;

/// An answer for more than one call: for those that touch nothing but what the one that waits does,
/// or what lies in further scopes of its tool, made by the same agent under the same token, policy
/// and manifest, while its session has been given nothing else than what was shown, and no other
/// constraint asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetTerms {
    /// For how many calls, the one that waits among them: 1 to the [`uses_max`](WaitingCall) of it.
    pub uses: u64,
    /// The further scopes that the answer covers. Needs an end, and is refused where the session
    /// had been given a stranger's word; lists of names can't be widened.
    pub scopes: Option<Grants>,
    /// When it ends, a day from now at the latest. `None`: with the session that asked.
    pub expires: Option<UnixMillis>,
}

/// The bytes to sign for an answer to the call whose record has that leaf.
pub(crate) fn body(
    leaf: Leaf,
    answer: ApprovalAnswer,
    set: Option<&SetTerms>,
    means: ApprovalChannel,
    why: Option<&VaultText>,
) -> ApprovalBody {
    ApprovalBody {
        ask: leaf,
        answer,
        means,
        scopes: set.and_then(|set| set.scopes.clone()),
        uses: set.map(|set| set.uses),
        expires: set.and_then(|set| set.expires),
        reason: why.map(VaultText::hash),
    }
}

/// The leaf of the request under that number: a waiting call, or a call that holds a standing
/// approval.
pub(crate) fn answerable(kernel: &Kernel, ask: Seq) -> Option<Leaf> {
    let waits = kernel.asks().find(|waiting| waiting.ask == ask).map(|waiting| waiting.leaf);
    waits.or_else(|| kernel.sets().find(|set| set.ask == ask).map(|set| set.leaf))
}

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
    /// The resources that the call would touch, each as `dimension: resource`.
    pub resources: Vec<String>,
    /// The location where it would act, as the program states it that runs the tool. The answer
    /// holds there only. `None` where nothing was stated.
    pub location: Option<String>,
    /// The state that the call would change. It must be unchanged when the call runs; else the run
    /// changes nothing, and the same call asks anew. Empty where the tool names nothing.
    pub conditions: Vec<Condition>,
    /// The constraint of the policy that asks.
    pub constraint: Option<String>,
    /// The label of everything that the session was given before.
    pub label: Label,
    /// The keys that may answer.
    pub eligible: Vec<PublicKey>,
    /// How many of them must approve.
    pub threshold: u64,
    /// By which means.
    pub means: Vec<ApprovalChannel>,
    /// How many have; `None` once it is answered.
    pub approved: Option<u64>,
    /// True if the answer was no.
    pub denied: bool,
    /// The session that asked, while it is open.
    pub session: Option<Seq>,
    /// Most calls that one answer may let through; 0: this one alone.
    pub uses_max: u64,
    /// True if an answer may cover more than the resources that the call touches.
    pub may_widen: bool,
    /// True if the tool has been set anew since, or another definition of it accepted. The same
    /// call then asks anew, and a yes to this request is refused.
    pub superseded: bool,
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
        let shown = asks.into_iter().map(|ask| {
            let superseded = is_superseded(self.kernel(), &mut **store, ask.ask, &ask.tool)?;
            Ok(WaitingCall { superseded, ..shown(&mut **store, ask)? })
        });
        Ok(shown.collect::<Result<_, StoreError>>()?)
    }

    /// The body to sign for an answer to a waiting call, or for a no that ends its standing
    /// approval; `None` if that number has neither. With a reason, its salted text goes
    /// [beside](crate::Beside::Why) the event.
    pub fn answer(
        &self,
        ask: Seq,
        answer: ApprovalAnswer,
        means: ApprovalChannel,
        why: Option<&VaultText>,
    ) -> Option<ApprovalBody> {
        Some(body(answerable(self.kernel(), ask)?, answer, None, means, why))
    }

    /// The body to sign for a standing approval within these terms; `None` if no call waits under
    /// that number.
    pub fn answer_set(
        &self,
        ask: Seq,
        terms: &SetTerms,
        means: ApprovalChannel,
        why: Option<&VaultText>,
    ) -> Option<ApprovalBody> {
        Some(body(answerable(self.kernel(), ask)?, ApprovalAnswer::Set, Some(terms), means, why))
    }
}

/// A request as its rows say, whatever else is said of it; `None` where the record of that number is
/// another.
pub(crate) fn of_rows(
    store: &mut dyn Store,
    stands: &AskStands,
) -> Result<Option<WaitingCall>, StoreError> {
    let ask = stands.ask;
    let Some(bytes) = record_at(store, ask)? else { return Ok(None) };
    let record = Record::decode(&bytes).map_err(|_| StoreError::Damaged)?;
    let Body::Ask(asked) = &record.body else { return Ok(None) };
    let (Some(agent), Some(tool)) = (&asked.call.agent_id, &asked.call.tool_id) else {
        return Ok(None);
    };
    let view = AskView {
        ask,
        leaf: leaf(&bytes),
        agent: agent.clone(),
        tool: tool.clone(),
        eligible: asked.eligible.clone(),
        threshold: asked.threshold,
        expires: asked.expires,
        approved: stands.approved,
        denied: stands.denied,
        session: stands.session,
        uses_max: stands.uses_max,
        may_widen: stands.may_widen,
    };
    let entry = vault_entry(store, ask, ask)?;
    let superseded = stands.superseded;
    Ok(said(record, &entry, view).map(|call| WaitingCall { superseded, ..call }))
}

/// True if the tool of a waiting call has another manifest now than the one the call was made for.
pub(crate) fn is_superseded(
    kernel: &Kernel,
    store: &mut dyn Store,
    ask: Seq,
    tool: &ToolId,
) -> Result<bool, StoreError> {
    let Some(asked) = asked_for(store, ask)? else { return Ok(false) };
    Ok(manifest_of(kernel, tool) != Some(asked))
}

/// The manifest that a call was made for.
pub(crate) fn asked_for(store: &mut dyn Store, ask: Seq) -> Result<Option<ObjectId>, StoreError> {
    let bytes = record_at(store, ask)?.ok_or(StoreError::Damaged)?;
    match Record::decode(&bytes).map_err(|_| StoreError::Damaged)?.body {
        Body::Ask(ask) => Ok(ask.call.manifest),
        _ => Ok(None),
    }
}

pub(crate) fn manifest_of(kernel: &Kernel, tool: &ToolId) -> Option<ObjectId> {
    kernel.manifests().find(|manifest| manifest.tool == *tool).map(Manifest::id)
}

/// A reason, with the salt of its commitment.
#[must_use]
pub fn reason_given(why: &str, salt: [u8; 32]) -> VaultText {
    let salt = syscap_format::Salt::from_bytes(salt);
    VaultText { salt, field: REASON, text: Box::from(why) }
}

/// A call that waits, as its record and the vault have it.
pub(crate) fn shown(store: &mut dyn Store, view: AskView) -> Result<WaitingCall, StoreError> {
    let bytes = record_at(store, view.ask)?.ok_or(StoreError::Damaged)?;
    let record = Record::decode(&bytes).map_err(|_| StoreError::Damaged)?;
    let entry = vault_entry(store, view.ask, view.ask)?;
    said(record, &entry, view).ok_or(StoreError::Damaged)
}

/// A call as its record and what the vault has of it say; `None` where the record is another.
pub(crate) fn said(record: Record, entry: &VaultEntry, view: AskView) -> Option<WaitingCall> {
    let Body::Ask(ask) = record.body else { return None };
    let call = &ask.call;
    let arguments = match (call.args_hash, &call.tool_id, &call.manifest) {
        (Some(hash), Some(tool), Some(manifest)) => {
            entry.committed(Commitment::Arguments(hash, tool, manifest))
        }
        _ => None,
    };
    let shown = ask.resources.iter().filter_map(|hash| entry.text(hash).map(str::to_owned));
    let texts: Vec<String> = shown.collect();
    let (resources, location) = parts(&texts);
    let conditions = ask.preconditions.iter().filter_map(|one| Condition::read(one, entry));
    let deciding = call.decision.as_ref().and_then(|decision| decision.deciding.as_ref());
    Some(WaitingCall {
        ask: view.ask,
        since: record.time,
        expires: view.expires,
        agent: view.agent,
        token: call.capability_token_id,
        tool: view.tool,
        args: arguments,
        resources: resources.to_vec(),
        location: location.map(str::to_owned),
        conditions: conditions.collect(),
        constraint: deciding.map(ToString::to_string),
        label: ask.label,
        eligible: view.eligible,
        threshold: view.threshold,
        means: ask.means.clone(),
        approved: view.approved,
        denied: view.denied,
        session: view.session,
        uses_max: view.uses_max,
        may_widen: view.may_widen,
        superseded: false,
    })
}
