//! The worked examples of documents, command by command.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

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
