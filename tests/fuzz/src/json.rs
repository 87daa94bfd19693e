//! JSON: what is read is printed to what reads the same, and so is whatever is canonical.

use syscap::format::json::{JsonFault, from_data, from_item, to_cbor};
use syscap::format::{Item, Profile};

pub fn json(data: &[u8]) {
    match to_cbor(data) {
        Ok(read) => {
            assert_eq!(Item::check(read.as_bytes(), Profile::DATA), Ok(read.item()));
            assert_eq!(to_cbor(from_item(read.item()).as_bytes()), Ok(read));
            // Another reader takes it too: this one is the stricter.
            serde_json::from_slice::<serde_json::Value>(data).unwrap();
        }
        Err(error) => assert!(error.at <= data.len()),
    }
    let Ok(item) = Item::check(data, Profile::DATA) else { return };
    for printed in [from_item(item), from_data(item)] {
        serde_json::from_str::<serde_json::Value>(&printed).unwrap();
        match to_cbor(printed.as_bytes()) {
            Ok(read) => assert_eq!(to_cbor(from_item(read.item()).as_bytes()), Ok(read)),
            // A map that can only be data is wrapped, and that takes a level.
            Err(error) => assert_eq!(error.fault, JsonFault::Depth),
        }
    }
}
