//! A set of checks, as its file says it: `sets/2026-12.toml`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The areas that a subject claims, each for itself.
pub(crate) const AREAS: [&str; 7] =
    ["decide", "scope", "budget", "approve", "delegate", "record", "recover"];

/// A check: what is done, what must be seen, and what must never be.
#[derive(Clone, Debug)]
pub struct Check {
    /// Its name, for ever: `scope.write-dotdot`.
    pub id: String,
    /// The area that it belongs to.
    pub area: String,
    /// The bug that it catches.
    pub bug: String,
    /// True if it is one of the twenty of `--smoke`.
    pub is_smoke: bool,
    /// The rules in force.
    pub(crate) policy: Value,
    /// The approvers, and the number of them that must approve.
    pub(crate) approvers: Value,
    pub(crate) steps: Vec<Map<String, Value>>,
    pub(crate) must: Vec<Map<String, Value>>,
    pub(crate) never: Vec<Map<String, Value>>,
}

/// Reads a set.
///
/// # Errors
/// What is wrong with it.
pub fn read(text: &str) -> Result<Vec<Check>, String> {
    let whole: Value = toml::from_str(text).map_err(|error| error.to_string())?;
    let list = |key| whole.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut checks = Vec::new();
    for check in list("check") {
        checks.push(check_of(&check)?);
    }
    for family in list("family") {
        let each = family.get("each").and_then(Value::as_array).cloned().unwrap_or_default();
        for one in each {
            checks.push(check_of(&member(&family, &one)?)?);
        }
    }
    let mut ids = BTreeSet::new();
    match checks.iter().find(|check| !ids.insert(&check.id)) {
        Some(twice) => Err(format!("{}: a second check of this name", twice.id)),
        None => Ok(checks),
    }
}

/// A check of a family: the text `$name` stands for what the member has under this name.
fn member(family: &Value, one: &Value) -> Result<Value, String> {
    let (Value::Object(family), Value::Object(one)) = (family, one) else {
        return Err("a family or one of its members is no table".to_owned());
    };
    let mut check = filled(&Value::Object(family.clone()), one);
    let Some(check_of) = check.as_object_mut() else { return Ok(check) };
    check_of.remove("each");
    let part = |of: &Map<String, Value>| of.get("id").and_then(Value::as_str).map(str::to_owned);
    let (Some(first), Some(last)) = (part(family), part(one)) else {
        return Err("a family or one of its members has no id".to_owned());
    };
    check_of.insert("id".to_owned(), format!("{first}-{last}").into());
    for key in ["bug", "smoke"] {
        if let Some(value) = one.get(key) {
            check_of.insert(key.to_owned(), value.clone());
        }
    }
    Ok(check)
}

fn filled(value: &Value, with: &Map<String, Value>) -> Value {
    match value {
        Value::String(text) => {
            let named = text.strip_prefix('$').and_then(|name| with.get(name));
            named.unwrap_or(value).clone()
        }
        Value::Array(list) => list.iter().flat_map(|one| spliced(one, with)).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, one)| (key.clone(), filled(one, with))).collect())
        }
        other => other.clone(),
    }
}

/// An element of a list: `$$name` stands for all that the member lists under this name.
fn spliced(value: &Value, with: &Map<String, Value>) -> Vec<Value> {
    let name = value.as_str().and_then(|text| text.strip_prefix("$$"));
    match name.and_then(|name| with.get(name)) {
        Some(Value::Array(list)) => list.clone(),
        _ => vec![filled(value, with)],
    }
}

fn check_of(value: &Value) -> Result<Check, String> {
    const KEYS: [&str; 9] =
        ["id", "area", "bug", "smoke", "policy", "approvers", "steps", "must", "never"];
    let map = value.as_object().ok_or("a check is no table")?;
    let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
    let id = text("id").ok_or("a check has no id")?;
    let lacks = |what: &str| format!("{id}: no {what}");
    if let Some(other) = map.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("{id}: {other}: no such key"));
    }
    let area = text("area").ok_or_else(|| lacks("area"))?;
    if !AREAS.contains(&area.as_str()) {
        return Err(format!("{id}: {area} is no area"));
    }
    let list = |key: &str| -> Result<Vec<Map<String, Value>>, String> {
        let list = map.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        let tables = list.into_iter().map(|one| match one {
            Value::Object(one) => Ok(one),
            other => Err(format!("{id}: {other} is no table")),
        });
        tables.collect()
    };
    let must = list("must")?;
    if must.is_empty() {
        // A subject that does nothing would pass it.
        return Err(lacks("must"));
    }
    let is = |key| map.get(key).and_then(Value::as_bool).unwrap_or(false);
    let allow = serde_json::json!([{"then": "allow"}]);
    let approvers = serde_json::json!({"names": ["ann", "bob", "cy"], "needed": 1});
    Ok(Check {
        area,
        bug: text("bug").ok_or_else(|| lacks("bug"))?,
        is_smoke: is("smoke"),
        policy: map.get("policy").cloned().unwrap_or(allow),
        approvers: map.get("approvers").cloned().unwrap_or(approvers),
        steps: list("steps")?,
        must,
        never: list("never")?,
        id,
    })
}
