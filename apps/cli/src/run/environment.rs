//! The variables that the program finds, and where it lies.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::{env, io};

use syscap::boundary::Place;
use syscap::boundary::environment::PASSED;

use crate::exit::{Exit, Failure};

/// All variables; those that are named come last, and win.
pub(super) fn of(
    named: &[OsString],
    own: Vec<(OsString, OsString)>,
) -> Result<Vec<(OsString, OsString)>, Failure> {
    let passed = PASSED.iter().filter_map(|name| Some((name.into(), env::var_os(name)?)));
    let mut all: Vec<(OsString, OsString)> = passed.chain(own).collect();
    for text in named {
        let (name, value) = variable(text)?;
        all.retain(|(known, _)| *known != name);
        all.push((name, value));
    }
    Ok(all)
}

/// The name of a variable that is written as `NAME` or `NAME=VALUE`.
pub(super) fn name(text: &OsStr) -> &OsStr {
    let name = text.as_bytes().split(|byte| *byte == b'=').next();
    OsStr::from_bytes(name.unwrap_or_default())
}

fn variable(text: &OsStr) -> Result<(OsString, OsString), Failure> {
    let usage = |advice: &str| {
        let what = format!("--env {}", text.display());
        Failure::Usage { what, advice: advice.to_owned() }
    };
    let name = name(text);
    let value = match text.as_bytes().get(name.len().saturating_add(1)..) {
        Some(value) => OsStr::from_bytes(value).to_owned(),
        None => env::var_os(text).ok_or_else(|| usage("is not set here"))?,
    };
    match name.is_empty() {
        true => Err(usage("write NAME, or NAME=VALUE")),
        false if name == crate::lane::VARIABLE => Err(usage("is the lane's own")),
        false => Ok((name.to_owned(), value)),
    }
}

/// The program, looked for where this process would.
pub(super) fn find(program: &OsStr) -> Result<Place, Failure> {
    let not_found = || {
        let problem = format!("{}: not found", program.display());
        Failure::NotStarted { problem, exit: Exit::Program(127) }
    };
    let path = Path::new(program);
    if program.as_bytes().contains(&b'/') {
        return Place::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => not_found(),
            _ => Failure::file(path)(error),
        });
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders)
        .map(|folder| folder.join(path))
        .find_map(|path| Place::open(&path).ok().filter(|place| !place.is_folder()))
        .ok_or_else(not_found)
}
