//! What of a boundary around programs is to be had here: found by starting one.

use std::{fs::File, path::Path};

use syscap::launch::{Achieved, LaunchError, Launcher, Level, Network, Plan};

use super::findings::Findings;
use crate::exit::Failure;

pub(super) fn look(findings: &mut Findings<'_>) -> Result<(), Failure> {
    let what = "boundary";
    let achieved = match tried() {
        Ok(achieved) => achieved,
        Err(error) => {
            let text = format!(
                "no program can be started confined: {error}; `syscap run` and the \
                 tool `shell` start none"
            );
            return findings.note(what, &text);
        }
    };
    let level = achieved.level(Network::None);
    match (level, missing(&achieved)) {
        (Level::Contained, _) => findings.fine(what, "programs are contained"),
        (level, missing) => {
            let text = format!("programs are {} only: {missing}", level.name());
            findings.note(what, &text)
        }
    }
}

/// Starts a program as `syscap run` would, with whatever is to be had.
fn tried() -> Result<Achieved, LaunchError> {
    let open = |path: &str| File::open(Path::new(path)).map_err(LaunchError::Helper);
    let mut plan = Plan::new(open("/bin/true")?.into(), "true".into(), open("/")?.into());
    (plan.required, plan.door) = (Level::Bounded, true);
    Launcher::this()?.start(&plan)?.begun()
}

/// Why it is not more, and who has it in hand.
fn missing(achieved: &Achieved) -> String {
    let mut missing = Vec::new();
    if achieved.landlock < 3 {
        missing.push("Landlock, ABI 3 or later (Linux 6.2, and in the list of its `lsm=`)");
    }
    if !achieved.seccomp {
        missing.push("seccomp filters for this architecture");
    }
    if !achieved.processes || !achieved.network {
        missing.push("user namespaces (user.max_user_namespaces, or the container's own rules)");
    } else if !achieved.mounts {
        missing.push("mounts of its own");
    }
    format!("it lacks {}", missing.join("; "))
}
