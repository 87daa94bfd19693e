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

const fn discards(spec: Spec) -> Sub {
    Sub { spec, does: Does::Discards }
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
    changes(Spec {
        name: "merge",
        flags: "q",
        long: &["abort", "continue", "ff-only", "no-commit", "no-edit", "no-ff", "squash"],
        valued: &[("-m", Data)],
        ..PLAIN
    }),
    changes(Spec { name: "rebase", flags: "q", long: &["abort", "continue"], ..PLAIN }),
    changes(Spec { name: "cherry-pick", flags: "nx", long: &["abort", "continue"], ..PLAIN }),
    changes(Spec { name: "revert", flags: "n", long: &["abort", "no-edit"], ..PLAIN }),
    changes(Spec { name: "switch", flags: "cq", long: &["create", "detach"], ..PLAIN }),
    discards(Spec { name: "clean", flags: "dfnqxX", ..PLAIN }),
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
                let makes = sub == "switch" && (line.has("c") || line.says("create"));
                let trees = ["merge", "rebase", "cherry-pick", "revert", "switch", "clean"];
                // A new branch from where it is changes no file.
                if trees.contains(&sub) && !(makes && line.operands.len() < 2) {
                    worktree(run);
                }
                does(run, known.does, sub);
            }
        }
        None => several(run, sub, args),
    }
    true
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
    for (_, kind, value) in &line.values {
        run.used(*kind, value);
    }
    for operand in &line.operands {
        let climbs = |text: &str| text.starts_with('/') || text.split('/').any(|p| p == "..");
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

/// What is moved to where git, shells and agents look is planted there.
fn planted(run: &mut Run<'_, '_>, sub: &str, operands: &[Piece]) {
    if sub == "mv" {
        for operand in operands {
            run.write(operand);
            let areas = run.areas(operand);
            run.takes(&areas);
            run.links(&areas);
        }
        if !matches!(operands, [from, to] if beside(from, to)) {
            run.unknown("git mv: where a link leads from another folder");
        }
    }
}

/// Whether it may change files, and not only the index or the names of branches.
fn exchanges(sub: &str, what: &str, kind: Does, operands: usize) -> bool {
    match sub {
        // A new branch from where it is.
        "checkout" => what != "checkout" || operands > 1,
        "restore" | "reset" => kind == Does::Discards,
        "rm" | "stash" => kind != Does::Reads,
        _ => false,
    }
}

/// Files are exchanged for those of a commit, of which any may be a link.
fn worktree(run: &mut Run<'_, '_>) {
    let mut places = folders(run);
    if let Repository::Plain(top) = &run.walk.place.repository {
        places.extend(Absolute::plain(top).map(Area::one));
    }
    run.links(&places);
}

fn folders(run: &mut Run<'_, '_>) -> BTreeSet<Area> {
    match &run.walk.bases {
        Bases(Some(bases)) => bases.iter().map(|base| Area::one(base.path.clone())).collect(),
        Bases(None) => {
            run.unknown("the folder in which git runs");
            BTreeSet::new()
        }
    }
}

fn does(run: &mut Run<'_, '_>, does: Does, what: &str) {
    let folders = folders(run);
    match does {
        Does::Reads => run.said().reads.extend(folders),
        Does::Changes => run.said().repositories.extend(folders),
        Does::Discards => {
            run.said().repositories.extend(folders);
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

/// Subcommands that do one thing or another, by what they are given.
fn several(run: &mut Run<'_, '_>, sub: &str, args: &[Piece]) {
    let first = args.first().and_then(literal).unwrap_or_default();
    let rest = args.get(1..).unwrap_or_default();
    let spec = |name, flags, long| Spec { name, flags, long, ..PLAIN };
    let (spec, args, what): (Spec, &[Piece], _) = match (sub, first) {
        ("branch", _) => (spec("branch", "aDdfmqrvV", &["all", "list", "show-current"]), args, sub),
        ("tag", _) => (
            Spec { valued: &[("-m", Data), ("-n", Data)], ..spec("tag", "adfl", &["list"]) },
            args,
            sub,
        ),
        ("checkout", "-b") => (spec("checkout -b", "q", &[]), rest, sub),
        // A name may be that of a branch or of a file, whose changes then are gone.
        ("checkout", _) => (spec("checkout", "q", &["ours", "theirs"]), args, "discard"),
        ("restore", _) => (
            Spec {
                valued: &[("-s", Data), ("--source", Data)],
                ..spec("restore", "qSW", &["staged", "worktree"])
            },
            args,
            "restore",
        ),
        ("reset", _) => {
            (spec("reset", "q", &["hard", "keep", "merge", "mixed", "quiet", "soft"]), args, sub)
        }
        ("stash", "list" | "show") => (spec("stash list", "pu", &["stat", "patch"]), rest, "read"),
        ("stash", "drop" | "clear") => (spec("stash drop", "q", &[]), rest, "discard"),
        ("stash", "push" | "pop" | "apply") => {
            (Spec { valued: &[("-m", Data)], ..spec("stash push", "kqSu", &["index"]) }, rest, sub)
        }
        ("stash", "") if args.is_empty() => (spec("stash", "", &[]), args, sub),
        ("remote", "" | "-v" | "show" | "get-url") if first != "show" || rest.is_empty() => {
            (spec("remote", "v", &[]), args, "read")
        }
        ("config", "--get" | "--list" | "-l") => {
            (spec("config", "l", &["get", "list", "show-origin"]), args, "read")
        }
        ("rm", _) => (spec("rm", "fnqr", &["cached"]), args, sub),
        ("fetch" | "pull" | "push" | "clone" | "ls-remote", _) => return remote(run, sub, args),
        ("config", _) => {
            run.mark(Mark::Hides, "git's configuration");
            return run.unknown("git config");
        }
        _ => return run.unknown(format!("git {sub} is not known")),
    };
    let Some(line) = listed(run, &spec, args) else { return };
    let alone = line.operands.is_empty();
    let kind = match what {
        "read" => Does::Reads,
        "branch" | "tag" if alone && !line.has("aDdfm") => Does::Reads,
        "branch" if line.has("rav") || line.says("list") || line.says("all") => Does::Reads,
        "branch" if line.has("Df") => Does::Discards,
        "tag" if line.has("df") => Does::Discards,
        "restore" if line.says("staged") && !line.says("worktree") && !line.has("W") => {
            Does::Changes
        }
        "reset" if line.says("hard") || line.says("keep") || line.says("merge") => Does::Discards,
        "rm" if line.has("f") => Does::Discards,
        "discard" | "restore" => Does::Discards,
        _ => Does::Changes,
    };
    if exchanges(sub, what, kind, line.operands.len()) {
        worktree(run);
    }
    // What is taken from a commit may be what agents and shells go by.
    if matches!(sub, "checkout" | "restore" | "rm") {
        line.operands.iter().for_each(|operand| run.write(operand));
    }
    does(run, kind, sub);
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
        "clone" => {
            worktree(run);
            cloned(run, &line.operands);
        }
        _ => {
            if sub == "pull" {
                worktree(run);
            }
            does(run, Does::Changes, sub);
        }
    }
}

fn cloned(run: &mut Run<'_, '_>, operands: &[Piece]) {
    let folder = match operands {
        [_, folder] => folder.clone(),
        _ => Piece::Literal(".".to_owned()),
    };
    run.write_all(&folder);
    let areas = run.areas(&folder);
    run.links(&areas);
}
