//! A call in a line for people: the tool, what it was called with, what came of it and why.

use syscap::artifact::parts;
use syscap::format::json::from_data;
use syscap::format::{
    Ask, Body, CallFields, Decision, Item, ItemKind, Outcome, OutcomeFlags, Reason, Record,
    Refusal, RefusalKind, ToolId, TxOutcome,
};
use syscap::remedy::allowed_word;

use super::answers::Asked;
use super::kept::{Kept, Sides};
use super::row;
use super::settled::Settled;
use crate::hook::client::Client;
use crate::output::{plain, plain_first};
use crate::signed::SignedBy;

/// How much is shown of an argument, of all of them, and of what came back, in characters.
const ARGUMENT: usize = 48;
const ARGUMENTS: usize = 120;
const CAME: usize = 96;

pub(super) fn heading() -> String {
    columns("seq", "time", "agent", "what was called -> what came of it")
}

/// A record in a line. Without `sides` neither arguments nor results are shown. `settled` says what
/// became of a call that has no outcome on record.
pub(super) fn line(
    record: &Record,
    sides: Option<&Sides>,
    asked: Option<Asked>,
    settled: Option<Settled>,
    by: Option<&SignedBy>,
) -> String {
    let (seq, time) = (record.seq.to_string(), record.time.to_string());
    let (agent, what) = who_and_what(record, sides, asked, settled, by);
    columns(&seq, &time, &agent, &what)
}

/// Whose it is, and what was called and what came of it.
pub(super) fn who_and_what(
    record: &Record,
    sides: Option<&Sides>,
    asked: Option<Asked>,
    settled: Option<Settled>,
    by: Option<&SignedBy>,
) -> (String, String) {
    match &record.body {
        Body::Intent(intent) => {
            let broken = |settled: Settled| format!("interrupted: {}", settled.words());
            let running = || "running, or interrupted".to_owned();
            of(&intent.call, sides, &settled.map_or_else(running, broken))
        }
        Body::Outcome(outcome) => of(&outcome.call, sides, &came(outcome, sides)),
        Body::Refusal(refusal) => of(&refusal.call, sides, &refused(refusal, sides)),
        Body::Ask(ask) => of(&ask.call, sides, &waits(ask)),
        Body::Repeat(repeat) => {
            let came = format!("was answered as by record {}, and not run again", repeat.outcome);
            of(&repeat.call, sides, &came)
        }
        Body::Input(input) => (input.agent.to_string(), said(sides)),
        _ => row::event(record, asked, by),
    }
}

fn columns(seq: &str, time: &str, agent: &str, what: &str) -> String {
    let row = format!("{seq:>7}  {time:<24}  {agent:<16}  {what}");
    row.trim_end().to_owned()
}

fn of(call: &CallFields, sides: Option<&Sides>, came: &str) -> (String, String) {
    let agent = call.agent_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let args = match sides.map(|sides| &sides.arguments) {
        Some(Kept::There(map)) => Some(map.item()),
        _ => None,
    };
    let named = |tool| Client::shown(tool, args);
    let tool = call.tool_id.as_ref().map_or_else(|| "no tool".to_owned(), named);
    let arguments =
        sides.map(|sides| shown(&sides.arguments, call.tool_id.as_ref())).unwrap_or_default();
    (agent, format!("{tool}{arguments} -> {came}"))
}

/// `(path: "a.txt", text: "..")`.
fn shown(arguments: &Kept, tool: Option<&ToolId>) -> String {
    match arguments {
        Kept::There(map) => {
            let one = |(name, value): (&str, Item<'_>)| {
                format!("{}: {}", plain(name), cut(&from_data(value), ARGUMENT))
            };
            let own = |(name, _): &(&str, Item<'_>)| {
                !tool.is_some_and(|tool| Client::is_folder_of_shell(tool, name))
            };
            let all: Vec<String> =
                plain_first(map.item()).into_iter().filter(own).map(one).collect();
            format!("({})", cut(&all.join(", "), ARGUMENTS))
        }
        Kept::Never => String::new(),
        kept => format!("(arguments {})", kept.word()),
    }
}

/// `the user said: ..`.
fn said(sides: Option<&Sides>) -> String {
    let what = match sides.map(|sides| &sides.arguments) {
        None => return "the user said something".to_owned(),
        Some(Kept::There(map)) => {
            let text = map.item().get("said").and_then(Item::as_text).unwrap_or_default();
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            cut(&text, ARGUMENTS)
        }
        Some(kept) => format!("(what is {})", kept.word()),
    };
    format!("the user said: {what}")
}

/// `ok: ..`, `the tool failed: ..`, `failed: not_found, path: "a"`.
fn came(outcome: &Outcome, sides: Option<&Sides>) -> String {
    let Outcome { reason, tx, flags, .. } = outcome;
    let head = match reason {
        Some(Reason::ToolFailed) => "the tool failed".to_owned(),
        Some(reason) => format!("failed: {}", reason.name()),
        None if flags.has(OutcomeFlags::TOOL_FAILED) => "ended badly".to_owned(),
        None => "ok".to_owned(),
    };
    let said = sides.map(|sides| told(&sides.delivered, *reason)).unwrap_or_default();
    let became = match (reason, tx) {
        (_, TxOutcome::NoOp) | (None, TxOutcome::Committed) => String::new(),
        (_, TxOutcome::Unknown) => " (what it did is not known)".to_owned(),
        (_, tx) => format!(" ({tx})"),
    };
    format!("{head}{said}{became}")
}

fn refused(refusal: &Refusal, sides: Option<&Sides>) -> String {
    let head = match refusal.refusal_kind {
        RefusalKind::Asked => "not run, a person must approve it",
        RefusalKind::Deferred => "not run yet",
        RefusalKind::Refused | RefusalKind::Control => "refused",
    };
    let by = refusal.call.decision.as_ref().filter(|_| refusal.reason.is_a_verdict());
    let by = constraint(by);
    let said = sides.map(|sides| told(&sides.delivered, Some(refusal.reason))).unwrap_or_default();
    format!("{head}: {}{by}{said}", refusal.reason.name())
}

fn waits(ask: &Ask) -> String {
    let by = constraint(ask.call.decision.as_ref());
    format!("asks for approval{by}, until {}", ask.expires)
}

/// Which constraint of the policy said so.
pub(super) fn constraint(decision: Option<&Decision>) -> String {
    let deciding = decision.and_then(|decision| decision.deciding.as_ref());
    deciding.map(|id| format!(" by {id}")).unwrap_or_default()
}

/// The delivered value in short: an error's names, a result's beginning.
fn told(delivered: &Kept, reason: Option<Reason>) -> String {
    let object = match delivered {
        Kept::There(object) => object.item(),
        Kept::Never => return String::new(),
        kept => return format!(" (result {})", kept.word()),
    };
    let own = object.get("output").filter(|_| reason == Some(Reason::ToolFailed));
    let object = own.unwrap_or(object);
    if let Some(reason) = reason.filter(|_| own.is_none()) {
        let named = ["field", "got", "allowed"].into_iter().filter_map(|name| {
            let value = object.get(name).and_then(Item::as_text)?;
            let name = if name == "allowed" { allowed_word(reason) } else { name };
            Some(format!(", {name}: {}", cut(value, ARGUMENT)))
        });
        return named.collect();
    }
    let text = content(object).unwrap_or_else(|| {
        parts(object).into_iter().map(|(_, text)| text.into_owned()).collect::<Vec<_>>().join(" ")
    });
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { String::new() } else { format!(": {}", cut(&text, CAME)) }
}

/// The texts of what an MCP server answers, or the words of its error.
fn content(object: Item<'_>) -> Option<String> {
    if let Some(error) = object.get("rpc_error") {
        return error.get("message").and_then(Item::as_text).map(str::to_owned);
    }
    let content = object.get("content").filter(|content| content.kind() == ItemKind::Array)?;
    let texts: Vec<&str> =
        content.elements().filter_map(|block| block.get("text").and_then(Item::as_text)).collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

/// So many characters of a text, made plain; where more follows, two dots say so.
fn cut(text: &str, characters: usize) -> String {
    let text = plain(text);
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
        None => text.into_owned(),
    }
}
