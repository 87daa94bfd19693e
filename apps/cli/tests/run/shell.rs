//! The client's shell: inside a contained run it is a tool of its own, outside each command asks.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::clients::{CLAUDE, client};
use super::world::{AGENT, World};
use crate::cli::support::{Run, run, run_with, syscap, until};

/// What a coding agent runs in an hour, and the texts that broke a reader of commands.
const COMMANDS: [&str; 44] = [
    "ls -la",
    "cat src/main.rs | head -50",
    "grep -rn 'fn main' src",
    "find . -name '*.rs' -not -path './target/*'",
    "sed -n '1,40p' README.md",
    "sed -i 's/old/new/g' src/lib.rs",
    "mkdir -p src/parts && touch src/parts/mod.rs",
    "mv a.txt b.txt",
    "cp -r src backup",
    "rm -rf target/tmp",
    "git status --short",
    "git diff HEAD~1 -- src",
    "git log --oneline -5",
    "git add -A && git commit -m 'Change'",
    "git checkout -b feature",
    "git stash && git pull --rebase && git stash pop",
    "git push origin HEAD",
    "cargo build --release",
    "cargo test -- --nocapture",
    "cargo clippy --all-targets -- -D warnings",
    "cargo fmt --check",
    "npm ci",
    "npm run build && npm test",
    "npx tsc --noEmit",
    "pnpm install --frozen-lockfile",
    "node -e 'console.log(1)'",
    "python3 -m pytest -x -q",
    "python3 - <<'EOF'\nprint(1)\nEOF",
    "pip install -r requirements.txt",
    "make -j4 all",
    "cmake --build build",
    "go test ./...",
    "./scripts/run.sh --fast",
    "bash -c 'for f in *; do echo $f; done'",
    "export A=1; echo $A",
    "curl -sS https://example.com/api | jq .name",
    "docker ps",
    "ps aux | grep node",
    "kill %1",
    "jq '.version' package.json",
    "cat <<A <<B\nx\nA\ny\nB",
    "git -C nested/.git/../../other commit -am x",
    "{1..9999999}{1..9999999}",
    "eval \"$(printf '\\x72\\x6d')\" -r .",
];

/// A stand-in that asks about each command, and prints those that were not let through.
fn asks_about(commands: &[&str]) -> String {
    format!(
        "{CLAUDE}
for n, command in enumerate(json.loads({:?})):
    asked = hook('PreToolUse', 'Bash', 'u%d' % n, dict(command=command))
    if asked.returncode or asked.stdout: print(command, asked.returncode, asked.stdout)
    else:
        hook('PostToolUse', 'Bash', 'u%d' % n, dict(command=command), tool_response=dict(ok=True))",
        json!(commands).to_string()
    )
}

fn set_up(world: &World) {
    let home = world.home.path();
    let ran =
        run(["hook", &home, "--agent", AGENT, "--client", "claude-code", "--setup", "--print"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

fn under(preset: &str) -> Option<World> {
    let world = World::new()?;
    run(["policy", "set", &world.home.path(), &format!("preset:{preset}")]).fine();
    Some(world)
}

/// What the hook outside answers about a command; the decision that the client reads.
fn outside(world: &World, more: &[&str], tool: &str, command: &str) -> Run {
    let home = world.home.path();
    let base = ["hook", &home, "--agent", AGENT, "--client", "claude-code", "--ask", "deny"];
    let event = json!({"session_id": "outside", "hook_event_name": "PreToolUse",
        "tool_name": tool, "tool_input": {"command": command}, "tool_use_id": command,
        "cwd": world.work()});
    run_with(base.iter().chain(more), event.to_string().as_bytes())
}

fn is_denied(ran: &Run) -> bool {
    let said: Value = serde_json::from_str(&ran.out).unwrap_or_default();
    ran.code == 2 || said["hookSpecificOutput"]["permissionDecision"] == "deny"
}

/// The tools of the calls that were let through.
fn let_through(world: &World) -> Vec<String> {
    let log = world.home.log();
    let mut tools: Vec<String> = log
        .iter()
        .filter(|record| record["kind"] == "intent")
        .filter_map(|record| record["tool_id"].as_str().map(str::to_owned))
        .collect();
    tools.sort();
    tools.dedup();
    tools
}

#[test]
fn everyday_commands_run_unasked_inside_and_ask_outside() {
    let Some(world) = under("coder") else { return };
    let program = client(&world, "claude", &asks_about(&COMMANDS));
    let all = |tool: &str| {
        let log = world.home.log();
        let of =
            |kind: &str| log.iter().filter(|r| r["kind"] == kind && r["tool_id"] == tool).count();
        (of("intent"), of("ask"))
    };
    for (net, tool) in
        [("none", "claude_code.contained.bash"), ("host", "claude_code.contained_online.bash")]
    {
        let ran = world.run(&["--net", net, "--hook", "--ask deny"], &[&program]);
        assert_eq!((ran.code, &*ran.out), (0, ""), "{}", ran.err);
        assert_eq!(all(tool), (COMMANDS.len(), 0));
    }
    set_up(&world);
    // An agent has at most 32 requests that wait.
    for command in COMMANDS.iter().take(12).chain(&COMMANDS[40..]) {
        assert!(is_denied(&outside(&world, &[], "Bash", command)), "{command}");
    }
    assert_eq!(all("claude_code.bash"), (0, 16));
    assert_eq!(world.home.verify(), 0);
}

/// With the host's network the shell can act elsewhere, so the preset `standard` asks; and what was
/// approved inside is not consumed outside.
#[test]
fn approval_inside_is_not_consumed_outside() {
    let Some(world) = World::new() else { return };
    let home = world.home.path();
    let program = client(&world, "claude", &asks_about(&["make"]));
    let ask = ["--net", "host", "--hook", "--ask deny"];
    let ran = world.run(&ask, &[&program]);
    assert!(ran.out.starts_with("make 0 "), "{}{}", ran.out, ran.err);
    let list = run(["approvals", "list", &home, "--json", "--all"]).fine().json();
    assert_eq!(list.len(), 1);
    let number = list[0]["ask"].to_string();
    run(["approvals", "approve", &home, &number]).fine();
    set_up(&world);
    assert!(is_denied(&outside(&world, &[], "Bash", "make")));
    assert!(!let_through(&world).contains(&"claude_code.bash".to_owned()));
    // It stands for the same command inside.
    let ran = world.run(&ask, &[&program]);
    assert_eq!((ran.code, &*ran.out), (0, ""), "{}", ran.err);
}

/// Each way that was tried to have a shell outside counted as one inside.
#[test]
fn outside_shell_never_counts_as_inside() {
    let Some(world) = under("coder") else { return };
    let home = world.home.path();
    let program = client(&world, "claude", &asks_about(&["make"]));
    set_up(&world);
    // The token of a hook's set-up grants no shell inside, whatever the hook is told.
    for word in ["contained", "contained-online"] {
        assert!(is_denied(&outside(&world, &["--inside", word], "Bash", "make")), "{word}");
    }
    // Nor does a set-up issue one.
    let setup = ["hook", &home, "--agent", AGENT, "--client", "claude-code", "--setup", "--print"];
    let inside = run(setup.iter().chain(&["--inside", "contained"]));
    assert_eq!(inside.code, 2, "{}", inside.err);
    // A tool of the client's that has the name of the one inside is another.
    for name in ["contained.bash", "claude_code.contained.bash", "contained_online.bash"] {
        assert!(is_denied(&outside(&world, &[], name, "make")), "{name}");
    }
    assert_eq!(let_through(&world), [""; 0]);
    // Who runs it can't say so by the hook's words.
    let word = ["--require", "confined", "--hook", "--inside contained"];
    assert_eq!(world.run(&word, &[&program]).code, 2);
    assert_eq!(world.run(&["--hook", "--inside contained-online"], &[&program]).code, 2);
    // Level confined keeps no process apart: it counts as outside.
    let ran = world.run(&["--require", "confined", "--hook", "--ask deny"], &[&program]);
    assert!(ran.out.starts_with("make 0 "), "{}{}", ran.out, ran.err);
    assert_eq!(let_through(&world), [""; 0]);
    // Inside, the words of the hook there count for nothing: this run has no network.
    let code = format!(
        "{CLAUDE}
said = dict(session_id='s', hook_event_name='PreToolUse', tool_name='Bash', tool_use_id='u',
    tool_input=dict(command='make'))
words = ['hook', 'home', '--agent', 'another', '--client', 'claude-code', '--inside']
print(ran(SYSCAP, *words, 'contained-online', input=json.dumps(said)).returncode)"
    );
    let tries = client(&world, "tries", &code);
    let options = ["--client", "claude-code", "--hook", "--ask deny"];
    assert_eq!(world.run(&options, &[&tries]).out, "0\n");
    assert_eq!(let_through(&world), ["claude_code.contained.bash"]);
    // The run's token outside: its hook means the shell there.
    let tokens = run(["token", "list", &home, "--json"]).fine().json();
    let grants = |token: &&Value| token["tools"].to_string().contains("contained.bash");
    let token = tokens.iter().find(grants).unwrap()["token_id"].as_str().unwrap();
    assert!(is_denied(&outside(&world, &["--token", token], "Bash", "make")));
    // No door answers a process that only says that it is inside.
    let mut lane = syscap();
    lane.args(["hook", &home, "--agent", AGENT, "--client", "claude-code"]);
    let mut child = lane
        .env("SYSCAP_LANE", "hook")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdin.take().unwrap().write_all(b"{}"));
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert_eq!(let_through(&world), ["claude_code.contained.bash"]);
}

/// MCP tools of the client, and writes to files that other programs obey, ask inside too.
#[test]
fn other_tools_ask_inside() {
    let Some(world) = under("coder") else { return };
    let code = format!(
        "{CLAUDE}
def decided(tool, use, **input):
    asked = hook('PreToolUse', tool, use, input)
    if asked.returncode: return asked.returncode
    said = json.loads(asked.stdout or '{{}}').get('hookSpecificOutput', {{}})
    return said.get('permissionDecision')
os.makedirs('.git/hooks'); os.symlink('.git', 'plain')
print(decided('mcp__docs__send', 'a', to='x'))
for n, name in enumerate(['.git/hooks/pre-commit', '.mcp.json', '.claude/settings.json',
        'AGENTS.md', 'plain/hooks/pre-push', '.GIT/config', '.github/workflows/a.yml', '.envrc']):
    print(name, decided('Write', 'w%d' % n, file_path=name, content='x'))
print(decided('Write', 'x', file_path='src/a.rs', content='x'))"
    );
    let program = client(&world, "claude", &code);
    let ran = world.run(&["--hook", "--ask deny"], &[&program]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    let (last, asked) = lines.split_last().unwrap();
    assert_eq!(*last, "None", "{}", ran.out);
    assert_eq!(asked.len(), 9);
    for line in asked {
        assert!(line.ends_with("deny") || line.ends_with("ask"), "{line}");
    }
}

/// A run that waits for its end; `stop` is what an operator does meanwhile.
fn stopped_by(world: &World, stop: impl FnOnce(&str) -> Run) -> (Option<i32>, String) {
    let mark = world.work().join("begun");
    drop(fs::remove_file(&mark));
    let mut child: Command = world.command(&[]);
    child.args(["sh", "-c", "touch begun; sleep 300"]).stdin(Stdio::null());
    let child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until("it has begun", || mark.exists());
    let stopped = stop(&world.home.path());
    assert_eq!(stopped.code, 0, "{}", stopped.err);
    let begun = std::time::Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(60), "the program ended by itself");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn freeze_or_revocation_ends_the_run() {
    let Some(world) = World::new() else { return };
    let ended = (Some(137), true);
    let told = |(code, err): (Option<i32>, String), why: &str| (code, err.contains(why));
    let frozen = stopped_by(&world, |home| run(["freeze", home, "--agent", AGENT]));
    assert_eq!(told(frozen, "agent coder is frozen"), ended);
    run(["thaw", &world.home.path(), "--agent", AGENT]).fine();
    let frozen = stopped_by(&world, |home| run(["freeze", home, "--all"]));
    assert_eq!(told(frozen, "the home is frozen"), ended);
    run(["thaw", &world.home.path(), "--all"]).fine();
    let revoked = stopped_by(&world, |home| run(["revoke", home, &world.token]));
    assert_eq!(told(revoked, "was revoked"), ended);
    assert_eq!(world.home.verify(), 0);
}

#[test]
fn freeze_of_another_agent_ends_nothing() {
    let Some(world) = World::new() else { return };
    let mut child = world.command(&[]);
    child.args([
        "sh",
        "-c",
        "touch begun; for i in $(seq 600); do [ -e over ] && exit 7; sleep 0.1; done",
    ]);
    let mut child = child.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("it has begun", || world.work().join("begun").exists());
    assert_eq!(run(["freeze", &world.home.path(), "--agent", "another"]).code, 0);
    // As long as three looks take.
    std::thread::sleep(Duration::from_secs(1));
    fs::write(world.work().join("over"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7));
}

/// A shell inside reads the start-up files that it finds, and reports none that it can't.
#[test]
fn shell_inside_starts_without_a_complaint() {
    let Some(world) = World::new() else { return };
    let said = world.within(
        &[],
        "
for words in (['-c', 'true'], ['-lc', 'true'], ['-ic', 'true']):
    print('denied' in ran('/bin/bash', *words).stderr)
for path in ('/etc/profile.d', '/etc/shadow'): print(told(os.listdir if path.endswith('d') else open, path))",
    );
    assert_eq!(said, "False\nFalse\nFalse\nEACCES\nEACCES\n");
}
