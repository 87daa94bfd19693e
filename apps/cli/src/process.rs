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

/// What holds for a process whatever it does: who started it, while that is there, and the control
/// group, niceness, filter and namespaces that it began with.
pub(crate) fn bounds(process: u32) -> Vec<String> {
    let read =
        |what: &str| fs::read_to_string(format!("/proc/{process}/{what}")).unwrap_or_default();
    let (status, stat, groups) = (read("status"), read("stat"), read("cgroup"));
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let number = |name: &str| line(name).and_then(|value| value.trim().parse::<u32>().ok());
    let mut found = Vec::new();
    found
        .extend(number("PPid:").filter(|by| *by > 1).map(|by| format!("started by {}", named(by))));
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"));
    found.extend(group.map(|group| format!("control group {}", plain(group))));
    // The name before it may hold anything but `)`.
    let nice = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(16));
    found.extend(nice.map(|nice| format!("niceness {nice}")));
    found.extend(
        number("Seccomp:").filter(|mode| *mode > 0).map(|_| "system calls filtered".into()),
    );
    let space = |of: &str, name: &str| fs::read_link(format!("/proc/{of}/ns/{name}")).ok();
    let of = process.to_string();
    let other: Vec<&str> = ["user", "mnt", "pid", "net", "cgroup"]
        .into_iter()
        .filter(|name| space(&of, name).is_some_and(|it| Some(it) != space("self", name)))
        .collect();
    if !other.is_empty() {
        found.push(format!("namespaces of its own: {}", other.join(", ")));
    }
    found
}

/// ` by process 4711 (syscap serve home)`: which process has a home open, where this user can see
/// that.
pub(crate) fn by_server(home: &Path) -> String {
    let server = HomeLock::holder(home).map(named);
    server.map_or_else(String::new, |server| format!(" by {server}"))
}
