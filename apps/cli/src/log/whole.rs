//! One record whole: `log show HOME SEQ`.

use std::{collections::BTreeSet, path::Path};

use syscap::audit::SqliteReader;
use syscap::format::json::from_data;
use syscap::format::{Body, CallFields, Item, Manifest, OutcomeFlags, Reason, Record, Seq};
use syscap::kernel::{Next, StoreError};
use syscap::remedy::{Remedy, allowed_word};

use super::answers::Asked;
use super::kept::{Kept, Sides};
use super::line::constraint;
use super::select::call_of;
use super::settled::{By, Settled, settled};
use super::{row, tools};
use crate::exit::{Ended, Exit, Failure};
use crate::fields;
use crate::hook::client::Client;
use crate::output::{Form, Object, Out, plain};
use crate::signed::SignedBy;

/// What stands beside a record: the request that it answers, the vault's part, its signers.
#[derive(Default)]
pub(super) struct About {
    pub(super) asked: Option<Asked>,
    pub(super) sides: Option<Sides>,
    pub(super) by: Option<SignedBy>,
}

/// Shows a record, with what the vault has of it unless it is to be left out.
pub(super) fn show(
    home: &Path,
    reader: &mut SqliteReader,
    record: &Record,
    bytes: &[u8],
    about: About,
    out: &mut Out,
) -> Ended {
    let altered = about.sides.as_ref().is_some_and(Sides::altered);
    match out.form() {
        Form::Json => {
            out.line(&all(home, reader, record, bytes, about)?.finish())?;
        }
        Form::Text => text(home, reader, record, about, out)?,
    }
    if altered {
        return Err(super::altered(home, record.seq));
    }
    Ok(Exit::Done)
}

/// A record for programs, with what became of it where it is a call without an outcome.
pub(super) fn all(
    home: &Path,
    reader: &mut SqliteReader,
    record: &Record,
    bytes: &[u8],
    about: About,
) -> Result<Object, Failure> {
    let object = json(record, bytes, about);
    let Some(settled) = became(home, reader, record)? else { return Ok(object) };
    let became = Object::new().text("verdict", settled.verdict.name());
    let became = became.uint("record", settled.record.get());
    let became = became.flag("operator", settled.by == By::Operator);
    let became = if settled.by == By::Report { became.flag("late", true) } else { became };
    Ok(object.json("became", &became.finish()))
}

/// A record, with what it answers and what the vault has.
pub(super) fn json(record: &Record, bytes: &[u8], About { asked, sides, by }: About) -> Object {
    let object = fields::record(record, bytes);
    let object = by.iter().fold(object, |object, by| by.json(object));
    let object = match asked {
        None => object,
        Some(Asked { ask, agent, tool, .. }) => {
            let answered = Object::new().uint("ask", ask.get()).text("agent", &agent);
            object.json("answers", &answered.text("tool", &tool).finish())
        }
    };
    let Some(Sides { arguments, delivered }) = &sides else { return object };
    let side = |object: Object, name: &str, kept: &Kept| match kept {
        Kept::There(value) => object.json(name, &from_data(value.item())),
        kept => object.json(name, "null").text(&format!("{name}_kept"), kept.word()),
    };
    side(side(object, "args", arguments), "delivered", delivered)
}

fn text(
    home: &Path,
    reader: &mut SqliteReader,
    record: &Record,
    About { asked, sides, by }: About,
    out: &mut Out,
) -> Result<(), Failure> {
    let sides = sides.as_ref();
    let failed = |error: StoreError| Failure::home(home)(syscap::Error::Home(error));
    let mut say = |name: &str, value: &str| out.line(&format!("{name:<12} {value}"));
    say("record", &record.seq.to_string())?;
    say("kind", record.body.kind().name())?;
    say("time", &record.time.to_string())?;
    let Some(call) = call_of(&record.body) else {
        let (agent, what) = row::event(record, asked, by.as_ref());
        if !agent.is_empty() {
            say("agent", &agent)?;
        }
        say("what", &what)?;
        if let Some(by) = by {
            say("signed by", &by.keys())?;
            if let Some(channel) = by.channel() {
                say("channel", channel)?;
            }
            if let Some(because) = by.because.shown() {
                say("because", &because)?;
            }
        }
        for (name, value) in tools::changes(reader, record).map_err(failed)? {
            say(name, &value)?;
        }
        return sides.map_or(Ok(()), |sides| arguments(&sides.arguments, out));
    };
    let args = match sides.map(|sides| &sides.arguments) {
        Some(Kept::There(map)) => Some(map.item()),
        _ => None,
    };
    for (name, value) in of_call(call, args) {
        say(name, &value)?;
    }
    if let Some(manifest) = manifest(reader, call).map_err(failed)? {
        say("class", manifest.effect.name())?;
    }
    for (name, value) in of_kind(record) {
        say(name, &value)?;
    }
    if let Some(settled) = became(home, reader, record)? {
        say("became", &settled.words())?;
    }
    if let Some(command) = next(home, record, sides) {
        say("goes on by", &command)?;
    }
    let Some(sides) = sides else { return Ok(()) };
    let reason = match &record.body {
        Body::Outcome(outcome) => outcome.reason,
        Body::Refusal(refusal) => Some(refusal.reason),
        _ => None,
    };
    arguments(&sides.arguments, out)?;
    delivered(&sides.delivered, reason, out)
}

/// The operator's command after a refusal.
fn next(home: &Path, record: &Record, sides: Option<&Sides>) -> Option<String> {
    let (reason, ask) = match &record.body {
        Body::Refusal(refusal) => (refusal.reason, None),
        Body::Ask(_) => (Reason::Asked, Some(record.seq)),
        _ => return None,
    };
    let call = call_of(&record.body)?;
    let got = match sides.map(|sides| &sides.delivered) {
        Some(Kept::There(error)) => error.item().get("got").and_then(Item::as_text),
        _ => None,
    };
    let (tool, token) = (call.tool_id.as_ref(), call.capability_token_id);
    Remedy { reason, tool, token, got, ask, intent: None }.command(home)
}

/// The outcome of a call without one on record.
fn became(
    home: &Path,
    reader: &mut SqliteReader,
    record: &Record,
) -> Result<Option<Settled>, Failure> {
    if !matches!(record.body, Body::Intent(_)) {
        return Ok(None);
    }
    let failed = |error: StoreError| Failure::home(home)(syscap::Error::Home(error));
    let mut settled = settled(reader, &BTreeSet::from([record.seq])).map_err(failed)?;
    Ok(settled.remove(&record.seq))
}

/// The common fields of records of calls.
fn of_call(call: &CallFields, args: Option<Item<'_>>) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    let mut some = |name, value: Option<String>| {
        all.extend(value.filter(|value| !value.is_empty()).map(|value| (name, value)));
    };
    some("agent", call.agent_id.as_ref().map(ToString::to_string));
    some("session", call.session.map(|session| session.to_string()));
    some("token", call.capability_token_id.map(|token| token.to_string()));
    some("tool", call.tool_id.as_ref().map(|tool| Client::shown_with_id(tool, args)));
    let trace = call.provenance.as_ref().and_then(|from| from.trace.as_deref());
    some("trace", trace.map(|trace| plain(trace).into_owned()));
    let decided = call.decision.as_ref();
    let verdict = |decision| {
        let asked = row::obligations(decision);
        format!("{}{}{asked}", decision.verdict, constraint(Some(decision)))
    };
    some("policy said", decided.map(verdict));
    some("set aside", Some(call.held.to_string()));
    some("used", Some(call.used.to_string()));
    some("kept to by", call.enforcement.map(|level| level.to_string()));
    all
}

fn of_kind(record: &Record) -> Vec<(&'static str, String)> {
    match &record.body {
        Body::Outcome(outcome) => {
            let mut all = vec![("intent", outcome.intent.to_string())];
            let failed = outcome.flags.has(OutcomeFlags::TOOL_FAILED);
            all.push(match outcome.reason {
                Some(reason) => ("failed", why(reason)),
                None if failed => ("came", "a result that tells of a failure".into()),
                None => ("came", "a result".to_owned()),
            });
            all.push(("effect", outcome.tx.to_string()));
            all.push(("label", outcome.label.to_string()));
            all
        }
        Body::Refusal(refusal) => vec![("refused", why(refusal.reason))],
        Body::Ask(ask) => vec![("waits until", ask.expires.to_string())],
        Body::Intent(intent) => vec![("label", intent.label.to_string())],
        Body::Repeat(repeat) => vec![("answered as", format!("record {}", repeat.outcome))],
        _ => Vec::new(),
    }
}

fn why(reason: Reason) -> String {
    format!("{} ({}): {}", reason.name(), reason.code(), reason.hint())
}

fn arguments(kept: &Kept, out: &mut Out) -> Result<(), Failure> {
    let Kept::There(map) = kept else { return absent("arguments", kept, out) };
    out.line("arguments")?;
    entries(map.item(), out)
}

/// The entries of a map: texts as their lines, all else as JSON.
fn entries(map: Item<'_>, out: &mut Out) -> Result<(), Failure> {
    entries_as(map, |name| name, out)
}

/// The same, by other names.
fn entries_as<'m>(
    map: Item<'m>,
    named: impl Fn(&'m str) -> &'m str,
    out: &mut Out,
) -> Result<(), Failure> {
    for (name, value) in map.entries() {
        let name = named(name);
        match value.as_text() {
            Some(text) => lines(&plain(name), text, out)?,
            None => out.line(&format!("  {}: {}", plain(name), from_data(value)))?,
        }
    }
    if map.entries().next().is_none() {
        out.line(&format!("  {}", from_data(map)))?;
    }
    Ok(())
}

fn delivered(kept: &Kept, reason: Option<Reason>, out: &mut Out) -> Result<(), Failure> {
    let name = if reason.is_some() { "error" } else { "result" };
    let Kept::There(object) = kept else { return absent(name, kept, out) };
    out.line(name)?;
    let named = |key| match (key, reason) {
        // A person's reason for a no is nothing that is allowed.
        ("allowed", Some(reason)) => allowed_word(reason),
        (key, _) => key,
    };
    entries_as(object.item(), named, out)
}

fn lines(name: &str, text: &str, out: &mut Out) -> Result<(), Failure> {
    if !text.contains('\n') {
        return out.line(&format!("  {name}: {text}"));
    }
    out.line(&format!("  {name}:"))?;
    text.lines().try_for_each(|line| out.tabbed(&format!("  | {line}")))
}

fn absent(name: &str, kept: &Kept, out: &mut Out) -> Result<(), Failure> {
    match kept {
        Kept::Never => Ok(()),
        kept => out.line(&format!("{name:<12} {}", kept.word())),
    }
}

pub(super) fn manifest(
    reader: &mut SqliteReader,
    call: &CallFields,
) -> Result<Option<Manifest>, StoreError> {
    let Some(id) = call.manifest else { return Ok(None) };
    let object = reader.object(&id)?;
    Ok(object.and_then(|object| Manifest::from_bytes(&object.bytes).ok()))
}

/// The outcome of an intent: the first behind it that names it.
pub(super) fn outcome_of(
    reader: &mut SqliteReader,
    intent: Seq,
) -> Result<Option<(Record, Vec<u8>)>, StoreError> {
    let mut found = None;
    let is_of = |body: &Body| matches!(body, Body::Outcome(outcome) if outcome.intent == intent);
    reader.records(intent.next(), &mut |_, bytes| match Record::decode(bytes) {
        Ok(record) if is_of(&record.body) => {
            found = Some((record, bytes.to_vec()));
            Next::Enough
        }
        _ => Next::More,
    })?;
    Ok(found)
}
