//! Keys that stand twice in one map of JSON: readers take either, so that two of them see two
//! messages.

use std::{collections::BTreeSet, fmt};

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

/// How many keys of a JSON text repeat another one of the same map. In a text that is no JSON, the
/// repetitions before its fault are counted.
pub(crate) fn repeated(text: &[u8]) -> usize {
    let mut count = 0_usize;
    // Its fault is for whoever reads it.
    serde_json::Deserializer::from_slice(text).deserialize_any(Counts(&mut count)).ok();
    count
}

/// Counts those of one value.
struct Counts<'c>(&'c mut usize);

impl<'de> DeserializeSeed<'de> for Counts<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counts<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut keys: BTreeSet<String> = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if !keys.insert(key) {
                *self.0 = self.0.saturating_add(1);
            }
            map.next_value_seed(Counts(self.0))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Counts(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_key_is_counted_however_it_is_written() {
        for (text, count) in [
            (r#"{"a":1,"b":{"a":1},"c":[{"a":1},{"a":null}]}"#, 0),
            (r#"{"a":1,"a":1}"#, 1),
            (r#"{"a":1,"\u0061":1.5,"x":[true,{"b":{},"b":{"c":1,"c":2}}]}"#, 3),
            (r#""a""#, 0),
            ("words", 0),
        ] {
            assert_eq!(repeated(text.as_bytes()), count, "{text}");
        }
    }
}
