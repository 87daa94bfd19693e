//! Recurrence rules as they are written: RFC 5545, 3.3.10.

use jiff::civil::Weekday;

use super::{lines::Line, moment::Moment, skip::Skip, zones::Zones};

/// Longest rule, in bytes.
const RULE_BYTES_MAX: usize = 1_024;

/// How often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Every {
    Hour,
    Day,
    Week,
    Month,
    Year,
}

/// A rule. BYSECOND, BYYEARDAY and BYWEEKNO are not supported, nor are rules that recur more often
/// than hourly; the answer says so.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) every: Every,
    /// At least one.
    pub(super) interval: i64,
    pub(super) count: Option<u32>,
    pub(super) until: Option<Moment>,
    /// In ascending order, as all of these; empty where nothing is said.
    pub(super) months: Vec<i16>,
    /// 1 to 31, and -1 to -31 from the end.
    pub(super) month_days: Vec<i16>,
    /// Which of such days of the month or year, 0 for all.
    pub(super) weekdays: Vec<(i16, Weekday)>,
    pub(super) hours: Vec<i16>,
    pub(super) minutes: Vec<i16>,
    /// Which of a period's occurrences, from the beginning or, below zero, from the end.
    pub(super) positions: Vec<i16>,
    pub(super) week_start: Weekday,
}

impl Rule {
    pub(super) fn parse(line: &Line<'_>, zones: &mut Zones) -> Result<Self, Skip> {
        if line.value.len() > RULE_BYTES_MAX {
            return Err(Skip::Rule);
        }
        let mut rule = Self {
            every: Every::Day,
            interval: 1,
            count: None,
            until: None,
            months: Vec::new(),
            month_days: Vec::new(),
            weekdays: Vec::new(),
            hours: Vec::new(),
            minutes: Vec::new(),
            positions: Vec::new(),
            week_start: Weekday::Monday,
        };
        let mut seen: Vec<String> = Vec::new();
        for part in line.value.split(';') {
            let (name, value) = part.split_once('=').ok_or(Skip::Rule)?;
            let name = name.to_ascii_uppercase();
            if seen.contains(&name) {
                return Err(Skip::Rule);
            }
            rule.take(&name, &value.to_ascii_uppercase(), zones)?;
            seen.push(name);
        }
        let has_frequency = seen.iter().any(|name| name == "FREQ");
        if has_frequency && rule.is_sound() { Ok(rule) } else { Err(Skip::Rule) }
    }

    fn take(&mut self, name: &str, value: &str, zones: &mut Zones) -> Result<(), Skip> {
        match name {
            "FREQ" => {
                self.every = match value {
                    "HOURLY" => Every::Hour,
                    "DAILY" => Every::Day,
                    "WEEKLY" => Every::Week,
                    "MONTHLY" => Every::Month,
                    "YEARLY" => Every::Year,
                    "SECONDLY" | "MINUTELY" => return Err(Skip::Frequency),
                    _ => return Err(Skip::Rule),
                }
            }
            "INTERVAL" => self.interval = i64::from(positive(value)?),
            "COUNT" => self.count = Some(positive(value)?),
            "UNTIL" => {
                let line = Line::parse("UNTIL:")?;
                self.until = Some(Moment::parse(&line, value, zones)?);
            }
            "BYMONTH" => self.months = numbers(value, 1, 12)?,
            "BYMONTHDAY" => self.month_days = numbers(value, -31, 31)?,
            "BYHOUR" => self.hours = numbers(value, 0, 23)?,
            "BYMINUTE" => self.minutes = numbers(value, 0, 59)?,
            "BYSETPOS" => self.positions = numbers(value, -366, 366)?,
            "BYDAY" => self.weekdays = value.split(',').map(nth).collect::<Result<_, _>>()?,
            "WKST" => self.week_start = weekday(value)?,
            "BYSECOND" | "BYYEARDAY" | "BYWEEKNO" | "RSCALE" | "SKIP" => {
                return Err(Skip::Unsupported);
            }
            _ => return Err(Skip::Rule),
        }
        Ok(())
    }

    /// True if the parts keep the RFC's rules together.
    fn is_sound(&self) -> bool {
        let counted = self.weekdays.iter().any(|(nth, _)| *nth != 0);
        let has_zero = self.month_days.contains(&0) || self.positions.contains(&0);
        let is_wide = matches!(self.every, Every::Month | Every::Year);
        !(has_zero
            || (self.count.is_some() && self.until.is_some())
            || (counted && !is_wide)
            || (self.every == Every::Week && !self.month_days.is_empty()))
    }
}

fn positive(value: &str) -> Result<u32, Skip> {
    let is_plain = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    value.parse().ok().filter(|n| is_plain && *n > 0).ok_or(Skip::Rule)
}

fn numbers(value: &str, min: i16, max: i16) -> Result<Vec<i16>, Skip> {
    let number =
        |text: &str| text.parse().ok().filter(|n| (min..=max).contains(n)).ok_or(Skip::Rule);
    let mut all: Vec<i16> = value.split(',').map(number).collect::<Result<_, _>>()?;
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// `MO`, `2TU`, `-1FR`.
fn nth(value: &str) -> Result<(i16, Weekday), Skip> {
    let (number, day) = value.split_at_checked(value.len().saturating_sub(2)).ok_or(Skip::Rule)?;
    let day = weekday(day)?;
    if number.is_empty() {
        return Ok((0, day));
    }
    let number = number.parse().ok().filter(|n| *n != 0 && (-53..=53).contains(n));
    Ok((number.ok_or(Skip::Rule)?, day))
}

fn weekday(value: &str) -> Result<Weekday, Skip> {
    Ok(match value {
        "MO" => Weekday::Monday,
        "TU" => Weekday::Tuesday,
        "WE" => Weekday::Wednesday,
        "TH" => Weekday::Thursday,
        "FR" => Weekday::Friday,
        "SA" => Weekday::Saturday,
        "SU" => Weekday::Sunday,
        _ => return Err(Skip::Rule),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Result<Rule, Skip> {
        let line = format!("RRULE:{text}");
        Rule::parse(&Line::parse(&line).unwrap(), &mut Zones::new())
    }

    #[test]
    fn malformed_rule_is_refused_by_name() {
        for text in [
            "",
            "FREQ",
            "FREQ=",
            "COUNT=3",
            "FREQ=FORTNIGHTLY",
            "FREQ=DAILY;FREQ=DAILY",
            "FREQ=DAILY;INTERVAL=0",
            "FREQ=DAILY;INTERVAL=-1",
            "FREQ=DAILY;INTERVAL=+1",
            "FREQ=DAILY;INTERVAL=99999999999",
            "FREQ=DAILY;COUNT=0",
            "FREQ=DAILY;COUNT=4294967296",
            "FREQ=DAILY;COUNT=1;UNTIL=20260101",
            "FREQ=DAILY;BYMONTH=0",
            "FREQ=DAILY;BYMONTH=13",
            "FREQ=DAILY;BYMONTHDAY=0",
            "FREQ=DAILY;BYMONTHDAY=32",
            "FREQ=WEEKLY;BYMONTHDAY=3",
            "FREQ=WEEKLY;BYDAY=1MO",
            "FREQ=MONTHLY;BYDAY=0MO",
            "FREQ=MONTHLY;BYDAY=54MO",
            "FREQ=MONTHLY;BYDAY=M",
            "FREQ=MONTHLY;BYDAY=\u{fc}O",
            "FREQ=MONTHLY;BYDAY=",
            "FREQ=DAILY;BYHOUR=24",
            "FREQ=DAILY;BYSETPOS=0",
            "FREQ=DAILY;WKST=XX",
            "FREQ=DAILY;",
            "FREQ=DAILY;X-PART=1",
        ] {
            assert_eq!(rule(text).err(), Some(Skip::Rule), "{text}");
        }
        let long = format!("FREQ=MONTHLY;BYDAY=MO{}", ",MO".repeat(400));
        assert_eq!(rule(&long).err(), Some(Skip::Rule));
        assert_eq!(rule("FREQ=SECONDLY").err(), Some(Skip::Frequency));
        assert_eq!(rule("FREQ=MINUTELY;COUNT=2").err(), Some(Skip::Frequency));
        for part in ["BYSECOND=1", "BYYEARDAY=1", "BYWEEKNO=1", "RSCALE=HEBREW", "SKIP=OMIT"] {
            assert_eq!(rule(&format!("FREQ=YEARLY;{part}")).err(), Some(Skip::Unsupported));
        }
        assert_eq!(rule("FREQ=DAILY;UNTIL=20260230").err(), Some(Skip::Date));
        let fine = rule("freq=monthly;byday=-1fr,2MO;bymonth=3,1,3;Interval=2").unwrap();
        assert_eq!((fine.every, fine.interval, &fine.months[..]), (Every::Month, 2, &[1, 3][..]));
        assert_eq!(fine.weekdays, [(-1, Weekday::Friday), (2, Weekday::Monday)]);
    }
}
