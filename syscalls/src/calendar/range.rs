//! Which time a call asks about.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use syscap_format::{Item, ItemKind, Reason, Refused};
use syscap_kernel::Request;

use super::{moment::days, series::Window, zones::Zones};

/// Longest range, in days.
pub const RANGE_DAYS_MAX: i64 = 366;
/// The years that can be asked about.
const YEARS: std::ops::RangeInclusive<i16> = 1900..=2199;
const FORM: &str = "2026-11-24, 2026-11-24T09:00 or 2026-11-24T09:00:00+01:00";

fn bad(field: &'static str, got: &str, allowed: &str) -> Refused {
    Refused::new(Reason::BadArgument).field(field).got(got).allowed(allowed)
}

impl Window {
    /// Reads `from` and `to`, or both in `range`, and `zone`.
    pub(super) fn parse(request: &Request<'_>) -> Result<Self, Refused> {
        let arg = |name| request.args.get(name).filter(|item| item.kind() != ItemKind::Null);
        let zone = arg("zone").and_then(Item::as_text).unwrap_or("UTC");
        let here = Zones::new().get(zone);
        let here = here.map_err(|_| bad("zone", zone, "a name such as Europe/Berlin"))?;
        let (from, to) = match (arg("range"), arg("from"), arg("to")) {
            (None, Some(from), Some(to)) => (from.as_text(), to.as_text()),
            (Some(range), None, None) => match range.as_text() {
                Some(text) => {
                    text.split_once('/').map_or((None, None), |(a, b)| (Some(a), Some(b)))
                }
                None => (
                    range.get("from").and_then(Item::as_text),
                    range.get("to").and_then(Item::as_text),
                ),
            },
            _ => return Err(bad("range", "another form", "`from` and `to`, or `range`")),
        };
        let (Some(from), Some(to)) = (from, to) else {
            return Err(bad("range", "another form", "FROM/TO, or a map of `from` and `to`"));
        };
        let field = if arg("range").is_some() { ("range", "range") } else { ("from", "to") };
        let window = Self {
            from: instant(from, &here).ok_or_else(|| bad(field.0, from, FORM))?,
            to: instant(to, &here).ok_or_else(|| bad(field.1, to, FORM))?,
            here,
        };
        let length = window.to.duration_since(window.from);
        if !length.is_positive() || length > days(RANGE_DAYS_MAX) {
            let allowed = format!("a later time, of at most {RANGE_DAYS_MAX} days");
            return Err(bad(field.1, to, &allowed));
        }
        Ok(window)
    }
}

/// A day is its midnight; what says no offset is a time of the zone.
fn instant(text: &str, here: &TimeZone) -> Option<Timestamp> {
    let is_plain = |b: u8| b.is_ascii_digit() || b"-+:.TZtz".contains(&b);
    if !text.bytes().all(is_plain) || text.len() < 10 {
        return None;
    }
    let has_offset = text.get(10..)?.contains(['Z', 'z', '+', '-']);
    let at = if text.len() == 10 {
        here.to_timestamp(text.parse::<Date>().ok()?.to_datetime(jiff::civil::Time::midnight()))
    } else if has_offset {
        text.parse::<Timestamp>()
    } else {
        here.to_timestamp(text.parse::<DateTime>().ok()?)
    };
    let at = at.ok()?;
    YEARS.contains(&TimeZone::UTC.to_datetime(at).year()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_forms() {
        let berlin = Zones::new().get("Europe/Berlin").unwrap();
        for (text, utc) in [
            ("2026-07-01", "2026-06-30T22:00:00Z"),
            ("2026-07-01T09:00", "2026-07-01T07:00:00Z"),
            ("2026-07-01T09:00:00", "2026-07-01T07:00:00Z"),
            ("2026-07-01T09:00:00Z", "2026-07-01T09:00:00Z"),
            ("2026-07-01T09:00:00-05:30", "2026-07-01T14:30:00Z"),
        ] {
            assert_eq!(instant(text, &berlin).unwrap().to_string(), utc, "{text}");
        }
        for text in [
            "",
            "2026",
            "2026-02-30",
            "2026-07-01T25:00",
            "2026-07-01T09:00:00+99:00",
            "2026-07-01 09:00",
            "2026-07-01T09:00:00+02:00[Europe/Berlin]",
            "1899-07-01",
            "2200-07-01",
            "+292277026596-12-04",
            "9999-12-31T23:59:59Z",
            "0000-00-00",
            "tomorrow",
            "P1Y",
        ] {
            assert_eq!(instant(text, &berlin), None, "{text}");
        }
    }
}
