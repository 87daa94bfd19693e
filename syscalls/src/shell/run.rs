//! The run: it looks through the folder, starts the program, waits, and marks the changes.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

#[cfg(target_os = "linux")]
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::fs::{Mode, OFlags, open, readlink};
use syscap_format::{Canonical, Dimension, Enforcement, MapBuilder, Reason, Refused, TxOutcome};
use syscap_kernel::{Demands, Permit, Plan, Ran};
use syscap_launch::{
    Access, Ended, Granted, LaunchError, Launcher, Level, Limits, Plan as Launch, Report, Running,
    Said,
};

use super::{Programs, outcome::Outcome, plan::Parsed};
use crate::beneath::{FsError, Grown, Location, NAMED, Survey};
use crate::fs::refusal;

/// The folders in which a program without a path is looked for.
const FOLDERS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];
/// A program that writes more than that is ended.
const OUTPUT_BYTES_MAX: u64 = 16 << 20;
/// Processes and threads at a time.
const PROCESSES_MAX: u32 = 128;
const MEMORY_BYTES_MAX: u64 = 2 << 30;
/// Open descriptors of a process.
const DESCRIPTORS_MAX: u64 = 512;
/// The part of the reserved processor time that is kept back, in milliseconds: a program is found
/// over its bound some turns later.
const MARGIN_MS: u64 = 1_000;

/// A planned `shell` or `shell_script`.
#[derive(Debug)]
pub struct ShellPlan {
    parsed: Parsed,
    programs: Programs,
}

/// Why nothing came back.
enum Wrong {
    /// A fault, and the effect that it left.
    Fault(Refused, TxOutcome),
    /// The program could not be started: which, and why.
    NotStarted(Canonical),
}

impl From<(Refused, TxOutcome)> for Wrong {
    fn from((refused, tx): (Refused, TxOutcome)) -> Self {
        Self::Fault(refused, tx)
    }
}

impl Wrong {
    fn not_started(program: &str, why: &dyn fmt::Display) -> Self {
        let map = MapBuilder::new().text("ended_at", "start").text("program", program);
        Self::NotStarted(map.text("why", &why.to_string()).finish())
    }
}

impl ShellPlan {
    pub(super) const fn of(parsed: Parsed, programs: Programs) -> Self {
        Self { parsed, programs }
    }

    /// The result, and whether the program ran to its end.
    fn execute(&self, permit: &mut Permit<'_, Self>) -> Result<(Canonical, bool), Wrong> {
        let nothing = |refused| Wrong::Fault(refused, TxOutcome::NoOp);
        let at = self.parsed.folder.location().map_err(nothing)?;
        // Before it is looked through: what comes there meanwhile is seen by one of the two.
        let began = self.programs.base.begin(&at, permit.live().label);
        let (folder, survey) = self.survey(&at).map_err(nothing)?;
        permit.brings(survey.label());
        began.reads(survey.label());
        let reads = permit.is_read_only() || self.parsed.read_only;
        let plan = self.launch(folder, reads, permit)?;
        let mut running = self.start(&plan)?;
        drop(plan);
        let waited = wait(&mut running, permit.result_bytes_max());
        // All of it has ended when this is dropped, whatever was heard.
        drop(running);
        // What changed is marked before anything else can fail, and before it counts as ended.
        let grown = self.programs.base.mark(&at, &survey, began.label());
        permit.brings(began.label());
        drop(began);
        let (report, outcome) = match waited {
            Ok(waited) => waited,
            Err(error) => return Err(self.of_launch(&error)),
        };
        permit.used_elsewhere(report.cpu_us);
        permit.enforced_by(match report.achieved.level(self.parsed.network) {
            Level::Contained => Enforcement::Sandboxed,
            _ => Enforcement::Confined,
        });
        let grown = grown.map_err(|error| (refusal(error), TxOutcome::Unknown))?;
        permit.brings(grown.label);
        charge(permit, grown).map_err(|refused| (refused, TxOutcome::Committed))?;
        // What it says by its exit code is an answer: `grep`, `diff` and `test` speak so.
        let is_over = matches!(report.ended, Ended::Exited(_));
        if !matches!(report.ended, Ended::Exited(0)) {
            permit.tells_of_a_failure();
        }
        Ok((outcome.result(&report, self.parsed.network), is_over))
    }

    fn survey(&self, at: &Location) -> Result<(OwnedFd, Survey), Refused> {
        self.programs.base.survey(at).map_err(|error| match error {
            FsError::TooLarge => {
                let refused = Refused::new(Reason::Quota).field("path");
                refused.allowed("a folder with at most 200000 names in it and below")
            }
            error => refusal(error),
        })
    }

    fn launch(
        &self,
        folder: OwnedFd,
        reads: bool,
        permit: &Permit<'_, Self>,
    ) -> Result<Launch, Wrong> {
        let parsed = &self.parsed;
        let program = find(parsed.program.as_str())?;
        let nothing = |refused| Wrong::Fault(refused, TxOutcome::NoOp);
        let failed = |_: io::Error| nothing(Refused::new(Reason::Failed).field("argv"));
        let name = parsed.argv.first().cloned().unwrap_or_default();
        let cwd = folder.try_clone().map_err(failed)?;
        let mut plan = Launch::new(program, OsString::from(name), cwd);
        plan.arguments.extend(parsed.argv.iter().skip(1).map(OsString::from));
        plan.environment = environment(&folder);
        let access = if reads { Access::Read } else { Access::Write };
        plan.granted.push(Granted { handle: folder, access });
        plan.network = parsed.network;
        plan.required = parsed.required;
        plan.input = parsed.input.as_deref().map(input).transpose().map_err(failed)?;
        // A policy may have cut what is set aside: then it is less than was asked for.
        let held = |dimension| permit.hold().get(dimension) / 1_000;
        let cpu_ms = parsed.cpu_ms.min(held(Dimension::CpuUs).saturating_sub(MARGIN_MS));
        let wall_ms = parsed.wall_ms.min(held(Dimension::WallUs).saturating_sub(MARGIN_MS));
        let disk_bytes = parsed.disk_bytes.min(permit.hold().get(Dimension::DiskWriteBytes));
        if cpu_ms == 0 || wall_ms == 0 {
            return Err(nothing(Refused::new(Reason::OverHold).field("timeout_ms")));
        }
        plan.limits = Limits {
            wall_ms: Some(wall_ms),
            cpu_ms: Some(cpu_ms),
            output_bytes: Some(OUTPUT_BYTES_MAX),
            processes: Some(PROCESSES_MAX),
            memory_bytes: Some(MEMORY_BYTES_MAX),
            file_bytes: Some(disk_bytes),
            descriptors: Some(DESCRIPTORS_MAX),
        };
        Ok(plan)
    }

    fn start(&self, plan: &Launch) -> Result<Running, Wrong> {
        let started = match &self.programs.launcher {
            Some(launcher) => launcher.start(plan),
            None => Launcher::this().and_then(|launcher| launcher.start(plan)),
        };
        started.map_err(|error| match self.of_launch(&error) {
            // Nothing ran that could have left anything.
            Wrong::Fault(refused, _) => Wrong::Fault(refused, TxOutcome::NoOp),
            not_started => not_started,
        })
    }

    /// What an error of the launcher means, and the effect that it left.
    fn of_launch(&self, error: &LaunchError) -> Wrong {
        let refused = |reason| Refused::new(reason).field("argv").got(&error.to_string());
        match error {
            LaunchError::Unsupported | LaunchError::Level { .. } | LaunchError::Helper(_) => {
                (refused(Reason::NotConfined), TxOutcome::NoOp).into()
            }
            LaunchError::Plan(_) => (refused(Reason::BadArgument), TxOutcome::NoOp).into(),
            LaunchError::Execute(why) => Wrong::not_started(self.parsed.program.as_str(), why),
            LaunchError::Setup { .. } => (refused(Reason::Failed), TxOutcome::NoOp).into(),
            _ => (refused(Reason::Failed), TxOutcome::Unknown).into(),
        }
    }
}

impl Plan for ShellPlan {
    fn demands(&self) -> &Demands {
        &self.parsed.demands
    }

    fn run(self, mut permit: Permit<'_, Self>) -> Ran<'_> {
        match self.execute(&mut permit) {
            Ok((result, true)) => permit.ok(result, TxOutcome::Committed),
            Ok((output, false)) => permit.tool_failed(output, None, TxOutcome::Committed),
            Err(Wrong::Fault(refused, tx)) => permit.failed(refused, tx),
            Err(Wrong::NotStarted(why)) => permit.tool_failed(why, None, TxOutcome::NoOp),
        }
    }
}

/// Opens the program that the token names.
fn find(program: &str) -> Result<OwnedFd, Wrong> {
    let flags = NAMED | OFlags::CLOEXEC;
    let open = |path: &Path| open(path, flags, Mode::empty());
    let found = match program.starts_with('/') {
        true => open(Path::new(program)),
        false => FOLDERS
            .iter()
            .map(|folder| open(&Path::new(folder).join(program)))
            .find(|found| !matches!(found, Err(rustix::io::Errno::NOENT)))
            .unwrap_or(Err(rustix::io::Errno::NOENT)),
    };
    found.map_err(|errno| Wrong::not_started(program, &errno))
}

/// The environment: the paths of programs, and the folder. Nothing of it is the host's.
fn environment(folder: &OwnedFd) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> =
        vec![("PATH".into(), FOLDERS.join(":").into()), ("LANG".into(), "C.UTF-8".into())];
    // Of the handle, not of what a caller sent. Programs that need neither do without.
    let path = readlink(format!("/proc/self/fd/{}", folder.as_raw_fd()), Vec::new());
    if let Some(path) = path.ok().and_then(|path| path.into_string().ok()) {
        variables.push(("HOME".into(), path.clone().into()));
        variables.push(("TMPDIR".into(), path.into()));
    }
    variables
}

#[cfg(target_os = "linux")]
fn input(text: &str) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(c"input", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

/// No program is started here.
#[cfg(not(target_os = "linux"))]
fn input(_: &str) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

fn wait(running: &mut Running, room: usize) -> Result<(Report, Outcome), LaunchError> {
    let mut outcome = Outcome::within(room);
    loop {
        match running.recv()? {
            Said::Output(stream, bytes) => outcome.take(stream, &bytes),
            // It has no door.
            Said::Connected(_) => {}
            Said::Ended(report) => return Ok((report, outcome)),
        }
    }
}

/// Charges what was written, as far as it is set aside.
fn charge(permit: &mut Permit<'_, ShellPlan>, grown: Grown) -> Result<(), Refused> {
    let mut over = None;
    for (dimension, amount) in
        [(Dimension::DiskWriteBytes, grown.bytes), (Dimension::DiskFiles, grown.files)]
    {
        let held = permit.hold().get(dimension);
        permit.meter(dimension, amount.min(held))?;
        if amount > held {
            let refused = Refused::new(Reason::OverHold).field(dimension.name());
            let refused = refused.got(&amount.to_string()).allowed(&held.to_string());
            over = over.or(Some(refused));
        }
    }
    over.map_or(Ok(()), Err)
}
