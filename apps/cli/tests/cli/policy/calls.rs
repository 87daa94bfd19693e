//! `policy explain`.

use serde_json::{Value, json};

use super::{tools, when};
use crate::cli::support::{ECHO, TestHome, run, run_with};

const CALL: &str = r#"{"call.tool":"fs.write","call.effect":"local_write","call.agent":"team/a"}"#;

fn explain(target: &str, given: &str) -> Value {
    run(["policy", "explain", target, "--given", given, "--json"]).fine().one()
}

#[test]
fn the_verdict_comes_with_what_led_to_it() {
    let home = TestHome::new();
    let own = tools(&[("fs.write", when("within", "args.path", "workspace/notes"))]);
    let own = home.file("own.json", &own);
    let at = |path: &str| {
        let mut call: Value = serde_json::from_str(CALL).unwrap();
        call["args.path"] = json!({"path": path});
        call.to_string()
    };
    let inside = explain(&own, &at("workspace/notes/a.txt"));
    assert_eq!(inside["decision"]["verdict"], "allow");
    assert_eq!(inside["decision"]["deciding"], "allow.fs.write");
    let one = &inside["constraints"][0];
    assert_eq!((&one["truth"], &one["matched"]), (&json!("true"), &json!(true)));
    assert_eq!(one["when"]["truth"], "true");
    let outside = explain(&own, &at("workspace/a.txt"));
    assert_eq!(outside["decision"]["verdict"], "deny");
    assert_eq!(outside["constraints"][0]["when"]["truth"], "false");
    let unknown = explain(&own, CALL);
    assert_eq!(unknown["decision"]["verdict"], "deny");
    assert_eq!(unknown["constraints"][0]["when"]["truth"], "unknown");
    let text = run(["policy", "explain", &own, "--given", &at("workspace/a.txt")]).fine().out;
    assert!(text.starts_with("deny by allow.fs.write\n"), "{text}");
    assert!(text.contains("args.path") && text.lines().count() > 2, "{text}");
}

#[test]
fn obligations_and_risk_are_said() {
    let risky = CALL.replacen('}', ",\"risk\":85}", 1);
    let json = explain("preset:standard", &risky);
    assert_eq!(json["decision"]["verdict"], "ask");
    assert_eq!(json["decision"]["deciding"], "risk.elevated");
    let elevated = json!([{"type": "approval", "level": "elevated"}]);
    assert_eq!(json["decision"]["obligations"], elevated);
    assert_eq!(explain("preset:standard", CALL)["decision"]["verdict"], "allow");
}

#[test]
fn a_call_is_read_from_wherever_it_stands() {
    let home = TestHome::new();
    let path = home.path();
    let said = run(["policy", "explain", &path, "--given", CALL]).fine().out;
    assert_eq!(run(["policy", "explain", &path, &home.file("call", CALL)]).fine().out, said);
    for args in [&["policy", "explain", &path, "-"][..], &["policy", "explain", &path]] {
        assert_eq!(run_with(args, CALL.as_bytes()).fine().out, said);
    }
    for bad in ["", "{", "[]", r#"{"call.agnet":"a"}"#, r#"{"args.path":{"path":"/x"}}"#] {
        run(["policy", "explain", &path, "--given", bad]).failed(1);
        run_with(["policy", "explain", &path], bad.as_bytes()).failed(1);
    }
    let line = run(["policy", "explain", &path, "--given", "{\"a\" 1}"]).failed(1).err;
    assert!(line.starts_with("syscap: --given: 1:6: "), "{line}");
    run(["policy", "explain", &path, &home.text_beside("missing")]).failed(1);
    let both = ["policy", "explain", &path, "call", "--given", CALL];
    assert_eq!(run(both).code, 2);
}

#[test]
fn replay_reports_recorded_verdicts_under_shadow() {
    let home = TestHome::new();
    let id = home.worker("a");
    let path = home.path();
    run(["policy", "set", &path, "preset:read-only", "--shadow"]).fine();
    let write = r#"{"tool_id":"fs.write","args":{"path":"x","text":"y"}}"#;
    home.call("a", &id, format!("{ECHO}\n{write}\nx\n").as_bytes());
    // What decided then, whatever is in force now.
    run(["policy", "set", &path, "preset:researcher"]).fine();
    let log = home.log();
    let of = |kind: &str, tool: Option<&str>| {
        let found = log.iter().find(|r| r["kind"] == kind && r["tool_id"] == json!(tool)).unwrap();
        found["seq"].to_string()
    };
    for kind in ["intent", "outcome"] {
        let record = of(kind, Some("fs.write"));
        let json = run(["policy", "explain", &path, "--record", &record, "--json"]).fine().one();
        assert_eq!((&json["agent"], &json["tool"]), (&json!("a"), &json!("fs.write")));
        assert_eq!(json["decision"]["deciding"], "local-write");
        assert_eq!(json["reasons"]["local-write"], "Writing inside the capability.");
        assert_eq!(json["shadow"]["decision"]["verdict"], "deny");
        let text = run(["policy", "explain", &path, "--record", &record]).fine().out;
        assert!(text.starts_with("allow by local-write\n"), "{text}");
        assert!(text.contains("Writing inside the capability."), "{text}");
    }
    // An allow that did not match decides too, and says why.
    let only = tools(&[("echo", when("eq", "call.agent", "b"))]);
    run(["policy", "set", &path, &home.file("only", &only)]).fine();
    home.call("a", &id, ECHO.as_bytes());
    let last = home.log().into_iter().rev().find(|r| r["kind"] == "refusal").unwrap();
    let record = last["seq"].to_string();
    let json = run(["policy", "explain", &path, "--record", &record, "--json"]).fine().one();
    let decision = &json["decision"];
    assert_eq!((&decision["matches"], &decision["deciding"]), (&json!([]), &json!("allow.echo")));
    assert_eq!(json["reasons"], json!({"allow.echo": "Because of allow.echo."}));
    let text = run(["policy", "explain", &path, "--record", &record]).fine().out;
    let line = "deciding allow.echo: Because of allow.echo.";
    assert!(text.lines().any(|shown| shown == line), "{text}");
    // No decision, no call, no record.
    for record in [&*of("refusal", None), "0", "9999", "18446744073709551615"] {
        run(["policy", "explain", &path, "--record", record]).failed(1);
    }
    run(["policy", "explain", &home.text_beside("nowhere"), "--record", "1"]).failed(4);
    assert_eq!(run(["policy", "explain", &path, "--record", "1", "--given", CALL]).code, 2);
}
