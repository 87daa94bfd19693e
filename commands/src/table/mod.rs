//! What is known of programs. All that is not here is unknown.

mod builtin;
mod code;
mod files;
mod find;
mod git;
mod input;
mod listed;
mod net;
mod script;
mod tar;
mod wrap;

use crate::{
    area::Absolute,
    place::Origin,
    run::Run,
    said::{Mark, Piece},
    walk::Ends,
};

/// The programs that are known, by name.
#[must_use]
pub fn programs() -> Vec<&'static str> {
    let lists = [
        builtin::NAMES,
        files::NAMES,
        net::NAMES,
        wrap::SHELLS,
        code::TOOLS,
        code::INTERPRETERS,
        code::FETCHERS,
        &["awk", "date", "egrep", "fgrep", "find", "gawk", "git", "grep", "jq", "mawk", "pip3"],
        &["bzip2", "gzip", "rg", "sed", "tar", "xz"],
    ];
    let mut names: Vec<&str> = lists.into_iter().flatten().copied().collect();
    names.extend(listed::names().chain(wrap::names()).chain(code::names()));
    names.sort_unstable();
    names.dedup();
    names
}

/// Runs a program, or a command of the shell's own.
pub(crate) fn run(mut run: Run<'_, '_>, name: &str, args: &[Piece]) -> Ends {
    if name.contains('/') {
        return by_path(run, name, args);
    }
    if let Some(ends) = builtin::run(&mut run, name, args) {
        return ends;
    }
    named(&mut run, name, args);
    run.stays()
}

fn named(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) {
    let known =
        [listed::run, files::run, find::run, git::run, wrap::run, net::run, script::run, tar::run];
    if known.iter().any(|known| known(run, name, args)) {
        return;
    }
    if !code::run(run, name, args) {
        run.unknown(format!("{name} is not in the table"));
    }
}

/// A program by its path: one of the project's, or the one that `PATH` finds.
fn by_path(mut run: Run<'_, '_>, path: &str, args: &[Piece]) -> Ends {
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    run.said().needs.insert(name.clone());
    let place = run.walk.place;
    let found = place.found.get(&name).is_some_and(|found| found == path);
    if found && place.program(&name) == Origin::System {
        named(&mut run, &name, args);
        return run.stays();
    }
    let word = Piece::Literal(path.to_owned());
    let files = run.areas(&word);
    let own = |folder: &String| Absolute::plain(folder);
    let own: Vec<Absolute> = place.writable.iter().filter_map(own).collect();
    let inside = |path: &Absolute| own.iter().any(|folder| path.is_within(folder));
    match !files.is_empty() && files.iter().all(|file| inside(file.at())) {
        true => run.mark(Mark::ProjectCode, path),
        false => run.unknown(format!("{path} is a program that is not known")),
    }
    let reads = wrap::SHELLS.contains(&&*name) || code::INTERPRETERS.contains(&&*name);
    if reads && run.piped && input::is_read(&mut run, &name, args) {
        run.mark(Mark::Hides, format!("{path} runs what another command writes"));
    }
    run.said().reads.extend(files);
    run.stays()
}
