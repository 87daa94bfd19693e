//! Programs that run others: what those do is what they do.

use crate::{
    options::{Spec, Use::Data},
    run::{Run, literal},
    said::{Mark, Piece},
    table::input,
};

const PLAIN: Spec = Spec::PLAIN;

/// A wrapper: its options, and how many words of its own come before the command.
struct Wrapper {
    spec: Spec,
    own: usize,
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        spec: Spec {
            name: "timeout",
            flags: "v",
            long: &["foreground", "preserve-status"],
            valued: &[("-k", Data), ("-s", Data), ("--kill-after", Data), ("--signal", Data)],
            ..PLAIN
        },
        own: 1,
    },
    Wrapper {
        spec: Spec { name: "nice", valued: &[("-n", Data)], numbers: true, ..PLAIN },
        own: 0,
    },
    Wrapper { spec: Spec { name: "nohup", ..PLAIN }, own: 0 },
    Wrapper { spec: Spec { name: "time", flags: "pv", ..PLAIN }, own: 0 },
    Wrapper {
        spec: Spec { name: "stdbuf", valued: &[("-i", Data), ("-o", Data), ("-e", Data)], ..PLAIN },
        own: 0,
    },
    Wrapper {
        spec: Spec {
            name: "xargs",
            flags: "0rt",
            valued: &[("-n", Data), ("-P", Data), ("-L", Data), ("-d", Data), ("-I", Data)],
            ..PLAIN
        },
        own: 0,
    },
    Wrapper { spec: Spec { name: "env", flags: "i", valued: &[("-u", Data)], ..PLAIN }, own: 0 },
];

/// Shells, which read what they are given as commands.
pub(super) const SHELLS: &[&str] = &["bash", "sh", "dash", "zsh", "ksh", "fish"];

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    WRAPPERS.iter().map(|wrapper| wrapper.spec.name)
}

pub(super) fn run(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) -> bool {
    if SHELLS.contains(&name) {
        shell(run, name, args);
        return true;
    }
    let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.spec.name == name) else {
        return false;
    };
    run.program(name);
    // Its options end where the command begins.
    let (mut at, mut end) = (0, args.len());
    while let Some(arg) = args.get(at) {
        match literal(arg) {
            Some("--") => {
                end = at.saturating_add(1);
                break;
            }
            Some(text) if text.starts_with('-') && text.len() > 1 => {
                let takes = |(option, _): &&(&str, _)| *option == text;
                let takes = wrapper.spec.valued.iter().any(|valued| takes(&valued));
                at = at.saturating_add(if takes { 2 } else { 1 });
            }
            _ => {
                end = at;
                break;
            }
        }
    }
    let (own, command) = args.split_at_checked(end.min(args.len())).unwrap_or((args, &[]));
    let line = match wrapper.spec.line(own) {
        Ok(line) if line.operands.is_empty() => line,
        Ok(_) => return unclear(run, name),
        Err(why) => {
            run.unknown(format!("{name}: {why}"));
            return true;
        }
    };
    let (given, command) = command.split_at_checked(wrapper.own).unwrap_or((command, &[]));
    if given.len() < wrapper.own || !given.iter().all(|word| literal(word).is_some()) {
        return unclear(run, name);
    }
    match name {
        "env" => environment(run, command),
        "xargs" => {
            let mut words = command.to_vec();
            if words.is_empty() {
                words.push(Piece::Literal("echo".to_owned()));
            }
            if let Some(sign) = line.value("-I") {
                // What it puts in may stand anywhere.
                let is_in = |word: &Piece| match (literal(word), literal(sign)) {
                    (Some(word), Some(sign)) => sign.is_empty() || word.contains(sign),
                    _ => true,
                };
                if words.first().is_some_and(is_in) {
                    return unclear(run, name);
                }
                words.iter_mut().skip(1).for_each(|word| *word = Piece::Many);
            }
            words.push(Piece::Many);
            run.inner(&words);
        }
        "nohup" => {
            run.write(&Piece::Literal("nohup.out".to_owned()));
            run.inner(command);
        }
        _ => run.inner(command),
    }
    true
}

fn unclear(run: &mut Run<'_, '_>, name: &str) -> bool {
    run.unknown(format!("{name}: what it is given"));
    true
}

fn environment(run: &mut Run<'_, '_>, words: &[Piece]) {
    let is_set = |word: &&Piece| match word {
        Piece::Literal(text) => text.contains('='),
        _ => false,
    };
    let set: Vec<&Piece> = words.iter().take_while(is_set).collect();
    for word in &set {
        if let Some((name, value)) = literal(word).and_then(|text| text.split_once('=')) {
            run.walk.sets(name, &Piece::Literal(value.to_owned()));
        }
    }
    // With nothing to run it says what is set.
    match words.get(set.len()..) {
        Some([]) | None => {}
        Some(command) => run.inner(command),
    }
}

/// A shell that reads its commands from elsewhere hides them; one that is given a script that can
/// be told does what that does.
fn shell(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) {
    run.program(name);
    if !matches!(name, "bash" | "sh" | "dash") {
        run.unknown(format!("{name} is a shell that is not known"));
    }
    match args {
        [flag, script, ..] if matches!(literal(flag), Some("-c" | "-ec" | "-ce" | "-lc")) => {
            match script {
                Piece::Literal(text) => run.walk.anew(&text.clone()),
                _ => {
                    run.unknown(format!("{name} -c of what can't be told"));
                    run.mark(Mark::Hides, format!("{name} -c of what can't be told"));
                }
            }
        }
        [Piece::Literal(script), ..] if !script.starts_with(['-', '+']) => {
            input::script(run, name, script);
        }
        _ => {
            run.unknown(format!("{name}: where its commands come from"));
            let streams = args.contains(&Piece::Stream);
            if run.piped || streams || !args.iter().all(|arg| literal(arg).is_some()) {
                run.mark(Mark::Hides, format!("{name} runs what another command writes"));
            }
        }
    }
}
