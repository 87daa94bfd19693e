//! `policy`, by what is done with one.

mod analysis;
mod calls;
mod documents;
mod engines;
mod force;
mod hostile;
mod odd;
mod replay;
mod tables;

use serde_json::{Value, json};

/// A document of these constraints.
pub(crate) fn document(constraints: &[Value]) -> String {
    json!({"v": 1, "constraints": constraints}).to_string()
}

/// A constraint that blocks, or lets through, where `when` holds.
pub(crate) fn constraint(id: &str, effect: &str, subject: &Value, when: &Value) -> Value {
    json!({
        "id": id, "effect": effect, "subject": subject, "when": when, "on_fail": "block",
        "reason": format!("Because of {id}."),
    })
}

/// A condition that holds.
pub(crate) fn always() -> Value {
    json!({"op": "all", "args": []})
}

/// A test.
pub(crate) fn when(op: &str, attribute: &str, constant: impl Into<Value>) -> Value {
    json!({"op": op, "args": [attribute, constant.into()]})
}

/// A policy that allows what it says of tools by name, a condition each.
pub(crate) fn tools(allowed: &[(&str, Value)]) -> String {
    let allow = |(tool, when): &(&str, Value)| {
        constraint(&format!("allow.{tool}"), "allow", &json!({"tool_id": tool}), when)
    };
    document(&allowed.iter().map(allow).collect::<Vec<_>>())
}
