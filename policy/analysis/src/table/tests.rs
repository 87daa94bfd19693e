use alloc::{collections::BTreeMap, format, string::ToString, vec};

use syscap_format::ToolId;
use syscap_policy::{
    Ask, Attribute, Condition, Constraint, Document, Effect, OnFail, Subject, Test,
};

use super::*;

fn test(attribute: &str, ask: Ask) -> Condition {
    let attribute = Attribute::parse(attribute).unwrap();
    Condition::Test(Test { attribute, ask })
}

fn constraint(id: &str, effect: Effect, when: Condition) -> Constraint {
    Constraint {
        id: ConstraintId::new(id).unwrap(),
        effect,
        subject: Subject::Tool(ToolId::new("fs.read").unwrap()),
        when,
        on_fail: OnFail::Block,
        reason: Box::from("because"),
        obligations: Vec::new(),
    }
}

/// Reading is allowed below `ws`, up to 10 bytes; `secret` is asked about, and noticed.
fn document() -> Document {
    let place = test("args.p", Ask::Within("ws".into()));
    let size = test("args.n", Ask::Le(10));
    let allow = constraint("a", Effect::Allow, Condition::All(vec![place, size]));
    let secret = test("args.p", Ask::Within("ws/secret".into()));
    let mut ask = constraint("b", Effect::Deny, secret);
    ask.on_fail = OnFail::Ask;
    ask.obligations = vec![Obligation::notify("secret")];
    Document { constraints: vec![allow, ask], risk: BTreeMap::new() }
}

fn case(name: &str, path: &str, bytes: u32, rest: &str) -> alloc::string::String {
    let call = r#""call.tool":"fs.read","call.effect":"read""#;
    let given = format!(r#"{{{call},"args.p":{{"path":"{path}"}},"args.n":{bytes}}}"#);
    format!(r#"{{"name":"{name}","given":{given},{rest}}}"#)
}

fn table(cases: &[alloc::string::String]) -> Table {
    Table::from_json(format!(r#"{{"v":1,"cases":[{}]}}"#, cases.join(",")).as_bytes()).unwrap()
}

fn full() -> Vec<alloc::string::String> {
    vec![
        case("fine", "ws/x", 10, r#""verdict":"allow","deciding":"a","matches":["a"]"#),
        case("elsewhere", "tmp/x", 10, r#""verdict":"deny","deciding":"a","matches":[]"#),
        case("large", "ws/x", 11, r#""verdict":"deny","obligations":[]"#),
        case(
            "secret",
            "ws/secret/x",
            10,
            r#""verdict":"ask","deciding":"b","matches":["b","a"],
               "obligations":[{"type":"notify","topic":"secret"}]"#,
        ),
    ]
}

#[test]
fn a_full_table_passes_and_notices_every_change() {
    let report = run(&document(), &table(&full()));
    assert!(report.is_passed(), "{report}");
    assert_eq!((report.cases, report.tests()), (4, (3, 3)));
    let matched: Vec<usize> = report.coverage.iter().map(|one| one.matched).collect();
    let decided: Vec<usize> = report.coverage.iter().map(|one| one.decided).collect();
    assert_eq!((matched, decided), (vec![2, 1], vec![3, 1]));
    assert_eq!(report.mutation.survivors, []);
    assert_eq!(report.mutation.permille(), 1_000);
    assert!(report.mutation.killed > 15, "{report}");
}

#[test]
fn uncovered_constraint_shows_in_the_report() {
    let report = run(&document(), &table(&full()[..1]));
    assert!(report.is_passed());
    assert_eq!(report.tests(), (3, 0));
    let [_, ask] = &report.coverage[..] else { panic!("{report}") };
    assert_eq!((ask.matched, ask.tests[0].held, ask.tests[0].not_held), (0, 0, 1));
    let survivors = &report.mutation.survivors;
    let has = |id: &str, change: Change| {
        let constraint = ConstraintId::new(id).unwrap();
        survivors.contains(&Survivor { constraint, change })
    };
    assert!(has("b", Change::Dropped) && has("b", Change::TestFails(0)), "{report}");
    assert!(has("a", Change::BoundRaised(1)) && has("a", Change::TestHolds(0)), "{report}");
    assert!(has("b", Change::OnFail(OnFail::Block)), "{report}");
    assert!(has("b", Change::Obligation(Obligation::notify("secret"))), "{report}");
    assert!(!has("a", Change::BoundLowered(1)) && !has("a", Change::Dropped), "{report}");
    assert!(report.mutation.permille() < 700, "{report}");
    let text = report.to_string();
    assert!(text.contains("not noticed: b left out"), "{text}");
    assert!(text.contains("never matched: b"), "{text}");
}

#[test]
fn changes_without_effect_do_not_count() {
    let mut document = document();
    // Whatever is denied here is denied as nothing allows it.
    let mut more = constraint("c", Effect::Deny, Condition::All(vec![]));
    more.subject = Subject::Tool(ToolId::new("fs.write").unwrap());
    document.constraints.push(more);
    let report = run(&document, &table(&full()));
    let of_more: Vec<&Survivor> =
        report.mutation.survivors.iter().filter(|one| one.constraint.as_str() == "c").collect();
    assert_eq!(of_more.iter().map(|one| &one.change).collect::<Vec<_>>(), [&Change::Effect]);
    // Left out, and three other levels but for degrade, which takes nothing away here.
    assert_eq!(report.mutation.equivalent, 3, "{report}");
}

#[test]
fn failures_name_what_was_expected() {
    let cases = [
        ("verdict", r#""verdict":"deny""#),
        ("deciding", r#""verdict":"allow","deciding":null"#),
        ("matches", r#""verdict":"allow","matches":["b"]"#),
        ("obligations", r#""verdict":"allow","obligations":[{"type":"read_only"}]"#),
        ("fine", r#""verdict":"allow""#),
    ];
    let cases: Vec<_> = cases.iter().map(|(name, rest)| case(name, "ws/x", 1, rest)).collect();
    let report = run(&document(), &table(&cases));
    let failed: Vec<&str> = report.failures.iter().map(|failure| &*failure.name).collect();
    assert_eq!(failed, ["verdict", "deciding", "matches", "obligations"]);
    assert_eq!(report.failures[0].got.verdict, Verdict::Allow);
}

#[test]
fn a_malformed_table_is_refused_with_its_place() {
    let one = |case: &str| format!(r#"{{"v":1,"cases":[{case}]}}"#);
    for (text, fault, place) in [
        ("{".to_string(), TableFault::Json, "byte 1"),
        ("[]".to_string(), TableFault::Value, ""),
        (r#"{"v":2,"cases":[]}"#.to_string(), TableFault::Version, "v"),
        (r#"{"v":1}"#.to_string(), TableFault::MissingKey, ""),
        (r#"{"v":1,"cases":[],"more":1}"#.to_string(), TableFault::UnknownKey, ""),
        (r#"{"v":1,"cases":{}}"#.to_string(), TableFault::Value, "cases"),
        (one(r#"{"name":"a","given":{}}"#), TableFault::MissingKey, "cases[0]"),
        (one(r#"{"name":"a","given":{},"verdict":"alow"}"#), TableFault::Value, "cases[0].verdict"),
        (
            one(r#"{"name":"a","given":{},"verdict":"allow","obligations":[{"type":"approval"}]}"#),
            TableFault::Value,
            "cases[0].obligations[0]",
        ),
        (
            one(r#"{"name":"a","given":{},"verdict":"allow","matches":["a b"]}"#),
            TableFault::Value,
            "cases[0].matches[0]",
        ),
    ] {
        let error = Table::from_json(text.as_bytes()).unwrap_err();
        assert_eq!((&error.fault, &*error.place), (&fault, place), "{text}");
    }
    let scenario = one(r#"{"name":"a","given":{"args":1},"verdict":"allow"}"#);
    let error = Table::from_json(scenario.as_bytes()).unwrap_err();
    assert!(matches!(error.fault, TableFault::Scenario(_)), "{error}");
    assert_eq!(&*error.place, "cases[0].given.args");
    let long = vec![b' '; TABLE_BYTES_MAX + 1];
    assert_eq!(Table::from_json(&long).unwrap_err().fault, TableFault::Size);
    assert_eq!(Table::from_cbor(&[0xff]).unwrap_err().fault, TableFault::Cbor);
}
