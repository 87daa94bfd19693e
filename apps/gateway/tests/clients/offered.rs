//! The Python SDK, and an operator beside it: what is offered appears without a new start.

use serde_json::json;

use crate::{
    files,
    home::{Home, said},
    parts::Parts,
};

/// A list that lacks a tool names the command that grants it; a shell runs that as it stands, the
/// client is told, and the tool is there.
#[test]
fn a_tool_that_is_missing_is_there_after_the_command_that_is_named() {
    let Some(parts) = Parts::find() else { return };
    let home = Home::new(parts);
    let server = files::docs(&home);
    home.meet(&server);
    home.issue("worker", &["docs.list_allowed_directories"], None);
    let line = home.gateway("worker", None, &server);
    let syscap = parts.syscap.to_str().unwrap();
    let steps = [
        json!({"do": "follow", "syscap": syscap}).to_string(),
        json!({"do": "call", "name": "list_directory", "args": {"path": home.path("docs")}})
            .to_string(),
    ];
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let answers = home.drive("legacy", &line, &steps);
    let followed = &answers[0];
    assert_eq!(followed["before"], json!(["list_allowed_directories"]));
    let after = followed["after"].as_array().unwrap();
    assert!(after.contains(&json!("list_directory")), "{followed}");
    assert_eq!(followed["told"]["in_all"].as_u64().unwrap() + 1, after.len() as u64);
    assert!(followed["meta"].get("dev.syscap/missing").is_none(), "{followed}");
    assert_ne!(answers[1]["isError"], true, "{}", said(&answers[1]));
    home.verify();
}
