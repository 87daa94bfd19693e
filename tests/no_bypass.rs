//! No bypass, by the compiler: programs that must not compile.
//!
//! Each file of `tests/no_bypass/` is a program of a host that wants an effect without its
//! capability, or an answer without its record. Its head says `//! expect:` and an error code or
//! a lint, and every line that the compiler must object to ends in `//~` or follows one: an error
//! anywhere else, or of another code, is a failure, and so is a marked line that compiles.
//!
//! Beside them stand programs that must compile, link and run (`//! expect: ok`): `ok_*` show
//! that the check can tell right from wrong, `caveat_*` what types can't stop, as
//! `docs/caveats.md` says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use serde_json::Value;

/// A program, and what its head and its marks say.
struct Program {
    name: String,
    path: PathBuf,
    expect: String,
    marked: BTreeSet<u64>,
}

/// What the compiler said: each error's code and line.
type Errors = BTreeSet<(String, u64)>;

#[test]
fn attacks_do_not_compile() {
    let programs = programs();
    let (ok, attacks): (Vec<_>, Vec<_>) = programs.iter().partition(|p| p.expect == "ok");
    assert!(attacks.len() >= 75, "only {} attacks were found", attacks.len());
    assert!(ok.len() >= 8, "only {} programs that compile were found", ok.len());

    let compiler = Compiler::build();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut wrong = Vec::new();
        while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            wrong.extend(compiler.judge(program).err());
        }
        wrong
    };
    let mut wrong = thread::scope(|scope| {
        let others = scope.spawn(work);
        let mut wrong = work();
        wrong.extend(others.join().expect("judged"));
        wrong
    });
    wrong.sort();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), programs.len(), wrong.join("\n"));
}

#[test]
fn the_judge_can_say_no() {
    let compiler = Compiler::build();
    let find = |name: &str| {
        let found = programs().into_iter().find(|program| program.name == name);
        found.unwrap_or_else(|| panic!("no program {name}"))
    };
    let compiles = Program { expect: "E0382".to_owned(), ..find("ok_plan") };
    let said = compiler.judge(&compiles).expect_err("a program that compiles is no failed attack");
    assert!(said.contains("compiles"), "{said}");

    let other_code = Program { expect: "E0382".to_owned(), ..find("forge_permit") };
    compiler.judge(&other_code).expect_err("another code than the one expected");

    let other_line = Program { marked: BTreeSet::from([1]), ..find("finish_twice") };
    compiler.judge(&other_line).expect_err("an error on another line than the one marked");

    let refused = Program { expect: "ok".to_owned(), ..find("run_others_plan") };
    compiler.judge(&refused).expect_err("a program that should compile and does not");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/no_bypass")
}

fn programs() -> Vec<Program> {
    let mut programs: Vec<Program> = fs::read_dir(folder())
        .expect("the programs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(Program::read)
        .collect();
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    programs
}

impl Program {
    fn read(path: PathBuf) -> Self {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("text");
        let mut lines = text.lines();
        let expect = lines.next().and_then(|line| line.strip_prefix("//! expect: "));
        let expect = expect.unwrap_or_else(|| panic!("{name}: the first line says no `expect`"));
        let said = lines.next().is_some_and(|line| line.starts_with("//! ") && line.ends_with('.'));
        assert!(said, "{name}: the second line does not say what it tries");
        let marks = (1_u64..).zip(text.lines()).filter(|(_, line)| line.ends_with("//~"));
        // A mark that stands alone is for the next line.
        let lines = marks.map(|(number, line)| number + u64::from(line.trim() == "//~"));
        let marked: BTreeSet<u64> = lines.collect();
        assert_eq!(marked.is_empty(), expect == "ok", "{name}: attacks have marks, others none");
        Self { name, expect: expect.to_owned(), marked, path }
    }
}

/// The compiler, with the libraries as they are built.
struct Compiler {
    rustc: PathBuf,
    library: PathBuf,
    dependencies: PathBuf,
    scratch: tempfile::TempDir,
}

impl Compiler {
    /// Builds the libraries, or finds them built: the same target folder as this test's is used,
    /// which cargo does not lock while tests run.
    fn build() -> Self {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        cargo.args(["build", "--quiet", "--offline", "--lib", "--package", "syscap"]);
        cargo.args(["--message-format", "json", "--target-dir"]);
        cargo.arg(tmp.parent().expect("the target folder"));
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        let output = cargo.output().expect("cargo runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "syscap does not build: {errors}");
        let library = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|message| message["reason"] == "compiler-artifact")
            .filter(|message| message["target"]["name"] == "syscap")
            .filter_map(|message| message["filenames"].as_array().cloned())
            .flatten()
            .filter_map(|name| name.as_str().map(PathBuf::from))
            .find(|path| path.extension().is_some_and(|extension| extension == "rlib"))
            .expect("cargo names the library");
        let dependencies = library.parent().expect("a folder").join("deps");
        let rustc = std::env::var_os("RUSTC").map_or_else(|| "rustc".into(), PathBuf::from);
        let scratch = tempfile::tempdir_in(tmp).expect("a scratch folder");
        Self { rustc, library, dependencies, scratch }
    }

    /// Compiles a program and holds what came of it against what it expects.
    fn judge(&self, program: &Program) -> Result<(), String> {
        let Program { name, expect, marked, .. } = program;
        let linked = self.scratch.path().join(format!("{name}-{expect}"));
        let (success, errors) = self.compile(program, &linked)?;
        match (expect.as_str(), success) {
            ("ok", true) => self.run(name, &linked),
            ("ok", false) => Err(format!("{name}: must compile, but: {errors:?}")),
            (_, true) => Err(format!("{name}: compiles, so it is a way round")),
            (_, false) => {
                let wanted: Errors = marked.iter().map(|line| (expect.clone(), *line)).collect();
                let missing: Vec<_> = wanted.difference(&errors).collect();
                // That a field's very type is private has no code; its line has the code as well.
                let private = |(code, line): &&(String, u64)| {
                    code.ends_with(" is private") && marked.contains(line)
                };
                let others = errors.difference(&wanted).filter(|error| !private(error));
                let others: Vec<_> = others.collect();
                if missing.is_empty() && others.is_empty() {
                    return Ok(());
                }
                Err(format!("{name}: missing errors: {missing:?}, other errors: {others:?}"))
            }
        }
    }

    fn compile(&self, program: &Program, linked: &Path) -> Result<(bool, Errors), String> {
        let emit = if program.expect == "ok" { "--emit=link" } else { "--emit=metadata" };
        let output = Command::new(&self.rustc)
            .args(["--edition", "2024", "--crate-type", "bin", "--error-format", "json", emit])
            .args(["--crate-name", "program", "-o"])
            .arg(linked)
            .arg("--extern")
            .arg(format!("syscap={}", self.library.display()))
            .arg("-L")
            .arg(format!("dependency={}", self.dependencies.display()))
            .arg(&program.path)
            .output()
            .map_err(|error| format!("{}: rustc does not run: {error}", program.name))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let messages = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let errors = messages.filter(|message| message["level"] == "error");
        Ok((output.status.success(), errors.flat_map(|error| places(&error, program)).collect()))
    }

    /// Runs a program that compiled; it gets the name of a folder that it may make.
    fn run(&self, name: &str, linked: &Path) -> Result<(), String> {
        let output = Command::new(linked)
            .arg(self.scratch.path().join(format!("{name}-home")))
            .output()
            .map_err(|error| format!("{name}: does not run: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("{name}: {said}")) }
    }
}

/// An error's code, at each of its lines, 0 for one in another file; the closing summary has no
/// place.
fn places(error: &Value, program: &Program) -> Vec<(String, u64)> {
    let code = error["code"]["code"].as_str();
    let code = code.or(error["message"].as_str()).unwrap_or_default().to_owned();
    let spans = error["spans"].as_array().cloned().unwrap_or_default();
    let primary = spans.iter().filter(|span| span["is_primary"] == true);
    let line = |span: &Value| {
        let here = span["file_name"].as_str().map(Path::new) == Some(&program.path);
        if here { span["line_start"].as_u64().unwrap_or(0) } else { 0 }
    };
    primary.map(|span| (code.clone(), line(span))).collect()
}
