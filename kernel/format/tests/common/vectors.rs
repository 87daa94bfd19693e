//! The conformance vectors of `docs/spec/cbor.md`.
#![allow(dead_code, clippy::unwrap_used, reason = "tests; not every test uses everything")]

use std::fs;
use std::path::Path;

use serde_json::Value;
use syscap_format::{Item, Profile};

use super::tree::{Tree, walk};

pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().map(|digit| u8::try_from(digit.to_digit(16).unwrap()).unwrap()).collect();
    let (pairs, rest) = digits.as_chunks::<2>();
    assert!(rest.is_empty());
    pairs.iter().map(|[high, low]| high << 4 | low).collect()
}

/// The vectors of a file that are of a kind.
pub(crate) fn cases(file: &str, kind: &str) -> Vec<Value> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = package.ancestors().map(|above| above.join("tests/conformance/vectors"));
    let path = folders.find(|folder| folder.is_dir()).unwrap().join(file);
    let file: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let cases = file["cases"].as_array().unwrap().iter();
    cases.filter(|case| case["kind"] == kind).cloned().collect()
}

/// The bytes under a key of a vector.
pub(crate) fn bytes(case: &Value, key: &str) -> Vec<u8> {
    hex(case[key].as_str().unwrap())
}

/// Encodings that the profile `DATA` takes and that are not deep, in hexadecimal, and what they
/// mean.
pub(crate) fn valid() -> Vec<(String, Tree)> {
    let cases = cases("cbor.json", "item").into_iter();
    let valid = cases.filter(|case| {
        case["result"] == "valid"
            && case["profile"] == "DATA"
            && case["requirement"] != "SYSCAP-CBOR-014"
    });
    valid
        .map(|case| {
            let bytes = bytes(&case, "bytes");
            let tree = walk(Item::check(&bytes, Profile::DATA).unwrap());
            (case["bytes"].as_str().unwrap().to_owned(), tree)
        })
        .collect()
}
