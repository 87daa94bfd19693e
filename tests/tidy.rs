//! The shape of the workspace, as far as neither clippy nor rustfmt sees it: who may depend on
//! whom, what kernel and policy may not name, how large files are, that each invariant has its test.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// Lines of a file: never more than.
const LINES_MAX: usize = 600;
/// The most lines of code that the monitor may have, without comments, blank lines and tests.
const KERNEL_LINES_MAX: usize = 9_000;
/// The most public items of a crate, and one more.
const PUBLIC: [(&str, usize); 2] = [("kernel/format/src/", 355), ("kernel/src/", 150)];
/// Crates in the kernel's tree, macros included.
const KERNEL_CRATES_MAX: usize = 30;
const ARCHITECTURE_LINES_MAX: usize = 240;

/// Folders at the root.
const FOLDERS_MAX: usize = 12;
/// Where no system may be named.
const PURE: [&str; 4] =
    ["kernel/format/src/", "kernel/src/", "policy/src/", "policy/analysis/src/"];

/// Files of the kernel that may name floating point types, and why. Floats decide nothing.
const FLOATS: [(&str, &str); 3] = [
    ("kernel/format/src/cbor/", "the codec reads and writes them"),
    ("kernel/format/src/json/", "a literal with a point or an exponent is one"),
    ("kernel/src/call/arguments.rs", "an argument may be one"),
];

/// What a crate may depend on among ours. Crates below `APPS` stand on top and may use all.
const ARROWS: [(&str, &[&str]); 10] = [
    (
        "syscap",
        &[
            "syscap-analysis",
            "syscap-audit",
            "syscap-format",
            "syscap-kernel",
            "syscap-launch",
            "syscap-policy",
            "syscap-syscalls",
            "syscap-verify",
        ],
    ),
    ("syscap-conformance", &["syscap-format", "syscap-verify"]),
    ("syscap-verify", &["syscap-format"]),
    ("syscap-audit", &["syscap-format", "syscap-kernel"]),
    ("syscap-analysis", &["syscap-format", "syscap-kernel", "syscap-policy"]),
    ("syscap-policy", &["syscap-format", "syscap-kernel"]),
    ("syscap-syscalls", &["syscap-format", "syscap-kernel", "syscap-launch"]),
    ("syscap-kernel", &["syscap-format"]),
    ("syscap-launch", &[]),
    ("syscap-format", &[]),
];
const APPS: [&str; 8] = [
    "apps/",
    "benches/compare/",
    "tests/conformance/generate/",
    "tests/conformance/subject/",
    "tests/few_features/",
    "tests/fuzz/",
    "tests/no_std_probe/",
    "tests/support/",
];
const FORMAT_DEPENDENCIES: [&str; 4] = ["blake3", "ed25519-dalek", "sha2", "thiserror"];

/// A file of the tree: its path from the root, and its text.
struct File {
    path: String,
    text: String,
}

#[test]
fn no_file_is_too_long() {
    let files = files();
    assert!(files.len() > 100, "only {} files were found", files.len());
    let lines = |file: &File| file.text.lines().count();
    let long: Vec<String> = files
        .iter()
        .filter(|file| file.is_rust() && lines(file) > LINES_MAX)
        .map(|file| format!("{}: {} lines", file.path, lines(file)))
        .collect();
    assert_eq!(long, [""; 0], "more than {LINES_MAX} lines");
}

#[test]
fn kernel_and_policy_name_no_system() {
    let wrong: Vec<String> = files().iter().flat_map(ambient).collect();
    assert_eq!(wrong, [""; 0]);
    let check = |path: &str, text: &str| {
        !ambient(&File { path: path.to_owned(), text: text.to_owned() }).is_empty()
    };
    assert!(check("kernel/src/a.rs", "use std::fs;"));
    assert!(check("policy/src/a.rs", "fn f(now: Instant) {}"));
    assert!(check("policy/analysis/src/a.rs", "unsafe {}"));
    assert!(check("kernel/src/a.rs", "f(\"a // b\", std::mem::take(c))"));
    assert!(check("kernel/format/src/budget.rs", "fn f() -> f64 {"));
    assert!(!check("kernel/format/src/cbor/decode.rs", "fn float() -> f64 {"));
    assert!(!check(
        "kernel/src/a.rs",
        "//! As `std::fs` would. // unsafe\nlet a = \"a std word\";"
    ));
}

/// A rule for a folder that is not there any more holds nothing.
#[test]
fn every_rule_matches_a_file() {
    let files = files();
    let folders = PURE.into_iter().chain(APPS).chain(FLOATS.map(|(path, _)| path));
    for folder in folders.chain(PUBLIC.map(|(folder, _)| folder)) {
        let found = files.iter().any(|file| file.path.starts_with(folder));
        assert!(found, "no file lies in {folder}");
    }
}

#[test]
fn the_root_has_few_folders() {
    let entries = fs::read_dir(root()).expect("a folder").flatten();
    let seen = entries.filter(|entry| entry.path().is_dir());
    let names: BTreeSet<String> = seen
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.') && name != "target")
        .collect();
    assert!(names.len() <= FOLDERS_MAX, "{names:?}");
}

/// What kernel, policy and analysis may not name: the system, its clocks, floats, `unsafe`.
fn ambient(file: &File) -> Vec<String> {
    if !PURE.iter().any(|folder| file.path.starts_with(folder)) {
        return Vec::new();
    }
    let banned = ["std", "SystemTime", "Instant", "unsafe"];
    let mut wrong = file.find("not for kernel and policy", |line| {
        banned.iter().any(|word| has_word(&code(line), word))
    });
    if !FLOATS.iter().any(|(allowed, _)| file.path.starts_with(allowed)) {
        wrong.extend(file.find("floats decide nothing", |line| {
            ["f32", "f64"].iter().any(|word| has_word(&code(line), word))
        }));
    }
    wrong
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The lines that `is_wrong`, up to a module of tests.
    fn find(&self, what: &str, is_wrong: impl Fn(&str) -> bool) -> Vec<String> {
        let lines = self.text.lines().enumerate();
        let lines = lines.take_while(|(_, line)| line.trim() != "#[cfg(test)]");
        let wrong = lines.filter(|(_, line)| is_wrong(line));
        wrong
            .map(|(at, line)| format!("{}:{}: {what}: {}", self.path, at + 1, line.trim()))
            .collect()
    }
}

/// A line without its comment and without what stands in quotes.
fn code(line: &str) -> String {
    let mut code = String::new();
    let line = line.replace("'\"'", "''").replace("\\\"", "");
    for (place, part) in line.split('"').enumerate() {
        let inside = place % 2 == 1;
        if inside {
            code.push('"');
        } else if let Some((before, _)) = part.split_once("//") {
            code.push_str(before);
            break;
        } else {
            code.push_str(part);
        }
    }
    code
}

fn has_word(line: &str, word: &str) -> bool {
    let of_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(place, _)| {
        let before = line[..place].chars().next_back();
        let after = line[place + word.len()..].chars().next();
        !before.is_some_and(of_name) && !after.is_some_and(of_name)
    })
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All sources, manifests, documents and scripts.
fn files() -> Vec<File> {
    let mut files = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && name != ".git" {
                    folders.push(path);
                }
                continue;
            }
            let short = path.strip_prefix(root()).expect("below").to_string_lossy().into_owned();
            let script = short.starts_with("scripts/") || short.starts_with(".ci/");
            let kinds = ["rs", "toml", "md", "yml", "yaml"];
            let known = path.extension().is_some_and(|kind| kinds.iter().any(|k| kind == *k));
            if (known || script)
                && let Ok(text) = fs::read_to_string(&path)
            {
                files.push(File { path: short, text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// A manifest's tables: what stands under each heading.
fn tables(text: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut tables: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut heading = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            heading = name.to_owned();
            tables.entry(heading.clone()).or_default();
        } else if let Some((key, value)) = line.split_once('=') {
            let key = key.trim().trim_end_matches(".workspace").trim_matches('"').to_owned();
            tables.entry(heading.clone()).or_default().insert(key, value.trim().to_owned());
        }
    }
    tables
}

/// Everything that a package's users build: also for one target or at build time.
fn dependencies(text: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (heading, table) in tables(text) {
        let parts: Vec<&str> = heading.split('.').collect();
        let last = parts.last().copied().unwrap_or_default();
        if parts.first() == Some(&"workspace") {
            continue;
        }
        if last == "dependencies" || last == "build-dependencies" {
            all.extend(table);
        } else if parts.contains(&"dependencies") {
            all.insert(last.to_owned(), format!("{table:?}"));
        }
    }
    all
}

#[test]
fn arrows_point_at_the_kernel() {
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for file in files().iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        wrong.extend(wrong_arrow(file));
        seen.insert(package(&file.text));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for (name, _) in ARROWS {
        assert!(seen.contains(name), "no manifest of {name}");
    }
    let text = fs::read_to_string(root().join("syscalls/Cargo.toml")).expect("a manifest");
    for more in ["syscap-policy.workspace", "kernel-support.workspace"] {
        let text = text.replace("[dependencies]\n", &format!("[dependencies]\n{more} = true\n"));
        let file = File { path: "syscalls/Cargo.toml".to_owned(), text };
        assert!(wrong_arrow(&file).is_some(), "{more}");
    }
}

/// The name of a manifest's package.
fn package(text: &str) -> String {
    tables(text)["package"]["name"].trim_matches('"').to_owned()
}

/// What is wrong with what a crate depends on among ours.
fn wrong_arrow(File { path, text }: &File) -> Option<String> {
    if APPS.iter().any(|folder| path.starts_with(folder)) {
        return None;
    }
    let name = package(text);
    let is_ours = |name: &String| name.starts_with("syscap") || name.ends_with("-support");
    let ours: Vec<String> = dependencies(text).into_keys().filter(is_ours).collect();
    match ARROWS.iter().find(|(from, _)| *from == name) {
        Some((_, to)) if ours == *to => None,
        Some((_, to)) => Some(format!("{name} -> {ours:?}, and not {to:?}")),
        None => Some(format!("{name} ({path}) has no place among the arrows")),
    }
}

#[test]
fn the_kernel_rests_on_four_crates() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("a manifest");
    let kernel = dependencies(&read("kernel/Cargo.toml"));
    assert_eq!(kernel.into_keys().collect::<Vec<_>>(), ["syscap-format", "thiserror"]);
    let found = dependencies(&read("kernel/format/Cargo.toml"));
    assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), FORMAT_DEPENDENCIES);
    let workspace = &tables(&read("Cargo.toml"))["workspace.dependencies"];
    for (name, said) in found {
        assert_eq!(said, "true", "{name} is taken from the workspace, without features");
        let said = &workspace[&name];
        assert!(said.contains("default-features = false"), "{name} has default features");
        assert!(!said.contains(", features"), "{name} has features");
    }
}

#[test]
fn the_kernels_tree_is_small() {
    let output = host_support::cargo()
        .current_dir(root())
        .args(["tree", "--package", "syscap-kernel", "--edges", "normal"])
        .args(["--offline", "--prefix", "none"])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let crates: BTreeSet<&str> = listed.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    assert!(crates.len() > FORMAT_DEPENDENCIES.len(), "the tree was not read: {crates:?}");
    assert!(crates.len() <= KERNEL_CRATES_MAX, "{} crates: {crates:#?}", crates.len());
    for banned in
        ["serde", "serde_core", "serde_json", "tokio", "openssl", "getrandom", "rustix", "rand"]
    {
        let found = crates.iter().find(|name| name.split(' ').next() == Some(banned));
        assert_eq!(found, None, "not for the kernel");
    }
}

/// A host that has a store of its own builds no database.
#[test]
fn the_database_can_be_left_out() {
    let tree = |package: &str| {
        let output = host_support::cargo()
            .current_dir(root())
            .args(["tree", "--package", package, "--edges", "normal", "--no-default-features"])
            .args(["--offline", "--prefix", "none"])
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for package in ["syscap", "syscap-verify"] {
        let listed = tree(package);
        assert!(listed.contains("syscap-format"), "the tree was not read: {listed}");
        assert!(!listed.contains("sqlite"), "{package}: {listed}");
    }
    assert!(!tree("syscap-verify").contains("syscap-kernel"), "it is other code than the kernel's");
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

#[test]
fn every_invariant_names_its_test() {
    let Ok(text) = fs::read_to_string(root().join("ARCHITECTURE.md")) else {
        panic!("ARCHITECTURE.md is missing");
    };
    let lines = text.lines().count();
    assert!(lines <= ARCHITECTURE_LINES_MAX, "ARCHITECTURE.md has {lines} lines");
    let rust: Vec<File> = files().into_iter().filter(File::is_rust).collect();
    let invariants = invariants(&text);
    assert!(invariants.len() >= 5, "only {} invariants were found", invariants.len());
    let unproved: Vec<&String> =
        invariants.iter().filter(|said| !names_a_test(said, &rust)).collect();
    assert!(unproved.is_empty(), "no test in backticks, or none that exists:\n{unproved:#?}");
}

/// The paragraphs that begin with the word, each as one line.
fn invariants(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut inside = false;
    for line in text.lines().map(|line| line.trim_start_matches(['-', '*', ' '].as_slice())) {
        if line.starts_with("Invariant:**") {
            found.push(format!("**{line}"));
            inside = true;
        } else if line.trim().is_empty() {
            inside = false;
        } else if let Some(last) = found.last_mut().filter(|_| inside) {
            last.push(' ');
            last.push_str(line);
        }
    }
    found
}

/// A test file or a test function stands in backticks, and every test file that does exists.
fn names_a_test(said: &str, rust: &[File]) -> bool {
    let quoted: Vec<&str> = said.split('`').skip(1).step_by(2).collect();
    let is_path = |name: &&str| name.contains("tests/") && name.ends_with(".rs");
    let is_there = |name: &str| rust.iter().any(|file| file.path == name);
    let is_test = |name: &str| rust.iter().any(|file| has_test(file, name));
    let paths: Vec<&str> = quoted.iter().copied().filter(|name| is_path(name)).collect();
    let named = !paths.is_empty() || quoted.iter().any(|name| is_test(name));
    named && paths.into_iter().all(is_there)
}

/// Whether a test function of that name stands in a file.
fn has_test(file: &File, name: &str) -> bool {
    let function = format!("fn {name}(");
    let after = file.text.split("#[test]").skip(1);
    let mut head = after.filter_map(|text| text.split_once('{').map(|(head, _)| head));
    head.any(|head| head.contains(&function))
}

/// The package's name on a public index is not ours: no page has anybody fetch it by that.
#[test]
fn nothing_of_ours_is_fetched_by_name() {
    let listed = std::process::Command::new("git").args(["ls-files", "-z"]).output().unwrap();
    let named = |text: &str| {
        let words = ["pip install", "pip3 install", "uv add", "npm i", "npm install"];
        words.iter().any(|word| text.contains(&format!("{word} syscap")))
    };
    for file in String::from_utf8(listed.stdout).unwrap().split_terminator('\0') {
        let text = fs::read(file).unwrap_or_default();
        assert!(!named(&String::from_utf8_lossy(&text)), "{file}");
    }
}
