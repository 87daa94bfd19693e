//! The Python SDK, and an operator beside it: what is offered appears without a new start.

use serde_json::json;

use crate::clients::files;
use crate::clients::home::{Home, said};
use crate::clients::parts::{Parts, text};

/// Standard error has the command that shows what would grant what a list lacks. Without its last
/// word a shell runs it, the client is told, and the tool is there. The list has no command.
#[test]
fn missing_tool_is_there_after_the_printed_command() {
    let Some(parts) = Parts::find() else { return };
    let home = Home::new(parts);
    let server = files::docs(&home);
    home.meet(&server);
    home.issue("worker", &["docs.list_allowed_directories"], None);
    let stderr = home.path("stderr");
    let mut line: Vec<String> = ["sh", "-c", r#"exec "$@" 2>>"$0""#].map(String::from).into();
    line.push(text(&stderr));
    line.extend(home.gateway("worker", None, &server));
    let syscap = parts.syscap.to_str().unwrap();
    let steps = [
        json!({"do": "follow", "syscap": syscap, "stderr": text(&stderr)}).to_string(),
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
    assert!(!followed["told"].to_string().contains("syscap "), "{followed}");
    assert!(followed["meta"].get("dev.syscap/missing").is_none(), "{followed}");
    assert_ne!(answers[1]["isError"], true, "{}", said(&answers[1]));
    home.verify();
}
