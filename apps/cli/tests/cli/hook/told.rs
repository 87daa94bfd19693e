//! What a refusal tells the model, and the command that it tells the operator.

use std::{collections::BTreeSet, fs, io::Write, process::Stdio};

use serde_json::{Value, json};

use super::claude::denied;
use super::world::{claude, gemini};
use crate::cli::support::{Run, run, run_with, syscap, until};

/// A home whose path has a space and a quote, in a folder that is a root of the client's tools.
struct Odd {
    _folder: host_support::Scratch,
    home: String,
    project: String,
}

impl Odd {
    fn new() -> Self {
        let folder = host_support::scratch();
        let project = folder.path().canonicalize().unwrap().join("it's a project");
        fs::create_dir(&project).unwrap();
        let home = project.join("the home").to_str().unwrap().to_owned();
        run(["init", &home, "--no-passphrase"]).fine();
        Self { _folder: folder, home, project: project.to_str().unwrap().to_owned() }
    }

    fn args<'a>(&'a self, client: &'a str) -> Vec<&'a str> {
        let words = ["hook", &self.home, "--agent", "coder", "--client", client, "--ask", "deny"];
        [&words[..], &["--class", "read=mcp__docs__*"]].concat()
    }

    fn set_up(&self, client: &str, more: &[&str]) {
        let flags = ["--setup", "--print", "--root", &self.project];
        let tools = ["--tool", "mcp__docs__find"];
        let set_up = run([&self.args(client), &flags[..], &tools, more].concat());
        assert_eq!(set_up.code, 0, "{}", set_up.err);
    }

    fn hook(&self, client: &str, event: &Value) -> Run {
        run_with(self.args(client), event.to_string().as_bytes())
    }

    /// With a standard output on which nothing can be written.
    fn unprinted(&self, event: &Value) -> Run {
        let mut child = syscap()
            .args(self.args("claude-code"))
            .stdin(Stdio::piped())
            .stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        let ran = Run::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 2, "{}", ran.err);
        ran
    }

    fn tokens(&self) -> Vec<Value> {
        run(["token", "list", &self.home, "--json"]).fine().json()
    }

    /// All that a token grants and may use, without what differs from one to the next.
    fn grant(&self, token: &str) -> BTreeSet<String> {
        let shown = run(["token", "show", &self.home, token]).fine().out;
        let fixed = |line: &&str| {
            let own = ["token", "valid", "nonce", "issued", "renews", "standing"];
            !own.iter().any(|own| line.starts_with(own)) && !line.contains(token)
        };
        // Of the budget the limits.
        let limit = |line: &str| match line.starts_with("  ") && !line.contains(": ") {
            true => line.split_whitespace().take(2).collect::<Vec<_>>().join(" "),
            false => line.to_owned(),
        };
        shown.lines().filter(fixed).map(limit).collect()
    }
}

/// The command on standard error, run by a shell in another folder.
fn run_printed(refused: &Run) -> String {
    let (_, command) = refused.err.trim_end().split_once(": syscap ").expect(&refused.err);
    let line = format!("\"$SYSCAP\" {command}");
    let shell = std::process::Command::new("/bin/sh")
        .args(["-c", &line])
        .env("SYSCAP", syscap().get_program())
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(shell.status.success(), "{line}: {}", String::from_utf8_lossy(&shell.stderr));
    command.to_owned()
}

fn used(id: &str, tool: &str, input: Value) -> Value {
    claude("PreToolUse", id, tool, input)
}

/// Pasted into a shell elsewhere it grants what the expired token granted, and nothing else.
#[test]
fn expired_token_is_continued_by_a_command_that_keeps_its_grant() {
    let odd = Odd::new();
    odd.set_up("claude-code", &["--expires", "2s"]);
    let before = odd.tokens();
    let token = before[0]["token_id"].as_str().unwrap().to_owned();
    let is_over = || odd.tokens()[0]["standing"] == "expired";
    until("the token expires", is_over);
    let file = json!({ "file_path": "/etc/hostname" });
    let refused = odd.hook("claude-code", &used("t1", "Read", file.clone()));
    let command = run_printed(&refused);
    assert!(command.contains(&token), "{command}");
    let said = denied(refused);
    let expires = before[0]["expires"].as_str().unwrap();
    assert!(said.contains("expired (") && said.contains(expires), "{said}");
    let after = odd.tokens();
    assert_eq!(after.len(), 2);
    let new = after.iter().find(|one| one["token_id"] != *token).unwrap();
    let new = new["token_id"].as_str().unwrap();
    assert!(!odd.grant(&token).is_empty());
    assert_eq!(odd.grant(new), odd.grant(&token));
    // What lay outside of the root still does.
    let said = denied(odd.hook("claude-code", &used("t2", "Read", file)));
    assert!(said.contains("out_of_scope ("), "{said}");
    let inside = json!({ "file_path": format!("{}/a", odd.project) });
    assert_eq!(odd.hook("claude-code", &used("t3", "Read", inside)).fine().out, "");
}

/// Each of these commands is run: the agent is granted no more than before, but for a tool that was
/// refused, which is granted without any scope.
#[test]
fn printed_commands_keep_the_grant() {
    let odd = Odd::new();
    odd.set_up("claude-code", &[]);
    let token = odd.tokens()[0]["token_id"].as_str().unwrap().to_owned();
    let before = odd.grant(&token);
    let refused = |n: usize, tool: &str, input: Value| {
        let run = odd.hook("claude-code", &used(&format!("t{n}"), tool, input));
        run_printed(&run);
        denied(run)
    };
    let cases = [
        ("Read", json!({ "file_path": "/etc/hostname" }), "out_of_scope"),
        ("Bash", json!({ "command": "frobnicate" }), "asked"),
        ("Write", json!({ "file_path": format!("{}/.git/x", odd.project) }), "constraint"),
    ];
    run(["policy", "set", &odd.home, "preset:coder"]);
    for (n, (tool, input, _)) in cases.into_iter().enumerate() {
        let said = refused(n, tool, input);
        assert!(said.starts_with("syscap refused "), "{said}");
        assert_eq!(odd.tokens().len(), 1, "{said}");
    }
    // Another class is another definition: accepted, and no token is issued.
    let changed = [&odd.args("claude-code")[..], &["--class", "irreversible=mcp__docs__find"]];
    let event = used("t9", "mcp__docs__find", json!({})).to_string();
    let run_9 = run_with(changed.concat(), event.as_bytes());
    run_printed(&run_9);
    assert!(denied(run_9).contains("tool_changed ("));
    assert_eq!((odd.tokens().len(), odd.grant(&token)), (1, before.clone()));
    // What would grant a tool is shown as printed, and grants nothing.
    let said = refused(10, "mcp__evil__read", json!({}));
    assert!(said.contains("not_granted ("), "{said}");
    assert_eq!((odd.tokens().len(), odd.grant(&token)), (1, before));
}

/// Over all ways to be refused: no path of the home, no token, no command but the one that
/// approves.
#[test]
fn model_is_told_neither_home_nor_token_nor_command() {
    let odd = Odd::new();
    let mut texts = Vec::new();
    let mut take = |run: Run| {
        // For exit code 2 clients give the model standard error.
        texts.push(if run.code == 2 { run.err } else { run.out });
    };
    let file = |path: &str| json!({ "file_path": path });
    take(odd.hook("claude-code", &used("t0", "Read", file("/x"))));
    for client in ["claude-code", "gemini-cli"] {
        odd.set_up(client, &[]);
    }
    let inside = format!("{}/secret", odd.home);
    for (n, (tool, input)) in [
        ("Read", file("/etc/hostname")),
        ("Write", file("/etc/hostname")),
        ("Bash", json!({ "command": "cat /etc/hostname" })),
        ("Bash", json!({ "command": "frobnicate; sh -c \"$X\"" })),
        ("Bash", json!({ "command": "curl https://b.example" })),
        ("Bash", json!({})),
        ("Glob", json!({ "path": "/etc", "pattern": "*" })),
        ("mcp__evil__read", json!({})),
        (&*"x".repeat(80), json!({})),
        ("Read", json!({ "file_path": 7 })),
    ]
    .into_iter()
    .enumerate()
    {
        take(odd.hook("claude-code", &used(&format!("a{n}"), tool, input)));
    }
    // A refusal that can't be printed is one by exit code 2.
    take(odd.unprinted(&used("a99", "Read", file("/x"))));
    let shell = json!({ "command": "frobnicate" });
    take(odd.hook("gemini-cli", &gemini("BeforeTool", "run_shell_command", shell)));
    run(["policy", "set", &odd.home, "preset:coder"]);
    take(odd.hook("claude-code", &used("b1", "Write", file(&format!("{}/.git/x", odd.project)))));
    run(["freeze", &odd.home, "--all"]).fine();
    take(odd.hook("claude-code", &used("b2", "Read", file("/x"))));
    run(["thaw", &odd.home, "--all"]).fine();
    take(run_with(odd.args("claude-code"), b"{"));
    let tokens: Vec<String> =
        odd.tokens().iter().map(|one| one["token_id"].as_str().unwrap().to_owned()).collect();
    for token in &tokens {
        run(["token", "revoke", &odd.home, token]).fine();
    }
    take(odd.hook("claude-code", &used("b3", "Read", file("/x"))));
    let named = [&odd.args("claude-code")[..], &["--token", &tokens[0]]].concat();
    take(run_with(named, used("b4", "Read", file("/x")).to_string().as_bytes()));
    // One that is no home any more, and no server that still has it open.
    run(["serve", &odd.home, "--stop"]);
    let database = format!("{}/home.db", odd.home);
    fs::write(&database, "no database").unwrap();
    take(odd.hook("claude-code", &used("b6", "Read", file(&inside))));
    fs::remove_file(&database).unwrap();
    take(odd.hook("claude-code", &used("b7", "Read", file(&inside))));
    assert!(texts.len() >= 18 && texts.iter().all(|text| !text.is_empty()), "{texts:?}");
    let mut approved = 0;
    for text in &texts {
        assert!(!text.contains("the home"), "{text}");
        assert!(tokens.iter().all(|token| !text.contains(&token[..16])), "{text}");
        let commands = text.matches("syscap ").count();
        let sayings = ["syscap refused ", "syscap approvals approve "];
        let own: usize = sayings.iter().map(|own| text.matches(own).count()).sum();
        assert_eq!(commands, own, "{text}");
        approved += text.matches("syscap approvals approve ").count();
    }
    assert!(approved > 0);
}
