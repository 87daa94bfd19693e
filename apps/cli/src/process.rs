//! Other processes, as a person is told of them.

use std::fs;
use std::path::Path;

use syscap::audit::HomeLock;
use syscap::plain::plain;

/// How much is shown of a process's command line: words of our own programs, and characters.
const WORDS: usize = 3;
const COMMAND_LINE: usize = 80;

/// A process by its number and the beginning of its command line: the program, and of ours the
/// command and the home. An option may hold a secret, and an agent may read what is said here.
pub(crate) fn named(process: u32) -> String {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let program = words.first().map_or("", |word| word.rsplit('/').next().unwrap_or_default());
    let shown = if program == "syscap" { WORDS } else { 1 };
    let words = words.iter().take(shown).take_while(|word| !word.starts_with('-'));
    let line = words.map(|word| &**word).collect::<Vec<_>>().join(" ");
    let line: String = plain(line.trim()).chars().take(COMMAND_LINE).collect();
    format!("process {process} ({line})")
}

/// ` by process 4711 (syscap serve home)`: which process has a home open, where this user can see
/// that.
pub(crate) fn by_server(home: &Path) -> String {
    let server = HomeLock::holder(home).map(named);
    server.map_or_else(String::new, |server| format!(" by {server}"))
}
