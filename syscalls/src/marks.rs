//! Marks: what a command does beside reading and writing files, and which file names carry one.

use std::collections::BTreeSet;

/// What a command does that neither its files nor its hosts say: a name of the dimension `does`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// It can't be told what it does.
    Unknown,
    /// It runs code of the project's: its build, its tests, its hooks. That can do anything.
    ProjectCode,
    /// What it removes or throws away does not come back.
    Irreversible,
    /// It reaches a host that can't be told.
    Network,
    /// It writes what runs elsewhere on its own: a forge's workflows.
    Automation,
    /// It hides what it does, or plants what does something later.
    Hides,
}

impl Mark {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Unknown,
        Self::ProjectCode,
        Self::Irreversible,
        Self::Network,
        Self::Automation,
        Self::Hides,
    ];

    /// Its name in grants and policies.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::ProjectCode => "project_code",
            Self::Irreversible => "irreversible",
            Self::Network => "network",
            Self::Automation => "automation",
            Self::Hides => "hides",
        }
    }

    /// The argument of a call that policies ask for it by.
    #[must_use]
    pub const fn argument(self) -> &'static str {
        match self {
            Self::Unknown => "does_unknown",
            Self::ProjectCode => "does_project_code",
            Self::Irreversible => "does_irreversible",
            Self::Network => "does_network",
            Self::Automation => "does_automation",
            Self::Hides => "does_hides",
        }
    }
}

/// Names that git, shells, editors and agents go by: who writes there plants what is run later, or
/// changes who decides.
const PLANTED: &[&str] = &[
    ".aider.conf.yml",
    ".amazonq",
    ".bash_aliases",
    ".bash_history",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".claude",
    ".claude.json",
    ".codex",
    ".continue",
    ".cshrc",
    ".cursor",
    ".devcontainer",
    ".devcontainer.json",
    ".dir-locals.el",
    ".direnvrc",
    ".emacs",
    ".emacs.d",
    ".envrc",
    ".exrc",
    ".gdbinit",
    ".gemini",
    ".ghci",
    ".git",
    ".git-credentials",
    ".gitconfig",
    ".gvimrc",
    ".helix",
    ".hg",
    ".histfile",
    ".husky",
    ".idea",
    ".inputrc",
    ".irbrc",
    ".kiro",
    ".kshrc",
    ".lldbinit",
    ".lvimrc",
    ".mcp.json",
    ".netrc",
    ".npmrc",
    ".nvim.lua",
    ".nvimrc",
    ".opencode",
    ".pam_environment",
    ".pdbrc",
    ".profile",
    ".pryrc",
    ".pypirc",
    ".qwen",
    ".roo",
    ".rprofile",
    ".rvmrc",
    ".screenrc",
    ".ssh",
    ".tcshrc",
    ".tmux.conf",
    ".vimrc",
    ".vscode",
    ".windsurf",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".zed",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zsh_history",
    ".zshenv",
    ".zshrc",
    "opencode.json",
    "sitecustomize.py",
    "usercustomize.py",
];

/// Names of what a forge runs.
const AUTOMATION: &[&str] = &[
    ".appveyor.yml",
    ".azure-pipelines",
    ".build.yml",
    ".buildkite",
    ".builds",
    ".ci",
    ".circleci",
    ".cirrus.star",
    ".cirrus.yml",
    ".drone.star",
    ".drone.yml",
    ".forgejo",
    ".gitea",
    ".github",
    ".gitlab",
    ".gitlab-ci.yml",
    ".semaphore",
    ".teamcity",
    ".tekton",
    ".travis.yml",
    ".woodpecker",
    ".woodpecker.yaml",
    ".woodpecker.yml",
    "appveyor.yml",
    "azure-pipelines.yaml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "buildspec.yml",
    "cloudbuild.yaml",
    "cloudbuild.yml",
    "jenkinsfile",
];

/// What it is to write a file of this path, by the names in it: [`Mark::Hides`] where git, shells,
/// editors or agents go by it later, [`Mark::Automation`] where a forge runs it.
///
/// Letters of both cases are one, as some file systems have it. Links are not seen. What lies in a
/// working tree below `.claude/worktrees`, where an agent's client makes them, is like what lies in
/// any other, unless the path climbs.
pub fn write_marks<'a>(components: impl IntoIterator<Item = &'a str>) -> BTreeSet<Mark> {
    let mut parts: Vec<&str> = components.into_iter().collect();
    parts.retain(|part| !matches!(*part, "" | "."));
    let tree = |four: &[&str]| matches!(four, [".claude", "worktrees", _, _]);
    let stays = !parts.contains(&"..");
    if let Some(at) = parts.windows(4).rposition(tree).filter(|_| stays) {
        parts.drain(at..at.saturating_add(3));
    }
    let (mut marks, mut last) = (BTreeSet::new(), None);
    for component in parts {
        let name = component.to_lowercase();
        if PLANTED.contains(&name.as_str()) {
            marks.insert(Mark::Hides);
        }
        if AUTOMATION.contains(&name.as_str()) {
            marks.insert(Mark::Automation);
        }
        last = Some(component);
    }
    // Where it lies beside `objects` and `refs` git takes the folder for a repository.
    if last == Some("HEAD") {
        marks.insert(Mark::Hides);
    }
    marks
}
