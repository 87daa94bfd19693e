//! Servers that say that their tool failed: the client gets their own words through the gateway, and
//! the log says that it was no success.

use serde_json::{Value, json};

use crate::clients::home::{Home, Server};
use crate::clients::parts::{Parts, text};

#[test]
fn failing_server_is_heard_as_without_the_gateway() {
    let Some(parts) = Parts::find() else { return };
    let home = Home::new(parts);
    home.write("docs/notes.txt", "The code is 4711.");
    let folder = text(&home.path("docs"));
    let files = parts.server_filesystem(&home.path("docs"));
    // None of them finds what it is asked for: no file, no repository, nobody at that port.
    let cases = [
        ("docs", files, "read_text_file", json!({ "path": format!("{folder}/none.txt") })),
        (
            "git",
            parts.server_python("mcp_server_git"),
            "git_status",
            json!({ "repo_path": folder }),
        ),
        (
            "web",
            parts.server_python("mcp_server_fetch"),
            "fetch",
            json!({ "url": "http://127.0.0.1:1/" }),
        ),
    ];
    for (name, command, tool, args) in cases {
        let server = Server { name, command, options: &["--class", "read=*"] };
        let step = json!({ "do": "call", "name": tool, "args": args }).to_string();
        home.meet(&server);
        let direct = home.drive("auto", &server.command, &[&step]);
        let token = home.issue("a", &[&format!("{name}.{tool}")], None);
        let through = home.drive("auto", &home.gateway("a", Some(&token), &server), &[&step]);
        assert_eq!(direct[0]["isError"], true, "{name} {direct:?}");
        let [mut through, direct] = [through, direct].map(|mut answers| answers.remove(0));
        let said = taken(&mut through);
        assert_eq!(said["reason"], "tool_failed", "{name} {through}");
        assert_eq!(through, direct, "{name}");
        let tool = format!("{name}.{tool}");
        assert_eq!((home.count(&tool, "tool_failed"), home.count(&tool, "ok")), (1, 0), "{name}");
    }
    home.verify();
}

/// What the gateway put beside the server's own answer.
fn taken(answer: &mut Value) -> Value {
    let all = answer.as_object_mut().unwrap();
    let meta = all["_meta"].as_object_mut().unwrap();
    let said = meta.remove("dev.syscap/failure").unwrap();
    meta.retain(|name, _| !name.starts_with("dev.syscap/"));
    if meta.is_empty() {
        all.remove("_meta");
    }
    said
}
