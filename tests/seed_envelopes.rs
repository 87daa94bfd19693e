//! The third requirement's envelopes, to the letter: what goes in for each of its tools, what comes
//! out, and what is on record, under the names that it gives. A row a tool.

use host_support::server;

use std::{fs, path::PathBuf};

use host_support::{end, new_home, records};
use serde_json::{Value, json};
use server::{Server, answer};
use syscap::Configured;
use syscap::Written;
use syscap::format::{
    AgentId, Body, CallFields, Item, Record, ResultHash, Scope, Seq, Snapshot, Source,
};
use syscap::policy::Policy;
use syscap::prelude::*;
use syscap::syscalls::net::Network;

/// A tool of the requirement, with the arguments that it names (`cap` is the envelope's
/// `capability_token_id`).
struct Row {
    tool: &'static str,
    args: fn(&Session) -> Value,
    /// What the token needs besides the tool's name.
    grant: fn(Grant) -> Grant,
    /// What is there before.
    before: fn(&World),
    /// What came of it, seen from outside and in the result.
    after: fn(&World, &Value),
}

const ROWS: [Row; 6] = [
    Row {
        tool: "fs.read",
        args: |_| json!({"path": "a.txt"}),
        grant: Grant::workspace,
        before: |world| fs::write(world.workspace().join("a.txt"), "read me").unwrap(),
        after: |_, result| assert_eq!(result["text"], "read me"),
    },
    Row {
        tool: "fs.write",
        // "write me", in base64.
        args: |_| json!({"path": "b.txt", "bytes": {"$bytes": "d3JpdGUgbWU="}}),
        grant: Grant::workspace,
        before: |_| {},
        after: |world, result| {
            assert_eq!((&result["created"], &result["size_bytes"]), (&json!(true), &json!(8)));
            let written = fs::read(world.workspace().join("b.txt")).unwrap();
            assert_eq!(written, b"write me");
        },
    },
    Row {
        tool: "net.egress",
        // What goes out is what an earlier call of the session brought.
        args: |session| {
            let echoed = session.call("echo", args! { "value": "hello" }).unwrap();
            let record = echoed.receipt().outcome_seq.get();
            let payload = json!({"$ref": {"record": record, "path": ["value"]}});
            json!({"route": "support", "purpose": "reply", "payload_ref": payload})
        },
        grant: |grant| {
            let grant = grant.scope("route", Scope::names(["support"]).unwrap());
            grant.scope("purpose", Scope::names(["reply"]).unwrap())
        },
        before: |world| {
            world.rt.set_policy(Policy::from_json(ALL.as_bytes()).unwrap()).unwrap();
            let url = world.server.url("/in");
            let route = json!({"url": url, "addresses": ["127.0.0.1/32"]});
            let settings = json!({"routes": {"support": route}}).to_string();
            let settings = syscap::format::json::to_data(settings.as_bytes()).unwrap();
            let manifest = Network::manifest(ToolId::new("net.egress").unwrap(), settings);
            let set = vec![manifest.unwrap()];
            world.rt.configure(&Configured { set, unset: Vec::new() }).unwrap();
        },
        after: |world, result| {
            assert_eq!((&result["status"], &result["data"]), (&json!(202), &json!("queued")));
            let seen = world.server.seen();
            assert_eq!((seen.len(), seen[0].line()), (1, "POST /in HTTP/1.1"));
            assert_eq!(seen[0].text(), "hello");
        },
    },
    Row {
        tool: "vecdb.query",
        args: |_| json!({"embedding": [1.0, 0.5], "filters": {"lang": "en"}}),
        grant: |grant| grant.scope("collection", Scope::names(["acme/docs"]).unwrap()),
        before: |world| {
            let items = r#"{"items": [
                {"id": "near", "embedding": [1, 0.25], "metadata": {"lang": "en"}},
                {"id": "same", "embedding": [1, 0.5], "metadata": {"lang": "de"}}]}"#;
            let grant = Grant::to("a").tools(["vecdb.upsert"]);
            let grant = grant.scope("collection", Scope::names(["acme/docs"]).unwrap());
            let session = world.rt.session("a", world.rt.issue(grant).unwrap()).unwrap();
            let put = session.request("vecdb.upsert").json(items, Escapes::Data).wait().unwrap();
            assert_eq!(put.reason(), None);
        },
        after: |_, result| {
            let hits = result["hits"].as_array().unwrap();
            assert_eq!((hits.len(), &hits[0]["id"]), (1, &json!("near")));
        },
    },
    Row {
        tool: "calendar.find",
        args: |_| json!({"range": "2026-03-30/2026-04-01"}),
        grant: Grant::workspace,
        before: |world| {
            let folder = world.workspace().join("calendar");
            fs::create_dir(&folder).unwrap();
            let text = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART:20260302T090000Z\r\n\
                RRULE:FREQ=WEEKLY\r\nSUMMARY:Hives\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
            fs::write(folder.join("bees.ics"), text).unwrap();
        },
        after: |_, result| {
            let events = result["events"].as_array().unwrap();
            assert_eq!((events.len(), &events[0]["summary"]), (1, &json!("Hives")));
        },
    },
    Row {
        tool: "email.draft",
        args: |_| json!({"to": "ann@example.com", "subject": "Hives", "body": "At seven?"}),
        grant: |grant| grant.scope("recipient", Scope::names(["ann@example.com"]).unwrap()),
        before: |_| {},
        after: |world, result| {
            let drafts = world.home.join("files/agents/a/mail/Drafts/cur");
            let file = drafts.join(result["file"].as_str().unwrap());
            assert!(fs::read_to_string(file).unwrap().contains("At seven?"));
        },
    },
];

/// The preset asks a person about what is sent out.
const ALL: &str = r#"{"v": 1, "constraints": [{"id": "all", "effect": "allow", "subject": null,
    "when": {"op": "all", "args": []}, "on_fail": "block", "reason": "Fine."}]}"#;

struct World {
    _dir: tempfile::TempDir,
    home: PathBuf,
    rt: Runtime,
    server: Server,
}

impl World {
    fn new() -> Self {
        let (dir, home) = new_home();
        let rt = Runtime::create(&home).unwrap();
        let server = Server::saying(answer("202 Accepted", "text/plain", "queued"));
        Self { _dir: dir, home, rt, server }
    }

    fn workspace(&self) -> PathBuf {
        self.home.join("files/agents/a/workspace")
    }
}

/// The seven fields that go in.
fn envelope(world: &World, row: &Row, session: &Session) -> Value {
    let agent = AgentId::new("a").unwrap();
    json!({
        "tool_id": row.tool,
        "args": (row.args)(session),
        "agent_id": "a",
        "capability_token_id": session.token().to_string(),
        "state_snapshot_id": Snapshot::genesis(agent).id().to_string(),
        "policy_hash": world.rt.view().unwrap().policy.unwrap().to_string(),
        "provenance": {"source": "agent", "trace": "turn-1"},
    })
}

/// The six that come out, and what was brought.
fn expect_result(answer: &ToolResult, sent: &Value) -> Value {
    let whole = answer.to_canonical();
    let text = |name| whole.item().get(name).and_then(Item::as_text).map(str::to_owned);
    let id = |name| {
        let bytes = whole.item().get(name).and_then(Item::as_byte_string).unwrap();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    assert_eq!(text("status").as_deref(), Some("ok"), "{}", answer.to_json());
    for name in ["tool_id", "agent_id"] {
        assert_eq!(text(name).as_deref(), sent[name].as_str());
    }
    assert_eq!(id("state_snapshot_id"), sent["state_snapshot_id"].as_str().unwrap());
    assert_eq!(id("result_hash"), answer.result_hash().to_string());
    let provenance = whole.item().get("provenance").unwrap();
    for name in ["source", "trace"] {
        assert_eq!(provenance.get(name).and_then(Item::as_text), sent["provenance"][name].as_str());
    }
    serde_json::from_str(&answer.to_json()).unwrap()
}

/// The eight that a record of a call has.
fn expect_record(call: &CallFields, sent: &Value, result_hash: Option<ResultHash>) {
    assert_eq!(call.agent_id.as_ref().unwrap().as_str(), sent["agent_id"]);
    assert_eq!(call.policy_hash.unwrap().to_string(), sent["policy_hash"]);
    assert_eq!(call.state_snapshot_id.unwrap().to_string(), sent["state_snapshot_id"]);
    assert_eq!(call.capability_token_id.unwrap().to_string(), sent["capability_token_id"]);
    assert_eq!(call.tool_id.as_ref().unwrap().as_str(), sent["tool_id"]);
    assert!(call.args_hash.is_some());
    assert_eq!(call.result_hash, result_hash);
    let provenance = call.provenance.as_ref().unwrap();
    assert_eq!((provenance.source, provenance.trace.as_deref()), (Source::Agent, Some("turn-1")));
}

fn at(log: &[Record], seq: Seq) -> &Record {
    &log[usize::try_from(seq.get()).unwrap()]
}

#[test]
fn each_tools_envelope_goes_in_and_its_result_comes_out() {
    for row in &ROWS {
        let world = World::new();
        let token = world.rt.issue((row.grant)(Grant::to("a").tools([row.tool, "echo"]))).unwrap();
        let session = world.rt.session("a", token).unwrap();
        (row.before)(&world);
        let sent = envelope(&world, row, &session);
        let answer = session.envelope(sent.to_string().as_bytes(), Written::Json).wait().unwrap();
        (row.after)(&world, &expect_result(&answer, &sent));
        let receipt = answer.receipt().clone();
        drop(session);
        end(&world.rt, &world.home);
        let log = records(&world.home);
        let Body::Intent(intent) = &at(&log, receipt.intent.unwrap().0).body else { panic!() };
        expect_record(&intent.call, &sent, None);
        let Body::Outcome(outcome) = &at(&log, receipt.outcome_seq).body else { panic!() };
        expect_record(&outcome.call, &sent, Some(answer.result_hash()));
    }
}

/// Each of the seven is authority or attribution, not decoration: with a wrong one nothing is done.
#[test]
fn an_envelope_with_a_field_of_another_does_nothing() {
    for row in &ROWS {
        let world = World::new();
        let grant = || (row.grant)(Grant::to("a").tools([row.tool, "echo"]));
        let token = world.rt.issue(grant()).unwrap();
        let other = world.rt.issue(grant()).unwrap();
        let session = world.rt.session("a", token).unwrap();
        (row.before)(&world);
        let right = envelope(&world, row, &session);
        let zeros = "0".repeat(64);
        for (field, value, reason) in [
            ("tool_id", json!("fs.none"), Reason::UnknownTool),
            ("agent_id", json!("b"), Reason::NotBound),
            ("capability_token_id", json!(other.to_string()), Reason::NotBound),
            ("state_snapshot_id", json!(zeros), Reason::UnknownSnapshot),
            ("policy_hash", json!(zeros), Reason::PolicyMismatch),
            ("provenance", json!({"source": "root"}), Reason::BadField),
            ("args", json!({"path": "a.txt", "bcc": "x"}), Reason::UnknownArgument),
        ] {
            let mut sent = right.clone();
            sent[field] = value;
            let answer =
                session.envelope(sent.to_string().as_bytes(), Written::Json).wait().unwrap();
            assert_eq!(answer.reason(), Some(reason), "{} {field}", row.tool);
            assert!(answer.receipt().intent.is_none(), "{} {field}", row.tool);
        }
    }
}
