//! A result's envelope, read: what another process was answered, in the process that asked.

use alloc::{boxed::Box, vec::Vec};

use super::result::{Receipt, Status, ToolResult, TxOutcome};
use crate::budget::{Amounts, Dimension};
use crate::cbor::{Canonical, Item};
use crate::id::{AgentId, ConstraintId, HomeId, Leaf, ResultHash, Seq, SnapshotId, ToolId};
use crate::manifest::Enforcement;
use crate::obligation::Obligation;
use crate::provenance::{Provenance, Source};
use crate::reason::Refused;
use crate::time::UnixMillis;

impl ToolResult {
    /// The answer of an envelope, as [`ToolResult::to_canonical`] writes it; `None` of any other
    /// form. It is believed as whoever sent it is: only the log it names proves it.
    pub fn from_canonical(envelope: &Canonical) -> Option<Self> {
        let item = envelope.item();
        let key = match status(item)? {
            Status::Ok => "result",
            Status::Error => "error",
        };
        let read = Self::read(item, item.get(key)?.into())?;
        // One answer has one envelope: nothing stands in it that was not read.
        (read.to_canonical() == *envelope).then_some(read)
    }

    /// The same, where what was delivered stands apart from the [head](ToolResult::head).
    pub fn from_parts(head: Item<'_>, delivered: Canonical) -> Option<Self> {
        let read = Self::read(head, delivered)?;
        (read.head().as_bytes() == head.as_bytes()).then_some(read)
    }

    fn read(item: Item<'_>, delivered: Canonical) -> Option<Self> {
        let tx = named(TxOutcome::ALL, TxOutcome::name, item.get("tx_outcome")?)?;
        let reason = match status(item)? {
            Status::Ok => None,
            Status::Error => Some(Refused::from_error_object(delivered.item(), tx)?.reason()),
        };
        let degraded = match item.get("degraded") {
            None => Vec::new(),
            Some(list) => {
                let one = |item: Item<'_>| item.as_text().and_then(Obligation::named);
                list.elements().map(one).collect::<Option<_>>()?
            }
        };
        Some(Self {
            tool: maybe(item.get("tool_id")?, |tool| tool.as_text().and_then(ToolId::new))?,
            agent: maybe(item.get("agent_id")?, |agent| agent.as_text().and_then(AgentId::new))?,
            snapshot: maybe(item.get("state_snapshot_id")?, |id| {
                digest(id).map(SnapshotId::from_bytes)
            })?,
            reason,
            delivered,
            result_hash: digest(item.get("result_hash")?).map(ResultHash::from_bytes)?,
            provenance: maybe(item.get("provenance")?, provenance)?,
            tx,
            degraded,
            constraint: match item.get("constraint") {
                Some(id) => Some(id.as_text().and_then(ConstraintId::new)?),
                None => None,
            },
            receipt: Receipt::read(item.get("receipt")?)?,
        })
    }
}

fn status(item: Item<'_>) -> Option<Status> {
    named(Status::ALL, Status::name, item.get("status")?)
}

impl Receipt {
    fn read(item: Item<'_>) -> Option<Self> {
        let seq = |key: &str| item.get(key).and_then(Item::as_uint).map(Seq::new);
        let leaf = |key: &str| item.get(key).and_then(digest).map(Leaf::from_bytes);
        Some(Self {
            home: digest(item.get("log")?).map(HomeId::from_bytes)?,
            intent: seq("intent_seq").zip(leaf("intent_leaf")),
            outcome_seq: seq("outcome_seq")?,
            outcome_leaf: leaf("outcome_leaf")?,
            used: amounts(item.get("used")?)?,
            left: amounts(item.get("left")?)?,
            enforcement: named(Enforcement::ALL, Enforcement::name, item.get("enforcement")?)?,
        })
    }
}

/// Reads the form that [`Provenance::to_envelope`] writes.
fn provenance(item: Item<'_>) -> Option<Provenance> {
    let source = |item: Item<'_>| named(Source::ALL, Source::name, item);
    let mut read = Provenance::new(source(item.get("source")?)?, UnixMillis::default());
    read.time = item.get("time").and_then(Item::as_uint).map(UnixMillis::new);
    read.trace = item.get("trace").and_then(Item::as_text).map(Box::from);
    read.claimed = item.get("claimed").and_then(source);
    for input in item.get("inputs").into_iter().flat_map(Item::elements) {
        read.inputs.push(input.as_uint().map(Seq::new)?);
    }
    Some(read)
}

fn amounts(item: Item<'_>) -> Option<Amounts> {
    item.entries().try_fold(Amounts::ZERO, |amounts, (name, amount)| {
        let dimension = Dimension::ALL.iter().find(|dimension| dimension.name() == name)?;
        Some(amounts.with(*dimension, amount.as_uint()?))
    })
}

/// `null` is no value; another item must be one.
fn maybe<'a, T>(item: Item<'a>, read: impl FnOnce(Item<'a>) -> Option<T>) -> Option<Option<T>> {
    if item.is_null() { Some(None) } else { read(item).map(Some) }
}

fn named<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str, item: Item<'_>) -> Option<T> {
    let text = item.as_text()?;
    all.iter().copied().find(|one| name(*one) == text)
}

fn digest(item: Item<'_>) -> Option<[u8; 32]> {
    item.as_byte_string()?.try_into().ok()
}
