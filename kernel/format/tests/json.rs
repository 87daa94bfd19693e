//! Reading JSON: what is accepted, what it means, and every documented refusal.

use crate::common::json_tree::{Mode, alike, base64, meaning, read, refusal};
use crate::common::tree::{Tree, foreign};
use crate::common::vectors::{bytes, cases};
use syscap_format::json::{Escapes, JsonFault, arguments, from_data, from_item, to_cbor};
use syscap_format::{Canonical, DecodeFault, Item, MapBuilder, Profile};

/// What converts means what `serde_json` says, and has the bytes of the vector.
#[test]
fn texts_convert_and_are_refused_as_the_vectors_say() {
    for case in cases("json.json", "json") {
        let text = bytes(&case, "text");
        let found = to_cbor(&text);
        assert_eq!(found.is_ok(), case["result"] == "valid", "{case}");
        let Ok(found) = found else { continue };
        assert_eq!(found.as_bytes(), bytes(&case, "cbor"), "{case}");
        // It refuses numbers that are all but infinite.
        if let Ok(value) = serde_json::from_slice(&text) {
            let theirs = meaning(&value, Mode::Arguments).unwrap_or_else(|| panic!("{case}"));
            assert!(alike(&read(&text).unwrap(), &theirs), "{case}");
        }
    }
    for case in cases("json.json", "print") {
        let item = bytes(&case, "bytes");
        let text = from_item(Item::check(&item, Profile::DATA).unwrap());
        assert_eq!(case["text"], text, "{case}");
    }
    for case in cases("json.json", "arguments") {
        let found = arguments(&bytes(&case, "text"), Escapes::Data);
        let found = found.map(|found| found.as_bytes().to_vec()).ok();
        let wanted = (case["result"] == "valid").then(|| bytes(&case, "cbor"));
        assert_eq!(found, wanted, "{case}");
    }
}

/// Each fault by its name, and the place of the byte that a person is shown.
#[test]
fn each_fault_has_its_place() {
    use JsonFault as Fault;
    for (text, fault, at) in [
        (" \n", Fault::End, 2),
        ("[1,", Fault::End, 3),
        ("\"\\u00", Fault::End, 5),
        ("1e+", Fault::End, 3),
        ("[]]", Fault::Trailing, 2),
        ("[1,]", Fault::Unexpected, 3),
        ("{\"a\":1,}", Fault::Unexpected, 7),
        ("[\u{feff}]", Fault::Unexpected, 1),
        ("1e.5", Fault::Number, 2),
        ("[-01]", Fault::LeadingZero, 1),
        ("\"a\nb\"", Fault::Control, 2),
        ("\"a\\'\"", Fault::Escape, 2),
        (r#"{"a":1,"b":2,"\u0061":1}"#, Fault::DuplicateKey, 13),
        (r#"{"b":1,"a":1,"b":1,"a":1}"#, Fault::DuplicateKey, 13),
        ("[-99999999999999999999]", Fault::IntRange, 1),
        ("[-0]", Fault::NegativeZero, 1),
        (r#""\ud800x""#, Fault::Surrogate, 1),
        ("\u{feff}1", Fault::Bom, 0),
        ("-1e309", Fault::FloatRange, 0),
        (r#"[{"$ref":{"path":[]}}]"#, Fault::Reference, 1),
        (r#"[{"$bytes":"AB=="}]"#, Fault::Bytes, 1),
    ] {
        assert_eq!(refusal(text), (fault, at), "{text:?}");
    }
    for (bytes, at) in [(&b"\"a\xff\""[..], 2), (b"\xc0\x80", 0), (b"\"\xed\xa0\x80\"", 1)] {
        assert_eq!(refusal(bytes), (Fault::Utf8, at));
    }
}

#[test]
fn depth_is_that_of_the_cbor() {
    let nest = |open: &str, inner: &str, close: &str, levels: usize| {
        format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
    };
    let bytes = r#"{"$bytes":"AA=="}"#;
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{\"$lit\":", "}"), ("[{\"b\":", "}]")] {
        let levels = 64 / open.matches(['[', '{']).count();
        let full = nest(open, "0", close, levels);
        assert_eq!(usize::from(Profile::DATA.depth_max()), read(full).unwrap().depth());
        for inner in ["[]", "{}", "{\"a\":0}", "{\"$lit\":0}", "{\"$bytes\":\"\",\"a\":0}"] {
            let at = levels * open.len();
            let found = refusal(nest(open, inner, close, levels));
            assert_eq!(found, (JsonFault::Depth, at), "{open} {inner}");
        }
        // A `$bytes` is no map in the CBOR, unless it stands in a `$lit`.
        let found = read(nest(open, bytes, close, levels)).map(|tree| tree.depth());
        assert_eq!(found.ok(), (!open.contains("$lit")).then_some(64), "{open}");
        let below = format!("{{\"$bytes\":{bytes}}}");
        assert!(read(nest(open, &below, close, levels)).is_err());
        let below = nest(open, "{\"$bytes\":[[[[", "", levels);
        assert_eq!(read(below).unwrap_err().fault, JsonFault::Depth);
    }
}

#[test]
fn bytes_take_strict_base64_only() {
    let wrap = |text: &str| format!("[{{\"$bytes\":\"{text}\"}}]");
    let all: String = (0..=255).map(char::from).filter(char::is_ascii_graphic).collect();
    let mut texts: Vec<String> = [
        "",
        "AA==",
        "AAA=",
        "AAAA",
        "+/+/",
        "AB==",
        "AAB=",
        "AA",
        "AAA",
        "A",
        "A===",
        "====",
        "=",
        "AA=A",
        "A=AA",
        "AA==AA==",
        "AAAAAA==",
        "AA= =",
        " AA==",
        "AA==\\n",
        "AA\\n==",
        "-_==",
        "AA--",
        "QUJD",
        "QUI=",
        "QQ==",
        "QR==",
        "QUJ=",
        "AAA\u{e9}",
        "\u{e9}A==",
        "zzzz",
        "////",
    ]
    .map(String::from)
    .to_vec();
    for a in all.chars().filter(|c| *c != '"' && *c != '\\') {
        texts.extend([format!("A{a}=="), format!("AA{a}="), format!("{a}AAA"), format!("AAA{a}")]);
    }
    let mut accepted = 0;
    for text in texts {
        let expected = base64(&text.replace("\\n", "\n"));
        match read(wrap(&text)) {
            Ok(tree) => {
                assert_eq!(tree, Tree::Array(vec![Tree::Bytes(expected.unwrap())]), "{text}");
                accepted += 1;
            }
            Err(error) => {
                assert_eq!((error.fault, error.at), (JsonFault::Bytes, 1), "{text}");
                assert_eq!(expected, None, "{text}");
            }
        }
    }
    // 11 of the list; 4 second, 16 third, 64 first and 64 fourth digits; AA== and AAA= again.
    assert_eq!(accepted, 161);
    for value in ["5", "null", "[]", "{}", "{\"$bytes\":\"\"}", "{\"$lit\":\"\"}"] {
        assert_eq!(refusal(format!("{{\"$bytes\":{value}}}")), (JsonFault::Bytes, 0), "{value}");
    }
}

#[test]
fn printing_is_exact() {
    let map = |key: &str, value: Tree| Tree::map([(key, value)]);
    for (tree, text) in [
        (Tree::Null, "null"),
        (Tree::Bool(true), "true"),
        (Tree::Uint(u64::MAX), "18446744073709551615"),
        (Tree::Negative(0x7fff_ffff_ffff_ffff), "-9223372036854775808"),
        (Tree::float(1.0), "1.0"),
        (Tree::float(-0.0), "-0.0"),
        (Tree::float(1e300), "1e300"),
        (Tree::float(5e-324), "5e-324"),
        (Tree::float(1e16), "1e16"),
        (Tree::float(0.1), "0.1"),
        (Tree::Bytes(vec![]), r#"{"$bytes":""}"#),
        (Tree::Bytes(vec![0xff]), r#"{"$bytes":"/w=="}"#),
        (Tree::Bytes(vec![0xff, 0xef]), r#"{"$bytes":"/+8="}"#),
        (Tree::Bytes(vec![0, 1, 2, 3]), r#"{"$bytes":"AAECAw=="}"#),
        (Tree::Array(vec![]), "[]"),
        (Tree::Array(vec![Tree::Uint(1), Tree::Uint(2)]), "[1,2]"),
        (Tree::map::<String>([]), "{}"),
        (Tree::map([("bb", Tree::Uint(1)), ("c", Tree::Null)]), r#"{"c":null,"bb":1}"#),
        (
            Tree::Uints(vec![(0, Tree::Uint(7)), (24, Tree::Uints(vec![(1, Tree::Null)]))]),
            r#"{"0":7,"24":{"1":null}}"#,
        ),
        (map("$lit", map("$bytes", Tree::Null)), r#"{"$lit":{"$bytes":null}}"#),
        (map("$bytes", Tree::Null), r#"{"$lit":{"$bytes":null}}"#),
        (map("$ref", map("$lit", Tree::Null)), r#"{"$lit":{"$ref":{"$lit":null}}}"#),
        (Tree::text("\"\\/\u{e9}\u{1f600}"), "\"\\\"\\\\/\u{e9}\u{1f600}\""),
        (Tree::text("\n\r\t\u{8}\0\u{1b}[2J"), r#""\n\r\t\u0008\u0000\u001b[2J""#),
        (Tree::text("\u{7f}\u{85}\u{9b}\u{2028}\u{2029}"), r#""\u007f\u0085\u009b\u2028\u2029""#),
        (Tree::text("\u{202e}\u{2066}\u{feff}"), r#""\u202e\u2066\ufeff""#),
        (Tree::text("\u{e0041}"), r#""\udb40\udc41""#),
        (map("\u{1b}", Tree::Null), r#"{"\u001b":null}"#),
    ] {
        assert_eq!(from_item(foreign(&tree).item()), text);
    }
}

/// The map builder does not count depth, so it can make what the profile refuses.
#[test]
fn an_item_nested_too_deep_prints_as_null() {
    let nest = |levels: usize| {
        let wrap = |inner: Canonical, _| MapBuilder::new().item("a", inner.item()).finish();
        (0..levels).fold(Canonical::null(), wrap)
    };
    let (full, over) = (nest(64), nest(65));
    assert_eq!(to_cbor(from_item(full.item()).as_bytes()), Ok(full));
    let refused = Item::check(over.as_bytes(), Profile::DATA).unwrap_err();
    assert_eq!(refused.fault, DecodeFault::Depth);
    assert_eq!(from_item(over.item()), "null");
    assert_eq!(from_data(over.item()), "null");
}
