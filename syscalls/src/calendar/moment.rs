//! Dates, times, zones and durations: RFC 5545, 3.3.4 to 3.3.6.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{lines::Line, skip::Skip, zones::Zones};

/// Longest duration: a hundred years.
const DURATION_DAYS_MAX: i64 = 36_525;

/// By what a time is read.
#[derive(Clone, Debug)]
pub(super) enum Clock {
    /// A whole day, wherever one is.
    Day,
    /// The time that clocks show, wherever one is.
    Floating,
    /// The time that clocks show in a zone.
    Zone(TimeZone),
}

/// A date or a time.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    pub(super) clock: Clock,
    /// For a day, its midnight.
    pub(super) local: DateTime,
}

impl Clock {
    pub(super) const fn is_day(&self) -> bool {
        matches!(self, Self::Day)
    }

    /// When it is, for who is in the zone `here`. A time that clocks leave out is taken as if they
    /// had not been moved, one that they show twice as the first (RFC 5545, 3.3.5).
    pub(super) fn instant(&self, local: DateTime, here: &TimeZone) -> Result<Timestamp, Skip> {
        let zone = match self {
            Self::Zone(zone) => zone,
            Self::Day | Self::Floating => here,
        };
        zone.to_timestamp(local).map_err(|_| Skip::Date)
    }
}

impl Moment {
    /// Reads one value of a line, in the zone that the line names.
    pub(super) fn parse(line: &Line<'_>, value: &str, zones: &mut Zones) -> Result<Self, Skip> {
        let kind = line.param("VALUE")?;
        let is_kind = |name: &str| kind.is_some_and(|kind| kind.eq_ignore_ascii_case(name));
        if is_kind("PERIOD") {
            return Err(Skip::Unsupported);
        }
        let is_utc = value.ends_with('Z');
        let value = value.strip_suffix('Z').unwrap_or(value);
        let local = civil(value).ok_or(Skip::Date)?;
        let is_day = value.len() == DAY_BYTES;
        let clock = match (line.param("TZID")?, is_day, is_utc) {
            (_, true, false) => Clock::Day,
            (None, false, true) => Clock::Zone(TimeZone::UTC),
            (None, false, false) => Clock::Floating,
            (Some(name), false, false) => Clock::Zone(zones.at(name, local)?),
            _ => return Err(Skip::Date),
        };
        // Programs leave it out; what it is shows.
        let fits = kind.is_none() || is_kind(if is_day { "DATE" } else { "DATE-TIME" });
        if fits { Ok(Self { clock, local }) } else { Err(Skip::Date) }
    }

    pub(super) fn instant(&self, here: &TimeZone) -> Result<Timestamp, Skip> {
        self.clock.instant(self.local, here)
    }
}

/// `YYYYMMDD`.
const DAY_BYTES: usize = 8;

/// `YYYYMMDD` or `YYYYMMDDTHHMMSS`. The second 60 is read as 59, as the RFC says to those who know
/// no leap seconds.
fn civil(text: &str) -> Option<DateTime> {
    let number = |from: usize, to: usize| -> Option<i16> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
    };
    let two = |from: usize| number(from, from.checked_add(2)?).and_then(|n| i8::try_from(n).ok());
    let date = Date::new(number(0, 4)?, two(4)?, two(6)?).ok()?;
    if text.len() == DAY_BYTES {
        return Some(date.to_datetime(Time::midnight()));
    }
    if text.len() != 15 || text.get(8..9) != Some("T") {
        return None;
    }
    let second = two(13)?;
    let second = if second == 60 { 59 } else { second };
    Some(date.to_datetime(Time::new(two(9)?, two(11)?, second, 0).ok()?))
}

/// A number of days.
pub(super) fn days(count: i64) -> SignedDuration {
    SignedDuration::from_secs(count.saturating_mul(86_400))
}

/// How long something takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Length {
    /// Days by the clocks: one on which they are moved is longer or shorter.
    pub(super) days: i64,
    /// Seconds that pass.
    pub(super) seconds: i64,
}

impl Length {
    /// Reads a DURATION: `P1W`, `P2DT3H`, `PT90M`.
    pub(super) fn parse(text: &str) -> Result<Self, Skip> {
        if text.starts_with('-') {
            return Err(Skip::Backwards);
        }
        Self::positive(text.strip_prefix('+').unwrap_or(text)).ok_or(Skip::Duration)
    }

    fn positive(text: &str) -> Option<Self> {
        let mut rest = text.strip_prefix('P').filter(|rest| !rest.is_empty())?;
        // Each unit at most once, the larger before the smaller.
        let mut units = [('W', 7, 0), ('D', 1, 0), ('T', 0, 0), ('H', 0, 3_600), ('M', 0, 60)]
            .into_iter()
            .chain([('S', 0, 1)]);
        let (mut length, mut is_time, mut any) = (Self { days: 0, seconds: 0 }, false, false);
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit())?;
            let (number, behind) = rest.split_at(digits);
            let sign = behind.chars().next()?;
            let (_, days, seconds) = units.by_ref().find(|(unit, ..)| *unit == sign)?;
            rest = behind.get(1..)?;
            if sign == 'T' {
                is_time = number.is_empty() && !rest.is_empty();
                if !is_time {
                    return None;
                }
                continue;
            }
            if (seconds > 0) != is_time {
                return None;
            }
            any = true;
            let number: i64 = number.parse().ok()?;
            length.days = length.days.checked_add(number.checked_mul(days)?)?;
            length.seconds = length.seconds.checked_add(number.checked_mul(seconds)?)?;
        }
        (any && length.days_at_most() <= DURATION_DAYS_MAX).then_some(length)
    }

    /// The time between two, as it passes.
    pub(super) fn exactly(seconds: i64) -> Result<Self, Skip> {
        let length = Self { days: 0, seconds };
        match seconds {
            ..0 => Err(Skip::Backwards),
            _ if length.days_at_most() > DURATION_DAYS_MAX => Err(Skip::Duration),
            _ => Ok(length),
        }
    }

    /// No less than it takes, in days.
    pub(super) const fn days_at_most(self) -> i64 {
        self.days.saturating_add(self.seconds / 86_400).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(line: &str) -> Result<Moment, Skip> {
        let line = Line::parse(line).unwrap();
        Moment::parse(&line, line.value, &mut Zones::new())
    }

    fn utc(line: &str) -> String {
        moment(line).unwrap().instant(&TimeZone::UTC).unwrap().to_string()
    }

    #[test]
    fn dates_and_times_are_read() {
        assert_eq!(utc("DTSTART:20260301T093000Z"), "2026-03-01T09:30:00Z");
        assert_eq!(utc("DTSTART:20260301T093000"), "2026-03-01T09:30:00Z");
        assert_eq!(utc("DTSTART;VALUE=DATE:20260301"), "2026-03-01T00:00:00Z");
        assert_eq!(utc("DTSTART;TZID=Europe/Berlin:20260301T093000"), "2026-03-01T08:30:00Z");
        assert_eq!(utc("DTSTART:20161231T235960Z"), "2016-12-31T23:59:59Z", "a leap second");
        // Left out by the clocks, and shown twice.
        assert_eq!(utc("DTSTART;TZID=Europe/Berlin:20260329T023000"), "2026-03-29T01:30:00Z");
        assert_eq!(utc("DTSTART;TZID=Europe/Berlin:20261025T023000"), "2026-10-25T00:30:00Z");
    }

    #[test]
    fn malformed_date_is_refused() {
        for value in [
            "",
            "Z",
            "2026",
            "20260230",
            "20261301",
            "20260101T",
            "20260101T2400",
            "20260101T240000",
            "20260101T000061",
            "20260101T000000ZZ",
            "20260101Z",
            "+292277-01-01",
            "+2922770",
            "2922770101",
            "-0010101",
            "2026-01-01",
            "20260101T00:00:00",
            "\u{ff12}0260101",
        ] {
            assert_eq!(moment(&format!("DTSTART:{value}")).err(), Some(Skip::Date), "{value}");
        }
        for (line, skip) in [
            ("DTSTART;TZID=Europe/Berlin:20260301T093000Z", Skip::Date),
            ("DTSTART;VALUE=DATE:20260301T093000Z", Skip::Date),
            ("DTSTART;VALUE=TEXT:20260301", Skip::Date),
            ("DTSTART;VALUE=PERIOD:20260301T093000Z", Skip::Unsupported),
            ("DTSTART;TZID=../../etc/passwd:20260301T093000", Skip::Zone),
            ("DTSTART;TZID=/etc/localtime:20260301T093000", Skip::Zone),
            ("DTSTART;TZID=Etc/Unknown:20260301T093000", Skip::Zone),
            ("DTSTART;TZID=:20260301T093000", Skip::Zone),
        ] {
            assert_eq!(moment(line).err(), Some(skip), "{line}");
        }
        // Both ends of the calendar can be read, and be told from an instant.
        assert!(moment("DTSTART:00000101").is_ok() && moment("DTSTART:99991231").is_ok());
        let end = moment("DTSTART;TZID=Pacific/Midway:99991231T235959").unwrap();
        assert_eq!(end.instant(&TimeZone::UTC), Err(Skip::Date));
    }

    #[test]
    fn durations_are_bounded() {
        for (text, days, seconds) in [
            ("P1W", 7, 0),
            ("P2D", 2, 0),
            ("P1DT2H3M4S", 1, 7_384),
            ("+PT90M", 0, 5_400),
            ("PT0S", 0, 0),
        ] {
            assert_eq!(Length::parse(text), Ok(Length { days, seconds }), "{text}");
        }
        for text in [
            "",
            "P",
            "PT",
            "P1",
            "1D",
            "PD",
            "PT1D",
            "P1H",
            "P1D1D",
            "P1DT",
            "PTT1H",
            "P1.5D",
            "P99999999999W",
            "P9223372036854775807W",
            "P99999999999999999999D",
            "P36525D",
            "PT9223372036854775807S",
        ] {
            assert_eq!(Length::parse(text), Err(Skip::Duration), "{text}");
        }
        assert_eq!(Length::parse("-PT1H"), Err(Skip::Backwards));
    }
}
