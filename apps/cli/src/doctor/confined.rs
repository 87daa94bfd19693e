//! How well a program can be confined here: found by starting one.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::OFlags;
use syscap::launch::{Achieved, LaunchError, Launcher, Level, Network, Plan, Said};

use super::findings::Findings;
use crate::exit::Failure;

/// Long for a program that prints its version.
const WALL_MS: u64 = 5_000;

/// Starts this program itself, confined, to say its version; with a door to its host or without.
fn achieved(door: bool) -> Result<Achieved, LaunchError> {
    let open = |path: &str| {
        let flags = i32::try_from((OFlags::PATH | OFlags::CLOEXEC).bits()).unwrap_or_default();
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
        opened.map(File::into).map_err(LaunchError::Helper)
    };
    let mut plan = Plan::new(open("/proc/self/exe")?, OsString::from("syscap"), open("/")?);
    plan.arguments.push(OsString::from("--version"));
    (plan.required, plan.door) = (Level::Bounded, door);
    plan.limits.wall_ms = Some(WALL_MS);
    let mut running = Launcher::this()?.start(&plan)?;
    loop {
        if let Said::Ended(report) = running.recv()? {
            return Ok(report.achieved);
        }
    }
}

pub(super) fn look(findings: &mut Findings<'_>) -> Result<(), Failure> {
    hidden(findings)?;
    let with_door = achieved(true);
    let no_door = with_door.as_ref().err().map(ToString::to_string);
    let achieved = match with_door.or_else(|_| achieved(false)) {
        Ok(achieved) => achieved,
        Err(error) => {
            let text = format!("none: no program is started for an agent: {error}");
            return findings.note("confinement", &text);
        }
    };
    let level = achieved.level(Network::None);
    let mut text = format!("{}{}", level.name(), missing(level, &achieved));
    let add = match (level, no_door) {
        (Level::Contained, None) => super::findings::Level::Fine,
        (_, None) => super::findings::Level::Note,
        (_, Some(why)) => {
            text.push_str(&format!("; `syscap run` starts none: {why}"));
            super::findings::Level::Note
        }
    };
    findings.add_with(add, "confinement", &text, |json| {
        json.text("level_of_confinement", level.name())
            .uint("landlock", u64::from(achieved.landlock))
            .flag("seccomp", achieved.seccomp)
            .flag("process_namespace", achieved.processes)
            .flag("network_namespace", achieved.network)
            .flag("mount_namespace", achieved.mounts)
            .flag("control_group", achieved.group)
    })
}

/// Hides a folder, to see if a gateway can hide homes from its servers.
fn hidden(findings: &mut Findings<'_>) -> Result<(), Failure> {
    let folder = File::open(std::env::temp_dir()).map_err(LaunchError::Helper);
    let tried = folder.and_then(|folder| Launcher::this()?.can_hide(vec![folder.into()]));
    let (level, text) = match &tried {
        Ok(()) => (
            super::findings::Level::Fine,
            "view hidden: homes and keys are hidden from the servers of a gateway".to_owned(),
        ),
        Err(why) => (
            super::findings::Level::Note,
            format!(
                "view hidden can't be had: servers of a gateway see what this user sees, keys too, and \
                 one over a home is refused ({why}); it takes user namespaces: see confinement"
            ),
        ),
    };
    findings.add_with(level, "servers", &text, |json| json.flag("view_hidden", tried.is_ok()))
}

/// The features that the next level needs, and how to get them.
fn missing(level: Level, achieved: &Achieved) -> String {
    match level {
        Level::Contained => {
            ": programs get namespaces of their own, Landlock and seccomp".to_owned()
        }
        Level::Confined => {
            ": no namespaces of their own, so tools that require `contained` are refused. Let this \
             user make user namespaces: sysctl user.max_user_namespaces, \
             kernel.apparmor_restrict_unprivileged_userns, or in a container a seccomp profile \
             that allows unshare (docs/deploy.md)"
                .to_owned()
        }
        Level::Bounded if achieved.landlock == 0 => {
            ": no Landlock, so programs may touch what this user may. Take Linux 6.2 or later with \
             `landlock` in /sys/kernel/security/lsm, or in a container a seccomp profile that \
             allows it"
                .to_owned()
        }
        Level::Bounded => format!(
            ": Landlock is of ABI {} and 3 is needed (Linux 6.2), so programs may touch what this \
             user may",
            achieved.landlock
        ),
    }
}
