//! Properties: what is found does not hang on how it is asked, and nothing panics.

use proptest::prelude::*;
use syscap::prelude::*;

use crate::calendar_tools::world::{Seen, World, calendar, seen, skipped, world};

fn starts(world: &World, from: &str, to: &str) -> Vec<Seen> {
    let result = world.find(args! { "from": from, "to": to, "limit": 1_000 });
    assert_eq!(skipped(&result), [""; 0]);
    seen(&result)
}

fn rule() -> impl Strategy<Value = String> {
    let every = prop_oneof![Just("YEARLY"), Just("MONTHLY"), Just("WEEKLY"), Just("DAILY")];
    let part = prop_oneof![
        Just(String::new()),
        "[1-7]"
            .prop_map(|n| format!(";BYDAY={}", ["MO", "TU,TH", "SU", "FR", "SA", "WE"][n.len()])),
        (1..12_u8).prop_map(|n| format!(";BYMONTH={n}")),
        (1..40_u8).prop_map(|n| format!(";COUNT={n}")),
    ];
    (every, 1..5_u8, part).prop_map(|(every, n, part)| format!("FREQ={every};INTERVAL={n}{part}"))
}

/// What calendars are made of, and what they should not have.
const PARTS: [&str; 23] = [
    "BEGIN:VCALENDAR\n",
    "END:VCALENDAR\n",
    "BEGIN:VEVENT\n",
    "END:VEVENT\n",
    "UID:a\n",
    "UID:b\n",
    "DTSTART:20260301T10\n 0000Z\n",
    "DTSTART;VALUE=DATE:20260228\n",
    "DTEND:20260301T110000Z\n",
    "DURATION:P1DT1H\n",
    "RRULE:FREQ=DAILY;BYDAY=MO,-1TU\n",
    "RRULE:FREQ=HOURLY;COUNT=9\n",
    "RDATE:20260401T100000Z,",
    "EXDATE;TZID=Europe/Berlin:20260301T110000\n",
    "RECURRENCE-ID:20260301\n",
    "BEGIN:VTIMEZONE\nTZID:a\n",
    "BEGIN:STANDARD\n",
    "END:STANDARD\n",
    "SUMMARY:\u{fc}\\",
    ";\"x",
    "99999999T999999Z",
    "\r\n",
    "\0",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A year is its two parts, whatever lies across them: what is passed over before a range is
    /// passed over rightly.
    #[test]
    fn a_range_is_the_sum_of_its_parts(
        rule in rule(),
        year in 1950..2026_i16,
        day in 1..28_u8,
        cut in 2..12_u8,
        length in prop_oneof![Just("PT1H"), Just("P3D"), Just("PT0S")],
    ) {
        let world = world();
        let event = format!(
            "UID:u\nDTSTART;TZID=America/New_York:{year}05{day:02}T093000\n\
             DURATION:{length}\nRRULE:{rule}"
        );
        world.put("one.ics", calendar(&[&event]));
        let cut = format!("2026-{cut:02}-01");
        let whole = starts(&world, "2026-01-01", "2026-12-31");
        let (first, second) =
            (starts(&world, "2026-01-01", &cut), starts(&world, &cut, "2026-12-31"));
        let mut both = first.clone();
        both.extend(second.into_iter().filter(|one| !first.contains(one)));
        prop_assert_eq!(whole, both);
    }

    /// Parts of calendars in any order, cut anywhere: an answer, whatever it says.
    #[test]
    fn hostile_calendar_never_stops_a_call(
        parts in prop::collection::vec(prop::sample::select(&PARTS[..]), 0..60),
        cut in 0..2_000_usize,
    ) {
        let world = world();
        let mut bytes = parts.concat().into_bytes();
        bytes.truncate(cut);
        world.put("one.ics", &bytes);
        world.put("two.ics", calendar(&["UID:ok\nDTSTART:20260301T100000Z"]));
        let result = world.find(args! { "from": "2026-01-01", "to": "2026-12-31" });
        prop_assert!(seen(&result).iter().any(|one| one.uid == "ok"));
    }
}
