//! Whether a shell or an interpreter reads its program from its input: then what it does is what
//! another command writes.

use super::wrap::SHELLS;
use crate::{
    run::{Run, literal},
    said::{Mark, Piece},
};

/// A script by its path: code of the project's, unless that is the input by another name.
pub(super) fn script(run: &mut Run<'_, '_>, name: &str, script: &str) {
    if is(run, script) {
        run.unknown(format!("{name}: where its commands come from"));
        run.mark(Mark::Hides, format!("{name} runs what another command writes"));
        return;
    }
    run.read(&Piece::Literal(script.to_owned()));
    run.mark(Mark::ProjectCode, format!("{name} {script}"));
}

/// `/dev/stdin`, `/dev/fd/0`, `/proc/self/fd/0`, however they are written; no script is kept there.
pub(super) fn is(run: &mut Run<'_, '_>, script: &str) -> bool {
    // `areas` has none for some of them, and none for `..` of what may be a link.
    let mut parts = script.split('/').filter(|part| !matches!(*part, "" | "."));
    let named = match script.contains("..") {
        true => parts.any(is_device),
        false => script.starts_with('/') && parts.next().is_some_and(is_device),
    };
    let areas = run.areas(&Piece::Literal(script.to_owned()));
    named || areas.iter().any(|area| area.components().next().is_some_and(is_device))
}

fn is_device(folder: &str) -> bool {
    matches!(folder, "dev" | "proc")
}

/// One-letter options: that take nothing, that take the rest of their word, and that say the code
/// or end it all.
fn options(name: &str) -> (&'static str, &'static str, &'static str) {
    match name {
        "python" | "python3" => ("bBdEIiOPqsSuvx", "WX", "cmVh"),
        "perl" => ("acflnpsStTuwWX0123456789", "FIMm", "eEvh"),
        "ruby" => ("alnpswvS", "FIr", "eh"),
        "node" | "ts-node" | "tsx" => ("i", "", "epvh"),
        "php" => ("aCnq", "d", "rvhm"),
        _ => ("abefhiklmnprsuvxB", "", "c"),
    }
}

/// Whether no argument is a script, or says the code.
pub(super) fn is_read(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) -> bool {
    let (plain, valued, code) = options(name);
    for arg in args {
        // What can't be told may be nothing.
        let Some(text) = literal(arg) else { return true };
        match text.strip_prefix('-') {
            Some("") => return true,
            Some(long) if long.starts_with('-') => {
                let code = ["--eval", "--print", "--version", "--help", "--test"];
                return !code.iter().any(|code| text.starts_with(code));
            }
            // To a shell it says so, whatever follows.
            Some(flags) if SHELLS.contains(&name) && flags.contains('s') => return true,
            Some(flags) => {
                let mut rest = flags.trim_start_matches(|flag| plain.contains(flag)).chars();
                match (rest.next(), rest.next()) {
                    (None, _) => {}
                    (Some(flag), Some(_)) if valued.contains(flag) => {}
                    (Some(flag), _) => return !code.contains(flag),
                }
            }
            None => return text.starts_with('+') || is(run, text),
        }
    }
    true
}
