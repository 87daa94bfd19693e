//! The rules of the suite as a policy document.

use serde_json::{Value, json};

/// The tool's id at home.
fn tool(name: &str) -> &str {
    match name {
        "write" => "fs.write",
        "read" => "fs.read",
        other => other,
    }
}

/// A rule becomes an allow, or a deny that blocks or asks. If its condition can't be evaluated, the
/// engine does as the suite requires: an allow is none, and a deny holds.
pub(crate) fn document(rules: &Value) -> Value {
    let rules = rules.as_array().cloned().unwrap_or_default();
    let constraint = |(n, rule): (usize, &Value)| {
        let then = rule["then"].as_str().unwrap_or("deny");
        let mut all = Vec::new();
        if let Some(agent) = rule["agent"].as_str() {
            all.push(json!({"op": "eq", "args": ["call.agent", agent]}));
        }
        let test = &rule["if"];
        if let Some(argument) = test["argument"].as_str() {
            let of = format!("args.{argument}");
            let tests = [("is", "eq"), ("begins", "prefix"), ("above", "gt")];
            for (name, op) in tests {
                if let Some(value) = test.get(name) {
                    // Files are compared by their place: a path has more than one text.
                    all.push(json!({"op": op, "args": [of, value]}));
                }
            }
        }
        json!({
            "id": format!("rule/{n}"),
            "effect": if then == "allow" { "allow" } else { "deny" },
            "subject": rule["tool"].as_str().map(|name| json!({"tool_id": tool(name)})),
            "when": {"op": "all", "args": all},
            "on_fail": if then == "ask" { "ask" } else { "block" },
            "reason": "A rule of the suite.",
        })
    };
    // An ask lets nothing through by itself: what a person has approved is allowed. Its tool stands
    // in the condition, so that no deny has the same subject and condition.
    let mut constraints: Vec<Value> = rules.iter().enumerate().map(constraint).collect();
    for (n, rule) in rules.iter().enumerate().filter(|(_, rule)| rule["then"] == "ask") {
        let mut allow = constraint((n, rule));
        if let (Some(name), Some(all)) =
            (rule["tool"].as_str(), allow["when"]["args"].as_array_mut())
        {
            all.push(json!({"op": "eq", "args": ["call.tool", tool(name)]}));
        }
        allow["id"] = json!(format!("asked/{n}"));
        allow["effect"] = json!("allow");
        allow["on_fail"] = json!("block");
        allow["subject"] = Value::Null;
        constraints.push(allow);
    }
    json!({"v": 1, "constraints": constraints})
}
