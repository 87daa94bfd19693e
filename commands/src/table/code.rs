//! Programs that run the project's own code: builds, tests, linters, interpreters. What such code
//! does nobody can tell, so their options need not be known.

use crate::{
    run::{Run, literal},
    said::{Mark, Outside, Piece},
    table::input,
};

/// Build tools, test runners, compilers, linters: they read configuration that is code, or run it.
pub(super) const TOOLS: &[&str] = &[
    "ava",
    "black",
    "c++",
    "cargo-nextest",
    "cc",
    "clang",
    "clang++",
    "cmake",
    "ctest",
    "eslint",
    "flake8",
    "g++",
    "gcc",
    "gofmt",
    "gradle",
    "isort",
    "javac",
    "jest",
    "just",
    "make",
    "meson",
    "mocha",
    "mvn",
    "mypy",
    "ninja",
    "nox",
    "phpunit",
    "prettier",
    "pylint",
    "pyright",
    "pytest",
    "rake",
    "rspec",
    "ruff",
    "rustc",
    "rustfmt",
    "task",
    "tox",
    "tsc",
    "vite",
    "vitest",
];

/// Those that can be given their program elsewhere than in a file of the project's.
const RUNNERS: &[&str] = &["cmake", "just", "make", "ninja", "rake", "task"];

/// A package manager: what runs the project's code, and what also reaches its registry.
struct Manager {
    name: &'static str,
    runs: &'static [&'static str],
    reaches: &'static [&'static str],
    /// What can't be taken back.
    publishes: &'static [&'static str],
}

const MANAGERS: &[Manager] = &[
    Manager {
        name: "cargo",
        runs: &[
            "b", "bench", "build", "c", "check", "clippy", "d", "doc", "fmt", "metadata",
            "nextest", "r", "run", "t", "test", "tree",
        ],
        reaches: &["add", "audit", "fetch", "install", "outdated", "remove", "search", "update"],
        publishes: &["publish", "yank"],
    },
    Manager {
        name: "npm",
        runs: &["run", "run-script", "start", "t", "test"],
        reaches: &[
            "audit",
            "ci",
            "exec",
            "i",
            "install",
            "outdated",
            "uninstall",
            "update",
            "view",
        ],
        publishes: &["deprecate", "publish", "unpublish"],
    },
    Manager {
        name: "pnpm",
        runs: &["build", "dev", "exec", "lint", "run", "start", "t", "test", "typecheck"],
        reaches: &["add", "audit", "dlx", "i", "install", "outdated", "remove", "update"],
        publishes: &["publish"],
    },
    Manager {
        name: "yarn",
        runs: &["build", "dev", "lint", "run", "start", "test", "typecheck"],
        reaches: &["add", "audit", "dlx", "install", "outdated", "remove", "upgrade"],
        publishes: &["publish"],
    },
    Manager {
        name: "bun",
        runs: &["build", "run", "test"],
        reaches: &["add", "i", "install", "remove", "update", "x"],
        publishes: &["publish"],
    },
    Manager {
        name: "go",
        runs: &["build", "fmt", "generate", "list", "run", "test", "vet"],
        reaches: &["get", "install", "mod"],
        publishes: &[],
    },
    Manager {
        name: "uv",
        runs: &[],
        reaches: &["add", "lock", "pip", "remove", "run", "sync", "tool", "venv"],
        publishes: &["publish"],
    },
    Manager {
        name: "poetry",
        runs: &["check"],
        reaches: &["add", "install", "lock", "remove", "run", "update"],
        publishes: &["publish"],
    },
    Manager {
        name: "pip",
        runs: &["check", "freeze", "list", "show"],
        reaches: &["download", "install", "uninstall"],
        publishes: &[],
    },
    Manager {
        name: "bundle",
        runs: &["exec"],
        reaches: &["add", "install", "update"],
        publishes: &[],
    },
];

/// Interpreters of a script.
pub(super) const INTERPRETERS: &[&str] =
    &["node", "perl", "php", "python", "python3", "ruby", "ts-node", "tsx"];

/// Programs that fetch a program, and run it.
pub(super) const FETCHERS: &[&str] = &["bunx", "npx", "pnpx", "uvx"];

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    MANAGERS.iter().map(|manager| manager.name)
}

/// Modules of Python's that run the project's code and reach nothing.
const MODULES: &[&str] = &[
    "black",
    "build",
    "compileall",
    "coverage",
    "doctest",
    "flake8",
    "isort",
    "mypy",
    "py_compile",
    "pylint",
    "pytest",
    "ruff",
    "unittest",
    "venv",
];

pub(super) fn run(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) -> bool {
    if TOOLS.contains(&name) {
        run.program(name);
        run.mark(Mark::ProjectCode, name);
        if RUNNERS.contains(&name) {
            given(run, name, args);
        }
    } else if INTERPRETERS.contains(&name) {
        run.program(name);
        interpret(run, name, args);
    } else if FETCHERS.contains(&name) {
        run.program(name);
        run.mark(Mark::ProjectCode, name);
        elsewhere(run, name, Outside::Reads);
    } else {
        let pip = if name == "pip3" { "pip" } else { name };
        match MANAGERS.iter().find(|manager| manager.name == pip) {
            Some(manager) => {
                run.program(name);
                manage(run, manager, args);
            }
            None => return false,
        }
    }
    true
}

/// What of their arguments is no code of the project's: a program that comes from the input, or
/// stands on the command line.
fn given(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) {
    let mut input = false;
    for text in args.iter().filter_map(literal) {
        let file = match text.strip_prefix("--") {
            Some(long) => long.split_once('=').map(|(_, value)| value),
            None => match text.strip_prefix('-').filter(|flags| !flags.is_empty()) {
                // Flags may stand before it: `-ksf-`.
                Some(flags) => flags.split_once('f').map(|(_, value)| value),
                None => Some(text),
            },
        };
        input |= file.is_some_and(|file| file == "-" || input::is(run, file));
    }
    if input {
        run.unknown(format!("{name}: where its commands come from"));
        run.mark(Mark::Hides, format!("{name} runs what another command writes"));
    }
    let said = |text: &str| match (name, text.strip_prefix("--")) {
        // Long options may be cut short.
        ("make", Some(long)) => long.starts_with("ev"),
        ("make", None) => is_flag(text, "E"),
        ("rake", Some(long)) => long.starts_with("exec"),
        ("rake", None) => is_flag(text, "eEp"),
        _ => false,
    };
    if args.iter().filter_map(literal).any(said) {
        run.unknown(format!("{name}: code that is not a file of the project's"));
    }
}

/// Whether one of these is among the flags of a word, before one that takes the rest of it.
fn is_flag(text: &str, flags: &str) -> bool {
    let given = text.strip_prefix('-').unwrap_or_default();
    given
        .chars()
        .take_while(|flag| !"CDIORTWfjlor".contains(*flag))
        .any(|flag| flags.contains(flag))
}

fn elsewhere(run: &mut Run<'_, '_>, what: &str, outside: Outside) {
    run.mark(Mark::Network, what);
    run.goes_outside(outside);
}

fn manage(run: &mut Run<'_, '_>, manager: &Manager, args: &[Piece]) {
    let name = manager.name;
    let version = ["--version", "-V", "-v", "version"];
    let Some(first) = args.first() else {
        // Yarn installs then.
        run.mark(Mark::ProjectCode, name);
        return elsewhere(run, name, Outside::Reads);
    };
    let Some(first) = literal(first) else {
        return run.unknown(format!("{name}: its subcommand"));
    };
    let told = format!("{name} {first}");
    run.said().subcommands.insert(told.clone());
    if manager.runs.contains(&first) || version.contains(&first) {
        run.mark(Mark::ProjectCode, told);
    } else if manager.reaches.contains(&first) {
        run.mark(Mark::ProjectCode, told.clone());
        elsewhere(run, &told, Outside::Reads);
    } else if manager.publishes.contains(&first) {
        run.mark(Mark::ProjectCode, told.clone());
        run.mark(Mark::Irreversible, told.clone());
        elsewhere(run, &told, Outside::Writes);
    } else {
        run.unknown(format!("{told} is not known"));
    }
}

/// A script is code of the project's; code on the command line or on standard input is nobody's.
fn interpret(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) {
    let python = name.starts_with("python");
    match args {
        // Python's `-v` says more, and reads its input.
        [Piece::Literal(version)]
            if matches!(version.as_str(), "--version" | "-V") || (version == "-v" && !python) =>
        {
            // A version manager's own goes by what the project says; no such thing lies there.
            let file = run.walk.place.found.get(name);
            let plain = |file: &String| file.strip_prefix("/usr/bin/") == Some(name);
            if !file.is_some_and(plain) || matches!(name, "ts-node" | "tsx") {
                run.mark(Mark::ProjectCode, format!("{name} {version}"));
            }
        }
        [Piece::Literal(flag), Piece::Literal(module), rest @ ..] if python && flag == "-m" => {
            if MODULES.contains(&module.as_str()) {
                run.mark(Mark::ProjectCode, format!("{name} -m {module}"));
            } else if module == "pip" {
                let pip = MANAGERS.iter().find(|manager| manager.name == "pip");
                pip.into_iter().for_each(|pip| manage(run, pip, rest));
            } else {
                run.unknown(format!("{name} -m {module} is not known"));
            }
        }
        [Piece::Literal(flag), ..] if name == "node" && flag == "--test" => {
            run.mark(Mark::ProjectCode, "node --test");
        }
        [Piece::Literal(script), ..] if !script.starts_with('-') => {
            input::script(run, name, script);
        }
        _ => {
            run.unknown(format!("{name}: code that is not a file of the project's"));
            let told = |arg: &Piece| literal(arg).is_some();
            if (run.piped && input::is_read(run, name, args)) || !args.iter().all(told) {
                run.mark(Mark::Hides, format!("{name} runs what another command writes"));
            }
        }
    }
}
