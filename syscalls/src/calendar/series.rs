//! When the events of a series are, within a window of time.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::event::{Event, Series};
use super::moment::{Clock, Moment, days};
use super::recur::Walk;
use super::rule::Rule;
use super::skip::{Skip, Steps};
use super::zones::Zones;

/// No zone is further from UTC, in days, and no local time further from its instant.
const SLACK_DAYS: i64 = 2;

/// The last second of a day.
const LAST_SECOND: Time = Time::constant(23, 59, 59, 0);

/// When a rule ends.
enum End {
    Never,
    /// With this day, by the event's clock.
    Day(Date),
    /// With this time, by the event's clock.
    Local(DateTime),
    Instant(Timestamp),
}

/// From when, until when, and in which zone days and floating times are.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) from: Timestamp,
    /// The first instant that is not in it.
    pub(super) to: Timestamp,
    pub(super) here: TimeZone,
}

/// An occurrence: from when to when, for the order, and by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Times {
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    pub(super) local_start: DateTime,
    pub(super) local_end: DateTime,
}

impl Window {
    fn times(&self, event: &Event<'_>, start: DateTime) -> Result<Times, Skip> {
        let (clock, here) = (&event.start.clock, &self.here);
        let instant = clock.instant(start, here)?;
        let seconds = SignedDuration::from_secs(event.length.seconds);
        let nominal = start.checked_add(days(event.length.days)).map_err(|_| Skip::Date)?;
        let (end, local_end) = match clock {
            Clock::Zone(zone) => {
                let end = clock.instant(nominal, here)?.checked_add(seconds);
                let end = end.map_err(|_| Skip::Date)?;
                (end, zone.to_datetime(end))
            }
            Clock::Day | Clock::Floating => {
                let local = nominal.checked_add(seconds).map_err(|_| Skip::Date)?;
                (clock.instant(local, here)?, local)
            }
        };
        // One that the clocks leave out is shown as what it is taken for.
        let local_start = match clock {
            Clock::Zone(zone) => zone.to_datetime(instant),
            Clock::Day | Clock::Floating => start,
        };
        Ok(Times { start: instant, end, local_start, local_end })
    }

    fn shows(&self, times: &Times) -> bool {
        let is_there = times.end > self.from || times.start >= self.from;
        times.start < self.to && is_there
    }

    /// All local times, of any clock, that may be in it: of what takes that many days.
    fn local(&self, length_days: i64) -> (DateTime, DateTime) {
        let utc = |at: Timestamp| TimeZone::UTC.to_datetime(at);
        let before = days(length_days.saturating_add(SLACK_DAYS));
        let from = utc(self.from).checked_sub(before).unwrap_or(DateTime::MIN);
        let to = utc(self.to).checked_add(days(SLACK_DAYS)).unwrap_or(DateTime::MAX);
        (from, to)
    }
}

/// The exceptions of a series.
#[derive(Default)]
struct Removed {
    instants: BTreeSet<Timestamp>,
    /// A day takes out all that begins on it, by the event's own clock.
    days: BTreeSet<Date>,
}

impl Removed {
    fn has(&self, at: Timestamp, local: DateTime) -> bool {
        self.instants.contains(&at) || self.days.contains(&local.date())
    }
}

impl Series<'_> {
    /// Hands over each occurrence in the window with the event that says what it is. If one of them
    /// is faulty, or takes too many steps, none is handed over.
    pub(super) fn each<'s>(
        &'s self,
        window: &Window,
        zones: &mut Zones,
        steps: &mut Steps,
        on: &mut dyn FnMut(&'s Event<'s>, Times),
    ) -> Result<(), Skip> {
        if let Some(skip) = self.bad {
            return Err(skip);
        }
        let (mut all, mut removed) = (Vec::new(), Removed::default());
        if let Some(event) = &self.event {
            removed = event.removed(window, zones, steps)?;
            let is_day = event.start.clock.is_day();
            if self.instead.values().any(|(moment, _)| moment.clock.is_day() != is_day) {
                return Err(Skip::Date);
            }
            for (at, local) in event.occurrences(window, zones, steps)? {
                steps.take()?;
                let times = window.times(event, local)?;
                if window.shows(&times)
                    && !self.instead.contains_key(&at)
                    && !removed.has(at, local)
                {
                    all.push((event, times));
                }
            }
        }
        for (at, (moment, event)) in &self.instead {
            steps.take()?;
            let times = window.times(event, event.start.local)?;
            let is_removed = removed.has(*at, moment.local);
            if window.shows(&times) && !is_removed {
                all.push((event, times));
            }
        }
        all.into_iter().for_each(|(event, times)| on(event, times));
        Ok(())
    }
}

impl Event<'_> {
    /// The starts near the window, in their order, none twice.
    fn occurrences(
        &self,
        window: &Window,
        zones: &mut Zones,
        steps: &mut Steps,
    ) -> Result<BTreeMap<Timestamp, DateTime>, Skip> {
        let (clock, here, start) = (&self.start.clock, &window.here, self.start.local);
        let mut found = BTreeMap::new();
        // A series that ends before it starts, as programs leave one of which all is deleted, has
        // none; of each other one the start is the first, whatever the rule says.
        let ends = self.rules.iter().map(|rule| self.end_of(rule, here));
        let ends: Vec<End> = ends.collect::<Result<_, _>>()?;
        let is_over = |end: &End| self.is_past(end, start, here);
        if self.rules.is_empty() || !ends.iter().all(is_over) {
            found.insert(clock.instant(start, here)?, start);
        }
        let (from, to) = window.local(self.length.days_at_most());
        for (rule, end) in self.rules.iter().zip(&ends) {
            let is_past = |at: DateTime| self.is_past(end, at, here);
            let walk = Walk { rule, start, from, to, is_past: &is_past };
            for local in walk.find(steps)? {
                found.insert(clock.instant(local, here)?, local);
            }
        }
        for line in &self.added {
            for value in line.value.split(',') {
                steps.take()?;
                let moment = Moment::parse(line, value, zones)?;
                let at = moment.instant(here)?;
                let local = match (clock, &moment.clock) {
                    (Clock::Day, Clock::Day) | (Clock::Floating, Clock::Floating) => moment.local,
                    (Clock::Zone(zone), Clock::Zone(_)) => zone.to_datetime(at),
                    _ => return Err(Skip::Date),
                };
                found.insert(at, local);
            }
        }
        Ok(found)
    }

    /// When a rule ends, in the terms of the event's own clock. The order of a day and an instant
    /// is unknown, unless the instant is one day's beginning here, or names a whole day of UTC:
    /// Outlook writes the midnight of the last day as an instant.
    fn end_of(&self, rule: &Rule, here: &TimeZone) -> Result<End, Skip> {
        let Some(until) = &rule.until else { return Ok(End::Never) };
        let local = until.local;
        match (&until.clock, &self.start.clock) {
            (Clock::Day, _) | (Clock::Floating, Clock::Day) => Ok(End::Day(local.date())),
            (Clock::Floating, _) => Ok(End::Local(local)),
            (Clock::Zone(_), Clock::Day) => {
                let at = until.instant(here)?;
                let (here, utc) = (here.to_datetime(at), TimeZone::UTC.to_datetime(at));
                if here.time() == Time::midnight() {
                    Ok(End::Day(here.date()))
                } else if [Time::midnight(), LAST_SECOND].contains(&utc.time()) {
                    Ok(End::Day(utc.date()))
                } else {
                    Err(Skip::Date)
                }
            }
            (Clock::Zone(_), _) => Ok(End::Instant(until.instant(here)?)),
        }
    }

    /// True if an end lies before a time of the event's clock.
    fn is_past(&self, end: &End, at: DateTime, here: &TimeZone) -> bool {
        match end {
            End::Never => false,
            End::Day(day) => at.date() > *day,
            End::Local(local) => at > *local,
            End::Instant(until) => {
                self.start.clock.instant(at, here).map_or(true, |at| at > *until)
            }
        }
    }

    fn removed(
        &self,
        window: &Window,
        zones: &mut Zones,
        steps: &mut Steps,
    ) -> Result<Removed, Skip> {
        let mut removed = Removed::default();
        for line in &self.removed {
            for value in line.value.split(',') {
                steps.take()?;
                let moment = Moment::parse(line, value, zones)?;
                match (&moment.clock, &self.start.clock) {
                    (Clock::Day, _) => {
                        removed.days.insert(moment.local.date());
                    }
                    // A time takes no day out, and one without a zone none that has one.
                    (_, Clock::Day)
                    | (Clock::Floating, Clock::Zone(_))
                    | (Clock::Zone(_), Clock::Floating) => return Err(Skip::Date),
                    _ => {
                        removed.instants.insert(moment.instant(&window.here)?);
                    }
                }
            }
        }
        Ok(removed)
    }
}
