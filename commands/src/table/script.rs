//! Programs with a small language of their own, as far as it can only read and print.

use crate::{
    options::{Spec, Use::Data},
    run::{Run, literal},
    said::Piece,
};

const PLAIN: Spec = Spec::PLAIN;
const SED: Spec = Spec {
    name: "sed",
    flags: "Enrsuz",
    long: &["quiet", "regexp-extended", "silent"],
    valued: &[("-e", Data), ("--expression", Data)],
    ..PLAIN
};
const AWK: Spec = Spec { name: "awk", valued: &[("-F", Data)], ..PLAIN };
const JQ: Spec = Spec {
    name: "jq",
    flags: "acCeMnrsS",
    long: &["compact-output", "exit-status", "null-input", "raw-output", "slurp", "sort-keys"],
    ..PLAIN
};

pub(super) fn run(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) -> bool {
    match name {
        "sed" => sed(run, args),
        "awk" | "gawk" | "mawk" => simple(run, name, &AWK, is_simple_awk, args),
        "jq" => simple(run, name, &JQ, is_simple_jq, args),
        _ => return false,
    }
    true
}

fn simple(run: &mut Run<'_, '_>, name: &str, spec: &Spec, fine: fn(&str) -> bool, args: &[Piece]) {
    run.program(name);
    let line = match spec.line(args) {
        Ok(line) => line,
        Err(why) => return run.unknown(format!("{name}: {why}")),
    };
    let Some((program, files)) = line.operands.split_first() else {
        return run.unknown(format!("{name} without a program"));
    };
    if !literal(program).is_some_and(fine) {
        run.unknown(format!("{name}: a program that may do more than print"));
    }
    files.iter().for_each(|file| run.read(file));
}

/// Without `|`, `>` and `<` in actions, brackets and `@` there is no way to write, to run or to
/// read more.
fn is_simple_awk(program: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || " \n\t_$,{}\"=!/.:;+*^&%~?-".contains(c);
    let plain = is_compared(program).is_some_and(|rest| rest.chars().all(fine));
    plain && !program.contains("getline")
}

/// A program without what it compares outside of actions, where nothing is printed and so nothing
/// written: `NR>1 {..}`. None where it is in an action, or could be.
fn is_compared(program: &str) -> Option<String> {
    if !program.contains(['<', '>']) {
        return Some(program.to_owned());
    }
    let mut open = 0_usize;
    for c in program.chars() {
        match c {
            '{' => open = open.checked_add(1)?,
            '}' => open = open.checked_sub(1)?,
            // What stands in them may look like a brace.
            '"' | '/' => return None,
            '<' | '>' if open > 0 => return None,
            _ => {}
        }
    }
    Some(program.replace(['<', '>'], ""))
}

fn is_simple_jq(program: &str) -> bool {
    let words = ["import", "include", "input_filename", "modulemeta", "debug", "stderr"];
    !words.iter().any(|word| program.contains(word))
}

/// In place it writes; its scripts may besides, and may run programs.
fn sed(run: &mut Run<'_, '_>, args: &[Piece]) {
    run.program("sed");
    let (mut writes, mut rest) = (false, Vec::new());
    for arg in args {
        match literal(arg) {
            Some("-i" | "--in-place") => writes = true,
            Some("-i.bak" | "-i.orig" | "-i~") => {
                writes = true;
                run.unknown("sed: the copy that it keeps");
            }
            _ => rest.push(arg.clone()),
        }
    }
    let line = match SED.line(&rest) {
        Ok(line) => line,
        Err(why) => return run.unknown(format!("sed: {why}")),
    };
    let given: Vec<&Piece> = line.values.iter().map(|(.., value)| value).collect();
    let (scripts, files) = match (given.is_empty(), line.operands.split_first()) {
        (true, Some((script, files))) => (vec![script], files),
        (true, None) => return run.unknown("sed without a script"),
        (false, _) => (given, &*line.operands),
    };
    if !scripts.iter().all(|script| literal(script).is_some_and(is_simple_sed)) {
        run.unknown("sed: a script that may do more than change lines");
    }
    for file in files {
        match writes {
            true => run.write(file),
            false => run.read(file),
        }
    }
}

/// Commands of `sed` that only change and print lines.
fn is_simple_sed(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', ';', '\n', '\t']);
        if rest.is_empty() {
            return true;
        }
        match command(rest) {
            Some(after) => rest = after,
            None => return false,
        }
    }
}

/// What stands after one command.
fn command(script: &str) -> Option<&str> {
    let mut rest = address(script)?;
    if let Some(after) = rest.strip_prefix(',') {
        rest = address(after)?;
    }
    rest = rest.trim_start_matches([' ', '!']);
    let name = rest.chars().next()?;
    let rest = rest.strip_prefix(name)?;
    match name {
        'p' | 'd' | '=' | 'n' | 'N' | 'D' | 'P' | 'h' | 'H' | 'g' | 'G' | 'x' => end(rest),
        'q' => end(rest.trim_start_matches(|c: char| c.is_ascii_digit())),
        's' | 'y' => {
            let delimiter = rest.chars().next()?;
            if matches!(delimiter, '\n' | '\\' | '[' | ']') {
                return None;
            }
            let rest = rest.strip_prefix(delimiter)?;
            let rest = match name {
                's' => past_pattern(rest, delimiter)?,
                _ => past(rest, delimiter)?,
            };
            let rest = past(rest, delimiter)?;
            let flags = |c: char| c.is_ascii_digit() || matches!(c, 'g' | 'p' | 'i' | 'I');
            end(if name == 's' { rest.trim_start_matches(flags) } else { rest })
        }
        _ => None,
    }
}

/// Nothing else may follow a command on its line.
fn end(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches(' ');
    (rest.is_empty() || rest.starts_with([';', '\n'])).then_some(rest)
}

fn address(script: &str) -> Option<&str> {
    let rest = script.trim_start_matches(' ');
    if let Some(rest) = rest.strip_prefix('/') {
        return past_pattern(rest, '/');
    }
    if let Some(rest) = rest.strip_prefix('$') {
        return Some(rest);
    }
    Some(rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '~' || c == '+'))
}

/// What stands after the next delimiter that is not escaped.
fn past(text: &str, delimiter: char) -> Option<&str> {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()?),
            '\n' => return None,
            c if c == delimiter => return Some(chars.as_str()),
            _ => {}
        }
    }
    None
}

/// As [`past`], behind a pattern: in brackets a delimiter ends it for some `sed`s, and is itself
/// for others, which then read commands where these read text. So it can't be told.
fn past_pattern(text: &str, delimiter: char) -> Option<&str> {
    let mut rest = text;
    loop {
        let mut chars = rest.chars();
        match chars.next()? {
            '\\' => drop(chars.next()?),
            '\n' => return None,
            c if c == delimiter => return Some(chars.as_str()),
            '[' => {
                let (inner, after) = bracket(chars.as_str())?;
                if inner.contains([delimiter, '\n']) {
                    return None;
                }
                rest = after;
                continue;
            }
            _ => {}
        }
        rest = chars.as_str();
    }
}

/// What stands in a bracket that was opened, and behind it. None where its end could be another.
fn bracket(text: &str) -> Option<(&str, &str)> {
    let begins = text.strip_prefix('^').unwrap_or(text);
    // As the first, `]` is itself.
    let mut rest = begins.strip_prefix(']').unwrap_or(begins);
    loop {
        let class = [("[:", ":]"), ("[.", ".]"), ("[=", "=]")];
        let class = class.iter().find_map(|(open, end)| Some((rest.strip_prefix(open)?, end)));
        if let Some((inner, end)) = class {
            (_, rest) = inner.split_once(end)?;
            continue;
        }
        if rest.starts_with("\\[") || rest.starts_with("\\]") {
            return None;
        }
        let c = rest.chars().next()?;
        let after = rest.strip_prefix(c)?;
        if c == ']' {
            let len = text.len().checked_sub(rest.len())?;
            return Some((text.get(..len)?, after));
        }
        rest = after;
    }
}
