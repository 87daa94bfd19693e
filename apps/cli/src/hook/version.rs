//! Checks that Claude Code denies a use whose hook can't be started: from 2.1.295 on, by
//! `onFailure: "block"`. Without it, or before, the tool runs.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use syscap::format::{Item, json};

/// The first version that knows `onFailure`.
const FIRST: Version = Version([2, 1, 295]);
/// How long it may take to say its version.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest line that is read of it.
const LINE_BYTES_MAX: u64 = 256;
/// Longest settings that are read.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;
/// The settings files of Claude Code, below a project and below HOME.
const SETTINGS: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

/// A version of a client: `2.1.295`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version([u32; 3]);

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self([major, minor, patch]) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

impl Version {
    pub(crate) const fn new(numbers: [u32; 3]) -> Self {
        Self(numbers)
    }

    /// Reads `2.1.295 (Claude Code)`.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let word = line.split_whitespace().next()?;
        let mut numbers = word.split('.').map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        let version = [next()?, next()?, next()?];
        numbers.next().is_none().then_some(Self(version))
    }

    /// Says what is wrong with it, if anything is.
    pub(crate) fn lets_tools_run(self) -> Option<String> {
        (self < FIRST).then(|| {
            format!(
                "claude {self} does not know onFailure: where the hook can't be started, or takes \
                 too long, the tool runs; take {FIRST} or later"
            )
        })
    }
}

/// The version of the `claude` on PATH; `None` where there is none, or it can't be told.
pub(crate) fn installed() -> Option<Version> {
    let mut child = Command::new("claude")
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let since = Instant::now();
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status.success(),
            Ok(None) if since.elapsed() < ANSWER_TIME => thread::sleep(PAUSE),
            _ => break false,
        }
    };
    if !ended {
        // It may have ended by itself meanwhile.
        child.kill().unwrap_or_default();
        child.wait().ok()?;
        return None;
    }
    let mut line = Vec::new();
    child.stdout.take()?.take(LINE_BYTES_MAX).read_to_end(&mut line).ok()?;
    Version::read(&String::from_utf8_lossy(&line))
}

/// The settings of this folder and of the user in which a hook of ours does not block where it
/// fails.
pub(crate) fn unblocked() -> Vec<PathBuf> {
    let folders = [env::current_dir().ok(), env::var_os("HOME").map(PathBuf::from)];
    let mut files: Vec<PathBuf> = folders
        .into_iter()
        .flatten()
        .flat_map(|folder| SETTINGS.map(|name| folder.join(name)))
        .filter(|file| read(file).is_some_and(|text| lets_run(&text)))
        .collect();
    files.dedup();
    files
}

fn read(file: &Path) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(file).ok()?.take(SETTINGS_BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(text)
}

/// True if settings name a hook of ours that does not block. Unreadable settings, by their length
/// or form, count so if they name one at all.
fn lets_run(text: &[u8]) -> bool {
    match json::to_data(text) {
        Ok(settings) => lacks(settings.item()),
        Err(_) => is_ours(&String::from_utf8_lossy(text)),
    }
}

fn is_ours(command: &str) -> bool {
    command.contains(" hook ") && command.contains("--client claude-code")
}

/// True if a hook of ours before a use has no `onFailure: "block"`.
fn lacks(settings: Item<'_>) -> bool {
    let before = settings.get("hooks").and_then(|hooks| hooks.get("PreToolUse"));
    let entries = before.into_iter().flat_map(Item::elements);
    let hooks = entries.filter_map(|entry| entry.get("hooks")).flat_map(Item::elements);
    let text = |hook: Item<'_>, key: &str, is: &dyn Fn(&str) -> bool| {
        hook.get(key).and_then(Item::as_text).is_some_and(is)
    };
    let mut own = hooks.filter(|hook| text(*hook, "command", &is_ours));
    own.any(|hook| !text(hook, "onFailure", &|word| word == "block"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_before_the_field_lets_tools_run() {
        for (line, lets) in [
            ("2.1.294 (Claude Code)\n", Some(true)),
            ("2.1.295 (Claude Code)", Some(false)),
            ("2.2.0", Some(false)),
            ("1.9.999", Some(true)),
            ("10.0.0", Some(false)),
            ("2.1", None),
            ("claude", None),
            ("2.1.295.1", None),
            ("", None),
        ] {
            let version = Version::read(line);
            assert_eq!(version.map(|it| it.lets_tools_run().is_some()), lets, "{line}");
        }
    }
}
