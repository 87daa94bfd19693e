//! A system that has no `openat2`.

use std::{collections::BTreeMap, env, panic::resume_unwind, thread};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

/// `openat2`, everywhere.
const CALL: i64 = 437;

/// What an old system answers to it, and a filter that does not know it.
pub const ABSENT: [u32; 2] = [38, 1];

/// Runs `body` on a thread of its own, where `openat2` is answered with that error. It is so in
/// what the thread starts, too.
pub fn without_openat2<R: Send>(errno: u32, body: impl FnOnce() -> R + Send) -> R {
    without(CALL, errno, body)
}

/// The same of a system call of that number.
pub fn without<R: Send>(call: i64, errno: u32, body: impl FnOnce() -> R + Send) -> R {
    let (rules, allow) = (BTreeMap::from([(call, Vec::new())]), SeccompAction::Allow);
    let arch = env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, allow, SeccompAction::Errno(errno), arch).unwrap();
    let filter = BpfProgram::try_from(filter).unwrap();
    let on_thread = || {
        apply_filter(&filter).unwrap();
        body()
    };
    let ran = thread::scope(|scope| scope.spawn(on_thread).join());
    ran.unwrap_or_else(|panic| resume_unwind(panic))
}
