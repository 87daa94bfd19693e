//! Approvals that the person has allowed at clicks.

use serde_json::{Value, json};

use super::{Console, FINDS};
use crate::cli::approvals::{POLICY, ask};
use crate::cli::terminal::{self, Person};
use crate::cli::tooling::offer;

/// So many approvals as the person has allowed are given by clicks, of what is minor; all else is asked.
#[test]
fn clicks_approve_what_the_person_allowed_beforehand() {
    if !terminal::is_there() {
        return;
    }
    let mut console = Console::of(&["--by-page", "2"], Some("secret"));
    let path = console.home.path();
    let settings = json!({ "base_url": "http://localhost:1", "allowed_methods": ["POST"] });
    let file = console.home.file("post.json", &settings.to_string());
    let mut person = Person::runs(["http", "set", &path, "post", &file]);
    person.sees("Enter passphrase for the operator key: ").types("secret");
    assert_eq!(person.end().code, Some(0));
    let offering = offer(&console.home, "Finds notes.");
    let mut person = Person::runs(["tools", "accept", &path, "notes.find"]);
    person.sees("Accept notes.find as shown? y, n: ").types("y");
    person.sees("Enter passphrase for the operator key: ").types("secret");
    assert_eq!(person.end().code, Some(0));
    let posts = r#"{"id": "posts", "effect": "allow", "subject": {"tool_id": "post"},
        "when": {"op": "eq", "args": ["args.method", ""]}, "on_fail": "ask", "reason": "x"}, {"id""#;
    let policy = POLICY.replacen("{\"id\"", posts, 1);
    let policy = policy.replacen("{\"id\"", FINDS, 1);
    let policy = console.home.file("all.json", &policy);
    let mut person = Person::runs(["policy", "set", &path, &policy]);
    person.sees("Enter passphrase for the policy key: ").types("secret");
    assert_eq!(person.end().code, Some(0));
    // Before `p` there are none.
    let (first, second) = (console.waits("a.txt"), console.waits("b.txt"));
    let card = console.card(first);
    let once = |card: &Value| json!({ "card": card, "answer": "once" });
    let declined = std::thread::scope(|scope| {
        let (page, person) = (console.page.clone(), &mut console.person);
        let wished = scope.spawn(move || page.post("answer", &once(&card)));
        person.sees(&format!("approve once {first}: ")).press(b"n");
        wished.join().unwrap()
    });
    assert_eq!(declined.json()["error"]["reason"], "declined");
    console.person.press(b"p").sees("Enter passphrase for the approver key: ").types("secret");
    console.person.sees("2 approvals of one call are given at a click");
    let card = console.card(first);
    let given = console.page.post("answer", &once(&card));
    assert_eq!(given.status, 200, "{}", given.body);
    console.person.sees(&format!("approved {first} at a click, by record ")).sees("; 1 more");
    assert_eq!(console.call("a.txt")["status"], "ok");
    let approval = console.home.log().into_iter().find(|it| it["kind"] == "approval").unwrap();
    assert_eq!(approval["channel"], "command", "a click is no terminal: {approval}");
    // More than one call, what can't be undone, and what sends a stranger's words outside are asked.
    let card = console.card(second);
    let more = json!({ "card": card, "answer": "more", "uses": 2, "minutes": 5 });
    asked_instead(&mut console, "more", &more, "approve 2 calls");
    let reach = ["host=localhost", "address=127.0.0.1", "port=1", "scheme=http"];
    let reach = reach.iter().flat_map(|scope| ["--scope", scope]);
    let flags: Vec<&str> = ["--tool", "notes.find,post"].into_iter().chain(reach).collect();
    let reader = console.home.token("r", &flags);
    let calls = r#"{"tool_id": "notes.find", "args": {"word": "x"}}
{"tool_id": "post", "args": {"path": "/x", "method": "POST"}}"#;
    let called = console.home.call("r", &reader, calls.as_bytes());
    let sends: u64 = ask(&called[1]).parse().unwrap();
    let wish = once(&console.card(sends));
    asked_instead(&mut console, "once", &wish, &format!("approve once {sends}: UNTRUSTED"));
    // The last one of them, and then all are asked again.
    let card = console.card(second);
    assert_eq!(console.page.post("answer", &once(&card)).status, 200);
    console.person.sees("; 0 more");
    let third = console.waits("c.txt");
    let wish = once(&console.card(third));
    asked_instead(&mut console, "once", &wish, &format!("approve once {third}: "));
    offering.close().unwrap();
    console.ends();
}

/// A wish that is asked about at the terminal, where the answer is no.
fn asked_instead(console: &mut Console, what: &str, wish: &Value, line: &str) {
    let said = std::thread::scope(|scope| {
        let (page, person) = (console.page.clone(), &mut console.person);
        let wished = scope.spawn(move || page.post("answer", wish));
        person.sees(line).press(b"n");
        wished.join().unwrap()
    });
    assert_eq!(said.json()["error"]["reason"], "declined", "{what}");
}
