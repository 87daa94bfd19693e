//! Reaching a home: by the process that holds it, or by holding it; and letting go of it again
//! whatever happens in between.

use std::path::Path;

use syscap::{Inspection, Operator, Options, Runtime};

use crate::exit::Failure;

/// Does something in a home, with whoever holds it; where nobody does it is opened for that, and
/// closed, so that the log ends properly.
pub(crate) fn with<T>(
    folder: &Path,
    act: impl FnOnce(&Runtime) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let access = Runtime::command(folder).map_err(Failure::home(folder))?;
    finish(access, act)
}

/// The same for what stops something: it reaches a holder of any version, and a full one.
pub(crate) fn operate<T>(
    folder: &Path,
    act: impl FnOnce(&Operator) -> Result<T, syscap::Error>,
) -> Result<T, Failure> {
    let operator = Operator::open(folder).map_err(Failure::home(folder))?;
    let acted = act(&operator);
    let closed = operator.close();
    let value = acted?;
    closed?;
    Ok(value)
}

/// The same for what takes long: where it holds the home it serves it to others.
pub(crate) fn serving<T>(
    folder: &Path,
    act: impl FnOnce(&Runtime) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let access = Runtime::share(folder).map_err(Failure::home(folder))?;
    finish(access, act)
}

/// Does something, and closes.
pub(crate) fn finish<T>(
    access: Runtime,
    act: impl FnOnce(&Runtime) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let acted = act(&access);
    let closed = access.close();
    let value = acted?;
    closed?;
    Ok(value)
}

/// Replays a home's log to look at it. Another process may hold the home.
pub(crate) fn look(folder: &Path) -> Result<Inspection, Failure> {
    Options::new().inspect(folder).map_err(Failure::home(folder))
}
