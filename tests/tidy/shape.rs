//! The shape of the crates: circles of files, lines of code, public items, look-ups of a call.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::{File, code, files};

/// Files of a crate of which each uses a name of the next, all around: at most this many.
const CIRCLE_MAX: usize = 3;

/// The most lines of code that the monitor may have, without comments, blank lines and tests.
const KERNEL_LINES_MAX: usize = 9_000;
/// The most public items of a crate, and one more.
const PUBLIC: [(&str, usize); 2] = [("format/src/", 355), ("kernel/src/", 150)];

/// What a call is about is found once, where it comes in, and carried: how often these stand in
/// the files that a call passes through.
const LOOKUPS: [(&str, usize); 6] = [
    ("registry.find(", 1),
    (".grants.get(", 1),
    ("tokens.view(", 1),
    ("sessions.get(&number)", 1),
    ("tokens.body(", 0),
    ("tokens.lacks(", 0),
];
/// The files that a call passes through, from its bytes to its intent.
const OF_A_CALL: [&str; 6] = [
    "kernel/src/args.rs",
    "kernel/src/call/",
    "kernel/src/context.rs",
    "kernel/src/decide.rs",
    "kernel/src/diagnostics.rs",
    "kernel/src/kernel/admit.rs",
];

#[test]
fn no_circle_of_files_is_large() {
    let files = files();
    let crates: BTreeSet<String> = files.iter().filter_map(crate_of).collect();
    let mut wrong = Vec::new();
    for of in crates {
        let largest = circles(&files, &of).into_iter().max_by_key(Vec::len).unwrap_or_default();
        println!("{of}: {} {largest:?}", largest.len());
        if largest.len() > CIRCLE_MAX {
            wrong.push(format!("{of}: more than {CIRCLE_MAX}: {largest:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_circle_of_files_is_found() {
    let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
    let files = [
        file("a/src/lib.rs", "mod b;\nmod c;\npub use b::B;\n// crate::c::C"),
        file("a/src/b.rs", "use crate::{c::d::{D, E}, other};\nuse std::fmt;"),
        file("a/src/c/mod.rs", "mod d;\npub(crate) struct C;\nfn f() { crate::b::g(\"x\") }"),
        file("a/src/c/d.rs", "use super::C;\n#[cfg(test)]\nmod tests { use crate::B; }"),
    ];
    let found = circles(&files, "a/src/");
    assert_eq!(found, [["a/src/b.rs", "a/src/c/d.rs", "a/src/c/mod.rs"].map(str::to_owned)]);
    assert_eq!(circles(&files[..2], "a/src/"), [[""; 0]; 0]);
}

#[test]
fn the_kernel_is_small() {
    let files = files();
    let kernel = files.iter().filter(|file| file.path.starts_with("kernel/src/"));
    let lines: usize = kernel.map(|file| lines_of_code(&file.text)).sum();
    println!("kernel: {lines} lines of code");
    assert!((1_000..=KERNEL_LINES_MAX).contains(&lines), "{lines} lines of code in the kernel");
    for (of, max) in PUBLIC {
        let own = files.iter().filter(|file| file.path.starts_with(of));
        let public = own.flat_map(|file| file.text.lines()).filter(|line| is_public(line)).count();
        println!("{of}: {public} public items");
        assert!((30..max).contains(&public), "{public} public items in {of}");
    }
    assert_eq!(lines_of_code("//! a\n\nfn f() {\n    // b\n}\n#[cfg(test)]\nmod tests {}\n"), 2);
    assert!(is_public("    pub struct A;") && is_public("pub const fn f() {}"));
    assert!(!is_public("    pub fn f(&self) {}") && !is_public("pub(crate) struct A;"));
}

#[test]
fn a_call_is_looked_up_once() {
    let files = files();
    let on_the_way: Vec<&File> = files
        .iter()
        .filter(|file| OF_A_CALL.iter().any(|place| file.path.starts_with(place)))
        .collect();
    assert!(on_the_way.len() >= 9, "only {} files", on_the_way.len());
    for (lookup, times) in LOOKUPS {
        let places: Vec<&str> = on_the_way
            .iter()
            .flat_map(|file| {
                file.text.lines().filter(|line| code(line).contains(lookup)).map(|_| &*file.path)
            })
            .collect();
        assert_eq!(places.len(), times, "{lookup} {places:?}");
    }
}

/// Lines that are neither blank nor a comment, up to a module of tests.
fn lines_of_code(text: &str) -> usize {
    let lines = text.lines().map(str::trim).take_while(|line| *line != "#[cfg(test)]");
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// Whether a line declares what a user of the crate can name: an item of a module, or one that a
/// macro declares there.
fn is_public(line: &str) -> bool {
    let inner = line.strip_prefix("    ").unwrap_or(line);
    let kinds = ["struct", "enum", "trait", "type", "mod"];
    let named = inner.strip_prefix("pub ").and_then(|rest| rest.split([' ', '!']).next());
    let upper = inner.strip_prefix("pub const ").and_then(|rest| rest.chars().next());
    named.is_some_and(|word| kinds.contains(&word))
        || line.starts_with("pub fn")
        || line.starts_with("pub const fn")
        || upper.is_some_and(|c| c.is_ascii_uppercase())
}

/// The folder of sources that a file lies in.
fn crate_of(file: &File) -> Option<String> {
    let skipped = ["tests/", "benches/", "examples/", "fuzz/"];
    if !file.is_rust() || skipped.iter().any(|folder| file.path.starts_with(folder)) {
        return None;
    }
    match file.path.find("src/") {
        Some(0) => Some("src/".to_owned()),
        Some(at) if file.path[..at].ends_with('/') => Some(file.path[..at + 4].to_owned()),
        _ => None,
    }
}

/// Files of a crate that use one another all around, two or more at a time.
fn circles(files: &[File], of: &str) -> Vec<Vec<String>> {
    let own: Vec<&File> =
        files.iter().filter(|file| crate_of(file).as_deref() == Some(of)).collect();
    let modules: BTreeMap<Vec<String>, &str> =
        own.iter().map(|file| (module(&file.path[of.len()..]), &*file.path)).collect();
    let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in &own {
        let here = module(&file.path[of.len()..]);
        let found = paths(&file.text, &here).into_iter().filter_map(|path| {
            (0..=path.len()).rev().find_map(|len| modules.get(&path[..len]).copied())
        });
        uses.insert(&file.path, found.filter(|to| *to != file.path).collect());
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|from| (*from, reach(from, &uses))).collect();
    let circle = |from: &str| -> Vec<String> {
        let both = reached[from].iter().filter(|to| reached[**to].contains(from));
        both.map(|to| (*to).to_owned()).collect()
    };
    let all: BTreeSet<Vec<String>> = uses.keys().map(|from| circle(from)).collect();
    all.into_iter().filter(|circle| circle.len() > 1).collect()
}

/// All that a file leads to, by one use or more.
fn reach<'a>(from: &str, uses: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = uses[from].iter().copied().collect();
    while let Some(file) = next.pop() {
        if reached.insert(file) {
            next.extend(&uses[file]);
        }
    }
    reached
}

/// The module that a file is.
fn module(path: &str) -> Vec<String> {
    let parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
    let parts = match parts.split_last() {
        Some((&("lib" | "main" | "mod"), above)) => above,
        _ => &parts[..],
    };
    parts.iter().map(|part| (*part).to_owned()).collect()
}

/// The paths into its own crate that a file names, from the crate's root.
fn paths(text: &str, here: &[String]) -> Vec<Vec<String>> {
    let lines = text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
    let text: String = lines.map(|line| code(line) + "\n").collect();
    let text = without_reexports(&text);
    let declared = text.lines().filter_map(|line| {
        let (before, name) = line.trim().strip_suffix(';')?.rsplit_once("mod ")?;
        (before.is_empty() || before.starts_with("pub")).then_some(name)
    });
    let starts = ["crate", "super", "self"].into_iter().chain(declared);
    let mut found = Vec::new();
    for start in starts.collect::<BTreeSet<_>>() {
        for (at, _) in text.match_indices(&format!("{start}::")) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || "_:$".contains(c)) {
                continue;
            }
            let root = match start {
                "crate" => Vec::new(),
                "self" => here.to_vec(),
                "super" => here[..here.len().saturating_sub(1)].to_vec(),
                child => [here, &[child.to_owned()]].concat(),
            };
            tree(&text[at + start.len() + 2..], root, &mut found);
        }
    }
    found
}

/// A text without what it gives on under another name: that is no use of it.
fn without_reexports(text: &str) -> String {
    let mut own = String::new();
    for statement in text.split_inclusive(';') {
        let mut start = statement.trim_start();
        // What it is conditional on does not matter.
        while let Some((_, rest)) =
            start.split_once('\n').filter(|(line, _)| line.starts_with("#["))
        {
            start = rest.trim_start();
        }
        let reexports = ["pub use ", "pub(crate) use ", "pub(super) use "];
        if !reexports.iter().any(|reexport| start.starts_with(reexport)) {
            own.push_str(statement);
        }
    }
    own
}

/// The paths of one tree of names: `a::b`, `a::{b, c::d}`. Gives back what follows it.
fn tree<'a>(text: &'a str, above: Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            match rest.strip_prefix('}') {
                Some(after) => return after,
                None if rest.is_empty() => return rest,
                None => {}
            }
            let after = tree(rest, above.clone(), found);
            let end = after.find([',', '}']).unwrap_or(after.len());
            rest = &after[end..];
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let path = match &text[..end] {
        "super" => above[..above.len().saturating_sub(1)].to_vec(),
        "self" => above,
        name => [&above[..], &[name.to_owned()]].concat(),
    };
    match text[end..].strip_prefix("::") {
        Some(rest) => tree(rest, path, found),
        None => {
            found.push(path);
            &text[end..]
        }
    }
}
