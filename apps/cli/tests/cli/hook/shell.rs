//! Commands of a client's shell, of which nothing is known; and its own tools for files.

use serde_json::{Value, json};

use super::claude::denied;
use super::world::{Hooked, claude, with};
use crate::cli::support::{Run, run};

/// A use of the client's shell.
fn bash(id: &str, command: &str) -> Value {
    claude("PreToolUse", id, "Bash", json!({ "command": command, "description": "It does." }))
}

fn asks(ran: Run) {
    let said = denied(ran);
    assert!(said.contains("asked (403)"), "{said}");
}

/// Whatever a command is, it asks, as an external write that is marked unknown. What misled who read
/// commands, or ended it, is text like any other.
#[test]
fn every_command_asks() {
    let long = format!("echo {}", "x".repeat(300_000));
    for policy in ["preset:standard", "preset:coder"] {
        let hooked = Hooked::new("claude-code", &[]);
        hooked.go_by(policy);
        for (n, command) in [
            "ls",
            "cat README.md | head -n 1",
            "git status",
            "cargo test",
            "rm -rf lib; sh -c '\"\"<<$[  '",
            "git commit -m \"$(cat <<'EOF'\n( x\nEOF\n)\" && rm -rf /",
            "cd sub/.git && git status",
            "\u{0}\u{1b}[2J\u{202e}",
            &long,
        ]
        .into_iter()
        .enumerate()
        {
            asks(hooked.hook(&bash(&format!("{policy}{n}"), command)));
            let ask = hooked.last();
            assert_eq!(
                (&ask["kind"], &ask["call_effect"]),
                (&json!("ask"), &json!("external_write"))
            );
            let ask = ask["seq"].to_string();
            let shown = run(["approvals", "show", &hooked.home.path(), &ask, "--json"]).fine();
            let shown: Vec<Value> = shown.json();
            assert_eq!(shown[0]["resources"], json!(["does: unknown"]), "{command}");
        }
        hooked.end();
    }
}

/// An approval is for exactly these arguments in this folder, once, and never for more.
#[test]
fn a_command_is_approved_once_where_it_is() {
    let hooked = Hooked::new("claude-code", &[]);
    let home = hooked.home.path();
    asks(hooked.hook(&bash("t1", "git push")));
    let ask = hooked.last()["seq"].to_string();
    for more in [&["--uses", "2"][..], &["--uses", "2", "--for", "1h"]] {
        let args = [&["approvals", "approve", &home, &ask], more].concat();
        assert_eq!(run(args).code, 2, "{more:?}");
    }
    run(["approvals", "approve", &home, &ask]).fine();
    // Elsewhere, or with more to it, it is another call.
    asks(hooked.hook(&with(bash("t2", "git push"), "cwd", json!("/elsewhere"))));
    asks(hooked.hook(&bash("t3", "git push -f")));
    // What the model says of a command is no part of it.
    let words = json!({ "command": "git push", "description": "Push it." });
    assert_eq!(hooked.hook(&claude("PreToolUse", "t4", "Bash", words)).fine().out, "");
    assert_eq!(hooked.last()["kind"], "intent");
    let log = run(["log", "show", &home]).fine().out;
    // The folder is the client's word: the record has it, a line does not.
    assert!(log.contains(r#"claude_code:Bash(command: "git push") ->"#), "{log}");
    let whole = run(["log", "show", &home, &hooked.last()["seq"].to_string()]).fine().out;
    assert!(whole.contains("/tmp/project"), "{whole}");
    asks(hooked.hook(&bash("t5", "git push")));
    hooked.end();
}

/// Nobody but the client says where a command runs.
#[test]
fn a_place_is_no_argument_of_the_models() {
    let hooked = Hooked::new("claude-code", &[]);
    for place in [json!({ "folder": "/" }), json!(7)] {
        let input = json!({ "command": "ls", "place": place });
        hooked.changes_nothing(2, |hooked| hooked.hook(&claude("PreToolUse", "t1", "Bash", input)));
    }
    hooked.end();
}

/// Who says that commands do less than they may is told what that means.
#[test]
fn a_class_for_a_shell_is_for_every_command() {
    let shells = |class: &[&str]| {
        let hooked = Hooked::loose("claude-code", class);
        let looked = run(["doctor", &hooked.home.path(), "--json"]);
        let found: Vec<Value> = looked.json();
        found.iter().filter(|found| found["what"] == "shell").count()
    };
    assert_eq!((shells(&[]), shells(&["--class", "local_write=Bash"])), (0, 1));
}

/// Clients make uses together, and tell of some never.
#[test]
fn uses_that_are_out_do_not_stop_others() {
    let hooked = Hooked::new("claude-code", &[]);
    for n in 0..24 {
        let event = claude("PreToolUse", &format!("t{n}"), "Read", json!({ "file_path": "/a" }));
        assert_eq!(hooked.hook(&event).fine().out, "");
    }
    assert_eq!(hooked.of_kind("outcome").len(), 0);
    hooked.end();
}

/// Where as many calls wait as may, a further one says so.
#[test]
fn full_approval_queue_names_the_command_that_helps() {
    let hooked = Hooked::new("claude-code", &[]);
    for n in 0..32 {
        let said = denied(hooked.hook(&bash(&format!("t{n}"), &format!("frobnicate {n}"))));
        assert!(said.contains("approvals approve"), "{said}");
    }
    let refused = hooked.hook(&bash("t32", "frobnicate x"));
    assert!(refused.err.contains("syscap approvals list "), "{}", refused.err);
    assert!(denied(refused).contains("nobody was asked"));
    hooked.end();
}

/// With `--root` the client's own tools for files are held to it as its shell is.
#[test]
fn files_of_the_clients_tools_are_held_to_the_roots() {
    let (hooked, root) = Hooked::rooted(&[]);
    let uses = |id: &str, tool: &str, path: &str| {
        let event = claude("PreToolUse", id, tool, json!({ "file_path": path, "content": "x" }));
        hooked.hook(&event)
    };
    for (n, tool) in ["Read", "Write", "Edit"].into_iter().enumerate() {
        let within = format!("{root}/src/a.txt");
        assert_eq!(uses(&format!("in{n}"), tool, &within).fine().out, "", "{tool}");
        for (m, path) in ["/etc/passwd", "a.txt", &format!("{root}/../a.txt")].iter().enumerate() {
            let said = denied(uses(&format!("out{n}{m}"), tool, path));
            assert!(said.contains("out_of_scope (") || said.contains("bad_path ("), "{said}");
        }
    }
    // Set up again, without a root named: what is stated of them stays, and their token grants it.
    assert_eq!(hooked.set_up(&[]).code, 0);
    denied(uses("again", "Read", "/etc/passwd"));
    // That grants the folder of the set-up.
    let here = std::env::current_dir().unwrap().canonicalize().unwrap().join("a.txt");
    assert_eq!(uses("here", "Read", here.to_str().unwrap()).fine().out, "");
    hooked.end();
}

/// What a command may not write unasked, the client's own tools for files don't either: what git,
/// agents and shells go by, and what a forge runs.
#[test]
fn files_that_are_run_later_are_guarded_from_the_clients_tools() {
    let (hooked, root) = Hooked::rooted(&[]);
    hooked.go_by("preset:coder");
    let uses = |id: &str, tool: &str, path: &str| {
        let path = format!("{root}/{path}");
        let event = claude("PreToolUse", id, tool, json!({ "file_path": path, "content": "x" }));
        hooked.hook(&event)
    };
    for (n, (path, reason)) in [
        (".git/hooks/pre-commit", "constraint ("),
        ("sub/.Claude/settings.local.json", "constraint ("),
        ("bare/HEAD", "constraint ("),
        ("plain/commondir", "constraint ("),
        (".cargo/config.toml", "constraint ("),
        ("my.Code-Workspace", "constraint ("),
        (".github/workflows/ci.yml", "asked ("),
    ]
    .into_iter()
    .enumerate()
    {
        for tool in ["Write", "Edit", "MultiEdit"] {
            let said = denied(uses(&format!("{tool}{n}"), tool, path));
            assert!(said.contains(reason), "{tool} {path}: {said}");
        }
        assert_eq!(uses(&format!("read{n}"), "Read", path).fine().out, "", "{path}");
    }
    assert_eq!(uses("other", "Write", ".gitignore").fine().out, "");
    hooked.end();
}

/// What git, editors or a forge run later is a person's to write, by whatever tool.
#[test]
fn a_file_that_is_run_later_asks_the_clients_user() {
    let (hooked, root) = Hooked::rooted(&[]);
    std::os::unix::fs::symlink(".git", format!("{root}/plain")).unwrap();
    let linked = "plain/hooks/pre-push";
    let names = [".GIT/config", ".vscode/tasks.json", ".github/w.yml", "sub/AGENTS.md", linked];
    for (n, name) in names.into_iter().enumerate() {
        for tool in ["Write", "Edit", "Read"] {
            let input = json!({ "file_path": format!("{root}/{name}"), "content": "x" });
            let said = hooked.hook(&claude("PreToolUse", &format!("{tool}{n}"), tool, input));
            let said = said.fine().out;
            let asks = said.contains(r#""permissionDecision":"ask""#);
            assert_eq!(asks, tool != "Read", "{tool} {name}");
            // The policy wants nobody to approve it.
            let why = match name {
                ".github/w.yml" => "a forge runs",
                "sub/AGENTS.md" => "agents obey",
                _ => "execute or obey",
            };
            assert!(!asks || said.contains(why) && !said.contains("the policy"), "{said}");
        }
    }
    hooked.end();
}

/// A pattern may lead out of the folder that is named beside it.
#[test]
fn a_pattern_that_leads_out_of_its_folder_asks_the_clients_user() {
    let (held, root) = Hooked::rooted(&[]);
    let free = Hooked::loose("claude-code", &[]);
    for (n, (pattern, asks)) in [
        ("**/*.rs", false),
        ("src/**/*_test.r*", false),
        ("src/{a,b}/*", true),
        (".{.,}/*", true),
        ("{.,x}{.,y}/*", true),
        (".[.]/*", true),
        ("+(.)/*", true),
        (".*/x", true),
        ("a\\/../../*", true),
        ("/etc/*", true),
        ("../../*", true),
        ("src/../../*", true),
        ("{/etc,src}/*", true),
        ("{src,/etc}/*", true),
        ("~/*", true),
    ]
    .into_iter()
    .enumerate()
    {
        let input = json!({ "pattern": pattern, "path": root });
        let event = claude("PreToolUse", &format!("t{n}"), "Glob", input);
        let asked = |hooked: &Hooked| {
            hooked.hook(&event).fine().out.contains(r#""permissionDecision":"ask""#)
        };
        assert_eq!((asked(&held), asked(&free)), (asks, false), "{pattern}");
    }
    held.end();
    free.end();
}

/// Who has approved this very use has been asked. A prompt of the client's that may not have been
/// shown is no such approval, nor one for many uses.
#[test]
fn a_file_that_a_person_approved_is_not_asked_about_again() {
    let (hooked, root) = Hooked::rooted(&[]);
    hooked.go_by("preset:coder");
    let home = hooked.home.path();
    let uses = |id: &str, name: &str| {
        let input = json!({ "file_path": format!("{root}/.github/{name}"), "content": "x" });
        hooked.hook(&claude("PreToolUse", id, "Write", input))
    };
    let asked = |name: &str| {
        assert!(denied(uses(&format!("ask-{name}"), name)).contains("asked ("), "{name}");
        hooked.of_kind("ask").last().unwrap()["seq"].to_string()
    };
    run(["approvals", "approve", &home, &asked("a.yml")]).fine();
    assert_eq!(uses("a", "a.yml").fine().out, "");
    assert_eq!(hooked.last()["kind"], "intent");
    run(["approvals", "approve", &home, &asked("b.yml"), "--uses", "3", "--for", "1h"]).fine();
    let said = uses("b", "b.yml").fine().out;
    assert!(said.contains(r#""permissionDecision":"ask""#), "{said}");
    hooked.end();
}

/// A pattern names the tools that were seen.
#[test]
fn a_pattern_grants_what_was_seen() {
    let hooked = Hooked::new("claude-code", &["--class", "read=mcp__docs__*"]);
    assert_eq!(hooked.set_up(&["--tool", "mcp__docs__*"]).code, 2);
    let find = |id: &str, tool: &str| claude("PreToolUse", id, tool, json!({}));
    denied(hooked.hook(&find("t1", "mcp__docs__find")));
    denied(hooked.hook(&find("t2", "mcp__docs__Look")));
    denied(hooked.hook(&find("t3", "mcp__other__find")));
    assert_eq!(hooked.set_up(&["--tool", "mcp__docs__*"]).code, 0);
    assert_eq!(hooked.hook(&find("t4", "mcp__docs__find")).fine().out, "");
    assert_eq!(hooked.hook(&find("t5", "mcp__docs__Look")).fine().out, "");
    assert!(denied(hooked.hook(&find("t6", "mcp__other__find"))).contains("not_granted ("));
    hooked.end();
}
