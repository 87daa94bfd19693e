//! Programs that make, change and remove files.

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
        "rmdir" => listed(run, &RMDIR, args),
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
        if all || literal(word).is_none() {
            run.mark(Mark::Irreversible, "rm of more than files by their names");
        }
        match all {
            true => run.write_all(word),
            false => run.write(word),
        }
    }
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
    run.write(&target);
    for source in sources {
        let areas = run.areas(source);
        let below = |area: &Area| if all { Area::below(area.at().clone()) } else { area.clone() };
        let areas = areas.iter().map(below).collect();
        match moves {
            true => run.writes(areas),
            false => run.said().reads.extend(areas),
        }
        let name = literal(source).map(|text| text.trim_end_matches('/'));
        let name = name.and_then(|text| text.rsplit('/').next());
        match name.filter(|name| !matches!(*name, "" | "." | "..")) {
            Some(name) => {
                run.write_in(&target, Some(name));
                if all {
                    let inside = run.areas(&target);
                    let inside = inside.iter().map(|area| Area::below(area.at().join(name)));
                    let inside = inside.collect();
                    run.writes(inside);
                    run.write_all(&target);
                }
            }
            None => run.write_in(&target, None),
        }
    }
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
    run.write_all(&Piece::Literal(target.to_owned()));
    run.write(name);
    let last = target.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    run.write_in(name, Some(last));
    if line.has("s") && !target.starts_with('/') {
        // Beside the link, or in the folder that the name is of.
        let links = run.areas(name);
        for folder in links.iter().flat_map(|link| [link.at().parent(), link.at().clone()]) {
            let base = Base::unseen(folder);
            match base.file(target) {
                Some(path) => run.writes([Area::below(path)].into()),
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
