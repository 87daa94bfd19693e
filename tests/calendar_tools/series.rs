//! What is in a range, and what is told of it.

use syscap::{format::Item, prelude::*};

use crate::calendar_tools::world::{calendar, is_cut, reasons, seen, skipped, world};

const WEEK: (&str, &str) = ("2026-03-02", "2026-03-09");

#[test]
fn events_in_a_range_come_in_order() {
    let world = world();
    let day = "UID:day\nDTSTART;VALUE=DATE:20260303\nDTEND;VALUE=DATE:20260305\nSUMMARY:Fair";
    let berlin = "UID:berlin\nDTSTART;TZID=Europe/Berlin:20260304T090000\n\
        DTEND;TZID=Europe/Berlin:20260304T103000\nSUMMARY:Gr\u{fc}n\\, and\\n two\nLOCATION:Hall\n\
        DESCRIPTION:long\nSTATUS:TENTATIVE\nATTACH:file:///etc/passwd\nURL:file:///etc/shadow";
    let floating = "UID:floating\nDTSTART:20260304T073000\nDURATION:PT15M\nSUMMARY:Tea";
    let utc = "UID:utc\nDTSTART:20260304T081500Z\nSUMMARY:Call";
    let before = "UID:before\nDTSTART:20260301T233000Z\nDURATION:PT30M";
    let into = "UID:into\nDTSTART:20260301T233000Z\nDURATION:PT31M";
    let after = "UID:after\nDTSTART:20260309T000000Z";
    world.put("b/two.ics", calendar(&[utc, before, into, after]));
    world.put("a.ics", calendar(&[day, berlin, floating]));
    world.put("notes.txt", calendar(&["UID:no\nDTSTART:20260304T081500Z"]));
    let result = world.find(args! { "from": WEEK.0, "to": WEEK.1 });
    let found: Vec<_> =
        seen(&result).into_iter().map(|one| (one.uid, one.start, one.end)).collect();
    let expected = [
        ("into", "2026-03-01T23:30:00Z", "2026-03-02T00:01:00Z"),
        ("day", "2026-03-03", "2026-03-05"),
        ("floating", "2026-03-04T07:30:00", "2026-03-04T07:45:00"),
        ("berlin", "2026-03-04T09:00:00+01:00", "2026-03-04T10:30:00+01:00"),
        ("utc", "2026-03-04T08:15:00Z", "2026-03-04T08:15:00Z"),
    ];
    let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
    assert_eq!(found, expected);
    let value = result.value().unwrap();
    assert_eq!(value.get("files").and_then(Item::as_uint), Some(2));
    assert_eq!(value.get("from").and_then(Item::as_text), Some("2026-03-02T00:00:00Z"));
    assert_eq!((skipped(&result).len(), is_cut(&result)), (0, false));
    let berlin = value.get("events").unwrap().elements().nth(3).unwrap();
    for (key, text) in [
        ("summary", "Gr\u{fc}n, and\n two"),
        ("location", "Hall"),
        ("description", "long"),
        ("status", "TENTATIVE"),
        ("zone", "Europe/Berlin"),
        ("file", "a.ics"),
    ] {
        assert_eq!(berlin.get(key).and_then(Item::as_text), Some(text), "{key}");
    }
    assert_eq!(berlin.get("all_day").and_then(Item::as_bool), Some(false));
    // What names files and addresses is not told, let alone followed.
    assert!(!result.to_json().contains("file:///"));
    // One file, its words, the zone of whoever asks, and the range in one.
    let uids = |args| seen(&world.find(args)).into_iter().map(|one| one.uid).collect::<Vec<_>>();
    let range = "2026-03-02/2026-03-09";
    assert_eq!(uids(args! { "range": range, "path": "calendar/b/two.ics" }), ["into", "utc"]);
    assert_eq!(uids(args! { "range": range, "text": "GR\u{dc}N" }), ["berlin"]);
    assert_eq!(uids(args! { "range": range, "text": "etc/passwd" }), [""; 0]);
    let tokyo = args! { "range": "2026-03-04/2026-03-05", "zone": "Asia/Tokyo", "text": "e" };
    assert_eq!(uids(tokyo), ["floating"], "seven there is two hours before midnight here");
}

#[test]
fn one_of_a_series_is_changed_or_taken_out() {
    let world = world();
    let of = |text: &str| world.of(text, WEEK.0, WEEK.1);
    let none: [&str; 0] = [];
    let series = "UID:u\nDTSTART;TZID=Europe/Berlin:20260302T090000\nRRULE:FREQ=DAILY;COUNT=3";
    let days = |found: &[&str]| -> Vec<String> {
        found.iter().map(|day| format!("2026-03-0{day}:00+01:00")).collect()
    };
    assert_eq!(of(series), (days(&["2T09:00", "3T09:00", "4T09:00"]), vec![]));
    // By an instant, by a day, and one that is none of it.
    let less = |line: &str| of(&format!("{series}\n{line}"));
    assert_eq!(less("EXDATE:20260303T080000Z").0, days(&["2T09:00", "4T09:00"]));
    assert_eq!(less("EXDATE;VALUE=DATE:20260303").0, days(&["2T09:00", "4T09:00"]));
    assert_eq!(less("EXDATE:20260303T090000Z,20260304T080000Z").0.len(), 2);
    assert_eq!(less("EXDATE:20260303T080001Z").0.len(), 3);
    assert_eq!(less("EXDATE:20260303T090000"), (vec![], vec!["bad_date".to_owned()]));
    assert_eq!(
        less("RDATE:20260305T080000Z,20260305T080000Z,20260303T080000Z").0,
        days(&["2T09:00", "3T09:00", "4T09:00", "5T09:00"])
    );
    let other = |id: &str, start: &str, more: &str| {
        let other = format!("UID:u\nRECURRENCE-ID{id}\nDTSTART:{start}\n{more}\nSUMMARY:other");
        world.put("one.ics", calendar(&[&other, series]));
        let result = world.find(args! { "from": WEEK.0, "to": WEEK.1 });
        let starts: Vec<String> = seen(&result).into_iter().map(|one| one.start).collect();
        (starts, reasons(&result))
    };
    let mut moved = days(&["2T09:00", "4T09:00"]);
    moved.push("2026-03-07T12:00:00Z".into());
    assert_eq!(other(":20260303T080000Z", "20260307T120000Z", "SEQUENCE:1").0, moved);
    let away = other(":20260303T080000Z", "20270307T120000Z", "SEQUENCE:1").0;
    assert_eq!(away, days(&["2T09:00", "4T09:00"]), "it is elsewhere now");
    let nowhere = other(":20260306T080000Z", "20260307T120000Z", "SEQUENCE:1").0;
    assert_eq!(nowhere.len(), 4, "instead of none it is one more");
    // What would change others too, or recur itself, or can't be read: none of it is told.
    for (id, start, more, reason) in [
        (";RANGE=THISANDFUTURE:20260303T080000Z", "20260307T120000Z", "X:y", "unsupported"),
        (":20260303T080000Z", "20260303T120000Z", "RRULE:FREQ=DAILY", "unsupported"),
        (":20260303T080000Z", "20260303T120000Z", "RDATE:20260304T120000Z", "unsupported"),
        (";VALUE=DATE:20260303", "20260307T120000Z", "X:y", "bad_date"),
        (":20260303T080000Z", "20260399T120000Z", "X:y", "bad_date"),
        (":20260303T080000Z", "20260303T120000Z", "DURATION:PT", "bad_duration"),
    ] {
        let found = other(id, start, more);
        assert_eq!(found, (vec![], vec![reason.to_owned()]), "{id} {more}");
    }
    // Of two versions the later.
    let versions = |first: u32, second: u32| {
        let one = format!("{series}\nSEQUENCE:{first}\nSUMMARY:first");
        let other = format!("UID:u\nDTSTART:20260305T080000Z\nSEQUENCE:{second}");
        world.put("one.ics", calendar(&[&one, &other]));
        seen(&world.find(args! { "from": WEEK.0, "to": WEEK.1 })).len()
    };
    assert_eq!((versions(2, 1), versions(1, 2), versions(1, 1)), (3, 1, 1));
    assert_eq!(
        of("UID:u\nDTSTART:20260305T080000Z\nRRULE:FREQ=DAILY;UNTIL=20260304T000000Z").0,
        none
    );
}

/// Outlook ends a series of days by an instant: the midnight of its last day, in its own zone.
#[test]
fn all_day_series_that_ends_with_an_instant_keeps_its_last_day() {
    let world = world();
    let days = |until: &str, zone: &str| {
        let event = format!(
            "UID:u\nDTSTART;VALUE=DATE:20260303\nRRULE:FREQ=DAILY;UNTIL={until}\nSUMMARY:Fair"
        );
        world.put("one.ics", calendar(&[&event]));
        let found = world.find(args! { "from": WEEK.0, "to": WEEK.1, "zone": zone });
        (seen(&found).len(), reasons(&found))
    };
    let all = |count| (count, Vec::new());
    assert_eq!(days("20260306T230000Z", "Europe/Berlin"), all(5), "the 7th begins there");
    assert_eq!(days("20260307T050000Z", "America/New_York"), all(5));
    assert_eq!(days("20260307T000000Z", "Europe/Berlin"), all(5), "a day of UTC");
    assert_eq!(days("20260307T235959Z", "Europe/Berlin"), all(5), "its last second");
    assert_eq!(days("20260307", "Europe/Berlin"), all(5));
    // Elsewhere nobody can say which day is the last: it is told, not guessed.
    let (found, why) = days("20260306T230000Z", "UTC");
    assert_eq!((found, why), (0, vec!["bad_date".to_owned()]));
}

/// The local time stays where clocks are moved; what they leave out is an hour later.
#[test]
fn a_series_follows_the_clocks() {
    let world = world();
    let series = "UID:u\nDTSTART;TZID=Europe/Berlin:20260327T023000\nDURATION:PT1H\n\
        RRULE:FREQ=DAILY;COUNT=4";
    let (starts, _) = world.of(series, "2026-03-26", "2026-04-02");
    let expected = [
        "2026-03-27T02:30:00+01:00",
        "2026-03-28T02:30:00+01:00",
        "2026-03-29T03:30:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ];
    assert_eq!(starts, expected);
    // DTEND is a time that passes, DURATION one of days.
    let ends = |line: &str| {
        let event = format!("UID:u\nDTSTART;TZID=Europe/Berlin:20260328T120000\n{line}");
        world.put("one.ics", calendar(&[&format!("{event}\nRRULE:FREQ=DAILY;COUNT=2")]));
        let found = seen(&world.find(args! { "from": "2026-03-28", "to": "2026-04-02" }));
        found.into_iter().map(|one| one.end).collect::<Vec<_>>()
    };
    let exact = ends("DTEND;TZID=Europe/Berlin:20260329T120000");
    assert_eq!(exact, ["2026-03-29T12:00:00+02:00", "2026-03-30T11:00:00+02:00"]);
    let nominal = ends("DURATION:P1D");
    assert_eq!(nominal, ["2026-03-29T12:00:00+02:00", "2026-03-30T12:00:00+02:00"]);
    // A zone that the file describes, under a name that no database has.
    let zone = "BEGIN:VTIMEZONE\nTZID:W. Europe Standard Time\nBEGIN:STANDARD\n\
        DTSTART:16011028T030000\nTZOFFSETFROM:+0200\nTZOFFSETTO:+0100\n\
        RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\nEND:STANDARD\nBEGIN:DAYLIGHT\n\
        DTSTART:16010325T020000\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0200\n\
        RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\nEND:DAYLIGHT\nEND:VTIMEZONE\n";
    let event = series.replace("Europe/Berlin", "W. Europe Standard Time");
    let file = calendar(&[&event]).replace("END:VCALENDAR", &format!("{zone}END:VCALENDAR"));
    world.put("one.ics", file);
    let result = world.find(args! { "from": "2026-03-26", "to": "2026-04-02" });
    let starts: Vec<String> = seen(&result).into_iter().map(|one| one.start).collect();
    assert_eq!(starts, expected);
    // Of another file it is nothing.
    world.put("one.ics", calendar(&["UID:x\nDTSTART:20260327T000000Z"]));
    world.put("two.ics", calendar(&[&event]));
    let result = world.find(args! { "from": "2026-03-26", "to": "2026-04-02" });
    assert_eq!(skipped(&result), ["two.ics/u: unknown_zone"]);
}

#[test]
fn oversized_events_are_cut_and_reported() {
    let world = world();
    let text = "\u{e9}".repeat(1_500);
    let series = format!(
        "UID:u\nDTSTART:20260101T000000Z\nRRULE:FREQ=DAILY\nSUMMARY:{text}\nDESCRIPTION:a{text}"
    );
    world.put("one.ics", calendar(&[&series, "UID:late\nDTSTART:20260102T120000Z"]));
    let find =
        |limit: u64| world.find(args! { "from": "2026-01-01", "to": "2026-02-01", "limit": limit });
    let first = find(2);
    let uids: Vec<String> = seen(&first).into_iter().map(|one| one.uid).collect();
    assert_eq!((uids.join(" ").as_str(), is_cut(&first)), ("u u", true));
    assert!(is_cut(&find(31)) && !is_cut(&find(32)));
    let value = first.value().unwrap();
    let one = value.get("events").unwrap().elements().next().unwrap();
    let part = |key: &str| one.get(key).and_then(Item::as_text).unwrap().to_owned();
    assert_eq!(part("summary"), "\u{e9}".repeat(256));
    assert_eq!(part("description"), format!("a{}", "\u{e9}".repeat(999)));
    assert_eq!(one.get("cut").and_then(Item::as_bool), Some(true));
    // A result has its size, whatever is in it.
    let args = args! { "from": "2026-01-01", "to": "2026-12-31", "limit": 1_000 };
    let result = world.find(args);
    let shown = seen(&result).len();
    assert!(is_cut(&result) && shown < 365 && shown > 150, "{shown}");
    assert!(result.to_json().len() < 1 << 20);
}

/// What is counted is counted from the start, however long ago; what is not is passed over.
#[test]
fn counted_series_is_counted_from_its_start() {
    let world = world();
    for (rule, found) in [
        ("FREQ=DAILY;COUNT=3", 0),
        ("FREQ=DAILY;COUNT=2253", 1),
        ("FREQ=DAILY;COUNT=2254", 2),
        ("FREQ=DAILY", 7),
        ("FREQ=DAILY;INTERVAL=2", 4),
        ("FREQ=DAILY;INTERVAL=2;BYMONTH=4", 0),
        ("FREQ=WEEKLY;COUNT=323", 1),
        ("FREQ=WEEKLY;COUNT=322", 0),
        ("FREQ=HOURLY;INTERVAL=12", 14),
    ] {
        let event = format!("UID:u\nDTSTART:20191231T120000Z\nRRULE:{rule}");
        let (starts, reasons) = world.of(&event, "2026-03-01", "2026-03-08");
        assert_eq!((starts.len(), reasons.len()), (found, 0), "{rule}");
    }
}
