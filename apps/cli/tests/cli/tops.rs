//! `top`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::cli::support::{ECHO, Serving, TestHome, is_hash, run, syscap};

fn seen(home: &TestHome) -> Value {
    run(["top", &home.path(), "--once", "--json"]).fine().one()
}

#[test]
fn top_shows_the_servers_figures() {
    let home = TestHome::new();
    let id = home.token("a", &["--tool", "echo,fs.write", "--budget", "calls=5"]);
    let mut holder = home.hold("a", &id);
    holder.ask(ECHO);
    holder.ask(r#"{"tool_id":"fs.read","args":{"path":"x"}}"#);
    let seen = seen(&home);
    assert_eq!((&seen["holder"], &seen["preset"]), (&json!("serves"), &json!("standard")));
    assert!(is_hash(&seen["home_id"]) && is_hash(&seen["policy"]));
    assert_eq!(seen["recording"], false);
    let counts = &seen["counts"];
    assert_eq!((&counts["calls"], &counts["allowed"]), (&json!(2), &json!(1)));
    assert_eq!(counts["refused"], json!({"not_granted": 1}));
    // It counts itself.
    assert_eq!(counts["attached"], 2);
    assert_eq!(seen["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(seen["sessions"][0]["label"], "trusted public");
    let token = &seen["tokens"][0];
    assert_eq!((&token["token_id"], &token["live"]), (&json!(id), &json!(true)));
    assert_eq!((&token["used"]["calls"], &token["limits"]["calls"]), (&json!(2), &json!(5)));
    let standings = seen["tools"].as_array().unwrap();
    assert!(standings.len() > 3 && standings.iter().all(|tool| tool["standing"] == "built_in"));
    assert_eq!(run(["freeze", &home.path(), "--agent", "b"]).code, 0);
    let frozen = json!([{"target": "agent", "name": "b"}]);
    assert_eq!(self::seen(&home)["frozen"], frozen);
    let text = run(["top", &home.path(), "--once"]).fine().out;
    for word in ["not_granted", "calls 2/5", "FROZEN", "running 0", "standard"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert_eq!(holder.end(), 0);
}

/// Where nobody holds the home, the log says what it can.
#[test]
fn without_a_holder_the_log_is_shown() {
    let home = TestHome::new();
    let id = home.worker("a");
    let input = format!("{ECHO}\n{ECHO}\nnonsense\n{{\"tool_id\":\"nope\",\"args\":{{}}}}");
    home.call("a", &id, input.as_bytes());
    let seen = seen(&home);
    assert_eq!(seen["holder"], "nobody");
    let counts = &seen["counts"];
    assert_eq!((&counts["calls"], &counts["allowed"]), (&json!(4), &json!(2)));
    assert_eq!(counts["refused"].as_object().unwrap().len(), 2);
    assert_eq!(seen["tokens"][0]["used"]["calls"], 4);
    assert_eq!(seen["head_seq"], home.log().last().unwrap()["seq"]);
    let text = run(["top", &home.path(), "--once"]).fine().out;
    assert!(text.contains("no process holds it"), "{text}");
    assert!(!text.contains('\u{1b}'));
    // Nothing was written, and nobody was let in.
    assert_eq!(seen["head_seq"], self::seen(&home)["head_seq"]);
    // Each run is counted by itself.
    home.call("a", &id, ECHO.as_bytes());
    let counts = &self::seen(&home)["counts"];
    assert_eq!((&counts["calls"], &counts["refused"]), (&json!(1), &json!({})));
    assert_eq!(home.verify(), 0);
}

/// It goes on when holders come and go.
#[test]
fn top_json_repeats_while_servers_come_and_go() {
    let home = TestHome::new();
    let mut command = syscap();
    command.args(["top", &home.path(), "--json"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut expect = |holder: &str| {
        let mut next =
            || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
        let found = (0..20).any(|_| next()["holder"] == *holder);
        assert!(found, "{holder}");
    };
    expect("nobody");
    let serving = Serving::of(&home.path(), &[]);
    expect("serves");
    serving.stop();
    expect("nobody");
    let mut serving = Serving::of(&home.path(), &[]);
    expect("serves");
    serving.child.kill().unwrap();
    serving.child.wait().unwrap();
    expect("nobody");
    child.kill().unwrap();
    child.wait().unwrap();
}
