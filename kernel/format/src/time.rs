//! Points in time.

use core::fmt;

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMillis(u64);

impl UnixMillis {
    /// `ms` milliseconds after the epoch.
    pub const fn new(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// This time plus `ms` milliseconds, at most the largest time there is.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this time, 0 if it is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for UnixMillis {
    /// As RFC 3339 in UTC, with milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |divisor: u64, modulus: u64| {
            self.0.checked_div(divisor).and_then(|n| n.checked_rem(modulus)).unwrap_or(0)
        };
        let (year, month, day) = civil(part(86_400_000, u64::MAX));
        let (hour, minute) = (part(3_600_000, 24), part(60_000, 60));
        let (second, ms) = (part(1_000, 60), part(1, 1_000));
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }
}

/// Year, month and day of a day count since 1970-01-01, by counting years and months down.
fn civil(days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    // 400 years have 146,097 days: skip whole cycles, so the loop is short for any input.
    let cycles = days.checked_div(146_097).unwrap_or(0);
    let mut left = days.checked_rem(146_097).unwrap_or(0);
    let mut year = cycles.saturating_mul(400).saturating_add(1970);
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left = left.saturating_sub(length);
        year = year.saturating_add(1);
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1_u64;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left = left.saturating_sub(length);
        month = month.saturating_add(1);
    }
    (year, month, left.saturating_add(1))
}
