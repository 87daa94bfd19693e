//! The two tools, and what starts programs for them.

use std::sync::Arc;

use syscap_format::{
    Canonical, Dimension, EffectClass, Manifest, ObligationKind, Param, ParamType, Refused, ToolId,
};
use syscap_kernel::{Request, Tool};
use syscap_launch::{Launcher, Level};

use super::plan::{self, ARGUMENTS_MAX, SCRIPT_BYTES_MAX};
use super::{PROGRAM_DIMENSION, ShellPlan};
use crate::{beneath::Opener, fs::PATH_DIMENSION};

/// The launcher of programs over one base directory.
#[derive(Clone, Debug)]
pub struct Programs {
    pub(super) base: Arc<dyn Opener>,
    /// None: this program itself, where its `main` lets it.
    pub(super) launcher: Option<Arc<Launcher>>,
}

impl Programs {
    /// The tools over an open base. Without a launcher the host itself is one, if its `main` begins
    /// with [`syscap_launch::entry`]; else every call is refused.
    pub fn over(base: Arc<dyn Opener>, launcher: Option<Arc<Launcher>>) -> Self {
        Self { base, launcher }
    }

    /// `shell`.
    pub fn shell(&self) -> Option<Shell> {
        let argv = "The program's name, and what it is given.";
        let manifest = manifest("shell")?
            .described("Run a program", "Runs a program in the workspace, confined.")
            .param(Param::required("argv", ParamType::Argv, argv).within(1, ARGUMENTS_MAX));
        Some(Shell { manifest: common(manifest), programs: self.clone() })
    }

    /// `shell_script`.
    pub fn script(&self) -> Option<Shell> {
        let script = "What `sh -c` runs.";
        let manifest = manifest("shell_script")?
            .described("Run a script", "Runs a shell's script in the workspace, confined.")
            .param(Param::required("script", ParamType::Code, script).within(1, SCRIPT_BYTES_MAX));
        Some(Shell { manifest: common(manifest), programs: self.clone() })
    }
}

fn manifest(name: &str) -> Option<Manifest> {
    let manifest = Manifest::new(ToolId::new(name)?, EffectClass::LocalWrite)
        .needs(PATH_DIMENSION)
        .needs(PROGRAM_DIMENSION);
    Some(manifest)
}

fn common(mut manifest: Manifest) -> Manifest {
    let int = |name, what, (min, max)| Param::optional(name, ParamType::Int, what).within(min, max);
    // Beside what a call sets aside: to look through the workspace, before and after.
    manifest.hold = manifest.hold.with(Dimension::CpuUs, 5_000_000);
    // What is kept, more than a model is shown: the rest is paged through by `result.page`, so it
    // must fit into a call's arguments.
    manifest.result_bytes_max = 1 << 20;
    manifest
        .param(
            Param::optional("path", ParamType::Path, "Its folder; the workspace if absent.")
                .within(1, 4_096)
                .or(Canonical::text(".")),
        )
        .param(Param::optional("input", ParamType::Text, "Its input.").within(0, 1 << 20))
        .param(int("timeout_ms", "Milliseconds that it may take; 10000 if absent.", (1, 600_000)))
        .param(int("cpu_ms", "Of processor time; 10000 if absent.", (1, 600_000)))
        .param(int("disk_bytes", "Bytes that it may write; 16 MiB if absent.", (0, 1 << 30)))
        .param(int("disk_files", "Files that it may make or change; 256 if absent.", (0, 100_000)))
        .param(Param::optional("read_only", ParamType::Bool, "It changes nothing."))
        .param(Param::optional("network", ParamType::Text, "`loopback` or `host`.").within(1, 16))
        .param(
            Param::optional("confinement", ParamType::Text, "The least that will do.")
                .within(1, 16)
                .or(Canonical::text(Level::Contained.name())),
        )
        .honours(ObligationKind::ResultCap)
        .honours(ObligationKind::ReadOnly)
}

/// `shell` or `shell_script`.
#[derive(Debug)]
pub struct Shell {
    manifest: Manifest,
    programs: Programs,
}

impl Tool for Shell {
    type Plan = ShellPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<ShellPlan, Refused> {
        Ok(ShellPlan::of(plan::Parsed::parse(request)?, self.programs.clone()))
    }
}
