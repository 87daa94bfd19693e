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

fn variable(text: &OsStr) -> Result<(OsString, OsString), Failure> {
    let usage = |advice: &str| {
        let what = format!("--env {}", text.display());
        Failure::Usage { what, advice: advice.to_owned() }
    };
    let bytes = text.as_bytes();
    let (name, value) = match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => {
            let (name, value) = bytes.split_at(at);
            let value = OsStr::from_bytes(value.get(1..).unwrap_or_default());
            (OsStr::from_bytes(name), value.to_owned())
        }
        None => (text, env::var_os(text).ok_or_else(|| usage("is not set here"))?),
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
