//! Writes documents: canonical bytes, and JSON for people.

use alloc::string::String;

use syscap_format::{Canonical, Encoder, Item, ItemKind, MapBuilder, Profile, json};

use super::{constraint::Constraint, obligations};

/// One constraint in canonical form: what was written, without its version, obligations united,
/// optional keys left out where they say nothing.
pub(super) fn constraint(
    read: &Constraint,
    subject: Item<'_>,
    when: Item<'_>,
    examples: Option<Item<'_>>,
) -> Canonical {
    let mut map = MapBuilder::new()
        .text("id", read.id.as_str())
        .text("effect", read.effect.name())
        .item("subject", subject)
        .item("when", when)
        .text("on_fail", read.on_fail.name())
        .text("reason", &read.reason);
    if !read.obligations.is_empty() {
        map = map.item("obligations", obligations::list(&read.obligations).item());
    }
    match examples.filter(|examples| examples.count() > 0) {
        Some(examples) => map.item("examples", examples),
        None => map,
    }
    .finish()
}

/// The document in canonical form.
pub(super) fn document<'a>(
    constraints: impl ExactSizeIterator<Item = &'a Canonical>,
    params: Option<Item<'_>>,
) -> Canonical {
    let mut encoder = Encoder::new();
    encoder.array(constraints.len());
    constraints.for_each(|constraint| encoder.item(constraint.item()));
    let list = encoder.into_bytes();
    let map = MapBuilder::new().uint("v", 1);
    let map = match params.filter(|params| params.count() > 0) {
        Some(params) => map.item("params", params),
        None => map,
    };
    match Item::check(&list, Profile::DATA) {
        Ok(list) => map.item("constraints", list),
        // Not so: the list is made of checked items.
        Err(_) => map,
    }
    .finish()
}

/// Columns that a line of JSON may have before it is broken.
const COLUMNS_MAX: usize = 96;
/// Spaces of one step to the right.
const STEP: usize = 2;

/// Canonical bytes as indented JSON.
pub(crate) fn json(bytes: &[u8]) -> String {
    let mut out = String::new();
    match Item::check(bytes, Profile::CONTROL) {
        Ok(item) => lay_out(item, 0, &mut out),
        Err(_) => out.push_str("null"),
    }
    out.push('\n');
    out
}

fn lay_out(item: Item<'_>, column: usize, out: &mut String) {
    // What is long in CBOR is longer in JSON.
    if item.as_bytes().len() < COLUMNS_MAX {
        let compact = json::from_item(item);
        if column.saturating_add(compact.len()) < COLUMNS_MAX {
            return out.push_str(&compact);
        }
    }
    let inner = column.saturating_add(STEP);
    match item.kind() {
        ItemKind::Array if item.count() > 0 => {
            out.push('[');
            let mut comma = "";
            for element in item.elements() {
                start_line(inner, comma, out);
                comma = ",";
                lay_out(element, inner, out);
            }
            start_line(column, "", out);
            out.push(']');
        }
        ItemKind::Map if item.count() > 0 => {
            out.push('{');
            let mut comma = "";
            for (key, value) in item.entries() {
                start_line(inner, comma, out);
                comma = ",";
                out.push_str(&json::from_item(Canonical::text(key).item()));
                out.push_str(": ");
                lay_out(value, inner, out);
            }
            start_line(column, "", out);
            out.push('}');
        }
        _ => out.push_str(&json::from_item(item)),
    }
}

fn start_line(column: usize, comma: &str, out: &mut String) {
    out.push_str(comma);
    out.push('\n');
    out.extend(core::iter::repeat_n(' ', column));
}
