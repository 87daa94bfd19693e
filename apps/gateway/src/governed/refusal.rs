//! A refusal, told to a client and the model behind it.
//!
//! It is a tool's result with `isError`, in text, since a protocol error hides its words from the
//! model; and never in `structuredContent`, which must fit the tool's output schema. Programs find
//! their part in `_meta`.

use std::collections::BTreeSet;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, ErrorCode, JsonObject, MetaObject,
};
use serde_json::{Value, json};
use syscap::format::{EffectClass, Item, Reason, Retry, Seq, ToolId, TxOutcome};
use syscap::remedy::{HiddenHome, allowed_word};

use crate::{governed::catalog::Catalog, governed::data};

/// The key in `_meta` under which a refusal stands.
pub const META_KEY: &str = "dev.syscap/refusal";
/// The key in `_meta` under which a tool's own failure stands, beside what the tool gave.
pub(crate) const FAILURE_KEY: &str = "dev.syscap/failure";
/// The key in `_meta` of a list of tools under which stands why none of them can be called, and
/// what goes on.
pub const TOKEN_KEY: &str = "dev.syscap/token";
/// The key in `_meta` of a list of tools under which stands which are offered and not shown, why,
/// and what shows them.
pub const MISSING_KEY: &str = "dev.syscap/missing";
/// The code of an error that is a refusal: of those that the protocol leaves to implementations,
/// one that no common SDK has a meaning for.
const REFUSED: ErrorCode = ErrorCode(-32_003);
/// The parts of an error object that go into `_meta`.
const PARTS: [&str; 8] = ["kind", "code", "reason", "field", "got", "allowed", "retry", "hint"];

/// The parts of a refusal beside the kernel's error object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Aside {
    /// The class of the tool.
    pub(crate) class: Option<EffectClass>,
    /// The constraint of the policy that said no.
    pub(crate) constraint: Option<String>,
    /// The remedy, or the person who has it.
    pub(crate) next: Option<String>,
    /// The effect's outcome, if it matters for making the call again.
    pub(crate) effect: Option<TxOutcome>,
    /// The record of its intent, where what it did is not known.
    pub(crate) intent: Option<Seq>,
    /// The advice on a retry, if it differs from the kernel's for the reason.
    pub(crate) retry: Option<Retry>,
}

/// A client's names of tools.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    /// The home, which no model is told of.
    pub(crate) home: &'a HiddenHome,
    pub(crate) catalog: &'a Catalog,
    /// The tools that the session's token grants.
    pub(crate) granted: &'a BTreeSet<ToolId>,
}

/// The kernel's refusal: the reason, its error object, and the record.
#[derive(Clone, Copy)]
pub(crate) struct RefusedCall<'a> {
    pub(crate) reason: Reason,
    pub(crate) error: Item<'a>,
    pub(crate) record: Seq,
}

/// The result that says so. `error` is the kernel's error object; where it is about the tool's
/// id, the client is told the names that it knows.
pub(crate) fn result(
    refused: RefusedCall<'_>,
    aside: Aside,
    called: &str,
    known: Known<'_>,
) -> CallToolResult {
    let reason = refused.reason;
    let refusal = parts(refused, aside, called, known);
    tell(&words(reason, &refusal), refusal)
}

/// The error that says so, where no tool was called.
pub(crate) fn error(
    refused: RefusedCall<'_>,
    aside: Aside,
    called: &str,
    known: Known<'_>,
) -> ErrorData {
    let reason = refused.reason;
    let refusal = parts(refused, aside, called, known);
    let words = words(reason, &refusal);
    let code = match reason {
        Reason::UnknownTool => ErrorCode::INVALID_PARAMS,
        _ => REFUSED,
    };
    let data = [(META_KEY.to_owned(), Value::Object(refusal))].into_iter().collect();
    ErrorData::new(code, words, Some(Value::Object(data)))
}

fn parts(
    RefusedCall { reason, error, record }: RefusedCall<'_>,
    aside: Aside,
    called: &str,
    known: Known<'_>,
) -> JsonObject {
    let part = |key: &&str| error.get(key).map(|part| ((*key).to_owned(), data::to_json(part)));
    let mut refusal: JsonObject = PARTS.iter().filter_map(part).collect();
    // What a scope names may be the operator's; what was asked for the model knows.
    if let Some(Value::String(allowed)) = refusal.get_mut("allowed") {
        *allowed = known.home.for_model(allowed);
    }
    if refusal.get("field").and_then(Value::as_str) == Some("tool_id") {
        if let Some(got) = refusal.get_mut("got") {
            *got = Value::from(called);
        }
        // The kernel's text names ids, and may be cut: the list is made anew from the grants.
        if let Some(allowed) = refusal.get_mut("allowed") {
            *allowed = Value::from(known.catalog.callable(known.granted, called));
        }
    }
    // The client gave no key: it is made of its request's id.
    if let Some(field) = refusal.get_mut("field").filter(|field| *field == "idempotency_key") {
        *field = Value::from("id");
        if let Some(hint) = of_the_id(reason) {
            refusal.insert(String::from("hint"), Value::from(hint));
        }
        // Nothing can be left out.
        if let Some(allowed) = refusal.get_mut("allowed") {
            *allowed = Value::from("an id that no other request had");
        }
    }
    // A person's reason for a no is nothing that is allowed.
    if let word @ "because" = allowed_word(reason)
        && let Some(allowed) = refusal.remove("allowed")
    {
        refusal.insert(word.to_owned(), allowed);
    }
    refusal.insert(String::from("record"), Value::from(record.get()));
    let Aside { class, constraint, next, effect, intent, retry } = aside;
    let retry = retry.map(|retry| (String::from("retry"), Value::from(retry.name())));
    refusal.extend(retry);
    let effect = effect.map(|effect| effect.name().to_owned());
    refusal.extend(intent.map(|intent| (String::from("intent"), Value::from(intent.get()))));
    let class = class.map(|class| class.name().to_owned());
    for (key, value) in
        [("class", class), ("constraint", constraint), ("effect", effect), ("next", next)]
    {
        refusal.extend(value.map(|value| (key.to_owned(), Value::from(value))));
    }
    refusal
}

/// The error of a list that is not given, since nothing is.
pub(crate) fn stopped(reason: Reason, next: &str) -> ErrorData {
    let words = format!("Refused: {} ({}). {}", reason.name(), reason.code(), reason.hint());
    let refusal = json!({"kind": "refused", "code": reason.code(), "reason": reason.name(),
        "next": next});
    ErrorData::new(REFUSED, format!("{words}\nnext: {next}"), Some(json!({ META_KEY: refusal })))
}

/// The result for a call that never came to the kernel: nothing ran.
pub(crate) fn not_made(why: &str) -> CallToolResult {
    let words = format!("Call not made: {why}. Nothing ran; it can be made again.");
    let meta = [("reason", "not_made"), ("effect", TxOutcome::NoOp.name()), ("retry", "wait")];
    tell(
        &words,
        meta.map(|(key, value)| (key.to_owned(), Value::from(value))).into_iter().collect(),
    )
}

/// The result for a call that may have run, and of which nobody knows what it did.
pub(crate) fn unknown(why: &str, intent: Option<Seq>, next: &str) -> CallToolResult {
    let reason = Reason::OutcomeUnknown;
    let mut refusal = JsonObject::new();
    refusal.insert(String::from("kind"), Value::from("unknown"));
    refusal.insert(String::from("code"), Value::from(reason.code()));
    for (key, value) in [
        ("reason", reason.name()),
        ("retry", reason.retry().name()),
        ("hint", why),
        ("effect", TxOutcome::Unknown.name()),
        ("next", next),
    ] {
        refusal.insert(key.to_owned(), Value::from(value));
    }
    refusal.extend(intent.map(|intent| (String::from("intent"), Value::from(intent.get()))));
    let words = words(reason, &refusal);
    tell(&words, refusal)
}

/// The result of a tool that failed by its own word: what it gave, as it is, and the reason in `_meta`.
pub(crate) fn failed(made: CallToolResponse, error: Item<'_>, record: Seq) -> CallToolResponse {
    let CallToolResponse::Complete(mut result) = made else { return made };
    let part = |key: &str| error.get(key).map(|part| (key.to_owned(), data::to_json(part)));
    let mut failure: JsonObject =
        ["code", "reason", "retry"].into_iter().filter_map(part).collect();
    failure.insert("record".to_owned(), Value::from(record.get()));
    let mut meta = result.meta.take().unwrap_or_default();
    meta.0.insert(FAILURE_KEY.to_owned(), Value::Object(failure));
    (result.meta, result.is_error) = (Some(meta), Some(true));
    CallToolResponse::Complete(result)
}

fn tell(words: &str, refusal: JsonObject) -> CallToolResult {
    let mut meta = JsonObject::new();
    meta.insert(META_KEY.to_owned(), Value::Object(refusal));
    CallToolResult::error(vec![ContentBlock::text(words)]).with_meta(Some(MetaObject(meta)))
}

/// The text for a reason about the key of a call, which a client knows as its request's id.
fn of_the_id(reason: Reason) -> Option<&'static str> {
    match reason {
        Reason::KeyReused => Some("Use another id: a request with this one made another call."),
        Reason::KeyInFlight => Some("The request with this id is not done yet."),
        _ => None,
    }
}

/// One line for each thing that a model can act on.
fn words(reason: Reason, refusal: &JsonObject) -> String {
    let kind = refusal.get("kind").and_then(Value::as_str).unwrap_or("refused");
    // What may have been done was not refused, whichever way it was found out.
    let kind = if reason == Reason::OutcomeUnknown { "unknown" } else { kind };
    let hint = of_the_id(reason).unwrap_or(reason.hint());
    let waits = refusal.get("got").and_then(Value::as_str).filter(|_| reason == Reason::Asked);
    let mut words = match waits {
        Some(ask) if !ask.is_empty() => {
            format!(
                "Call not run: {} ({}). It waits for approval {ask}.",
                reason.name(),
                reason.code()
            )
        }
        _ => format!("Call {kind}: {} ({}). {hint}", reason.name(), reason.code()),
    };
    // What was asked for and what is allowed says nothing of a call that waits.
    let of_fault = ["field", "got", "allowed"].into_iter().filter(|_| reason != Reason::Asked);
    let rest = ["class", "constraint", "record", "intent", "effect", "next"];
    for part in of_fault.chain(rest) {
        let word = if part == "allowed" { allowed_word(reason) } else { part };
        match refusal.get(part) {
            Some(Value::String(value)) => words.push_str(&format!("\n{word}: {value}")),
            Some(value) => words.push_str(&format!("\n{word}: {value}")),
            None => {}
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use syscap::format::{ErrorKind, Refused};

    use super::*;

    /// The key of a call is made of its request's id: a client is told of that.
    #[test]
    fn a_key_is_told_as_the_id_that_it_is_made_of() {
        for (reason, hint) in [
            (Reason::KeyReused, "Use another id: a request with this one made another call."),
            (Reason::KeyInFlight, "The request with this id is not done yet."),
            (Reason::OutcomeErased, Reason::OutcomeErased.hint()),
        ] {
            let refused = Refused::new(reason).field("idempotency_key").allowed("a new key");
            let error = refused.error_object(ErrorKind::Refused);
            let (catalog, granted) = (Catalog::default(), BTreeSet::new());
            let home = HiddenHome::of(Path::new("/srv/home"));
            let known = Known { home: &home, catalog: &catalog, granted: &granted };
            let parts = RefusedCall { reason, error: error.item(), record: Seq::new(7) };
            let refusal = parts_of(parts, known);
            assert_eq!(refusal["field"], "id");
            assert_eq!(refusal["hint"], hint);
            assert_eq!(refusal["allowed"], "an id that no other request had");
            assert!(words(reason, &refusal).starts_with(&format!(
                "Call refused: {} ({}). {hint}\nfield: id\n",
                reason.name(),
                reason.code()
            )));
        }
    }

    fn parts_of(refused: RefusedCall<'_>, known: Known<'_>) -> JsonObject {
        parts(refused, Aside::default(), "x", known)
    }

    #[test]
    fn a_refusal_is_text_and_meta() {
        let scope = "docs/, below machine/srv, not below machine/home/x";
        let refused = Refused::new(Reason::OutOfScope).field("path").got("/etc").allowed(scope);
        let error = refused.error_object(ErrorKind::Refused);
        let parts =
            RefusedCall { reason: Reason::OutOfScope, error: error.item(), record: Seq::new(7) };
        let aside = Aside {
            class: Some(EffectClass::ExternalWrite),
            constraint: Some("ask-first".to_owned()),
            next: Some("a person does this".to_owned()),
            ..Aside::default()
        };
        let (catalog, granted) = (Catalog::default(), BTreeSet::new());
        let home = HiddenHome::of(Path::new("/home/x"));
        let known = Known { home: &home, catalog: &catalog, granted: &granted };
        let result = result(parts, aside, "x", known);
        assert_eq!(result.is_error, Some(true));
        assert_eq!(result.structured_content, None);
        let refusal = result.meta.as_ref().unwrap().get(META_KEY).unwrap();
        assert_eq!(refusal["code"], 304);
        assert_eq!(refusal["reason"], "out_of_scope");
        assert_eq!(refusal["field"], "path");
        // No model is told where the home is.
        assert_eq!(refusal["allowed"], "docs/, below machine/srv");
        assert_eq!(refusal["retry"], "fix");
        assert_eq!(refusal["record"], 7);
        assert_eq!(refusal["class"], "external_write");
        assert_eq!(refusal["constraint"], "ask-first");
        assert_eq!(refusal["next"], "a person does this");
        let text = &result.content[0].as_text().unwrap().text;
        for part in ["out_of_scope", "304", "path", "/etc", "docs/", "record: 7", "next: a person"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    /// The kernel's list is cut behind a whole name; its words are no name.
    #[test]
    fn allowed_names_are_made_from_the_grants() {
        let granted: BTreeSet<ToolId> =
            (0..40).map(|n| ToolId::new(&format!("family.do{n}")).unwrap()).collect();
        let (catalog, called) = (Catalog::default(), "family.do33x");
        let home = HiddenHome::of(Path::new("/home"));
        let known = Known { home: &home, catalog: &catalog, granted: &granted };
        let refused = Refused::new(Reason::UnknownTool).field("tool_id").got("x");
        let error = refused.allowed("echo and 39 more").error_object(ErrorKind::Refused);
        let parts =
            RefusedCall { reason: Reason::UnknownTool, error: error.item(), record: Seq::new(7) };
        let result = result(parts, Aside::default(), called, known);
        let refusal = result.meta.as_ref().unwrap().get(META_KEY).unwrap();
        assert_eq!(refusal["got"], called);
        let allowed = refusal["allowed"].as_str().unwrap();
        assert!(allowed.starts_with("family.do33, ") && !allowed.contains("echo"), "{allowed}");
    }
}
