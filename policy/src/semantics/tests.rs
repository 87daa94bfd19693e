use alloc::{boxed::Box, collections::BTreeMap, format, vec};

use syscap_format::{EffectClass, Root, RootedPath, ToolId};

use super::*;
use crate::document::{OnFail, Test};
use crate::scenario::{Given, Scenario};

fn text(text: &str) -> Constant {
    Constant::Text(Box::from(text))
}

fn eq(constant: &str) -> Ask {
    Ask::Eq(text(constant))
}

fn scenario(json: &str) -> Scenario {
    Scenario::from_json(json.as_bytes()).unwrap()
}

/// What is known of `args.a`, written as in a scenario.
fn of(what: &Ask, json: &str) -> Truth {
    let given = scenario(&alloc::format!("{{\"args.a\":{json}}}"));
    ask(what, &given.value(&Attribute::parse("args.a").unwrap()))
}

const ALL: [&str; 12] = [
    "\"a\"",
    "1",
    "true",
    "null",
    r#"{"type":"float"}"#,
    r#"{"type":"map"}"#,
    r#"{"type":"empty_list"}"#,
    r#"{"path":"ws/a"}"#,
    r#"{"host":"a.b"}"#,
    r#"{"address":"10.0.0.1"}"#,
    "[1]",
    r#"{"resources":[1]}"#,
];

#[test]
fn presence_is_unknown_of_what_was_erased_only() {
    for json in ALL {
        assert_eq!(of(&Ask::Exists, json), Truth::True, "{json}");
        assert_eq!(of(&Ask::Missing, json), Truth::False, "{json}");
    }
    assert_eq!(ask(&Ask::Exists, &Value::Missing), Truth::False);
    assert_eq!(ask(&Ask::Missing, &Value::Missing), Truth::True);
    assert_eq!(ask(&Ask::Exists, &Value::Erased), Truth::Unknown);
    assert_eq!(ask(&Ask::Missing, &Value::Erased), Truth::Unknown);
}

#[test]
fn comparisons_of_another_type_are_unknown() {
    let asks = [
        (Ask::Eq(Constant::Bool(true)), vec!["true"]),
        (Ask::Eq(Constant::Int(1)), vec!["1", "[1]", r#"{"resources":[1]}"#]),
        (Ask::Lt(2), vec!["1", "[1]", r#"{"resources":[1]}"#]),
        (eq("a"), vec!["\"a\"", r#"{"path":"ws/a"}"#, r#"{"host":"a.b"}"#]),
        (Ask::Prefix("a".into()), vec!["\"a\""]),
        (Ask::Suffix("a".into()), vec!["\"a\""]),
        (Ask::Within("ws".into()), vec![r#"{"path":"ws/a"}"#]),
        (Ask::Domain(Host::new("b").unwrap()), vec![r#"{"host":"a.b"}"#]),
        (
            Ask::Cidr(Cidr::new("10.0.0.0".parse().unwrap(), 8).unwrap()),
            vec![r#"{"address":"10.0.0.1"}"#],
        ),
    ];
    for (what, known) in asks {
        for json in ALL {
            let is_known = of(&what, json) != Truth::Unknown;
            assert_eq!(is_known, known.contains(&json), "{what:?} of {json}");
        }
        assert_eq!(ask(&what, &Value::Missing), Truth::Unknown);
        assert_eq!(ask(&what, &Value::Erased), Truth::Unknown);
    }
}

#[test]
fn schema_knows_types() {
    use ParamType as Kind;
    for (json, kinds) in [
        ("\"a\"", vec![Kind::Text]),
        ("1", vec![Kind::Int, Kind::Number]),
        ("true", vec![Kind::Bool]),
        ("null", vec![]),
        (r#"{"type":"float"}"#, vec![Kind::Number]),
        (r#"{"type":"bytes"}"#, vec![Kind::Bytes]),
        (r#"{"type":"map"}"#, vec![Kind::Map]),
        (r#"{"type":"empty_list"}"#, vec![Kind::List]),
        ("[1]", vec![Kind::List]),
        (r#"{"path":"ws/a"}"#, vec![Kind::Text, Kind::Path]),
        (r#"{"tree":"ws/a"}"#, vec![Kind::Text, Kind::Path]),
        (r#"{"host":"a.b"}"#, vec![Kind::Text]),
        (r#"{"address":"::1"}"#, vec![]),
        (r#"{"resources":[{"path":"ws"},{"path":"ws/a"}]}"#, vec![Kind::Text, Kind::Path]),
        (r#"{"resources":[{"path":"ws"},1]}"#, vec![Kind::Text]),
    ] {
        for kind in ParamType::ALL.iter().copied().filter(|kind| *kind != Kind::Any) {
            let is = Truth::of(kinds.contains(&kind));
            assert_eq!(of(&Ask::Schema(kind), json), is, "{json} {}", kind.name());
        }
    }
    assert_eq!(ask(&Ask::Schema(Kind::Text), &Value::Missing), Truth::Unknown);
    assert_eq!(ask(&Ask::Schema(Kind::Text), &Value::Erased), Truth::Unknown);
}

#[test]
fn text_constants_equal_texts_paths_and_hosts() {
    use Truth::{False, True};
    let path = r#"{"path":"ws/a/b"}"#;
    let host = r#"{"host":"a.example"}"#;
    for (constant, json, is) in [
        ("a", "\"a\"", True),
        ("A", "\"a\"", False),
        ("ws/a/b", path, True),
        ("ws/a", path, False),
        ("ws", r#"{"path":"ws"}"#, True),
        ("workspace/a", r#"{"path":"workspace/a"}"#, True),
        ("a.example", host, True),
        ("https://A.Example./", host, True),
        ("example", host, False),
        ("no host", host, False),
        ("https://a.example/x", host, False),
    ] {
        assert_eq!(of(&eq(constant), json), is, "{constant} {json}");
    }
    let both = Ask::In(vec![text("a"), Constant::Int(1)]);
    for (json, is) in [("\"a\"", True), ("1", True), ("\"b\"", Truth::Unknown)] {
        assert_eq!(of(&both, json), is, "{json}");
    }
    assert_eq!(of(&both, "true"), Truth::Unknown);
    assert_eq!(of(&Ask::In(vec![text("a"), text("b")]), "\"c\""), False);
}

#[test]
fn bounds_prefixes_and_places() {
    for (what, json, is) in [
        (Ask::Lt(3), "2", true),
        (Ask::Lt(3), "3", false),
        (Ask::Le(3), "3", true),
        (Ask::Le(3), "4", false),
        (Ask::Gt(3), "4", true),
        (Ask::Gt(3), "3", false),
        (Ask::Ge(3), "3", true),
        (Ask::Ge(3), "2", false),
        (Ask::Prefix("ab".into()), "\"abc\"", true),
        (Ask::Prefix("b".into()), "\"abc\"", false),
        (Ask::Suffix("bc".into()), "\"abc\"", true),
        (Ask::Suffix("b".into()), "\"abc\"", false),
        (Ask::Within("ws/a".into()), r#"{"path":"ws/a"}"#, true),
        (Ask::Within("ws/a".into()), r#"{"path":"ws/a/b"}"#, true),
        (Ask::Within("ws/a".into()), r#"{"path":"ws/ab"}"#, false),
        (Ask::Domain(Host::new("b.c").unwrap()), r#"{"host":"b.c"}"#, true),
        (Ask::Domain(Host::new("b.c").unwrap()), r#"{"host":"a.b.c"}"#, true),
        (Ask::Domain(Host::new("b.c").unwrap()), r#"{"host":"ab.c"}"#, false),
    ] {
        assert_eq!(of(&what, json), Truth::of(is), "{what:?} {json}");
    }
    let within = Ask::Within("team".into());
    assert_eq!(ask(&within, &Value::Agent("team/a")), Truth::True);
    assert_eq!(ask(&within, &Value::Agent("teams")), Truth::False);
    let ours = Given::path("workspace/a").unwrap();
    let is_own = |path: &RootedPath| matches!(path.root(), Root::Workspace(_));
    assert!(matches!(ours.value(), Value::Path(path) if is_own(path)));
    assert_eq!(ask(&Ask::Within("workspace".into()), &ours.value()), Truth::True);
}

#[test]
fn addresses_lie_in_blocks() {
    let block = |text: &str, bits| Ask::Cidr(Cidr::new(text.parse().unwrap(), bits).unwrap());
    for (what, json, is) in [
        (block("10.0.0.0", 8), r#"{"address":"10.255.0.1"}"#, Truth::True),
        (block("10.0.0.0", 8), r#"{"address":"11.0.0.0"}"#, Truth::False),
        (block("0.0.0.0", 0), r#"{"address":"11.0.0.0"}"#, Truth::True),
        (block("10.0.0.0", 8), r#"{"address":"::ffff:10.0.0.1"}"#, Truth::True),
        (block("::", 0), r#"{"address":"::ffff:10.0.0.1"}"#, Truth::False),
        (block("fc00::", 7), r#"{"address":"fd00::1"}"#, Truth::True),
        (block("10.0.0.0", 8), "\"10.0.0.1\"", Truth::True),
        (block("10.0.0.0", 8), "\"::ffff:10.0.0.1\"", Truth::True),
        (block("10.0.0.0", 8), "\"10.0.0\"", Truth::Unknown),
        (block("10.0.0.0", 8), r#"{"resources":["10.0.0.1"]}"#, Truth::Unknown),
    ] {
        assert_eq!(of(&what, json), is, "{what:?} {json}");
    }
}

#[test]
fn lists_and_resources_agree_or_nothing_is_known() {
    use Truth::{False, True, Unknown};
    for (what, json, is) in [
        (eq("a"), r#"["a","a"]"#, True),
        (eq("a"), r#"["a","b"]"#, Unknown),
        (eq("a"), r#"["b","c"]"#, False),
        (eq("a"), r#"["a",1]"#, Unknown),
        (Ask::In(vec![text("a"), text("b")]), r#"["a","b"]"#, True),
        (eq("ws/a"), r#"{"resources":[{"path":"ws/a"},443]}"#, Unknown),
        (eq("ws/a"), r#"{"resources":[{"path":"ws/a"},{"host":"b"}]}"#, Unknown),
        (Ask::Le(443), r#"{"resources":[80,443]}"#, True),
        (Ask::Le(443), r#"{"resources":[{"host":"b"},443]}"#, Unknown),
        (Ask::Domain(Host::new("b").unwrap()), r#"{"resources":[{"host":"a.b"},80]}"#, Unknown),
        (
            Ask::Domain(Host::new("b").unwrap()),
            r#"{"resources":[{"host":"a.b"},{"host":"b"}]}"#,
            True,
        ),
        // What an address that comes along opens is not the host's word.
        (
            Ask::Domain(Host::new("b").unwrap()),
            r#"{"resources":[{"host":"a.b"},{"address":"169.254.169.254"}]}"#,
            Unknown,
        ),
        // Nor is a text that reads like an address one of the resources that are asked about.
        (
            Ask::Cidr(Cidr::new("10.0.0.0".parse().unwrap(), 8).unwrap()),
            r#"{"resources":[{"address":"10.1.1.1"},"10.1.1.2"]}"#,
            Unknown,
        ),
        (Ask::Within("ws".into()), r#"{"resources":[{"host":"b"}]}"#, Unknown),
        (Ask::Prefix("a".into()), r#"{"resources":["ab",{"host":"b"}]}"#, Unknown),
        (Ask::Eq(Constant::Bool(true)), r#"{"resources":["ab"]}"#, Unknown),
    ] {
        assert_eq!(of(&what, json), is, "{what:?} {json}");
    }
}

fn known(name: &str, truth: Truth) -> Condition {
    let ask = match truth {
        Truth::True => Ask::Missing,
        Truth::False => Ask::Exists,
        Truth::Unknown => Ask::Lt(0),
    };
    let attribute = Attribute::parse(name).unwrap();
    Condition::Test(Test { attribute, ask })
}

#[test]
fn joins_are_kleenes() {
    use Truth::{False, True, Unknown};
    let all = [False, Unknown, True];
    let nothing = Scenario::new();
    for a in all {
        let one = known("args.a", a);
        assert_eq!(eval(&Condition::Not(Box::new(one.clone())), &nothing), a.negate());
        for b in all {
            let both = vec![one.clone(), known("args.b", b)];
            assert_eq!(eval(&Condition::All(both.clone()), &nothing), a.min(b));
            assert_eq!(eval(&Condition::Any(both), &nothing), a.max(b));
        }
    }
    assert_eq!(eval(&Condition::All(vec![]), &nothing), True);
    assert_eq!(eval(&Condition::Any(vec![]), &nothing), False);
}

fn made(id: &str, effect: Effect, truth: Truth, on_fail: OnFail) -> Constraint {
    Constraint {
        id: ConstraintId::new(id).unwrap(),
        effect,
        subject: Subject::All,
        when: known("args.a", truth),
        on_fail,
        reason: Box::from("because"),
        obligations: Vec::new(),
    }
}

fn document(constraints: Vec<Constraint>) -> Document {
    Document { constraints, risk: BTreeMap::new() }
}

/// Verdict, who decides, how many match.
fn outcome(constraints: Vec<Constraint>) -> (Verdict, Option<ConstraintId>, usize) {
    let outcome = decide(&document(constraints), &Scenario::new());
    (outcome.verdict, outcome.deciding, outcome.matches.len())
}

#[test]
fn allows_grant_what_is_true_and_denies_apply_unless_false() {
    use Effect::{Allow, Deny};
    use OnFail::{Ask as Asks, Block, Defer};
    use Truth::{False, True, Unknown};
    let id = |text: &str| ConstraintId::new(text);
    assert_eq!(outcome(vec![]), (Verdict::Deny, None, 0));
    assert_eq!(outcome(vec![made("a", Allow, True, Block)]), (Verdict::Allow, id("a"), 1));
    for truth in [False, Unknown] {
        let failing = vec![made("a", Allow, truth, Asks), made("b", Allow, truth, Defer)];
        assert_eq!(outcome(failing), (Verdict::Defer, id("b"), 0));
    }
    for truth in [True, Unknown] {
        let both = vec![made("a", Allow, True, Block), made("b", Deny, truth, Asks)];
        assert_eq!(outcome(both), (Verdict::Ask, id("b"), 2));
    }
    let not = vec![made("a", Allow, True, Block), made("b", Deny, False, Block)];
    assert_eq!(outcome(not), (Verdict::Allow, id("a"), 1));
    let denies = vec![made("a", Deny, True, Defer), made("b", Allow, False, Block)];
    assert_eq!(outcome(denies), (Verdict::Deny, id("b"), 1));
    // Nothing is allowed where no allow is applicable, and nobody decided that.
    assert_eq!(outcome(vec![made("a", Deny, True, Asks)]), (Verdict::Deny, None, 1));
}

#[test]
fn obligations_are_those_of_all_that_match() {
    let mut a = made("a", Effect::Allow, Truth::True, OnFail::Block);
    let mut b = made("b", Effect::Allow, Truth::True, OnFail::Block);
    let mut c = made("c", Effect::Allow, Truth::False, OnFail::Block);
    a.obligations = vec![Obligation::notify("seen")];
    b.obligations = vec![Obligation::result_cap(20)];
    c.obligations = vec![Obligation::read_only()];
    let outcome = decide(&document(vec![a.clone(), b, c]), &Scenario::new());
    assert_eq!(outcome.verdict, Verdict::Degrade);
    assert_eq!(outcome.deciding, ConstraintId::new("b"), "it took something away");
    assert_eq!(outcome.obligations, [Obligation::result_cap(20), Obligation::notify("seen")]);
    let noticed = decide(&document(vec![a]), &Scenario::new());
    assert_eq!(noticed.verdict, Verdict::Allow);
}

#[test]
fn subjects_and_risk_follow_from_the_call() {
    let risky = |bound| {
        let attribute = Attribute::Risk;
        Condition::Test(Test { attribute, ask: Ask::Ge(bound) })
    };
    let mut allow = made("a", Effect::Allow, Truth::True, OnFail::Block);
    allow.subject = Subject::Tool(ToolId::new("fs.read").unwrap());
    let mut deny = made("b", Effect::Deny, Truth::True, OnFail::Ask);
    deny.subject = Subject::Capability(EffectClass::Read);
    deny.when = risky(50);
    let mut document = document(vec![allow, deny]);
    let call = scenario(r#"{"call.tool":"fs.read","call.effect":"read"}"#);
    assert_eq!(decide(&document, &call).verdict, Verdict::Allow);
    document.risk.insert(ToolId::new("fs.read").unwrap(), 50);
    assert_eq!(decide(&document, &call).verdict, Verdict::Ask);
    let given = scenario(r#"{"call.tool":"fs.read","call.effect":"read","risk":1}"#);
    assert_eq!(decide(&document, &given).verdict, Verdict::Allow);
    let nothing = decide(&document, &scenario("{}"));
    assert_eq!((nothing.verdict, nothing.matches.len()), (Verdict::Deny, 0));
}

/// Of a tree holds what holds of all in it; what may hold of a part can't be said.
#[test]
fn what_may_hold_of_a_part_of_a_tree_can_not_be_said() {
    use Truth::{False, True, Unknown};
    for (tree, constant, within, equal) in [
        ("ws/a", "ws", True, False),
        ("ws/a", "ws/a", True, Unknown),
        ("ws/a", "ws/a/b", Unknown, Unknown),
        ("ws", "ws/a/b", Unknown, Unknown),
        ("ws/a", "ws/ab", False, False),
        ("ws/ab", "ws/a", False, False),
        ("ws/a", "other", False, False),
    ] {
        let json = format!(r#"{{"tree":"{tree}"}}"#);
        assert_eq!(of(&Ask::Within(constant.into()), &json), within, "{tree} within {constant}");
        assert_eq!(of(&Ask::Eq(text(constant)), &json), equal, "{tree} is {constant}");
        let among = Ask::In([text("none"), text(constant)].into());
        assert_eq!(of(&among, &json), equal, "{tree} among {constant}");
        let both = format!(r#"{{"resources":[{{"tree":"{tree}"}},{{"path":"ws/a"}}]}}"#);
        assert_eq!(of(&Ask::Within("ws".into()), &both), Unknown, "{tree} beside another");
    }
    assert_eq!(of(&Ask::Prefix("ws".into()), r#"{"tree":"ws"}"#), Unknown);
    assert_eq!(of(&Ask::Exists, r#"{"tree":"ws"}"#), True);
}
