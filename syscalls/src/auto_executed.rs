//! Files that other programs execute or obey on their own, by the names in a path.
//!
//! The writer of such a file causes a later execution, or changes who decides. Each row names the
//! program and where its documentation says so, as of November 2026. The table is not complete, and
//! a program's own settings can name further files.

use std::collections::BTreeSet;

/// The use of a file by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Git, shells, editors, debuggers or agents execute it, or take their settings from it.
    Settings,
    /// A forge runs it: workflows, pipelines.
    Automation,
    /// An agent takes it for its user's instructions.
    Instructions,
}

/// The files of one program.
#[derive(Debug)]
pub struct Row {
    /// The use of these files.
    pub kind: Kind,
    /// Names of files or folders, in small letters; with a `*` before it an ending. All that lies in
    /// such a folder is meant.
    names: &'static [&'static str],
    /// The documentation of that use.
    pub source: &'static str,
}

const fn settings(names: &'static [&'static str], source: &'static str) -> Row {
    Row { kind: Kind::Settings, names, source }
}

const fn automation(names: &'static [&'static str], source: &'static str) -> Row {
    Row { kind: Kind::Automation, names, source }
}

const fn instructions(names: &'static [&'static str], source: &'static str) -> Row {
    Row { kind: Kind::Instructions, names, source }
}

const TABLE: &[Row] = &[
    // Version control.
    settings(&[".git"], "gitrepository-layout(5), githooks(5)"),
    settings(&[".gitconfig"], "git-config(1), FILES"),
    settings(&[".git-credentials"], "git-credential-store(1), FILES"),
    settings(&[".hg"], "Mercurial, hgrc(5): hooks in .hg/hgrc"),
    settings(&[".husky"], "husky, How To"),
    settings(&[".pre-commit-config.yaml"], "pre-commit, Adding pre-commit plugins to your project"),
    settings(
        &[
            ".lefthook.json",
            ".lefthook.toml",
            ".lefthook.yaml",
            ".lefthook.yml",
            "lefthook.json",
            "lefthook.toml",
            "lefthook.yaml",
            "lefthook.yml",
            "lefthook-local.yml",
        ],
        "Lefthook, Config file name",
    ),
    // Shells and sessions.
    settings(
        &[".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".profile", ".bash_history"],
        "bash(1), INVOCATION and HISTORY",
    ),
    settings(&[".bash_aliases"], "Debian, /etc/skel/.bashrc"),
    settings(&[".inputrc"], "readline(3), INITIALIZATION FILE"),
    settings(&[".cshrc", ".tcshrc"], "tcsh(1), Startup and shutdown"),
    settings(&[".kshrc"], "ksh(1), ENV"),
    settings(
        &[".zlogin", ".zlogout", ".zprofile", ".zshenv", ".zshrc"],
        "zsh(1), STARTUP/SHUTDOWN FILES",
    ),
    settings(&[".histfile", ".zsh_history"], "zshparam(1), HISTFILE"),
    settings(&[".pam_environment"], "pam_env(8)"),
    settings(&[".xinitrc"], "xinit(1)"),
    settings(&[".xprofile", ".xsession", ".xsessionrc"], "Xsession(5)"),
    settings(&[".envrc", ".direnvrc"], "direnv(1)"),
    settings(&[".rvmrc"], "RVM, Workflow, .rvmrc"),
    settings(&[".screenrc"], "screen(1), FILES"),
    settings(&[".tmux.conf"], "tmux(1), FILES"),
    settings(&[".ssh"], "ssh(1), sshd(8), FILES"),
    settings(&[".netrc"], "curl(1), --netrc"),
    // Package managers, languages and debuggers.
    settings(&[".npmrc"], "npm Docs, npmrc"),
    settings(&[".yarnrc", ".yarnrc.yml"], "Yarn, Configuration: yarnPath, plugins"),
    settings(&[".pnpmfile.cjs", ".pnpmfile.mjs"], "pnpm, .pnpmfile.cjs"),
    settings(&[".mise.toml", "mise.toml"], "mise-en-place, Configuration: hooks, tasks, env"),
    settings(&[".cargo"], "The Cargo Book, Configuration: runner, rustc-wrapper, linker"),
    settings(&[".pypirc"], "Python Packaging User Guide, The .pypirc file"),
    settings(&["sitecustomize.py", "usercustomize.py"], "Python Library, site"),
    settings(&[".pdbrc"], "Python Library, pdb"),
    settings(&[".irbrc"], "Ruby, IRB, Configuration file"),
    settings(&[".pryrc"], "Pry wiki, Pry rc"),
    settings(&[".rprofile"], "R, Startup"),
    settings(&[".ghci"], "GHC User's Guide, The .ghci files"),
    settings(&[".gdbinit"], "GDB manual, Startup"),
    settings(&[".lldbinit"], "lldb(1), CONFIGURATION FILES"),
    // Editors.
    settings(&[".exrc", ".gvimrc", ".vimrc"], "Vim, starting.txt"),
    settings(&[".lvimrc"], "vim-localvimrc"),
    settings(&[".nvim.lua", ".nvimrc"], "Neovim, options, exrc"),
    settings(
        &[".dir-locals.el", ".emacs", ".emacs.d"],
        "GNU Emacs manual, Init File, Directory Variables",
    ),
    settings(&[".helix"], "Helix, Configuration"),
    settings(&[".idea"], "IntelliJ IDEA, Run/debug configurations, Project security"),
    settings(&["*.code-workspace", ".vscode"], "Visual Studio Code, Tasks, Workspace Trust"),
    settings(&[".zed"], "Zed, Tasks, Configuring Zed"),
    settings(&[".devcontainer", ".devcontainer.json"], "Development Containers, devcontainer.json"),
    // Agents.
    settings(&[".aider.conf.yml"], "aider, YAML config file"),
    settings(&[".amazonq"], "Amazon Q Developer, MCP configuration"),
    settings(&[".claude", ".claude.json", ".mcp.json"], "Claude Code, Settings, Hooks, MCP"),
    settings(&[".codex"], "Codex, Configuration"),
    settings(&[".continue"], "Continue, config.yaml"),
    settings(&[".cursor"], "Cursor, Rules, MCP"),
    settings(&[".gemini"], "Gemini CLI, Configuration, Extensions"),
    settings(&[".kiro"], "Kiro, Steering, Hooks"),
    settings(&[".opencode", "opencode.json"], "opencode, Config"),
    settings(&[".qwen"], "Qwen Code, Configuration"),
    settings(&[".roo"], "Roo Code, MCP, Custom Instructions"),
    settings(&[".windsurf"], "Windsurf, Rules, Workflows"),
    instructions(&["agents.md", "agents.override.md"], "AGENTS.md; Codex, AGENTS.md"),
    instructions(&["claude.md", "claude.local.md"], "Claude Code, Memory"),
    instructions(&["gemini.md"], "Gemini CLI, GEMINI.md files"),
    instructions(&["qwen.md"], "Qwen Code, Context files"),
    instructions(&[".cursorrules"], "Cursor, Rules"),
    instructions(&[".windsurfrules"], "Windsurf, Rules"),
    instructions(&[".clinerules"], "Cline, Rules"),
    // Forges.
    automation(&[".appveyor.yml", "appveyor.yml"], "AppVeyor, appveyor.yml"),
    automation(
        &[".azure-pipelines", "azure-pipelines.yaml", "azure-pipelines.yml"],
        "Azure Pipelines, YAML schema",
    ),
    automation(&[".build.yml", ".builds"], "builds.sr.ht, manifest reference"),
    automation(&[".buildkite"], "Buildkite, Defining steps"),
    automation(&[".ci"], "a folder for pipelines by convention; this repository's too"),
    automation(&[".circleci"], "CircleCI, Configuration reference"),
    automation(&[".cirrus.star", ".cirrus.yml"], "Cirrus CI, Writing tasks"),
    automation(&[".drone.star", ".drone.yml"], "Drone, Pipelines"),
    automation(&[".forgejo", ".gitea"], "Forgejo Actions; Gitea Actions"),
    automation(&[".github"], "GitHub Actions, Workflow syntax"),
    automation(&[".gitlab", ".gitlab-ci.yml"], "GitLab, CI/CD YAML syntax"),
    automation(&[".semaphore"], "Semaphore, Pipeline YAML"),
    automation(&[".teamcity"], "TeamCity, Kotlin DSL"),
    automation(&[".tekton"], "Pipelines as Code, PipelineRun"),
    automation(&[".travis.yml"], "Travis CI, Build config reference"),
    automation(
        &[".woodpecker", ".woodpecker.yaml", ".woodpecker.yml"],
        "Woodpecker CI, Workflow syntax",
    ),
    automation(&["bitbucket-pipelines.yml"], "Bitbucket Pipelines, Configuration reference"),
    automation(&["buildspec.yml"], "AWS CodeBuild, Build specification"),
    automation(&["cloudbuild.yaml", "cloudbuild.yml"], "Cloud Build, Build configuration"),
    automation(&["jenkinsfile"], "Jenkins, Using a Jenkinsfile"),
];

/// The row of a file's or a folder's name. Letters of both cases are one, as some file systems have
/// it.
#[must_use]
pub fn row_of_name(name: &str) -> Option<&'static Row> {
    let name = name.to_lowercase();
    let is_it = |known: &&str| match known.strip_prefix('*') {
        Some(ending) => name.ends_with(ending),
        None => *known == name,
    };
    TABLE.iter().find(|row| row.names.iter().any(is_it))
}

/// The uses of a file at a path, by all names in it. Links are not seen: the caller follows them
/// before.
///
/// A working tree below `.claude/worktrees`, where Claude Code makes them, is like any other, unless
/// the path climbs.
pub fn kinds_of_path<'a>(components: impl IntoIterator<Item = &'a str>) -> BTreeSet<Kind> {
    let mut parts: Vec<&str> = components.into_iter().collect();
    parts.retain(|part| !matches!(*part, "" | "."));
    let tree = |four: &[&str]| matches!(four, [".claude", "worktrees", _, _]);
    let stays = !parts.contains(&"..");
    if let Some(at) = parts.windows(4).rposition(tree).filter(|_| stays) {
        parts.drain(at..at.saturating_add(3));
    }
    let rows = parts.iter().filter_map(|part| row_of_name(part));
    let mut kinds: BTreeSet<Kind> = rows.map(|row| row.kind).collect();
    // Beside `objects` and `refs`, or beside each other, git takes the folder for a repository.
    if parts.last().is_some_and(|last| ["HEAD", "commondir"].contains(last)) {
        kinds.insert(Kind::Settings);
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_stands_once_in_small_letters_with_a_source() {
        let mut seen = BTreeSet::new();
        for row in TABLE {
            assert!(!row.source.is_empty());
            for name in row.names {
                assert!(seen.insert(*name), "{name}");
                assert_eq!(*name, name.to_lowercase());
            }
        }
    }
}
