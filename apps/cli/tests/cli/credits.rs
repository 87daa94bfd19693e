//! `credits`.

use serde_json::json;

use crate::cli::support::{ECHO, Serving, TestHome, reason, run};

fn add(home: &TestHome, agent: &str, amount: &str) -> serde_json::Value {
    let added = run(["credits", "add", &home.path(), agent, amount, "--json"]);
    assert_eq!(added.code, 0, "{}", added.err);
    added.one()
}

fn show(home: &TestHome, flags: &[&str]) -> Vec<serde_json::Value> {
    let home = home.path();
    run([&["credits", "show", &home, "--json"], flags].concat()).fine().json()
}

fn echo(home: &TestHome, token: &str) -> serde_json::Value {
    home.call("team/a", token, ECHO.as_bytes()).remove(0)
}

#[test]
fn an_agent_needs_what_it_was_given() {
    let home = TestHome::new();
    let token = home.token("team/a", &["--tool", "echo"]);
    assert_eq!(show(&home, &[]), [json!(null); 0]);
    assert_eq!(echo(&home, &token)["status"], "ok");
    // An empty account stops its agent and all below it; what is added lets them go on.
    let opened = add(&home, "team", "0");
    let refused = echo(&home, &token);
    assert_eq!(reason(&refused), "exhausted");
    assert_eq!(refused["error"]["field"], "credits of team");
    let added = add(&home, "team", "0.25");
    assert_eq!((&added["agent"], &added["added_micro"]), (&json!("team"), &json!(250_000)));
    assert_eq!(echo(&home, &token)["status"], "ok");
    let account = json!({"agent": "team", "granted_micro": 250_000, "used_micro": 0,
        "held_micro": 0, "left_micro": 250_000});
    assert_eq!(show(&home, &["--agent", "team/a"])[0], account);
    assert_eq!(show(&home, &["--agent", "other"]), [json!(null); 0]);
    add(&home, "other", "18446744073709.551615");
    let doubted = |agent| run(["credits", "add", &home.path(), agent, "0"]).err;
    assert!(doubted("team").is_empty() && doubted("other").contains("other"));
    assert_eq!(show(&home, &[])[1], account);
    let text = run(["credits", "show", &home.path()]).fine().out;
    assert!(text.contains("given 0.25  used 0  held 0  left 0.25"), "{text}");
    let log = home.log();
    let record = &log[usize::try_from(opened["record"].as_u64().unwrap()).unwrap()];
    assert_eq!(
        (&record["kind"], &record["control"]["says"]["agent"]),
        (&json!("credit"), &json!("team"))
    );
    // More than fits into an account is refused, and what is no number of credits.
    run(["credits", "add", &home.path(), "other", "0.000001"]).failed(3);
    for bad in ["-1", "1e3", "0.0000001"] {
        assert_eq!(run(["credits", "add", &home.path(), "--", "team", bad]).code, 2);
    }
    assert_eq!(home.verify(), 0);
}

#[test]
fn a_holder_may_be_there() {
    let home = TestHome::new();
    let holder = Serving::of(&home.path(), &[]);
    add(&home, "a", "2");
    add(&home, "a", "3");
    assert_eq!(show(&home, &[])[0]["granted_micro"], 5_000_000);
    holder.stop();
    assert_eq!(home.verify(), 0);
}
