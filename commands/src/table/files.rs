//! Programs that make, change and remove files.

use std::collections::BTreeSet;

use crate::{
    area::{Area, Base},
    options::{
        Operands::All,
        Spec,
        Use::{Data, Read, Write},
    },
    run::{Run, literal},
    said::{Mark, Piece},
};

/// Their names.
pub(super) const NAMES: &[&str] =
    &["chmod", "cp", "ln", "mkdir", "mv", "rm", "rmdir", "tee", "touch", "truncate"];

const PLAIN: Spec = Spec::PLAIN;
const MKDIR: Spec =
    Spec { name: "mkdir", flags: "pv", valued: &[("-m", Data)], operands: All(Write), ..PLAIN };
const TOUCH: Spec = Spec {
    name: "touch",
    flags: "acm",
    valued: &[("-d", Data), ("-t", Data), ("-r", Read)],
    operands: All(Write),
    ..PLAIN
};
const TEE: Spec = Spec { name: "tee", flags: "ai", operands: All(Write), ..PLAIN };
const RMDIR: Spec = Spec { name: "rmdir", flags: "pv", operands: All(Write), ..PLAIN };
const TRUNCATE: Spec =
    Spec { name: "truncate", flags: "c", valued: &[("-s", Data)], operands: All(Write), ..PLAIN };
const RM: Spec =
    Spec { name: "rm", flags: "dfiIrRv", long: &["recursive", "force", "verbose"], ..PLAIN };
/// `-l` and `-s` make links, `-L` and `-H` follow them.
const CP: Spec = Spec {
    name: "cp",
    flags: "afiInprRTuvdP",
    long: &["recursive", "force", "verbose", "archive", "no-clobber"],
    valued: &[("-t", Write)],
    ..PLAIN
};
const MV: Spec = Spec {
    name: "mv",
    flags: "finTuv",
    long: &["force", "verbose", "no-clobber"],
    valued: &[("-t", Write)],
    ..PLAIN
};
const LN: Spec = Spec { name: "ln", flags: "fnsvT", ..PLAIN };
const CHMOD: Spec = Spec { name: "chmod", flags: "cfRv", ..PLAIN };

pub(super) fn run(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) -> bool {
    match name {
        "mkdir" => listed(run, &MKDIR, args),
        "touch" => listed(run, &TOUCH, args),
        "tee" => listed(run, &TEE, args),
        "rmdir" => {
            listed(run, &RMDIR, args);
            for word in RMDIR.line(args).into_iter().flat_map(|line| line.operands) {
                let areas = run.areas(&word);
                run.takes(&areas);
            }
        }
        "truncate" => {
            listed(run, &TRUNCATE, args);
            run.mark(Mark::Irreversible, "truncate");
        }
        "rm" => remove(run, args),
        "cp" => copy(run, &CP, args),
        "mv" => copy(run, &MV, args),
        "ln" => link(run, args),
        "chmod" => mode(run, args),
        _ => return false,
    }
    true
}

fn listed(run: &mut Run<'_, '_>, spec: &Spec, args: &[Piece]) {
    run.program(spec.name);
    run.listed(spec, args);
}

/// Folders below this one that builds and tests make, and make again. Of two of these names
/// programs have modules of their own too, in folders below.
fn is_built(word: &Piece) -> bool {
    const BUILT: &[&str] = &[
        ".mypy_cache",
        ".next",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
        ".turbo",
        "__pycache__",
        "htmlcov",
        "node_modules",
        "target",
    ];
    let name = literal(word).map(|text| text.trim_end_matches('/'));
    let last = name.and_then(|text| text.rsplit('/').next());
    let own = !name.is_some_and(|text| text.trim_start_matches("./").contains('/'));
    is_below(word)
        && last.is_some_and(|last| {
            BUILT.contains(&last) && (own || !matches!(last, "target" | "htmlcov"))
        })
}

/// One file by its name is like one that is written over; what is more can't be undone.
fn remove(run: &mut Run<'_, '_>, args: &[Piece]) {
    run.program("rm");
    let line = match RM.line(args) {
        Ok(line) => line,
        Err(why) => {
            run.mark(Mark::Irreversible, "rm");
            return run.unknown(format!("rm: {why}"));
        }
    };
    let all = line.has("rR") || line.says("recursive");
    for word in &line.operands {
        if (all && !is_built(word)) || literal(word).is_none() {
            run.mark(Mark::Irreversible, "rm of more than files by their names");
        }
        let areas = run.areas(word);
        run.takes(&areas);
        match all {
            true if is_below(word) => run.writes_named(trees(&areas)),
            true => run.write_all(word),
            false => run.write(word),
        }
    }
}

fn trees(areas: &BTreeSet<Area>) -> BTreeSet<Area> {
    areas.iter().map(|area| Area::below(area.at().clone())).collect()
}

/// Whether a word names something below the folder that the command is in, and not that folder.
fn is_below(word: &Piece) -> bool {
    literal(word).is_some_and(|text| {
        let text = text.strip_suffix('/').unwrap_or(text);
        let text = text.strip_prefix("./").unwrap_or(text);
        text.split('/').all(|part| !matches!(part, "" | "." | ".."))
    })
}

/// What is copied or moved, and what comes of it: the target, or a file of that name in it.
fn copy(run: &mut Run<'_, '_>, spec: &Spec, args: &[Piece]) {
    run.program(spec.name);
    let line = match spec.line(args) {
        Ok(line) => line,
        Err(why) => return run.unknown(format!("{}: {why}", spec.name)),
    };
    let (target, sources) = match (line.value("-t"), line.operands.split_last()) {
        (Some(folder), _) => (folder.clone(), &*line.operands),
        (None, Some((target, sources))) if !sources.is_empty() => (target.clone(), sources),
        _ => return run.unknown(format!("{}: what it is given", spec.name)),
    };
    let moves = spec.name == "mv";
    let all = moves || line.has("arR") || line.says("recursive") || line.says("archive");
    let beside = !line.says("-t") && matches!(sources, [source] if beside(source, &target));
    // What is below a thing that is renamed was there before, under the same names.
    let renames = moves && beside;
    let may_link = all || line.has("dP");
    if may_link {
        let places = run.areas(&target);
        run.links(&places);
        if !beside {
            // A link by a relative name leads elsewhere from another folder.
            run.unknown(format!("{}: where a link leads from another folder", spec.name));
        }
    }
    run.write(&target);
    for source in sources {
        let areas = run.areas(source);
        if moves {
            run.takes(&areas);
        }
        let areas = if all { trees(&areas) } else { areas };
        match (moves, renames) {
            (true, true) => run.writes_named(areas),
            (true, false) => run.writes(areas),
            (false, _) => run.said().reads.extend(areas),
        }
        let name = literal(source).map(|text| text.trim_end_matches('/'));
        let name = name.and_then(|text| text.rsplit('/').next());
        match name.filter(|name| !matches!(*name, "" | "." | "..")) {
            Some(name) => {
                run.write_in(&target, Some(name));
                if all {
                    let folders = run.areas(&target);
                    let inside = folders.iter().map(|area| Area::below(area.at().join(name)));
                    let written = inside.chain(trees(&folders)).collect();
                    match renames {
                        true => run.writes_named(written),
                        false => run.writes(written),
                    }
                }
            }
            None => run.write_in(&target, None),
        }
    }
}

/// Whether two words name things of one folder, so that what is renamed from one to the other
/// stays where it is.
pub(super) fn beside(source: &Piece, target: &Piece) -> bool {
    let (Some(source), Some(target)) = (literal(source), literal(target)) else { return false };
    let parts = |text: &str| {
        // `.//a` is not `/a`.
        let text = text.strip_prefix("./").filter(|rest| !rest.starts_with('/')).unwrap_or(text);
        let (folder, name) = match text.rsplit_once('/') {
            Some((folder, name)) => (Some(folder.to_owned()), name),
            None => (None, text),
        };
        (!matches!(name, "" | "." | "..")).then_some(folder)
    };
    parts(source).is_some_and(|folder| parts(target) == Some(folder))
}

/// What a link leads to is as good as touched: it is reached by the link's name from then on. One
/// by name is read from the folder of the link.
fn link(run: &mut Run<'_, '_>, args: &[Piece]) {
    run.program("ln");
    let line = match LN.line(args) {
        Ok(line) => line,
        Err(why) => return run.unknown(format!("ln: {why}")),
    };
    let [target, name] = &*line.operands else {
        return run.unknown("ln: what it is given");
    };
    let (Some(target), Some(_)) = (literal(target), literal(name)) else {
        return run.unknown("ln: a name that can't be told");
    };
    // To a link that there is, another name is the same link, in another folder.
    if !line.has("s") && !matches!(&*line.operands, [from, to] if beside(from, to)) {
        run.unknown("ln: where a link leads from another folder");
    }
    let places = run.areas(name);
    run.links(&places);
    let led = run.areas(&Piece::Literal(target.to_owned()));
    run.writes_named(trees(&led));
    run.write(name);
    let last = target.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    run.write_in(name, Some(last));
    if line.has("s") && !target.starts_with('/') {
        // Beside the link, or in the folder that the name is of.
        let links = run.areas(name);
        for folder in links.iter().flat_map(|link| [link.at().parent(), link.at().clone()]) {
            let base = Base::unseen(folder);
            match base.file(target) {
                Some(path) => run.writes_named([Area::below(path)].into()),
                None => run.unknown("where a link leads"),
            }
        }
    }
}

fn mode(run: &mut Run<'_, '_>, args: &[Piece]) {
    run.program("chmod");
    let line = match CHMOD.line(args) {
        Ok(line) => line,
        Err(why) => return run.unknown(format!("chmod: {why}")),
    };
    let Some((mode, files)) = line.operands.split_first() else {
        return run.unknown("chmod: what it is given");
    };
    let fine = |c: char| c.is_ascii_digit() || "ugoarwx+-=,X".contains(c);
    if !literal(mode).is_some_and(|mode| mode.chars().all(fine)) {
        run.unknown("chmod: a mode that is not known");
    }
    for file in files {
        match line.has("R") {
            true => run.write_all(file),
            false => run.write(file),
        }
    }
}
