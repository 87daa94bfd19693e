//! A call that waits, as it is shown, and an answer to it.

use std::path::Path;

use syscap::Home;
use syscap::approvals::{Changed, Compared, WaitingCall};
use syscap::format::json::from_data;
use syscap::format::{ApprovalAnswer, Canonical, Seq, UnixMillis};
use syscap::kernel::Condition;

use crate::exit::{Ended, Exit, Failure};
use crate::hook::client::Client;
use crate::output::{Object, Out, array, plain, plain_first_json, quote};

/// A call in one line.
pub(super) fn listed(call: &WaitingCall, now: UnixMillis) -> String {
    let left = match call.superseded && !call.denied {
        true => "over: the same call asks anew".to_owned(),
        false => left(call.expires, now),
    };
    let (standing, cut) = (standing(call), cut(&arguments(call)));
    format!("{}  {standing}  {}  {}  {cut}  {left}", call.ask, call.agent, tool(call))
}

/// Its tool, as people read it.
pub(super) fn tool(call: &WaitingCall) -> String {
    Client::shown(&call.tool, call.args.as_ref().map(Canonical::item))
}

/// How much time is left, in minutes or hours.
pub(crate) fn left(until: UnixMillis, now: UnixMillis) -> String {
    match until.since(now).div_ceil(60_000) {
        minutes @ ..120 => format!("{minutes} min left"),
        minutes => format!("{} h left", minutes.div_euclid(60)),
    }
}

/// The line about a recorded answer.
pub(super) fn recorded(out: &mut Out, ask: Seq, answer: ApprovalAnswer, seq: Seq) -> Ended {
    let json = Object::new().uint("ask", ask.get()).text("answer", answer.name());
    let text = match answer {
        ApprovalAnswer::Deny => format!("denied by record {seq}"),
        ApprovalAnswer::Once => {
            format!("approved by record {seq}: the call runs once, when the agent repeats it")
        }
        ApprovalAnswer::Set => format!("approved by record {seq}"),
    };
    out.both(&text, json.uint("record", seq.get()))?;
    Ok(Exit::Done)
}

/// How a call stands, in a word or two.
pub(super) fn standing(call: &WaitingCall) -> String {
    match call.approved {
        None if call.denied => "denied".to_owned(),
        _ if call.superseded => "superseded".to_owned(),
        None => "approved".to_owned(),
        Some(approved) if call.threshold > 1 => format!("{approved} of {}", call.threshold),
        Some(_) => "waits".to_owned(),
    }
}

/// Its arguments as JSON, for people. `show` has the folder of a client's shell, too.
pub(crate) fn arguments(call: &WaitingCall) -> String {
    let own = |name: &str| !Client::is_folder_of_shell(&call.tool, name);
    let args = call.args.as_ref();
    args.map_or_else(|| "erased".to_owned(), |args| plain_first_json(args.item(), own))
}

/// Enough to tell one call from another.
fn cut(text: &str) -> String {
    const SHOWN: usize = 60;
    let text = plain(text);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.into_owned(),
    }
}

/// The call to be approved, for people: nothing of it is cut.
pub(super) fn brief(out: &mut Out, call: &WaitingCall) -> Result<(), Failure> {
    out.line(&format!("{} asks for {}", call.agent, tool(call)))?;
    all_arguments(out, call)?;
    if call.label.is_untrusted() {
        out.line("  (after it has read untrusted content)")?;
    }
    touched(out, call)
}

fn touched(out: &mut Out, call: &WaitingCall) -> Result<(), Failure> {
    for resource in &call.resources {
        out.line(&format!("touches    {}", plain(resource)))?;
    }
    for condition in &call.conditions {
        let seen = condition.seen.as_deref().unwrap_or("nothing is there");
        let (subject, kind) = (plain(&condition.subject), condition.kind.name());
        out.line(&format!("as it is   {subject}: {kind} {}", plain(seen)))?;
    }
    call.location.iter().try_for_each(|it| out.line(&format!("where      {}", plain(it))))
}

fn all_arguments(out: &mut Out, call: &WaitingCall) -> Result<(), Failure> {
    let Some(args) = &call.args else { return out.line("  erased") };
    args.item().entries().try_for_each(|(name, value)| {
        out.line(&format!("  {}: {}", plain(name), plain(&from_data(value))))
    })
}

/// All of a call, for people.
pub(super) fn text(out: &mut Out, call: &WaitingCall) -> Result<(), Failure> {
    text_as(out, call, standing(call))
}

/// The same, where it stands otherwise than a call that waits.
pub(super) fn text_as(out: &mut Out, call: &WaitingCall, standing: String) -> Result<(), Failure> {
    let constraint = call.constraint.clone().unwrap_or_else(|| "none".to_owned());
    for (name, value) in [
        ("ask", call.ask.to_string()),
        ("standing", standing),
        ("agent", call.agent.to_string()),
        ("token", call.token.map_or_else(|| "none".to_owned(), |token| token.to_string())),
        ("tool", Client::shown_with_id(&call.tool, call.args.as_ref().map(Canonical::item))),
        ("asked by", constraint),
        ("since", call.since.to_string()),
        ("expires", call.expires.to_string()),
        ("has seen", call.label.to_string()),
    ] {
        out.line(&format!("{name:<10} {value}"))?;
    }
    touched(out, call)?;
    if call.conditions.is_empty() {
        out.line("as it is   was not looked at: nothing binds what is there when it runs")?;
    }
    out.line("arguments")?;
    all_arguments(out, call)
}

/// What it would change in a file.
pub(super) fn difference(out: &mut Out, call: &WaitingCall, home: &Path) -> Result<(), Failure> {
    let Some(text) = call.difference(&Home::at(home)) else { return Ok(()) };
    out.line("changes")?;
    text.lines().try_for_each(|line| out.line(&format!("  {}", plain(line))))
}

/// All of a call, for programs.
pub(super) fn json(call: &WaitingCall) -> Object {
    let standing = match call.approved {
        _ if call.superseded && !call.denied => "superseded",
        Some(_) => "waits",
        None if call.denied => "denied",
        None => "approved",
    };
    let approved = call.approved.unwrap_or(if call.denied { 0 } else { call.threshold });
    json_as(call, standing, approved)
}

/// The same, where it stands otherwise than a call that waits.
pub(super) fn json_as(call: &WaitingCall, standing: &str, approved: u64) -> Object {
    let object = Object::new()
        .uint("ask", call.ask.get())
        .text("standing", standing)
        .uint("approved", approved)
        .uint("threshold", call.threshold)
        .shown("agent", &call.agent)
        .shown("tool", &call.tool)
        .uint("uses_max", call.uses_max)
        .json("resources", &array(call.resources.iter().map(|one| quote(one))))
        .json("location", &call.location.as_deref().map_or_else(|| "null".to_owned(), quote))
        .json("conditions", &array(call.conditions.iter().map(condition)))
        .shown("label", call.label)
        .shown("since", call.since)
        .shown("expires", call.expires)
        .uint("expires_ms", call.expires.get());
    let object = match &call.constraint {
        Some(constraint) => object.text("constraint", constraint),
        None => object.json("constraint", "null"),
    };
    match &call.args {
        Some(args) => object.json("arguments", &from_data(args.item())),
        None => object.json("arguments", "null"),
    }
}

/// The precondition of its run.
fn condition(condition: &Condition) -> String {
    let object =
        Object::new().text("kind", condition.kind.name()).text("subject", &condition.subject);
    match &condition.seen {
        Some(seen) => object.text("seen", seen),
        None => object.json("seen", "null"),
    }
    .finish()
}

/// The differences from the last similar call that was approved.
pub(super) fn differs(out: &mut Out, compared: Option<&Compared>) -> Result<(), Failure> {
    let Some(Compared { intent, changed, location, .. }) = compared else {
        return out.line("last like  none was approved before");
    };
    match (changed.as_deref(), location) {
        (None, _) => {
            out.line(&format!("last like  record {intent}, of which the arguments were erased"))?;
        }
        (Some([]), None) => {
            out.line(&format!("last like  record {intent}, with the same arguments"))?;
        }
        _ => out.line(&format!("last like  record {intent}, but for"))?,
    }
    let said = |value: &Option<String>| {
        value.as_deref().map_or_else(|| "nothing".to_owned(), |text| plain(text).into_owned())
    };
    let mut all = changed.iter().flatten().chain(location);
    all.try_for_each(|Changed { name, was, is }| {
        out.line(&format!("  {}: {} was {}", plain(name), said(is), said(was)))
    })
}

/// The other requests for the same call, at other locations.
pub(super) fn elsewhere<'a>(
    call: &'a WaitingCall,
    all: &'a [WaitingCall],
) -> impl Iterator<Item = &'a WaitingCall> {
    all.iter().filter(move |other| {
        (&other.agent, &other.tool) == (&call.agent, &call.tool)
            && other.args.is_some()
            && other.args == call.args
            && other.location != call.location
    })
}

/// The same for programs.
pub(super) fn last_like(compared: Option<&Compared>) -> String {
    let Some(Compared { intent, changed, location, .. }) = compared else {
        return "null".to_owned();
    };
    let value = |object: Object, key: &str, value: &Option<String>| match value {
        Some(json) => object.json(key, json),
        None => object.json(key, "null"),
    };
    let one = |Changed { name, was, is }: &Changed| {
        value(value(Object::new().text("name", name), "was", was), "is", is).finish()
    };
    let at = location.as_ref().map_or_else(|| "null".to_owned(), one);
    let object = Object::new().uint("intent", intent.get()).json("location", &at);
    match changed {
        Some(changed) => object.json("changed", &array(changed.iter().map(one))),
        None => object.json("changed", "null"),
    }
    .finish()
}
