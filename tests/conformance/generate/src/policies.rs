//! Vectors of `policy.md`: documents, their bytes and hashes, and decisions. `policies.txt` has
//! them, as an author writes them down; here ours is asked about each.

use serde_json::{Deserializer, Value, json};
use syscap_format::Decision;
use syscap_policy::{Policy, Scenario};

use crate::case::{Cases, Of, hex};
use crate::random::{Kinds, Random};

const WRITTEN: &str = include_str!("../policies.txt");

/// The vectors.
pub(crate) fn cases() -> Cases {
    let mut cases = Cases::default();
    let mut of = Of("", "");
    for line in WRITTEN.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix("  ") {
            Some(vector) => written(&mut cases, of, vector),
            None => {
                let (number, catches) = line.split_once(' ').expect(line);
                of = Of(format!("SYSCAP-{number}").leak(), catches);
            }
        }
    }
    limits(&mut cases);
    lists(&mut cases);
    cases
}

/// Decisions of documents and calls by chance.
pub(crate) fn random(count: usize, seed: u64) -> Cases {
    let of = Of("SYSCAP-POL-065", "two engines decide otherwise");
    let (mut cases, mut random) = (Cases::default(), Random::new(seed));
    while cases.0.len() < count {
        let (constraints, params) = random.document(Kinds::All);
        let text = format!(r#"{{"v":1,"constraints":[{}]{params}}}"#, constraints.join(","));
        let document = serde_json::from_str(&text).expect("a document");
        for _ in 0..4 {
            let scenario = random.scenario();
            let given = syscap_analysis::scenario::to_json(&scenario);
            let given = serde_json::from_str(&given).expect("values");
            decided_as(&mut cases, of, &document, &given, &scenario);
        }
    }
    cases
}

/// A line of the file.
fn written(cases: &mut Cases, of: Of, line: &str) {
    let (sign, rest) = line.split_once(' ').expect(line);
    match sign {
        "+" | "-" => read(cases, of, &document(rest), sign == "+"),
        "#" => canonical(cases, of, &document(rest)),
        "=" => {
            let (verdict, rest) = rest.split_once(' ').expect(line);
            let call = json!({"call.tool": "t", "call.effect": "read", "call.agent": "team/a"});
            let decision = decided(cases, of, &document(rest), &call);
            assert_eq!(decision.verdict.name(), verdict, "{line}");
        }
        "~" => {
            let (count, rest) = rest.split_once(' ').expect(line);
            let values = values(rest);
            let mut document = telling(&values[0]);
            if let Some(params) = values.get(2) {
                document["params"] = params.clone();
            }
            let decision = decided(cases, of, &document, &values[1]);
            assert_eq!(decision.match_count.to_string(), count, "{line}");
        }
        "?" => tests(cases, of, rest),
        _ => panic!("{line}"),
    }
}

/// The JSON values that stand one after another.
fn values(text: &str) -> Vec<Value> {
    Deserializer::from_str(text).into_iter().map(|value| value.expect(text)).collect()
}

/// `one KEYS`, `all [KEYS, ..]`, `with PARAMS [KEYS, ..]`, `when CONDITION`, `raw JSON`.
fn document(text: &str) -> Value {
    let (form, rest) = text.split_once(' ').expect(text);
    let mut parts = values(rest);
    let last = parts.pop().expect(text);
    let list = |all: &Value| all.as_array().expect(text).iter().map(constraint).collect::<Value>();
    match form {
        "raw" => last,
        "one" => json!({"v": 1, "constraints": [constraint(&last)]}),
        "when" => json!({"v": 1, "constraints": [constraint(&json!({"when": last}))]}),
        "all" => json!({"v": 1, "constraints": list(&last)}),
        "with" => json!({"v": 1, "constraints": list(&last), "params": parts[0]}),
        _ => panic!("{text}"),
    }
}

/// An allow that grants always, with other keys. One that is `absent` is taken out.
fn constraint(keys: &Value) -> Value {
    let mut made = json!({
        "id": "a",
        "effect": "allow",
        "subject": null,
        "when": {"op": "all", "args": []},
        "on_fail": "block",
        "reason": "",
    });
    let entries = made.as_object_mut().expect("a map");
    entries.extend(keys.as_object().expect("keys").clone());
    entries.retain(|_, value| *value != json!("absent"));
    made
}

/// An allow and a deny with one condition: both match where it is true, one where it is unknown.
fn telling(condition: &Value) -> Value {
    let deny = json!({"id": "deny", "effect": "deny", "on_fail": "ask", "when": condition});
    let both = [constraint(&json!({"id": "allow", "when": condition})), constraint(&deny)];
    json!({"v": 1, "constraints": both})
}

fn read(cases: &mut Cases, of: Of, document: &Value, valid: bool) {
    let found = Policy::from_json(document.to_string().as_bytes());
    assert_eq!(found.is_ok(), valid, "{of:?} {document} {:?}", found.err());
    let mut given = json!({"kind": "policy", "document": document});
    if let Ok(policy) = found {
        given["hash"] = json!(policy.hash().to_string());
    }
    cases.add(of, valid, "", given);
}

fn canonical(cases: &mut Cases, of: Of, document: &Value) {
    let policy = Policy::from_json(document.to_string().as_bytes()).expect("a policy");
    let object = syscap_kernel::object_of(&policy);
    let given = json!({
        "kind": "policy",
        "document": document,
        "hash": policy.hash().to_string(),
        "canonical": hex(&object.document),
    });
    cases.valid(of, "", given);
}

fn decided(cases: &mut Cases, of: Of, document: &Value, given: &Value) -> Decision {
    let scenario = Scenario::from_json(given.to_string().as_bytes()).expect("values");
    decided_as(cases, of, document, given, &scenario)
}

/// The same, of values whose JSON is `given`.
fn decided_as(
    cases: &mut Cases,
    of: Of,
    document: &Value,
    given: &Value,
    scenario: &Scenario,
) -> Decision {
    let policy = Policy::from_json(document.to_string().as_bytes()).expect("a policy");
    let decision = policy.decide_values(scenario);
    let obligations: Vec<Value> = decision
        .obligations
        .iter()
        .map(|one| json!({"kind": one.kind.name(), "name": one.name, "max": one.max}))
        .collect();
    let said = json!({
        "kind": "decide",
        "document": document,
        "given": given,
        "decision": {
            "verdict": decision.verdict.name(),
            "deciding": decision.deciding.as_ref().map(ToString::to_string),
            "matches": decision.matches.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "obligations": obligations,
        },
    });
    cases.valid(of, "", said);
    decision
}

/// `OP [ATTRIBUTE] CONSTANTS TRUE | FALSE | UNKNOWN`.
fn tests(cases: &mut Cases, of: Of, line: &str) {
    let (op, rest) = line.split_once(' ').expect(line);
    let (attribute, rest) = match rest.split_once(' ') {
        Some((name, rest)) if !name.starts_with('[') => (name, rest),
        _ => ("args.a", rest),
    };
    let mut all = Deserializer::from_str(rest).into_iter::<Value>();
    let constants = all.next().expect(line).expect(line);
    let groups = rest[all.byte_offset()..].split('|');
    for (group, count) in groups.zip([2, 0, 1]) {
        for value in values(&format!("[{group}]"))[0].as_array().expect(line) {
            let is_erased = *value == json!({"erased": true});
            let name = if is_erased { "fact.a" } else { attribute };
            let constants = constants.as_array().expect(line).iter().cloned();
            let args: Vec<Value> = [json!(name)].into_iter().chain(constants).collect();
            let given = if value == "absent" { json!({}) } else { json!({name: value}) };
            let document = telling(&json!({"op": op, "args": args}));
            let decision = decided(cases, of, &document, &given);
            assert_eq!(decision.match_count, count, "{line}: {value}");
        }
    }
}

/// A list at its limit, and one beyond; and as many resources, which have none.
fn lists(cases: &mut Cases) {
    let of = Of("SYSCAP-POL-053", "an example allows what the kernel denies");
    let telling = telling(&json!({"op": "eq", "args": ["args.a", "x"]}));
    let there = self::telling(&json!({"op": "schema", "args": ["args.a", "list"]}));
    for (count, both) in [(256, 2), (257, 1)] {
        let list = json!({"args.a": vec!["x"; count]});
        let resources = json!({"args.a": {"resources": vec!["x"; count]}});
        assert_eq!(decided(cases, of, &telling, &list).match_count, both);
        assert_eq!(decided(cases, of, &there, &list).match_count, 2);
        assert_eq!(decided(cases, of, &telling, &resources).match_count, 2);
    }
}

/// Values at each limit, and one beyond.
fn limits(cases: &mut Cases) {
    let exists = json!({"op": "exists", "args": ["args.a"]});
    let nodes = |count| json!({"op": "all", "args": vec![exists.clone(); count - 1]});
    let text = |len| json!({"op": "eq", "args": ["args.a", "x".repeat(len)]});
    let list = |len| json!({"op": "in", "args": ["args.a", (0..len).collect::<Vec<usize>>()]});
    let catches = "a document takes minutes to decide";
    let all: [(_, usize, &dyn Fn(usize) -> Value); 3] = [
        ("SYSCAP-POL-010", 1_024, &nodes),
        ("SYSCAP-POL-012", 4_096, &text),
        ("SYSCAP-POL-013", 4_096, &list),
    ];
    for (requirement, most, when) in all {
        for (size, valid) in [(most, true), (most + 1, false)] {
            let document =
                json!({"v": 1, "constraints": [constraint(&json!({"when": when(size)}))]});
            read(cases, Of(requirement, catches), &document, valid);
        }
    }
}
