//! Reads and writes obligations.

use alloc::{format, string::String, vec::Vec};

use syscap_format::{Canonical, Dimension, MapBuilder, Obligation, ObligationKind};

use super::constraint::{Effect, OnFail};
use super::error::{LoadError, LoadFault};
use super::place::Node;
use crate::limits::{OBLIGATIONS_MAX, TOPIC_BYTES_MAX};

/// The obligations of one constraint, united.
pub(super) fn read(
    node: &Node<'_, '_>,
    effect: Effect,
    on_fail: OnFail,
) -> Result<Vec<Obligation>, LoadError> {
    let items = node.list(OBLIGATIONS_MAX, LoadFault::TooManyObligations)?;
    let mut all = Vec::with_capacity(items.len());
    for (n, item) in items.into_iter().enumerate() {
        let element = node.at(n, item);
        let obligation = one(&element)?;
        if !fits(obligation.kind, effect, on_fail) {
            let valid = ObligationKind::ALL.iter().filter(|kind| fits(**kind, effect, on_fail));
            let names: Vec<&str> = valid.map(|kind| kind.name()).collect();
            let error = element.error(LoadFault::ObligationNotHere, obligation.kind.name());
            return Err(error.suggest(Some(names.join(", "))));
        }
        all.push(obligation);
    }
    Ok(Obligation::unite(all))
}

/// True if a constraint may ask for it. A call that is refused anyway can only be noticed.
const fn fits(kind: ObligationKind, effect: Effect, on_fail: OnFail) -> bool {
    match (kind, effect, on_fail) {
        (ObligationKind::Notify, _, _) | (_, Effect::Deny, OnFail::Ask) => true,
        (ObligationKind::Approval | ObligationKind::ApprovalUses, _, _) => false,
        (_, Effect::Allow, _) | (_, Effect::Deny, OnFail::Degrade) => true,
        (_, Effect::Deny, OnFail::Block | OnFail::Defer) => false,
    }
}

fn one(node: &Node<'_, '_>) -> Result<Obligation, LoadError> {
    // Every key that any kind has: which of them this one has is said once its kind is known.
    let [found, ..] = node.keys(["type", "bytes", "dimension", "max", "level", "topic"])?;
    let kind_node = node.below("type", node.need("type", found)?);
    let text = kind_node.text()?;
    let kind = ObligationKind::ALL.iter().copied().find(|kind| kind.name() == text);
    let kind = kind.ok_or_else(|| {
        let names: Vec<&str> = ObligationKind::ALL.iter().map(|kind| kind.name()).collect();
        kind_node.not_one_of(LoadFault::UnknownObligation, text, &names)
    })?;
    match kind {
        ObligationKind::ReadOnly => {
            node.keys(["type"])?;
            Ok(Obligation::read_only())
        }
        ObligationKind::Openat2 => {
            node.keys(["type"])?;
            Ok(Obligation::openat2())
        }
        ObligationKind::ResultCap => {
            let [_, bytes] = node.keys(["type", "bytes"])?;
            let bytes_node = node.below("bytes", node.need("bytes", bytes)?);
            match bytes_node.uint()? {
                0 => Err(bytes_node.error(LoadFault::BadObligation, "0").suggest(least_one())),
                bytes => Ok(Obligation::result_cap(bytes)),
            }
        }
        ObligationKind::BudgetCut => {
            let [_, dimension, max] = node.keys(["type", "dimension", "max"])?;
            let dimension = node.below("dimension", node.need("dimension", dimension)?);
            let max = node.below("max", node.need("max", max)?).uint()?;
            cut(&dimension, max)
        }
        ObligationKind::Approval => {
            let [_, level] = node.keys(["type", "level"])?;
            let level = node.below("level", node.need("level", level)?);
            match level.text()? {
                Obligation::ELEVATED => Ok(Obligation::elevated()),
                other => {
                    Err(level.not_one_of(LoadFault::BadObligation, other, &[Obligation::ELEVATED]))
                }
            }
        }
        ObligationKind::ApprovalUses => {
            let [_, max] = node.keys(["type", "max"])?;
            let max = node.below("max", node.need("max", max)?);
            Ok(Obligation::approval_uses(max.uint()?))
        }
        ObligationKind::Notify => {
            let [_, topic] = node.keys(["type", "topic"])?;
            let topic = node.below("topic", node.need("topic", topic)?);
            let text = topic.text()?;
            if is_topic(text) {
                return Ok(Obligation::notify(text));
            }
            let error = topic.error(LoadFault::BadObligation, text);
            Err(error.suggest(Some(format!("1 to {TOPIC_BYTES_MAX} of [a-z0-9._-]"))))
        }
    }
}

fn least_one() -> Option<String> {
    Some(String::from("at least 1"))
}

fn cut(node: &Node<'_, '_>, max: u64) -> Result<Obligation, LoadError> {
    let text = node.text()?;
    let cut =
        Dimension::from_name(text).and_then(|dimension| Obligation::budget_cut(dimension, max));
    cut.ok_or_else(|| {
        let metered = Dimension::ALL.into_iter().filter(|dimension| dimension.is_metered());
        let names: Vec<&str> = metered.map(Dimension::name).collect();
        node.not_one_of(LoadFault::UnknownDimension, text, &names)
    })
}

fn is_topic(text: &str) -> bool {
    let allowed =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-');
    (1..=TOPIC_BYTES_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

/// An obligation as it stands in a document.
fn write(obligation: &Obligation) -> Canonical {
    let map = MapBuilder::new().text("type", obligation.kind.name());
    let name = obligation.name.as_deref().unwrap_or_default();
    let max = obligation.max.unwrap_or_default();
    match obligation.kind {
        ObligationKind::ResultCap => map.uint("bytes", max),
        ObligationKind::ReadOnly | ObligationKind::Openat2 => map,
        ObligationKind::BudgetCut => map.text("dimension", name).uint("max", max),
        ObligationKind::Approval => map.text("level", name),
        ObligationKind::ApprovalUses => map.uint("max", max),
        ObligationKind::Notify => map.text("topic", name),
    }
    .finish()
}

/// A list of obligations as it stands in a document.
pub(super) fn list(all: &[Obligation]) -> Canonical {
    Canonical::list(all.iter().map(write))
}
