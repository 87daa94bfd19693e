//! Writes scenarios, in the notation that [`syscap_policy::Scenario`] reads.

use alloc::{format, string::String};

use syscap_format::{Canonical, Encoder, Item, MapBuilder, Profile, json};
use syscap_policy::{Given, Scenario, path_text};

/// A scenario as compact JSON. It reads as the same, but for an integer beyond 64 bits, which no
/// attribute has: that is written as null.
#[must_use]
pub fn to_json(scenario: &Scenario) -> String {
    json::from_data(to_canonical(scenario).item())
}

/// A scenario as a map. It reads as the same, as [`to_json`] says.
#[must_use]
pub fn to_canonical(scenario: &Scenario) -> Canonical {
    let map = scenario.iter().fold(MapBuilder::new(), |map, (attribute, value)| {
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
        Given::Tree(path) => typed("tree", &path_text(path), to),
        Given::Host(host) => typed("host", host.as_str(), to),
        Given::Address(address) => typed("address", &format!("{address}"), to),
        Given::Other(other) => match other.type_name() {
            Some(name) => typed("type", name, to),
            None => to.null(),
        },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notation_writes_back() {
        let text = r#"{"args.a":"x","args.b":-3,"args.c":true,"args.d":null,
            "args.e":{"path":"workspace/a/b"},"args.f":{"path":"shared"},"args.g":{"host":"a.b"},
            "args.h":{"address":"::1"},"fact.i":{"erased":true},"args.j":{"type":"float"},
            "args.k":{"type":"empty_list"},"args.l":["x",1,{"type":"map"}],
            "args.m":{"resources":[{"host":"a.b"},443,{"address":"10.0.0.1"},"n"]},
            "args.n.o":{"type":"bytes"},"call.tool":"fs.read","call.effect":"read",
            "call.agent":"team/a","now.hour":23,"now.weekday":7,"risk":100,"token.read_only":false,
            "budget.calls":18446744073709551615,"goal.p":[null]}"#;
        let scenario = Scenario::from_json(text.as_bytes()).unwrap();
        assert_eq!(scenario.iter().count(), 23);
        assert_eq!(Scenario::from_item(to_canonical(&scenario).item()), Ok(scenario.clone()));
        assert_eq!(Scenario::from_json(to_json(&scenario).as_bytes()), Ok(scenario));
    }
}
