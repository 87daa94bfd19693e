//! House style and the shape of the workspace, as far as a machine can check them.

mod mutants;
mod shape;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Lines of a file: as a rule, and never more than.
const LINES_USUAL: usize = 250;
const LINES_MAX: usize = 600;
const COLUMNS_MAX: usize = 100;
/// Crates in the kernel's tree, macros included.
const KERNEL_CRATES_MAX: usize = 30;
const ARCHITECTURE_LINES_MAX: usize = 240;

/// Files of the kernel that may name floating point types, and why. Floats decide nothing.
const FLOATS: [(&str, &str); 3] = [
    ("format/src/cbor/", "the codec reads and writes them"),
    ("format/src/json/", "a literal with a point or an exponent is one"),
    ("kernel/src/args.rs", "an argument may be one"),
];

/// What a crate may depend on among ours. Crates below `APPS` stand on top and may use all.
const ARROWS: [(&str, &[&str]); 11] = [
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
    ("syscap-verify", &["syscap-format"]),
    ("syscap-audit", &["syscap-format", "syscap-kernel"]),
    ("syscap-analysis", &["syscap-format", "syscap-kernel", "syscap-policy"]),
    ("syscap-policy", &["syscap-format", "syscap-kernel"]),
    ("syscap-syscalls", &["syscap-format", "syscap-kernel", "syscap-launch"]),
    ("syscap-conformance", &["syscap-format", "syscap-kernel"]),
    ("syscap-kernel", &["syscap-format"]),
    ("syscap-commands", &["syscap-syscalls"]),
    ("syscap-launch", &[]),
    ("syscap-format", &[]),
];
const APPS: [&str; 6] =
    ["apps/", "benches/compare/", "bindings/", "fuzz/", "tests/no_std_probe/", "tests/support/"];
const FORMAT_DEPENDENCIES: [&str; 4] = ["blake3", "ed25519-dalek", "sha2", "thiserror"];

/// A file of the tree: its path from the root, and its text.
struct File {
    path: String,
    text: String,
}

/// Says what is wrong with a file, a line each.
type Rule = fn(&File) -> Vec<String>;

const RULES: [(&str, Rule); 7] = [
    ("length", length),
    ("line", line),
    ("word", word),
    ("discarded", discarded),
    ("ambient", ambient),
    ("name", name),
    ("machine", machine),
];

#[test]
fn every_file_is_tidy() {
    let files = files();
    assert!(files.len() > 100, "only {} files were found", files.len());
    let wrong: Vec<String> =
        files.iter().flat_map(|file| RULES.iter().flat_map(|(_, rule)| rule(file))).collect();
    for file in files.iter().filter(|file| file.is_rust()) {
        let lines = file.text.lines().count();
        if lines > LINES_USUAL {
            println!("over {LINES_USUAL} lines: {} ({lines})", file.path);
        }
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_rule_can_fail() {
    let cases = [
        ("length", "src/a.rs", "\n".repeat(LINES_MAX + 1)),
        ("line", "src/a.rs", "x".repeat(COLUMNS_MAX + 1)),
        ("line", "src/a.rs", "// caf\u{e9}".to_owned()),
        ("word", "src/a.rs", concat!("to", "do!()").to_owned()),
        ("word", "docs/a.md", concat!("FIX", "ME: later").to_owned()),
        ("word", "tests/a.rs", concat!("#[ig", "nore]").to_owned()),
        ("discarded", "audit/src/a.rs", "    let _ = f();".to_owned()),
        ("ambient", "kernel/src/a.rs", "use std::fs;".to_owned()),
        ("ambient", "policy/src/a.rs", "fn f(now: Instant) {}".to_owned()),
        ("ambient", "analysis/src/a.rs", "fn f(now: Instant) {}".to_owned()),
        ("discarded", "analysis/src/a.rs", "    let _ = f();".to_owned()),
        ("ambient", "kernel/src/a.rs", "unsafe {}".to_owned()),
        ("ambient", "kernel/src/a.rs", "f(\"a // b\", std::mem::take(c))".to_owned()),
        ("ambient", "format/src/budget.rs", "fn f() -> f64 {".to_owned()),
        ("name", "src/utils.rs", String::new()),
        ("name", "src/a.rs", "mod helpers;".to_owned()),
        ("machine", "docs/a.md", concat!("see /ho", "me/me/notes").to_owned()),
        ("machine", "a/Cargo.toml", concat!("path = \"/wo", "rk/x\"").to_owned()),
        ("machine", "a/Cargo.toml", concat!("registry = \"https://pypi", ".org\"").to_owned()),
    ];
    for (rule, path, text) in cases {
        let (_, check) = RULES.iter().find(|(name, _)| *name == rule).expect("a rule");
        let file = File { path: path.to_owned(), text };
        assert!(!check(&file).is_empty(), "{rule} finds nothing in {path}: {}", file.text);
    }
    let fine = [
        ("kernel/src/a.rs", "//! As `std::fs` would. // unsafe\nlet text = \"a std word\";"),
        ("format/src/cbor/decode.rs", "fn float() -> f64 {"),
        ("audit/src/a.rs", "#[cfg(test)]\nmod tests {\n    let _ = f();\n}"),
        ("syscalls/tests/a.rs", concat!("\"proc/1/ro", "ot/etc\"")),
    ];
    for (path, text) in fine {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        let wrong: Vec<String> = RULES.iter().flat_map(|(_, rule)| rule(&file)).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}

fn length(file: &File) -> Vec<String> {
    let lines = file.text.lines().count();
    let long = lines > LINES_MAX && file.is_rust();
    long.then(|| format!("{}: {lines} lines, more than {LINES_MAX}", file.path))
        .into_iter()
        .collect()
}

fn line(file: &File) -> Vec<String> {
    let wide = |line: &str| line.chars().count() > COLUMNS_MAX;
    let mut wrong = file.find("more than 100 columns", |line| file.is_rust() && wide(line));
    wrong.extend(file.find("not ASCII", |line| file.is_rust() && !line.is_ascii()));
    wrong
}

/// Words that say that something is not done.
fn word(file: &File) -> Vec<String> {
    let macros = [concat!("to", "do!"), concat!("unimpl", "emented!"), concat!("db", "g!")];
    let ignored = concat!("#[ig", "nore");
    let later = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    file.find("a word of unfinished work", |line| {
        macros.iter().any(|word| line.contains(word))
            || later.iter().any(|word| has_word(line, word))
            || line.contains(ignored)
    })
}

/// Results thrown away, outside tests.
fn discarded(file: &File) -> Vec<String> {
    let governed = [
        "format/src/",
        "kernel/src/",
        "policy/src/",
        "analysis/src/",
        "audit/src/",
        "syscalls/src/",
        "src/",
    ];
    if !governed.iter().any(|folder| file.path.starts_with(folder)) {
        return Vec::new();
    }
    file.find("a value is discarded", |line| line.trim_start().starts_with("let _ ="))
}

/// What kernel, policy and analysis may not name: the system, its clocks, floats, `unsafe`.
fn ambient(file: &File) -> Vec<String> {
    if !["format/src/", "kernel/src/", "policy/src/", "analysis/src/"]
        .iter()
        .any(|folder| file.path.starts_with(folder))
    {
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

/// Modules that are named for nothing.
fn name(file: &File) -> Vec<String> {
    let empty = ["utils", "util", "helpers", "helper", "misc"];
    let stem = Path::new(&file.path).components().filter_map(|part| part.as_os_str().to_str());
    let in_path = stem.map(|part| part.trim_end_matches(".rs")).any(|part| empty.contains(&part));
    let mut wrong = file.find("a module's name says nothing", |line| {
        empty.iter().any(|word| code(line).trim() == format!("mod {word};"))
    });
    if in_path {
        wrong.push(format!("{}: the name says nothing", file.path));
    }
    wrong
}

/// Paths of one machine, and where packages come from.
fn machine(file: &File) -> Vec<String> {
    let folders = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    let hosts = [
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("npmjs", ".org"),
        concat!("proxy.go", "lang"),
    ];
    let absolute = |line: &str| {
        folders.iter().any(|folder| {
            line.match_indices(folder).any(|(place, _)| {
                let before = line[..place].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "_.-/)}".contains(c))
            })
        })
    };
    file.find("belongs to one machine or registry", |line| {
        absolute(line) || hosts.iter().any(|host| line.contains(host))
    })
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
    for File { path, text } in files().into_iter().filter(|f| f.path.ends_with("Cargo.toml")) {
        let name = tables(&text)["package"]["name"].trim_matches('"').to_owned();
        if APPS.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let is_ours = |name: &String| name.starts_with("syscap") || name.ends_with("-support");
        let ours: Vec<String> = dependencies(&text).into_keys().filter(is_ours).collect();
        match ARROWS.iter().find(|(from, _)| *from == name) {
            Some((_, to)) if ours == *to => {}
            Some((_, to)) => wrong.push(format!("{name} -> {ours:?}, and not {to:?}")),
            None => wrong.push(format!("{name} ({path}) has no place among the arrows")),
        }
        seen.insert(name);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for (name, _) in ARROWS.iter().filter(|(name, _)| *name != "syscap-conformance") {
        assert!(seen.contains(*name), "no manifest of {name}");
    }
}

#[test]
fn the_kernel_rests_on_four_crates() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("a manifest");
    let kernel = dependencies(&read("kernel/Cargo.toml"));
    assert_eq!(kernel.into_keys().collect::<Vec<_>>(), ["syscap-format", "thiserror"]);
    let found = dependencies(&read("format/Cargo.toml"));
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
    let output = Command::new(env!("CARGO"))
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
        let output = Command::new(env!("CARGO"))
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
fn manifests_agree_with_each_other() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("a manifest");
    let probe = dependencies(&read("tests/no_std_probe/Cargo.toml"));
    assert_eq!(
        probe.into_keys().collect::<Vec<_>>(),
        ["syscap-analysis", "syscap-format", "syscap-kernel", "syscap-policy"]
    );
    assert_eq!(tables("[a.b]\nc.workspace = true\n")["a.b"]["c"], "true");
    let other = "[dependencies]\na = 1\n[target.x.dependencies]\nb = 1\n[dependencies.c]\nd = 1\n";
    assert_eq!(dependencies(other).into_keys().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(
        dependencies("[dev-dependencies]\na = 1\n[workspace.dependencies]\nb = 1\n"),
        [].into()
    );
}

/// The packages of a lock file, and what each rests on.
fn locked(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let quoted =
        |line: &str| line.split('"').nth(1).and_then(|it| it.split(' ').next()).map(str::to_owned);
    let package = |part: &str| {
        let name = part.lines().find(|line| line.starts_with("name = ")).and_then(quoted)?;
        let rests = part.lines().filter(|line| line.starts_with(" \"")).filter_map(quoted);
        Some((name, rests.collect()))
    };
    text.split("[[package]]").filter_map(package).collect()
}

/// What stands apart from the workspace has lock files of its own, which nothing else builds by.
#[test]
fn other_lock_files_know_what_the_crates_rest_on() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("a file");
    let mut missing = Vec::new();
    for lock in ["fuzz/Cargo.lock", "benches/compare/Cargo.lock"] {
        let locked = locked(&read(lock));
        for file in files().iter().filter(|file| file.path.ends_with("Cargo.toml")) {
            let package = tables(&file.text).remove("package").unwrap_or_default();
            let name = package.get("name").map(|name| name.trim_matches('"').to_owned());
            let Some(has) = name.and_then(|name| locked.get(&name)) else { continue };
            // Others may be optional, and are there where a feature wants them.
            let own = |of: &String| of.starts_with("syscap") && !has.contains(of);
            let rests = dependencies(&file.text).into_keys().filter(own);
            missing.extend(rests.map(|of| format!("{lock}: {} rests on {of}", file.path)));
        }
    }
    assert_eq!(missing, [""; 0], "`cargo update --workspace` there");
    let two = "[[package]]\nname = \"a\"\ndependencies = [\n \"b 1.0\",\n]\n";
    assert_eq!(locked(two), BTreeMap::from([("a".to_owned(), BTreeSet::from(["b".to_owned()]))]));
}

#[test]
fn the_oldest_compiler_is_named() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap_or_default();
    let manifest = tables(&read("Cargo.toml"));
    assert_eq!(manifest["workspace.package"]["rust-version"], "\"1.95\"");
    for file in files().iter().filter(|file| file.path.ends_with("/Cargo.toml")) {
        let package = &tables(&file.text)["package"];
        let inherited = package.get("rust-version").is_some_and(|said| said == "true");
        let outside = ["benches/compare/", "fuzz/", "tests/no_std_probe/"];
        let outside = outside.iter().any(|folder| file.path.starts_with(folder));
        assert!(inherited || outside, "{} does not take `rust-version` over", file.path);
    }
    let readme = read("README.md");
    let said = readme.lines().any(|line| line.contains("MSRV") && line.contains("1.95"));
    assert!(said, "README.md does not say `MSRV` and `1.95` in one line");
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

#[test]
fn an_invariant_can_lack_its_test() {
    let rust = [File {
        path: "tests/crash.rs".to_owned(),
        text: "#[test]\nfn it_holds() {}\nfn not_a_test() {}\n".to_owned(),
    }];
    let said = invariants("**Invariant:** one\n`it_holds`\n\nx `y`\n**Invariant:** two `z`\n");
    assert_eq!(said, ["**Invariant:** one `it_holds`", "**Invariant:** two `z`"]);
    assert!(names_a_test(&said[0], &rust));
    assert!(names_a_test("see `tests/crash.rs`", &rust));
    for bad in
        ["`z`", "it_holds", "`tests/gone.rs`", "`not_a_test`", "`tests/crash.rs` `tests/no.rs`"]
    {
        assert!(!names_a_test(bad, &rust), "{bad}");
    }
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
