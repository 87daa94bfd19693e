//! The conformance vectors of `docs/spec/policy.md`: the engine, and the definition of its
//! semantics.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use syscap_format::{Decision, Obligation};
use syscap_policy::{Policy, Scenario, semantics};

fn cases(kind: &str) -> Vec<Value> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance/vectors/policies.json");
    let file: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let cases = file["cases"].as_array().unwrap().iter();
    cases.filter(|case| case["kind"] == kind).cloned().collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn documents_are_read_and_refused_as_the_vectors_say() {
    for case in cases("policy") {
        let found = Policy::from_json(case["document"].to_string().as_bytes());
        assert_eq!(found.is_ok(), case["result"] == "valid", "{case}");
        let Ok(policy) = found else { continue };
        assert_eq!(case["hash"], policy.hash().to_string(), "{case}");
        let bytes = syscap_kernel::object_of(&policy).document;
        assert_eq!(case["canonical"].as_str().unwrap_or(&hex(&bytes)), hex(&bytes), "{case}");
        assert_eq!(Policy::from_cbor(&bytes).map(|again| again.hash()), Ok(policy.hash()));
    }
}

fn said(obligations: &[Obligation]) -> Value {
    let one = |one: &Obligation| json!({"kind": one.kind.name(), "name": one.name, "max": one.max});
    obligations.iter().map(one).collect()
}

#[test]
fn engine_and_semantics_decide_as_the_vectors_say() {
    let all = cases("decide");
    assert!(all.len() > 300);
    for case in all {
        let policy = Policy::from_json(case["document"].to_string().as_bytes()).unwrap();
        let given = Scenario::from_json(case["given"].to_string().as_bytes()).unwrap();
        let wanted = &case["decision"];
        let Decision { verdict, deciding, matches, obligations, .. } = policy.decide_values(&given);
        let plain = semantics::decide(policy.written(), &given);
        assert_eq!(plain.verdict, verdict, "{case}");
        assert_eq!(plain.deciding, deciding, "{case}");
        assert_eq!(plain.matches, matches, "{case}");
        assert_eq!(plain.obligations, obligations, "{case}");
        let deciding = deciding.map(|id| id.to_string());
        let matches: Vec<String> = matches.iter().map(ToString::to_string).collect();
        let found = json!({
            "verdict": verdict.name(), "deciding": deciding, "matches": matches,
            "obligations": said(&obligations),
        });
        assert_eq!(*wanted, found, "{case}");
    }
}
