//! Policy documents, in both forms: one that loads has a canonical form that loads as the same
//! policy, and decides as its semantics say. After a zero byte may stand a scenario.

use syscap::analysis::scenario::to_json;
use syscap::format::{Decision, EffectClass};
use syscap::kernel::{PolicyEngine as _, object_of};
use syscap::policy::limits::TEXT_BYTES_MAX;
use syscap::policy::{Policy, Scenario, Seen, Values, engine, semantics};

use super::asking::Asked;

pub fn policy(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let (text, scenario) = (parts.next().unwrap_or_default(), parts.next());
    let scenario = scenario.and_then(|text| match Scenario::from_json(text) {
        Ok(scenario) => {
            let again = Scenario::from_json(to_json(&scenario).as_bytes());
            assert_eq!(again.as_ref(), Ok(&scenario));
            Some(scenario)
        }
        Err(error) => {
            drop(error.to_string());
            None
        }
    });
    for loaded in [Policy::from_json(text), Policy::from_cbor(data)] {
        match loaded {
            Ok(policy) => {
                reloads(&policy);
                decides(&policy, scenario.as_ref());
            }
            Err(error) => drop(error.to_string()),
        }
    }
}

fn reloads(policy: &Policy) {
    let (hash, document) = (policy.hash(), policy.document());
    let again = Policy::from_cbor(&document).unwrap();
    assert_eq!((again.hash(), again.document()), (hash, document.clone()));
    let text = policy.to_json();
    assert!(
        text.len() > TEXT_BYTES_MAX || Policy::from_json(text.as_bytes()).unwrap().hash() == hash
    );
    let taken = engine(&object_of(policy)).expect("an engine for what was loaded");
    assert_eq!(taken.document(), document);
}

fn decides(policy: &Policy, scenario: Option<&Scenario>) {
    for asked in questions() {
        let question = asked.question();
        let decision = policy.decide(&question);
        agrees(policy, &Seen::new(&question, policy.written()), &decision);
        assert_eq!(policy.explain(&question).decision, decision);
        drop(policy.advise(&question, &decision));
    }
    let empty = Scenario::new();
    for scenario in [Some(&empty), scenario].into_iter().flatten() {
        let decision = policy.decide_values(scenario);
        agrees(policy, scenario, &decision);
        assert_eq!(policy.explain_values(scenario).decision, decision);
    }
}

/// The compiled engine decides as the document is defined to mean.
fn agrees(policy: &Policy, values: &dyn Values, decision: &Decision) {
    let wanted = semantics::decide(policy.written(), values);
    assert_eq!(decision.verdict, wanted.verdict);
    assert_eq!(decision.deciding, wanted.deciding);
    assert_eq!(decision.obligations, wanted.obligations);
    assert_eq!(usize::try_from(decision.match_count).unwrap(), wanted.matches.len());
    assert!(wanted.matches.starts_with(&decision.matches));
}

fn questions() -> [Asked; 3] {
    [
        Asked::new("fs.read", EffectClass::Read, r#"{"path": "workspace/a/b.txt", "n": 7}"#)
            .path("path", "workspace/a/b.txt")
            .fact("goal.aim", Some("3"))
            .fact("fact.gone", None),
        Asked::new(
            "mail",
            EffectClass::ExternalWrite,
            r#"{"to": "a@b.example", "cc": ["x", "y"]}"#,
        )
        .fact("fact.seen", Some(r#"{"a": [1, 2.5, null]}"#)),
        Asked::new(
            "pay",
            EffectClass::Irreversible,
            r#"{"amount": 250, "list": [], "deep": {"a": {"b": -1}}}"#,
        ),
    ]
}
