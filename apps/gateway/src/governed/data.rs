//! Between the JSON of MCP and the kernel's canonical CBOR.
//!
//! A message is parsed once, and everything is made from that one value: what is checked, what
//! is recorded, and what is sent on can't differ.

use rmcp::model::JsonObject;
use serde_json::{Number, Value};
use syscap::format::{Canonical, Encoder, Item, ItemKind, Profile, json};

/// The keys that mean something to the kernel where they stand alone in a map of arguments.
const ESCAPES: [&str; 2] = ["$ref", "$lit"];

/// The fault of a value that canonical CBOR can't express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadData {
    /// More than 64 levels, or a number beyond the range.
    #[error("it nests too deep, or holds a number that is out of range")]
    Unsayable,
}

pub(crate) fn to_canonical(value: &Value) -> Result<Canonical, BadData> {
    let mut encoder = Encoder::new();
    put(&mut encoder, value, Quoting::AsTheyAre, 0)?;
    checked(encoder)
}

/// A call's arguments. The client's values are data: they can't refer to other results, and a
/// reference-like map arrives at the server as it was sent.
pub(crate) fn to_args(args: &JsonObject) -> Result<Canonical, BadData> {
    let mut encoder = Encoder::new();
    put_map(&mut encoder, args, Quoting::Wrapped, 0)?;
    checked(encoder)
}

/// The item as JSON. Byte strings, which only the kernel's own tools have, become
/// `{"$bytes": base64}`.
pub(crate) fn to_json(item: Item<'_>) -> Value {
    match item.kind() {
        ItemKind::Null => Value::Null,
        ItemKind::Bool => item.as_bool().map_or(Value::Null, Value::Bool),
        ItemKind::Uint => item.as_uint().map_or(Value::Null, Value::from),
        ItemKind::Negative => {
            let int = item.as_int().and_then(|int| i64::try_from(int).ok());
            int.map_or(Value::Null, Value::from)
        }
        ItemKind::Float => {
            item.as_float().and_then(Number::from_f64).map_or(Value::Null, Value::Number)
        }
        ItemKind::Text => item.as_text().map_or(Value::Null, Value::from),
        ItemKind::Bytes => serde_json::from_str(&json::from_data(item)).unwrap_or_default(),
        ItemKind::Array => Value::Array(item.elements().map(to_json).collect()),
        ItemKind::Map => Value::Object(to_object(item)),
    }
}

/// A map with text keys as JSON; of anything else an empty one.
pub(crate) fn to_object(item: Item<'_>) -> JsonObject {
    item.entries().map(|(key, value)| (key.to_owned(), to_json(value))).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    AsTheyAre,
    Wrapped,
}

fn checked(encoder: Encoder) -> Result<Canonical, BadData> {
    Canonical::check(encoder.into_bytes(), Profile::DATA).map_err(|_| BadData::Unsayable)
}

fn put(encoder: &mut Encoder, value: &Value, quoting: Quoting, depth: u8) -> Result<(), BadData> {
    match value {
        Value::Null => encoder.null(),
        Value::Bool(value) => encoder.boolean(*value),
        Value::Number(number) => put_number(encoder, number)?,
        Value::String(text) => encoder.text(text),
        Value::Array(items) => {
            let inner = deeper(depth)?;
            encoder.array(items.len());
            items.iter().try_for_each(|item| put(encoder, item, quoting, inner))?;
        }
        Value::Object(map) => put_map(encoder, map, quoting, depth)?,
    }
    Ok(())
}

fn put_number(encoder: &mut Encoder, number: &Number) -> Result<(), BadData> {
    match (number.as_u64(), number.as_i64(), number.as_f64()) {
        (Some(value), _, _) => encoder.uint(value),
        (None, Some(value), _) => encoder.int(value),
        (None, None, Some(value)) if value.is_finite() => encoder.float(value),
        _ => return Err(BadData::Unsayable),
    }
    Ok(())
}

fn put_map(
    encoder: &mut Encoder,
    map: &JsonObject,
    quoting: Quoting,
    depth: u8,
) -> Result<(), BadData> {
    let mut inner = deeper(depth)?;
    let mut quoting = quoting;
    let lone = map.len() == 1 && map.keys().any(|key| ESCAPES.contains(&key.as_str()));
    if lone && quoting == Quoting::Wrapped {
        encoder.map(1);
        encoder.text("$lit");
        inner = deeper(inner)?;
        quoting = Quoting::AsTheyAre;
    }
    // Canonical order is that of the encoded keys: shorter ones first.
    let mut entries: Vec<(&String, &Value)> = map.iter().collect();
    entries.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    encoder.map(entries.len());
    for (key, value) in entries {
        encoder.text(key);
        put(encoder, value, quoting, inner)?;
    }
    Ok(())
}

fn deeper(depth: u8) -> Result<u8, BadData> {
    if depth < Profile::DATA.depth_max() {
        Ok(depth.saturating_add(1))
    } else {
        Err(BadData::Unsayable)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> JsonObject {
        match value {
            Value::Object(map) => map,
            other => panic!("{other} is no object"),
        }
    }

    #[test]
    fn values_come_back_as_they_went_in() {
        let value = json!({
            "a": [1, -1, 1.5, 1e300, u64::MAX, i64::MIN, null, true, "text"],
            "longer key": {"$ref": "#/definitions/x"}, "": {"": {}}, "$bytes": "no base64",
            "\u{e9}": [[]], "zz": 1.0, "b": {"$lit": {"$bytes": "AA=="}},
        });
        let item = to_canonical(&value).unwrap();
        assert_eq!(to_json(item.item()), value);
    }

    /// The kernel resolves the arguments to the client's own values.
    #[test]
    fn arguments_hold_no_references() {
        for args in [
            json!({"$ref": {"record": 3, "path": []}}),
            json!({"a": {"$ref": {"record": 3, "path": ["b"]}}}),
            json!({"a": [{"$lit": {"$ref": 1}}], "b": {"$ref": 1, "x": 2}}),
        ] {
            let item = to_args(&object(args.clone())).unwrap();
            let text = json::from_item(item.item());
            let lits = text.matches("\"$lit\"").count();
            let before = args.to_string().matches("\"$lit\"").count();
            assert_eq!(lits, before + 1, "{text}");
        }
        let plain = object(json!({"a": {"x": 1}, "$ref": 1, "$lit": 2}));
        assert_eq!(to_args(&plain), to_canonical(&Value::Object(plain.clone())));
    }

    #[test]
    fn too_deep_value_is_refused() {
        let nest = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert!(to_canonical(&nest(64)).is_ok());
        assert_eq!(to_canonical(&nest(65)), Err(BadData::Unsayable));
        assert_eq!(to_canonical(&nest(100)), Err(BadData::Unsayable));
    }

    #[test]
    fn bytes_become_base64() {
        let map = syscap::format::MapBuilder::new().bytes("b", &[0, 1]).finish();
        assert_eq!(to_json(map.item()), json!({"b": {"$bytes": "AAE="}}));
    }
}
