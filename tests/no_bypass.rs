//! No bypass, by the compiler: programs that must not compile.
//!
//! Each file of `tests/no_bypass/` is a program of a host that wants an effect without its
//! capability, or an answer without its record. Its head says `//! expect:` and an error code or
//! a lint. Every line that the compiler must object to ends in `//~` or follows one. An error on
//! another line or of another code is a failure, and so is a marked line that compiles.
//!
//! Other programs must compile, link and run (`//! expect: ok`): `ok_*` show that the check can
//! tell right from wrong, `caveat_*` what types can't stop, as `docs/caveats.md` says.
//!
//! Programs that expect the same are modules of one crate, since the compiler reports errors of
//! one kind all at once: 19 runs in place of 88. An error says which file it is in, so that each
//! program is still judged by its own lines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

use serde_json::Value;

/// A program, and what its head and its marks say.
struct Program {
    name: String,
    path: PathBuf,
    expect: String,
    marked: BTreeSet<u64>,
}

/// What the compiler said: the file, code and line of each error.
type Errors = BTreeSet<(PathBuf, String, u64)>;

#[test]
fn attacks_do_not_compile() {
    let programs = programs();
    let ok = programs.iter().filter(|program| program.expect == "ok").count();
    assert!(programs.len() - ok >= 75, "only {} attacks were found", programs.len() - ok);
    assert!(ok >= 8, "only {ok} programs that compile were found");

    let mut groups: BTreeMap<String, Vec<Program>> = BTreeMap::new();
    for program in programs {
        groups.entry(program.expect.clone()).or_default().push(program);
    }
    let groups: Vec<(String, Vec<Program>)> = groups.into_iter().collect();
    let compiler = Compiler::build();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut wrong = Vec::new();
        while let Some((expect, programs)) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
            wrong.extend(compiler.judge(expect, programs));
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
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
    judge_finds_faults(&compiler);
}

/// The judge, given what it must object to.
fn judge_finds_faults(compiler: &Compiler) {
    let find = |name: &str| {
        let found = programs().into_iter().find(|program| program.name == name);
        found.unwrap_or_else(|| panic!("no program {name}"))
    };
    let said = compiler.judge("E0382", &[find("ok_plan")]);
    assert!(said.iter().any(|fault| fault.contains("compiles")), "{said:?}");
    let said = compiler.judge("E0382", &[find("forge_permit")]);
    assert!(!said.is_empty(), "another code than the one expected");
    let other_line = Program { marked: BTreeSet::from([1]), ..find("finish_twice") };
    let said = compiler.judge("E0382", &[find("commit_twice"), other_line]);
    assert_eq!(said.len(), 1, "an error on another line than the one marked: {said:?}");
    let said = compiler.judge("ok", &[find("run_others_plan")]);
    assert!(!said.is_empty(), "a program that should compile and does not");
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
    /// Finds the libraries that this test is linked with: cargo, asked for this test's program as
    /// it was built, builds nothing and names them.
    fn build() -> Self {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let mut cargo = host_support::cargo();
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        cargo.args(["test", "--quiet", "--offline", "--no-run", "--workspace", "--test", "system"]);
        cargo.args(["--message-format", "json", "--target-dir"]);
        cargo.arg(tmp.parent().expect("the target folder"));
        host_support::in_this_profile(&mut cargo);
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
        let dependencies = library.parent().expect("a folder").to_path_buf();
        let rustc = std::env::var_os("RUSTC").map_or_else(|| "rustc".into(), PathBuf::from);
        let scratch = tempfile::tempdir_in(tmp).expect("a scratch folder");
        Self { rustc, library, dependencies, scratch }
    }

    /// Compiles programs that expect the same as modules of one crate. Gives back what is wrong.
    fn judge(&self, expect: &str, programs: &[Program]) -> Vec<String> {
        let (success, errors) = self.compile(expect, programs);
        let mut wrong = Vec::new();
        let ours = |file: &Path| programs.iter().any(|program| program.path == file);
        wrong.extend(
            errors
                .iter()
                .filter(|error| !ours(&error.0))
                .map(|error| format!("{expect}: an error in no program: {error:?}")),
        );
        for program in programs {
            let Program { name, marked, path, .. } = program;
            let errors = errors.iter().filter(|error| error.0 == *path);
            let found: BTreeSet<(String, u64)> =
                errors.map(|(_, code, line)| (code.clone(), *line)).collect();
            wrong.extend(match (expect, success) {
                ("ok", true) => self.run(name).err(),
                ("ok", false) => Some(format!("{name}: must compile, but: {found:?}")),
                (_, true) => Some(format!("{name}: compiles, so it is a bypass")),
                (_, false) => {
                    let wanted = marked.iter().map(|line| (expect.to_owned(), *line)).collect();
                    differs(name, &wanted, &found)
                }
            });
        }
        wrong
    }

    /// Where programs that compile are linked to: one file, which runs the one that is named.
    fn linked(&self) -> PathBuf {
        self.scratch.path().join("ok")
    }

    fn compile(&self, expect: &str, programs: &[Program]) -> (bool, Errors) {
        let root = self.scratch.path().join(format!("{expect}-{}.rs", programs[0].name));
        let modules: String = programs
            .iter()
            .map(|Program { name, path, .. }| format!("#[path = {path:?}]\nmod {name};\n"))
            .collect();
        let arms: String = programs
            .iter()
            .map(|Program { name, .. }| format!("Some({name:?}) => {name}::main(),\n"))
            .collect();
        let (main, emit) = match expect {
            "ok" => (
                format!(
                    "fn main() {{ match std::env::args().nth(2).as_deref() {{ {arms} \
                     other => panic!(\"no program {{other:?}}\") }} }}"
                ),
                "--emit=link",
            ),
            _ => ("fn main() {}".to_owned(), "--emit=metadata"),
        };
        fs::write(&root, modules + &main).expect("written");
        let output = Command::new(&self.rustc)
            .args(["--edition", "2024", "--crate-type", "bin", "--error-format", "json", emit])
            .args(["--crate-name", "program", "-o"])
            .arg(if expect == "ok" { self.linked() } else { root.with_extension("out") })
            .arg("--extern")
            .arg(format!("syscap={}", self.library.display()))
            .arg("-L")
            .arg(format!("dependency={}", self.dependencies.display()))
            .arg(&root)
            .output()
            .expect("rustc runs");
        let said = String::from_utf8_lossy(&output.stderr);
        let messages = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let errors = messages.filter(|message| message["level"] == "error");
        (output.status.success(), errors.flat_map(|error| places(&error)).collect())
    }

    /// Runs a program that compiled; it gets the name of a folder that it may make.
    fn run(&self, name: &str) -> Result<(), String> {
        let output = Command::new(self.linked())
            .arg(self.scratch.path().join(format!("{name}-home")))
            .arg(name)
            .output()
            .map_err(|error| format!("{name}: does not run: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("{name}: {said}")) }
    }
}

type Lines = BTreeSet<(String, u64)>;

/// What is wrong with a program's errors.
fn differs(name: &str, wanted: &Lines, found: &Lines) -> Option<String> {
    let missing: Vec<_> = wanted.difference(found).collect();
    // That a field's very type is private has no code; its line has the code as well.
    let private = |(code, line): &&(String, u64)| {
        code.ends_with(" is private") && wanted.iter().any(|(_, marked)| marked == line)
    };
    let others: Vec<_> = found.difference(wanted).filter(|error| !private(error)).collect();
    let wrong = !missing.is_empty() || !others.is_empty();
    wrong.then(|| format!("{name}: missing errors: {missing:?}, other errors: {others:?}"))
}

/// An error's file and code, at each of its lines; the closing summary has no place.
fn places(error: &Value) -> Vec<(PathBuf, String, u64)> {
    let code = error["code"]["code"].as_str();
    let code = code.or(error["message"].as_str()).unwrap_or_default().to_owned();
    let spans = error["spans"].as_array().cloned().unwrap_or_default();
    let primary = spans.iter().filter(|span| span["is_primary"] == true);
    let place = |span: &Value| {
        let file = PathBuf::from(span["file_name"].as_str().unwrap_or_default());
        (file, code.clone(), span["line_start"].as_u64().unwrap_or(0))
    };
    primary.map(place).collect()
}
