//! `find`: what it looks through, removes, and runs.

use crate::{
    run::{Run, literal},
    said::{Mark, Piece},
};

/// Tests and actions without a word after them.
const ALONE: &[&str] = &[
    "!",
    "(",
    ")",
    "-a",
    "-and",
    "-daystart",
    "-depth",
    "-empty",
    "-executable",
    "-false",
    "-ls",
    "-mount",
    "-not",
    "-o",
    "-or",
    "-print",
    "-print0",
    "-prune",
    "-quit",
    "-readable",
    "-true",
    "-writable",
    "-xdev",
];
/// With one, which is text.
const WITH_TEXT: &[&str] = &[
    "-amin",
    "-atime",
    "-cmin",
    "-ctime",
    "-group",
    "-iname",
    "-ipath",
    "-iregex",
    "-maxdepth",
    "-mindepth",
    "-mmin",
    "-mtime",
    "-name",
    "-path",
    "-perm",
    "-printf",
    "-regex",
    "-regextype",
    "-size",
    "-type",
    "-user",
];

pub(super) fn run(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) -> bool {
    if name != "find" {
        return false;
    }
    run.program(name);
    let starts = |text: &str| !text.starts_with('-') && !matches!(text, "!" | "(" | ")");
    let is_place = |arg: &&Piece| match arg {
        Piece::Literal(text) => starts(text),
        Piece::Pattern { dash, .. } => !dash,
        _ => false,
    };
    let mut places: Vec<Piece> = args.iter().take_while(is_place).cloned().collect();
    let mut rest = args.iter().skip(places.len());
    if places.is_empty() {
        places.push(Piece::Literal(".".to_owned()));
    }
    places.iter().for_each(|place| run.read_all(place));
    while let Some(word) = rest.next() {
        let Some(word) = literal(word) else {
            run.unknown("find: a word that can't be told");
            break;
        };
        match word {
            _ if ALONE.contains(&word) => {}
            _ if WITH_TEXT.contains(&word) => match rest.next() {
                Some(Piece::Literal(_) | Piece::One) => {}
                _ => run.unknown(format!("find: {word}")),
            },
            "-newer" => match rest.next() {
                Some(file) => run.read(file),
                None => run.unknown("find: -newer"),
            },
            "-delete" => {
                run.mark(Mark::Irreversible, "find -delete");
                for place in &places {
                    run.write_all(place);
                    let areas = run.areas(place);
                    run.takes(&areas);
                }
            }
            "-exec" => exec(run, &places, &mut rest),
            _ => run.unknown(format!("find: {word} is not known")),
        }
    }
    true
}

/// What it runs, with what it finds in the place of `{}`: once for each place.
fn exec<'a>(run: &mut Run<'_, '_>, places: &[Piece], rest: &mut impl Iterator<Item = &'a Piece>) {
    let mut words = Vec::new();
    let ends = |words: &[Piece], word: &Piece| match literal(word) {
        Some(";") => true,
        Some("+") => words.last().and_then(literal) == Some("{}"),
        _ => false,
    };
    loop {
        match rest.next() {
            Some(word) if ends(&words, word) => break,
            Some(word) => words.push(word.clone()),
            None => return run.unknown("find -exec without an end"),
        }
    }
    run.said().moved.begin_loop();
    for place in places {
        let put = |word: &Piece| match literal(word) {
            Some("{}") => found(place),
            // Within a word it may be anything.
            Some(text) if text.contains("{}") => Piece::Many,
            _ => word.clone(),
        };
        let words: Vec<Piece> = words.iter().map(put).collect();
        run.inner(&words);
    }
    run.said().moved.end_loop();
}

/// It is named by the place where it was found, so it begins as that does.
fn found(place: &Piece) -> Piece {
    match place {
        Piece::Literal(text) => {
            let folder = format!("{}/", text.trim_end_matches('/'));
            Piece::Pattern { folder, dash: false, option: String::new(), one: false }
        }
        other => other.clone(),
    }
}
