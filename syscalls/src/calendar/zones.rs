//! Time zones: those of the IANA database, and those that a calendar describes itself.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::lines::{Line, lines};
use super::moment::{Clock, Moment};
use super::rule::{Every, Rule};
use super::skip::Skip;

/// Longest name of a zone.
const NAME_BYTES_MAX: usize = 64;
/// Most zones that one file describes.
const OWN_MAX: usize = 64;

/// Zones by their names: first those of the IANA database, of the version that is compiled in, then
/// those that the file describes. No file is opened by a name that stands in a calendar.
#[derive(Debug)]
pub(super) struct Zones {
    database: TimeZoneDatabase,
    /// By their names in small letters: no more than the database has.
    seen: BTreeMap<String, TimeZone>,
    /// The zones of the present file.
    own: BTreeMap<String, Option<Own>>,
}

/// A zone that a file describes, and from when on.
#[derive(Debug)]
struct Own {
    zone: TimeZone,
    since: DateTime,
}

impl Zones {
    pub(super) fn new() -> Self {
        let database = TimeZoneDatabase::bundled();
        Self { database, seen: BTreeMap::new(), own: BTreeMap::new() }
    }

    /// A zone of the database.
    pub(super) fn get(&mut self, name: &str) -> Result<TimeZone, Skip> {
        if name.len() > NAME_BYTES_MAX {
            return Err(Skip::Zone);
        }
        let name = name.to_ascii_lowercase();
        if let Some(zone) = self.seen.get(&name) {
            return Ok(zone.clone());
        }
        let zone = self.database.get(&name).map_err(|_| Skip::Zone)?;
        // The database has a name for what is not known: it stands for no offset.
        if zone.is_unknown() {
            return Err(Skip::Zone);
        }
        self.seen.insert(name, zone.clone());
        Ok(zone)
    }

    /// The zone that is called so, for a time of it.
    pub(super) fn at(&mut self, name: &str, local: DateTime) -> Result<TimeZone, Skip> {
        self.get(name).or_else(|skip| match self.own.get(name) {
            Some(Some(own)) if own.since <= local => Ok(own.zone.clone()),
            _ => Err(skip),
        })
    }

    /// Takes the zones that a file describes, in place of those of another. One that is not
    /// understood is not known: what is in it is left out.
    pub(super) fn read(&mut self, text: &str) {
        self.own.clear();
        let (mut name, mut parts, mut part) = (None::<&str>, Vec::new(), None);
        for line in lines(text).filter_map(|line| Line::parse(line).ok()) {
            let is = |of: &str| line.value.eq_ignore_ascii_case(of);
            match (line.is("BEGIN"), line.is("END")) {
                (true, _) if is("VTIMEZONE") => (name, parts, part) = (None, Vec::new(), None),
                (true, _) if is("STANDARD") || is("DAYLIGHT") => part = Some(Vec::new()),
                (_, true) if is("STANDARD") || is("DAYLIGHT") => {
                    parts.extend(part.take().filter(|_| parts.len() <= PARTS));
                }
                (_, true) if is("VTIMEZONE") && self.own.len() < OWN_MAX => {
                    let own = described(&parts).ok();
                    if let Some(name) = name.take().map(str::to_owned) {
                        // Of two that are called so neither is known.
                        let own = own.filter(|_| !self.own.contains_key(&name));
                        self.own.insert(name, own);
                    }
                }
                _ if line.is("TZID") && part.is_none() => name = Some(line.value),
                _ => part.iter_mut().for_each(|lines: &mut Vec<Line<'_>>| {
                    if lines.len() < PART_LINES_MAX {
                        lines.push(line);
                    }
                }),
            }
        }
    }
}

/// Parts that a zone has at most: one for each offset.
const PARTS: usize = 2;
/// Most lines of a part that are looked at; a zone needs five.
const PART_LINES_MAX: usize = 16;

/// When the clocks of a zone change to an offset, every year.
struct Change {
    from: i64,
    to: i64,
    /// As POSIX has it: month, week and day, and the time.
    rule: Option<String>,
    since: DateTime,
}

/// A zone of one offset, or of two that take turns in the same weeks of every year: what POSIX can
/// say. All else, such as a history, would have to be guessed.
fn described(parts: &[Vec<Line<'_>>]) -> Result<Own, Skip> {
    let parts: Vec<Change> = parts.iter().map(|lines| change(lines)).collect::<Result<_, _>>()?;
    let (text, since) = match &parts[..] {
        [one] if one.rule.is_none() => (format!("<STD>{}", offset(one.to)), one.since),
        [a, b] if a.from == b.to && a.to == b.from && a.to != b.to => {
            let (standard, summer) = if a.to < b.to { (a, b) } else { (b, a) };
            let (Some(back), Some(forth)) = (&standard.rule, &summer.rule) else {
                return Err(Skip::Zone);
            };
            let (low, high) = (offset(standard.to), offset(summer.to));
            (format!("<STD>{low}<DST>{high},{forth},{back}"), a.since.max(b.since))
        }
        _ => return Err(Skip::Zone),
    };
    let zone = TimeZone::posix(&text).map_err(|_| Skip::Zone)?;
    Ok(Own { zone, since })
}

fn change(lines: &[Line<'_>]) -> Result<Change, Skip> {
    let one = |name: &str| {
        let mut all = lines.iter().filter(|line| line.is(name));
        match (all.next(), all.next()) {
            (found, None) => Ok(found),
            _ => Err(Skip::Zone),
        }
    };
    let seconds = |name: &str| one(name)?.and_then(|line| seconds(line.value)).ok_or(Skip::Zone);
    let start = one("DTSTART")?.ok_or(Skip::Zone)?;
    // No zone has times of another.
    let start = Moment::parse(start, start.value, &mut Zones::new())?;
    if !matches!(start.clock, Clock::Floating) || one("RDATE")?.is_some() {
        return Err(Skip::Zone);
    }
    let (from, to) = (seconds("TZOFFSETFROM")?, seconds("TZOFFSETTO")?);
    let rule = one("RRULE")?.map(|line| yearly(line, start.local)).transpose()?;
    Ok(Change { from, to, rule, since: start.local })
}

fn seconds(text: &str) -> Option<i64> {
    let (sign, digits) = text.split_at_checked(1)?;
    let sign = match sign {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let is_plain = matches!(digits.len(), 4 | 6) && digits.bytes().all(|b| b.is_ascii_digit());
    let two = |at: usize| -> Option<i64> {
        match digits.get(at..at.saturating_add(2)) {
            Some(two) => two.parse().ok(),
            None => Some(0),
        }
    };
    let (hours, minutes, seconds) = (two(0)?, two(2)?, two(4)?);
    let is_one = is_plain && hours < 24 && minutes < 60 && seconds < 60;
    is_one.then_some(sign * (hours * 3_600 + minutes * 60 + seconds))
}

/// An offset as POSIX has it, which counts to the west.
fn offset(seconds: i64) -> String {
    let sign = if seconds > 0 { '-' } else { '+' };
    let all = seconds.unsigned_abs();
    format!("{sign}{:02}:{:02}:{:02}", all / 3_600, all / 60 % 60, all % 60)
}

/// A rule such as `FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU`, which goes on.
fn yearly(line: &Line<'_>, start: DateTime) -> Result<String, Skip> {
    let rule = Rule::parse(line, &mut Zones::new())?;
    let is_plain = rule.every == Every::Year
        && rule.interval == 1
        && rule.count.is_none()
        && rule.until.is_none()
        && rule.month_days.is_empty()
        && rule.hours.is_empty()
        && rule.minutes.is_empty()
        && rule.positions.is_empty();
    let ([month], [(nth, weekday)]) = (&rule.months[..], &rule.weekdays[..]) else {
        return Err(Skip::Zone);
    };
    let week = match nth {
        -1 => 5,
        1..=4 => *nth,
        _ => return Err(Skip::Zone),
    };
    if !is_plain {
        return Err(Skip::Zone);
    }
    let weekday = weekday.to_sunday_zero_offset();
    let (hour, minute, second) = (start.hour(), start.minute(), start.second());
    Ok(format!("M{month}.{week}.{weekday}/{hour:02}:{minute:02}:{second:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: &str = "BEGIN:STANDARD\nDTSTART:16011028T030000\nTZOFFSETFROM:+0200\n\
        TZOFFSETTO:+0100\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\nEND:STANDARD\n";
    const DAYLIGHT: &str = "BEGIN:DAYLIGHT\nDTSTART:16010325T020000\nTZOFFSETFROM:+0100\n\
        TZOFFSETTO:+0200\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\nEND:DAYLIGHT\n";

    fn zones(parts: &str) -> Zones {
        let mut zones = Zones::new();
        zones.read(&format!("BEGIN:VTIMEZONE\nTZID:Here\n{parts}END:VTIMEZONE\n"));
        zones
    }

    fn at(zones: &mut Zones, local: &str) -> Result<String, Skip> {
        let local: DateTime = local.parse().unwrap();
        Ok(zones.at("Here", local)?.to_timestamp(local).unwrap().to_string())
    }

    #[test]
    fn a_described_zone_is_that_of_the_database() {
        let mut zones = zones(&format!("{STANDARD}{DAYLIGHT}"));
        let berlin = zones.get("europe/BERLIN").unwrap();
        for local in [
            "2026-01-01T09:00",
            "2026-03-29T01:59",
            "2026-03-29T02:30",
            "2026-03-29T03:00",
            "2026-07-01T09:00",
            "2026-10-25T02:30",
            "2026-10-25T03:00",
        ] {
            let theirs = berlin.to_timestamp(local.parse::<DateTime>().unwrap()).unwrap();
            assert_eq!(at(&mut zones, local), Ok(theirs.to_string()), "{local}");
        }
        assert_eq!(at(&mut zones, "1600-01-01T00:00"), Err(Skip::Zone), "before it began");
        // The next file has others.
        zones.read("");
        assert_eq!(at(&mut zones, "2026-01-01T09:00"), Err(Skip::Zone));
    }

    #[test]
    fn a_zone_of_one_offset_is_one() {
        let fixed = "BEGIN:STANDARD\nDTSTART:19700101T000000\nTZOFFSETFROM:+0545\n\
            TZOFFSETTO:+0545\nEND:STANDARD\n";
        let utc = at(&mut zones(fixed), "2026-01-01T09:00");
        assert_eq!(utc.as_deref(), Ok("2026-01-01T03:15:00Z"));
        let west = fixed.replace("+0545", "-033000");
        assert_eq!(
            at(&mut zones(&west), "2026-01-01T09:00").as_deref(),
            Ok("2026-01-01T12:30:00Z")
        );
    }

    /// An unknown form is not guessed.
    #[test]
    fn a_zone_that_is_not_understood_is_not_known() {
        let both = format!("{STANDARD}{DAYLIGHT}");
        for parts in [
            String::new(),
            STANDARD.to_owned(),
            format!("{both}{DAYLIGHT}"),
            format!("{STANDARD}{STANDARD}"),
            both.replace("BYDAY=-1SU", "BYDAY=-2SU"),
            both.replace("BYDAY=-1SU", "BYDAY=SU"),
            both.replace("FREQ=YEARLY", "FREQ=MONTHLY"),
            both.replace("FREQ=YEARLY", "FREQ=SECONDLY"),
            both.replace("FREQ=YEARLY", "FREQ=YEARLY;UNTIL=20200101T000000Z"),
            both.replace("FREQ=YEARLY", "FREQ=YEARLY;INTERVAL=2"),
            both.replace("TZOFFSETTO:+0200", "TZOFFSETTO:+0300"),
            both.replace("+0200", "+9900"),
            both.replace("+0200", "0200"),
            both.replace("16011028T030000", "16011028T030000Z"),
            both.replace("RRULE", "RDATE:20260101T000000\nRRULE"),
            both.replace("END:STANDARD", "TZOFFSETTO:+0100\nEND:STANDARD"),
        ] {
            assert_eq!(at(&mut zones(&parts), "2026-01-01T09:00"), Err(Skip::Zone), "{parts}");
        }
        // Two that are called the same; more than a file may have; a bomb of parts.
        let again = format!("END:VTIMEZONE\nBEGIN:VTIMEZONE\nTZID:Here\n{both}");
        let two = format!("{both}{again}{again}");
        assert_eq!(at(&mut zones(&two), "2026-01-01T09:00"), Err(Skip::Zone));
        let many = DAYLIGHT.repeat(10_000);
        assert_eq!(at(&mut zones(&many), "2026-01-01T09:00"), Err(Skip::Zone));
        let long = format!("BEGIN:STANDARD\n{}END:STANDARD\n", "X:y\n".repeat(100_000));
        assert_eq!(at(&mut zones(&long), "2026-01-01T09:00"), Err(Skip::Zone));
    }
}
