//! The worked examples of documents, command by command.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::cli::support::{syscap, until};
use crate::cli::terminal::{self, Person};

/// What stands between a command's output and the next one's.
const MARK: &str = "--next--";

/// The console blocks below a heading: commands, and the lines that each prints.
fn examples(heading: &str, document: &str) -> Vec<(String, Vec<String>)> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let readme = fs::read_to_string(readme).unwrap();
    let section = readme.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let mut examples: Vec<(String, Vec<String>)> = Vec::new();
    for block in section.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            match (line.strip_prefix("$ "), line.strip_prefix("> "), examples.last_mut()) {
                (Some(command), _, _) => examples.push((command.to_owned(), Vec::new())),
                (None, Some(more), Some((command, _))) => {
                    command.push('\n');
                    command.push_str(more);
                }
                (None, None, Some((_, lines))) => lines.push(line.to_owned()),
                (None, _, None) => panic!("no command before {line}"),
            }
        }
    }
    examples
}

/// Whether a line is what the README says, where `...` stands for anything.
fn is_like(line: &str, said: &str) -> bool {
    let mut parts = said.split("...");
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    for part in parts {
        if part.is_empty() {
            return true;
        }
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.is_empty()
}

/// Whether a program is to be had.
pub(crate) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn play(heading: &str, least: usize) {
    play_of(&[heading], "README.md", least);
}

/// Plays what stands below these headings of a document, one after the other.
pub(crate) fn play_of(headings: &[&str], document: &str, least: usize) {
    let examples: Vec<_> =
        headings.iter().flat_map(|heading| examples(heading, document)).collect();
    assert!(examples.len() >= least, "{examples:?}");
    let folder = host_support::scratch();
    let binary = Path::new(env!("CARGO_BIN_EXE_syscap")).parent().unwrap();
    let script: String =
        examples.iter().map(|(command, _)| format!("{command}\necho {MARK}\n")).collect();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec 2>&1\n{script}")]).env("PATH", path);
    let output = shell.current_dir(&folder).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let printed: Vec<&str> = text.split_terminator(&format!("{MARK}\n")).collect();
    assert_eq!(printed.len(), examples.len(), "{text}");
    for ((command, said), printed) in examples.iter().zip(printed) {
        let lines: Vec<&str> = printed.lines().collect();
        // Of a home that is made the first line is enough.
        let enough = if command.contains(" init ") { 1 } else { lines.len() };
        assert_eq!(enough, said.len(), "{command}\n{printed}");
        for (line, said) in lines.iter().zip(said) {
            assert!(is_like(line, said), "{command}\nprints {line}\nand not {said}");
        }
    }
}

/// Claude Code's part of the README: it runs `ls` in its shell.
const CLAUDE: &str = r#"#!/usr/bin/python3
import json, os, subprocess, sys
settings = json.load(open(sys.argv[sys.argv.index('--settings') + 1]))
def hook(event, **more):
    said = dict(session_id='s', hook_event_name=event, tool_name='Bash', tool_use_id='u',
        tool_input=dict(command='ls'), cwd=os.getcwd(), **more)
    command = settings['hooks'][event][0]['hooks'][0]['command']
    subprocess.run(['sh', '-c', command], input=json.dumps(said), text=True, check=True)
hook('PreToolUse')
hook('PostToolUse', tool_response=dict(stdout=''))
"#;

/// A client of the README's MCP server, behind the gateway.
struct McpClient {
    child: Child,
    answers: Lines<BufReader<ChildStdout>>,
}

impl McpClient {
    fn start(folder: &Path) -> Self {
        let mut command = syscap();
        command.args(["mcp", "home", "--agent", "me", "--name", "notes", "--"]);
        command.args(["python3", "docs/examples/notes.py"]).current_dir(folder);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut client = Self { child, answers };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
        client.answer();
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn call(&mut self, tool: &str, arguments: &Value) {
        let params = json!({"name": tool, "arguments": arguments});
        self.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}));
    }

    fn answer(&mut self) -> String {
        self.answers.next().unwrap().unwrap()
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// The README's five minutes, typed to the letter. A person types `y`; the clients are played.
#[test]
fn five_minutes_hold() {
    if !terminal::is_there() || !is_there("python3") {
        return println!("skipped: no terminal or no python3");
    }
    let folder = host_support::scratch();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::create_dir(folder.path().join("docs")).unwrap();
    symlink(root.join("docs/examples"), folder.path().join("docs/examples")).unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("claude"), CLAUDE).unwrap();
    fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_syscap")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{path}", bin.display(), binary.display());
    let run = |command: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec 2>&1\n{command}")]).env("PATH", &path);
        shell.env("ANTHROPIC_API_KEY", "x").current_dir(&folder).stdin(Stdio::null());
        let output = shell.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let typed = examples("Five minutes with an agent", "../../README.md");
    assert!(typed.len() >= 7, "{typed:?}");
    let mut client = None;
    for (command, said) in &typed {
        let printed = if let Some(words) = command.strip_prefix("syscap mcp ") {
            let words = ["mcp"].into_iter().chain(words.split(' '));
            let mut person = Person::runs_in(folder.path(), words);
            person.sees("y, n").types("y");
            let told = person.end().fine();
            told.out + &told.shown
        } else {
            if command.contains("approvals list") {
                let mut one = McpClient::start(folder.path());
                one.call("add_note", &json!({"text": "buy milk"}));
                until("it waits", || run(command).1.contains("waits"));
                client = Some(one);
            }
            let (code, printed) = run(command);
            if code == Some(125) {
                return println!("skipped: {printed}");
            }
            assert_eq!(code, Some(0), "{command}\n{printed}");
            printed
        };
        if command.contains("approvals approve") {
            let mut client = client.take().unwrap();
            assert!(client.answer().contains("done"));
            client.call("delete_notes", &json!({}));
            assert!(client.answer().contains("denied"));
            client.end();
        }
        let mut lines = printed.lines();
        for said in said {
            assert!(lines.any(|line| is_like(line, said)), "{command}\nlacks {said}\n{printed}");
        }
    }
}

#[test]
fn the_policy_section_holds() {
    play("Policy\n", 12);
}

#[test]
fn the_section_on_many_processes_holds() {
    play("Many processes\n", 10);
}

#[test]
fn the_section_on_tools_holds() {
    play("Tools\n", 4);
}

#[test]
fn the_state_section_holds() {
    play("State\n", 6);
}

#[test]
fn likeness_is_exact_but_for_dots() {
    for (line, said) in [("a", "a"), ("abc", "a..."), ("a 12 b", "a ... b"), ("", "")] {
        assert!(is_like(line, said), "{line} {said}");
    }
    for (line, said) in [("ab", "a"), ("a", "ab"), ("a 12 bc", "a ... b"), ("b", "... a")] {
        assert!(!is_like(line, said), "{line} {said}");
    }
}
