//! A fault in one field of an envelope takes no other field out of the answer or the record.

use kernel_support::FromStore;
use kernel_support::sim::{Sim, ok, records, seated};
use serde_json::{Map, Value, json};
use syscap_format::{
    Body, CallFields, Form, Item, Provenance, Reason, Seq, Snapshot, SnapshotId, Source,
    ToolResult, json,
};
use syscap_verify::{Extent, Options, verify};

/// An envelope of which every field is there and right.
fn whole(sim: &Sim) -> Map<String, Value> {
    let envelope = json!({
        "v": 1,
        "tool_id": "look",
        "args": {"at": 1},
        "agent_id": "a0",
        "capability_token_id": sim.tokens[0].0.to_string(),
        "state_snapshot_id": head(sim).to_string(),
        "policy_hash": sim.kernel.policy_hash().unwrap().to_string(),
        "provenance": {"source": "user", "time": 5, "trace": "t-1"},
    });
    envelope.as_object().unwrap().clone()
}

fn head(sim: &Sim) -> SnapshotId {
    Snapshot::genesis(sim.kernel.sessions().next().unwrap().agent.clone()).id()
}

/// Sends it as JSON and as CBOR; gives the last answer and what its record holds.
fn refused(sim: &mut Sim, session: Seq, envelope: &Map<String, Value>) -> (ToolResult, CallFields) {
    let text = Value::Object(envelope.clone()).to_string();
    let cbor = json::to_cbor(text.as_bytes()).unwrap().into_bytes();
    let answers = [(text.into_bytes(), Form::Json), (cbor, Form::Cbor)].map(|(sent, form)| {
        let ticket = sim.submit(session, sent, form);
        sim.commit();
        let result = sim.reply_to(ticket).unwrap().clone();
        let Body::Refusal(refusal) = records(sim).pop().unwrap().body else {
            panic!("no refusal on record: {envelope:?}");
        };
        assert_eq!(Some(refusal.reason), result.reason());
        ok(sim, session);
        (result, refusal.call)
    });
    let same = |of: fn(&CallFields) -> String| assert_eq!(of(&answers[0].1), of(&answers[1].1));
    same(|call| format!("{:?}", (&call.tool_id, call.manifest, call.capability_token_id)));
    same(|call| format!("{:?}", (&call.provenance, call.state_snapshot_id)));
    answers[1].clone()
}

/// What answer and record name, in the words of the envelope.
fn named((result, call): &(ToolResult, CallFields)) -> Map<String, Value> {
    let from = |from: &Provenance| {
        json!({"source": from.source.name(), "claimed": from.claimed.map(Source::name),
            "time": from.time.map(|time| time.get()), "trace": from.trace})
    };
    let shown = result.to_canonical();
    let text = |key| shown.item().get(key).and_then(Item::as_text).map(String::from);
    assert_eq!(text("tool_id"), call.tool_id.as_ref().map(|tool| tool.to_string()));
    assert_eq!(text("agent_id"), call.agent_id.as_ref().map(|agent| agent.to_string()));
    assert_eq!(result.provenance(), call.provenance.as_ref());
    let snapshot = shown.item().get("state_snapshot_id").and_then(Item::as_byte_string);
    assert_eq!(snapshot, call.state_snapshot_id.as_ref().map(|id| &id.as_bytes()[..]));
    assert_eq!(call.tool_id.is_some(), call.manifest.is_some());
    assert!(call.call_hash.is_some() && call.args_hash.is_none() && call.session.is_some());
    let named = json!({
        "tool_id": call.tool_id.as_ref().map(|tool| tool.as_str()),
        "agent_id": call.agent_id.as_ref().map(|agent| agent.as_str()),
        "capability_token_id": call.capability_token_id.map(|id| id.to_string()),
        "state_snapshot_id": call.state_snapshot_id.map(|id| id.to_string()),
        "policy_hash": call.policy_hash.map(|hash| hash.to_string()),
        "provenance": call.provenance.as_ref().map(from),
    });
    named.as_object().unwrap().clone()
}

/// What is named of the whole envelope, without what is not in `but`.
fn expected(sim: &Sim, but: &[&str]) -> Map<String, Value> {
    let mut expected = whole(sim);
    ["v", "args"].iter().for_each(|key| drop(expected.remove(*key)));
    let from = json!({"source": "agent", "claimed": "user", "time": 5, "trace": "t-1"});
    expected.insert("provenance".to_owned(), from);
    for key in but {
        expected.insert((*key).to_owned(), Value::Null);
    }
    expected
}

#[test]
fn a_fault_in_one_field_takes_no_other_out() {
    let (mut sim, session) = seated();
    let long = "x".repeat(65);
    // The field, what stands there, the reason, and what is not named for it.
    let table: Vec<(&str, Value, Reason, &[&str])> = vec![
        ("v", json!(2), Reason::UnknownVersion, &[]),
        ("v", json!("1"), Reason::BadField, &[]),
        ("tool_id", json!("Look"), Reason::BadField, &["tool_id"]),
        ("tool_id", json!(["look"]), Reason::BadField, &["tool_id"]),
        ("args", json!([1]), Reason::BadField, &[]),
        ("args", json!(null), Reason::BadField, &[]),
        ("args", json!("{}"), Reason::BadField, &[]),
        // The agent and the policy on record are the session's and the one in force.
        ("agent_id", json!("../x"), Reason::BadField, &[]),
        ("agent_id", json!(7), Reason::BadField, &[]),
        ("policy_hash", json!("00"), Reason::BadField, &[]),
        ("capability_token_id", json!("zz"), Reason::BadField, &["capability_token_id"]),
        ("capability_token_id", json!(1), Reason::BadField, &["capability_token_id"]),
        (
            "capability_token_id",
            json!({"$bytes": "AAE="}),
            Reason::BadField,
            &["capability_token_id"],
        ),
        ("state_snapshot_id", json!("A"), Reason::BadField, &["state_snapshot_id"]),
        ("state_snapshot_id", json!(null), Reason::BadField, &["state_snapshot_id"]),
        ("provenance", json!("user"), Reason::BadField, &["provenance"]),
        ("provenance", json!({"trace": "t"}), Reason::BadField, &["provenance"]),
        ("provenance", json!({"source": "root"}), Reason::BadField, &["provenance"]),
        ("provenance", json!({"source": "user", "trace": long}), Reason::BadField, &["provenance"]),
        ("idempotency_key", json!(""), Reason::BadField, &[]),
        ("idempotency_key", json!({}), Reason::BadField, &[]),
        ("proof", json!("x"), Reason::BadProof, &[]),
    ];
    for (field, value, reason, but) in table {
        let mut envelope = whole(&sim);
        envelope.insert(field.to_owned(), value.clone());
        let answer = refused(&mut sim, session, &envelope);
        assert_eq!(answer.0.reason(), Some(reason), "{field}: {value}");
        let told = answer.0.delivered().item().get("field").and_then(Item::as_text);
        assert_eq!(told, Some(field), "{value}");
        let mut due = expected(&sim, but);
        // Of what can't be read of where it came from the host's own word stands there.
        if field == "provenance" {
            due.insert(field.to_owned(), filled(&sim));
        }
        assert_eq!(named(&answer), due, "{field}: {value}");
    }
    // What lacks takes nothing out either.
    for (field, but) in [("args", &[][..]), ("tool_id", &["tool_id"])] {
        let mut envelope = whole(&sim);
        envelope.remove(field);
        let answer = refused(&mut sim, session, &envelope);
        assert_eq!(answer.0.reason(), Some(Reason::MissingField), "{field}");
        assert_eq!(named(&answer), expected(&sim, but), "{field}");
    }
    let report = verify(&mut FromStore(&mut sim.store), Extent::AtRest, &Options::default());
    assert_eq!(report.unwrap().findings, []);
}

/// Of several faults the first is told, and nothing of them is named; what is left out stands for
/// what the session has; and what the home doesn't know is not on record.
#[test]
fn only_what_the_home_knows_is_named() {
    let (mut sim, session) = seated();
    let mut envelope = whole(&sim);
    for field in ["capability_token_id", "state_snapshot_id", "tool_id", "args"] {
        envelope.insert(field.to_owned(), json!(7));
    }
    let answer = refused(&mut sim, session, &envelope);
    let but = ["capability_token_id", "state_snapshot_id", "tool_id"];
    assert_eq!(named(&answer), expected(&sim, &but));

    let zeros = json!("0".repeat(64));
    let mut envelope = whole(&sim);
    for (field, value) in
        [("capability_token_id", &zeros), ("state_snapshot_id", &zeros), ("tool_id", &json!("rm"))]
    {
        envelope.insert(field.to_owned(), value.clone());
    }
    envelope.remove("args");
    let answer = refused(&mut sim, session, &envelope);
    assert_eq!(answer.0.reason(), Some(Reason::MissingField));
    assert_eq!(named(&answer), expected(&sim, &but));

    let envelope = json!({"tool_id": "look", "args": {}, "proof": 1});
    let answer = refused(&mut sim, session, envelope.as_object().unwrap());
    let mut due = expected(&sim, &[]);
    due.insert("provenance".to_owned(), filled(&sim));
    assert_eq!(named(&answer), due);
}

/// Where a call came from, of which its caller said nothing that could be read.
fn filled(sim: &Sim) -> Value {
    let now = sim.kernel.now().get();
    json!({"source": "agent", "claimed": null, "time": now, "trace": null})
}

/// Bytes that are no map of fields at all name nothing.
#[test]
fn unreadable_call_names_no_field() {
    let (mut sim, session) = seated();
    let deep = format!("{}1{}", "[".repeat(70), "]".repeat(70));
    let tool = r#""tool_id": "look""#;
    for text in [
        format!(r#"{{{tool}, "args": {{"at": {deep}}}}}"#),
        format!(r#"{{{tool}, "args": {{}}, "args": {{}}}}"#),
        format!("{{{tool}, "),
        format!(r#"{{{tool}, "args": {{"at": 1e999}}}}"#),
        String::from("[]"),
    ] {
        let ticket = sim.submit_json(session, &text);
        sim.commit();
        let Body::Refusal(refusal) = records(&mut sim).pop().unwrap().body else { panic!() };
        assert_eq!((&refusal.call.tool_id, &refusal.call.manifest), (&None, &None), "{text}");
        let from = refusal.call.provenance.unwrap();
        assert_eq!((from.source, from.claimed), (Source::Agent, None), "{text}");
        let shown = sim.reply_to(ticket).unwrap().to_canonical();
        assert!(shown.item().get("tool_id").unwrap().is_null());
        assert_eq!(shown.item().get("agent_id").and_then(Item::as_text), Some("a0"));
        ok(&mut sim, session);
    }
}
