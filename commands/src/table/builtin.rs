//! Commands of the shell's own.

use std::collections::BTreeSet;

use crate::{
    run::{Run, is_literal, literal},
    said::{Mark, Piece},
    table::input,
    walk::{Bases, Ends, is_special},
};

/// Their names.
pub(super) const NAMES: &[&str] = &[
    ":", "[", "cd", "command", "echo", "exec", "exit", "export", "false", "printf", "pwd", "read",
    "set", "test", "true", "type", "wait",
];

/// What `test` asks of one file.
const OF_FILES: &[&str] =
    &["-b", "-c", "-d", "-e", "-f", "-h", "-L", "-p", "-r", "-s", "-S", "-w", "-x"];
/// What it asks of texts, and of numbers.
const OF_TEXTS: &[&str] = &["=", "==", "!="];
const OF_NUMBERS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

pub(super) fn run(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) -> Option<Ends> {
    match name {
        ":" | "true" | "false" | "pwd" | "exit" | "wait" => plain(run, name, args),
        "echo" => run.builtin(name),
        "printf" => {
            run.builtin(name);
            // `-v` sets a variable, and may run what its index says.
            let format = args.first().and_then(literal).filter(|text| !text.starts_with('-'));
            if !format.is_some_and(only_prints) {
                run.unknown("printf: its format");
            }
        }
        "test" | "[" => {
            run.builtin(name);
            test(run, name, args);
        }
        "cd" if !run.outside => return Some(change(run, args)),
        "read" if !run.outside => read(run, args),
        "set" if !run.outside => {
            run.builtin(name);
            let safe = ["-e", "-u", "-x", "-eu", "-ex", "-euo", "-o", "pipefail", "-euxo", "+e"];
            if args.is_empty() || !args.iter().all(|arg| safe.iter().any(|s| is_literal(arg, s))) {
                run.unknown("set: what it is given");
            }
        }
        "type" if !run.outside && args.iter().all(|arg| literal(arg).is_some()) => {
            run.builtin(name);
        }
        "export" if !run.outside => {
            run.builtin(name);
            for arg in args {
                match literal(arg).and_then(|text| text.split_once('=')) {
                    Some((name, value)) => {
                        run.walk.sets(name, &Piece::Literal(value.to_owned()));
                    }
                    None => run.unknown("export: what it is given"),
                }
            }
        }
        "eval" => {
            run.unknown("eval");
            run.mark(Mark::Hides, "eval");
        }
        "." | "source" => source(run, name, args),
        "history" | "fc" => {
            run.unknown(name);
            run.mark(Mark::Hides, "the shell's history");
        }
        "unset" => {
            run.unknown("unset");
            if args.iter().filter_map(literal).any(|name| name.starts_with("HIST")) {
                run.mark(Mark::Hides, "the shell's history");
            }
        }
        // `exec` with nothing to run changes where the shell's own output goes, which is said.
        "command" | "exec" if !run.outside => wrapped(run, name, args),
        _ => return None,
    }
    Some(run.stays())
}

fn plain(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) {
    run.builtin(name);
    let fine: fn(&Piece) -> bool = match name {
        "pwd" => |arg| is_literal(arg, "-P"),
        // Both shells read a number, and nothing else, of what an expansion gives.
        "exit" => |arg| literal(arg).is_none_or(is_number),
        // `-p` sets a variable, and may run what its index says.
        "wait" => |arg| literal(arg).is_some_and(is_job),
        _ => |_| true,
    };
    if !args.iter().all(fine) {
        run.unknown(format!("{name}: what it is given"));
    }
}

/// A line, or parts of it, of what comes in, into variables that nothing else goes by.
fn read(run: &mut Run<'_, '_>, args: &[Piece]) {
    run.builtin("read");
    let names = match args {
        [first, rest @ ..] if is_literal(first, "-r") => rest,
        all => all,
    };
    let is_name = |name: &str| {
        let rest = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(rest)
    };
    let fine = |name: &str| is_name(name) && !is_special(name);
    // What stands behind a name may be an index, which may run something.
    if names.is_empty() || !names.iter().all(|name| literal(name).is_some_and(fine)) {
        run.unknown("read: what it is given");
    }
    for name in names.iter().filter_map(literal) {
        run.walk.bound.remove(name);
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A process by its number, or a job: `%1`, `%+`, `%name`.
fn is_job(text: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || "%+-_".contains(c);
    is_number(text) || text.strip_prefix('%').is_some_and(|job| job.chars().all(fine))
}

/// Whether all conversions of a format print what they are given: `%n` sets the variable that it
/// is given.
fn only_prints(format: &str) -> bool {
    // `%%` prints itself.
    let format = format.replace("%%", "");
    format.split('%').skip(1).all(|conversion| {
        let sizes = |c: char| c.is_ascii_digit() || "-+ #.*hlLjzt".contains(c);
        let letter = conversion.trim_start_matches(sizes).chars().next();
        letter.is_some_and(|letter| "aAbcdeEfFgGioqsuxX".contains(letter))
    })
}

fn wrapped(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) {
    run.builtin(name);
    let first = args.first().and_then(literal).unwrap_or("-");
    if name == "command" && matches!(first, "-v" | "-V") {
        if !args.iter().all(|arg| literal(arg).is_some()) {
            run.unknown("command: what it is given");
        }
    } else if first.starts_with('-') {
        run.unknown(format!("{name}: what it is given"));
    } else if matches!(first, "cd" | "eval" | "exec" | "command" | "." | "source") {
        run.unknown(format!("{name} {first}"));
    } else {
        run.inner(args);
    }
}

/// What follows may be other than it says from then on, and is no more than the script itself may
/// do.
fn source(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) {
    if args.contains(&Piece::Stream) {
        run.mark(Mark::Hides, format!("{name} runs what another command writes"));
    }
    match args.first().and_then(literal) {
        // By a name without a folder it is looked for in `PATH`.
        Some(file) if file.contains('/') && !file.starts_with('-') => {
            input::script(run, name, file)
        }
        _ => run.unknown(name),
    }
}

/// `-v` and `-R` may run what an index says; what is not listed is not known.
fn test(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) {
    let mut args = args;
    if name == "[" {
        match args.split_last() {
            Some((last, rest)) if is_literal(last, "]") => args = rest,
            _ => return run.unknown("[ without ]"),
        }
    }
    if let Some((first, rest)) = args.split_first()
        && is_literal(first, "!")
    {
        args = rest;
    }
    match args {
        [one] if run.is_one(one) => {}
        [operator, one] if run.is_one(one) => match literal(operator) {
            Some(operator) if OF_FILES.contains(&operator) => run.read(one),
            Some("-n" | "-z") => {}
            _ => run.unknown("test: an operator that is not known"),
        },
        [one, operator, other] if run.is_one(one) && run.is_one(other) => {
            // Other shells than these calculate what is no number.
            let signed = |text: &str| is_number(text.strip_prefix('-').unwrap_or(text));
            let number = |word| literal(word).is_none_or(signed);
            match literal(operator) {
                Some(operator) if OF_TEXTS.contains(&operator) => {}
                Some(operator) if OF_NUMBERS.contains(&operator) => {
                    if !number(one) || !number(other) {
                        run.unknown("test: what is no number");
                    }
                }
                _ => run.unknown("test: an operator that is not known"),
            }
        }
        [] => {}
        _ => run.unknown("test: what it is given"),
    }
}

/// Where it succeeds the shell is there; where it fails it has stayed.
fn change(run: &mut Run<'_, '_>, args: &[Piece]) -> Ends {
    run.builtin("cd");
    let failed = run.walk.bases.clone();
    let home = run.walk.place.home.clone();
    let args = match args {
        [first, rest @ ..] if is_literal(first, "--") => rest,
        all => all,
    };
    let folder = match args {
        [] => home,
        [Piece::Literal(text)] if !text.starts_with(['-', '+']) && !text.is_empty() => {
            Some(text.clone())
        }
        _ => None,
    };
    let done = folder.and_then(|folder| {
        let bases = match (&failed, folder.starts_with('/')) {
            (Bases(None), false) => return None,
            (Bases(None), true) => vec![crate::area::Base::reported(Default::default())],
            (Bases(Some(bases)), _) => bases.iter().cloned().collect(),
        };
        let entered: Option<BTreeSet<_>> = bases.iter().map(|base| base.enter(&folder)).collect();
        entered
    });
    // Where the name is gone, shells go up from the folder that they are in.
    let from: Vec<_> = match &failed {
        Bases(Some(bases)) => bases.iter().map(|base| Some(base.path.clone())).collect(),
        Bases(None) => vec![None],
    };
    for to in done.iter().flatten() {
        from.iter().for_each(|base| {
            run.said().moved.goes(base.clone(), to.path.clone(), false);
        });
    }
    if done.is_none() {
        run.unknown("where cd leads");
    }
    Ends { done: Bases(done), failed }
}
