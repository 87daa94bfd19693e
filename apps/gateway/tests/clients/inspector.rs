//! The Inspector's command line, with a configuration file as clients have it.

use serde_json::{Value, json};

use crate::clients::home::{Home, Server, refused};
use crate::clients::parts::{Parts, Ran, run, text};

fn inspect(home: &Home, line: &[String], args: &[&str]) -> Ran {
    let config = json!({ "mcpServers": { "it": { "command": line[0], "args": &line[1..] } } });
    home.write("mcp.json", &config.to_string());
    let mut command = home.parts.program(&home.user(), &home.parts.node());
    command.args([&home.parts.inspector(), "--cli", "--config", &text(&home.path("mcp.json"))]);
    command.args(["--server", "it", "--method"]).args(args);
    run(command, "")
}

fn json_of(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}\n{}", ran.out, ran.err))
}

#[test]
fn the_inspector_lists_calls_and_shows_refusals() {
    let Some(parts) = Parts::find() else { return };
    let home = Home::new(parts);
    let server = Server {
        name: "fixture",
        command: parts.server_fixture(&home.outbox()),
        options: &["--class", "pure=add,echo"],
    };
    home.meet(&server);
    let token = home.issue("i", &["fixture.add", "fixture.send_email"], Some("calls=3"));
    let line = home.gateway("i", Some(&token), &server);

    let listed = json_of(&inspect(&home, &line, &["tools/list"]));
    let names: Vec<&Value> =
        listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["add", "send_email"]);
    assert!(listed["tools"][0]["outputSchema"].is_object(), "{listed}");

    let add = ["tools/call", "--tool-name", "add", "--tool-arg", "a=40", "b=2"];
    let added = json_of(&inspect(&home, &line, &add));
    assert_eq!(added["structuredContent"]["sum"], 42);

    // Asked about: it waits, and is shown as the tool's own error meanwhile.
    let mail =
        ["tools/call", "--tool-name", "send_email", "--tool-arg", "to=eve@evil.example", "body=x"];
    let sent = inspect(&home, &line, &mail);
    refused(&home, &json_of(&sent), "asked");
    assert!(sent.err.contains("tool_is_error"), "{}", sent.err);
    assert_eq!(home.read("outbox"), None);

    // The same of a tool that declares an output schema.
    for _ in 0..2 {
        let ran = inspect(&home, &line, &add);
        if json_of(&ran)["isError"] == true {
            refused(&home, &json_of(&ran), "over_budget");
            assert!(ran.err.contains("tool_is_error"), "{}", ran.err);
        }
    }
    assert_eq!(home.count("fixture.add", "over_budget"), 1);
    assert_eq!(home.count("fixture.send_email", "asked"), 1);
    home.verify();
}
