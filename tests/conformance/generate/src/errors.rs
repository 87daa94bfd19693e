//! Vectors of `calls.md`, The error object: one of each reason, and objects that are none.

use serde_json::json;
use syscap_format::json::to_cbor;
use syscap_format::{
    Canonical, DETAIL_BYTES_MAX, ErrorKind, Item, MapBuilder, Reason, Refused, Retry, TxOutcome,
};

use crate::case::{Cases, Of, hex};

/// The requirement that is the row of a reason.
pub(crate) fn requirement(reason: Reason) -> String {
    format!("SYSCAP-ERR-{}", reason.code())
}

/// A vector of an error object of a call whose effect became this.
fn add(cases: &mut Cases, of: Of, valid: bool, tx: TxOutcome, object: &Canonical) {
    let text = |key| object.item().get(key).and_then(Item::as_text).unwrap_or("none");
    let comment = format!("{}, {}: {}", text("kind"), tx.name(), text("reason"));
    let given = json!({"kind": "error", "tx": tx.name(), "bytes": hex(object.as_bytes())});
    cases.add(of, valid, comment, given);
}

/// The object with another value under a key; without one, without the key.
pub(crate) fn changed(
    object: &Canonical,
    key: &str,
    value: Option<&serde_json::Value>,
) -> Canonical {
    let value = value.map(|value| to_cbor(value.to_string().as_bytes()).expect("converts"));
    let others = object.item().entries().filter(|(name, _)| *name != key);
    Canonical::map(others.chain(value.as_ref().map(|value| (key, value.item()))).collect())
}

pub(crate) fn cases() -> Cases {
    let mut cases = Cases::default();
    let (noop, unknown) = (TxOutcome::NoOp, TxOutcome::Unknown);
    for reason in Reason::ALL.iter().copied() {
        let kind = match reason {
            Reason::Asked => ErrorKind::Asked,
            Reason::Deferred => ErrorKind::Deferred,
            _ if reason.is_of_a_run() => ErrorKind::Failed(noop),
            _ => ErrorKind::Refused,
        };
        let of =
            Of(requirement(reason).leak(), "a caller that goes by the code does another thing");
        let output = Canonical::text("no such branch");
        let object = match reason {
            Reason::ToolFailed => Refused::tool_failed(output.item(), noop, None),
            _ => Refused::new(reason).error_object(kind),
        };
        add(&mut cases, of, true, noop, &object);
        let other = if reason.code() == 101 { 102 } else { 101 };
        add(&mut cases, of, false, noop, &changed(&object, "code", Some(&json!(other))));
        let other = match reason {
            // A tool may ask for less to be tried.
            Reason::ToolFailed => "wait",
            _ if reason.retry() == Retry::Never => "wait",
            _ => "never",
        };
        add(&mut cases, of, false, noop, &changed(&object, "retry", Some(&json!(other))));
    }
    let of = Of("SYSCAP-CALL-046", "a caller looks for what is not there");
    let whole = Refused::new(Reason::BadField).field("v").got("text").allowed("1");
    let whole = whole.error_object(ErrorKind::Refused);
    add(&mut cases, of, true, noop, &whole);
    for key in ["kind", "code", "reason", "retry", "hint"] {
        add(&mut cases, of, false, noop, &changed(&whole, key, None));
        add(&mut cases, of, false, noop, &changed(&whole, key, Some(&json!([]))));
    }
    add(&mut cases, of, false, noop, &changed(&whole, "kind", Some(&json!("failing"))));
    for key in ["field", "got", "allowed"] {
        add(&mut cases, of, true, noop, &changed(&whole, key, None));
        add(&mut cases, of, false, noop, &changed(&whole, key, Some(&json!(1))));
    }
    add(&mut cases, of, false, noop, &changed(&whole, "policy", Some(&json!("x"))));
    add(&mut cases, of, false, noop, &MapBuilder::new().finish());

    let of = Of("SYSCAP-CALL-047", "a caller's own bytes move the cursor of who reads the error");
    let long = "\u{e4}".repeat(DETAIL_BYTES_MAX);
    for text in ["a\u{fffd}b", &"x".repeat(DETAIL_BYTES_MAX), &long, "a\nb\u{7f}\u{9b}31m"] {
        let object = Refused::new(Reason::BadField).got(text).error_object(ErrorKind::Refused);
        add(&mut cases, of, true, noop, &object);
    }
    for text in
        ["a\nb", "\u{1b}[31m", "\u{7f}", "\u{9b}31m", &"x".repeat(DETAIL_BYTES_MAX + 1), &long]
    {
        add(&mut cases, of, false, noop, &changed(&whole, "got", Some(&json!(text))));
    }

    let of = Of("SYSCAP-CALL-048", "what may have been done is done twice");
    for reason in [Reason::Failed, Reason::Busy, Reason::ResultTooLarge, Reason::TimedOut] {
        let object = Refused::new(reason).error_object(ErrorKind::Failed(unknown));
        add(&mut cases, of, true, unknown, &object);
        let again = changed(&object, "retry", Some(&json!("wait")));
        add(&mut cases, of, false, unknown, &again);
    }
    let never = Refused::new(Reason::Panicked).error_object(ErrorKind::Failed(unknown));
    add(&mut cases, of, true, unknown, &never);

    let of =
        Of("SYSCAP-CALL-090", "a caller takes a tool's failure for a success, or loses its words");
    let output = MapBuilder::new().text("stderr", "no such branch\n\u{1b}[31m").finish();
    for tx in [noop, unknown, TxOutcome::RolledBack, TxOutcome::Committed] {
        for retry in [None, Some(Retry::Wait), Some(Retry::Ask), Some(Retry::Never)] {
            let object = Refused::tool_failed(output.item(), tx, retry);
            add(&mut cases, of, true, tx, &object);
        }
    }
    let object = Refused::tool_failed(output.item(), noop, None);
    for value in [json!(null), json!([1, "a"]), json!(""), json!({"kind": "refused"})] {
        add(&mut cases, of, true, noop, &changed(&object, "output", Some(&value)));
    }
    add(&mut cases, of, false, noop, &changed(&object, "output", None));
    add(&mut cases, of, false, noop, &changed(&object, "kind", Some(&json!("refused"))));
    add(&mut cases, of, false, noop, &changed(&object, "retry", Some(&json!("wait"))));
    for key in ["field", "got", "allowed"] {
        add(&mut cases, of, false, noop, &changed(&object, key, Some(&json!("x"))));
    }
    let unsure = Refused::tool_failed(output.item(), unknown, None);
    add(&mut cases, of, false, unknown, &changed(&unsure, "retry", Some(&json!("fix"))));
    let other = Refused::new(Reason::NotFound).error_object(ErrorKind::Failed(noop));
    add(&mut cases, of, false, noop, &changed(&other, "output", Some(&json!("x"))));
    cases
}
