//! Says so where a home's policy lets every call run.

use std::path::Path;

use syscap::policy::Policy;
use syscap::{Runtime, format::PolicyHash};

use crate::exit::{Failure, tell};
use crate::{learn, policy::Loaded, runtime};

/// Says so where the policy in force only records.
pub(crate) fn warn_of_recording(access: &Runtime) -> Result<(), Failure> {
    warn_of(access.home().folder(), access.view()?.policy)
}

/// The same before a run, and where the policy lets an agent's own client answer: inside nobody but
/// the agent can.
pub(crate) fn warn_of_run(access: &Runtime) -> Result<(), Failure> {
    warn_of_recording(access)?;
    let folder = access.home().folder();
    if let Some(hash) = access.view()?.policy
        && let Some(loaded) = Loaded::on_record(folder, hash)?
        && loaded.document().is_some_and(Policy::lets_clients_answer)
    {
        tell(
            "the policy lets the client's own window approve calls (client_means); inside a run it \
             approves none: answer them outside",
        );
    }
    Ok(())
}

/// The same of a home that is not open here.
pub(crate) fn warn_of_recording_in(folder: &Path) -> Result<(), Failure> {
    warn_of(folder, runtime::look(folder)?.kernel().policy_hash())
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
