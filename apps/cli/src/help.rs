//! `syscap help`: the commands in groups, on one screen; and the exit codes.

use std::{ffi::OsString, fmt::Write as _};

use clap::Command;

/// The groups, and their commands.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Start", &["init", "mcp", "hook", "run", "ticket", "channel", "call", "demo"]),
    ("Work each day", &["approvals", "console", "top", "freeze", "thaw", "cancel", "revoke"]),
    ("People and keys", &["token", "credits", "resume", "keys", "secret"]),
    ("Policy and tools", &["policy", "learn", "state", "tools", "http"]),
    (
        "Look and mend",
        &[
            "log",
            "artifacts",
            "changes",
            "verify",
            "conformance",
            "doctor",
            "recover",
            "erase",
            "config",
            "serve",
        ],
    ),
];

/// The commands that `syscap` alone shows.
const FIRST: [&str; 5] = ["init", "mcp", "hook", "run", "approvals"];

const EXIT_CODES: &str = "\
Exit codes:
   0  done; verify: sound; call: every line was answered, perhaps by a refusal
   1  failed: input or output; the kernel halted; demo or doctor found something wrong; a key is
      sealed and nobody can unseal it; resume: an entry was skipped; policy: the document is not
      sound, a test fails, policies differ, somebody else can
   2  the command line is wrong; hook: the use must not be made
   3  the kernel refused a control event: a token, a session, a revocation, a freeze, a policy, a
      state, a change of tools or of keys; or another program locks the database (busy)
   4  the home can't be made or opened: missing, damaged, newer, another user's, or served by a
      process that does not answer
   5  no answer: the analysis reached its limit, or a replay could not ask about every call
   6  erase: erased, and a reader of the database keeps what was there in its files for now
  10  verify: tampered with
  11  verify: incomplete: open intents, or the last run did not end properly
  12  verify: sound or incomplete, but not anchored, and --require-anchor was given
  13  verify: newer software wrote records that this version does not know
 conformance  1 a check did not pass; 3 the runner could not do its part
 run, ticket  the program's own; 128+N where signal N ended it; 137 where a freeze or a revocation did;
      125 not started, 126 can't be executed, 127 not found
";

/// The help that a command line asks for, if any.
pub(crate) fn asked(words: &[OsString], command: &Command) -> Option<String> {
    let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    match &*words {
        [] => Some(short(command)),
        ["help" | "--help" | "-h"] => Some(screen(command)),
        ["help", "exit-codes"] => Some(EXIT_CODES.to_owned()),
        _ => None,
    }
}

fn short(command: &Command) -> String {
    let mut text = String::from(
        "syscap checks, limits and records every tool call of your AI agents.\n\nBegin with:\n",
    );
    lines(&mut text, command, &FIRST);
    text.push_str("\nsyscap help          shows all commands\nsyscap help COMMAND  shows one\n");
    text
}

fn screen(command: &Command) -> String {
    let mut text = String::from(
        "syscap checks, limits and records every tool call of your AI agents.\n\n\
         Usage: syscap COMMAND [OPTIONS]     syscap help COMMAND shows one command\n",
    );
    for (group, names) in GROUPS {
        // Writing to a String can't fail.
        let _infallible = writeln!(text, "\n{group}");
        lines(&mut text, command, names);
    }
    text.push_str(
        "\nEach command takes --json, for scripts. syscap help exit-codes lists the exit codes.\n",
    );
    text
}

fn lines(text: &mut String, command: &Command, names: &[&str]) {
    for name in names {
        let about = command.find_subcommand(name).and_then(Command::get_about);
        let about = about.map(ToString::to_string).unwrap_or_default();
        // Writing to a String can't fail.
        let _infallible = writeln!(text, "  {name:<11} {about}");
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::Cli;

    #[test]
    fn screen_has_each_command_once_in_nine_words() {
        let command = Cli::command();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let mut all: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
        for one in command.get_subcommands() {
            let about = one.get_about().unwrap().to_string();
            let words = about.split_whitespace().count();
            assert!((2..=9).contains(&words), "{}: {about}", one.get_name());
        }
        let screen = screen(&command);
        assert!(all.iter().all(|name| screen.contains(&format!("\n  {name} "))), "{screen}");
        assert!(screen.lines().count() <= 50, "{screen}");
        assert!(screen.lines().all(|line| line.len() <= 86), "{screen}");
    }

    /// Each example of a help text is a command line that is understood.
    #[test]
    fn examples_of_help_are_understood() {
        let mut command = Cli::command();
        command.build();
        let mut examples = 0;
        let mut folders: Vec<Command> = command.get_subcommands().cloned().collect();
        while let Some(one) = folders.pop() {
            folders.extend(one.get_subcommands().cloned());
            let help = one.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            let joined = help.replace("\\\n", " ");
            for line in joined.lines().filter_map(|line| line.strip_prefix("  syscap ")) {
                let words = syscap_gateway::split(&format!("syscap {line}")).unwrap();
                let parsed = Cli::command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                examples += 1;
            }
        }
        assert!(examples >= 10, "{examples}");
    }
}
