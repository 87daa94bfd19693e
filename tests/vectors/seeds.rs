//! The seeds of the fuzz targets, made by code.

use std::collections::BTreeSet;

use syscap::format::{Canonical, Item, Profile, Record, RecordKind, Token, json};
use syscap::policy::{Policy, Preset};

use kernel_support::history;

use crate::vectors::cbor;
use crate::vectors::documents::{self, bodies, control};
use crate::vectors::targets::{stream, token};
use crate::vectors::tree::Tree;

/// Named bytes.
pub(crate) type Seeds = Vec<(String, Vec<u8>)>;

/// The seeds of each target.
pub(crate) fn all() -> Vec<(&'static str, Seeds)> {
    vec![
        ("codec", codec()),
        ("control", control()),
        ("envelope", envelope()),
        ("events", histories()),
        ("json", texts()),
        ("policy", policy()),
        ("record", records()),
        ("token", tokens()),
    ]
}

/// Gives each a number.
fn numbered(made: impl IntoIterator<Item = Vec<u8>>) -> Seeds {
    made.into_iter().enumerate().map(|(n, bytes)| (format!("{n:02}"), bytes)).collect()
}

/// The known structures, all known scalars in one list, and one of each fault.
fn codec() -> Seeds {
    let valid = cbor::valid();
    let structure = |hex: &str| matches!(hex.as_bytes()[0], b'8' | b'9' | b'a' | b'b');
    let scalars = valid.iter().filter(|(hex, _)| !structure(hex)).map(|(_, tree)| tree.clone());
    let mut faults = BTreeSet::new();
    let mut is_new = |bytes: &Vec<u8>| {
        let fault = Item::check(bytes, Profile::DATA).err().map(|error| error.fault);
        fault.is_some_and(|fault| faults.insert(format!("{fault:?}")))
    };
    let items = cbor::cases("cbor.json", "item").into_iter();
    let invalid = items.filter(|case| case["profile"] == "DATA" && case["result"] == "invalid");
    let invalid = invalid.map(|case| cbor::bytes(&case, "bytes")).filter(|bytes| bytes.len() < 99);
    let invalid: Vec<Vec<u8>> = invalid.filter(|bytes| is_new(bytes)).collect();
    let nested = |depth: usize| [vec![0x81; depth], vec![0x00]].concat();
    let made = valid.iter().filter(|(hex, _)| structure(hex)).map(|(hex, _)| cbor::hex(hex));
    let made = made.chain([Tree::Array(scalars.collect()).bytes(), nested(16), nested(64)]);
    numbered(made.chain(invalid))
}

fn texts() -> Seeds {
    let printed = |tree: &Tree| {
        let item = Canonical::check(tree.bytes(), Profile::DATA).unwrap();
        json::from_item(item.item()).into_bytes()
    };
    let scalars: Vec<Tree> = cbor::valid().into_iter().map(|(_, tree)| tree).collect();
    let made = [printed(&Tree::Array(scalars))].into_iter();
    let texts = [
        r#" { "a" : [ 1 , -2 , 3.5e-7 , true , false , null ] , "b" : { } } "#,
        r#"{"$bytes": "AAECAw=="}"#,
        r#"{"$ref": {"record": 12, "path": ["a", 0, "b"]}}"#,
        r#"{"$lit": {"$ref": {"$bytes": "AA=="}}}"#,
        r#"{"$bytes": "AAE=", "x": 1}"#,
        r#"{"$ref": {"record": -1, "path": []}}"#,
        r#""\u00e9\ud83d\ude00\n\t\"\\\/\b\f\r\u202e""#,
        r#""\ud800""#,
        r#"{"a": 1, "a": 2}"#,
        "[-9223372036854775808, 18446744073709551615, 18446744073709551616]",
        "[-0, -0.0, 0.0, 1e308, 1e309, 5e-324, 01, 1., .5]",
        "\u{feff}1",
        "[1] 2",
    ];
    let texts = texts.into_iter().map(|text| text.as_bytes().to_vec());
    let deep = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat().into_bytes();
    let mut made: Vec<Vec<u8>> = made.chain(texts).chain([deep(64), deep(65)]).collect();
    // And what is printed: canonical items that JSON has an escape for.
    for text in [r#"{"$lit": {"$bytes": 1}}"#, r#"{"a": {"$bytes": "AAE="}, "b": [1.5, "x"]}"#] {
        made.push(json::to_cbor(text.as_bytes()).unwrap().into_bytes());
    }
    made.push(Tree::map([("$bytes", Tree::Uint(1))]).bytes());
    made.push(Tree::Uints(vec![(1, Tree::text("a")), (300, Tree::Null)]).bytes());
    numbered(made)
}

fn envelope() -> Seeds {
    let texts = [
        r#"{"tool_id": "look", "args": {"at": 1}}"#,
        r#"{"tool_id": "look", "args": {"at": {"$ref": {"record": 11, "path": ["saw", "a"]}}}}"#,
        r#"{"v": 1, "tool_id": "probe", "args": {"text": "less", "int": 7, "bool": true},
            "agent_id": "a0", "idempotency_key": "k-1", "provenance": {"source": "user"}}"#,
        r#"{"tool_id": "probe.it", "args": {"path": "shared/a/b", "host": "www.example",
            "name": "a", "number": 1.5, "list": [1, 2], "map": {"x": null}, "units": 3}}"#,
        r#"{"tool_id": "probe", "args": {"path": "shared/secret/x", "host": "a.far.example"}}"#,
        r#"{"tool_id": "probe", "args": {"bytes": {"$bytes": "AAEC"}, "any": {"$lit": {"$ref": 1}}},
            "provenance": {"source": "tool", "inputs": [3, 4], "trace": "t"}, "more": [1]}"#,
        r#"{"tool_id": "probe", "args": {"int": 99999, "bcc": 1, "text": ""}}"#,
        r#"{"tool_id": "nothing", "args": {}, "policy_hash": "00", "capability_token_id": "x"}"#,
        r#"{"tool_id": "probe", "args": {"units": 50}, "idempotency_key": "no space"}"#,
        r#"{"tool_id": "probe", "args": [], "proof": {}}"#,
    ];
    let json = texts.iter().map(|text| text.as_bytes().to_vec());
    let cbor = texts.iter().map(|text| json::to_cbor(text.as_bytes()).unwrap().into_bytes());
    numbered(json.chain(cbor))
}

fn histories() -> Seeds {
    let mut made: Seeds = (0..12).map(|n| (format!("{n:02}"), stream(n))).collect();
    made.push(("all-kinds".to_owned(), [&[0], history::history().as_slice()].concat()));
    made
}

/// A record of each kind that a history has, the history, and its beginnings.
fn records() -> Seeds {
    let (log, _) = history::log(&history::history());
    let mut made = Seeds::new();
    let mut kinds = BTreeSet::new();
    for bytes in &log {
        let kind = Record::decode(bytes).unwrap().body.kind();
        if kinds.insert(kind.code()) {
            made.push((kind.name().to_owned(), bytes.clone()));
        }
    }
    for (name, count) in [("log-all", log.len()), ("log-40", 40), ("log-12", 12)] {
        made.push((name.to_owned(), history::parts(log.iter().take(count).map(Vec::as_slice))));
    }
    made
}

/// Wires, and pairs of a parent's body and one derived from it.
fn tokens() -> Seeds {
    let mut made = Seeds::new();
    for (name, parent, child) in bodies() {
        let (parent, child) = (parent.to_bytes(), child.to_bytes());
        made.push((format!("wire-{name}"), token::wire(&parent)));
        made.push((format!("pair-{name}"), history::parts([parent.as_slice(), child.as_slice()])));
    }
    made
}

fn policy() -> Seeds {
    let mut made = Seeds::new();
    for preset in Preset::ALL {
        made.push((preset.name().to_owned(), preset.document().as_bytes().to_vec()));
    }
    for (n, (text, scenario)) in documents::policies().into_iter().enumerate() {
        made.push((format!("{n:02}"), [text.as_bytes(), b"\0", scenario.as_bytes()].concat()));
        let document = json::to_cbor(text.as_bytes()).unwrap().into_bytes();
        made.push((format!("{n:02}-cbor"), document));
    }
    made
}

/// A seed that its target refuses at the door leads nowhere.
pub(crate) fn reach() {
    let kinds: BTreeSet<u64> = records()
        .iter()
        .filter_map(|(_, bytes)| Record::decode(bytes).ok())
        .map(|record| record.body.kind().code())
        .collect();
    let written = RecordKind::ALL.iter().filter(|kind| !kind.is_reserved());
    let missing: Vec<_> = written.filter(|kind| !kinds.contains(&kind.code())).collect();
    assert_eq!(missing, Vec::<&RecordKind>::new());
    for (name, bytes) in tokens() {
        assert!(name.starts_with("pair") || Token::read(&bytes).is_ok(), "{name}");
    }
    for (name, bytes) in policy() {
        let text = bytes.split(|byte| *byte == 0).next().unwrap();
        let loads = Policy::from_json(text).is_ok() || Policy::from_cbor(&bytes).is_ok();
        assert!(loads, "{name}: {:?}", Policy::from_json(text).map(drop));
    }
    let canonical = codec().iter().filter(|(_, b)| Item::check(b, Profile::DATA).is_ok()).count();
    assert!(canonical > 10);
}
