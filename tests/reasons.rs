//! `docs/reasons.md` is made from the table of reasons, and every reason is what the table's
//! readers take it for. `UPDATE=1 cargo test --test reasons` writes the page.

use std::{collections::BTreeMap, env, fmt::Write as _, fs, sync::OnceLock};

use crate::repair::world::{World, shown};
use serde_json::Value;
use syscap::Error;
use syscap::format::{ErrorKind, MapBuilder, Refused, Retry, SnapshotId, TxOutcome};
use syscap::prelude::*;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reasons.md");

const INTRODUCTION: &str = include_str!("repair/reasons.md");

/// Reasons that no call through a home raises here: an object as the kernel would make it.
/// `field`, `got` and `allowed` are empty where they don't stand.
type Stated = (Reason, [&'static str; 3], &'static str);

const STATED: &[Stated] = &[
    (Reason::Expired, ["", "", ""], "by time"),
    (Reason::NotYetValid, ["", "", ""], "by time"),
    (Reason::ReadOnlyToken, ["tool_id", "fs.write", ""], "by token"),
    (Reason::ClockUnconfirmed, ["", "", ""], "by time"),
    (Reason::StaleRevocations, ["", "", ""], "by time"),
    (Reason::ToolChanged, ["tool_id", "docs.read_file", ""], "by a provider"),
    (Reason::NoProvider, ["tool_id", "docs.read_file", ""], "by a provider"),
    (Reason::KeyInFlight, ["idempotency_key", "", ""], "a race"),
    (Reason::ConcurrencyLimit, ["concurrent", "1", "0"], "a race"),
    (Reason::Changed, ["path", "", ""], "after an answer"),
    (Reason::ApprovalDenied, ["approval", "12", "not on a Friday"], "after an answer"),
    (Reason::UnknownAsk, ["ask", "", ""], "control"),
    (Reason::ApprovalExpired, ["ask", "", ""], "by time"),
    (Reason::NotEligible, ["key", "", ""], "control"),
    (Reason::OutcomeUnknown, ["idempotency_key", "", ""], "after a crash"),
    (Reason::OutcomeErased, ["idempotency_key", "", ""], "after a redaction"),
    (Reason::OutcomeLost, ["idempotency_key", "", ""], "after a crash"),
    (Reason::WrongLane, ["", "", ""], "by the socket"),
    (Reason::ReferenceErased, ["$ref", "", ""], "after a redaction"),
    (Reason::ReferenceInFlight, ["$ref.record", "", ""], "a race"),
    (Reason::ToolsMismatch, ["", "", ""], "by the host"),
    (Reason::PolicyNotInForce, ["", "", ""], "by the host"),
    (Reason::Exhausted, ["credits of team", "", ""], "by measured time, or by an account"),
    (Reason::Overloaded, ["", "", ""], "by load"),
    (Reason::NoRoom, ["", "", ""], "by the disk"),
    (Reason::Closing, ["", "", ""], "by the host"),
    (Reason::NoSession, ["session", "", ""], "by the host"),
    (Reason::FileTooLarge, ["path", "the file is too large", ""], "a file of a pebibyte"),
    (Reason::AccessDenied, ["path", "permission denied", ""], "by the system"),
    (Reason::DiskFull, ["path", "no space left on the device", ""], "by the disk"),
    (Reason::Busy, ["path", "the folder changes too fast", ""], "a race"),
    (Reason::Unsupported, ["path", "", ""], "by the system"),
    (Reason::Failed, ["path", "", ""], "by the system"),
    (
        Reason::Quota,
        ["value", "16777220 bytes with all that is kept", "at most 16777216 bytes"],
        "by a store",
    ),
    (Reason::Unreachable, ["path", "no answer", ""], "by a server"),
    (Reason::ForbiddenAddress, ["path", "169.254.169.254", ""], "by a resolver"),
    (Reason::BadCertificate, ["path", "", ""], "by a server"),
    (Reason::BadResponse, ["path", "", ""], "by a server"),
    (Reason::NoSecret, ["secret", "tickets", ""], "by the host"),
    (Reason::Mismatch, ["embedding", "3 numbers", "384 numbers"], "by a store"),
    (Reason::NotConfined, ["program", "", ""], "by the system"),
    (Reason::NotHandedOn, ["token", "revoked", ""], "a race"),
    (Reason::Panicked, ["", "", ""], "by a tool"),
    (Reason::TimedOut, ["", "", ""], "by a tool"),
    (Reason::NotRun, ["", "", ""], "a race"),
    (Reason::Abandoned, ["", "", ""], "by a host"),
    (Reason::Cancelled, ["", "", ""], "by a caller"),
    (Reason::ProviderGone, ["", "", ""], "by a provider"),
    (Reason::ToolFailed, ["", "", ""], "with what the tool gave"),
    (Reason::OverHold, ["path", "no more was set aside", ""], "a tool that plans too little"),
    (Reason::NotCompared, ["team", "", ""], "by a tool at fault"),
    (Reason::BadScope, ["teem", "teem", "team"], "where a token is issued"),
    (Reason::BadSignature, ["key", "", "revoker"], "control"),
    (Reason::StaleCounter, ["counter", "", ""], "control"),
    (Reason::BadControl, ["body", "", ""], "control"),
    (Reason::BadToken, ["body", "", ""], "control"),
    (Reason::WrongAudience, ["audience", "", ""], "control"),
    (Reason::WrongIssuer, ["issuer", "", ""], "control"),
    (Reason::LifeTooLong, ["expires", "", ""], "control"),
    (Reason::UnknownAuthority, ["caveats", "", ""], "control"),
    (Reason::NoDelegation, ["parent", "", ""], "control"),
    (Reason::AlreadyIssued, ["", "", ""], "control"),
    (Reason::UnknownToken, ["token", "", ""], "control"),
    (Reason::TooManySessions, ["", "", ""], "control"),
    (Reason::WrongPolicy, ["policy", "", ""], "control"),
    (Reason::BadPolicy, ["constraints[3].when", "unknown operator \"equals\"", ""], "control"),
    (Reason::UnknownHead, ["head", "4711", ""], "control"),
    (Reason::StaleHead, ["head", "", ""], "control"),
    (Reason::NotOpen, ["intent", "4711", ""], "control"),
];

/// The first error object of each reason that a home gives.
fn driven() -> &'static BTreeMap<u64, Value> {
    static DRIVEN: OnceLock<BTreeMap<u64, Value>> = OnceLock::new();
    DRIVEN.get_or_init(drive)
}

/// The cases of repairs, and what they leave.
fn drive() -> BTreeMap<u64, Value> {
    let mut found = BTreeMap::new();
    let mut keep = |reason: Option<Reason>, object: Value| {
        if let Some(reason) = reason {
            found.entry(reason.code()).or_insert(object);
        }
    };
    for case in crate::repair::cases() {
        let (world, call) = case.prepared();
        let (reason, object) = world.send(&call);
        keep(reason, object);
        world.runtime.close().unwrap();
    }
    let world = World::new(&[]);
    let reference = MapBuilder::new().uint("$ref", 1).finish();
    let result = world.session.call("echo", args! { "value": &reference }).unwrap();
    keep(result.reason(), shown(result.delivered().item()));
    for (tool, args) in [
        ("fs.delete", args! { "path": "notes", "folder": true }),
        ("fs.edit", args! { "path": "notes.txt", "old": "wasps", "new": "bees" }),
    ] {
        let result = world.session.call(tool, args).unwrap();
        keep(result.reason(), shown(result.delivered().item()));
    }
    let mut many = Vec::new();
    for half in 0..8 {
        many.push((0..40).fold(syscap::Args::new(), |args, n| {
            args.with(&format!("goal.g{}", half * 40 + n), true)
        }));
    }
    let mut proposals = vec![
        world.session.propose(args! { "fact.topic": "bees" }),
        world.session.propose(args! { "topic": "bees" }),
        world.session.propose_from(SnapshotId::from_bytes([0; 32]), args! { "goal.topic": "x" }),
    ];
    proposals.extend(many.into_iter().map(|args| world.session.propose(args)));
    for proposal in proposals {
        if let Err(Error::Refused(refused)) = proposal {
            let object = refused.error_object(ErrorKind::Refused);
            keep(Some(refused.reason()), shown(object.item()));
        }
    }
    found
}

const fn kind_of(reason: Reason) -> ErrorKind {
    match reason {
        Reason::Asked => ErrorKind::Asked,
        Reason::Deferred => ErrorKind::Deferred,
        Reason::NotRun => ErrorKind::Refused,
        _ if reason.code() / 100 == 7 => ErrorKind::Failed(TxOutcome::NoOp),
        _ => ErrorKind::Refused,
    }
}

fn stated((reason, [field, got, allowed], _): &Stated) -> Value {
    if *reason == Reason::ToolFailed {
        let output = syscap::format::Canonical::text("no such branch: main");
        return shown(Refused::tool_failed(output.item(), TxOutcome::NoOp, None).item());
    }
    let mut refused = Refused::new(*reason);
    if !field.is_empty() {
        refused = refused.field(field);
    }
    if !got.is_empty() {
        refused = refused.got(got);
    }
    if !allowed.is_empty() {
        refused = refused.allowed(allowed);
    }
    shown(refused.error_object(kind_of(*reason)).item())
}

/// One object for each reason.
fn objects() -> BTreeMap<u64, Value> {
    let mut objects = driven().clone();
    for row in STATED {
        objects.entry(row.0.code()).or_insert_with(|| stated(row));
    }
    objects
}

/// Digests differ from home to home: the page shows that there is one.
fn without_digests(object: &Value) -> Value {
    let mut object = object.clone();
    for value in object.as_object_mut().unwrap().values_mut() {
        let is_digest =
            |text: &str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        if value.as_str().is_some_and(|text| is_digest(text) && text.bytes().any(|b| b != b'0')) {
            *value = Value::from("64 hexadecimal digits");
        }
    }
    object
}

fn page(objects: &BTreeMap<u64, Value>) -> String {
    let mut page = String::from(INTRODUCTION);
    page.push_str("\n| code | reason | retry | details | hint |\n|---|---|---|---|---|\n");
    for reason in Reason::ALL {
        let object = &objects[&reason.code()];
        let details: Vec<String> = ["field", "got", "allowed"]
            .iter()
            .filter(|key| object.get(**key).is_some())
            .map(|key| format!("`{key}`"))
            .collect();
        let (code, name, retry) = (reason.code(), reason.name(), reason.retry().name());
        let details = details.join(", ");
        writeln!(page, "| {code} | `{name}` | `{retry}` | {details} | {} |", reason.hint())
            .unwrap();
    }
    page.push_str("\n## An example of each\n");
    for reason in Reason::ALL {
        let object = without_digests(&objects[&reason.code()]);
        let order =
            ["kind", "code", "reason", "field", "got", "allowed", "output", "retry", "hint"];
        let keys = order.iter().filter_map(|key| Some((key, object.get(*key)?)));
        let keys: Vec<String> = keys.map(|(key, value)| format!("\"{key}\": {value}")).collect();
        write!(page, "\n```json\n{{{}}}\n```\n", keys.join(", ")).unwrap();
    }
    page
}

#[test]
fn the_page_is_what_the_table_says() {
    let made = page(&objects());
    if env::var_os("UPDATE").is_some() {
        fs::write(PAGE, &made).unwrap();
    }
    let there = fs::read_to_string(PAGE).unwrap_or_default();
    let different = there.lines().zip(made.lines()).find(|(there, made)| there != made);
    assert!(there == made, "UPDATE=1 cargo test --test reasons; {different:?}");
}

#[test]
fn every_error_object_is_whole() {
    let objects = objects();
    for reason in Reason::ALL {
        let object = objects.get(&reason.code()).unwrap_or_else(|| panic!("{reason}: no object"));
        let text = |key: &str| object[key].as_str().unwrap_or_else(|| panic!("{reason}: {key}"));
        assert_eq!(text("kind"), kind_of(*reason).name(), "{reason}");
        assert_eq!(object["code"], reason.code(), "{reason}");
        assert_eq!(text("reason"), reason.name());
        assert_eq!(text("retry"), reason.retry().name(), "{reason}");
        assert_eq!(text("hint"), reason.hint(), "{reason}");
        let hint = reason.hint();
        assert!(hint.len() <= 100, "{reason}: {} bytes", hint.len());
        assert!(hint.ends_with(['.', '}']), "{reason}: {hint}");
        assert!(!hint.trim_end_matches('.').contains(". "), "{reason}: two sentences: {hint}");
        assert!(hint.starts_with(|c: char| c.is_ascii_uppercase()), "{reason}: {hint}");
        for key in object.as_object().unwrap().keys() {
            let known = ["kind", "code", "reason", "retry", "hint", "field", "got", "allowed"];
            let known = known.contains(&key.as_str()) || key == "output";
            assert!(known, "{reason}: {key}");
        }
        assert_eq!(object.get("output").is_some(), *reason == Reason::ToolFailed, "{reason}");
    }
}

/// What a class of codes is about says what helps against it.
#[test]
fn retry_is_what_the_class_says() {
    for reason in Reason::ALL {
        let retry = reason.retry();
        let fits = match reason.code() {
            // The call itself: text, arguments, references, keys.
            // Of the tool, which its caller can't mend.
            306 => retry == Retry::Never,
            100..200 | 300..400 => retry == Retry::Fix,
            207 | 208 | 221 | 251 | 253 => retry == Retry::Fix,
            // Authority, and outcomes that are not known: a person's, or time's, or nobody's.
            200..300 => retry != Retry::Fix,
            403 => retry == Retry::Ask,
            404 => retry == Retry::Wait,
            402 | 405 | 407 | 410 | 415 => retry == Retry::Never,
            400..500 => retry == Retry::Fix,
            503 => retry == Retry::Wait,
            500..600 => retry == Retry::Ask,
            600..700 => matches!(retry, Retry::Wait | Retry::Never),
            // What a run may have done isn't known: nobody sends that again by itself.
            750 | 751 | 754 | 756 | 757 => matches!(retry, Retry::Ask | Retry::Never),
            _ => true,
        };
        assert!(fits, "{reason}: {retry:?}");
    }
}

/// Reasons to fix that no home raises for a call or a proposal here, and why.
const NOT_DRIVEN: [(Reason, &str); 5] = [
    (Reason::ToolFailed, "only by a tool's own word, which is its `output`"),
    (Reason::Mismatch, "only beside vectors of another length"),
    (Reason::Quota, "only where a store is full"),
    (Reason::FileTooLarge, "only beyond a pebibyte: the tool's own limit"),
    (Reason::OverHold, "only by a tool whose plan sets aside too little"),
];

#[test]
fn reason_to_fix_names_its_field() {
    let driven = driven();
    let of_calls = Reason::ALL.iter().filter(|reason| reason.code() < 800);
    for reason in of_calls.filter(|reason| reason.retry() == Retry::Fix) {
        match driven.get(&reason.code()) {
            Some(object) => {
                let field = object.get("field").and_then(Value::as_str);
                assert!(field.is_some_and(|field| !field.is_empty()), "{reason}: {object}");
            }
            None => {
                let known = NOT_DRIVEN.iter().any(|(not, _)| not == reason);
                assert!(known, "{reason} is not driven");
            }
        }
    }
    for (reason, why) in NOT_DRIVEN {
        assert!(!driven.contains_key(&reason.code()), "{reason} is driven, though {why}");
    }
    // An object that is stated stands for one that can't be had, and for no other.
    for (reason, _, why) in STATED {
        let is_driven = driven.contains_key(&reason.code());
        assert!(!is_driven, "{reason} is driven, though stated: {why}");
    }
}
