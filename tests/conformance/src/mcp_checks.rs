//! The checks of the half that needs no verbs: what reaches the server behind a gateway.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Grade;
use crate::mcp::{Client, Says};
use crate::subject::Fault;

/// The areas of this half.
pub(crate) const AREAS: [&str; 5] = ["bypass", "binding", "approval", "pinning", "crash"];

/// How long a call that is held back, or of an odd form, is spoken for.
const PATIENCE: Duration = Duration::from_secs(1);

/// A check: its name, its area, the bug that it catches, what is done, and what must be so then.
pub(crate) struct McpCheck {
    pub(crate) id: &'static str,
    pub(crate) area: &'static str,
    pub(crate) bug: &'static str,
    pub(crate) steps: &'static [Step],
    end: End,
}

/// A step of a check.
#[derive(Debug)]
pub(crate) enum Step {
    /// The gateway is started, and the two sides agree.
    Connect,
    /// It is started, and nothing is said.
    Spawn,
    /// A tool is called with this text; what the person says who is asked.
    Call(&'static str, &'static str, Says),
    /// A tool is called with arguments of every type.
    Odd,
    /// A line is sent that no client sends.
    Raw(Raw),
    /// A call that a person agrees to is held back by the server behind.
    Held,
    /// Everything is killed.
    Kill,
    /// The client goes away, and everything is killed that can be.
    Leave,
    /// The server lists its tools otherwise from its next start on.
    Define(&'static str),
    /// No call has reached the server so far.
    Quiet,
}

/// A line that no client sends.
#[derive(Debug)]
pub(crate) enum Raw {
    /// A call before the two sides have agreed.
    Early,
    /// Two calls in one list.
    Batch,
    /// A call with two equal keys in its arguments.
    TwoKeys,
}

/// The required state at the end.
#[derive(Clone, Copy)]
enum End {
    /// A call with a yes reaches the server, and no other has.
    OnlyControl,
    /// The calls with these texts have reached it, and no others.
    Exactly(&'static [&'static str]),
    /// The same, and the person was shown the text.
    Shown(&'static str),
    /// Every call that has reached the server was shown to the person; then a call with a yes
    /// reaches it.
    AllShown,
    /// The arguments of [`Step::Odd`] have reached it as they were sent.
    Odd,
}

use End::{AllShown, Exactly, OnlyControl, Shown};
use Says::{Cancel, No, Nothing, Unticked, Yes};
use Step::{Call, Connect, Define, Held, Kill, Leave, Quiet, Spawn};

/// A row of the table below.
macro_rules! checks {
    ($($id:literal $area:literal $bug:literal [$($step:expr),*] $end:expr;)*) => {
        &[$(McpCheck { id: $id, area: $area, bug: $bug, steps: &[$($step),*], end: $end }),*]
    };
}

pub(crate) const CHECKS: &[McpCheck] = checks! {
    "mcp.unlisted" "bypass" "a tool that no list names is called"
        [Connect, Call("nothing", "a", Yes)] OnlyControl;
    "mcp.hidden" "bypass" "a tool that the server has and does not list is called"
        [Connect, Call("hidden", "a", Yes)] OnlyControl;
    "mcp.name-case" "bypass" "a tool is called by another name than its own"
        [Connect, Call("ADD_NOTE", "a", Yes)] OnlyControl;
    "mcp.name-path" "bypass" "a tool is called by another name than its own"
        [Connect, Call("add_note/../hidden", "a", Yes)] OnlyControl;
    "mcp.before-hello" "bypass" "a call is made before the two sides have agreed"
        [Spawn, Step::Raw(Raw::Early), Quiet, Leave, Connect] OnlyControl;
    "mcp.batch" "bypass" "calls in one list are passed on unasked"
        [Connect, Step::Raw(Raw::Batch), Quiet, Leave, Connect] OnlyControl;
    "mcp.unanswered" "approval" "a call is made while the person is still asked"
        [Connect, Call("add_note", "waits", Nothing)] OnlyControl;
    "mcp.declined" "approval" "a call is made that a person has declined"
        [Connect, Call("add_note", "no", No)] OnlyControl;
    "mcp.cancelled" "approval" "a window that was closed counts as a yes"
        [Connect, Call("add_note", "closed", Cancel)] OnlyControl;
    "mcp.unticked" "approval" "a form without the tick counts as a yes"
        [Connect, Call("add_note", "unticked", Unticked)] OnlyControl;
    "mcp.accepted" "approval" "one yes is two calls"
        [Connect, Call("add_note", "once", Yes)] Exactly(&["once"]);
    "mcp.again" "approval" "a yes is used for the same call again"
        [Connect, Call("add_note", "twice", Yes), Call("add_note", "twice", No)]
        Exactly(&["twice"]);
    "mcp.other-arguments" "approval" "a yes is used for another call"
        [Connect, Call("add_note", "good", Yes), Call("add_note", "evil", No)] Exactly(&["good"]);
    "mcp.other-tool" "approval" "a yes is used for another tool"
        [Connect, Call("add_note", "good", Yes), Call("slow", "good", No)] Exactly(&["good"]);
    "mcp.shown" "binding" "the person is not shown what is called"
        [Connect, Call("add_note", "sesame-7f", Yes)] Shown("sesame-7f");
    "mcp.exact" "binding" "the server gets other arguments than the client sent"
        [Connect, Step::Odd] End::Odd;
    "mcp.two-keys" "binding" "of two equal keys the person sees one and the server gets the other"
        [Connect, Step::Raw(Raw::TwoKeys)] AllShown;
    "mcp.description" "pinning" "a tool whose description has changed is called"
        [Connect, Call("add_note", "before", Yes), Kill, Define("2"), Connect,
         Call("add_note", "behind", Yes)] Exactly(&["before"]);
    "mcp.schema" "pinning" "a tool whose arguments have changed is called"
        [Connect, Call("add_note", "before", Yes), Kill, Define("3"), Connect,
         Call("add_note", "behind", Yes)] Exactly(&["before"]);
    "mcp.killed-in-call" "crash" "a call that was out is made again after a kill"
        [Connect, Held, Kill, Connect] Exactly(&["held"]);
    "mcp.killed-while-asked" "crash" "a call that nobody has approved is made after a kill"
        [Connect, Call("add_note", "asked", Nothing), Kill, Connect] OnlyControl;
    "mcp.yes-over-a-kill" "crash" "a yes that was used is used again after a kill"
        [Connect, Call("add_note", "used", Yes), Kill, Connect, Call("add_note", "used", No)]
        Exactly(&["used"]);
};

impl McpCheck {
    pub(crate) fn run(&self, client: &mut Client<'_>) -> Result<Grade, Fault> {
        if client.means.is_elsewhere() && self.steps.iter().any(|step| matches!(step, Kill)) {
            return Ok(Grade::Unproved("what runs already can't be killed".to_owned()));
        }
        for step in self.steps {
            if let Some(grade) = step.take(client)? {
                return Ok(grade);
            }
        }
        self.end.grade(client)
    }

    /// The steps, for the report.
    pub(crate) fn input(&self) -> Value {
        self.steps.iter().map(|step| Value::from(format!("{step:?}"))).collect()
    }
}

impl Step {
    /// Does it; a grade where the check ends here.
    fn take(&self, client: &mut Client<'_>) -> Result<Option<Grade>, Fault> {
        match self {
            Self::Connect => client.connect()?,
            Self::Spawn => client.spawn()?,
            Self::Call(tool, text, says) => drop(client.call(tool, note(text), *says)?),
            Self::Odd => drop(client.call("add_note", odd(), Yes)?),
            Self::Raw(raw) => raw.send(client)?,
            Self::Held => {
                client.hold(true)?;
                let params = json!({"name": client.name("slow"), "arguments": note("held")});
                let id = client.request("tools/call", params)?;
                client.answer(id, Yes, PATIENCE)?;
                if !client.wait() {
                    return Ok(Some(unreached("the call")));
                }
            }
            Self::Kill | Self::Leave => {
                client.kill()?;
                client.hold(false)?;
            }
            Self::Define(number) => client.define(number)?,
            Self::Quiet => {
                let reached = client.reached()?;
                return Ok((!reached.is_empty()).then(|| too_many(&reached)));
            }
        }
        Ok(None)
    }
}

impl Raw {
    fn send(&self, client: &mut Client<'_>) -> Result<(), Fault> {
        let name = json!(client.name("add_note"));
        let call = |id: u64, text: &str| {
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": name, "arguments": note(text)}})
        };
        match self {
            Self::Early => client.line(&call(900, "early").to_string()),
            Self::Batch => {
                client.line(&json!([call(901, "batch"), call(902, "batch")]).to_string())
            }
            Self::TwoKeys => {
                let twice = r#"{"text":"seen-1","text":"seen-2"}"#;
                let once = note("once").to_string();
                client.line(&call(903, "once").to_string().replace(&once, twice))?;
                client.answer(903, Yes, PATIENCE).map(drop)
            }
        }
    }
}

impl End {
    fn grade(self, client: &mut Client<'_>) -> Result<Grade, Fault> {
        match self {
            Self::OnlyControl => {
                let before = client.reached()?;
                if !before.is_empty() {
                    return Ok(too_many(&before));
                }
                control(client)?;
                Ok(exactly(&client.reached()?, &[note("control")]))
            }
            Self::Exactly(texts) => {
                let wanted: Vec<Value> = texts.iter().map(|text| note(text)).collect();
                Ok(exactly(&client.reached()?, &wanted))
            }
            Self::Shown(text) => {
                let reached = client.reached()?;
                match client.shown.iter().any(|shown| shown.contains(text)) {
                    true => Ok(exactly(&reached, &[note(text)])),
                    false if reached.is_empty() => {
                        Ok(Grade::Unproved("nobody was asked".to_owned()))
                    }
                    false => Ok(Grade::Fail(format!("shown was {:?}", client.shown))),
                }
            }
            Self::AllShown => {
                for call in client.reached()? {
                    let text = call.pointer("/arguments/text").and_then(Value::as_str);
                    let is_shown = |text| client.shown.iter().any(|shown| shown.contains(text));
                    if !text.is_some_and(is_shown) {
                        let shown = &client.shown;
                        return Ok(Grade::Fail(format!("reached: {call}, shown: {shown:?}")));
                    }
                }
                control(client)?;
                let reached = client.reached()?;
                let has =
                    reached.iter().any(|call| call.get("arguments") == Some(&note("control")));
                Ok(if has { Grade::Pass } else { unreached("a call with a yes") })
            }
            Self::Odd => Ok(exactly(&client.reached()?, &[odd()])),
        }
    }
}

fn note(text: &str) -> Value {
    json!({"text": text})
}

fn odd() -> Value {
    json!({
        "text": "a\"\\\n\u{202e}\u{1f600}\u{0}é",
        "more": {"n": 9_007_199_254_740_993_u64, "f": 1.5, "l": [null, true, {"": []}]},
    })
}

/// A call that a person agrees to.
fn control(client: &mut Client<'_>) -> Result<(), Fault> {
    client.call("add_note", note("control"), Yes).map(drop)
}

fn unreached(what: &str) -> Grade {
    Grade::Unproved(format!("{what} did not reach the server"))
}

fn too_many(calls: &[Value]) -> Grade {
    let calls: Vec<String> = calls.iter().map(Value::to_string).collect();
    Grade::Fail(format!("reached: {}", calls.join(" ")))
}

/// Calls with these arguments have reached the server, and no others.
fn exactly(reached: &[Value], wanted: &[Value]) -> Grade {
    let has = |one: &Value| reached.iter().any(|call| call.get("arguments") == Some(one));
    if reached.len() == wanted.len() && wanted.iter().all(has) {
        Grade::Pass
    } else if reached.is_empty() {
        unreached("a call with a yes")
    } else {
        too_many(reached)
    }
}
