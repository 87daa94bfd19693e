//! What files that mean harm come to: each ends in a named reason, or in what was asked for.

use std::{fs, os::unix::ffi::OsStrExt as _};

use syscap::{format::Item, prelude::*};

use crate::calendar_tools::world::{calendar, is_cut, reasons, seen, skipped, world};

const START: &str = "UID:u\nDTSTART:20260301T000000Z\n";

/// The reason for which an event is left out, whatever else there is.
#[test]
fn a_bad_event_is_left_out_by_its_reason() {
    let world = world();
    let of = |event: &str| world.of(event, "2026-01-01", "2026-12-31");
    for (event, reason) in [
        ("DTSTART:20260301T000000Z", "bad_uid"),
        ("UID:\nDTSTART:20260301T000000Z", "bad_uid"),
        ("UID:u\nUID:v\nDTSTART:20260301T000000Z", "bad_uid"),
        ("UID:u", "bad_date"),
        ("UID:u\nDTSTART:20260301T000000Z\nDTSTART:20260302T000000Z", "said_twice"),
        ("UID:u\nno line\nDTSTART:20260301T000000Z", "malformed"),
        ("UID:u\nSEQUENCE:x\nDTSTART:20260301T000000Z", "malformed"),
        // DTEND before DTSTART; both kinds of end; a duration that flows over, or goes back.
        ("UID:u\nDTSTART:20260301T000000Z\nDTEND:20260228T000000Z", "ends_before_it_starts"),
        ("UID:u\nDTSTART;VALUE=DATE:20260301\nDTEND;VALUE=DATE:20260228", "ends_before_it_starts"),
        ("UID:u\nDTSTART:20260301T000000Z\nDURATION:-PT1S", "ends_before_it_starts"),
        ("UID:u\nDTSTART:20260301T000000Z\nDTEND:20260302T000000Z\nDURATION:PT1H", "said_twice"),
        ("UID:u\nDTSTART:20260301T000000Z\nDTEND;VALUE=DATE:20260302", "bad_date"),
        ("UID:u\nDTSTART:20260301T000000Z\nDTEND:21270302T000000Z", "bad_duration"),
        ("UID:u\nDTSTART:20260301T000000Z\nDURATION:P99999999999999999W", "bad_duration"),
        ("UID:u\nDTSTART:20260301T000000Z\nDURATION:PT9223372036854775807S", "bad_duration"),
        ("UID:u\nDTSTART;VALUE=DATE:20260301\nDURATION:PT1H", "bad_duration"),
        // The years 0, 9999 and 292277.
        ("UID:u\nDTSTART:+2922770101T000000Z", "bad_date"),
        ("UID:u\nDTSTART:292277010-101T000000Z", "bad_date"),
        ("UID:u\nDTSTART:99991231T235959Z\nDURATION:P1W", "bad_date"),
        ("UID:u\nDTSTART:00000101T000000Z\nRRULE:FREQ=DAILY;COUNT=4294967295", "too_much_work"),
        // A path where a zone is named, and one that nobody knows.
        ("UID:u\nDTSTART;TZID=../../etc/passwd:20260301T000000", "unknown_zone"),
        ("UID:u\nDTSTART;TZID=/etc/localtime:20260301T000000", "unknown_zone"),
        ("UID:u\nDTSTART;TZID=\"Europe/../Europe/Berlin\":20260301T000000", "unknown_zone"),
        ("UID:u\nDTSTART;TZID=Mars/Base:20260301T000000", "unknown_zone"),
    ] {
        let (starts, reasons) = of(event);
        assert_eq!((starts, reasons), (vec![], vec![reason.to_owned()]), "{event}");
    }
    // These two are far, and right.
    for event in ["UID:u\nDTSTART:00000101T000000Z", "UID:u\nDTSTART;VALUE=DATE:99991229"] {
        assert_eq!(of(event), (vec![], vec![]), "{event}");
    }
    let leap = "UID:u\nDTSTART:20260630T235960Z";
    assert_eq!(of(leap).0, ["2026-06-30T23:59:59Z"]);
    // What one day is, as many programs write it.
    let day = "UID:u\nDTSTART;VALUE=DATE:20260301\nDTEND;VALUE=DATE:20260301";
    assert_eq!(of(day).0, ["2026-03-01"]);
}

/// A rule is work that somebody else orders.
#[test]
fn a_rule_orders_no_more_work_than_an_event_may() {
    let world = world();
    let of = |rule: &str| world.of(&format!("{START}RRULE:{rule}"), "2026-01-01", "2026-12-31");
    for (rule, reason) in [
        ("FREQ=SECONDLY", "too_frequent"),
        ("FREQ=SECONDLY;COUNT=4294967295", "too_frequent"),
        ("FREQ=MINUTELY;INTERVAL=1", "too_frequent"),
        ("FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO", "too_frequent"),
        ("FREQ=DAILY;INTERVAL=0", "bad_rule"),
        ("FREQ=DAILY;COUNT=99999999999", "bad_rule"),
        ("FREQ=YEARLY;BYYEARDAY=1", "unsupported"),
        ("FREQ=YEARLY;BYWEEKNO=1", "unsupported"),
        ("FREQ=DAILY;BYSECOND=1", "unsupported"),
    ] {
        assert_eq!(of(rule), (vec![], vec![reason.to_owned()]), "{rule}");
    }
    let all: Vec<String> = (0..60).map(|n| n.to_string()).collect();
    let every_minute =
        format!("FREQ=DAILY;BYHOUR={};BYMINUTE={}", all[..24].join(","), all.join(","));
    assert_eq!(of(&every_minute), (vec![], vec!["too_much_work".to_owned()]));
    let first = vec!["2026-03-01T00:00:00Z".to_owned()];
    for rule in [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30;COUNT=4294967295",
        "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
        "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30;COUNT=4294967295",
        "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=366",
        "FREQ=YEARLY;INTERVAL=4294967295",
        "FREQ=HOURLY;INTERVAL=4294967295;BYDAY=MO",
        "FREQ=WEEKLY;INTERVAL=4294967295",
    ] {
        assert_eq!(of(rule), (first.clone(), vec![]), "{rule}");
    }
    assert_eq!(of("FREQ=DAILY;COUNT=4294967295").0.len(), 305);
    // From long ago, endless: what lies between is passed over.
    let old = "UID:u\nDTSTART:00010101T000000Z\nRRULE:FREQ=DAILY";
    assert_eq!(world.of(old, "2026-01-01", "2026-12-31").0.len(), 364);
}

/// A thousand that each cost as much as one may: the call ends, and says what it left out.
#[test]
fn a_call_does_no_more_work_than_it_may() {
    let world = world();
    let sparse: Vec<String> = (0..1_000)
        .map(|n| {
            format!(
                "UID:u{n:04}\nDTSTART:00010101T000000Z\n\
                 RRULE:FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;COUNT=4294967295"
            )
        })
        .collect();
    let sparse: Vec<&str> = sparse.iter().map(String::as_str).collect();
    world.put("b.ics", calendar(&sparse));
    world.put("a.ics", calendar(&["UID:first\nDTSTART:20260301T000000Z"]));
    world.put("c.ics", calendar(&["UID:last\nDTSTART:20260301T000000Z"]));
    let result = world.find(args! { "from": "2026-01-01", "to": "2026-12-31" });
    let uids: Vec<String> = seen(&result).into_iter().map(|one| one.uid).collect();
    assert_eq!((uids.join(" ").as_str(), is_cut(&result)), ("first", true));
    let value = result.value().unwrap();
    // Those of which it was not looked at are counted too; fifty are told.
    assert_eq!(value.get("skipped_count").and_then(Item::as_uint), Some(1_001));
    let told = reasons(&result);
    assert_eq!(told.len(), 50);
    assert!(told.iter().all(|reason| reason == "too_much_work"));
}

#[test]
fn lists_of_dates_are_work_as_well() {
    let world = world();
    let many = |name: &str, count: usize| {
        format!("{START}{name}:{}20260302T000000Z", "20260301T000000Z,".repeat(count))
    };
    let of = |event: &str| world.of(event, "2026-01-01", "2026-12-31");
    let (found, work) = (2, vec!["too_much_work".to_owned()]);
    assert_eq!(of(&many("RDATE", 1_000)).0.len(), found);
    assert_eq!(of(&many("EXDATE", 1_000)), (vec![], vec![]));
    // A million do not fit into a file; of what fits it is more than an event may order.
    assert_eq!(of(&many("RDATE", 1_000_000)).1, ["too_large"]);
    for name in ["RDATE", "EXDATE"] {
        let list = format!("{name}:20260302{}", ",20260301".repeat(460_000));
        let days = format!("UID:u\nDTSTART;VALUE=DATE:20260301\n{list}");
        assert_eq!(of(&days), (vec![], work.clone()), "{name}");
        let lines = format!("{name}:20260302\n").repeat(250_000);
        let days = format!("UID:u\nDTSTART;VALUE=DATE:20260301\n{lines}");
        assert_eq!(of(&days), (vec![], work.clone()), "{name}");
    }
    // Ends of a list are dates too.
    for value in ["20260301T000000Z,", ",", "20260301T000000Z/PT1H", "20260301,x"] {
        let reasons = of(&format!("{START}RDATE:{value}")).1;
        assert_eq!(reasons, ["bad_date"], "{value}");
    }
    let period = of(&format!("{START}RDATE;VALUE=PERIOD:20260301T000000Z/PT1H")).1;
    assert_eq!(period, ["unsupported"]);
}

/// Occurrences that replace each other, themselves, or nothing.
#[test]
fn overrides_do_not_loop() {
    let world = world();
    let event = |id: &str, start: &str| {
        format!("UID:u\nRECURRENCE-ID:2026030{id}T000000Z\nDTSTART:2026030{start}T000000Z")
    };
    let all = [event("1", "2"), event("2", "3"), event("3", "1"), event("4", "4")];
    let series = format!("{START}RRULE:FREQ=DAILY;COUNT=3");
    let mut events: Vec<&str> = all.iter().map(String::as_str).collect();
    events.push(&series);
    world.put("one.ics", calendar(&events));
    let find = || world.find(args! { "from": "2026-01-01", "to": "2026-12-31", "limit": 1_000 });
    let days = |result: &ToolResult| -> Vec<String> {
        seen(result).into_iter().map(|one| one.start[8..10].to_owned()).collect()
    };
    assert_eq!(days(&find()), ["01", "02", "03", "04"]);
    // Ten thousand for one occurrence, and without a series.
    let same: Vec<String> = (0..10_000)
        .map(|n| {
            format!("{}\nSEQUENCE:{n}\nSUMMARY:{n}", event("1", if n == 9_999 { "7" } else { "5" }))
        })
        .collect();
    let same: Vec<&str> = same.iter().map(String::as_str).collect();
    world.put("one.ics", calendar(&same));
    assert_eq!(days(&find()), ["07"], "the last version");
}

#[test]
fn a_bad_file_is_left_out_whole_by_its_reason() {
    let world = world();
    world.put("z.ics", calendar(&["UID:ok\nDTSTART:20260301T000000Z"]));
    let good = calendar(&["UID:bad\nDTSTART:20260301T000000Z"]);
    let deep = format!("{}{}", "BEGIN:X\n".repeat(100_000), "END:X\n".repeat(100_000));
    let within = |inner: &str| good.replace("END:VEVENT", &format!("{inner}END:VEVENT"));
    let zones = "BEGIN:VTIMEZONE\nTZID:x\nEND:VTIMEZONE\n".repeat(50_000);
    let many = calendar(&vec!["UID:bad\nDTSTART:20260301T000000Z"; 20_001]);
    let long = format!("{}\nSUMMARY:", START.trim());
    for (file, reason) in [
        (good.replace("END:VCALENDAR", "").into_bytes(), "malformed"),
        (good.replace("END:VEVENT", "END:VTODO").into_bytes(), "malformed"),
        (format!("{good}END:VCALENDAR\n").into_bytes(), "malformed"),
        (format!("{good}BEGIN:VEVENT\n").into_bytes(), "malformed"),
        (deep.clone().into_bytes(), "too_deep"),
        (within(&deep).into_bytes(), "too_deep"),
        (good.replace("bad", "\u{fc}").replace('\u{fc}', "b\u{1}").into_bytes(), ""),
        ([good.as_bytes(), b"X:\xff\n"].concat(), "not_text"),
        (many.into_bytes(), "too_many"),
        (calendar(&[&format!("{long}{}", "x".repeat(100 << 20))]).into_bytes(), "too_large"),
        (calendar(&[&format!("{long}{}", "x\n ".repeat(2 << 20))]).into_bytes(), "too_large"),
    ] {
        world.put("a.ics", &file);
        let result = world.find(args! { "from": "2026-01-01", "to": "2026-12-31" });
        let told: Vec<String> = if reason.is_empty() { vec![] } else { vec![reason.into()] };
        let expected = if reason.is_empty() { 2 } else { 1 };
        assert_eq!((reasons(&result), seen(&result).len()), (told, expected), "{reason}");
    }
    // What is no event is not looked at; a bomb of zones is a text like any other.
    for file in [
        good.replace("VEVENT", "VTODO"),
        within("BEGIN:VALARM\nDTSTART:x\nUID:y\nTRIGGER:-PT5M\nEND:VALARM\n"),
        format!("{zones}{good}"),
    ] {
        world.put("a.ics", &file);
        let result = world.find(args! { "from": "2026-01-01", "to": "2026-12-31" });
        assert_eq!(skipped(&result), [""; 0]);
    }
}

#[test]
fn files_and_bytes_are_bounded() {
    let world = world();
    let find = || world.find(args! { "from": "2026-01-01", "to": "2026-12-31" });
    // A file of nothing but its length, and five that are as large as may be.
    let folder = world.workspace().join("calendar");
    fs::File::create(folder.join("a.ics")).unwrap().set_len(1 << 40).unwrap();
    let large = calendar(&[&format!("{START}X-FILL:{}", "x".repeat((4 << 20) - 200))]);
    for n in 0..5 {
        world.put(&format!("b{n}.ics"), &large);
    }
    let result = find();
    assert_eq!(skipped(&result), ["a.ics: too_large", "b4.ics: too_large"]);
    assert_eq!((seen(&result).len(), is_cut(&result)), (4, true));
    for entry in fs::read_dir(&folder).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    for n in 0..2_001 {
        world.put(&format!("n{n:04}.ics"), calendar(&[]));
    }
    let result = find();
    assert_eq!((skipped(&result), is_cut(&result)), (vec!["n2000.ics: too_many".into()], true));
    fs::remove_dir_all(&folder).unwrap();
    world.put("1/2/3/4/deep.ics", calendar(&["UID:deep\nDTSTART:20260301T000000Z"]));
    world.put("1/2/3/4/5/deeper.ics", calendar(&["UID:deeper\nDTSTART:20260301T000000Z"]));
    let result = find();
    assert_eq!(seen(&result).len(), 1);
    assert_eq!(skipped(&result), ["1/2/3/4/5: too_deep"]);
}

/// What is no calendar, or is called as none is, is named: nobody takes it for an empty one.
#[test]
fn unrecognised_calendar_file_is_named() {
    let world = world();
    let event = "UID:a\nDTSTART:20260301T000000Z";
    let text = calendar(&[event]);
    world.put("B.ICS", &text);
    world.put("blank.ics", text.replace("BEGIN:VEVENT", "BEGIN:VEVENT "));
    world.put("bare.ics", format!("BEGIN:VEVENT\n{event}\nEND:VEVENT\n"));
    world.put("empty.ics", "");
    world.put("card.ics", text.replace("VCALENDAR", "VCARD"));
    world.put("mark.ics", "\u{feff}\r\n\r\n");
    world.put("html.ics", "<html><body>Not found</body></html>");
    world.put(
        "inner.ics",
        text.replace("BEGIN:VEVENT", "BEGIN:X-A\nBEGIN:VEVENT")
            .replace("END:VEVENT", "END:VEVENT\nEND:X-A"),
    );
    world.put("none.ics", "BEGIN:VCALENDAR\nVERSION:2.0\nEND:VCALENDAR\n");
    world.put("returns.ics", text.replace("\r\n", "\n").replace('\n', "\r\r\n"));
    let odd = std::ffi::OsStr::from_bytes(b"caf\xe9.ics");
    fs::write(world.workspace().join("calendar").join(odd), "x").unwrap();
    let result = world.find(args! { "from": "2026-01-01", "to": "2026-12-31" });
    assert_eq!(seen(&result).len(), 1, "what is called .ICS is a calendar");
    let wanted = [
        "bare.ics: no_calendar",
        "blank.ics: malformed",
        "caf\u{fffd}.ics: bad_name",
        "card.ics: no_calendar",
        "empty.ics: no_calendar",
        "html.ics: no_calendar",
        "inner.ics: malformed",
        "mark.ics: no_calendar",
        "returns.ics: malformed",
    ];
    let mut named = skipped(&result);
    named.sort();
    assert_eq!(named, wanted);
    let one =
        world.find(args! { "from": "2026-01-01", "to": "2026-12-31", "path": "calendar/B.ICS" });
    assert_eq!(seen(&one).len(), 1);
}

/// What an event points to is text: no file of it is read, and nobody is asked for it.
#[test]
fn links_in_an_event_are_not_opened() {
    let world = world();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let secret = world.home.join("secret.txt");
    fs::write(&secret, "SECRET-CANARY").unwrap();
    let mut events = Vec::new();
    for name in ["ATTACH", "URL", "IMAGE;VALUE=URI", "CONFERENCE", "SOURCE", "TZURL", "ORGANIZER"] {
        for to in [
            format!("file://{}", secret.display()),
            secret.display().to_string(),
            "../secret.txt".to_owned(),
            format!("http://127.0.0.1:{port}/x"),
            format!("https://127.0.0.1:{port}/x"),
        ] {
            let id = events.len();
            events.push(format!("UID:u{id}\nDTSTART:20260301T000000Z\n{name}:{to}"));
        }
    }
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    world.put("one.ics", calendar(&events));
    let all = args! { "from": "2026-01-01", "to": "2026-12-31", "limit": 1_000 };
    let result = world.find(all);
    assert_eq!((seen(&result).len(), reasons(&result)), (events.len(), vec![]));
    assert!(!result.to_json().contains("SECRET-CANARY"));
    let asked = listener.accept().map_err(|error| error.kind());
    assert_eq!(asked.map(|_| ()), Err(std::io::ErrorKind::WouldBlock));
}
