//! Cedar as an oracle: in the shared fragment, where nothing is unknown, both decide alike.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod random;

use std::collections::BTreeMap;

use cedar_policy::{Authorizer, Decision, Entities, PolicySet};
use random::{Random, declared, document, scenario};
use syscap_compare::cedar::{Outside, Policies, parse, text};
use syscap_format::Verdict;
use syscap_policy::{Ask, Condition, Document, Effect, LoadFault, Policy, Scenario};

const DOCUMENTS: usize = 1_000;
const SCENARIOS: usize = 100;

#[derive(Default)]
struct Counts {
    decisions: usize,
    allowed: usize,
    denied: usize,
    errors: usize,
    contradictions: usize,
    by_default: usize,
    disagreements: Vec<String>,
    ops: BTreeMap<&'static str, usize>,
    constraints: usize,
}

/// Decides everything by both; Cedar gets what `translate` makes of each document.
fn run(documents: usize, translate: impl Fn(&Document) -> PolicySet) -> Counts {
    let declared = declared();
    let mut random = Random(0x5ca1_ab1e);
    let mut counts = Counts::default();
    let (authorizer, none) = (Authorizer::new(), Entities::empty());
    let mut made = 0;
    while made < documents {
        let json = document(&mut random).to_string();
        let policy = match Policy::from_json(json.as_bytes()) {
            Err(error) if error.fault == LoadFault::Contradiction => {
                counts.contradictions += 1;
                continue;
            }
            read => read.unwrap_or_else(|error| panic!("{error}\n{json}")),
        };
        made += 1;
        counts.constraints += policy.written().constraints.len();
        for constraint in &policy.written().constraints {
            count(&constraint.when, &mut counts.ops);
        }
        let whole = Policies::of(policy.written(), &declared).unwrap();
        let set = translate(policy.written());
        for _ in 0..SCENARIOS {
            let scenario = scenario(&mut random);
            let request = whole.request(&scenario).unwrap();
            let ours = policy.decide_values(&scenario);
            let theirs = authorizer.is_authorized(&request, &set, &none);
            counts.decisions += 1;
            counts.errors += theirs.diagnostics().errors().count();
            counts.by_default += usize::from(ours.deciding.is_none());
            let alike = match ours.verdict {
                Verdict::Allow => {
                    counts.allowed += 1;
                    theirs.decision() == Decision::Allow
                }
                Verdict::Deny => {
                    counts.denied += 1;
                    theirs.decision() == Decision::Deny
                }
                other => panic!("{other:?} in the shared fragment"),
            };
            if !alike {
                let found = format!("{json}\n{scenario:?}\n{ours:?}\n{theirs:?}");
                counts.disagreements.push(found);
            }
        }
    }
    counts
}

fn count(condition: &Condition, ops: &mut BTreeMap<&'static str, usize>) {
    let name = match condition {
        Condition::All(parts) => {
            parts.iter().for_each(|part| count(part, ops));
            "all"
        }
        Condition::Any(parts) => {
            parts.iter().for_each(|part| count(part, ops));
            "any"
        }
        Condition::Not(part) => {
            count(part, ops);
            "not"
        }
        Condition::Test(test) => match test.ask {
            Ask::Eq(_) => "eq",
            Ask::In(_) => "in",
            Ask::Exists => "exists",
            Ask::Missing => "missing",
            Ask::Schema(_) => "schema",
            Ask::Lt(_) => "lt",
            Ask::Le(_) => "le",
            Ask::Gt(_) => "gt",
            Ask::Ge(_) => "ge",
            Ask::Prefix(_) => "prefix",
            Ask::Suffix(_) => "suffix",
            Ask::Within(_) => "within",
            Ask::Domain(_) => "domain",
            Ask::Cidr(_) => "cidr",
        },
    };
    *ops.entry(name).or_default() += 1;
}

fn of(document: &Document) -> PolicySet {
    parse(&text(document, &declared()).unwrap().0).unwrap()
}

#[test]
fn a_hundred_thousand_decisions_are_cedars() {
    let counts = run(DOCUMENTS, of);
    println!(
        "{} decisions: {} allowed, {} denied ({} of them by no constraint), {} disagreements, \
         {} errors of Cedar; {} constraints in {DOCUMENTS} documents, {} contradictions left out",
        counts.decisions,
        counts.allowed,
        counts.denied,
        counts.by_default,
        counts.disagreements.len(),
        counts.errors,
        counts.constraints,
        counts.contradictions,
    );
    println!("{:?}", counts.ops);
    if let Some(first) = counts.disagreements.first() {
        panic!("{} disagreements, the first:\n{first}", counts.disagreements.len());
    }
    assert_eq!(counts.decisions, 100_000);
    assert_eq!(counts.errors, 0);
    assert!(counts.allowed >= 20_000 && counts.denied >= 20_000);
    assert_eq!(counts.ops.len(), 16);
    for (op, times) in counts.ops {
        assert!(times >= 1_000, "{op}: {times}");
    }
}

/// The text of a document with every occurrence of something replaced.
fn broken(from: &'static str, to: &'static str) -> impl Fn(&Document) -> PolicySet {
    move |document| {
        let (text, _) = text(document, &declared()).unwrap();
        parse(&text.replace(from, to)).unwrap()
    }
}

#[test]
fn a_broken_translation_is_seen() {
    let swapped = |document: &Document| {
        let mut document = document.clone();
        let first = &mut document.constraints[0];
        first.effect = match first.effect {
            Effect::Allow => Effect::Deny,
            Effect::Deny => Effect::Allow,
        };
        of(&document)
    };
    let few = 200;
    assert_eq!(run(few, of).disagreements.len(), 0);
    let seen = |what: &str, counts: Counts| {
        println!("{what}: {} of {}", counts.disagreements.len(), counts.decisions);
        assert!(!counts.disagreements.is_empty(), "{what}");
    };
    seen("first constraint swapped", run(few, swapped));
    seen("lt as le", run(few, broken("] < ", "] <= ")));
    seen("ge as gt", run(few, broken("] >= ", "] > ")));
    seen("within by text", run(few, broken("/*\"", "*\"")));
    seen("domain by text", run(few, broken("\"*.", "\"*")));
    seen("a star that is none", run(few, broken("\\*", "*")));
    seen("blocks of half", run(few, broken("10.0.0.0/8", "10.0.0.0/9")));
    seen("all as any", run(few, broken(" && ", " || ")));
    seen("not left out", run(few, broken("!(", "(")));
}

/// What both say of a call of `fs.read` by agent `a` with these arguments: here, in Cedar, and
/// how many policies Cedar could not evaluate. Constraints are pairs of effect and condition.
fn both(constraints: &[(&str, &str)], args: &str) -> (Verdict, Decision, usize) {
    let written: Vec<String> = constraints
        .iter()
        .enumerate()
        .map(|(n, (effect, when))| {
            format!(
                r#"{{"id": "c{n}", "effect": "{effect}", "subject": null, "when": {when},
                    "on_fail": "block", "reason": ""}}"#
            )
        })
        .collect();
    let json = format!(r#"{{"v": 1, "constraints": [{}]}}"#, written.join(","));
    let policy = Policy::from_json(json.as_bytes()).unwrap();
    let call = r#""call.tool": "fs.read", "call.effect": "read", "call.agent": "a""#;
    let scenario = Scenario::from_json(format!("{{{call}{args}}}").as_bytes()).unwrap();
    let cedar = Policies::of(policy.written(), &declared()).unwrap();
    let answer = cedar.decide(&cedar.request_as_given(&scenario).unwrap());
    (policy.decide_values(&scenario).verdict, answer.decision, answer.errors.len())
}

const EVERYTHING: (&str, &str) = ("allow", r#"{"op": "all", "args": []}"#);
const IS_ONE: &str = r#"{"op": "eq", "args": ["args.n", 1]}"#;
const IS_A: &str = r#"{"op": "eq", "args": ["args.text", "a"]}"#;
const NOT_ONE: &str = r#"{"op": "not", "args": [{"op": "eq", "args": ["args.n", 1]}]}"#;

fn joined(op: &str, first: &str, second: &str) -> String {
    format!(r#"{{"op": "{op}", "args": [{first}, {second}]}}"#)
}

#[test]
fn an_erroring_forbid_is_skipped_by_cedar_and_restricts_here() {
    let constraints = [EVERYTHING, ("deny", IS_ONE)];
    assert_eq!(both(&constraints, ""), (Verdict::Deny, Decision::Allow, 1));
    assert_eq!(both(&constraints, r#", "args.n": 1"#), (Verdict::Deny, Decision::Deny, 0));
    assert_eq!(both(&constraints, r#", "args.n": 2"#), (Verdict::Allow, Decision::Allow, 0));
}

#[test]
fn an_erroring_part_of_any_hangs_on_the_order_in_cedar_and_never_here() {
    let (before, behind) = (joined("any", IS_ONE, IS_A), joined("any", IS_A, IS_ONE));
    let missing = r#", "args.text": "a""#;
    assert_eq!(both(&[("allow", &before)], missing), (Verdict::Allow, Decision::Deny, 1));
    assert_eq!(both(&[("allow", &behind)], missing), (Verdict::Allow, Decision::Allow, 0));
    for when in [&before, &behind] {
        let there = r#", "args.text": "a", "args.n": 2"#;
        assert_eq!(both(&[("allow", when)], there), (Verdict::Allow, Decision::Allow, 0));
        let there = r#", "args.text": "b", "args.n": 2"#;
        assert_eq!(both(&[("allow", when)], there), (Verdict::Deny, Decision::Deny, 0));
    }
}

#[test]
fn an_erroring_part_of_all_hangs_on_the_order_in_cedar_and_never_here() {
    let (before, behind) = (joined("all", IS_ONE, IS_A), joined("all", IS_A, IS_ONE));
    // Not `a`, so that no value of `n` could make the deny apply.
    let missing = r#", "args.text": "b""#;
    for (when, errors) in [(&before, 1), (&behind, 0)] {
        let constraints = [EVERYTHING, ("deny", when)];
        assert_eq!(both(&constraints, missing), (Verdict::Allow, Decision::Allow, errors));
        // `a`, so that it hangs on what is missing.
        let hangs = both(&constraints, r#", "args.text": "a""#);
        assert_eq!(hangs, (Verdict::Deny, Decision::Allow, 1));
    }
}

#[test]
fn unknown_stays_unknown_under_not() {
    let constraints = [EVERYTHING, ("deny", NOT_ONE)];
    assert_eq!(both(&constraints, ""), (Verdict::Deny, Decision::Allow, 1));
    assert_eq!(both(&[("allow", NOT_ONE)], ""), (Verdict::Deny, Decision::Deny, 1));
    for (n, verdict, decision) in
        [(1, Verdict::Allow, Decision::Allow), (2, Verdict::Deny, Decision::Deny)]
    {
        let there = format!(r#", "args.n": {n}"#);
        assert_eq!(both(&constraints, &there), (verdict, decision, 0));
    }
}

#[test]
fn an_allow_that_asks_about_a_missing_attribute_grants_nowhere() {
    assert_eq!(both(&[("allow", IS_ONE)], ""), (Verdict::Deny, Decision::Deny, 1));
    let there = r#", "args.n": 1"#;
    assert_eq!(both(&[("allow", IS_ONE)], there), (Verdict::Allow, Decision::Allow, 0));
}

#[test]
fn another_type_is_unequal_in_cedar_and_unknown_here() {
    let constraints = [EVERYTHING, ("deny", IS_ONE)];
    let text = r#", "args.n": "1""#;
    assert_eq!(both(&constraints, text), (Verdict::Deny, Decision::Allow, 0));
    assert_eq!(both(&[("allow", NOT_ONE)], text), (Verdict::Deny, Decision::Allow, 0));
}

#[test]
fn constraint_outside_the_fragment_is_refused() {
    let translated = |constraint: &str| {
        let json = format!(r#"{{"v": 1, "constraints": [{constraint}]}}"#);
        let policy = Policy::from_json(json.as_bytes()).unwrap();
        text(policy.written(), &declared()).map(|(text, _)| text)
    };
    let of = |when: &str| {
        translated(&format!(
            r#"{{"id": "c", "effect": "deny", "subject": null, "when": {when},
                "on_fail": "block", "reason": ""}}"#
        ))
    };
    let test = |op: &str, args: &str| of(&format!(r#"{{"op": "{op}", "args": [{args}]}}"#));
    assert!(test("eq", r#""args.n", 1"#).is_ok());
    assert_eq!(test("eq", r#""args.x", 1"#), Err(Outside::Undeclared("args.x".into())));
    assert_eq!(test("eq", r#""args.n", "a""#), Err(Outside::Test("args.n".into())));
    assert_eq!(test("lt", r#""args.text", 1"#), Err(Outside::Test("args.text".into())));
    assert_eq!(test("prefix", r#""args.path", "a""#), Err(Outside::Test("args.path".into())));
    assert_eq!(test("schema", r#""args.n", "integer""#), Err(Outside::Test("args.n".into())));
    let large = i128::from(u64::MAX);
    assert_eq!(test("eq", &format!(r#""args.n", {large}"#)), Err(Outside::Integer(large)));
    let may = r#"{"op": "eq", "args": ["args.may_n", 1]}"#;
    let there = r#"{"op": "exists", "args": ["args.may_n"]}"#;
    let gone = r#"{"op": "missing", "args": ["args.may_n"]}"#;
    let unguarded = Err(Outside::Unguarded("args.may_n".into()));
    assert_eq!(of(may), unguarded);
    assert_eq!(of(&joined("all", may, there)), unguarded);
    assert_eq!(of(&joined("all", gone, may)), unguarded);
    assert_eq!(of(&joined("any", there, may)), unguarded);
    assert!(of(&joined("all", there, may)).is_ok());
    assert!(of(&joined("any", gone, may)).is_ok());
    let asks = r#"{"id": "c", "effect": "deny", "subject": null, "when": {"op": "all", "args": []},
        "on_fail": "ask", "reason": ""}"#;
    assert_eq!(translated(asks), Err(Outside::OnFail("c".into())));
    let limited = r#"{"id": "c", "effect": "allow", "subject": null, "on_fail": "block",
        "when": {"op": "all", "args": []}, "reason": "", "obligations": [{"type": "read_only"}]}"#;
    assert_eq!(translated(limited), Err(Outside::Obligations("c".into())));
}

#[test]
fn a_scenario_outside_of_the_fragment_is_refused() {
    let json = format!(
        r#"{{"v": 1, "constraints": [{{"id": "c", "effect": "deny", "subject": null,
            "when": {IS_ONE}, "on_fail": "block", "reason": ""}}]}}"#
    );
    let policy = Policy::from_json(json.as_bytes()).unwrap();
    let cedar = Policies::of(policy.written(), &declared()).unwrap();
    let call = r#""call.tool": "fs.read", "call.effect": "read", "call.agent": "a""#;
    let request = |args: &str| {
        let scenario = Scenario::from_json(format!("{{{call}{args}}}").as_bytes()).unwrap();
        cedar.request(&scenario).map(|_| ())
    };
    let value = |name: &str| Err(Outside::Value(name.into()));
    assert_eq!(request(r#", "args.n": 1"#), Ok(()));
    assert_eq!(request(""), Err(Outside::NotGiven("args.n".into())));
    assert_eq!(request(r#", "args.n": "1""#), value("args.n"));
    assert_eq!(request(r#", "args.n": [1]"#), value("args.n"));
    assert_eq!(request(r#", "args.n": {"resources": [1]}"#), value("args.n"));
    assert_eq!(
        request(r#", "args.n": 1, "fact.name.of": {"erased": true}"#),
        value("fact.name.of")
    );
    assert_eq!(request(r#", "args.n": 1, "args.x": 1"#), value("args.x"));
    let large = u64::MAX;
    let beyond = Err(Outside::Integer(large.into()));
    assert_eq!(request(&format!(r#", "args.n": {large}"#)), beyond);
}
