//! Reading JSON: what is accepted, what it means, and every documented refusal.

use crate::common::json_tree::{Mode, base64, meaning, read, refusal};
use crate::common::tree::{Tree, foreign};
use syscap_format::json::{JsonFault, from_data, from_item, to_cbor};
use syscap_format::{Canonical, DecodeFault, Item, MapBuilder, Profile};

fn serde(text: &str) -> Option<Tree> {
    meaning(&serde_json::from_str(text).ok()?, Mode::Arguments)
}

#[test]
fn values_mean_what_serde_json_says() {
    for text in [
        "null",
        "true",
        "false",
        "0",
        "7",
        "-1",
        "-9223372036854775808",
        "18446744073709551615",
        "1.0",
        "-0.0",
        "0.5",
        "1e3",
        "1E+3",
        "25e-1",
        "0e0",
        "\"\"",
        "\"a\"",
        " [ ] ",
        "\t{\r}\n",
        "[1,2,[3]]",
        "{\"a\":1,\"b\":{\"c\":[null]}}",
        r#""\"\\\/\b\f\n\r\t\u0041\u00e9\u0000""#,
        r#""\ud83d\ude00 \uD83D\uDE00 \ufeff""#,
        "\"\u{e9}\u{6c34}\u{1f600}\u{7f}\u{2028}\"",
        r#"{"":0,"aa":1,"b":2}"#,
        r#"{"$bytes":""}"#,
        r#"{"$bytes":"AAECAw=="}"#,
        r#"{"\u0024bytes":"\u0041A=="}"#,
        r#"{"$ref":{"record":3,"path":["a",0,"$lit"]}}"#,
        r#"{"$ref":{"path":[],"record":0}}"#,
        r#"{"$lit":{"$bytes":"no base64"}}"#,
        r#"{"$lit":{"$ref":0}}"#,
        r#"{"$lit":1}"#,
        r#"{"$lit":{"$lit":{"$bytes":"AA=="}}}"#,
        r#"{"$lit":[{"$lit":0},{"$bytes":""}]}"#,
        r#"{"$bytes":"AA==","x":1}"#,
        r#"{"$ref":0,"x":1}"#,
        r#"{"$other":1}"#,
        r#"{"$":{}}"#,
        r#"{"$lit" : {"$bytes" : "AA=="} , "x":1}"#,
        r#"{"x":1,"$lit":{"$bytes":"AA=="}}"#,
        r#"{"$lit":{"$lit":{"$bytes":"AA=="},"x":1},"y":2}"#,
        r#"{"$Bytes":"!"}"#,
        r#"{"$lit":["}",{"a":"\"}"}] }"#,
    ] {
        assert_eq!(read(text).ok(), Some(serde(text).expect(text)), "{text}");
    }
}

#[test]
fn bytes_are_exact() {
    for (text, hex) in [
        ("[1, 1.0, -1]", "8301f93c0020"),
        (r#"{"bb":1,"c":2,"a":3}"#, "a361610361630262626201"),
        (r#"{"$bytes":"/+8="}"#, "42ffef"),
        (r#"{"$lit":{"$bytes":"/+8="}}"#, "a164246c6974a166246279746573642f2b383d"),
        ("18446744073709551615", "1bffffffffffffffff"),
        ("-9223372036854775808", "3b7fffffffffffffff"),
        ("1e300", "fb7e37e43c8800759c"),
        ("65536.0", "fa47800000"),
        ("-0.0", "f98000"),
    ] {
        let found: String = to_cbor(text.as_bytes())
            .unwrap()
            .as_bytes()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(found, hex, "{text}");
    }
}

#[test]
fn grammar_faults() {
    use JsonFault::{Control, End, Escape, LeadingZero, Number, Trailing, Unexpected, Utf8};
    for (text, fault, at) in [
        ("", End, 0),
        (" \n", End, 2),
        ("[", End, 1),
        ("[1", End, 2),
        ("[1,", End, 3),
        ("{\"a\"", End, 4),
        ("{\"a\":", End, 5),
        ("\"a", End, 2),
        ("\"\\", End, 2),
        ("\"\\u00", End, 5),
        ("-", End, 1),
        ("1.", End, 2),
        ("1e", End, 2),
        ("1e+", End, 3),
        ("1 2", Trailing, 2),
        ("[]]", Trailing, 2),
        ("1a", Trailing, 1),
        ("0x10", Trailing, 1),
        ("[1,]", Unexpected, 3),
        ("[,1]", Unexpected, 1),
        ("[1 2]", Unexpected, 3),
        ("[1}", Unexpected, 2),
        ("{\"a\":1,}", Unexpected, 7),
        ("{\"a\" 1}", Unexpected, 5),
        ("{a:1}", Unexpected, 1),
        ("{1:1}", Unexpected, 1),
        ("tru", Unexpected, 0),
        ("nul", Unexpected, 0),
        ("NaN", Unexpected, 0),
        ("Infinity", Unexpected, 0),
        ("+1", Unexpected, 0),
        (".5", Unexpected, 0),
        ("'a'", Unexpected, 0),
        ("// c\n1", Unexpected, 0),
        ("\u{b}1", Unexpected, 0),
        ("\u{a0}1", Unexpected, 0),
        ("\0", Unexpected, 0),
        ("-a", Number, 1),
        ("1.e3", Number, 2),
        ("1e.5", Number, 2),
        ("-Infinity", Number, 1),
        ("01", LeadingZero, 0),
        ("[-01]", LeadingZero, 1),
        ("00.5", LeadingZero, 0),
        ("\"a\nb\"", Control, 2),
        ("\"a\\n\tb\"", Control, 4),
        ("\"\0\"", Control, 1),
        ("{\"\u{1f}\":1}", Control, 2),
        ("\"\\x41\"", Escape, 1),
        ("\"\\u00g0\"", Escape, 1),
        ("\"\\U0041\"", Escape, 1),
        ("\"a\\'\"", Escape, 2),
    ] {
        assert_eq!(refusal(text), (fault, at), "{text:?}");
        assert!(serde_json::from_str::<serde_json::Value>(text).is_err(), "{text:?}");
    }
    for (bytes, at) in [(&b"\"a\xff\""[..], 2), (b"\xc0\x80", 0), (b"\"\xed\xa0\x80\"", 1)] {
        assert_eq!(refusal(bytes), (Utf8, at));
    }
}

#[test]
fn differs_from_serde_json_in_duplicate_keys() {
    for (text, at) in [
        (r#"{"a":1,"a":2}"#, 7),
        (r#"{"a":1,"b":2,"\u0061":1}"#, 13),
        (r#"{"b":1,"a":1,"b":1,"a":1}"#, 13),
        (r#"{"$bytes":"AA==","$bytes":"AA=="}"#, 17),
        (r#"{"$lit":{"a":1,"a":1}}"#, 15),
    ] {
        assert!(serde_json::from_str::<serde_json::Value>(text).is_ok());
        assert_eq!(refusal(text), (JsonFault::DuplicateKey, at), "{text}");
    }
}

#[test]
fn differs_from_serde_json_in_big_integers() {
    let long = "9".repeat(400);
    for text in ["18446744073709551616", "-9223372036854775809", "99999999999999999999"] {
        assert!(serde_json::from_str::<f64>(text).is_ok());
        assert_eq!(refusal(text), (JsonFault::IntRange, 0), "{text}");
    }
    assert_eq!(refusal(&long), (JsonFault::IntRange, 0));
    assert_eq!(refusal(format!("[-{long}]")), (JsonFault::IntRange, 1));
}

#[test]
fn differs_from_serde_json_in_negative_zero() {
    assert!(serde_json::from_str::<f64>("-0").is_ok());
    assert_eq!(refusal("[-0]"), (JsonFault::NegativeZero, 1));
    for text in ["-0.0", "-0e5", "-0.00e-1"] {
        assert_eq!(read(text), Ok(Tree::float(-0.0)), "{text}");
    }
}

#[test]
fn lone_surrogates_and_byte_order_marks_are_refused() {
    for text in [
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800\ud800""#,
        r#""\ud800x""#,
        r#""\ud800\n""#,
        r#""\udc00\ud800""#,
        r#""\udbff\u0041""#,
    ] {
        assert!(serde_json::from_str::<String>(text).is_err());
        assert_eq!(refusal(text), (JsonFault::Surrogate, 1), "{text}");
    }
    assert_eq!(refusal("\u{feff}1"), (JsonFault::Bom, 0));
    assert_eq!(refusal("[\u{feff}]"), (JsonFault::Unexpected, 1));
    assert_eq!(read("\"\u{feff}\""), Ok(Tree::text("\u{feff}")));
}

#[test]
fn floats_are_the_nearest_and_never_infinite() {
    for text in [
        "0.1",
        "1.0",
        "1e23",
        "9007199254740993.0",
        "2.2250738585072011e-308",
        "5e-324",
        "2.4703282292062327e-324",
        "1.7976931348623157e308",
        "179769313486231570000.0e288",
        "0.000000000000000000000000000000000000000000000000000000000001",
        "1e-400",
        "7.2057594037927933e16",
        "8.5e-5",
        "123456789012345678901234567890.5",
    ] {
        let nearest = Tree::float(text.parse().unwrap());
        assert_eq!(read(text), Ok(nearest), "{text}");
    }
    for text in ["1e309", "-1e309", "1.7976931348623159e308", "1e999999999999999999999"] {
        assert_eq!(refusal(text), (JsonFault::FloatRange, 0), "{text}");
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
fn references_have_exactly_one_form() {
    for value in [
        "0",
        "null",
        "[]",
        "{}",
        r#"{"record":1}"#,
        r#"{"path":[]}"#,
        r#"{"record":-1,"path":[]}"#,
        r#"{"record":1.0,"path":[]}"#,
        r#"{"record":"1","path":[]}"#,
        r#"{"record":1,"path":"a"}"#,
        r#"{"record":1,"path":{}}"#,
        r#"{"record":1,"path":[-1]}"#,
        r#"{"record":1,"path":[null]}"#,
        r#"{"record":1,"path":[["a"]]}"#,
        r#"{"record":1,"path":[0.0]}"#,
        r#"{"record":1,"path":[{"$bytes":""}]}"#,
        r#"{"record":1,"path":[],"x":0}"#,
        r#"{"Record":1,"path":[]}"#,
        r#"{"record":1,"qath":[]}"#,
        r#"{"$lit":{"record":1,"path":[]}}"#,
    ] {
        assert_eq!(
            refusal(format!("[{{\"$ref\":{value}}}]")),
            (JsonFault::Reference, 1),
            "{value}"
        );
        assert!(read(format!("{{\"$lit\":{{\"$ref\":{value}}}}}")).is_ok(), "{value}");
        assert!(read(format!("{{\"x\":0,\"$ref\":{value}}}")).is_ok(), "{value}");
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
