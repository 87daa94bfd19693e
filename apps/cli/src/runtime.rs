//! Reaching a home: by the process that holds it, or by holding it; and letting go of it again
//! whatever happens in between.

use std::path::Path;

use syscap::{Inspection, Operator, Options, Runtime, format::id::PolicyHash};

use crate::{exit::Failure, learn, policy::Loaded};

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

/// Says so where the policy in force only records.
pub(crate) fn warn_of_recording(access: &Runtime) -> Result<(), Failure> {
    warn_of(access.home().folder(), access.view()?.policy)
}

/// The same of a home that is not open here.
pub(crate) fn warn_of_recording_in(folder: &Path) -> Result<(), Failure> {
    warn_of(folder, look(folder)?.kernel().policy_hash())
}

fn warn_of(folder: &Path, policy: Option<PolicyHash>) -> Result<(), Failure> {
    if let Some(hash) = policy
        && let Some(loaded) = Loaded::on_record(folder, hash)?
        && let Some(policy) = loaded.document()
    {
        learn::warn_of_policy(policy);
    }
    Ok(())
}
