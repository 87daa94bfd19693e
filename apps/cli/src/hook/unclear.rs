//! Why it can't be told what a shell's command would do: a few words of our own, and nothing that
//! the command says; and what of one that can be told a policy asks about.

use std::collections::BTreeSet;

use syscap::syscalls::marks::Mark;

/// What of a use can't be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unclear {
    Arguments,
    Environment,
    Shell,
    Folder,
    Search,
    ProgramNotFound,
    ProgramNotKnown,
    Given,
    Name,
    Eval,
    VariableSet,
    Part,
    Unread,
}

impl Unclear {
    const ALL: [Self; 13] = [
        Self::Arguments,
        Self::Environment,
        Self::Shell,
        Self::Folder,
        Self::Search,
        Self::ProgramNotFound,
        Self::ProgramNotKnown,
        Self::Given,
        Self::Name,
        Self::Eval,
        Self::VariableSet,
        Self::Part,
        Self::Unread,
    ];

    /// That of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|why| why.name() == name)
    }

    /// Its name, in the call's argument `place`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Arguments => "arguments",
            Self::Environment => "environment",
            Self::Shell => "shell",
            Self::Folder => "folder",
            Self::Search => "search",
            Self::ProgramNotFound => "program_not_found",
            Self::ProgramNotKnown => "program_not_known",
            Self::Given => "given",
            Self::Name => "name",
            Self::Eval => "eval",
            Self::VariableSet => "variable_set",
            Self::Part => "part",
            Self::Unread => "unread",
        }
    }

    /// The same for who reads the refusal.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Arguments => "the shell's tool was given an argument that is not known",
            Self::Environment => {
                "CDPATH, BASH_ENV, CLAUDE_CODE_SHELL or an exported function decides what runs"
            }
            Self::Shell => "SHELL is none of bash, sh and dash",
            Self::Folder => "the folder it runs in is not told, or is reached by a link",
            Self::Search => "PATH is not set, too long, or has a folder that can't be told",
            Self::ProgramNotFound => "PATH does not find one of its programs",
            Self::ProgramNotKnown => "one of its programs is not in the table (docs/commands.md)",
            Self::Given => "a program is given an option or operand that is not known",
            Self::Name => {
                "a word that is told only when it runs may name any file or be an option: write \
                 the name, `./*`, or `find .. -exec PROGRAM {} +` in the place of xargs"
            }
            Self::Eval => "eval or source runs text",
            Self::VariableSet => {
                "it sets a variable that may decide what runs: write the value where it is used"
            }
            Self::Part => "a part of it is known only when it runs",
            Self::Unread => {
                "reading it took more than 256 MiB or a second, or broke off: write it in a \
                 plainer way"
            }
        }
    }

    /// What the reading of a command says, as one of these.
    pub(super) fn all(reasons: &[String]) -> Vec<Self> {
        let unknown = reasons.iter().filter_map(|why| why.strip_prefix("unknown: "));
        let mut all: Vec<Self> = unknown.map(Self::of).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// What has no word of its own is a part.
    fn of(why: &str) -> Self {
        match why {
            "eval" | "." | "source" => Self::Eval,
            _ if why.ends_with(" was not looked for, or not found") => Self::ProgramNotFound,
            _ if why.ends_with(" is not in the table")
                || why.ends_with(" is a program that is not known") =>
            {
                Self::ProgramNotKnown
            }
            _ if why.ends_with("a file whose name can't be told")
                || why.ends_with(": a word that may be an option") =>
            {
                Self::Name
            }
            _ if why.ends_with(": what it is given") => Self::Given,
            _ if why.ends_with(" is set") => Self::VariableSet,
            _ => Self::Part,
        }
    }
}

/// In words, with each one's name.
pub(super) fn told(unclear: &[Unclear]) -> Option<String> {
    let all: Vec<String> =
        unclear.iter().map(|why| format!("{} ({})", why.words(), why.name())).collect();
    let all = all.join("; ");
    (!unclear.is_empty()).then(|| format!(" What the command does can't be told: {all}."))
}

/// Why a command that is understood asks where neither its class nor the constraint's name says it,
/// and what lets it run.
pub(super) fn asked_for(marks: &BTreeSet<Mark>) -> Option<&'static str> {
    marks.contains(&Mark::ProjectCode).then_some(
        " It may run the project's own code (project_code), which can do anything: where the \
         client runs within a boundary, params.project_code of the preset coder lets it \
         (docs/commands.md).",
    )
}
