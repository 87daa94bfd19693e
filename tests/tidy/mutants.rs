//! Mutants: each says which invariant it breaks and which test must fail; each invariant has some.

use std::{collections::BTreeSet, fs, path::Path};

use super::{File, files, has_test, invariants, root, tables};

/// Fewer are no catalogue.
const MUTANTS_MIN: usize = 80;
const GROUPS: [&str; 2] = ["edge", "state"];

/// A file below `tests/mutants`: what stands before `.patch`, and its text.
struct Patch {
    name: String,
    text: String,
}

fn patches() -> Vec<Patch> {
    let folder = root().join("tests/mutants");
    let mut patches = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder of mutants") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let name = name.strip_suffix(".patch").unwrap_or_else(|| panic!("{name} is no patch"));
        let text = fs::read_to_string(&path).expect("text");
        patches.push(Patch { name: name.to_owned(), text });
    }
    patches.sort_by(|a, b| a.name.cmp(&b.name));
    patches
}

/// Names and folders of the workspace's packages.
fn packages(all: &[File]) -> Vec<(String, String)> {
    let manifests = all.iter().filter(|file| file.path.ends_with("Cargo.toml"));
    let named = manifests.filter_map(|file| {
        let name = tables(&file.text).get("package")?.get("name")?.trim_matches('"').to_owned();
        Some((name, file.path.trim_end_matches("Cargo.toml").to_owned()))
    });
    named.collect()
}

/// What is wrong with the arguments of `cargo test` by which a mutant names its test.
fn wrong_test(test: &str, packages: &[(String, String)], all: &[File]) -> Option<String> {
    let words: Vec<&str> = test.split(' ').collect();
    let (package, rest) = match words[..] {
        ["-p", package, ref rest @ ..] => (package, rest),
        _ => return Some("does not begin with `-p PACKAGE`".to_owned()),
    };
    let Some((_, folder)) = packages.iter().find(|(name, _)| name == package) else {
        return Some(format!("there is no package {package}"));
    };
    let (at, rest) = match *rest {
        ["--test", program, ref rest @ ..] => {
            let manifest = all.iter().find(|file| file.path == format!("{folder}Cargo.toml"));
            let declared = format!("[[test]]\nname = \"{program}\"");
            if !manifest.is_some_and(|file| file.text.contains(&declared)) {
                return Some(format!("{package} has no test program {program}"));
            }
            (format!("{folder}tests/"), rest)
        }
        // A program's own tests, of what nobody links.
        ["--lib", ref rest @ ..] | ["--bin", _, ref rest @ ..] => (format!("{folder}src/"), rest),
        _ => return Some("names no `--test PROGRAM`, `--lib` or `--bin PROGRAM`".to_owned()),
    };
    let mut program = all.iter().filter(|file| file.path.starts_with(&at)).peekable();
    if program.peek().is_none() {
        return Some(format!("there is no {at}"));
    }
    match *rest {
        [] => None,
        ["--", "--exact", path] => {
            let name = path.rsplit("::").next().unwrap_or(path);
            let found = program.any(|file| has_test(file, name));
            (!found).then(|| format!("there is no test {name} in {at}"))
        }
        ["--", part] if part.ends_with("::") => None,
        _ => Some("does not end in `-- --exact TEST`".to_owned()),
    }
}

/// What is wrong with a mutant.
fn wrong(patch: &Patch, packages: &[(String, String)], all: &[File]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut lines = patch.text.lines();
    let mut field = |name: &str| {
        let said = lines.next().and_then(|line| line.strip_prefix(name));
        said.and_then(|said| said.strip_prefix(": ")).unwrap_or_default().trim().to_owned()
    };
    let [invariant, group, test] = ["Invariant", "Group", "Test"].map(&mut field);
    if invariant.is_empty() {
        wrong.push("says no invariant in its first line".to_owned());
    }
    if !GROUPS.contains(&group.as_str()) {
        wrong.push(format!("is of no group: {group}"));
    }
    wrong.extend(wrong_test(&test, packages, all));
    if lines.next() != Some("---") {
        wrong.push("has no line `---` after its test".to_owned());
    }
    let rest = || patch.text.lines();
    if !rest().any(|line| line.starts_with("@@ ")) {
        wrong.push("changes nothing".to_owned());
    }
    for changed in rest().filter_map(|line| line.strip_prefix("--- a/")) {
        if !root().join(changed).is_file() {
            wrong.push(format!("changes {changed}, which is not there"));
        }
        if Path::new(changed).components().any(|part| part.as_os_str() == "tests") {
            wrong.push(format!("changes a test: {changed}"));
        }
    }
    wrong.into_iter().map(|what| format!("{}: {what}", patch.name)).collect()
}

#[test]
fn every_mutant_says_what_it_breaks_and_which_test_must_fail() {
    let (all, patches) = (files(), patches());
    let packages = packages(&all);
    let wrong: Vec<String> =
        patches.iter().flat_map(|patch| wrong(patch, &packages, &all)).collect();
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
    assert!(patches.len() >= MUTANTS_MIN, "only {} mutants", patches.len());
    for group in GROUPS {
        let line = format!("Group: {group}");
        let count = patches.iter().filter(|patch| patch.text.lines().any(|l| l == line)).count();
        assert!(count > 0, "no mutant is of the group {group}");
    }
}

#[test]
fn a_mutant_can_be_wrong() {
    let all = [
        File {
            path: "a/Cargo.toml".to_owned(),
            text: "[package]\nname = \"a\"\n[[test]]\nname = \"t\"\n".to_owned(),
        },
        File {
            path: "a/tests/t/one.rs".to_owned(),
            text: "#[test]\nfn it_holds() {}\nfn no_test() {}\n".to_owned(),
        },
        File { path: "a/src/lib.rs".to_owned(), text: "#[test]\nfn inside() {}\n".to_owned() },
    ];
    let packages = packages(&all);
    let good = "Invariant: one\nGroup: state\nTest: -p a --test t -- --exact one::it_holds\n---\n\
                --- a/Cargo.toml\n+++ b/Cargo.toml\n@@ -1 +1 @@\n-a\n+b\n";
    let check = |text: &str| {
        let patch = Patch { name: "m".to_owned(), text: text.to_owned() };
        wrong(&patch, &packages, &all)
    };
    assert_eq!(check(good), [""; 0]);
    assert_eq!(check(&good.replace("--test t -- --exact one::it_holds", "--test t")), [""; 0]);
    assert_eq!(check(&good.replace("--test t", "--lib").replace("it_holds", "inside")), [""; 0]);
    for (from, to) in [
        ("Invariant: one", "Invariant:"),
        ("Invariant: one\n", ""),
        ("state", "states"),
        ("-p a ", ""),
        ("-p a", "-p b"),
        ("--test t", "--test u"),
        ("--test t", "--bin t"),
        ("it_holds", "no_test"),
        ("it_holds", "gone"),
        ("--exact ", ""),
        ("\n---\n", "\n"),
        ("@@ ", ""),
        ("--- a/Cargo.toml", "--- a/Gone.toml"),
        ("--- a/Cargo.toml", "--- a/tests/tidy.rs"),
    ] {
        let text = good.replace(from, to);
        assert_ne!(text, good, "{from} stands in it");
        assert!(!check(&text).is_empty(), "{from} -> {to}");
    }
}

/// The mutants that a paragraph names: `(mutant: ..)` or `(mutants: .., ..)`.
fn named(said: &str) -> Vec<&str> {
    let parts = said.split("(mutant").skip(1);
    let lists = parts.filter_map(|part| part.trim_start_matches('s').strip_prefix(": "));
    let lists = lists.filter_map(|list| list.split_once(')').map(|(names, _)| names));
    lists.flat_map(|names| names.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn every_invariant_names_its_mutants() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let there: BTreeSet<String> = patches().into_iter().map(|patch| patch.name).collect();
    for said in invariants(&text) {
        let names = named(&said);
        assert!(!names.is_empty(), "no mutant: {said}");
        let gone: Vec<_> = names.iter().filter(|name| !there.contains(**name)).collect();
        assert!(gone.is_empty(), "no such mutant: {gone:?}: {said}");
    }
}

#[test]
fn mutants_are_read_from_what_an_invariant_says() {
    assert_eq!(named("one `a_test` (mutant: `x-y`)."), ["x-y"]);
    assert_eq!(named("(mutants: `a`, `b`). two (mutant: `c`)"), ["a", "b", "c"]);
    for none in ["`a`", "(mutants `a`)", "(mutants: a)", "(mutants: `a`"] {
        assert_eq!(named(none), [""; 0], "{none}");
    }
}
