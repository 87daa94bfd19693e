//! The events of a file: RFC 5545, 3.4 and 3.6.1.

use std::collections::BTreeMap;

use jiff::{Timestamp, tz::TimeZone};

use super::lines::{Line, lines, unescaped};
use super::moment::{Length, Moment};
use super::rule::Rule;
use super::skip::{Skip, Steps};
use super::zones::Zones;

/// How deep components nest: events lie in calendars, alarms in events.
const DEPTH_MAX: usize = 8;
/// Most events of one file.
const EVENTS_MAX: usize = 20_000;
/// Longest name of an event.
const UID_BYTES_MAX: usize = 512;

/// An event as it is written, with all that says when it is.
#[derive(Clone, Debug)]
pub(super) struct Event<'a> {
    pub(super) start: Moment,
    pub(super) length: Length,
    pub(super) rules: Vec<Rule>,
    pub(super) added: Vec<Line<'a>>,
    pub(super) removed: Vec<Line<'a>>,
    sequence: u32,
    pub(super) summary: &'a str,
    pub(super) location: &'a str,
    pub(super) description: &'a str,
    pub(super) status: &'a str,
}

/// The events of one name: one that recurs or not, and those that stand in the place of one of
/// its occurrences.
#[derive(Debug, Default)]
pub(super) struct Series<'a> {
    pub(super) event: Option<Event<'a>>,
    /// By the occurrences that they replace.
    pub(super) instead: BTreeMap<Timestamp, (Moment, Event<'a>)>,
    /// The reason why one of them can't be read: then none can be shown, since it could stand in
    /// the place of another.
    pub(super) bad: Option<Skip>,
}

/// A file's events: series by their names, and events without one.
#[derive(Debug, Default)]
pub(super) struct Said<'a> {
    pub(super) series: BTreeMap<String, Series<'a>>,
    pub(super) nameless: Vec<Skip>,
}

impl<'a> Said<'a> {
    /// Reads an unfolded text. `here` is the zone in which days and floating times are compared.
    pub(super) fn read(
        text: &'a str,
        here: &TimeZone,
        zones: &mut Zones,
        steps: &mut Steps,
    ) -> Result<Self, Skip> {
        // A zone may be described behind what is in it.
        zones.read(text);
        let (mut said, mut open, mut events) = (Self::default(), Vec::new(), 0_usize);
        let mut own: Vec<Result<Line<'a>, Skip>> = Vec::new();
        let mut is_calendar = false;
        for line in lines(text) {
            let parsed = Line::parse(line);
            match parsed {
                Ok(line) if line.is("BEGIN") => {
                    // A blank or another sign behind it, and it would be an unknown component.
                    if !is_name(line.value) {
                        return Err(Skip::Malformed);
                    }
                    open.push(line.value);
                    is_calendar |= is_calendar_of(&open);
                    if line.value.eq_ignore_ascii_case(EVENT) && !is_event(&open) {
                        said.nameless.push(Skip::Malformed);
                    }
                    if open.len() > DEPTH_MAX {
                        return Err(Skip::TooDeep);
                    }
                    if is_event(&open) {
                        own.clear();
                    }
                }
                Ok(line) if line.is("END") => {
                    if is_event(&open) {
                        events = events.saturating_add(1);
                        if events > EVENTS_MAX {
                            return Err(Skip::TooMany);
                        }
                        steps.next_event();
                        said.add(&own, here, zones, steps);
                    }
                    let ended = open.pop().ok_or(Skip::Malformed)?;
                    if !ended.eq_ignore_ascii_case(line.value) {
                        return Err(Skip::Malformed);
                    }
                }
                // Of what lies in an event's alarms nothing is the event's.
                _ if is_event(&open) => own.push(parsed),
                _ => {}
            }
        }
        match (open.is_empty(), is_calendar) {
            // What was cut off may have changed what stands before it.
            (false, _) => Err(Skip::Malformed),
            (true, false) => Err(Skip::NoCalendar),
            (true, true) => Ok(said),
        }
    }

    fn add(
        &mut self,
        own: &[Result<Line<'a>, Skip>],
        here: &TimeZone,
        zones: &mut Zones,
        steps: &mut Steps,
    ) {
        let named = |line: &&Line<'a>| line.is("UID");
        let mut uids = own.iter().filter_map(|line| line.as_ref().ok()).filter(named);
        let uid = match (uids.next(), uids.next()) {
            (Some(uid), None) if (1..=UID_BYTES_MAX).contains(&uid.value.len()) => uid.value,
            _ => return self.nameless.push(Skip::Uid),
        };
        let series = self.series.entry(unescaped(uid)).or_default();
        match Read::of(own, zones, steps).and_then(|read| read.event(here)) {
            Ok((event, Some(replaced))) => match replaced.instant(here) {
                Ok(at) => series.replace(at, replaced, event),
                Err(skip) => series.bad = series.bad.or(Some(skip)),
            },
            Ok((event, None)) => match &series.event {
                Some(other) if other.sequence > event.sequence => {}
                _ => series.event = Some(event),
            },
            Err(skip) => series.bad = series.bad.or(Some(skip)),
        }
    }
}

impl<'a> Series<'a> {
    /// Of two events for the same occurrence the later version stays.
    fn replace(&mut self, at: Timestamp, moment: Moment, event: Event<'a>) {
        match self.instead.get(&at) {
            Some((_, other)) if other.sequence > event.sequence => {}
            _ => {
                self.instead.insert(at, (moment, event));
            }
        }
    }
}

const EVENT: &str = "VEVENT";

/// True if a component may have the name: RFC 5545, 3.1.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_calendar_of(open: &[&str]) -> bool {
    matches!(open, [calendar] if calendar.eq_ignore_ascii_case("VCALENDAR"))
}

fn is_event(open: &[&str]) -> bool {
    matches!(open, [calendar, event]
        if is_calendar_of(&[*calendar]) && event.eq_ignore_ascii_case(EVENT))
}

/// The properties of an event that are looked at.
#[derive(Default)]
struct Read<'a> {
    start: Option<Moment>,
    end: Option<Moment>,
    duration: Option<Length>,
    replaced: Option<Moment>,
    sequence: Option<u32>,
    rules: Vec<Rule>,
    added: Vec<Line<'a>>,
    removed: Vec<Line<'a>>,
    summary: Option<&'a str>,
    location: Option<&'a str>,
    description: Option<&'a str>,
    status: Option<&'a str>,
}

impl<'a> Read<'a> {
    fn of(
        own: &[Result<Line<'a>, Skip>],
        zones: &mut Zones,
        steps: &mut Steps,
    ) -> Result<Self, Skip> {
        let mut read = Self::default();
        for line in own {
            steps.take()?;
            read.take((*line)?, zones)?;
        }
        Ok(read)
    }

    fn take(&mut self, line: Line<'a>, zones: &mut Zones) -> Result<(), Skip> {
        let mut moment = || Moment::parse(&line, line.value, zones);
        match line.name.to_ascii_uppercase().as_str() {
            "DTSTART" => once(&mut self.start, moment()?),
            "DTEND" => once(&mut self.end, moment()?),
            "DURATION" => once(&mut self.duration, Length::parse(line.value)?),
            "RECURRENCE-ID" => {
                // It would speak of all later occurrences too.
                if line.param("RANGE")?.is_some() {
                    return Err(Skip::Unsupported);
                }
                once(&mut self.replaced, moment()?)
            }
            "SEQUENCE" => {
                once(&mut self.sequence, line.value.parse().map_err(|_| Skip::Malformed)?)
            }
            "RRULE" => {
                self.rules.push(Rule::parse(&line, zones)?);
                Ok(())
            }
            "EXRULE" => Err(Skip::Unsupported),
            "RDATE" => {
                self.added.push(line);
                Ok(())
            }
            "EXDATE" => {
                self.removed.push(line);
                Ok(())
            }
            "SUMMARY" => once(&mut self.summary, line.value),
            "LOCATION" => once(&mut self.location, line.value),
            "DESCRIPTION" => once(&mut self.description, line.value),
            "STATUS" => once(&mut self.status, line.value),
            // All else, what names files and addresses above all, is not looked at.
            _ => Ok(()),
        }
    }

    fn event(self, here: &TimeZone) -> Result<(Event<'a>, Option<Moment>), Skip> {
        let start = self.start.ok_or(Skip::Date)?;
        let length = match (self.end, self.duration) {
            (Some(_), Some(_)) => return Err(Skip::Twice),
            (Some(end), None) => between(&start, &end, here)?,
            (None, Some(length)) if start.clock.is_day() && length.seconds != 0 => {
                return Err(Skip::Duration);
            }
            (None, Some(length)) => length,
            (None, None) => Length { days: i64::from(start.clock.is_day()), seconds: 0 },
        };
        let recurs = !(self.rules.is_empty() && self.added.is_empty());
        if self.replaced.is_some() && recurs {
            return Err(Skip::Unsupported);
        }
        let event = Event {
            start,
            length,
            rules: self.rules,
            added: self.added,
            removed: self.removed,
            sequence: self.sequence.unwrap_or(0),
            summary: self.summary.unwrap_or_default(),
            location: self.location.unwrap_or_default(),
            description: self.description.unwrap_or_default(),
            status: self.status.unwrap_or_default(),
        };
        Ok((event, self.replaced))
    }
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<(), Skip> {
    if place.replace(value).is_some() { Err(Skip::Twice) } else { Ok(()) }
}

/// From a start to an end: days for days, which are whole, and for all else the time that passes,
/// as the RFC says of DTEND.
fn between(start: &Moment, end: &Moment, here: &TimeZone) -> Result<Length, Skip> {
    if start.clock.is_day() != end.clock.is_day() {
        return Err(Skip::Date);
    }
    if start.clock.is_day() {
        let seconds = end.local.duration_since(start.local).as_secs();
        let length = Length::exactly(seconds)?;
        // Many programs write one day so.
        return Ok(Length { days: (length.seconds / 86_400).max(1), seconds: 0 });
    }
    let (start, end) = (start.instant(here)?, end.instant(here)?);
    Length::exactly(end.duration_since(start).as_secs())
}
