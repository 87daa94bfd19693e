//! Connectors, and the resume of an agent.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Console, gift_of};
use crate::cli::support::run;
use crate::cli::terminal;

/// A base URL, headers, methods and limits are an operator's record; a secret's value is typed at the
/// terminal, for the places that the record says.
#[test]
fn connector_is_set_by_the_person_and_its_secret_comes_to_no_page() {
    if !terminal::is_there() {
        return;
    }
    let mut console = Console::of(&[], None);
    let path = console.home.path();
    let settings = json!({
        "base_url": "https://desk.example.com/api", "timeout_ms": 1000, "title": "Kept",
        "secrets": [{ "secret": "desk", "header": "Authorization", "prefix": "Bearer " }],
    });
    let file = console.home.file("desk.json", &settings.to_string());
    assert_eq!(run(["http", "set", &path, "ticket", &file]).code, 0);
    let all = console.page.get("connectors").json();
    let names: Vec<&str> =
        all.as_array().unwrap().iter().map(|one| one["tool"].as_str().unwrap()).collect();
    assert!(names.contains(&"ticket") && names.contains(&"http_request"), "{names:?}");
    assert!(!names.contains(&"fs.write"), "{names:?}");
    let card = |console: &Console, tool: &str| {
        let shown = console.page.post("connector", &json!({ "tool": tool }));
        assert_eq!(shown.status, 200, "{}", shown.body);
        std::thread::sleep(Duration::from_millis(1_100));
        shown.json()
    };
    let shown = card(&console, "ticket");
    let secret = &shown["connector"]["secrets"][0];
    assert_eq!((&secret["is_set"], &secret["origins"]), (&json!(false), &json!([])));
    assert_eq!(secret["places"], json!(["https://desk.example.com/api"]));
    let records = console.of_kind("tools");
    // Nothing is asked of what can't be, or is so already.
    for (changes, why) in [
        (json!({ "agents": ["b"] }), "bad_field"),
        (json!({ "base_url": "ftp://x" }), "bad_field"),
        (json!({ "timeout_ms": 1000 }), "same"),
        (json!("x"), "bad_field"),
    ] {
        let card = card(&console, "ticket")["card"].clone();
        let said = console.page.post("connect", &json!({ "card": card, "changes": changes }));
        assert_eq!(said.json()["error"]["reason"], why, "{changes}: {}", said.body);
    }
    for (tool, why) in [("fs.write", "over"), ("a b", "bad_field")] {
        let said = console.page.post("connector", &json!({ "tool": tool }));
        assert_eq!(said.json()["error"]["reason"], why, "{tool}");
    }
    let said = console.page.post("secret", &json!({ "card": shown["card"], "name": "desk" }));
    assert_eq!(said.json()["error"]["reason"], "no_card", "another look has taken its place");
    // A change, and a new tool; what is not changed stays.
    let wish = |console: &mut Console, tool: &str, changes: Value, line: &str| {
        let card = card(console, tool)["card"].clone();
        std::thread::scope(|scope| {
            let (page, person) = (console.page.clone(), &mut console.person);
            let wish = json!({ "card": card, "changes": changes });
            let wished = scope.spawn(move || page.post("connect", &wish));
            person.sees(line).press(b"y").sees("done by record ");
            wished.join().unwrap()
        })
    };
    let changes = json!({ "base_url": "https://desk.example.com/v2", "timeout_ms": null,
        "default_headers": { "X-Team": "a" }, "allowed_methods": ["GET", "POST"] });
    let line = "set ticket (external_write): allowed_methods [\"GET\",\"POST\"], was none; base_url \
                \"https://desk.example.com/v2\", was \"https://desk.example.com/api\"";
    let set = wish(&mut console, "ticket", changes, line);
    assert_eq!(set.status, 200, "{}", set.body);
    let shown = card(&console, "ticket")["connector"]["settings"].clone();
    assert_eq!(
        (&shown["title"], &shown["timeout_ms"], &shown["anywhere"], &shown["default_headers"]),
        (&json!("Kept"), &Value::Null, &json!(false), &json!({ "X-Team": "a" }))
    );
    let fresh = json!({ "base_url": "https://new.example.com" });
    wish(&mut console, "newer", fresh, "set newer (external_");
    let said: Value =
        serde_json::from_str(&run(["http", "show", &path, "newer"]).fine().out).unwrap();
    assert_eq!(said, json!({ "base_url": "https://new.example.com", "anywhere": false }));
    assert_eq!(console.of_kind("tools"), records + 2);
    // The secret, for the place that is on record by now.
    let value = "not-for-any-page-1234";
    let secret = card(&console, "ticket")["card"].clone();
    let set = std::thread::scope(|scope| {
        let (page, person) = (console.page.clone(), &mut console.person);
        let wish = json!({ "card": secret, "name": "desk", "value": "never-taken-1234" });
        let wished = scope.spawn(move || page.post("secret", &wish));
        person
            .sees("set the secret desk, which is sent to https://desk.example.com/v2")
            .press(b"y");
        person.sees("Value of desk: ").types(value);
        wished.join().unwrap()
    });
    assert_eq!(set.status, 200, "{}", set.body);
    let listed = run(["secret", "list", &path]).fine().out;
    assert!(listed.contains("desk") && listed.contains("https://desk.example.com/v2"), "{listed}");
    let shown = console.page.post("connector", &json!({ "tool": "ticket" })).body;
    assert!(shown.contains("\"is_set\":true"), "{shown}");
    for body in [&shown, &set.body, &console.page.get("connectors").body] {
        assert!(!body.contains(value), "{body}");
    }
    // What somebody else has set meanwhile is not what was shown.
    let old = card(&console, "ticket")["card"].clone();
    assert_eq!(run(["http", "set", &path, "ticket", &file]).code, 0);
    let wish = json!({ "card": old, "changes": { "timeout_ms": 5 } });
    assert_eq!(console.page.post("connect", &wish).json()["error"]["reason"], "changed");
    console.ends();
}

/// What the page changes is written into the agent's own resume, and every other byte stays; one that
/// can't be read is shown with its fault, and left alone.
#[test]
fn resume_follows_what_the_page_changes() {
    if !terminal::is_there() {
        return;
    }
    let resume = r#"{ "name": "w",  "unknown" : [1e400, "kept"],
  "permissions": { "tools": ["file_read", "file_write", "no_such"],
    "file_access": { "allow_read": ["shared"], "allow_write": ["agents/w/workspace"], "x": {} } } }
"#;
    let mut console = Console::of(&[], None);
    let files = ["--tool", "fs.read,fs.write", "--read", "shared", "--write", "workspace"];
    console.home.token("w", &files);
    let own = console.home.workspace("w").with_file_name("resume.json");
    std::fs::create_dir_all(own.parent().unwrap()).unwrap();
    std::fs::write(&own, resume).unwrap();
    let read = || std::fs::read_to_string(&own).unwrap();
    let taken = console.page.post("narrow", &json!({ "agent": "w", "tool": "fs.read" }));
    assert!(taken.json()["said"].as_str().unwrap().contains("written"), "{}", taken.body);
    let less = resume.replace("\"file_read\", \"file_write\"", "\"file_write\"");
    assert_eq!(read(), less);
    let card = gift_of(&console, "w", "fs.read");
    let given = std::thread::scope(|scope| {
        let (page, person) = (console.page.clone(), &mut console.person);
        let wished = scope.spawn(move || page.post("give", &json!({ "card": card })));
        person.sees("give w fs.read (read): path ").press(b"y").sees("done by record ");
        wished.join().unwrap()
    });
    assert!(given.json()["said"].as_str().unwrap().contains("written"), "{}", given.body);
    assert_eq!(read(), less.replace("\"no_such\"", "\"no_such\", \"file_read\""));
    let of = |console: &Console| {
        let agents = console.page.get("agents").json();
        agents.as_array().unwrap().iter().find(|one| one["agent"] == "w").unwrap()["resume"].clone()
    };
    assert_eq!(of(&console)["warning"], Value::Null);
    // Doubled keys, a missing section, too deep, a link: shown, and not touched.
    let deep = format!(r#"{{"name": "w", "permissions": {}"#, "[".repeat(10_000));
    for broken in ["{\"name\": \"w\", \"name\": \"w\"}", "{\"name\": \"w\"}", &deep] {
        std::fs::write(&own, broken).unwrap();
        assert!(of(&console)["warning"].is_string(), "{broken}");
        let paths = json!({ "agent": "w", "keep": ["workspace"] });
        let said = console.page.post("paths", &paths).json()["said"].clone();
        assert!(said.as_str().unwrap().contains("left as it is"), "{said}");
        assert_eq!(read(), broken);
    }
    let outside = console.home.file("outside.json", resume);
    std::fs::remove_file(&own).unwrap();
    std::os::unix::fs::symlink(&outside, &own).unwrap();
    assert!(of(&console)["warning"].as_str().unwrap().contains("link"), "{}", of(&console));
    console.page.post("narrow", &json!({ "agent": "w", "tool": "fs.write" }));
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), resume);
    console.ends();
}
