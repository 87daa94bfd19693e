//! The table of attributes: what must be there of each beside its row.

use kernel_support::asking;
use std::collections::BTreeSet;

use crate::random::{Kinds, Random};
use syscap_format::EffectClass;
use syscap_policy::{Attribute, Policy, Row, Scenario, Seen, Type, Value, Values, Varies, time};

/// An attribute of each row.
fn each() -> impl Iterator<Item = (&'static Row, Attribute)> {
    Attribute::TABLE.iter().map(|row| {
        let text = row.name.replace("NAME", "a").replace("DIMENSION", "calls");
        let text = text.replace("MEASURE.WHO.SPAN", "bytes.tool.hour");
        let attribute =
            Attribute::parse(&text).unwrap_or_else(|| panic!("{} is not read", row.name));
        assert_eq!(attribute.to_string(), text);
        assert_eq!((attribute.kind(), attribute.varies()), (row.kind, row.varies), "{text}");
        assert!(row.attribute.as_ref().is_none_or(|alone| *alone == attribute), "{text}");
        (row, attribute)
    })
}

#[test]
fn each_attribute_is_in_the_docs() {
    let text = include_str!("../../docs/policy.md");
    let missing: Vec<&str> = each()
        .map(|(row, _)| row.name)
        .filter(|name| !text.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "docs/policy.md has no row of {missing:?}");
}

#[test]
fn each_attribute_is_read_and_is_of_its_type() {
    let asked = asking::Asked::new("t.a", EffectClass::Read, r#"{"a":["x",1]}"#);
    let policy = Policy::from_json(br#"{"v":1,"constraints":[]}"#).unwrap();
    let question = asked.question();
    let seen = Seen::new(&question, policy.written());
    for (row, attribute) in each() {
        let value = seen.value(&attribute);
        assert!(value.can_be(row.kind), "{}: read as {value:?}, not {:?}", row.name, row.kind);
        assert_eq!(value == Value::Missing, row.kind == Type::Fact, "{} is missing", row.name);
        let at = time(&attribute, 0);
        assert_eq!(at.is_some(), row.varies == Varies::WithTime, "{}: {at:?}", row.name);
    }
}

#[test]
fn each_type_can_be_written_in_a_scenario() {
    let texts = ["1", "true", r#""t.a""#, r#""read""#, "0", &format!("\"{}\"", "a".repeat(64))];
    for (row, attribute) in each() {
        let can = texts.iter().any(|value| {
            let text = format!(r#"{{"{attribute}":{value}}}"#);
            Scenario::from_json(text.as_bytes()).is_ok()
        });
        assert!(can, "{} has no value that a scenario can have", row.name);
    }
}

/// The property tests hold engine and meaning against each other in what is made here.
#[test]
fn each_attribute_is_asked_about_by_chance() {
    let mut random = Random::new(9);
    let (mut documents, mut given) = (String::new(), BTreeSet::new());
    for _ in 0..300 {
        documents.push_str(&random.document(Kinds::All).0.concat());
        let scenario = random.scenario();
        given.extend(scenario.iter().map(|(attribute, _)| attribute.to_string()));
        assert!(!random.asked().manifest.tool.as_str().is_empty());
    }
    for (row, _) in each() {
        let is_given = |c: char| c.is_ascii_uppercase();
        let start = row.name.find(is_given).map_or(row.name, |end| &row.name[..end]);
        assert!(documents.contains(&format!("[\"{start}")), "no document asks {}", row.name);
        let has = given.iter().any(|name| name.starts_with(start));
        assert!(has, "no scenario has {}", row.name);
    }
    // So that all of it is used here as well.
    let deny = random.deny("d", Kinds::WithoutPresence);
    let mut all = [deny];
    random.shuffle(&mut all);
    assert!(all[0].contains("deny"));
}
