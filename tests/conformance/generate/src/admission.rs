//! Vectors of `calls.md`, Admission: calls with one fault and with every two of them that one call
//! can have, made in a simulated home and brought before the kernel.

mod scene;
mod work;

use std::collections::BTreeSet;

use scene::{Faults, answer};
use serde_json::json;
use syscap_format::Reason;

use crate::case::{Cases, Of};

/// A fault, the requirement that names it, and its reason. In the order of admission.
const FAULTS: [(&str, &str, Reason); 51] = [
    ("overloaded", "SYSCAP-CALL-021", Reason::Overloaded),
    ("closing", "SYSCAP-CALL-057", Reason::Closing),
    ("no session", "SYSCAP-CALL-022", Reason::NoSession),
    ("proof", "SYSCAP-CALL-058", Reason::BadProof),
    ("no policy", "SYSCAP-CALL-059", Reason::PolicyNotInForce),
    ("envelope", "SYSCAP-CALL-023", Reason::UnknownVersion),
    ("inputs", "SYSCAP-CALL-024", Reason::BadField),
    ("not bound", "SYSCAP-CALL-025", Reason::NotBound),
    ("revoked", "SYSCAP-CALL-026", Reason::Revoked),
    ("frozen", "SYSCAP-CALL-027", Reason::Frozen),
    ("expired", "SYSCAP-CALL-028", Reason::Expired),
    ("not yet valid", "SYSCAP-CALL-029", Reason::NotYetValid),
    ("stale", "SYSCAP-CALL-030", Reason::StaleRevocations),
    ("clock", "SYSCAP-CALL-031", Reason::ClockUnconfirmed),
    ("unknown tool", "SYSCAP-CALL-032", Reason::UnknownTool),
    ("not granted", "SYSCAP-CALL-033", Reason::NotGranted),
    ("read only", "SYSCAP-CALL-034", Reason::ReadOnlyToken),
    ("no room", "SYSCAP-CALL-035", Reason::NoRoom),
    ("other policy", "SYSCAP-CALL-060", Reason::PolicyNotInForce),
    ("other tools", "SYSCAP-CALL-061", Reason::ToolsMismatch),
    ("no call left", "SYSCAP-CALL-036", Reason::OverBudget),
    ("another's key", "SYSCAP-CALL-062", Reason::NotBound),
    ("key in flight", "SYSCAP-CALL-063", Reason::KeyInFlight),
    ("key unknown", "SYSCAP-CALL-064", Reason::OutcomeUnknown),
    ("key erased", "SYSCAP-CALL-065", Reason::OutcomeErased),
    ("answer erased", "SYSCAP-CALL-065", Reason::OutcomeErased),
    ("arguments erased", "SYSCAP-CALL-065", Reason::OutcomeErased),
    ("key", "SYSCAP-CALL-037", Reason::KeyReused),
    ("key lost", "SYSCAP-CALL-066", Reason::OutcomeLost),
    ("reference form", "SYSCAP-CALL-067", Reason::BadReference),
    ("reference", "SYSCAP-CALL-038", Reason::UnknownReference),
    ("reference in flight", "SYSCAP-CALL-068", Reason::ReferenceInFlight),
    ("reference erased", "SYSCAP-CALL-069", Reason::ReferenceErased),
    ("argument", "SYSCAP-CALL-039", Reason::UnknownArgument),
    ("bad argument", "SYSCAP-CALL-070", Reason::BadArgument),
    ("missing argument", "SYSCAP-CALL-071", Reason::MissingArgument),
    ("tool", "SYSCAP-CALL-072", Reason::NotFound),
    ("too many", "SYSCAP-CALL-089", Reason::TooLarge),
    ("not compared", "SYSCAP-CALL-073", Reason::NotCompared),
    ("scope", "SYSCAP-CALL-040", Reason::OutOfScope),
    ("policy hash", "SYSCAP-CALL-041", Reason::PolicyMismatch),
    ("snapshot", "SYSCAP-CALL-042", Reason::UnknownSnapshot),
    ("denied", "SYSCAP-CALL-043", Reason::Denied),
    ("deferred", "SYSCAP-CALL-074", Reason::Deferred),
    ("approval denied", "SYSCAP-CALL-075", Reason::ApprovalDenied),
    ("obligation", "SYSCAP-CALL-076", Reason::Obligation),
    ("reduced", "SYSCAP-CALL-077", Reason::Reduced),
    ("exhausted", "SYSCAP-CALL-078", Reason::Exhausted),
    ("budget", "SYSCAP-CALL-044", Reason::OverBudget),
    ("asked", "SYSCAP-CALL-079", Reason::Asked),
    ("concurrency", "SYSCAP-CALL-080", Reason::ConcurrencyLimit),
];

/// Faults of a key that was used.
const KEYS: [&str; 8] = [
    "another's key",
    "key in flight",
    "key unknown",
    "key erased",
    "answer erased",
    "arguments erased",
    "key",
    "key lost",
];

/// The states of one idempotency key, which exclude each other.
const ENDS: [&str; 6] =
    ["key in flight", "key unknown", "key erased", "answer erased", "arguments erased", "key lost"];

/// The verdicts of a policy, which exclude each other.
const SAID: [&str; 6] = ["denied", "deferred", "approval denied", "obligation", "reduced", "asked"];

/// Faults of arguments: the call whose key was used had none of them.
const ARGUMENTS: [&str; 11] = [
    "reference form",
    "reference",
    "reference in flight",
    "reference erased",
    "argument",
    "bad argument",
    "missing argument",
    "tool",
    "too many",
    "not compared",
    "scope",
];

/// Faults that a token has only after a call by it.
const MADE_BEFORE: [&str; 12] = [
    "no call left",
    "key in flight",
    "key unknown",
    "key erased",
    "answer erased",
    "arguments erased",
    "key",
    "key lost",
    "reference in flight",
    "reference erased",
    "approval denied",
    "concurrency",
];

/// Faults among them that end with the process: a home that was just opened has none.
const IN_HAND: [&str; 5] =
    ["overloaded", "key in flight", "reference in flight", "reference erased", "concurrency"];

/// Pairs that no call has, by the first one and the second.
fn excluded(first: &str, then: &str) -> bool {
    let pair = |of: &[&str], other: &[&str]| {
        (of.contains(&first) && other.contains(&then))
            || (of.contains(&then) && other.contains(&first))
    };
    let restarted = ["other policy", "other tools"];
    // What the tool is asked for has no meaning without one.
    let by_tool =
        ["not granted", "read only", "tool", "too many", "not compared", "scope", "budget"];
    let by_manifest = ["argument", "bad argument", "missing argument"];
    let own_key = &KEYS[1..];
    [
        // The home was opened just now, or has never let a call through.
        pair(&restarted, &IN_HAND),
        pair(&["no policy"], &["overloaded", "other policy"]),
        pair(&["no policy"], &MADE_BEFORE),
        pair(&["no policy"], &KEYS),
        // The token was never good for a call.
        pair(&["not yet valid", "clock"], &MADE_BEFORE),
        pair(&["not granted", "read only"], own_key),
        pair(&["not granted", "read only", "scope", "budget"], &["approval denied"]),
        pair(&["expired"], &["not yet valid"]),
        pair(&["not yet valid"], &["stale", "exhausted"]),
        // There is no tool, or none for this token.
        pair(&["unknown tool"], &by_tool),
        pair(&["unknown tool"], &by_manifest),
        pair(&["unknown tool"], &KEYS),
        pair(&["unknown tool"], &SAID),
        pair(&["not granted"], &["read only", "scope"]),
        // One thing has one state.
        first != then && ENDS.contains(&first) && ENDS.contains(&then),
        SAID.contains(&first) && SAID.contains(&then),
        pair(&["key erased"], &["key"]),
        // The same call was let through.
        pair(&["key lost"], &ARGUMENTS),
        pair(&["key lost"], &SAID),
        pair(&["key lost"], &["budget"]),
    ]
    .contains(&true)
}

pub(crate) fn cases() -> Cases {
    let mut cases = Cases::default();
    let mut ask = |requirement, catches, faults: &[&str], wanted: Option<Reason>| {
        let set: BTreeSet<&str> = faults.iter().copied().collect();
        assert_eq!(answer(&Faults(&set)), wanted, "{faults:?}");
        let mut given = json!({"kind": "admission", "faults": faults});
        if let Some(reason) = wanted {
            given["reason"] = json!(reason.name());
        }
        let comment = if faults.is_empty() { "no fault".to_owned() } else { faults.join(", ") };
        cases.add(Of(requirement, catches), wanted.is_none(), comment, given);
    };
    ask("SYSCAP-CALL-045", "a call that may be made is refused", &[], None);
    for (n, &(fault, requirement, reason)) in FAULTS.iter().enumerate() {
        ask(requirement, "a call is made that no step may let through", &[fault], Some(reason));
        for &(then, other, late) in
            FAULTS.iter().skip(n + 1).filter(|(then, _, _)| !excluded(fault, then))
        {
            // For a key that was used what the call names is held against what is in force first.
            let named = KEYS.contains(&fault) && ["policy hash", "snapshot"].contains(&then);
            let (of, reason) = if named { (other, late) } else { (requirement, reason) };
            ask(of, "which of two reasons is told tells who decided", &[fault, then], Some(reason));
        }
    }
    cases
}
