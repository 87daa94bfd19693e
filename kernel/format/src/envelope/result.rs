//! The result's envelope and the receipt in it.

use alloc::{string::String, vec::Vec};
use core::fmt;

use crate::budget::Amounts;
use crate::cbor::{Canonical, Item, MapBuilder};
use crate::field::code;
use crate::id::{AgentId, ConstraintId, HomeId, Leaf, ResultHash, Seq, SnapshotId, ToolId};
use crate::json;
use crate::manifest::Enforcement;
use crate::obligation::Obligation;
use crate::provenance::Provenance;
use crate::reason::{Reason, Retry};
use crate::record::CallFields;

code! {
    /// The status of a call: a result or an error.
    pub enum Status {
        /// It brought a result.
        Ok = 0 "ok",
        /// It was refused, or its run failed.
        Error = 1 "error",
    }
}

code! {
    /// The outcome of a call's effect.
    pub enum TxOutcome {
        /// The effect was made.
        Committed = 1 "committed",
        /// The effect was begun and undone.
        RolledBack = 2 "rolled_back",
        /// There was no effect.
        NoOp = 3 "no_op",
        /// It is unknown if there was an effect.
        Unknown = 4 "unknown",
    }
}

/// Proof for the caller: where in which log the call stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The log.
    pub home: HomeId,
    /// The intent, where the call got that far.
    pub intent: Option<(Seq, Leaf)>,
    /// The outcome, refusal, repeat, or the aggregate that answers for a run of refusals.
    pub outcome_seq: Seq,
    /// That record's leaf.
    pub outcome_leaf: Leaf,
    /// The amounts that the call used.
    pub used: Amounts,
    /// The rest of the token's budget, the tightest of its chain.
    pub left: Amounts,
    /// How the scope was enforced.
    pub enforcement: Enforcement,
}

/// The answer to a call: what its record says, and what was delivered. The kernel gives one away
/// only once that record is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    pub(super) tool: Option<ToolId>,
    pub(super) agent: Option<AgentId>,
    pub(super) snapshot: Option<SnapshotId>,
    pub(super) reason: Option<Reason>,
    pub(super) delivered: Canonical,
    pub(super) result_hash: ResultHash,
    pub(super) provenance: Option<Provenance>,
    pub(super) tx: TxOutcome,
    pub(super) degraded: Vec<Obligation>,
    pub(super) constraint: Option<ConstraintId>,
    pub(super) receipt: Receipt,
}

impl ToolResult {
    /// The answer that a record stands for. `reason` says why there is no result, `delivered` is
    /// the result or the error object.
    pub fn new(
        record: &CallFields,
        reason: Option<Reason>,
        delivered: Canonical,
        tx: TxOutcome,
        degraded: Vec<Obligation>,
        receipt: Receipt,
    ) -> Self {
        Self {
            tool: record.tool_id.clone(),
            agent: record.agent_id.clone(),
            snapshot: record.state_snapshot_id,
            reason,
            delivered,
            result_hash: record.result_hash.unwrap_or(ResultHash::from_bytes([0; 32])),
            provenance: record.provenance.clone(),
            tx,
            degraded,
            constraint: reason
                .filter(|reason| reason.is_a_verdict())
                .and(record.decision.as_ref())
                .and_then(|said| said.deciding.clone()),
            receipt,
        }
    }

    /// The status: a result or an error.
    pub const fn status(&self) -> Status {
        if self.reason.is_some() { Status::Error } else { Status::Ok }
    }

    /// Why there is none.
    pub const fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// The result, or the error object: exactly what [`ToolResult::result_hash`] commits to.
    pub const fn delivered(&self) -> &Canonical {
        &self.delivered
    }

    /// The commitment to the result.
    #[must_use]
    pub const fn result_hash(&self) -> ResultHash {
        self.result_hash
    }

    /// The outcome of the effect.
    pub const fn tx_outcome(&self) -> TxOutcome {
        self.tx
    }

    /// The obligations by which the policy degraded the call: empty unless it did.
    pub fn degraded(&self) -> &[Obligation] {
        &self.degraded
    }

    /// The call's place in the log.
    pub const fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// The tool, where the call named one that exists.
    pub const fn tool(&self) -> Option<&ToolId> {
        self.tool.as_ref()
    }

    /// The call's origin, as its record says; `None` if the call could not be read.
    pub const fn provenance(&self) -> Option<&Provenance> {
        self.provenance.as_ref()
    }

    /// The result.
    ///
    /// # Errors
    /// [`ToolError`] where the call was refused or its run failed.
    pub fn value(&self) -> Result<Item<'_>, ToolError> {
        match self.reason {
            None => Ok(self.delivered.item()),
            Some(reason) => Err(ToolError { reason, object: self.delivered.clone() }),
        }
    }

    /// The text of the result: its entry `text` where it is a map, else the result itself;
    /// empty where there is no text in it. [`ToolResult::to_json`] gives the whole of any result.
    ///
    /// # Errors
    /// [`ToolError`] where the call was refused or its run failed.
    pub fn text(&self) -> Result<&str, ToolError> {
        let value = self.value()?;
        let text = value.get("text").or(Some(value)).and_then(Item::as_text);
        Ok(text.unwrap_or_default())
    }

    /// The model's part of it, as JSON: the result, or the error object with its `hint`.
    pub fn to_json(&self) -> String {
        json::from_data(self.delivered.item())
    }

    /// The record under which the call waits for a person, where it does: once somebody has
    /// approved it, the same call goes on.
    pub fn ask(&self) -> Option<Seq> {
        let object = self.delivered.item();
        let text = |key| object.get(key).and_then(Item::as_text);
        let waits = self.reason == Some(Reason::Asked) && text("field") == Some("approval");
        let number = text("got").filter(|_| waits)?;
        number.parse().ok().map(Seq::new)
    }

    /// What the tool gave, whether it failed by its own word ([`Reason::ToolFailed`]) or not; `None`
    /// where it gave nothing.
    pub fn output(&self) -> Option<Item<'_>> {
        match self.reason {
            None => Some(self.delivered.item()),
            Some(Reason::ToolFailed) => self.delivered.item().get("output"),
            Some(_) => None,
        }
    }

    /// The caller's next step after an error, as in the error object: a tool that failed may have
    /// asked for a stricter one than its reason's.
    pub fn retry(&self) -> Option<Retry> {
        Some(self.reason?.retry_of(self.delivered.item(), self.tx))
    }

    /// Which constraint of the policy stopped the call; `None` too where none matched, or something
    /// else did.
    pub const fn constraint(&self) -> Option<&ConstraintId> {
        self.constraint.as_ref()
    }

    /// The whole envelope as one map with text keys.
    pub fn to_canonical(&self) -> Canonical {
        self.envelope(Some(self.delivered.item()))
    }

    /// The same without what was delivered.
    pub fn head(&self) -> Canonical {
        self.envelope(None)
    }

    /// Its keys come in canonical order: nothing needs sorting.
    fn envelope(&self, delivered: Option<Item<'_>>) -> Canonical {
        let map = MapBuilder::new().uint("v", 1);
        let map = match (self.reason, delivered) {
            (None, Some(delivered)) => map.item("result", delivered),
            (Some(_), Some(delivered)) => map.item("error", delivered),
            (_, None) => map,
        };
        let map = map
            .text("status", self.status().name())
            .item("receipt", self.receipt.to_canonical().item());
        let map = match &self.tool {
            Some(tool) => map.text("tool_id", tool.as_str()),
            None => map.item("tool_id", Item::NULL),
        };
        let map = match &self.agent {
            Some(agent) => map.text("agent_id", agent.as_str()),
            None => map.item("agent_id", Item::NULL),
        };
        let map = match &self.degraded[..] {
            [] => map,
            taken => {
                let list = taken.iter().map(|asked| Canonical::text(&alloc::format!("{asked}")));
                map.item("degraded", Canonical::list(list).item())
            }
        };
        let map = match &self.constraint {
            Some(constraint) => map.text("constraint", constraint.as_str()),
            None => map,
        };
        let map = match &self.provenance {
            Some(provenance) => map.with("provenance", |e| provenance.put_envelope(e)),
            None => map.item("provenance", Item::NULL),
        };
        let map = map
            .text("tx_outcome", self.tx.name())
            .bytes("result_hash", self.result_hash.as_bytes());
        let map = match &self.snapshot {
            Some(snapshot) => map.bytes("state_snapshot_id", snapshot.as_bytes()),
            None => map.item("state_snapshot_id", Item::NULL),
        };
        map.finish()
    }
}

/// A call that was refused, or whose run failed, as an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    reason: Reason,
    object: Canonical,
}

impl ToolError {
    /// The reason.
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// The error object that was delivered.
    pub fn object(&self) -> Item<'_> {
        self.object.item()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason.name(), self.reason.code())?;
        for name in ["field", "got", "allowed"] {
            if let Some(value) = self.object().get(name).and_then(Item::as_text) {
                write!(f, ", {name}: {value}")?;
            }
        }
        write!(f, ". {}", self.reason.hint())
    }
}

impl core::error::Error for ToolError {}

impl Receipt {
    /// The receipt as a map with text keys.
    pub fn to_canonical(&self) -> Canonical {
        let map = MapBuilder::new()
            .bytes("log", self.home.as_bytes())
            .item("left", amounts(&self.left).item())
            .item("used", amounts(&self.used).item());
        let map = match &self.intent {
            Some((seq, _)) => map.uint("intent_seq", seq.get()),
            None => map,
        };
        let map = map.text("enforcement", self.enforcement.name());
        let map = match &self.intent {
            Some((_, leaf)) => map.bytes("intent_leaf", leaf.as_bytes()),
            None => map,
        };
        map.uint("outcome_seq", self.outcome_seq.get())
            .bytes("outcome_leaf", self.outcome_leaf.as_bytes())
            .finish()
    }
}

fn amounts(amounts: &Amounts) -> Canonical {
    amounts
        .iter()
        .filter(|(_, amount)| *amount > 0)
        .fold(MapBuilder::new(), |map, (dimension, amount)| map.uint(dimension.name(), amount))
        .finish()
}
