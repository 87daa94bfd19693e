//! Kernel time: handed in by the host, never going back.
//!
//! Two clocks come with every event: the wall clock, and the time since the machine started
//! (`CLOCK_BOOTTIME`, which counts suspension). Kernel time starts, at each boot of the kernel, at
//! the later of the last record's time and the wall clock. From then on it advances at least as the
//! boot-time clock does; the wall clock is followed only while it lies within
//! [`HomeLimits::skew_ms_max`](syscap_format::HomeLimits) of that. So a wall clock set back
//! can't revive an expired token, and one set far ahead can't expire tokens or skip the rest.

use syscap_format::UnixMillis;

/// One look at the host's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The wall clock.
    pub wall: UnixMillis,
    /// Milliseconds since the machine started, suspension included.
    pub boottime_ms: u64,
}

/// Decides if the wall clock is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// Within the limit.
    Within,
    /// Beyond the limit: not followed.
    Beyond,
}

/// Kernel time within one boot of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelClock {
    start: UnixMillis,
    start_boottime_ms: u64,
    now: UnixMillis,
    skew: Skew,
    skew_ms_max: u64,
}

impl KernelClock {
    /// Starts at the later of `last`, the last record's time, and the wall clock.
    pub(crate) fn start(last: UnixMillis, reading: Reading, skew_ms_max: u64) -> Self {
        let start = last.max(reading.wall);
        let skew = if last.since(reading.wall) > skew_ms_max { Skew::Beyond } else { Skew::Within };
        Self { start, start_boottime_ms: reading.boottime_ms, now: start, skew, skew_ms_max }
    }

    pub(crate) fn advance(&mut self, reading: Reading) {
        let elapsed = reading.boottime_ms.saturating_sub(self.start_boottime_ms);
        let floor = self.start.plus(elapsed);
        let off = reading.wall.since(floor).max(floor.since(reading.wall));
        self.skew = if off > self.skew_ms_max { Skew::Beyond } else { Skew::Within };
        let followed = match self.skew {
            Skew::Within => floor.max(reading.wall),
            Skew::Beyond => floor,
        };
        self.now = self.now.max(followed);
    }

    pub(crate) const fn now(&self) -> UnixMillis {
        self.now
    }

    pub(crate) const fn skew(&self) -> Skew {
        self.skew
    }
}
