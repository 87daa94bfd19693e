//! Commands of a client's shell: judged by what they would run and touch, where they would run.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Value, json};

use super::{
    claude::denied,
    world::{Hooked, claude, with},
};
use crate::cli::support::{Run, run, syscap};

/// A home, a project with a plain repository, and programs that nobody can write.
struct Shell {
    hooked: Hooked,
    folder: tempfile::TempDir,
    shell: &'static str,
    /// Looked through before the programs.
    before: Vec<PathBuf>,
}

impl Shell {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["project/src", "project/.git/hooks", "programs"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let config = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.com/x\n";
        fs::write(root.join("project/.git/config"), config).unwrap();
        fs::write(root.join("project/.git/hooks/pre-commit.sample"), "").unwrap();
        for name in ["cat", "git", "ls", "touch"] {
            program(&root.join("programs"), name);
        }
        let hooked = Hooked::new("claude-code", &[]);
        let project = root.join("project");
        let set_up = hooked.set_up(&["--root", project.to_str().unwrap()]);
        assert_eq!(set_up.code, 0, "{}", set_up.err);
        Self { hooked, folder, shell: "/bin/bash", before: Vec::new() }
    }

    fn project(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("project")
    }

    fn event(&self, id: &str, input: Value) -> Value {
        let event = claude("PreToolUse", id, "Bash", input);
        with(event, "cwd", json!(self.project()))
    }

    /// The client runs the hook, with its own environment.
    fn hook(&self, event: &Value) -> Run {
        let programs = self.project().with_file_name("programs");
        let path = std::env::join_paths(self.before.iter().chain([&programs])).unwrap();
        let mut child = syscap()
            .args(self.hooked.args())
            .env_clear()
            .env("PATH", path)
            .env("HOME", "/nowhere")
            .env("SHELL", self.shell)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        Run::of(child.wait_with_output().unwrap())
    }

    fn run(&self, id: &str, command: &str) -> Run {
        self.hook(&self.event(id, json!({ "command": command, "description": "It does." })))
    }

    fn runs(&self, id: &str, command: &str) -> Value {
        assert_eq!(self.run(id, command).fine().out, "", "{command}");
        let last = self.hooked.last();
        assert_eq!(last["kind"], "intent", "{command}");
        last
    }

    fn is_denied(&self, id: &str, command: &str, why: &str) {
        let said = denied(self.run(id, command));
        assert!(said.contains(why), "{command}: {said}");
    }
}

fn program(folder: &Path, name: &str) {
    let file = folder.join(name);
    fs::write(&file, "").unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_command_is_judged_by_what_it_does() {
    let shell = Shell::new();
    assert_eq!(shell.runs("t1", "cat src/a | cat")["call_effect"], "read");
    assert_eq!(shell.runs("t2", "touch src/a")["call_effect"], "local_write");
    assert_eq!(shell.runs("t3", "git status && git add -A")["call_effect"], "local_write");
    shell.is_denied("t4", "cat /etc/hostname", "out_of_scope (");
    shell.is_denied("t5", "touch ../a", "out_of_scope (");
    shell.is_denied("t6", "git push", "asked (403)");
    shell.is_denied("t7", "frobnicate", "asked (403)");
    // It is not on `PATH`.
    shell.is_denied("t8", "grep x src/a", "asked (403)");
    let ask = shell.hooked.of_kind("ask").pop().unwrap();
    assert_eq!(ask["call_effect"], "external_write");
    // Told of from another folder: the shell has moved on.
    let event =
        shell.event("t1", json!({ "command": "cat src/a | cat", "description": "It does." }));
    let after = with(with(event, "hook_event_name", json!("PostToolUse")), "cwd", json!("/"));
    shell.hook(&with(after, "tool_response", json!("text"))).fine();
    assert_eq!(shell.hooked.last()["status"], "ok");
    shell.hooked.end();
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

/// Whose shell can't be read hears of it before every command asks.
#[test]
fn the_set_up_says_that_a_shell_is_not_read() {
    let hooked = Hooked::loose("claude-code", &[]);
    let said = |shell: &str| {
        let args = hooked.args().into_iter().chain(["--setup".to_owned()]);
        let output = syscap().args(args).env("SHELL", shell).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said("/bin/zsh").contains("SHELL=/bin/bash"));
    assert!(!said("/usr/bin/bash").contains("SHELL=/bin/bash"));
}

/// What git, editors or a forge run later is a person's to write, by whatever tool.
#[test]
fn a_file_that_is_run_later_asks_the_clients_user() {
    let (hooked, root) = Hooked::rooted(&[]);
    let names = [".git/hooks/pre-commit", ".GIT/config", ".vscode/tasks.json", ".github/w.yml"];
    for (n, name) in names.into_iter().enumerate() {
        for tool in ["Write", "Edit", "Read"] {
            let input = json!({ "file_path": format!("{root}/{name}"), "content": "x" });
            let said = hooked.hook(&claude("PreToolUse", &format!("{tool}{n}"), tool, input));
            let said = said.fine().out;
            let asks = said.contains(r#""permissionDecision":"ask""#);
            assert_eq!(asks, tool != "Read", "{tool} {name}");
            // The policy wants nobody to approve it.
            let why = if name.starts_with(".github") { "a forge runs" } else { "go by later" };
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
        ("src/{a,b}/*", false),
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

/// What the model says of a command is no part of it: one approval is asked for, whatever it says.
#[test]
fn other_words_for_a_command_ask_for_nothing_anew() {
    let shell = Shell::new();
    for (id, words) in [("t1", "Push it."), ("t2", "Push the branch to its remote.")] {
        let event = shell.event(id, json!({ "command": "git push", "description": words }));
        let said = denied(shell.hook(&event));
        assert!(said.contains("asked (403)"), "{said}");
    }
    assert_eq!(shell.hooked.of_kind("ask").len(), 1);
    shell.hooked.end();
}

#[test]
fn what_is_not_certain_of_a_place_lets_nothing_run() {
    let mut shell = Shell::new();
    // Nobody but the hook says where a command runs, and what it doesn't know may change that.
    let place = json!({ "folder": shell.project(), "search": [], "found": {} });
    let event = shell.event("t1", json!({ "command": "cat src/a", "place": place }));
    assert_eq!(shell.hook(&event).code, 2);
    let event = shell.event("t2", json!({ "command": "cat src/a", "directory": "/etc" }));
    denied(shell.hook(&event));
    // A link has another parent by name.
    let link = shell.folder.path().canonicalize().unwrap().join("link");
    std::os::unix::fs::symlink(shell.project(), &link).unwrap();
    let event = with(shell.event("t3", json!({ "command": "cat src/a" })), "cwd", json!(link));
    denied(shell.hook(&event));
    shell.shell = "/bin/zsh";
    shell.is_denied("t4", "cat src/a", "asked (403)");
    shell.shell = "/bin/bash";
    // A program that the agent could have put there.
    let own = shell.project().join("bin");
    fs::create_dir(&own).unwrap();
    shell.before = vec![own.clone()];
    shell.is_denied("t5", "cat src/a", "asked (403)");
    program(&own, "cat");
    shell.is_denied("t6", "cat src/a", "asked (403)");
    // To the hook it is a folder beside it, to the shell one of the project's.
    for (id, folder) in [("t8", "src"), ("t9", "."), ("t10", ""), ("t11", "./tests")] {
        shell.before = vec![PathBuf::from(folder)];
        shell.is_denied(id, "cat src/a", "asked (403)");
    }
    shell.before.clear();
    shell.runs("t7", "cat src/a");
    shell.hooked.end();
}

#[test]
fn a_repository_that_may_run_something_is_not_plain() {
    let shell = Shell::new();
    let git = shell.project().join(".git");
    shell.runs("t1", "git status");
    fs::write(git.join("hooks/post-commit"), "").unwrap();
    shell.is_denied("t2", "git status", "asked (403)");
    fs::remove_file(git.join("hooks/post-commit")).unwrap();
    for (n, config) in [
        "[alias]\n\tst = !id\n",
        "[core]\n\tfsmonitor = ./x\n",
        "[core] hooksPath = x\n",
        "[include]\n\tpath = x\n",
        "[filter \"x\"]\n\tclean = ./x\n",
        "[remote \"x\"]\n\turl = ext::./x\n",
        "[diff \"x\"]\n\ttextconv = ./x\n",
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(git.join("config"), config).unwrap();
        shell.is_denied(&format!("u{n}"), "git status", "asked (403)");
    }
    fs::write(git.join("config"), "[core]\n\tbare = false\n").unwrap();
    shell.runs("t3", "git status");
    shell.hooked.end();
}

/// Clients make uses together, and tell of some never.
#[test]
fn uses_that_are_out_do_not_stop_others() {
    let shell = Shell::new();
    for n in 0..24 {
        shell.runs(&format!("t{n}"), "cat src/a");
    }
    assert_eq!(shell.hooked.of_kind("outcome").len(), 0);
    shell.hooked.end();
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

/// Why a command can't be told stands in the refusal and in the call, and nothing of its text.
#[test]
fn why_a_command_is_unknown_is_told() {
    let mut shell = Shell::new();
    shell.is_denied("t1", "eval frobnicate", "(eval)");
    shell.is_denied("t2", "frobnicate x", "(program_not_known)");
    shell.is_denied("t6", "grep x src/a", "(program_not_found)");
    shell.shell = "/bin/zsh";
    shell.is_denied("t3", "cat src/a", "(shell)");
    let ask = shell.hooked.last()["seq"].to_string();
    let shown = crate::cli::support::run(["log", "show", &shell.hooked.home.path(), &ask]).fine();
    assert!(shown.out.contains(r#""unclear":["shell"]"#), "{}", shown.out);
    // A command that is told needs no such word.
    shell.shell = "/bin/bash";
    shell.is_denied("t4", "cat /etc/hostname", "out_of_scope (");
    assert!(!denied(shell.run("t5", "cat /etc/hostname")).contains("can't be told"));
    // With what may be written in its place.
    shell.shell = "/bin/bash";
    for (id, command) in [("t6", "ls | cat \"$x\""), ("t7", "git add *")] {
        let said = denied(shell.run(id, command));
        assert!(said.contains("(name)") && said.contains("-exec PROGRAM {} +"), "{said}");
    }
    shell.hooked.end();
}

/// What asks although it is understood says why, and what lets it run.
#[test]
fn what_of_a_command_asks_is_told() {
    let shell = Shell::new();
    program(&shell.project().with_file_name("programs"), "npm");
    shell.is_denied("t1", "npm test", "params.project_code of the preset coder");
    assert!(!denied(shell.run("t2", "frobnicate")).contains("project_code"));
    // The command stands in the line of what waits, before where it would run.
    let listed = crate::cli::support::run(["approvals", "list", &shell.hooked.home.path()]).fine();
    assert!(listed.out.contains(r#"{"command":"npm test","#), "{}", listed.out);
    let log = crate::cli::support::run(["log", "show", &shell.hooked.home.path()]).fine();
    assert!(log.out.contains(r#"claude_code.bash(command: "npm test", "#), "{}", log.out);
    shell.hooked.end();
}

/// Where as many calls wait as may, a further one says so.
#[test]
fn what_is_put_to_nobody_says_who_can_change_that() {
    let shell = Shell::new();
    for n in 0..32 {
        shell.is_denied(&format!("t{n}"), &format!("frobnicate {n}"), "approvals approve");
    }
    let refused = shell.run("t32", "frobnicate x");
    assert!(refused.err.contains("syscap approvals list "), "{}", refused.err);
    assert!(denied(refused).contains("nobody was asked"));
    shell.hooked.end();
}

/// A reader of commands allocated without end on this text: the hook died with 134, which clients
/// take for no objection, and the server died for everybody.
#[test]
fn command_that_exhausts_its_reader_is_unknown() {
    let shell = Shell::new();
    shell.runs("t1", "cat src/a");
    shell.is_denied("t2", "rm -rf lib; sh -c '\"\"<<$[  '", "asked (403)");
    let ask = shell.hooked.of_kind("ask").pop().unwrap();
    assert_eq!(ask["call_effect"], "external_write");
    shell.runs("t3", "cat src/a");
    shell.hooked.end();
}

/// The process that reads a command can take little before it ends.
#[cfg(target_os = "linux")]
#[test]
fn reader_of_commands_has_little_memory_and_time() {
    let mut child = syscap()
        .args(["read-command", "claude-code"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It sets its limits first, and waits for its input then.
    let limits = || fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let set = |name: &str, value: &str| {
        let line = limits().lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        line[name.len()..].split_whitespace().take(2).all(|limit| limit == value)
    };
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !set("Max core file size", "0") && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(set("Max core file size", "0"));
    assert!(set("Max address space", "268435456"));
    assert!(set("Max cpu time", "1"));
    drop(child.stdin.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.success(), ended.stdout.len()), (false, 0));
}
