//! The document's examples and the forms of envelope, result and trust file.

use host_support::new_home;
use std::collections::BTreeSet;
use std::fs;
use syscap::Written;
use syscap::format::{
    ConstraintId, Decision, Decoder, Durability, EngineIdentity, Item, Obligation, Profile, Status,
    Token, TokenId, Verdict, leaf,
};
use syscap::kernel::{PolicyEngine, Question};
use syscap::{Grant, Options, Runtime, Session};
use tempfile::TempDir;

use crate::spec::document::{Table, code, dump, hex, root, spec, tables, tables_of};

/// The bytes that the documents draw are vectors.
#[test]
fn dumps_are_vectors() {
    let folder = root().join("tests/conformance/vectors");
    let vectors = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let (forms, spec) = (vectors("forms.json"), spec());
    for name in ["genesis", "boot", "shutdown", "token"] {
        assert!(forms.contains(&hex(&dump(name))), "{name}");
    }
    let leaf_of = |name| leaf(&dump(name));
    assert!(spec.contains(&format!("Home id, leaf of record 0: `{}`\n", leaf_of("genesis"))));
    assert!(spec.contains(&format!("Head: position 2, leaf `{}`\n", leaf_of("shutdown"))));
    let token = Token::read(&dump("token")).unwrap().id();
    assert!(spec.contains(&format!("Token id: `{token}`\n")));
}

/// Each line of a dump that is not a string's content begins at an item, so that no comment
/// slips to another one.
#[test]
fn dumps_are_cut_between_items() {
    for name in ["genesis", "boot", "shutdown", "token"] {
        let bytes = dump(name);
        Item::check(&bytes, Profile::CONTROL).unwrap();
        let mut places = BTreeSet::new();
        heads(&bytes, 0, &mut places);
        if name == "token" {
            let mut decoder = Decoder::new(&bytes, Profile::CONTROL);
            decoder.array().unwrap();
            decoder.uint().unwrap();
            decoder.uint().unwrap();
            let body = decoder.bytes().unwrap();
            heads(body, decoder.position() - body.len(), &mut places);
        }
        let spec = spec();
        let block = spec.split(&format!("```hex {name}\n")).nth(1).unwrap();
        let mut at = 0;
        for line in block.split("```").next().unwrap().lines() {
            let commented = line.contains(';');
            assert!(places.contains(&at) || !commented, "{name}: {line}");
            let digits = line.split(';').next().unwrap().replace(' ', "");
            at += digits.len() / 2;
        }
    }
}

/// Where heads stand.
fn heads(bytes: &[u8], offset: usize, places: &mut BTreeSet<usize>) {
    let mut at = 0;
    while at < bytes.len() {
        places.insert(offset + at);
        let (major, info) = (bytes[at] >> 5, bytes[at] & 31);
        let width = if info < 24 { 0 } else { 1 << (info - 24) };
        let argument = &bytes[at + 1..=at + width];
        let value = argument.iter().fold(0, |value, byte| (value << 8) | usize::from(*byte));
        let value = if width == 0 { usize::from(info) } else { value };
        at += 1 + width + if matches!(major, 2 | 3) { value } else { 0 };
    }
}

/// The tables of a home and their columns.
#[test]
fn a_home_has_the_tables_that_stand_there() {
    let (_folder, home) = new_home();
    Options::new().create(&home).unwrap().close().unwrap();
    let connection = rusqlite::Connection::open(home.join("home.db")).unwrap();
    let number =
        |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
    let spec = fs::read_to_string(root().join("docs/stores.md")).unwrap();
    assert!(spec.contains(&format!("`application_id` {:#x}", number("application_id"))));
    assert!(spec.contains(&format!("`user_version` {}", number("user_version"))));
    let mut listed = tables_of(&spec).into_iter();
    let is_it = |table: &Table| table.head.join(" | ") == "Table | Columns | What it has";
    let rows = listed.find(is_it).unwrap().rows;
    let named: BTreeSet<String> = rows.iter().map(|row| code(&row[0])[0].to_owned()).collect();
    let mut tables = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        .unwrap();
    let tables = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap);
    assert_eq!(named, tables.collect());
    for row in &rows {
        let sql = "SELECT name, lower(type) FROM pragma_table_info(?1) ORDER BY cid";
        let mut columns = connection.prepare(sql).unwrap();
        let columns = columns.query_map([code(&row[0])[0]], |row| {
            Ok(format!("`{}` {}", row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        });
        let mut rest = &*row[1];
        for column in columns.unwrap().map(Result::unwrap) {
            let at = rest.find(&column).unwrap_or_else(|| panic!("{column} of {}", row[0]));
            rest = &rest[at + column.len()..];
        }
        assert!(!rest.contains('`'), "{rest}");
    }
}

/// The keys in the first column of a table.
fn keys(head: &str, heading: &str) -> BTreeSet<String> {
    let found = tables()
        .into_iter()
        .find(|table| table.heading.starts_with(heading) && table.head.join(" | ") == head);
    let rows = found.expect(heading).rows;
    rows.iter().flat_map(|row| code(&row[0])).map(str::to_owned).collect()
}

fn entries(item: Item<'_>) -> BTreeSet<String> {
    item.entries().map(|(key, _)| key.to_owned()).collect()
}

/// Lets everything run, and takes something away from what asks for it.
struct Less;

impl PolicyEngine for Less {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from("less"), version: 1 }
    }
    fn document(&self) -> Vec<u8> {
        vec![0xa0]
    }
    fn decide(&self, question: &Question<'_>) -> Decision {
        match question.args.get("value").and_then(Item::as_text) {
            Some("less") => {}
            Some("no") => {
                let deciding = ConstraintId::new("no");
                return Decision { deciding, ..Decision::plain(Verdict::Deny) };
            }
            _ => return Decision::plain(Verdict::Allow),
        }
        let obligations = vec![Obligation::read_only()];
        Decision { obligations, ..Decision::plain(Verdict::Degrade) }
    }
}

/// A home with one agent, which may call `echo`.
fn seat() -> (TempDir, Runtime, Session, TokenId) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new().durability(Durability::Process).policy(Less);
    let runtime = options.create(folder.path().join("home")).unwrap();
    let token = runtime.issue(Grant::to("reader").tools(["echo"])).unwrap();
    let session = runtime.session("reader", token).unwrap();
    (folder, runtime, session, token)
}

#[test]
fn results_have_the_keys_that_stand_there() {
    let (_folder, runtime, session, _) = seat();
    let call =
        |envelope: &str| session.envelope(envelope.as_bytes(), Written::Json).wait().unwrap();
    let good = call(r#"{"tool_id": "echo", "args": {"value": "hi"}}"#);
    let bad = call(r#"{"tool_id": "echo", "args": {"value": "hi", "bcc": 1}}"#);
    assert_eq!((good.status(), bad.status()), (Status::Ok, Status::Error));
    let less = call(r#"{"tool_id": "echo", "args": {"value": "less"}}"#);
    let mut both = entries(good.to_canonical().item());
    both.extend(entries(bad.to_canonical().item()));
    assert!(!both.contains("degraded") && !both.contains("constraint"));
    both.extend(entries(less.to_canonical().item()));
    let denied = call(r#"{"tool_id": "echo", "args": {"value": "no"}}"#);
    both.extend(entries(denied.to_canonical().item()));
    assert_eq!(keys("Key | Form", "The result"), both);
    let good = good.to_canonical();
    let receipt = good.item().get("receipt").unwrap();
    assert_eq!(keys("Key of the receipt | Form", "The result"), entries(receipt));
    runtime.close().unwrap();
}
