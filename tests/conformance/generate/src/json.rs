//! Vectors of `cbor.md`, JSON: what converts, to which bytes, and what is refused.

use serde_json::json;
use syscap_format::json::{Escapes, arguments, from_item, to_cbor};
use syscap_format::{Item, Profile};

use crate::case::{Cases, Of, hex, unhex};

/// Texts that convert, each with its bytes where it is short; and texts that are refused.
const TEXTS: &[(Of, &[&str], &[&str])] = &[
    (
        Of("SYSCAP-JSON-001", "two readers of lax JSON see two different calls"),
        &["null", "true", "false", " [ ] ", "\t{\r}\n", "\"\"", r#"{"a":1,"b":{"c":[null]}}"#],
        &[
            "",
            " \n",
            "[",
            "[1",
            "[1,",
            "{\"a\"",
            "{\"a\":",
            "\"a",
            "\"\\",
            "\"\\u00",
            "-",
            "1.",
            "1e",
            "1e+",
            "1 2",
            "[]]",
            "1a",
            "0x10",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1}",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "{a:1}",
            "{1:1}",
            "tru",
            "nul",
            "NaN",
            "Infinity",
            "+1",
            ".5",
            "'a'",
            "// c\n1",
            "\u{b}1",
            "\u{a0}1",
            "\0",
            "-a",
            "1.e3",
            "1e.5",
            "-Infinity",
            "01",
            "[-01]",
            "00.5",
            "\"a\nb\"",
            "\"\0\"",
            "{\"\u{1f}\":1}",
            "\"\\x41\"",
            "\"\\u00g0\"",
            "\"\\U0041\"",
            "\"a\\'\"",
        ],
    ),
    (
        Of("SYSCAP-JSON-002", "a mark that one reader skips is a fault to the next"),
        &["\"\u{feff}\""],
        &["\u{feff}1", "\u{feff}{}", "[\u{feff}]"],
    ),
    (
        Of("SYSCAP-JSON-004", "the check reads the first of two keys, and the tool the last"),
        &[r#"{"a":1,"A":2}"#, r#"{"a":{"a":1}}"#],
        &[
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"b":2,"\u0061":1}"#,
            r#"{"b":1,"a":1,"b":1,"a":1}"#,
            r#"{"$bytes":"AA==","$bytes":"AA=="}"#,
            r#"{"$lit":{"a":1,"a":1}}"#,
        ],
    ),
    (
        Of("SYSCAP-JSON-005", "an integer is rounded before it is compared with a limit"),
        &["18446744073709551615", "-9223372036854775808"],
        &[
            "18446744073709551616",
            "-9223372036854775809",
            "99999999999999999999",
            "[-1000000000000000000000000]",
        ],
    ),
    (
        Of("SYSCAP-JSON-006", "one reader sees an integer, the next a float"),
        &["0", "-0.0", "-0e5"],
        &["-0", "[-0]", "{\"a\":-0}"],
    ),
    (
        Of("SYSCAP-JSON-007", "a number becomes infinite, and above every limit"),
        &["1.7976931348623157e308", "1e-400"],
        &["1e309", "-1e309", "1.7976931348623159e308", "1e999999999999999999999"],
    ),
    (
        Of("SYSCAP-JSON-008", "half a character is replaced, so two texts become one"),
        &[r#""\ud83d\ude00 \uD83D\uDE00 \ufeff""#],
        &[
            r#""\ud800""#,
            r#""\udc00""#,
            r#""\ud800\ud800""#,
            r#""\ud800x""#,
            r#""\ud800\n""#,
            r#""\udc00\ud800""#,
            r#""\udbff\u0041""#,
        ],
    ),
    (
        Of("SYSCAP-JSON-010", "a float is truncated, or taken for an integer"),
        &[
            "1.0",
            "0.5",
            "1e3",
            "1E+3",
            "25e-1",
            "0e0",
            "0.1",
            "1e23",
            "9007199254740993.0",
            "2.2250738585072011e-308",
            "5e-324",
            "2.4703282292062327e-324",
            "179769313486231570000.0e288",
            "7.2057594037927933e16",
            "123456789012345678901234567890.5",
            "65536.0",
        ],
        &[],
    ),
    (
        Of("SYSCAP-JSON-011", "a large integer loses its last digits"),
        &["7", "-1", "9007199254740993", "18446744073709551614"],
        &[],
    ),
    (
        Of("SYSCAP-JSON-012", "entries keep the order of the text, so one meaning has two hashes"),
        &[r#"{"bb":1,"c":2,"a":3}"#, r#"{"":0,"aa":1,"b":2}"#, "[1, 1.0, -1]"],
        &[],
    ),
    (
        Of("SYSCAP-JSON-013", "lax base64 lets two texts mean one value"),
        &[
            r#"{"$bytes":""}"#,
            r#"{"$bytes":"AAECAw=="}"#,
            r#"{"$bytes":"/+8="}"#,
            r#"{"$bytes":"AAA="}"#,
            r#"{"\u0024bytes":"\u0041A=="}"#,
            r#"{"$bytes":"QUJD"}"#,
        ],
        &[
            r#"{"$bytes":"AB=="}"#,
            r#"{"$bytes":"AAB="}"#,
            r#"{"$bytes":"AA"}"#,
            r#"{"$bytes":"AAA"}"#,
            r#"{"$bytes":"A"}"#,
            r#"{"$bytes":"===="}"#,
            r#"{"$bytes":"AA=A"}"#,
            r#"{"$bytes":"AA==AA=="}"#,
            r#"{"$bytes":"AA= ="}"#,
            r#"{"$bytes":" AA=="}"#,
            r#"{"$bytes":"AA==\n"}"#,
            r#"{"$bytes":"-_=="}"#,
            r#"{"$bytes":5}"#,
            r#"{"$bytes":null}"#,
            r#"{"$bytes":[]}"#,
            r#"{"$bytes":{"$bytes":""}}"#,
        ],
    ),
    (
        Of("SYSCAP-JSON-014", "a reference leads somewhere that the check did not look"),
        &[r#"{"$ref":{"record":3,"path":["a",0,"$lit"]}}"#, r#"{"$ref":{"path":[],"record":0}}"#],
        &[
            r#"{"$ref":0}"#,
            r#"{"$ref":{}}"#,
            r#"{"$ref":{"record":1}}"#,
            r#"{"$ref":{"path":[]}}"#,
            r#"{"$ref":{"record":-1,"path":[]}}"#,
            r#"{"$ref":{"record":1.0,"path":[]}}"#,
            r#"{"$ref":{"record":"1","path":[]}}"#,
            r#"{"$ref":{"record":1,"path":"a"}}"#,
            r#"{"$ref":{"record":1,"path":[-1]}}"#,
            r#"{"$ref":{"record":1,"path":[null]}}"#,
            r#"{"$ref":{"record":1,"path":[["a"]]}}"#,
            r#"{"$ref":{"record":1,"path":[{"$bytes":""}]}}"#,
            r#"{"$ref":{"record":1,"path":[],"x":0}}"#,
            r#"{"$ref":{"Record":1,"path":[]}}"#,
        ],
    ),
    (
        Of("SYSCAP-JSON-015", "data that looks like an escape becomes one"),
        &[
            r#"{"$lit":{"$bytes":"no base64"}}"#,
            r#"{"$lit":{"$ref":0}}"#,
            r#"{"$lit":1}"#,
            r#"{"$lit":{"$lit":{"$bytes":"AA=="}}}"#,
            r#"{"$lit":[{"$lit":0},{"$bytes":""}]}"#,
            r#"{"$lit":["}",{"a":"\"}"}] }"#,
        ],
        &[],
    ),
    (
        Of("SYSCAP-JSON-016", "an argument of that name can't be sent"),
        &[
            r#"{"$bytes":"AA==","x":1}"#,
            r#"{"$ref":0,"x":1}"#,
            r#"{"$other":1}"#,
            r#"{"$":{}}"#,
            r#"{"$Bytes":"!"}"#,
            r#"{"x":1,"$lit":{"$bytes":"AA=="}}"#,
            r#"{"$lit":{"$lit":{"$bytes":"AA=="},"x":1},"y":2}"#,
        ],
        &[],
    ),
];

/// The vectors.
pub(crate) fn cases() -> Cases {
    let mut cases = Cases::default();
    for (of, valid, invalid) in TEXTS {
        valid.iter().for_each(|text| converts(&mut cases, *of, text.as_bytes(), true));
        invalid.iter().for_each(|text| converts(&mut cases, *of, text.as_bytes(), false));
    }
    let of = Of("SYSCAP-JSON-003", "broken text is replaced, so two texts become one");
    converts(&mut cases, of, "\"\u{e9}\u{6c34}\u{1f600}\u{7f}\u{2028}\"".as_bytes(), true);
    for bytes in [&b"\"a\xff\""[..], b"\xc0\x80", b"\"\xed\xa0\x80\"", b"\"\xc3"] {
        converts(&mut cases, of, bytes, false);
    }
    depth(&mut cases);
    alone(&mut cases);
    printed(&mut cases);
    cases
}

fn converts(cases: &mut Cases, of: Of, text: &[u8], valid: bool) {
    let found = to_cbor(text);
    assert_eq!(found.is_ok(), valid, "{of:?} {}", String::from_utf8_lossy(text));
    let mut given = json!({"kind": "json", "text": hex(text)});
    if let Ok(found) = found {
        given["cbor"] = json!(hex(found.as_bytes()));
    }
    cases.add(of, valid, String::from_utf8_lossy(text), given);
}

fn depth(cases: &mut Cases) {
    let of = Of("SYSCAP-JSON-009", "a deep text overflows the stack");
    for (open, inner, close) in
        [("[", "0", "]"), ("{\"a\":", "0", "}"), ("[", r#"{"$bytes":"AA=="}"#, "]")]
    {
        let nested =
            |levels: usize| format!("{}{inner}{}", open.repeat(levels), close.repeat(levels));
        converts(cases, of, nested(64).as_bytes(), true);
        converts(cases, of, nested(65).as_bytes(), false);
    }
    converts(cases, of, "[".repeat(10_000).as_bytes(), false);
}

fn alone(cases: &mut Cases) {
    let mut add = |of, text: &str, valid| {
        let found = arguments(text.as_bytes(), Escapes::Data);
        assert_eq!(found.is_ok(), valid, "{of:?} {text}");
        let mut given = json!({"kind": "arguments", "text": hex(text.as_bytes())});
        if let Ok(found) = found {
            given["cbor"] = json!(hex(found.as_bytes()));
        }
        cases.add(of, valid, text, given);
    };
    let of =
        Of("SYSCAP-JSON-017", "arguments close their own object, and set other fields of the call");
    ["", " \n\t", "{}", r#"{"a":1}"#].iter().for_each(|text| add(of, text, true));
    for text in ["{}{}", r#"{"a":1},"tool_id":"x""#, r#"{"a":1}}"#, "{"] {
        add(of, text, false);
    }
    let of = Of("SYSCAP-JSON-018", "a model's data becomes a reference");
    for text in [
        r#"{"a":{"$bytes":"AA=="}}"#,
        r#"{"a":{"$ref":0}}"#,
        r#"{"$lit":{}}"#,
        r#"{"a":[{"$lit":1}]}"#,
    ] {
        add(of, text, true);
    }
}

fn printed(cases: &mut Cases) {
    for (of, all) in [
        (
            Of("SYSCAP-JSON-019", "bytes are printed as text that reads back otherwise"),
            &["40", "41ff", "42ffef", "4400010203"][..],
        ),
        (
            Of("SYSCAP-JSON-020", "data is printed as an escape"),
            &[
                "a16624627974657360",
                "a1642472656601",
                "a164246c6974a1662462797465736178",
                "a166246f7468657201",
            ],
        ),
        (
            Of("SYSCAP-JSON-021", "a float is printed as an integer, or loses digits"),
            &[
                "f93c00",
                "f98000",
                "fb7e37e43c8800759c",
                "fb0000000000000001",
                "fb3fb999999999999a",
                "f93800",
            ],
        ),
    ] {
        for digits in all {
            let bytes = unhex(digits);
            let text = from_item(Item::check(&bytes, Profile::DATA).expect(digits));
            assert!(to_cbor(text.as_bytes()).is_ok(), "{digits}");
            cases.valid(of, text.clone(), json!({"kind": "print", "bytes": digits, "text": text}));
        }
    }
}
