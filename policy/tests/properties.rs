//! Laws that hold of every policy and every call, tried on many of both.

use crate::random;
use std::collections::BTreeSet;

use crate::random::{Kinds, Random};
use kernel_support::asking::Asked;
use syscap_format::{Decision, MATCHES_MAX, Verdict, matches_digest};
use syscap_kernel::PolicyEngine;
use syscap_policy::{Condition, Effect, Given, Policy, Seen, Truth, Values, semantics};

/// Documents, and calls of each.
const DOCUMENTS: usize = 2_000;
const CALLS: usize = 10;

fn document(constraints: &[String], params: &str) -> String {
    format!(r#"{{"v":1,"constraints":[{}]{params}}}"#, constraints.join(","))
}

fn load(text: &str) -> Policy {
    Policy::from_json(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Holds the compiled engine's decision against the definition.
fn check(policy: &Policy, values: &dyn Values, decision: &Decision) {
    let wanted = semantics::decide(policy.written(), values);
    assert_eq!(decision.verdict, wanted.verdict, "{}", policy.to_json());
    assert_eq!(decision.deciding, wanted.deciding, "{}", policy.to_json());
    let listed = &wanted.matches[..wanted.matches.len().min(MATCHES_MAX)];
    assert_eq!(decision.matches, listed, "{}", policy.to_json());
    assert_eq!(decision.match_count, wanted.matches.len() as u64);
    assert_eq!(decision.obligations, wanted.obligations);
    let all = &policy.written().constraints;
    let places = wanted.matches.iter().map(|id| all.iter().position(|one| one.id == *id).unwrap());
    let places: Vec<u16> = places.map(|place| place.try_into().unwrap()).collect();
    let digest = (places.len() > MATCHES_MAX).then(|| matches_digest(&places));
    assert_eq!(decision.matches_digest, digest);
}

#[test]
fn compiled_is_as_defined_for_scenarios() {
    let mut random = Random::new(1);
    let mut verdicts = BTreeSet::new();
    for _ in 0..DOCUMENTS {
        let (constraints, params) = random.document(Kinds::All);
        let policy = load(&document(&constraints, &params));
        for _ in 0..CALLS {
            let scenario = random.scenario();
            let decision = policy.decide_values(&scenario);
            check(&policy, &scenario, &decision);
            let explanation = policy.explain_values(&scenario);
            assert_eq!(explanation.decision, decision);
            let matched = explanation.constraints.iter().filter(|one| one.matched).count();
            assert_eq!(matched as u64, decision.match_count);
            verdicts.insert(decision.verdict);
        }
    }
    assert_eq!(verdicts.len(), Verdict::ALL.len());
}

#[test]
fn compiled_is_as_defined_for_questions() {
    let mut random = Random::new(2);
    let mut verdicts = BTreeSet::new();
    for _ in 0..DOCUMENTS {
        let (constraints, params) = random.document(Kinds::All);
        let policy = load(&document(&constraints, &params));
        for _ in 0..CALLS {
            let asked: Asked = random.asked();
            let question = asked.question();
            let decision = policy.decide(&question);
            check(&policy, &Seen::new(&question, policy.written()), &decision);
            verdicts.insert(decision.verdict);
            // Whatever is advised is bounded and says something of an argument or nothing.
            let advice = policy.advise(&question, &decision);
            assert!(
                advice.argument.is_none()
                    || advice.allowed.is_some()
                    || decision.deciding.is_some()
            );
        }
    }
    assert_eq!(verdicts.len(), Verdict::ALL.len());
}

#[test]
fn many_matches_are_counted_and_digested() {
    let mut random = Random::new(3);
    for count in [15, 16, 17, 63, 64, 65, 300] {
        let one = |n| {
            let id = format!("c{n}");
            random::constraint(&id, "deny", "null", r#"{"op":"all","args":[]}"#, "ask", "")
        };
        let mut constraints: Vec<String> = (0..count).map(one).collect();
        random.shuffle(&mut constraints);
        let policy = load(&document(&constraints, ""));
        let scenario = random.scenario();
        check(&policy, &scenario, &policy.decide_values(&scenario));
    }
}

#[test]
fn the_order_in_a_source_never_shows() {
    let mut random = Random::new(4);
    for _ in 0..500 {
        let (mut constraints, params) = random.document(Kinds::All);
        let policy = load(&document(&constraints, &params));
        random.shuffle(&mut constraints);
        let other = load(&document(&constraints, &params));
        assert_eq!(policy.document(), other.document());
        assert_eq!(policy.written(), other.written());
        let scenario = random.scenario();
        assert_eq!(policy.decide_values(&scenario), other.decide_values(&scenario));
    }
}

#[test]
fn a_deny_more_never_loosens() {
    let mut random = Random::new(5);
    for _ in 0..2_000 {
        let (mut constraints, params) = random.document(Kinds::All);
        let before = load(&document(&constraints, &params));
        constraints.push(random.deny("one.more", Kinds::All));
        let text = document(&constraints, &params);
        // It may be the opposite of an allow, which is refused.
        let Ok(after) = Policy::from_json(text.as_bytes()) else { continue };
        for _ in 0..CALLS {
            let scenario = random.scenario();
            let (before, after) = (before.decide_values(&scenario), after.decide_values(&scenario));
            assert!(before.verdict <= after.verdict, "{text}\n{scenario:?}");
        }
    }
}

#[test]
fn unknown_value_never_allows_and_always_restricts() {
    let mut random = Random::new(6);
    let mut unknown = 0;
    for _ in 0..DOCUMENTS {
        let (constraints, params) = random.document(Kinds::All);
        let policy = load(&document(&constraints, &params));
        let mut scenario = random.scenario();
        // So that it is not missing and worked out by the engine.
        scenario.set(syscap_policy::Attribute::Risk, Given::Int(20));
        let decision = policy.decide_values(&scenario);
        for constraint in &policy.written().constraints {
            let applies = semantics::is_about(&constraint.subject, &scenario);
            if !applies || semantics::eval(&constraint.when, &scenario) != Truth::Unknown {
                continue;
            }
            unknown += 1;
            let matched = decision.matches.contains(&constraint.id);
            match constraint.effect {
                Effect::Allow => assert!(!matched),
                Effect::Deny if decision.match_count <= MATCHES_MAX as u64 => assert!(matched),
                Effect::Deny => {}
            }
        }
    }
    assert!(unknown > 1_000, "{unknown}");
}

/// Without `exists` and `missing`, knowing less about a call is never better for it: whatever is
/// erased, or taken away, the verdict is as strict as before. Two things are out of this law:
/// the attributes that say which constraints apply, and allows that take something away, since
/// one that grants no longer takes nothing away where another still grants.
#[test]
fn to_know_less_never_loosens() {
    let mut random = Random::new(7);
    let mut stricter = 0;
    for _ in 0..DOCUMENTS {
        let (constraints, params) = random.document(Kinds::WithoutPresence);
        let policy = load(&document(&constraints, &params));
        assert!(policy.written().constraints.iter().all(|one| !asks_presence(&one.when)));
        let scenario = random.scenario();
        let before = policy.decide_values(&scenario).verdict;
        let given: Vec<_> = scenario.iter().map(|(attribute, _)| attribute.clone()).collect();
        for attribute in given {
            use syscap_policy::Attribute;
            if matches!(attribute, Attribute::Tool | Attribute::EffectClass) {
                continue;
            }
            let mut erased = scenario.clone();
            erased.set(attribute.clone(), Given::Erased);
            let mut missing = scenario.clone();
            missing.remove(&attribute);
            for less in [erased, missing] {
                if attribute == Attribute::Risk && less.get(&attribute).is_none() {
                    // It follows from the tool then, and is known.
                    continue;
                }
                let after = policy.decide_values(&less).verdict;
                assert!(before <= after, "{attribute}\n{}\n{less:?}", policy.to_json());
                stricter += usize::from(before < after);
            }
        }
    }
    assert!(stricter > 100, "{stricter}");
}

fn asks_presence(condition: &Condition) -> bool {
    use syscap_policy::Ask;
    match condition {
        Condition::All(parts) | Condition::Any(parts) => parts.iter().any(asks_presence),
        Condition::Not(part) => asks_presence(part),
        Condition::Test(test) => matches!(test.ask, Ask::Exists | Ask::Missing),
    }
}

#[test]
fn written_policy_reads_back_equal() {
    let mut random = Random::new(8);
    for _ in 0..1_000 {
        let (constraints, params) = random.document(Kinds::All);
        let policy = load(&document(&constraints, &params));
        let bytes = policy.document();
        let again = Policy::from_cbor(&bytes).unwrap();
        assert_eq!(again.document(), bytes);
        assert_eq!(again.written(), policy.written());
        let text = load(&policy.to_json());
        assert_eq!(text.document(), bytes);
        assert_eq!(text.to_json(), policy.to_json());
        assert_eq!(text.hash(), policy.hash());
    }
}
