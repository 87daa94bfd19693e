//! What this process was started with.

use std::sync::Arc;

#[cfg(target_os = "linux")]
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use signal_hook::consts::SIGXFSZ;

/// Keeps what it knows to itself, since it opens keys: it leaves no core file, and no other program of
/// the same user reads its memory or its open files. A program that it starts begins anew and is as
/// any other. It hands on no descriptor that it was not meant to have, and lives on where a file may
/// not grow: the write then fails (`EFBIG`), and nothing of it is lost. Where the system can't do one
/// of these, it is as with any program.
pub(crate) fn set_up() {
    #[cfg(target_os = "linux")]
    {
        set_dumpable_behavior(DumpableBehavior::NotDumpable).unwrap_or(());
        syscap::launch::keep_none_on_exec().unwrap_or(());
    }
    // A handler, and not `SIG_IGN`, which every program would get that is started.
    drop(signal_hook::flag::register(SIGXFSZ, Arc::default()));
}
