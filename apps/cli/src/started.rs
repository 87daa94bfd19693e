//! What this process was started with.

use std::sync::Arc;

use signal_hook::consts::SIGXFSZ;

/// Hands on no descriptor that it was not meant to have, and lives on where a file may not grow:
/// the write then fails (`EFBIG`), and nothing of it is lost. Where the system can't do either, it
/// is as with any program.
pub(crate) fn set_up() {
    #[cfg(target_os = "linux")]
    syscap::launch::keep_none_on_exec().unwrap_or(());
    // A handler, and not `SIG_IGN`, which every program would get that is started.
    drop(signal_hook::flag::register(SIGXFSZ, Arc::default()));
}
