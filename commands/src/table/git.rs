//! `git`, by its subcommands. In a repository that is not known to be plain each of them may run
//! hooks, filters and helpers, which are the project's code.

use std::collections::BTreeSet;

use super::files::beside;
use crate::{
    area::{Absolute, Area},
    options::{
        Operands, Spec,
        Use::{Data, Read},
    },
    place::Repository,
    run::{Run, literal},
    said::{Mark, Outside, Piece},
    walk::Bases,
};

const PLAIN: Spec = Spec { operands: Operands::All(Data), ..Spec::PLAIN };

/// What a subcommand does to the repository.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Reads,
    Changes,
    /// Changes, and puts into the folders what a commit, the index or a stash holds: links, and
    /// what shells, agents and forges go by. None of that can be told.
    Brings,
    /// Changes, and throws away what was not committed, or what was.
    Discards,
}

struct Sub {
    spec: Spec,
    does: Does,
}

const fn reads(spec: Spec) -> Sub {
    Sub { spec, does: Does::Reads }
}

const fn changes(spec: Spec) -> Sub {
    Sub { spec, does: Does::Changes }
}

const fn brings(spec: Spec) -> Sub {
    Sub { spec, does: Does::Brings }
}

/// Options of what shows history. `--output`, `--ext-diff`, `--textconv` and `--no-index` are left
/// out on purpose.
const SHOWN: Spec = Spec {
    name: "log",
    flags: "abpqsuwzM",
    long: &[
        "abbrev-commit",
        "all",
        "branches",
        "cached",
        "check",
        "color=",
        "date-order",
        "decorate=",
        "first-parent",
        "follow",
        "full-index",
        "function-context",
        "graph",
        "ignore-all-space",
        "left-right",
        "merges",
        "minimal",
        "name-only",
        "name-status",
        "no-color",
        "no-ext-diff",
        "no-merges",
        "no-patch",
        "no-renames",
        "no-textconv",
        "numstat",
        "oneline",
        "patch",
        "pickaxe-regex",
        "quiet",
        "raw",
        "relative-date",
        "reverse",
        "shortstat",
        "staged",
        "stat=",
        "summary",
        "tags",
        "topo-order",
        "unified=",
        "word-diff=",
    ],
    valued: &[
        ("-n", Data),
        ("-G", Data),
        ("-L", Data),
        ("-S", Data),
        ("-U", Data),
        ("--after", Data),
        ("--author", Data),
        ("--before", Data),
        ("--date", Data),
        ("--diff-filter", Data),
        ("--format", Data),
        ("--grep", Data),
        ("--max-count", Data),
        ("--pretty", Data),
        ("--since", Data),
        ("--until", Data),
    ],
    numbers: true,
    ..PLAIN
};

const SUBS: &[Sub] = &[
    reads(SHOWN),
    reads(Spec { name: "diff", ..SHOWN }),
    reads(Spec { name: "show", ..SHOWN }),
    reads(Spec { name: "shortlog", flags: "nse", ..PLAIN }),
    reads(Spec {
        name: "status",
        flags: "bsuz",
        long: &["branch", "ignored", "porcelain=", "short", "show-stash", "untracked-files="],
        ..PLAIN
    }),
    reads(Spec { name: "blame", flags: "elnsw", valued: &[("-L", Data)], ..PLAIN }),
    reads(Spec { name: "describe", long: &["all", "always", "dirty", "long", "tags"], ..PLAIN }),
    reads(Spec {
        name: "rev-parse",
        long: &[
            "abbrev-ref",
            "git-dir",
            "is-inside-work-tree",
            "short=",
            "show-toplevel",
            "verify",
        ],
        flags: "q",
        ..PLAIN
    }),
    reads(Spec {
        name: "ls-files",
        flags: "cdmostuz",
        long: &["cached", "deleted", "exclude-standard", "modified", "others"],
        ..PLAIN
    }),
    reads(Spec { name: "ls-tree", flags: "drtlz", long: &["name-only"], ..PLAIN }),
    reads(Spec { name: "merge-base", flags: "a", long: &["is-ancestor"], ..PLAIN }),
    reads(Spec { name: "reflog", operands: Operands::None, ..PLAIN }),
    reads(Spec {
        name: "grep",
        flags: "cEFGhHiIlLnPpqwv",
        valued: &[("-A", Data), ("-B", Data), ("-C", Data), ("-e", Data)],
        ..PLAIN
    }),
    changes(Spec { name: "add", flags: "AfnuvN", long: &["all", "update", "dry-run"], ..PLAIN }),
    changes(Spec {
        name: "commit",
        flags: "anqsv",
        long: &[
            "all",
            "allow-empty",
            "amend",
            "dry-run",
            "no-edit",
            "no-verify",
            "quiet",
            "signoff",
        ],
        valued: &[("-m", Data), ("-F", Read), ("--message", Data), ("--author", Data)],
        ..PLAIN
    }),
    changes(Spec { name: "mv", flags: "kv", ..PLAIN }),
    brings(Spec {
        name: "merge",
        flags: "q",
        long: &["abort", "continue", "ff-only", "no-commit", "no-edit", "no-ff", "squash"],
        valued: &[("-m", Data)],
        ..PLAIN
    }),
    brings(Spec { name: "rebase", flags: "q", long: &["abort", "continue"], ..PLAIN }),
    brings(Spec { name: "cherry-pick", flags: "nx", long: &["abort", "continue"], ..PLAIN }),
    brings(Spec { name: "revert", flags: "n", long: &["abort", "no-edit"], ..PLAIN }),
];

/// Options of `git` itself that change nothing.
const BEFORE: &[&str] = &["--no-pager", "-P", "--literal-pathspecs", "--no-optional-locks"];

pub(super) fn run(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) -> bool {
    if name != "git" {
        return false;
    }
    run.program(name);
    let own = |arg: &&Piece| literal(arg).is_some_and(|text| BEFORE.contains(&text));
    let before = args.iter().take_while(own).count();
    let (Some(sub), args) = (
        args.get(before).and_then(literal),
        args.get(before.saturating_add(1)..).unwrap_or_default(),
    ) else {
        run.unknown("git: its subcommand");
        return true;
    };
    if sub == "--version" {
        return true;
    }
    // `-c` and `-C`, `--git-dir`, `--exec-path`: another configuration, another repository.
    if sub.starts_with('-') {
        run.unknown(format!("git {sub}: an option that may run anything"));
        return true;
    }
    run.said().subcommands.insert(format!("git {sub}"));
    plain(run);
    match SUBS.iter().find(|known| known.spec.name == sub) {
        Some(known) => {
            if let Some(line) = listed(run, &known.spec, args) {
                planted(run, sub, &line.operands);
                does(run, known.does, sub);
            }
        }
        None => several(run, sub, args),
    }
    true
}

fn climbs(text: &str) -> bool {
    text.starts_with('/') || text.split('/').any(|part| part == "..")
}

/// Whether a value is one. git takes some only where they are joined to their option (`-U3`,
/// `--pretty=short`): else the word is an option or an operand of its own.
fn is_value(option: &str, value: &Piece) -> bool {
    match (option, literal(value)) {
        // git always takes the next word for these.
        ("-m" | "--message" | "-F", _) => true,
        ("-U", Some(text)) => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()),
        (_, Some(text)) => !text.starts_with('-') && !climbs(text),
        (_, None) => false,
    }
}

/// Reads a line, and refuses operands that may lie outside the repository.
fn listed(run: &mut Run<'_, '_>, spec: &Spec, args: &[Piece]) -> Option<crate::options::Line> {
    let line = match spec.line(args) {
        Ok(line) => line,
        Err(why) => {
            run.unknown(format!("git {}: {why}", spec.name));
            return None;
        }
    };
    for (option, kind, value) in &line.values {
        run.used(*kind, value);
        if !is_value(option, value) {
            run.unknown(format!("git {}: the value of {option}", spec.name));
        }
        // A format with signatures in it runs what verifies them.
        if *option != "-m" && literal(value).is_some_and(|text| text.contains("%G")) {
            run.unknown(format!("git {}: a format that verifies signatures", spec.name));
        }
    }
    for operand in &line.operands {
        match operand {
            Piece::Literal(text) | Piece::Pattern { folder: text, .. } if !climbs(text) => {}
            _ => run.unknown(format!("git {}: a place outside the repository", spec.name)),
        }
    }
    if spec.operands == Operands::None && !line.operands.is_empty() {
        run.unknown(format!("git {}: what it is given", spec.name));
    }
    Some(line)
}

/// What is moved or removed where git, shells and agents look: all below it.
fn planted(run: &mut Run<'_, '_>, sub: &str, operands: &[Piece]) {
    if !matches!(sub, "checkout" | "mv" | "restore" | "rm") {
        return;
    }
    for operand in operands {
        // To git these are patterns or begin at the top: they name other files than they say.
        if literal(operand)
            .is_some_and(|text| text.starts_with(':') || text.contains(['*', '?', '[']))
        {
            run.unknown(format!("git {sub}: what a pattern of git's names"));
        }
        run.write_all(operand);
        let areas = run.areas(operand);
        run.takes(&areas);
        run.links(&areas);
    }
    if sub == "mv" && !matches!(operands, [from, to] if beside(from, to)) {
        run.unknown("git mv: where a link leads from another folder");
    }
}

/// All that git may read or change: what a name leads to is looked up in the index, in history and
/// in the folders from the repository's top on, wherever below it git runs.
fn trees(run: &mut Run<'_, '_>) -> BTreeSet<Area> {
    let top = match &run.walk.place.repository {
        Repository::Plain(top) => Absolute::plain(top),
        Repository::Unknown => None,
    };
    match &run.walk.bases {
        Bases(Some(bases)) => {
            let tree = |path: &Absolute| match &top {
                Some(top) if path.is_within(top) => Area::below(top.clone()),
                // What else may be reached there is the mark's to say: it runs the project's code.
                _ => Area::below(path.clone()),
            };
            bases.iter().map(|base| tree(&base.path)).collect()
        }
        Bases(None) => {
            run.unknown("the folder in which git runs");
            BTreeSet::new()
        }
    }
}

/// Links among it lead anywhere, and what shells, agents and forges go by may be there: no more
/// than the project's own code can do.
fn puts(run: &mut Run<'_, '_>, what: &str) {
    run.mark(Mark::ProjectCode, format!("git {what}: what it puts into the folders"));
}

fn does(run: &mut Run<'_, '_>, does: Does, what: &str) {
    let trees = trees(run);
    match does {
        Does::Reads => run.said().reads.extend(trees),
        Does::Changes => run.said().repositories.extend(trees),
        Does::Brings => {
            run.said().repositories.extend(trees);
            puts(run, what);
        }
        Does::Discards => {
            run.said().repositories.extend(trees);
            run.mark(Mark::Irreversible, format!("git {what}"));
        }
    }
}

/// Where the repository is not the one that was looked at, or is changed by this very command, its
/// hooks, filters and helpers may run.
fn plain(run: &mut Run<'_, '_>) {
    let place = run.walk.place;
    let known = match (&place.repository, &place.base) {
        (Repository::Plain(top), Some(base)) => {
            Absolute::plain(top).filter(|top| base.path.is_within(top)).map(|top| (top, base))
        }
        _ => None,
    };
    let here = known.is_some_and(|(top, base)| {
        let stays = |bases: &Bases| match bases {
            Bases(Some(bases)) => bases.iter().all(|of| of == base),
            Bases(None) => false,
        };
        let said = &run.walk.said;
        // In a folder below, one command can make a repository of another kind first.
        let makes = base.path != top && !said.writes.is_empty();
        let covers = |area: &Area| area.is_tree() && base.path.is_within(area.at());
        stays(&run.walk.bases) && !makes && !said.writes.iter().any(covers)
    });
    if !here {
        run.mark(Mark::ProjectCode, "a repository whose hooks and filters are not known");
    }
}

/// Keys of a configuration that tell nothing of the user's but names.
fn is_told(key: &Piece) -> bool {
    literal(key).map(str::to_lowercase).is_some_and(|key| {
        matches!(&*key, "init.defaultbranch" | "user.email" | "user.name")
            || (key.starts_with("remote.") && key.ends_with(".url"))
    })
}

/// Options of a subcommand that does one thing or another, and which of these that is.
fn form<'p>(sub: &str, args: &'p [Piece]) -> Option<(Spec, &'p [Piece], &'static str)> {
    let first = args.first().map_or(Some(""), literal).unwrap_or("?");
    let rest = args.get(1..).unwrap_or_default();
    let spec = |name, flags, long| Spec { name, flags, long, ..PLAIN };
    Some(match (sub, first) {
        ("branch", _) => {
            (spec("branch", "aDdfmqrv", &["all", "list", "show-current"]), args, "branch")
        }
        ("tag", _) => {
            (Spec { valued: &[("-m", Data)], ..spec("tag", "adfln", &["list"]) }, args, "tag")
        }
        // A name may be that of a branch or of a file, whose changes then are gone.
        ("checkout", _) => (
            Spec { valued: &[("-b", Data)], ..spec("checkout", "q", &["ours", "theirs"]) },
            args,
            "checkout",
        ),
        ("switch", _) => (
            Spec {
                valued: &[("-c", Data), ("--create", Data)],
                ..spec("switch", "q", &["detach"])
            },
            args,
            "switch",
        ),
        ("restore", _) => (
            Spec {
                valued: &[("-s", Data), ("--source", Data)],
                ..spec("restore", "qSW", &["staged", "worktree"])
            },
            args,
            "restore",
        ),
        ("reset", _) => {
            let long = &["hard", "keep", "merge", "mixed", "quiet", "soft"];
            (spec("reset", "q", long), args, "reset")
        }
        ("stash", "list" | "show") => (spec("stash list", "pu", &["stat", "patch"]), rest, "read"),
        ("stash", "drop" | "clear") => (spec("stash drop", "q", &[]), rest, "discard"),
        ("stash", "push" | "pop" | "apply") => (
            Spec { valued: &[("-m", Data)], ..spec("stash push", "kqSu", &["index"]) },
            rest,
            "stash",
        ),
        ("stash", "") => (spec("stash", "", &[]), args, "stash"),
        // Behind `-v` may stand what changes the remotes.
        ("remote", "") => (spec("remote", "", &[]), args, "read"),
        ("remote", "-v" | "--verbose") if rest.is_empty() => {
            (spec("remote", "v", &["verbose"]), args, "read")
        }
        ("remote", "get-url") if rest.len() == 1 => (spec("remote", "", &[]), rest, "read"),
        ("config", "--get") if matches!(rest, [key] if is_told(key)) => {
            (spec("config", "", &["get"]), args, "read")
        }
        ("rm", _) => (spec("rm", "fnqr", &["cached"]), args, "rm"),
        ("clean", _) => (spec("clean", "dfnqxX", &["dry-run"]), args, "clean"),
        ("worktree", "list") => (spec("worktree list", "v", &["porcelain"]), rest, "read"),
        _ => return None,
    })
}

/// Subcommands that do one thing or another, by what they are given.
fn several(run: &mut Run<'_, '_>, sub: &str, args: &[Piece]) {
    if matches!(sub, "fetch" | "pull" | "push" | "clone" | "ls-remote") {
        return remote(run, sub, args);
    }
    let Some((spec, args, what)) = form(sub, args) else {
        let first = args.first().and_then(literal);
        // To read there shows the user's own configuration; to write, plants.
        if sub == "config" && !matches!(first, Some("--get" | "--list" | "-l")) {
            run.mark(Mark::Hides, "git's configuration");
        }
        return run.unknown(format!("git {sub}: this form is not known"));
    };
    let Some(line) = listed(run, &spec, args) else { return };
    let alone = line.operands.is_empty();
    let staged = line.says("staged") && !line.says("worktree") && !line.has("W");
    let hard = line.says("hard") || line.says("keep") || line.says("merge");
    let kind = match what {
        "read" => Does::Reads,
        "branch" if !line.has("Ddfm") && (alone || line.says("list")) => Does::Reads,
        "tag" if !line.has("adf") && !line.says("-m") && (alone || line.has("l")) => Does::Reads,
        "branch" if line.has("Df") => Does::Discards,
        "tag" if line.has("df") => Does::Discards,
        // A branch that begins here changes nothing in the folders.
        "checkout" if alone && line.says("-b") => Does::Changes,
        "switch" if alone && (line.says("-c") || line.says("--create")) => Does::Changes,
        "restore" if staged => Does::Changes,
        "rm" if line.has("fr") || line.operands.iter().any(|word| literal(word).is_none()) => {
            Does::Discards
        }
        // It says what it would remove.
        "clean" if alone && (line.has("n") || line.says("dry-run")) => Does::Reads,
        "checkout" | "clean" | "discard" | "restore" => Does::Discards,
        "reset" if hard => Does::Discards,
        "stash" | "switch" => Does::Brings,
        _ => Does::Changes,
    };
    // Of the index alone no file is changed.
    if !(what == "restore" && staged) {
        planted(run, sub, &line.operands);
    }
    does(run, kind, sub);
    if kind == Does::Discards && matches!(what, "checkout" | "reset" | "restore") {
        puts(run, sub);
    }
}

/// What leaves the machine: where to stands in the repository's configuration.
fn remote(run: &mut Run<'_, '_>, sub: &str, args: &[Piece]) {
    let spec = Spec {
        name: "with a remote",
        flags: "afnpqtuvdb46",
        long: &[
            "all",
            "delete",
            "dry-run",
            "ff-only",
            "follow-tags",
            "force",
            "force-with-lease=",
            "heads",
            "no-rebase",
            "no-verify",
            "prune",
            "quiet",
            "rebase=",
            "set-upstream",
            "tags",
            "verbose",
        ],
        valued: &[("--depth", Data), ("--branch", Data)],
        ..PLAIN
    };
    run.mark(Mark::Network, format!("git {sub}"));
    run.goes_outside(if sub == "push" { Outside::Writes } else { Outside::Reads });
    let Some(line) = listed(run, &spec, args) else { return };
    let lost =
        line.has("fd") || ["delete", "force", "force-with-lease"].iter().any(|o| line.says(o));
    let refspec = |word: &Piece| literal(word).is_some_and(|text| text.starts_with(['+', ':']));
    if sub == "push" && (lost || line.operands.iter().any(refspec)) {
        run.mark(Mark::Irreversible, "git push that takes something away");
    }
    if line.operands.iter().any(|word| literal(word).is_some_and(|text| text.contains("::"))) {
        run.unknown("git: a remote that is a program");
    }
    match sub {
        // `-u` is the program that is run for it.
        "clone" if line.has("u") => run.unknown("git clone: a program"),
        "clone" => match &*line.operands {
            [_, folder] => run.write_all(folder),
            _ => run.write_all(&Piece::Literal(".".to_owned())),
        },
        "pull" => does(run, Does::Brings, sub),
        _ => does(run, Does::Changes, sub),
    }
    if sub == "clone" {
        puts(run, sub);
    }
}
