//! The checks of the half that needs no verbs: what reaches the server behind a gateway.

use serde_json::{Value, json};

use crate::Grade;
use crate::mcp::{Client, Says};
use crate::subject::Fault;

/// The areas of this half.
pub(crate) const AREAS: [&str; 5] = ["bypass", "binding", "approval", "pinning", "crash"];

/// A check: its name, its area, the bug that it catches, and what it does.
pub(crate) struct McpCheck {
    pub(crate) id: &'static str,
    pub(crate) area: &'static str,
    pub(crate) bug: &'static str,
    pub(crate) run: fn(&mut Client<'_>) -> Result<Grade, Fault>,
}

const fn check(
    id: &'static str,
    area: &'static str,
    bug: &'static str,
    run: fn(&mut Client<'_>) -> Result<Grade, Fault>,
) -> McpCheck {
    McpCheck { id, area, bug, run }
}

pub(crate) const CHECKS: &[McpCheck] = &[
    check("mcp.unlisted", "bypass", "a tool that no list names is called", |client| {
        client.connect()?;
        client.call("nothing", note("a"), Says::Yes)?;
        only_control(client)
    }),
    check(
        "mcp.hidden",
        "bypass",
        "a tool that the server has and does not list is called",
        |client| {
            client.connect()?;
            client.call("hidden", note("a"), Says::Yes)?;
            only_control(client)
        },
    ),
    check("mcp.name-case", "bypass", "a tool is called by another name than its own", |client| {
        client.connect()?;
        client.call("ADD_NOTE", note("a"), Says::Yes)?;
        only_control(client)
    }),
    check("mcp.name-path", "bypass", "a tool is called by another name than its own", |client| {
        client.connect()?;
        client.call("add_note/../hidden", note("a"), Says::Yes)?;
        only_control(client)
    }),
    check(
        "mcp.before-hello",
        "bypass",
        "a call is made before the two sides have agreed",
        |client| {
            client.spawn()?;
            client
                .request("tools/call", json!({"name": "add_note", "arguments": note("early")}))?;
            let early = client.reached();
            client.kill()?;
            if !early.is_empty() {
                return Ok(Grade::Fail(reached_text(&early)));
            }
            client.connect()?;
            only_control(client)
        },
    ),
    check("mcp.batch", "bypass", "calls in one list are passed on unasked", |client| {
        client.connect()?;
        let call = |id: u64| {
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": client.name("add_note"), "arguments": note("batch")}})
        };
        let batch = json!([call(901), call(902)]);
        client.line(&batch.to_string())?;
        let early = client.reached();
        client.kill()?;
        if !early.is_empty() {
            return Ok(Grade::Fail(reached_text(&early)));
        }
        client.connect()?;
        only_control(client)
    }),
    check(
        "mcp.unanswered",
        "approval",
        "a call is made while the person is still asked",
        |client| {
            client.connect()?;
            client.call("add_note", note("waits"), Says::Nothing)?;
            none_then_control(client)
        },
    ),
    check("mcp.declined", "approval", "a call is made that a person has declined", |client| {
        client.connect()?;
        client.call("add_note", note("no"), Says::No)?;
        none_then_control(client)
    }),
    check("mcp.cancelled", "approval", "a window that was closed counts as a yes", |client| {
        client.connect()?;
        client.call("add_note", note("closed"), Says::Cancel)?;
        none_then_control(client)
    }),
    check("mcp.unticked", "approval", "a form without the tick counts as a yes", |client| {
        client.connect()?;
        client.call("add_note", note("unticked"), Says::Unticked)?;
        none_then_control(client)
    }),
    check("mcp.accepted", "approval", "one yes is two calls", |client| {
        client.connect()?;
        client.call("add_note", note("once"), Says::Yes)?;
        exactly(client, &[note("once")])
    }),
    check("mcp.again", "approval", "a yes is used for the same call again", |client| {
        client.connect()?;
        client.call("add_note", note("twice"), Says::Yes)?;
        client.call("add_note", note("twice"), Says::No)?;
        exactly(client, &[note("twice")])
    }),
    check("mcp.other-arguments", "approval", "a yes is used for another call", |client| {
        client.connect()?;
        client.call("add_note", note("good"), Says::Yes)?;
        client.call("add_note", note("evil"), Says::No)?;
        exactly(client, &[note("good")])
    }),
    check("mcp.other-tool", "approval", "a yes is used for another tool", |client| {
        client.connect()?;
        client.call("add_note", note("good"), Says::Yes)?;
        client.call("slow", note("good"), Says::No)?;
        exactly(client, &[note("good")])
    }),
    check("mcp.shown", "binding", "the person is not shown what is called", |client| {
        client.connect()?;
        client.call("add_note", note("sesame-7f"), Says::Yes)?;
        match client.shown.iter().any(|shown| shown.contains("sesame-7f")) {
            true => exactly(client, &[note("sesame-7f")]),
            false if client.reached().is_empty() => {
                Ok(Grade::Unproved("nobody was asked".to_owned()))
            }
            false => Ok(Grade::Fail(format!("shown was {:?}", client.shown))),
        }
    }),
    check(
        "mcp.exact",
        "binding",
        "the server gets other arguments than the client sent",
        |client| {
            client.connect()?;
            let odd = json!({"text": "a\"\\\n\u{202e}\u{1f600}\u{0}é", "more": {"n": 9_007_199_254_740_993_u64, "f": 1.5, "l": [null, true, {"": []}]}});
            client.call("add_note", odd.clone(), Says::Yes)?;
            exactly(client, &[odd])
        },
    ),
    check(
        "mcp.two-keys",
        "binding",
        "of two equal keys the person sees one and the server gets the other",
        |client| {
            client.connect()?;
            let name = json!(client.name("add_note"));
            client.line(&format!(
            r#"{{"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {{"name": {name}, "arguments": {{"text": "seen-1", "text": "seen-2"}}}}}}"#
        ))?;
            client.answer(77, Says::Yes, std::time::Duration::from_secs(2))?;
            for call in client.reached() {
                let text =
                    call.pointer("/arguments/text").and_then(Value::as_str).unwrap_or_default();
                if !client.shown.iter().any(|shown| shown.contains(text)) {
                    return Ok(Grade::Fail(format!("reached: {call}, shown: {:?}", client.shown)));
                }
            }
            control(client)
        },
    ),
    check(
        "mcp.description",
        "pinning",
        "a tool whose description has changed is called",
        |client| redefined(client, "2"),
    ),
    check("mcp.schema", "pinning", "a tool whose arguments have changed is called", |client| {
        redefined(client, "3")
    }),
    check(
        "mcp.killed-in-call",
        "crash",
        "a call that was out is made again after a kill",
        |client| {
            client.connect()?;
            client.hold(true)?;
            let params = json!({"name": client.name("slow"), "arguments": note("slow")});
            let id = client.request("tools/call", params)?;
            client.answer(id, Says::Yes, std::time::Duration::from_secs(1))?;
            if !client.wait() {
                return Ok(Grade::Unproved("the call did not reach the server".to_owned()));
            }
            client.kill()?;
            client.hold(false)?;
            client.connect()?;
            exactly(client, &[note("slow")])
        },
    ),
    check(
        "mcp.killed-while-asked",
        "crash",
        "a call that nobody has approved is made after a kill",
        |client| {
            client.connect()?;
            client.call("add_note", note("asked"), Says::Nothing)?;
            client.kill()?;
            client.connect()?;
            none_then_control(client)
        },
    ),
    check(
        "mcp.yes-over-a-kill",
        "crash",
        "a yes that was used is used again after a kill",
        |client| {
            client.connect()?;
            client.call("add_note", note("used"), Says::Yes)?;
            client.kill()?;
            client.connect()?;
            client.call("add_note", note("used"), Says::No)?;
            exactly(client, &[note("used")])
        },
    ),
];

fn note(text: &str) -> Value {
    json!({"text": text})
}

/// What is said of calls that must not have reached the server.
fn reached_text(calls: &[Value]) -> String {
    let calls: Vec<String> = calls.iter().map(Value::to_string).collect();
    format!("reached: {}", calls.join(" "))
}

/// The arguments of all calls that have reached the server.
fn arguments(client: &Client<'_>) -> Vec<Value> {
    client.reached().iter().filter_map(|call| call.get("arguments").cloned()).collect()
}

/// A call that a person agrees to reaches the server. What was tried before is not among them.
fn control(client: &mut Client<'_>) -> Result<Grade, Fault> {
    client.call("add_note", note("control"), Says::Yes)?;
    let reached = arguments(client);
    Ok(match reached.contains(&note("control")) {
        true => Grade::Pass,
        false => Grade::Unproved("a call with a yes did not reach the server".to_owned()),
    })
}

/// Nothing has reached the server; then the control does.
fn none_then_control(client: &mut Client<'_>) -> Result<Grade, Fault> {
    let reached = client.reached();
    if !reached.is_empty() {
        return Ok(Grade::Fail(reached_text(&reached)));
    }
    control(client)
}

/// The same, and the control alone.
fn only_control(client: &mut Client<'_>) -> Result<Grade, Fault> {
    let grade = none_then_control(client)?;
    let reached = arguments(client);
    Ok(match (grade, reached.len()) {
        (Grade::Pass, 2..) => Grade::Fail(reached_text(&reached)),
        (grade, _) => grade,
    })
}

/// These calls have reached the server, and no others.
fn exactly(client: &mut Client<'_>, wanted: &[Value]) -> Result<Grade, Fault> {
    let reached = arguments(client);
    Ok(match wanted.iter().find(|one| !reached.contains(one)) {
        Some(lacks) if reached.is_empty() => {
            Grade::Unproved(format!("{lacks} did not reach the server"))
        }
        None if reached.len() == wanted.len() => Grade::Pass,
        _ => Grade::Fail(reached_text(&reached)),
    })
}

/// A tool changes while the gateway is away: until somebody accepts that, it is not called.
fn redefined(client: &mut Client<'_>, definition: &str) -> Result<Grade, Fault> {
    client.connect()?;
    client.call("add_note", note("before"), Says::Yes)?;
    client.kill()?;
    client.define(definition)?;
    client.connect()?;
    client.call("add_note", note("behind"), Says::Yes)?;
    exactly(client, &[note("before")])
}
