//! Documents of many constraints, of which some apply to one tool.

use syscap::policy::Policy;

/// `all` constraints, of which `applying` are about `tool`; the first of those allows it. Each
/// asks about an integer argument, the agent or the budget, and none but the first matches.
pub fn policy(tool: &str, all: usize, applying: usize) -> Policy {
    let constraint = |n: usize, tool: &str| {
        let (effect, when) = if n == 0 {
            ("allow", r#"{"op": "all", "args": []}"#.to_owned())
        } else {
            let asks = [
                format!(r#"{{"op": "eq", "args": ["args.units", {}]}}"#, 1_000 + n),
                format!(r#"{{"op": "within", "args": ["call.agent", "team{n}"]}}"#),
                format!(r#"{{"op": "lt", "args": ["budget.calls", {}]}}"#, n % 10),
            ];
            ("deny", asks[n % asks.len()].clone())
        };
        format!(
            r#"{{"id": "c{n:05}", "effect": "{effect}", "subject": {{"tool_id": "{tool}"}},
                "when": {when}, "on_fail": "block", "reason": ""}}"#
        )
    };
    let constraints: Vec<String> = (0..all)
        .map(|n| if n < applying { constraint(n, tool) } else { constraint(n, &format!("t{n}")) })
        .collect();
    let text = format!(r#"{{"v": 1, "constraints": [{}]}}"#, constraints.join(","));
    Policy::from_json(text.as_bytes()).unwrap()
}
