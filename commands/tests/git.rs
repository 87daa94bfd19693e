//! What is said of git's commands.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

#[path = "seen/place.rs"]
mod place;

use syscap_commands::{Effect, Mark, Place, Repository, analyse};

use place::{has, place, said};

/// git finds names in the index, in history and from the top on: all of that is asked for.
#[test]
fn git_reads_and_changes_all_of_the_repository() {
    let trees = |areas: &std::collections::BTreeSet<syscap_commands::Area>| {
        areas.iter().filter(|area| area.is_tree()).map(|area| area.path()).collect::<Vec<_>>()
    };
    let mut below = Place::at("/p/sub").unwrap();
    below.search = place().search;
    below.found = place().found;
    below.repository = Repository::Plain("/p".to_owned());
    for place in [place(), below] {
        for text in [
            "git status",
            "git diff",
            "git log --oneline -3",
            "git show :home/keys/policy.key",
            "git show HEAD:top.txt",
            "git blame a",
            "git grep -n . -- ':/'",
            "git ls-files",
            "git rev-parse HEAD:a",
            "git stash list",
            "git branch",
            "git remote -v",
        ] {
            let said = analyse(text, &place);
            assert_eq!(trees(&said.reads), ["/p"], "{text}");
            assert_eq!(said.effect(), Effect::Read, "{text}");
        }
        for text in [
            "git add :/",
            "git add home/keys",
            "git add -A",
            "git commit -q -m z",
            "git stash push -u",
            "git stash push -q -u",
            "git switch -q ev",
            "git switch -c ev",
            "git checkout a",
            "git restore --staged a",
            "git reset -q",
            "git clean -f",
            "git rm a",
            "git mv a b",
            "git merge -q ev",
            "git tag a",
            "git fetch",
        ] {
            assert_eq!(trees(&analyse(text, &place).repositories), ["/p"], "{text}");
        }
    }
}

/// What an option, or a word behind one, makes of a subcommand.
#[test]
fn git_is_known_by_its_whole_form() {
    for text in ["git remote", "git remote -v", "git remote --verbose", "git remote get-url a"] {
        assert_eq!(said(text).effect(), Effect::Read, "{text}");
    }
    for text in [
        "git remote -v add evil https://evil.example/a",
        "git remote -v set-url origin https://evil.example/a",
        "git remote -v update evil",
        "git remote --verbose add evil https://evil.example/a",
        "git remote show origin",
        "git remote get-url --push a",
        "git remote \"$x\"",
        "git stash -q push",
        "git stash \"$x\"",
        "git config --list --show-origin",
        "git config --list",
        "git config --get http.extraheader",
        "git config --get user.name --unset",
        "git config user.name x",
        "git reflog expire --all",
        "git notes add a",
        "git bisect run ./x",
        "git worktree add ../x",
        "git worktree list --expire now",
        "git submodule status",
        "git bundle create a HEAD",
        "git archive -o a HEAD",
        "git archive --remote=a HEAD",
        "git diff --output=a",
        "git diff --no-index a b",
        "git diff -U --output=a",
        "git diff -U /etc/passwd a",
        "git diff -S /etc/passwd a",
        "git log --pretty --output=a",
        "git log --format=%G?",
        "git log -U a",
        "git show --textconv HEAD",
        "git blame --contents /etc/passwd a",
        "git grep -f a",
        "git grep -Oless a",
        "git format-patch -o a HEAD",
        "git commit -t a",
        "git commit -e",
        "git commit -C a",
        "git add -i",
        "git add -p",
        "git add -e",
        "git add --pathspec-from-file=a",
        "git ls-files -X a",
        "git check-ignore --stdin",
        "git hash-object -w a",
        "git clone -u ./x a",
        "git rm ':(top).envrc'",
        "git rm '.env*'",
    ] {
        assert!(has(text, Mark::Unknown), "{text}");
    }
    // These make, move or remove one.
    for text in
        ["git branch -v a", "git branch -rd a", "git tag a", "git tag -m a b", "git tag -n -d a"]
    {
        assert!(said(text).effect() >= Effect::LocalWrite, "{text}");
        assert!(!said(text).repositories.is_empty(), "{text}");
    }
    assert_eq!(said("git tag -l a").effect(), Effect::Read);
    assert_eq!(said("git config --get user.name").effect(), Effect::Read);
}

/// Links, and files that shells, agents and forges go by, come with a commit, the index or a stash.
#[test]
fn what_git_puts_into_the_folders_is_the_projects_code() {
    for text in [
        "git merge -q --no-edit ev && cat lnk/s.txt",
        "git merge --abort",
        "git switch -q ev",
        "git switch -c a ev",
        "git switch -cq ev",
        "git switch --create=a ev",
        "git cherry-pick ev",
        "git revert --no-edit ev",
        "git rebase ev",
        "git pull",
        "git clone https://a.example/b",
        "git stash",
        "git stash push",
        "git stash pop",
        "git stash apply",
        "git reset --hard ev",
        "git reset --merge ev",
        "git reset --keep ev",
        "git checkout ev",
        "git checkout -b a ev",
        "git checkout ev -- a",
        "git restore a",
        "git am a",
        "git apply a",
        "git read-tree -u ev",
        "git checkout-index -a",
    ] {
        assert!(has(text, Mark::ProjectCode) || has(text, Mark::Unknown), "{text}");
    }
    assert!(!has("git switch main", Mark::Unknown) && !has("git stash pop", Mark::Unknown));
    for text in ["git switch -c a", "git checkout -b a", "git checkout -q -b a", "git reset -q"] {
        assert!(said(text).is_known(), "{text}");
        assert_eq!(said(text).effect(), Effect::LocalWrite, "{text}");
    }
}

/// Agents write the folder that they are in before the command: that is no other repository.
#[test]
fn the_folder_by_its_absolute_path_is_the_same_folder() {
    for text in ["cd /p && git status", "cd /p/ && git log -3", "cd /p/./ && git diff"] {
        assert!(!has(text, Mark::ProjectCode), "{text}");
        assert_eq!(said(text).effect(), Effect::Read, "{text}");
    }
    for text in ["cd /q && git status", "cd /p/a && git status", "cd /p && cd a && git log"] {
        assert!(has(text, Mark::ProjectCode), "{text}");
    }
    // What is above it is no link either; what is entered elsewhere may be one.
    assert!(!has("cd /p && cat ../b", Mark::Unknown));
    for text in ["cd /p/a && cat ../b", "cd /q && cat ../b"] {
        assert!(has(text, Mark::Unknown), "{text}");
    }
}
