//! The machine's clocks.

use rustix::time::{ClockId, Timespec, clock_gettime};
use syscap_format::UnixMillis;
use syscap_kernel::{Clock, Reading};

/// `CLOCK_REALTIME` and `CLOCK_BOOTTIME`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn read(&self) -> Reading {
        let wall = UnixMillis::new(millis(clock_gettime(ClockId::Realtime)));
        Reading { wall, boottime_ms: millis(clock_gettime(ClockId::Boottime)) }
    }
}

/// Processor time of this thread, in microseconds.
pub(crate) fn thread_cpu_us() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds(time).saturating_mul(1_000_000).saturating_add(nanos / 1_000)
}

fn millis(time: Timespec) -> u64 {
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds(time).saturating_mul(1_000).saturating_add(nanos / 1_000_000)
}

/// A time before the epoch counts as the epoch.
fn seconds(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0)
}
