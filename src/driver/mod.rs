//! The loop around the kernel: who drives it, runs what it lets through, and keeps what it makes.

pub(crate) mod backoff;
pub(crate) mod bell;
pub(crate) mod clock;
pub(crate) mod core;
pub(crate) mod counters;
pub(crate) mod entropy;
pub(crate) mod guard;
pub(crate) mod pool;
pub(crate) mod run;
