//! Vectors of `calls.md`, The result: envelopes of results, and what is none.

use serde_json::{Value, json};
use syscap_format::{
    AgentId, Amounts, CallFields, Canonical, ConstraintId, Decision, Dimension, Enforcement,
    ErrorKind, HomeId, Leaf, MapBuilder, Obligation, Provenance, Reason, Receipt, Refused,
    ResultHash, Seq, SnapshotId, Source, ToolId, ToolResult, TxOutcome, UnixMillis, Verdict,
};

use crate::case::{Cases, Of, hex};
use crate::errors::changed;

fn receipt(intent: Option<(Seq, Leaf)>) -> Receipt {
    Receipt {
        home: HomeId::from_bytes([1; 32]),
        intent,
        outcome_seq: Seq::new(7),
        outcome_leaf: Leaf::from_bytes([2; 32]),
        used: Amounts::ZERO.with(Dimension::Calls, 1),
        left: Amounts::ZERO.with(Dimension::Calls, u64::MAX).with(Dimension::WallUs, 3),
        enforcement: Enforcement::Openat2,
    }
}

/// The results of a call that ran, of one that the policy stopped, and of one that could not be
/// read.
fn results() -> [(&'static str, ToolResult); 3] {
    let mut provenance = Provenance::new(Source::Agent, UnixMillis::new(5));
    provenance.claimed = Some(Source::User);
    provenance.trace = Some(Box::from("trace"));
    provenance.inputs.extend([Seq::new(1), Seq::new(4)]);
    let ran = CallFields {
        tool_id: ToolId::new("fs.read"),
        agent_id: AgentId::new("team/a"),
        state_snapshot_id: Some(SnapshotId::from_bytes([3; 32])),
        result_hash: Some(ResultHash::from_bytes([4; 32])),
        provenance: Some(provenance),
        ..CallFields::unknown()
    };
    let done = MapBuilder::new().text("text", "done").finish();
    let mut degraded = vec![
        Obligation::result_cap(9),
        Obligation::read_only(),
        Obligation::elevated(),
        Obligation::notify("page 5"),
    ];
    degraded.extend(Obligation::budget_cut(Dimension::DiskWriteBytes, 100));
    let said =
        Decision { deciding: ConstraintId::new("a/no-secrets"), ..Decision::plain(Verdict::Deny) };
    let denied = CallFields { decision: Some(said), ..ran.clone() };
    let error = |reason| Refused::new(reason).error_object(ErrorKind::Refused);
    let (noop, none) = (TxOutcome::NoOp, Vec::new());
    let of = receipt(Some((Seq::new(6), Leaf::from_bytes([5; 32]))));
    let answer = |fields, reason, degraded, tx, receipt| {
        let delivered = match reason {
            None => done.clone(),
            Some(reason) => error(reason),
        };
        ToolResult::new(fields, reason, delivered, tx, degraded, receipt)
    };
    let (denied_for, unread) = (Some(Reason::Denied), Some(Reason::Malformed));
    [
        ("ran", answer(&ran, None, degraded, TxOutcome::Committed, of)),
        ("denied", answer(&denied, denied_for, none.clone(), noop, receipt(None))),
        ("malformed", answer(&CallFields::unknown(), unread, none, noop, receipt(None))),
    ]
}

/// Adds a vector, if our reader says so too.
fn add(cases: &mut Cases, of: Of, valid: bool, comment: String, envelope: &Canonical) {
    assert_eq!(ToolResult::from_canonical(envelope).is_some(), valid, "{comment}");
    let given = json!({"kind": "result", "bytes": hex(envelope.as_bytes())});
    cases.add(of, valid, comment, given);
}

/// The envelope with another map under a key.
fn nested(envelope: &Canonical, key: &str, inner: &Canonical) -> Canonical {
    let entries = envelope.item().entries();
    let entries = entries.map(|(name, item)| (name, if name == key { inner.item() } else { item }));
    Canonical::map(entries.collect())
}

pub(crate) fn cases() -> Cases {
    let mut cases = Cases::default();
    let of = Of("SYSCAP-CALL-049", "two readers of one answer see two answers");
    let [ran, denied, unread] = results().map(|(name, result)| (name, result.to_canonical()));
    for (name, envelope) in [&ran, &denied, &unread] {
        add(&mut cases, of, true, (*name).to_owned(), envelope);
        for (key, _) in envelope.item().entries() {
            let may_lack = ["degraded", "constraint"].contains(&key);
            let without = changed(envelope, key, None);
            let [by, delivered] = match key {
                "result" | "error" => [Of("SYSCAP-CALL-050", "an answer is none"), of],
                _ => [of, of],
            };
            add(&mut cases, by, may_lack, format!("{name} without {key}"), &without);
            let other = changed(envelope, key, Some(&json!(true)));
            let valid = key == "result";
            add(&mut cases, delivered, valid, format!("{name}, {key} true"), &other);
        }
        let more = changed(envelope, "zz", Some(&json!("more")));
        add(&mut cases, of, false, format!("{name} with another key"), &more);
    }
    let changes: [(&str, Value, bool); 15] = [
        ("v", json!(2), false),
        ("status", json!("done"), false),
        ("tx_outcome", json!("done"), false),
        ("tx_outcome", json!("unknown"), true),
        ("tool_id", json!("Fs"), false),
        ("tool_id", json!(null), true),
        ("agent_id", json!("../a"), false),
        ("agent_id", json!(null), true),
        ("state_snapshot_id", json!(null), true),
        ("state_snapshot_id", json!("3".repeat(64)), false),
        ("result_hash", json!({"$bytes": "AAE="}), false),
        ("degraded", json!([]), false),
        ("degraded", json!(["other 1"]), false),
        ("degraded", json!(["result_cap"]), false),
        ("constraint", json!("a b"), false),
    ];
    for (key, value, valid) in changes {
        let comment = format!("ran, {key} {value}");
        add(&mut cases, of, valid, comment, &changed(&ran.1, key, Some(&value)));
    }
    let provenance = ran.1.item().get("provenance").map(Canonical::from).expect("it has one");
    for (key, value, valid) in [
        ("source", Some(json!("root")), false),
        ("source", None, false),
        ("claimed", Some(json!("root")), false),
        ("claimed", None, true),
        ("time", None, true),
        ("inputs", Some(json!([])), false),
        ("inputs", None, true),
        ("trace", None, true),
        ("zz", Some(json!(1)), false),
    ] {
        let inner = changed(&provenance, key, value.as_ref());
        let comment = format!("ran, {key} of provenance {value:?}");
        add(&mut cases, of, valid, comment, &nested(&ran.1, "provenance", &inner));
    }

    let of = Of("SYSCAP-CALL-050", "an answer is a result and an error at once");
    add(&mut cases, of, true, "ran".to_owned(), &ran.1);
    add(&mut cases, of, true, "denied".to_owned(), &denied.1);
    for ((name, envelope), key, status) in [(&ran, "error", "error"), (&denied, "result", "ok")] {
        let both = changed(envelope, key, Some(&json!({})));
        add(&mut cases, of, false, format!("{name} with {key}"), &both);
        let turned = changed(envelope, "status", Some(&json!(status)));
        add(&mut cases, of, false, format!("{name} as {status}"), &turned);
    }

    let of = Of("SYSCAP-CALL-046", "a caller goes by an error object that no kernel wrote");
    let error = denied.1.item().get("error").map(Canonical::from).expect("it has one");
    for (key, value) in [
        ("retry", Some(json!("wait"))),
        ("code", Some(json!(101))),
        ("reason", Some(json!("malformed"))),
        ("kind", Some(json!("done"))),
        ("hint", None),
        ("more", Some(json!("x"))),
    ] {
        let inner = changed(&error, key, value.as_ref());
        let comment = format!("denied, {key} of error {value:?}");
        add(&mut cases, of, false, comment, &nested(&denied.1, "error", &inner));
    }

    let of = Of("SYSCAP-CALL-051", "a receipt that proves nothing is taken for one");
    for (name, envelope) in [&ran, &denied] {
        add(&mut cases, of, true, (*name).to_owned(), envelope);
        let receipt = envelope.item().get("receipt").map(Canonical::from).expect("it has one");
        let keys: Vec<&str> = receipt.item().entries().map(|(key, _)| key).collect();
        let of_key = |key: &str, value: Option<Value>| {
            nested(envelope, "receipt", &changed(&receipt, key, value.as_ref()))
        };
        for key in keys {
            let without = of_key(key, None);
            add(&mut cases, of, false, format!("{name}: receipt without {key}"), &without);
            let other = of_key(key, Some(json!(true)));
            add(&mut cases, of, false, format!("{name}: receipt, {key} true"), &other);
        }
        for (key, value, valid) in [
            ("used", json!({}), true),
            ("used", json!({"calls": 0}), false),
            ("used", json!({"other": 1}), false),
            ("left", json!({"calls": -1}), false),
            ("left", json!({"calls": 1, "cpu_us": 2, "concurrent": 3}), true),
            ("enforcement", json!("trust"), false),
            ("zz", json!(1), false),
        ] {
            let comment = format!("{name}: receipt, {key} {value}");
            add(&mut cases, of, valid, comment, &of_key(key, Some(value)));
        }
    }
    cases
}
