//! The Python SDK, on both wires, in front of the filesystem server.

use serde_json::{Value, json};

use crate::clients::home::{Home, Server, is_file, refused, said};
use crate::clients::parts::{Parts, text};

/// The filesystem server on the test's documents, with what its operator says of it.
pub(crate) fn docs(home: &Home) -> Server {
    Server {
        name: "docs",
        command: home.parts.server_filesystem(&home.path("docs")),
        options: &["--class", "read=read_*,list_*", "--class", "local_write=write_file"],
    }
}

/// The names in an answer to `tools`.
fn names(answer: &Value) -> Vec<&str> {
    answer["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn through(mode: &str, revision: &str) {
    let Some(parts) = Parts::find() else { return };
    let home = Home::new(parts);
    home.write("docs/notes.txt", "The code is 4711.");
    home.write("secret.txt", "outside");
    let server = docs(&home);
    home.meet(&server);
    let granted = ["docs.list_directory", "docs.read_text_file", "docs.write_file"];
    let token = home.issue("reader", &granted, None);

    let notes = text(&home.path("docs/notes.txt"));
    let call =
        |name: &str, args: Value| json!({ "do": "call", "name": name, "args": args }).to_string();
    let moved = json!({ "source": notes, "destination": text(&home.path("docs/moved.txt")) });
    let written = json!({ "path": text(&home.path("docs/new.txt")), "content": "written" });
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let meta = json!({ "traceparent": trace });
    let traced = json!({ "do": "call", "name": "read_text_file", "args": { "path": notes },
        "meta": meta })
    .to_string();
    let steps = [
        r#"{"do":"about"}"#,
        r#"{"do":"tools"}"#,
        &call("read_text_file", json!({ "path": notes })),
        &call("write_file", written),
        &call("move_file", moved),
        &call("format_disk", json!({})),
        &call("read_text_file", json!({ "path": text(&home.path("secret.txt")) })),
        &call("read_text_file", json!({ "path": 7 })),
        &call("read_text_file", json!({})),
        &traced,
        &call("list_directory", json!({ "path": text(&home.path("docs")) })),
    ];
    let answers = home.drive(mode, &home.gateway("reader", Some(&token), &server), &steps);
    let [about, tools, read, wrote, moved, unknown, outside, odd, less, again, listed] =
        answers.as_slice()
    else {
        panic!("{answers:?}")
    };
    assert_eq!(about["protocol"], revision);
    assert_eq!(names(tools), ["list_directory", "read_text_file", "write_file"], "in order");
    assert_eq!(said(read), "The code is 4711.");
    assert_eq!(read["structuredContent"]["content"], "The code is 4711.");
    assert_ne!(wrote["isError"], true, "{wrote}");
    assert_eq!(home.read("docs/new.txt").as_deref(), Some("written"));
    refused(&home, moved, "not_granted");
    assert!(is_file(&home.path("docs/notes.txt")) && !is_file(&home.path("docs/moved.txt")));
    refused(&home, unknown, "unknown_tool");
    // The server's own words, not the kernel's: it ran, and said no.
    assert_eq!(outside["isError"], true);
    assert!(outside["_meta"]["dev.syscap/refusal"].is_null() && !said(outside).contains("4711"));
    // What does not fit the tool's schema never reaches it.
    refused(&home, odd, "bad_argument");
    refused(&home, less, "missing_argument");
    assert_eq!(said(again), "The code is 4711.");
    assert!(said(listed).contains("new.txt"), "{listed}");

    let traces = home.records().iter().filter(|r| r["provenance"]["trace"] == trace).count();
    assert_eq!(traces, 2, "the call's intent and its outcome");
    assert_eq!(home.count("docs.read_text_file", "ok"), 2);
    let failed = home.records().iter().filter(|r| r["reason"] == "tool_failed").count();
    assert_eq!(failed, 1, "the server's own word is on record as one");
    assert_eq!(home.count("docs.write_file", "ok"), 1);
    assert_eq!(home.count("docs.move_file", "ok"), 0);
    home.verify();
}

#[test]
fn files_by_the_newest_revision() {
    through("auto", "2026-07-28");
}

#[test]
fn files_by_the_revision_before() {
    through("legacy", "2025-11-25");
}
