//! Files that other programs execute or obey: a run lists those that appeared or changed.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;

use serde_json::Value;

use super::world::World;
use crate::cli::support::{run, until};

/// The changes that `syscap changes` prints: what, and where.
fn listed(world: &World) -> Vec<(String, String)> {
    let lines = run(["changes", &world.home.path(), "--json"]);
    assert_eq!(lines.code, 0, "{}", lines.err);
    let text = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    let changes = lines.json();
    let changes = changes.iter().filter(|line| line["path"].is_string());
    changes.map(|line| (text(line, "change"), text(line, "path"))).collect()
}

/// What a run says of changes at its end.
fn said(world: &World, code: &str) -> Vec<String> {
    let ran = world.run(&[], &["sh", "-ec", code]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines = ran.err.lines().map(|line| line.trim_start_matches("syscap: ").trim());
    let lines = lines.filter(|line| line.starts_with("new ") || line.starts_with("changed "));
    lines.map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn new_and_changed_files_are_listed_at_the_end() {
    let Some(world) = World::new() else { return };
    let work = world.work();
    for (path, text) in [
        (".git/config", "[core]"),
        (".git/HEAD", "ref: refs/heads/main"),
        (".git/hooks/post-commit", "#!/bin/sh"),
        (".vscode/tasks.json", "{}"),
        (".mcp.json", "{}"),
        ("CLAUDE.md", "Be kind."),
        ("src/a.rs", "fn a() {}"),
        ("plain/HEAD", "ref: refs/heads/main"),
    ] {
        fs::create_dir_all(work.join(path).parent().unwrap()).unwrap();
        fs::write(work.join(path), text).unwrap();
    }
    fs::set_permissions(work.join(".git/hooks/post-commit"), fs::Permissions::from_mode(0o644))
        .unwrap();
    symlink("CLAUDE.md", work.join("AGENTS.md")).unwrap();
    let found = said(
        &world,
        "echo x >> .git/config; echo y > .git/HEAD; chmod +x .git/hooks/post-commit
         mkdir -p .git/objects/aa .git/refs && echo z > .git/objects/aa/b && echo z > .git/index
         echo '#' > .git/hooks/pre-commit
         mkdir -p sub/.GIT/modules/m/objects sub/.GIT/modules/m/refs
         echo m > sub/.GIT/modules/m/config; echo m > sub/.GIT/modules/m/HEAD
         mkdir -p bare.d/objects bare.d/refs bare.d/hooks; echo b > bare.d/HEAD
         echo b > bare.d/hooks/update
         echo ../x > plain/commondir; echo w > plain/config.worktree
         mkdir -p .git/objects/zz/objects .git/objects/zz/refs .git/objects/zz/hooks
         echo b > .git/objects/zz/HEAD; echo b > .git/objects/zz/hooks/h
         ln -sf src/a.rs AGENTS.md; echo t > .mcp.json; cat .vscode/tasks.json > /dev/null
         mkdir -p .github/workflows node_modules/p/.github node_modules/p/.git/hooks
         echo c > .github/workflows/a.yml; echo c > node_modules/p/.github/a.yml
         echo c > node_modules/p/.git/hooks/h
         mkdir -p .claude/worktrees/w/src; echo s > .claude/settings.json
         echo s > .claude/worktrees/w/src/b.rs; echo s > .claude/worktrees/w/.envrc
         printf 'e' > \"$(printf '.github/a\\033[31m')\"; echo b > src/a.rs; rm CLAUDE.md",
    );
    let expected = [
        "new .claude/settings.json",
        "new .claude/worktrees/w/.envrc",
        "changed .git/config",
        "changed .git/hooks/post-commit",
        "new .git/hooks/pre-commit",
        "new .git/objects/zz/hooks/h",
        "new .github/a\\x1b[31m",
        "new .github/workflows/a.yml",
        "changed .mcp.json",
        "changed AGENTS.md",
        "new bare.d/hooks/update",
        "new node_modules/p/.git/hooks/h",
        "new plain/commondir",
        "new plain/config.worktree",
        "new sub/.GIT/modules/m/config",
    ];
    assert_eq!(found, expected);
    // What was listed is forgotten, and a run that changes nothing lists nothing.
    assert_eq!(listed(&world), []);
    assert_eq!(said(&world, "echo c > src/c.rs"), [""; 0]);
}

/// The home keeps what a killed run had noted.
#[test]
fn changes_of_a_killed_run_are_listed_afterwards() {
    let Some(world) = World::new() else { return };
    let mut child = world.command(&[]);
    let code = "echo x > .envrc; touch begun; sleep 300";
    let child = child.args(["sh", "-c", code]).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = child.spawn().unwrap();
    until("it has begun", || world.work().join("begun").exists());
    let envrc = [("new".to_owned(), ".envrc".to_owned())];
    assert_eq!(listed(&world), envrc, "while it runs");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(listed(&world), envrc, "after it was killed");
    // Another run begins from what it finds, and forgets no other's.
    assert_eq!(said(&world, "true"), [""; 0]);
    assert_eq!(listed(&world), envrc);
    // Notes that can't be read are said to be, and hide no others.
    let damaged = world.home.beside("home/runs/0");
    fs::write(&damaged, "syscap-run 1\ncoder\n").unwrap();
    let told = run(["changes", &world.home.path()]);
    assert!(told.code == 1 && told.out.contains(".envrc"), "{}{}", told.out, told.err);
    fs::remove_file(damaged).unwrap();
    assert_eq!(run(["changes", &world.home.path(), "--forget"]).code, 0);
    assert_eq!(listed(&world), []);
    assert_eq!(run(["changes", "no/home"]).code, 4);
}

/// A file that is too large to read is listed all the same, and hides no other.
#[test]
fn large_file_is_listed_and_hides_no_other() {
    let Some(world) = World::new() else { return };
    let ran = world.run(&[], &["sh", "-ec", "truncate -s 10G .envrc; echo x > CLAUDE.md"]);
    for listed in ["new     .envrc", "new     CLAUDE.md", "there may be more"] {
        assert!(ran.err.contains(listed), "{}", ran.err);
    }
}

/// What is too much to note is said to be, and what was noted is compared.
#[test]
fn too_many_files_are_not_complete() {
    let Some(world) = World::new() else { return };
    let folder = world.work().join(".cursor");
    fs::create_dir(&folder).unwrap();
    for n in 0..10_001 {
        fs::write(folder.join(format!("{n:05}")), "").unwrap();
    }
    let code = "echo x > .cursor/00000; echo x > .cursor/new";
    let ran = world.run(&[], &["sh", "-ec", code]);
    assert!(ran.err.contains("changed .cursor/00000"), "{}", ran.err);
    assert!(!ran.err.contains("new     .cursor"), "{}", ran.err);
    assert!(ran.err.contains("there may be more"), "{}", ran.err);
}
