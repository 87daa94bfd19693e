//! Documents as text.

use syscap_policy::{LoadError, Policy};

pub(crate) const ALWAYS: &str = r#"{"op":"all","args":[]}"#;

/// A constraint with some keys set to other JSON; one set to nothing is left out.
pub(crate) fn constraint(changes: &[(&str, &str)]) -> String {
    let mut fields = vec![
        ("id", r#""a""#),
        ("effect", r#""allow""#),
        ("subject", "null"),
        ("when", ALWAYS),
        ("on_fail", r#""block""#),
        ("reason", r#""""#),
    ];
    for (key, value) in changes {
        match fields.iter_mut().find(|(known, _)| known == key) {
            Some(field) => field.1 = value,
            None => fields.push((key, value)),
        }
    }
    fields.retain(|(_, value)| !value.is_empty());
    let fields: Vec<String> = fields.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
    format!("{{{}}}", fields.join(","))
}

pub(crate) fn document(constraints: &[String]) -> String {
    format!(r#"{{"v":1,"constraints":[{}]}}"#, constraints.join(","))
}

pub(crate) fn with_params(constraint: &str, params: &str) -> String {
    format!(r#"{{"v":1,"constraints":[{constraint}],"params":{params}}}"#)
}

pub(crate) fn one(changes: &[(&str, &str)]) -> String {
    document(&[constraint(changes)])
}

pub(crate) fn when(when: &str) -> String {
    one(&[("when", when)])
}

pub(crate) fn test(op: &str, args: &str) -> String {
    when(&format!(r#"{{"op":"{op}","args":{args}}}"#))
}

pub(crate) fn deny(on_fail: &str, obligations: &str) -> String {
    one(&[
        ("effect", r#""deny""#),
        ("on_fail", &format!("\"{on_fail}\"")),
        ("obligations", obligations),
    ])
}

pub(crate) fn load(text: &str) -> Result<Policy, LoadError> {
    Policy::from_json(text.as_bytes())
}
