//! Writing a scenario.

use alloc::{collections::BTreeMap, format};

use syscap_format::cbor::{Canonical, Encoder, Item, MapBuilder, Profile};

use super::{Given, read::type_name};
use crate::{Other, document::Attribute, semantics::path_text};

/// A scenario's map.
pub(super) fn scenario(given: &BTreeMap<Attribute, Given>) -> Canonical {
    let map = given.iter().fold(MapBuilder::new(), |map, (attribute, value)| {
        let mut encoder = Encoder::new();
        write(value, &mut encoder);
        let bytes = encoder.into_bytes();
        // What was just written is canonical; an integer beyond the codec's range is null.
        let item = Item::check(&bytes, Profile::DATA).unwrap_or(Item::NULL);
        map.item(&format!("{attribute}"), item)
    });
    map.finish()
}

fn write(value: &Given, to: &mut Encoder) {
    match value {
        Given::Erased => {
            to.map(1);
            to.text("erased");
            to.boolean(true);
        }
        Given::Bool(value) => to.boolean(*value),
        Given::Int(value) => match (u64::try_from(*value), i64::try_from(*value)) {
            (Ok(value), _) => to.uint(value),
            (_, Ok(value)) => to.int(value),
            _ => to.null(),
        },
        Given::Text(text) => to.text(text),
        Given::Agent(agent) => to.text(agent.as_str()),
        Given::Path(path) => typed("path", &path_text(path), to),
        Given::Host(host) => typed("host", host.as_str(), to),
        Given::Address(address) => typed("address", &format!("{address}"), to),
        Given::Other(Other::Null) => to.null(),
        Given::Other(other) => typed("type", type_name(*other), to),
        Given::List(all) => list(all, to),
        Given::Resources(all) => {
            to.map(1);
            to.text("resources");
            list(all, to);
        }
    }
}

fn typed(key: &str, text: &str, to: &mut Encoder) {
    to.map(1);
    to.text(key);
    to.text(text);
}

fn list(all: &[Given], to: &mut Encoder) {
    to.array(all.len());
    all.iter().for_each(|one| write(one, to));
}
