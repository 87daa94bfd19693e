//! Programs that read, and whose options and operands say all. Options that write or run
//! something (`sort --compress-program`, `rg --pre`, `tree -o`) are left out on purpose.

use crate::{
    options::{
        Line,
        Operands::{All, Copy, None as Nothing},
        Spec,
        Use::{Data, Read, ReadAll, Write},
    },
    run::{Run, literal},
    said::Piece,
};

const PLAIN: Spec = Spec::PLAIN;

const LISTED: &[Spec] = &[
    Spec {
        name: "ls",
        flags: "1aAbBcCdfFgGhHiklmnNopqQrRsStuUvxXZ",
        long: &["all", "almost-all", "color=", "full-time", "group-directories-first", "help"],
        harmless: true,
        operands: All(Read),
        ..PLAIN
    },
    Spec { name: "cat", flags: "AbeEnstTuv", harmless: true, operands: All(Read), ..PLAIN },
    Spec {
        name: "head",
        flags: "qvz",
        valued: &[("-n", Data), ("-c", Data), ("--lines", Data), ("--bytes", Data)],
        numbers: true,
        harmless: true,
        operands: All(Read),
        ..PLAIN
    },
    Spec {
        name: "tail",
        flags: "fFqvz",
        long: &["follow"],
        valued: &[("-n", Data), ("-c", Data), ("--lines", Data), ("--bytes", Data)],
        numbers: true,
        harmless: true,
        operands: All(Read),
    },
    Spec {
        name: "wc",
        flags: "clmLw",
        long: &["lines", "words", "bytes", "chars"],
        operands: All(Read),
        ..PLAIN
    },
    Spec { name: "nl", flags: "p", valued: &[("-b", Data)], operands: All(Read), ..PLAIN },
    Spec { name: "tac", operands: All(Read), ..PLAIN },
    Spec { name: "rev", operands: All(Read), ..PLAIN },
    Spec {
        name: "sort",
        flags: "bcCdfghiMnRrsuVz",
        long: &["unique", "reverse", "numeric-sort", "human-numeric-sort", "version-sort"],
        valued: &[("-k", Data), ("-t", Data), ("-o", Write), ("--key", Data), ("--output", Write)],
        operands: All(Read),
        ..PLAIN
    },
    Spec {
        name: "uniq",
        flags: "cdDiuz",
        long: &["count", "repeated", "unique"],
        valued: &[("-f", Data), ("-s", Data), ("-w", Data)],
        operands: Copy,
        ..PLAIN
    },
    Spec {
        name: "cut",
        flags: "nsz",
        long: &["complement"],
        valued: &[
            ("-b", Data),
            ("-c", Data),
            ("-d", Data),
            ("-f", Data),
            ("--delimiter", Data),
            ("--fields", Data),
        ],
        operands: All(Read),
        ..PLAIN
    },
    Spec { name: "tr", flags: "cCdst", operands: All(Data), ..PLAIN },
    Spec { name: "paste", flags: "sz", valued: &[("-d", Data)], operands: All(Read), ..PLAIN },
    Spec { name: "comm", flags: "123z", operands: All(Read), ..PLAIN },
    Spec {
        name: "diff",
        flags: "abBdEiNpqrstTuwyZ",
        long: &["brief", "color=", "unified", "side-by-side", "ignore-all-space"],
        valued: &[("-U", Data), ("-C", Data), ("-W", Data)],
        operands: All(ReadAll),
        ..PLAIN
    },
    Spec { name: "cmp", flags: "bls", operands: All(Read), ..PLAIN },
    Spec {
        name: "stat",
        flags: "ft",
        valued: &[("-c", Data), ("--format", Data), ("--printf", Data)],
        operands: All(Read),
        ..PLAIN
    },
    Spec {
        name: "file",
        flags: "bihN",
        long: &["brief", "mime-type"],
        operands: All(Read),
        ..PLAIN
    },
    Spec {
        name: "du",
        flags: "abchkms0x",
        long: &["human-readable", "summarize"],
        valued: &[("-d", Data), ("--max-depth", Data)],
        operands: All(ReadAll),
        ..PLAIN
    },
    Spec { name: "df", flags: "ahHiklPT", operands: All(Read), ..PLAIN },
    Spec {
        name: "tree",
        flags: "adfhpugDFrtiCns",
        long: &["dirsfirst", "gitignore"],
        valued: &[("-L", Data), ("-I", Data), ("-P", Data)],
        operands: All(ReadAll),
        ..PLAIN
    },
    Spec { name: "realpath", flags: "emqsz", operands: All(Read), ..PLAIN },
    Spec { name: "readlink", flags: "efmnqsvz", operands: All(Read), ..PLAIN },
    Spec {
        name: "basename",
        flags: "az",
        valued: &[("-s", Data)],
        harmless: true,
        operands: All(Data),
        ..PLAIN
    },
    Spec { name: "dirname", flags: "z", harmless: true, operands: All(Data), ..PLAIN },
    Spec {
        name: "xxd",
        flags: "abeipruE",
        valued: &[("-c", Data), ("-g", Data), ("-l", Data), ("-s", Data)],
        operands: Copy,
        ..PLAIN
    },
    Spec {
        name: "base64",
        flags: "di",
        long: &["decode", "ignore-garbage"],
        valued: &[("-w", Data), ("--wrap", Data)],
        operands: All(Read),
        ..PLAIN
    },
    Spec { name: "column", flags: "t", valued: &[("-s", Data)], operands: All(Read), ..PLAIN },
    Spec {
        name: "fold",
        flags: "bs",
        valued: &[("-w", Data)],
        numbers: true,
        operands: All(Read),
        ..PLAIN
    },
    // With a name it sets the machine's.
    Spec { name: "hostname", flags: "fsiI", ..PLAIN },
    Spec {
        name: "pgrep",
        flags: "acfilnovx",
        valued: &[("-u", Data), ("-P", Data)],
        operands: All(Data),
        ..PLAIN
    },
    Spec { name: "clear", ..PLAIN },
    Spec { name: "sha256sum", flags: "bt", operands: All(Read), ..PLAIN },
    Spec { name: "sha1sum", flags: "bt", operands: All(Read), ..PLAIN },
    Spec { name: "md5sum", flags: "bt", operands: All(Read), ..PLAIN },
    Spec {
        name: "od",
        flags: "abcdxv",
        valued: &[("-A", Data), ("-N", Data), ("-t", Data)],
        operands: All(Read),
        ..PLAIN
    },
    Spec {
        name: "hexdump",
        flags: "bcCdoxv",
        valued: &[("-n", Data), ("-s", Data)],
        operands: All(Read),
        ..PLAIN
    },
    Spec { name: "strings", flags: "ao", valued: &[("-n", Data)], operands: All(Read), ..PLAIN },
    Spec {
        name: "seq",
        flags: "w",
        valued: &[("-s", Data), ("-f", Data)],
        numbers: true,
        operands: All(Data),
        ..PLAIN
    },
    Spec { name: "sleep", operands: All(Data), ..PLAIN },
    Spec { name: "uname", flags: "amnoprsv", ..PLAIN },
    Spec { name: "whoami", ..PLAIN },
    Spec { name: "id", flags: "Ggnru", operands: All(Data), ..PLAIN },
    Spec { name: "nproc", long: &["all"], ..PLAIN },
    Spec { name: "uptime", ..PLAIN },
    Spec { name: "free", flags: "bghkm", ..PLAIN },
    Spec { name: "which", flags: "a", operands: All(Data), ..PLAIN },
    Spec {
        name: "ps",
        flags: "aAcdefFHjlMTwy",
        long: &["forest", "headers", "no-headers"],
        valued: &[
            ("-C", Data),
            ("-G", Data),
            ("-U", Data),
            ("-o", Data),
            ("-p", Data),
            ("-t", Data),
            ("-u", Data),
            ("--cols", Data),
            ("--format", Data),
            ("--pid", Data),
            ("--ppid", Data),
            ("--sort", Data),
        ],
        operands: Nothing,
        ..PLAIN
    },
];

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    LISTED.iter().map(|spec| spec.name)
}

const GREP: Spec = Spec {
    name: "grep",
    flags: "abcEFGhHiIlLnoPqrsTUvVwxyZz",
    long: &[
        "color=",
        "colour=",
        "count",
        "extended-regexp",
        "files-with-matches",
        "fixed-strings",
        "ignore-case",
        "invert-match",
        "line-number",
        "no-messages",
        "only-matching",
        "perl-regexp",
        "quiet",
        "recursive",
        "word-regexp",
    ],
    valued: &[
        ("-A", Data),
        ("-B", Data),
        ("-C", Data),
        ("-e", Data),
        ("-f", Read),
        ("-m", Data),
        ("--after-context", Data),
        ("--before-context", Data),
        ("--context", Data),
        ("--exclude", Data),
        ("--exclude-dir", Data),
        ("--include", Data),
        ("--max-count", Data),
        ("--regexp", Data),
    ],
    numbers: true,
    ..PLAIN
};

/// `-z` and `--pre` run other programs; `-L` and `--follow` follow links.
const RG: Spec = Spec {
    name: "rg",
    flags: "acFHhIilNnopPqSsUuvVwx0.",
    long: &[
        "count",
        "files",
        "files-with-matches",
        "fixed-strings",
        "heading",
        "hidden",
        "ignore-case",
        "json",
        "line-number",
        "multiline",
        "no-filename",
        "no-heading",
        "no-ignore",
        "no-line-number",
        "only-matching",
        "smart-case",
        "stats",
        "trim",
        "type-list",
        "vimgrep",
        "word-regexp",
    ],
    valued: &[
        ("-A", Data),
        ("-B", Data),
        ("-C", Data),
        ("-d", Data),
        ("-e", Data),
        ("-f", Read),
        ("-g", Data),
        ("-j", Data),
        ("-m", Data),
        ("-M", Data),
        ("-r", Data),
        ("-t", Data),
        ("-T", Data),
        ("--color", Data),
        ("--context", Data),
        ("--glob", Data),
        ("--max-count", Data),
        ("--max-depth", Data),
        ("--sort", Data),
        ("--type", Data),
    ],
    ..PLAIN
};

pub(super) fn run(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) -> bool {
    match name {
        "grep" | "egrep" | "fgrep" => search(run, name, &GREP, args),
        "rg" => search(run, name, &RG, args),
        "date" => date(run, args),
        "ps" => processes(run, args),
        _ => match LISTED.iter().find(|spec| spec.name == name) {
            Some(spec) => {
                run.program(name);
                // It has words for options where others have letters.
                let word = |text: &str| text.starts_with('-') && text.len() > 2;
                if name == "xxd" && args.iter().filter_map(literal).any(word) {
                    run.unknown("xxd: an option that is not known");
                }
                // Behind a file they are the one that it writes.
                let last = |line: Line| args.ends_with(&line.operands);
                if name == "xxd" && !spec.line(args).is_ok_and(last) {
                    run.unknown("xxd: an option behind a file");
                }
                run.listed(spec, args);
                if matches!(name, "ls" | "du" | "tree") {
                    lists(run, spec, args);
                }
            }
            None => return false,
        },
    }
    true
}

/// Without operands the folder in which it runs; and all below where it goes down.
fn lists(run: &mut Run<'_, '_>, spec: &Spec, args: &[Piece]) {
    let Ok(Line { operands, flags, .. }) = spec.line(args) else { return };
    let here = [Piece::Literal(".".to_owned())];
    let folders = if operands.is_empty() { &here[..] } else { &operands };
    // A file's name may be the option.
    let may_be = |word: &Piece| match word {
        Piece::Literal(_) | Piece::Stream => false,
        Piece::Pattern { dash, .. } => *dash,
        Piece::One | Piece::Many => true,
    };
    let down = flags.contains('R') || operands.iter().any(may_be);
    match spec.name == "ls" && !down {
        true => folders.iter().for_each(|folder| run.read(folder)),
        false => folders.iter().for_each(|folder| run.read_all(folder)),
    }
}

/// A pattern, unless an option gives one, and where to look for it; here, if nowhere.
fn search(run: &mut Run<'_, '_>, name: &str, spec: &Spec, args: &[Piece]) {
    run.program(name);
    let line = match spec.line(args) {
        Ok(line) => line,
        Err(why) => return run.unknown(format!("{name}: {why}")),
    };
    for (_, kind, value) in &line.values {
        run.used(*kind, value);
    }
    let given = ["-e", "-f", "--regexp"].iter().any(|option| line.says(option));
    let without = given || line.says("files") || line.says("type-list");
    let mut operands = &*line.operands;
    if !without && let Some((pattern, rest)) = operands.split_first() {
        if !run.is_one(pattern) {
            run.unknown(format!("{name}: its pattern"));
        }
        operands = rest;
    }
    let all = name == "rg" || line.has("r") || line.says("recursive");
    let here =
        Piece::Pattern { folder: String::new(), dash: false, option: String::new(), one: false };
    match (all, operands) {
        // Also behind a pipe, since a redirection may have taken that away again.
        (true, []) => run.read_all(&here),
        (true, places) => places.iter().for_each(|place| run.read_all(place)),
        (false, files) => files.iter().for_each(|file| run.read(file)),
    }
}

/// Without a dash `ps` has letters, too, of which `e` shows what processes have in their
/// environment: keys, for one.
fn processes(run: &mut Run<'_, '_>, args: &[Piece]) {
    run.program("ps");
    let letters =
        |text: &str| !text.is_empty() && text.chars().all(|c| "acfhjlrSTuvwx".contains(c));
    // With a dash `ux` is no user of that name where there is none: then all is read without.
    let (rest, mut again) = match args.split_first() {
        Some((Piece::Literal(first), rest)) if letters(first) => (rest, false),
        Some((Piece::Literal(first), rest)) if matches!(first.as_str(), "-aux" | "-ax") => {
            (rest, true)
        }
        _ => (args, false),
    };
    let spec = LISTED.iter().find(|spec| spec.name == "ps");
    if let Some(line) = spec.and_then(|spec| spec.line(rest).ok()) {
        let number = |text: &str| text.len() < 9 && text.bytes().all(|byte| byte.is_ascii_digit());
        let mut shows = line.has("e");
        for (option, _, value) in &line.values {
            let value = literal(value);
            match *option {
                "-o" | "--format" | "--sort" => {}
                "-G" | "-U" | "-p" | "-t" | "-u" => {
                    again |= !value.is_some_and(|text| text.split(',').all(number));
                    shows |= value.is_none_or(|text| text.contains('e'));
                }
                _ => shows |= value.is_none_or(|text| text.contains('e')),
            }
        }
        if again && shows {
            run.unknown("ps: a letter that may show environments");
        }
    }
    match spec {
        Some(spec) => run.listed(spec, rest),
        None => run.unknown("ps"),
    }
}

/// Sets the clock where it is given a date.
fn date(run: &mut Run<'_, '_>, args: &[Piece]) {
    run.program("date");
    let fine = |arg: &Piece| match arg {
        Piece::Literal(text) => {
            text.starts_with('+') || matches!(text.as_str(), "-u" | "-I" | "-R" | "-Iseconds")
        }
        _ => false,
    };
    if !args.iter().all(fine) {
        run.unknown("date: what it is given");
    }
}
