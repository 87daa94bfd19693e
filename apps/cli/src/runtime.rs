//! Opening a home, and closing it again whatever happens in between.

use std::path::Path;

use syscap::{Inspection, Options, Runtime};

use crate::exit::Failure;

/// Opens a home, does something in it, and closes it, so that the log ends properly.
pub(crate) fn with<T>(
    folder: &Path,
    act: impl FnOnce(&Runtime) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let runtime = Options::new().open(folder).map_err(Failure::home(folder))?;
    let acted = act(&runtime);
    let closed = runtime.close();
    let value = acted?;
    closed?;
    Ok(value)
}

/// Replays a home's log to look at it. Another process may hold the home.
pub(crate) fn look(folder: &Path) -> Result<Inspection, Failure> {
    Options::new().inspect(folder).map_err(Failure::home(folder))
}
