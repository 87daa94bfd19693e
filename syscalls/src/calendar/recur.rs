//! Recurrences of a rule within a window of time. All work is counted beforehand.

use jiff::civil::{Date, DateTime, Time};

use super::moment::days;
use super::rule::{Every, Rule};
use super::skip::{Skip, Steps};

/// A rule, from where it starts, seen through a window: local times of one clock, all of them.
pub(super) struct Walk<'a> {
    pub(super) rule: &'a Rule,
    pub(super) start: DateTime,
    pub(super) from: DateTime,
    pub(super) to: DateTime,
    /// True if a time is behind the rule's end.
    pub(super) is_past: &'a dyn Fn(DateTime) -> bool,
}

/// Days in a row, and the hour that is meant of them where it is one.
struct Period {
    first: Date,
    days: i64,
    hour: Option<i16>,
}

impl Walk<'_> {
    /// Finds the occurrences in the window but the start, which is the first whatever the rule
    /// says, and is counted as such.
    pub(super) fn find(&self, steps: &mut Steps) -> Result<Vec<DateTime>, Skip> {
        let (mut found, mut set) = (Vec::new(), Vec::new());
        let mut left = self.rule.count.map(|count| count.saturating_sub(1));
        let mut number = self.first_period();
        // Past the last year that dates have there is nothing.
        while let Some(period) = self.period(number) {
            steps.take()?;
            if period.first > self.to.date() {
                break;
            }
            set.clear();
            self.fill(&period, &mut set, steps)?;
            for at in self.picked(&set) {
                if at <= self.start {
                    continue;
                }
                // Whether it is past its end is asked of a zone.
                steps.take()?;
                if left == Some(0) || (self.is_past)(at) || at > self.to {
                    return Ok(found);
                }
                left = left.map(|left| left.saturating_sub(1));
                if at >= self.from {
                    found.push(at);
                }
            }
            let next = self.after(&period, number);
            number = next.max(number.saturating_add(1));
        }
        Ok(found)
    }

    /// The period with which the search begins: what is counted must be counted from the start,
    /// of all else what lies before the window is passed over in one step.
    fn first_period(&self) -> i64 {
        if self.rule.count.is_some() || self.from <= self.start {
            return 0;
        }
        let (from, start) = (self.from.date(), self.start.date());
        let years = i64::from(from.year()).saturating_sub(i64::from(start.year()));
        let months = i64::from(from.month()).saturating_sub(i64::from(start.month()));
        let passed = from.duration_since(start).as_hours();
        let units = match self.rule.every {
            Every::Year => years,
            Every::Month => years.saturating_mul(12).saturating_add(months),
            Every::Week => passed / (24 * 7),
            Every::Day => passed / 24,
            Every::Hour => passed.saturating_sub(24),
        };
        // One less, since neither need begin where its unit does.
        units.checked_div(self.rule.interval).unwrap_or(0).saturating_sub(1).max(0)
    }

    fn period(&self, number: i64) -> Option<Period> {
        let units = number.checked_mul(self.rule.interval)?;
        let start = self.start.date();
        let later = |count: i64| start.checked_add(days(count)).ok();
        Some(match self.rule.every {
            Every::Year => {
                let year = i64::from(start.year()).checked_add(units)?;
                let first = Date::new(i16::try_from(year).ok()?, 1, 1).ok()?;
                Period { first, days: first.days_in_year().into(), hour: None }
            }
            Every::Month => {
                let months = i64::from(start.year()).checked_mul(12)?;
                let months = months.checked_add(i64::from(start.month()))?.checked_add(units)?;
                let months = months.checked_sub(1)?;
                let year = i16::try_from(months.div_euclid(12)).ok()?;
                let month = i8::try_from(months.rem_euclid(12).checked_add(1)?).ok()?;
                let first = Date::new(year, month, 1).ok()?;
                Period { first, days: first.days_in_month().into(), hour: None }
            }
            Every::Week => {
                let into = start.weekday().since(self.rule.week_start);
                let first = later(units.checked_mul(7)?.checked_sub(i64::from(into))?)?;
                Period { first, days: 7, hour: None }
            }
            Every::Day => Period { first: later(units)?, days: 1, hour: None },
            Every::Hour => {
                let hours = i64::from(self.start.hour()).checked_add(units)?;
                let hour = i16::try_from(hours.rem_euclid(24)).ok()?;
                Period { first: later(hours.div_euclid(24))?, days: 1, hour: Some(hour) }
            }
        })
    }

    /// The number of the next period: where no hour of a day is meant, the day is left at once.
    fn after(&self, period: &Period, number: i64) -> i64 {
        let next = number.saturating_add(1);
        match period.hour {
            Some(hour) if !self.is_meant(period.first) => {
                let left = 24_i64.saturating_sub(i64::from(hour));
                let interval = self.rule.interval;
                let whole = left.saturating_add(interval).saturating_sub(1);
                number.saturating_add(whole.checked_div(interval).unwrap_or(1))
            }
            _ => next,
        }
    }

    /// All occurrences of a period, in their order. A month that is not meant is one step.
    fn fill(
        &self,
        period: &Period,
        set: &mut Vec<DateTime>,
        steps: &mut Steps,
    ) -> Result<(), Skip> {
        let (mut day, mut left) = (period.first, period.days);
        while left > 0 {
            steps.take()?;
            let month = i64::from(day.days_in_month());
            let passed = if day.day() == 1 && left >= month && !self.is_month_meant(day) {
                month
            } else {
                1
            };
            if passed == 1 && self.is_meant(day) {
                self.at_times(day, period.hour, set, steps)?;
            }
            let Ok(next) = day.checked_add(days(passed)) else { break };
            (day, left) = (next, left.saturating_sub(passed));
        }
        Ok(())
    }

    fn at_times(
        &self,
        day: Date,
        hour: Option<i16>,
        set: &mut Vec<DateTime>,
        steps: &mut Steps,
    ) -> Result<(), Skip> {
        let own = [i16::from(self.start.hour())];
        let asked = hour.map(|hour| [hour]);
        let hours = match (&asked, &self.rule.hours[..]) {
            (Some(hour), []) => &hour[..],
            (Some([hour]), hours) if hours.contains(hour) => asked.as_slice().as_flattened(),
            (Some(_), _) => &[],
            (None, []) => &own,
            (None, hours) => hours,
        };
        let own = [i16::from(self.start.minute())];
        let minutes = if self.rule.minutes.is_empty() { &own } else { &self.rule.minutes[..] };
        for hour in hours {
            for minute in minutes {
                steps.take()?;
                let (hour, minute) = (i8::try_from(*hour), i8::try_from(*minute));
                let (Ok(hour), Ok(minute)) = (hour, minute) else { continue };
                if let Ok(time) = Time::new(hour, minute, self.start.second(), 0) {
                    set.push(day.to_datetime(time));
                }
            }
        }
        Ok(())
    }

    /// True if the rule includes that day. A rule without days includes the start's.
    fn is_meant(&self, day: Date) -> bool {
        let (rule, start) = (self.rule, self.start.date());
        let is_day = !self.says_no_day()
            || match rule.every {
                Every::Year | Every::Month => day.day() == start.day(),
                Every::Week => day.weekday() == start.weekday(),
                Every::Day | Every::Hour => true,
            };
        let (number, of) = (i16::from(day.day()), i16::from(day.days_in_month()));
        let from_end = number.saturating_sub(of).saturating_sub(1);
        let month_days = rule.month_days.is_empty()
            || rule.month_days.contains(&number)
            || rule.month_days.contains(&from_end);
        self.is_month_meant(day) && is_day && month_days && self.is_weekday_meant(day)
    }

    fn is_month_meant(&self, day: Date) -> bool {
        let months = &self.rule.months;
        if months.is_empty() && self.rule.every == Every::Year && self.says_no_day() {
            return day.month() == self.start.date().month();
        }
        months.is_empty() || months.contains(&i16::from(day.month()))
    }

    fn says_no_day(&self) -> bool {
        self.rule.month_days.is_empty() && self.rule.weekdays.is_empty()
    }

    fn is_weekday_meant(&self, day: Date) -> bool {
        let of_year = self.rule.every == Every::Year && self.rule.months.is_empty();
        let (number, of) = if of_year {
            (day.day_of_year(), day.days_in_year())
        } else {
            (day.day().into(), day.days_in_month().into())
        };
        let nth = number.saturating_sub(1) / 7 + 1;
        let from_end = -(of.saturating_sub(number) / 7 + 1);
        let weekdays = &self.rule.weekdays;
        let is_it = |(which, weekday): &(i16, _)| {
            *weekday == day.weekday() && (*which == 0 || *which == nth || *which == from_end)
        };
        weekdays.is_empty() || weekdays.iter().any(is_it)
    }

    /// The occurrences of a period that BYSETPOS selects, in their order.
    fn picked(&self, set: &[DateTime]) -> Vec<DateTime> {
        if self.rule.positions.is_empty() {
            return set.to_vec();
        }
        let index = |position: &i16| {
            let distance = usize::from(position.unsigned_abs());
            if *position > 0 { distance.checked_sub(1) } else { set.len().checked_sub(distance) }
        };
        let mut picked: Vec<DateTime> = self
            .rule
            .positions
            .iter()
            .filter_map(index)
            .filter_map(|n| set.get(n))
            .copied()
            .collect();
        picked.sort_unstable();
        picked.dedup();
        picked
    }
}
