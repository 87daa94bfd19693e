//! JSON: the laws of reading and printing, serde_json as oracle, damaged and large texts.

use crate::common::json_tree::{Mode, alike, is_reference, is_yield, lone, meaning, read};
use crate::common::tree::{Flavour, Tree, cases, foreign, trees, walk};
use proptest::prelude::*;
use syscap_format::json::{Escapes, JsonFault, arguments, from_data, from_item, to_cbor, to_data};
use syscap_format::{Item, ItemKind, Profile};

fn with_children(tree: &Tree, change: &dyn Fn(&Tree) -> Tree) -> Tree {
    match tree {
        Tree::Array(items) => Tree::Array(items.iter().map(change).collect()),
        Tree::Texts(entries) => {
            Tree::Texts(entries.iter().map(|(key, value)| (key.clone(), change(value))).collect())
        }
        _ => tree.clone(),
    }
}

/// Made one that `to_cbor` can yield.
fn tame(tree: &Tree, mode: Mode) -> Tree {
    match (mode, lone(tree), tree) {
        (Mode::Literal, _, Tree::Bytes(_)) => Tree::Null,
        (Mode::Arguments, Some(("$bytes", value)), _) => Tree::map([("bytes$", tame(value, mode))]),
        (Mode::Arguments, Some(("$ref", value)), _) if !is_reference(value) => {
            Tree::map([("ref$", tame(value, mode))])
        }
        (Mode::Arguments, Some(("$lit", value)), _) => {
            Tree::map([("$lit", tame(value, Mode::Literal))])
        }
        _ => with_children(tree, &|child| tame(child, mode)),
    }
}

/// No byte strings inside maps with the one key `$bytes`, `$ref` or `$lit`.
fn plain(tree: &Tree, inside: bool) -> Tree {
    if inside && matches!(tree, Tree::Bytes(_)) {
        return Tree::Null;
    }
    let escape = matches!(lone(tree), Some(("$bytes" | "$ref" | "$lit", _)));
    with_children(tree, &|child| plain(child, inside || escape))
}

/// A `$lit` around each map that can't be an escape.
fn wrapped(tree: &Tree) -> Tree {
    match lone(tree) {
        Some(("$lit", _)) => tree.clone(),
        Some(("$bytes", _)) => Tree::map([("$lit", tree.clone())]),
        Some(("$ref", value)) if !is_reference(value) => Tree::map([("$lit", tree.clone())]),
        _ => with_children(tree, &wrapped),
    }
}

/// Each outermost `{"$lit": v}` replaced by `v`.
fn bare(tree: &Tree) -> Tree {
    match lone(tree) {
        Some(("$lit", value)) => value.clone(),
        _ => with_children(tree, &bare),
    }
}

/// Printed text holds nothing that a terminal acts on, and serde_json reads it alike.
fn is_clean(text: &str) -> bool {
    let hidden = |c: char| c.is_control() || ('\u{2028}'..='\u{202e}').contains(&c);
    !text.contains(hidden) && serde_json::from_str::<serde_json::Value>(text).is_ok()
}

/// Whether we accept the text; then serde_json does, with equal meaning, and the laws hold. What
/// it accepts and we don't has a documented fault.
fn agrees(text: &[u8]) -> bool {
    agrees_as_data(text);
    let theirs = serde_json::from_slice::<serde_json::Value>(text);
    let ours = match to_cbor(text) {
        Ok(ours) => ours,
        Err(error) => {
            assert!(error.at <= text.len());
            let documented = [
                JsonFault::DuplicateKey,
                JsonFault::IntRange,
                JsonFault::NegativeZero,
                JsonFault::Depth,
                JsonFault::Bytes,
                JsonFault::Reference,
            ];
            assert!(theirs.is_err() || documented.contains(&error.fault), "{error:?}");
            return false;
        }
    };
    assert_eq!(Item::check(ours.as_bytes(), Profile::DATA), Ok(ours.item()));
    let tree = walk(ours.item());
    assert_eq!(tree.bytes(), ours.as_bytes());
    assert!(is_yield(&tree, Mode::Arguments));
    let theirs = meaning(&theirs.unwrap(), Mode::Arguments).unwrap();
    assert!(alike(&tree, &theirs), "{tree:?} {theirs:?}");
    assert_eq!(to_cbor(from_item(ours.item()).as_bytes()), Ok(ours));
    true
}

/// Whether a map of the tree would be a reference or a literal in arguments.
fn like_escapes(tree: &Tree) -> bool {
    let below = match tree {
        Tree::Array(items) => items.iter().any(like_escapes),
        Tree::Texts(entries) => entries.iter().any(|(_, value)| like_escapes(value)),
        _ => false,
    };
    below || matches!(lone(tree), Some(("$ref" | "$lit", _)))
}

/// As data the text is what serde_json takes it for, escapes and all; as arguments it is the same,
/// or stands within one literal where anything in it would be an escape.
fn agrees_as_data(text: &[u8]) {
    let Ok(ours) = to_data(text) else {
        let refused = arguments(text, Escapes::Data);
        let blank = text.iter().all(u8::is_ascii_whitespace);
        return assert!(refused.is_err() || (blank && refused.unwrap().as_bytes() == [0xa0]));
    };
    let theirs = serde_json::from_slice::<serde_json::Value>(text).unwrap();
    let tree = walk(ours.item());
    assert!(is_yield(&tree, Mode::Literal));
    assert!(alike(&tree, &meaning(&theirs, Mode::Literal).unwrap()), "{tree:?} {theirs:?}");
    let escaped = like_escapes(&tree) && ours.item().kind() == ItemKind::Map;
    match arguments(text, Escapes::Data) {
        Ok(args) if escaped => assert_eq!(args.item().get("$lit"), Some(ours.item())),
        Ok(args) => assert_eq!(args, ours),
        Err(error) => assert_eq!(error.fault, JsonFault::Depth),
    }
}

const CORPUS: &[&str] = &[
    r#"{"v":1,"tool_id":"fs.read","args":{"path":"a/b.txt","limit":4096,"x":[1.5,-2,null,true]}}"#,
    r#"{"$ref":{"record":12,"path":["body",0,"subject"]}}"#,
    r#"[{"$bytes":"AAECAwQ="},{"$lit":{"$bytes":"AA==","$ref":[{"$lit":-0.5e-3}]}}]"#,
    r#"{"$lit":{"$lit":[1,2]},"a":{"$lit":{"$bytes":"AAE="}}}"#,
    r#" "\u00e9\ud83d\ude00\\ \"quoted\" \/ \n" "#,
    r#"[18446744073709551615,-9223372036854775808,0.1,1e300,5E-324,-0.0,0,10,100]"#,
    r#"{"b":{},"a":[],"":"","aa":[[[[[]]]]],"$":0}"#,
];

#[test]
fn truncated_texts_are_refused() {
    let mut refused = 0;
    for text in CORPUS {
        assert!(agrees(text.as_bytes()), "{text}");
        for end in 0..text.trim_end().len() {
            assert!(!agrees(&text.as_bytes()[..end]), "{}", &text[..end]);
            refused += 1;
        }
    }
    assert!(refused > 300, "{refused}");
}

#[test]
fn every_byte_replaced_by_every_byte_never_panics() {
    let (mut accepted, mut refused) = (0, 0);
    for text in CORPUS {
        for place in 0..text.len() {
            for byte in 0..=255 {
                let mut bytes = text.as_bytes().to_vec();
                bytes[place] = byte;
                if agrees(&bytes) { accepted += 1 } else { refused += 1 }
            }
        }
    }
    assert!(accepted > 1000 && refused > 1000, "{accepted} {refused}");
}

proptest! {
    #![proptest_config(cases(2048))]

    #[test]
    fn reading_inverts_printing(tree in trees(Flavour::Json)) {
        let tree = tame(&tree, Mode::Arguments);
        prop_assert!(is_yield(&tree, Mode::Arguments));
        let cbor = foreign(&tree);
        let text = from_item(cbor.item());
        prop_assert!(is_clean(&text));
        prop_assert_eq!(to_cbor(text.as_bytes()), Ok(cbor));
    }

    #[test]
    fn data_only_values_print_as_data(tree in trees(Flavour::Json)) {
        let tree = plain(&tree, false);
        let text = from_item(foreign(&tree).item());
        prop_assert!(is_clean(&text));
        prop_assert_eq!(read(&text), Ok(wrapped(&tree)));
    }

    #[test]
    fn reading_inverts_printing_data_but_for_literals(tree in trees(Flavour::Json)) {
        let tree = plain(&tree, false);
        let text = from_data(foreign(&tree).item());
        prop_assert!(is_clean(&text));
        prop_assert_eq!(bare(&read(&text).unwrap()), tree);
    }

    #[test]
    fn any_item_prints_as_json(tree in trees(Flavour::All)) {
        let cbor = foreign(&tree);
        prop_assert!(is_clean(&from_item(cbor.item())));
        prop_assert!(is_clean(&from_data(cbor.item())));
    }

    #[test]
    fn edited_texts_agree_with_serde_json(
        text in prop::sample::select(CORPUS),
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..3_u8, r#"[\[\]{}:,"0-9eE.+\\ub\-$]{1,2}"#), 1..5),
    ) {
        let mut bytes = text.as_bytes().to_vec();
        for (place, kind, new) in edits {
            let place = place.index(bytes.len() + 1);
            let end = if kind == 0 { place } else { (place + usize::from(kind)).min(bytes.len()) };
            bytes.splice(place..end, new.bytes().filter(|_| kind < 2));
        }
        agrees(&bytes);
    }

    #[test]
    fn random_tokens_agree_with_serde_json(
        tokens in prop::collection::vec(prop::sample::select(&[
            "{", "}", "[", "]", ":", ",", "\"a\"", "\"$bytes\"", "\"$lit\"", "\"$ref\"",
            "\"AA==\"", "0", "-1", "1.5", "null", "\"record\"", "\"path\"", " ",
        ][..]), 0..12),
    ) {
        agrees(tokens.concat().as_bytes());
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..48)) {
        agrees(&bytes);
    }
}
