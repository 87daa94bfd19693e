//! Texts of a MiB, built so that work that grew with the square of their length would not end.

use syscap_format::Item;
use syscap_format::json::{JsonFault, from_data, from_item, to_cbor};

const MIB: usize = 1 << 20;

/// Repeats to about a MiB.
fn many(part: &str) -> (String, usize) {
    let count = MIB / part.len();
    (part.repeat(count), count)
}

/// A map of `count` entries whose values are 0.
fn wide(keys: impl Iterator<Item = String>) -> String {
    let entries: Vec<String> = keys.map(|key| format!("\"{key}\":0")).collect();
    format!("{{{}}}", entries.join(","))
}

fn fault(text: &str) -> (JsonFault, usize) {
    let error = to_cbor(text.as_bytes()).unwrap_err();
    (error.fault, error.at)
}

/// Prints and reads back to the same bytes.
fn returns(text: &str) -> usize {
    let cbor = to_cbor(text.as_bytes()).unwrap();
    let printed = from_item(cbor.item());
    assert_eq!(to_cbor(printed.as_bytes()), Ok(cbor.clone()));
    assert!(!from_data(cbor.item()).is_empty());
    cbor.as_bytes().len()
}

fn count(text: &str) -> usize {
    to_cbor(text.as_bytes()).unwrap().item().count()
}

#[test]
fn wide_maps_are_sorted_whatever_their_order() {
    let keys = || 0..80_000_usize;
    // 7,919 is prime and no divisor of 80,000, so this visits each key once.
    let mixed = keys().map(|n| n * 7_919 % 80_000);
    let expected = to_cbor(wide(keys().map(|n| format!("k{n}"))).as_bytes()).unwrap();
    for keys in [keys().rev().collect::<Vec<_>>(), mixed.collect()] {
        let text = wide(keys.iter().map(|n| format!("k{n}")));
        assert_eq!(to_cbor(text.as_bytes()).unwrap(), expected);
    }
    assert_eq!(expected.item().count(), 80_000);
    assert_eq!(expected.item().get("k79999").and_then(Item::as_uint), Some(0));
    assert!(from_item(expected.item()).len() > 700_000);
}

#[test]
fn a_duplicate_at_the_end_of_a_wide_map_is_found() {
    let mut text = wide((0..80_000).rev().map(|n| format!("k{n}")));
    text.truncate(text.len() - 1);
    let at = text.len() + 1;
    text.push_str(",\"k40000\":0}");
    assert_eq!(fault(&text), (JsonFault::DuplicateKey, at));
}

#[test]
fn long_keys_with_one_prefix_are_sorted() {
    let prefix = "p".repeat(1000);
    let text = wide((0..1000).rev().map(|n| format!("{prefix}{n:03}")));
    assert_eq!(count(&text), 1000);
    assert!(returns(&text) > 1_000_000);
}

#[test]
fn deep_texts_are_refused_at_the_first_level_too_many() {
    for open in ["[", "{\"a\":", "{\"$lit\":", "[{\"b\":", "{\"$bytes\":", "{\"\":0,\"$lit\":"] {
        let text = many(open).0;
        let levels = open.matches(['[', '{']).count();
        let (fault, at) = fault(&text);
        assert_eq!(fault, JsonFault::Depth);
        // A `$bytes` might have stood one level below the last.
        assert!(at / open.len() * levels <= 65, "{open} {at}");
    }
}

#[test]
fn a_wide_array_below_many_levels_is_moved_once_a_level() {
    let (zeros, count) = many("0,");
    for (open, close) in [
        ("[", "]"),
        ("{\"b\":", "}"),
        ("{\"b\":", ",\"a\":1}"),
        ("{\"$lit\":", "}"),
        // Not alone, so not literal: known only once the value's end is.
        ("{\"$lit\":", ",\"x\":1}"),
        ("{\"$ref\":", ",\"x\":1}"),
    ] {
        let text = format!("{}[{zeros}0]{}", open.repeat(63), close.repeat(63));
        assert!(returns(&text) > count);
    }
}

#[test]
fn many_small_escapes_are_read_alone() {
    for part in ["{\"$lit\":[]},", "{\"$bytes\":\"\"},", "{\"$lit\":{\"$lit\":0},\"a\":1},"] {
        let (parts, number) = many(part);
        let text = format!("[{parts}0]");
        assert_eq!(count(&text), number + 1);
        assert!(returns(&text) > number);
    }
    // Brackets in strings, and escaped quotes, are not counted.
    let (strings, number) = many("\"[{\\\"\",");
    assert_eq!(count(&format!("{{\"$lit\":[{strings}{{\"$bytes\":1}}]}}")), 1);
    assert!(number > 0);
}

#[test]
fn long_tokens_are_read_once() {
    let (digits, number) = many("7");
    assert_eq!(fault(&digits), (JsonFault::IntRange, 0));
    assert_eq!(to_cbor(format!("0.{digits}").as_bytes()).unwrap().as_bytes().len(), 9);
    assert_eq!(fault(&format!("{digits}.0")), (JsonFault::FloatRange, 0));
    assert_eq!(fault(&format!("\"{digits}")), (JsonFault::End, number + 1));
    let (escapes, number) = many("\\u0000");
    assert_eq!(returns(&format!("\"{escapes}\"")), number + 5);
    let (pairs, number) = many("\\ud83d\\ude00");
    assert_eq!(returns(&format!("\"{pairs}\"")), 4 * number + 5);
    let (base64, number) = many("AAEC");
    assert_eq!(returns(&format!("{{\"$bytes\":\"{base64}\"}}")), 3 * number + 5);
    let (space, _) = many(" ");
    assert_eq!(returns(&format!("{space}[{space}]{space}")), 1);
}
