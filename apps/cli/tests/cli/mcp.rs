//! `syscap mcp`: what is said on the command line reaches the servers that it is for.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::cli::support::{TestHome, run, run_with, syscap};

fn begin(mut command: Command) {
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "{initialize}").unwrap();
    child.wait().unwrap();
}

/// Each server finds what is listed for it: as it is here, or as it is said.
#[test]
fn a_servers_environment_is_listed_by_its_name() {
    let home = TestHome::new();
    let folder = home.beside("env");
    fs::create_dir(&folder).unwrap();
    let server = |name: &str| format!("{name}=/bin/sh -c 'env > {}/{name}'", folder.display());
    let own = format!("env > {}/own", folder.display());
    let mut command = syscap();
    command.args(["mcp", &home.path(), "--agent", "a", "--name", "own"]);
    command.args(["--server", &server("one"), "--server", &server("two")]);
    command.args(["--env", "FOR_OWN", "--env", "one:FOR_ONE", "--env", "two:FOR_TWO=said=so"]);
    command.args(["--", "/bin/sh", "-c", &own]);
    command.envs([("FOR_OWN", "1"), ("FOR_ONE", "2"), ("FOR_TWO", "3"), ("FOR_NOBODY", "4")]);
    begin(command);
    for (name, expected) in [("own", "FOR_OWN=1"), ("one", "FOR_ONE=2"), ("two", "FOR_TWO=said=so")]
    {
        let env = fs::read_to_string(folder.join(name)).unwrap();
        let own: Vec<&str> = env.lines().filter(|line| line.starts_with("FOR_")).collect();
        assert_eq!(own, [expected], "{name}");
    }
}

/// What is for nobody is an error of usage.
#[test]
fn an_environment_is_for_a_server_that_there_is() {
    let home = TestHome::new();
    for env in ["other:NAME", "NAME", ":NAME", "one:", "=x", "one:=x"] {
        let words = ["mcp", &home.path(), "--agent", "a", "--server", "one=/bin/true"];
        assert_eq!(run(words.into_iter().chain(["--env", env])).code, 2, "{env}");
    }
}

/// Each client's own form, with whole paths.
#[test]
fn each_client_has_its_own_form() {
    let home = TestHome::new();
    for (client, key, typed) in [
        ("claude-code", "mcpServers", true),
        ("claude-desktop", "mcpServers", false),
        ("cursor", "mcpServers", false),
        ("vscode", "servers", true),
        ("gemini", "mcpServers", false),
    ] {
        let config = |flags: &[&str]| {
            let words = ["mcp", &home.path(), "--agent", "a", "--name", "own", "--print-config"];
            let shown = run([&words[..], flags, &["--", "server", "./docs"]].concat());
            assert_eq!(shown.code, 0, "{}", shown.err);
            serde_json::from_str::<serde_json::Value>(&shown.out).unwrap()
        };
        let shown = config(&["--client", client]);
        assert_eq!(shown.as_object().unwrap().len(), 1);
        let server = &shown[key]["own"];
        assert_eq!(server.get("type").is_some_and(|kind| kind == "stdio"), typed, "{client}");
        let plain = config(&[]);
        let plain = &plain["mcpServers"]["own"];
        assert_eq!((&server["command"], &server["args"]), (&plain["command"], &plain["args"]));
        let args = server["args"].as_array().unwrap();
        assert!(server["command"].as_str().unwrap().starts_with('/'));
        assert!(args.iter().all(|arg| arg != "--client" && arg != "--print-config"));
        assert!(args.last().unwrap().as_str().unwrap().starts_with('/'), "{args:?}");
    }
    let words = ["mcp", &home.path(), "--agent", "a", "--client", "vscode", "--", "x"];
    assert_eq!(run(words).code, 2);
}

/// What a server may ask is said of one that there is, and by its name.
#[test]
fn allow_flag_is_checked_against_known_requests() {
    let home = TestHome::new();
    let config = |more: &[&str]| {
        let words = ["mcp", &home.path(), "--agent", "a", "--print-config"];
        run([&words, more, &["--server", "one=x", "--", "x"]].concat())
    };
    for fine in ["roots", "elicitation,sampling", "one:sampling,roots"] {
        assert_eq!(config(&["--allow", fine]).code, 0, "{fine}");
    }
    for wrong in ["root", "two:roots", "one:", "", "roots,"] {
        assert_eq!(config(&["--allow", wrong]).code, 2, "{wrong}");
    }
    assert_eq!(config(&["--approval-wait", "0s"]).code, 0);
    assert_eq!(config(&["--approval-wait", "soon"]).code, 2);
}

/// A budget that is not applied is not passed over in silence; one that is issued by it is.
#[test]
fn a_budget_that_changes_nothing_is_said() {
    let home = TestHome::new();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    let path = home.path();
    let said = |budget: &str| {
        let words = ["mcp", &path, "--agent", "a", "--builtins", "--budget", budget];
        run_with(words, format!("{initialize}\n").as_bytes()).err
    };
    // Issued by it, and started once more as its client does.
    for _ in 0..2 {
        assert!(!said("calls=3").contains("--budget changes nothing"));
    }
    let token = run(["token", "list", &path, "--json"]).fine().one()["token_id"].clone();
    let second = said("calls=4");
    assert!(second.contains("--budget changes nothing"), "{second}");
    assert!(second.contains(token.as_str().unwrap()) && second.contains("calls=4"), "{second}");
}
