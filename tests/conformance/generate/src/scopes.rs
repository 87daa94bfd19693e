//! Vectors of `tokens.md`, Scopes: forms, order between scopes, and what a scope permits.

use serde_json::{Value, json};
use syscap_format::{
    AgentId, Decoder, Encoder, Host, Profile, Resource, Rights, Root, RootedPath, Scope,
};

use crate::case::{Cases, Of, hex};

/// CBOR of a value written as JSON. Text that begins with `h:` is a byte string in hexadecimal.
fn cbor(value: &Value, encoder: &mut Encoder) {
    match value {
        Value::Null => encoder.null(),
        Value::Bool(value) => encoder.boolean(*value),
        Value::Number(value) => match value.as_u64() {
            Some(value) => encoder.uint(value),
            None => encoder.int(value.as_i64().expect("an integer")),
        },
        Value::String(text) => match text.strip_prefix("h:") {
            Some(digits) => encoder.bytes(&crate::case::unhex(digits)),
            None => encoder.text(text),
        },
        Value::Array(items) => {
            encoder.array(items.len());
            items.iter().for_each(|item| cbor(item, encoder));
        }
        Value::Object(_) => panic!("a scope has no map"),
    }
}

fn encoded(text: &str) -> Vec<u8> {
    let mut encoder = Encoder::new();
    cbor(&serde_json::from_str(text).expect(text), &mut encoder);
    encoder.into_bytes()
}

fn decoded(bytes: &[u8]) -> Option<Scope> {
    let mut decoder = Decoder::new(bytes, Profile::CONTROL);
    let scope = Scope::decode(&mut decoder).ok()?;
    decoder.finish().ok().map(|()| scope)
}

/// The scope that a text is.
pub(crate) fn written(text: &str) -> Scope {
    decoded(&encoded(text)).expect(text)
}

/// Paths of these rules.
pub(crate) fn paths(rules: &str) -> Scope {
    written(&format!("[3,{rules}]"))
}

/// Scopes by requirement: in normal form, and not. One to a line.
const FORMS: &[(Of, &str, &str)] = &[
    (
        Of("SYSCAP-SCOPE-001", "a scope that nobody reads permits all"),
        r#"[1,["a"]]"#,
        r#"[0,["a"]] [7,["a"]] [1] [1,["a"],1] [1,[]] [3,[]] [4,[]] [5,[]] [6,[]] [1,"a"] [2,null] 1 ["a"]"#,
    ),
    (
        Of("SYSCAP-SCOPE-002", "one meaning has two encodings, so two hashes"),
        r#"[1,["B","a","ab","b"]] [1,["\u00e9"]]"#,
        r#"[1,[""]] [1,["b","a"]] [1,["a","a"]] [1,[1]]"#,
    ),
    (
        Of("SYSCAP-SCOPE-003", "a range that is empty permits all below it"),
        "[2,[-9223372036854775808,18446744073709551615]] [2,[0,0]] [2,[-2,-1]]",
        "[2,[1,0]] [2,[0]] [2,[0,1,2]] [2,[-1,-2]] [2,[0,null]]",
    ),
    (
        Of("SYSCAP-SCOPE-004", "a rule out of order is not found"),
        r#"[3,[["shared",null,[],1],["workspace","a",[],3]]]
        [3,[["a",null,["b"],1],["a",null,["b","c"],2],["a",null,["b-c"],1]]]
        [3,[["workspace","a",[],1],["workspace","b",[],4]]]"#,
        r#"[3,[["a",null,["b"],3],["a",null,[],1]]] [3,[["workspace","a",[],1],["a",null,[],1]]]
        [3,[["a",null,["b-c"],1],["a",null,["b"],1]]] [3,[["a",null,["b-"],1],["a",null,["b","c"],1]]]
        [3,[["a",null,[],1],["a",null,[],1]]] [3,[["a",null,[],1],["a",null,[],3]]]"#,
    ),
    (
        Of("SYSCAP-SCOPE-005", "one meaning has two encodings, so two hashes"),
        r#"[3,[["workspace","a",[],1],["workspace","a",["b"],0]]]
        [3,[["a",null,[],1],["a",null,["b"],3],["a",null,["b","c"],1]]]"#,
        r#"[3,[["a",null,[],0]]] [3,[["a",null,["b"],0]]] [3,[["a",null,[],1],["a",null,["b"],1]]]
        [3,[["a",null,[],1],["a",null,["b"],3],["a",null,["b","c","d"],3]]]"#,
    ),
    (
        Of("SYSCAP-SCOPE-006", "a root leads into another's workspace"),
        r#"[3,[["A.b_c-9",null,[],1]]] [3,[["workspace","team/a",[],1]]]"#,
        r#"[3,[["agents",null,[],1]]] [3,[[".a",null,[],1]]] [3,[["",null,[],1]]] [3,[["a/b",null,[],1]]]
        [3,[["workspace",null,[],1]]] [3,[["a","b",[],1]]] [3,[["workspace","A",[],1]]] [3,[["workspace","",[],1]]]"#,
    ),
    (
        Of("SYSCAP-SCOPE-007", "a component climbs out of its root"),
        r#"[3,[["a",null,["...","b c","\u00e9"],7]]]"#,
        r#"[3,[["a",null,["."],1]]] [3,[["a",null,[".."],1]]] [3,[["a",null,["a/b"],1]]] [3,[["a",null,["a\\b"],1]]]
        [3,[["a",null,[""],1]]] [3,[["a",null,["\u0000"],1]]] [3,[["a",null,[],8]]] [3,[["a",null,[],257]]]
        [3,[["a",null,[]]]]"#,
    ),
    (
        Of("SYSCAP-SCOPE-008", "a name is an address to the resolver"),
        r#"[4,["localhost"]] [4,["1.com"]] [4,["xn--e1afmkfd.xn--p1ai"]] [4,["a.0xg"]] [4,["3com"]] [4,["a--b.c"]]"#,
        r#"[4,["A.com"]] [4,["a.com."]] [4,["*"]] [4,["*."]] [4,["*.*.com"]] [4,["*a.com"]] [4,["127.0.0.1"]]
        [4,["*.0.0.1"]] [4,["::1"]] [4,["a..b"]] [4,["-a.b"]] [4,["a-.b"]] [4,["a_b.c"]] [4,["a.1"]] [4,["0x7f.1"]]
        [4,["a.0x"]] [4,["a.0x1f"]]"#,
    ),
    (
        Of("SYSCAP-SCOPE-009", "one meaning has two encodings, so two hashes"),
        r#"[4,["*.example.com","example.com"]] [4,["*.a.b","*.c"]]"#,
        r#"[4,["b","a"]] [4,["a.b","*.c"]] [4,["a","a"]] [4,["*.b","a.b"]] [4,["*.a.b","*.b"]] [4,["*.b","*.a.b"]]"#,
    ),
    (
        Of("SYSCAP-SCOPE-010", "one meaning has two encodings, so two hashes"),
        "[5,[[443,443],[8000,8080]]] [5,[[1,65535]]] [5,[[1,2],[4,5]]]",
        "[5,[[4,4],[1,1]]] [5,[[1,3],[2,4]]] [5,[[1,2],[3,4]]] [5,[[2,1]]] [5,[[0,1]]] [5,[[1,65536]]] [5,[[1]]]",
    ),
    (
        Of("SYSCAP-SCOPE-011", "a block means another block to the next reader"),
        r#"[6,[["h:0a000000",8]]] [6,[["h:00000000",0],["h:20010db8000000000000000000000000",32]]] [6,[["h:0a000001",32]]]"#,
        r#"[6,[["h:0a000001",8]]] [6,[["h:0a000000",33]]] [6,[["h:0a000000",264]]] [6,[["h:0a0000",8]]]
        [6,[["h:20010db8000000000000000000000001",127]]] [6,[["h:20010db8000000000000000000000000",129]]]"#,
    ),
    (
        Of("SYSCAP-SCOPE-012", "one meaning has two encodings, so two hashes"),
        r#"[6,[["h:09000000",8],["h:0a000000",8]]] [6,[["h:0a000000",8],["h:20000000000000000000000000000000",8]]]"#,
        r#"[6,[["h:0b000000",8],["h:09000000",8]]] [6,[["h:20000000000000000000000000000000",8],["h:0a000000",8]]]
        [6,[["h:0a000000",8],["h:0a010000",16]]] [6,[["h:0a000000",8],["h:0b000000",8]]]
        [6,[["h:0a000000",8],["h:0a000000",8]]]"#,
    ),
    (
        Of("SYSCAP-SCOPE-013", "an IPv4 address is reached in its IPv6 form"),
        r#"[6,[["h:00000000000000000000000000000000",0]]] [6,[["h:00000000000000000000fffe00000000",95]]]
        [6,[["h:00000000000000000000fffd00000000",96]]]"#,
        r#"[6,[["h:00000000000000000000ffff0a000000",104]]] [6,[["h:00000000000000000000ffff00000000",96]]]
        [6,[["h:00000000000000000000fffe00000000",96]]]"#,
    ),
];

/// Pairs of scopes.
type Pairs = &'static [(&'static str, &'static str)];

/// Pairs of which the first is at most the second, and pairs of which it is not.
const ORDER: &[(Of, Pairs, Pairs)] = &[
    (
        Of("SYSCAP-SCOPE-020", "types of one form are compared"),
        &[("[2,[1,1]]", "[2,[1,1]]")],
        &[
            (r#"[1,["a"]]"#, r#"[4,["a"]]"#),
            (r#"[4,["a"]]"#, r#"[1,["a"]]"#),
            ("[2,[1,2]]", "[5,[[1,2]]]"),
        ],
    ),
    (
        Of("SYSCAP-SCOPE-021", "a name that begins with another is taken for it"),
        &[(r#"[1,["a"]]"#, r#"[1,["a","b"]]"#), (r#"[1,["a","b"]]"#, r#"[1,["a","b"]]"#)],
        &[(r#"[1,["a","c"]]"#, r#"[1,["a","b"]]"#), (r#"[1,["ab"]]"#, r#"[1,["a"]]"#)],
    ),
    (
        Of("SYSCAP-SCOPE-022", "a bound is compared without its sign"),
        &[("[2,[1,2]]", "[2,[0,3]]"), ("[2,[-1,-1]]", "[2,[-1,0]]")],
        &[("[2,[0,3]]", "[2,[1,2]]"), ("[2,[0,1]]", "[2,[1,2]]"), ("[2,[-2,0]]", "[2,[-1,0]]")],
    ),
    (
        Of("SYSCAP-SCOPE-023", "a rule that only one side has is not asked"),
        &[
            (r#"[3,[["a",null,["b"],1]]]"#, r#"[3,[["a",null,[],3]]]"#),
            (r#"[3,[["a",null,[],7],["a",null,["b"],0]]]"#, r#"[3,[["a",null,[],7]]]"#),
            (r#"[3,[["a",null,["b","c"],1]]]"#, r#"[3,[["a",null,[],1],["a",null,["b"],3]]]"#),
        ],
        &[
            (r#"[3,[["a",null,[],7]]]"#, r#"[3,[["a",null,[],7],["a",null,["b"],0]]]"#),
            (r#"[3,[["a",null,["bc"],1]]]"#, r#"[3,[["a",null,["b"],1]]]"#),
            (r#"[3,[["a",null,["b"],2]]]"#, r#"[3,[["a",null,[],1]]]"#),
            (r#"[3,[["workspace","a",[],1]]]"#, r#"[3,[["workspace","b",[],1]]]"#),
            (r#"[3,[["a",null,[],1],["a",null,["b"],3]]]"#, r#"[3,[["a",null,[],1]]]"#),
        ],
    ),
    (
        Of("SYSCAP-SCOPE-024", "a host that ends like another is taken for one below it"),
        &[
            (r#"[4,["a.b"]]"#, r#"[4,["*.b"]]"#),
            (r#"[4,["*.a.b"]]"#, r#"[4,["*.b"]]"#),
            (r#"[4,["*.b","b"]]"#, r#"[4,["*.b","b"]]"#),
        ],
        &[
            (r#"[4,["b"]]"#, r#"[4,["*.b"]]"#),
            (r#"[4,["*.b"]]"#, r#"[4,["*.a.b"]]"#),
            (r#"[4,["xb"]]"#, r#"[4,["*.b"]]"#),
            (r#"[4,["*.b"]]"#, r#"[4,["b"]]"#),
        ],
    ),
    (
        Of("SYSCAP-SCOPE-025", "a range that reaches over a gap is taken for two"),
        &[("[5,[[2,3]]]", "[5,[[1,4]]]"), ("[5,[[1,1],[7,8]]]", "[5,[[1,2],[5,9]]]")],
        &[("[5,[[1,4]]]", "[5,[[1,2],[4,4]]]"), ("[5,[[1,5]]]", "[5,[[1,4]]]")],
    ),
    (
        Of("SYSCAP-SCOPE-026", "an address of one family is compared with a block of the other"),
        &[
            (r#"[6,[["h:0a010000",16]]]"#, r#"[6,[["h:0a000000",8]]]"#),
            (
                r#"[6,[["h:20010db8000000000000000000000000",32]]]"#,
                r#"[6,[["h:00000000000000000000000000000000",0]]]"#,
            ),
        ],
        &[
            (r#"[6,[["h:0a000000",8]]]"#, r#"[6,[["h:0a010000",16]]]"#),
            (r#"[6,[["h:0a000000",8]]]"#, r#"[6,[["h:00000000000000000000000000000000",0]]]"#),
            (r#"[6,[["h:00000000000000000000000000000000",0]]]"#, r#"[6,[["h:00000000",0]]]"#),
        ],
    ),
];

/// The vectors.
pub(crate) fn cases() -> Cases {
    let mut cases = Cases::default();
    for (of, valid, invalid) in FORMS {
        for (all, is_valid) in [(valid, true), (invalid, false)] {
            // Values stand apart by white space, and some have a space within quotes.
            let texts = serde_json::Deserializer::from_str(all).into_iter::<Value>();
            texts.for_each(|value| form(&mut cases, *of, &value.expect(all).to_string(), is_valid));
        }
    }
    limits(&mut cases);
    for (of, at_most, not) in ORDER {
        for (pairs, valid) in [(at_most, true), (not, false)] {
            for (a, b) in *pairs {
                assert_eq!(written(a).leq(&written(b)), valid, "{a} {b}");
                let given =
                    json!({"kind": "at_most", "scope": hex(&encoded(a)), "of": hex(&encoded(b))});
                cases.add(*of, valid, format!("{a} {b}"), given);
            }
        }
    }
    permitted(&mut cases);
    cases
}

fn form(cases: &mut Cases, of: Of, text: &str, valid: bool) {
    let bytes = encoded(text);
    assert_eq!(decoded(&bytes).is_some(), valid, "{of:?} {text}");
    let comment = if text.len() < 200 { text } else { "a list at its limit" };
    cases.add(of, valid, comment, json!({"kind": "scope", "bytes": hex(&bytes)}));
}

/// A scope that reaches a limit of so many.
type Text<'a> = &'a dyn Fn(usize) -> String;

/// Each limit, and one more.
fn limits(cases: &mut Cases) {
    let catches = "a scope costs more to check than a call";
    let list = |count: usize, one: &dyn Fn(usize) -> String| {
        (0..count).map(one).collect::<Vec<_>>().join(",")
    };
    let word = |n: usize| format!(r#""n{n:04}""#);
    let suffix = |len: usize| {
        format!(
            r#""*.{}.{}.{}.{}""#,
            "a".repeat(63),
            "b".repeat(63),
            "c".repeat(63),
            "d".repeat(len - 192)
        )
    };
    let all: [(&str, usize, Text); 9] = [
        ("SYSCAP-SCOPE-002", 1_024, &|n| format!("[1,[{}]]", list(n, &word))),
        ("SYSCAP-SCOPE-002", 256, &|n| format!(r#"[1,["{}"]]"#, "a".repeat(n))),
        ("SYSCAP-SCOPE-004", 256, &|n| {
            format!("[3,[{}]]", list(n, &|n| format!(r#"["a",null,[{}],1]"#, word(n))))
        }),
        ("SYSCAP-SCOPE-007", 64, &|n| {
            format!(r#"[3,[["a",null,[{}],1]]]"#, list(n, &|_| r#""b""#.to_owned()))
        }),
        ("SYSCAP-SCOPE-007", 255, &|n| format!(r#"[3,[["a",null,["{}"],1]]]"#, "a".repeat(n))),
        ("SYSCAP-SCOPE-008", 249, &|n| format!("[4,[{}]]", suffix(n))),
        ("SYSCAP-SCOPE-009", 1_024, &|n| format!("[4,[{}]]", list(n, &word))),
        ("SYSCAP-SCOPE-010", 256, &|n| {
            format!("[5,[{}]]", list(n, &|n| format!("[{0},{0}]", 2 * n + 1)))
        }),
        ("SYSCAP-SCOPE-012", 1_024, &|n| {
            format!("[6,[{}]]", list(n, &|n| format!(r#"["h:0a{:06x}",32]"#, 2 * n)))
        }),
    ];
    for (requirement, most, text) in all {
        form(cases, Of(requirement, catches), &text(most), true);
        form(cases, Of(requirement, catches), &text(most + 1), false);
    }
}

fn permitted(cases: &mut Cases) {
    let mut add = |of, scope: &str, resource: &Resource, said: Value, valid| {
        assert_eq!(written(scope).permits(resource), valid, "{scope} {resource}");
        let given = json!({"kind": "permits", "scope": hex(&encoded(scope)), "resource": said});
        cases.add(of, valid, format!("{scope} {resource}"), given);
    };
    let of = Of("SYSCAP-SCOPE-030", "a folder whose name begins like a granted one is open");
    let rules = r#"[3,[["a",null,["b"],1],["a",null,["b","c"],0],["a",null,["b","c","d"],3],["workspace","t",[],1]]]"#;
    for (root, owner, below, needs, valid) in [
        ("a", None, &["b"][..], 1, true),
        ("a", None, &["b", "x"], 1, true),
        ("a", None, &["b", "c", "d", "e"], 3, true),
        ("workspace", Some("t"), &[], 1, true),
        ("a", None, &["bc"], 1, false),
        ("a", None, &[], 1, false),
        ("a", None, &["b"], 2, false),
        ("a", None, &["b"], 0, false),
        ("a", None, &["b", "c", "x"], 1, false),
        ("c", None, &["b"], 1, false),
        ("workspace", Some("u"), &[], 1, false),
    ] {
        let rooted = owner.map_or_else(
            || Root::named(root).expect(root),
            |owner| Root::Workspace(AgentId::new(owner).expect(owner)),
        );
        let path = RootedPath::new(rooted, below).expect(root);
        let resource = Resource::Path { path, needs: Rights::from_bits(needs).expect("rights") };
        let said = json!({"root": root, "owner": owner, "path": below, "needs": needs});
        add(of, rules, &resource, said, valid);
    }
    let of = Of("SYSCAP-SCOPE-031", "a host that ends like a granted one is reached");
    for (host, valid) in [
        ("a.example.com", true),
        ("a.b.example.com", true),
        ("example.com", false),
        ("evilexample.com", false),
        ("example.com.evil.net", false),
    ] {
        let resource = Resource::Host(Host::new(host).expect(host));
        add(of, r#"[4,["*.example.com"]]"#, &resource, json!({"host": host}), valid);
    }
    let of = Of("SYSCAP-SCOPE-032", "an address in its IPv6 form is not seen");
    for (scope, address, valid) in [
        (r#"[6,[["h:0a000000",8]]]"#, "::ffff:10.1.2.3", true),
        (r#"[6,[["h:0a000000",8]]]"#, "::ffff:11.1.2.3", false),
        (r#"[6,[["h:00000000000000000000000000000000",0]]]"#, "::ffff:10.1.2.3", false),
        (r#"[6,[["h:00000000000000000000000000000000",0]]]"#, "::1", true),
        (r#"[6,[["h:00000000",0]]]"#, "::1", false),
    ] {
        let resource = Resource::Addr(address.parse().expect(address));
        add(of, scope, &resource, json!({"address": address}), valid);
    }
}
