//! The same rules, expanded by `recurring-ical-events` and `python-dateutil`, which share no code
//! with ours. Where they are not installed (`scripts/clients`), that is said.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use syscap::prelude::*;

use crate::calendar_tools::world::{Seen, World, calendar, seen, skipped, world};

const ORACLE: &str = r"
import datetime, json, pathlib, sys, zoneinfo
import icalendar, recurring_ical_events
from dateutil.rrule import rrulestr

def utc(t):
    if not isinstance(t, datetime.datetime): t = datetime.datetime(t.year, t.month, t.day)
    if t.tzinfo is None: t = t.replace(tzinfo=datetime.timezone.utc)
    return t.astimezone(datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')

def is_counted_from_elsewhere(cal):
    # Where the start does not fit the rule, dateutil does not count it, as RFC 5545 would have it.
    for event in cal.walk('VEVENT'):
        rule = event.get('RRULE')
        if rule is not None and 'COUNT' in rule:
            start = event['DTSTART'].dt
            if not isinstance(start, datetime.datetime):
                start = datetime.datetime(start.year, start.month, start.day)
            start = start.replace(tzinfo=None)
            first = next(iter(rrulestr(rule.to_ical().decode(), dtstart=start)), None)
            if first != start: return True
    return False

def stretches(start, end):
    # An end is told by DTEND to the second (RFC 5545); this library adds by the clock.
    offset = getattr(start, 'utcoffset', lambda: None)
    return offset() != getattr(end, 'utcoffset', lambda: None)()

out = {}
low, high = (datetime.datetime.fromisoformat(x) for x in sys.argv[2:4])
for path in sorted(pathlib.Path(sys.argv[1]).glob('*.ics')):
    cal = icalendar.Calendar.from_ical(path.read_bytes())
    if is_counted_from_elsewhere(cal): continue
    found = set()
    for event in recurring_ical_events.of(cal).between(low, high):
        start, end = event['DTSTART'].dt, event['DTEND'].dt
        found.add((utc(start), '' if stretches(start, end) else utc(end)))
    out[path.name] = sorted(found)
json.dump(out, sys.stdout)
";

/// Most occurrences of one answer.
const LIMIT: usize = 1_000;

/// The Python in which `scripts/clients` puts what it installs, or any that has the library.
fn python() -> Option<PathBuf> {
    let near = || Some(Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("clients"));
    let cache = std::env::var_os("SYSCAP_CLIENTS").map(PathBuf::from).or_else(near)?;
    let known = [cache.join("venv/bin/python"), PathBuf::from("python3")];
    known.into_iter().find(|python| {
        let mut command = Command::new(python);
        let output = command.args(["-c", "import recurring_ical_events"]).output();
        output.is_ok_and(|output| output.status.success())
    })
}

/// Our occurrences of a file, as instants.
fn ours(world: &World, name: &str, (from, to): (&str, &str)) -> Vec<(String, String)> {
    let path = format!("calendar/{name}");
    let result = world.find(args! { "from": from, "to": to, "path": path, "limit": LIMIT as u64 });
    assert_eq!(skipped(&result), [""; 0], "{name}");
    let mut found: Vec<_> =
        seen(&result).iter().map(|Seen { start, end, .. }| (utc(start), utc(end))).collect();
    found.sort();
    found.dedup();
    found
}

/// `2026-03-01`, `2026-03-01T09:00:00` and `2026-03-01T09:00:00+01:00` as `...Z`.
fn utc(text: &str) -> String {
    match text.len() {
        10 => format!("{text}T00:00:00Z"),
        19 => format!("{text}Z"),
        _ => text.parse::<jiff::Timestamp>().unwrap().to_string(),
    }
}

fn compare(world: &World, range: (&str, &str)) -> usize {
    let folder = world.workspace().join("calendar");
    let Some(python) = python() else {
        println!("skipped: recurring-ical-events is not installed; run scripts/clients");
        return usize::MAX;
    };
    let mut command = Command::new(python);
    command.args(["-c", ORACLE]).arg(&folder).args([range.0, range.1]);
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let theirs: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let theirs = theirs.as_object().unwrap();
    for (name, found) in theirs {
        let ours = ours(world, name, range);
        let mut ends: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for one in found.as_array().unwrap() {
            let [start, end] = [&one[0], &one[1]].map(|time| time.as_str().unwrap());
            ends.entry(start).or_default().insert(end);
        }
        // No more are given at once.
        let starts: Vec<&str> = ends.keys().copied().take(LIMIT).collect();
        let has_end = |(start, end): &(String, String)| {
            // What the library says no end of is told by its start.
            ends.get(&**start).is_some_and(|ends| ends.contains("") || ends.contains(&**end))
        };
        let only_ours: Vec<_> = ours.iter().filter(|one| !has_end(one)).take(3).collect();
        let ours: Vec<&str> = ours.iter().map(|(start, _)| start.as_str()).collect();
        let only_theirs: Vec<_> = starts.iter().filter(|one| !ours.contains(one)).take(3).collect();
        if !only_ours.is_empty() || ours != starts {
            let file = fs::read_to_string(folder.join(name)).unwrap();
            panic!("{name}\n{file}only ours: {only_ours:?}\nonly theirs: {only_theirs:?}");
        }
    }
    theirs.len()
}

/// Numbers that are the same in every run (a linear congruential generator).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % sides
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[usize::try_from(self.roll(of.len() as u64)).unwrap()]
    }

    /// Some of them, joined by commas.
    fn some(&mut self, of: &[&str]) -> String {
        let count = 1 + self.roll(3);
        let mut picked: Vec<&str> = (0..count).map(|_| self.one(of)).collect();
        picked.sort_unstable();
        picked.dedup();
        picked.join(",")
    }
}

const DAYS: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
const NTH: [&str; 8] = ["1MO", "2TU", "-1FR", "-2SU", "3WE", "5TH", "4SA", "-4MO"];
const MONTHS: [&str; 6] = ["1", "2", "3", "7", "10", "12"];
const MONTH_DAYS: [&str; 8] = ["1", "5", "13", "15", "28", "31", "-1", "-3"];

fn rule(dice: &mut Dice, is_day: bool) -> String {
    let all = ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY"];
    let every = dice.one(if is_day { &all[..4] } else { &all[..] });
    let mut rule = format!("FREQ={every}");
    let mut part = |name: &str, value: String| rule.push_str(&format!(";{name}={value}"));
    if dice.roll(2) == 0 {
        let most = if every == "HOURLY" { 30 } else { 4 };
        part("INTERVAL", (1 + dice.roll(most)).to_string());
    }
    let is_wide = matches!(every, "YEARLY" | "MONTHLY");
    let mut has_days = false;
    match dice.roll(4) {
        0 if is_wide => part("BYDAY", dice.some(&NTH)),
        0 | 1 => part("BYDAY", dice.some(&DAYS)),
        2 if every != "WEEKLY" => part("BYMONTHDAY", dice.some(&MONTH_DAYS)),
        _ => has_days = true,
    }
    if dice.roll(3) == 0 {
        part("BYMONTH", dice.some(&MONTHS));
    }
    if !has_days && is_wide && dice.roll(3) == 0 {
        part("BYSETPOS", dice.some(&["1", "2", "-1", "3", "-2"]));
    }
    if !is_day && every != "HOURLY" && dice.roll(5) == 0 {
        part("BYHOUR", dice.some(&["8", "12", "17"]));
        if dice.roll(2) == 0 {
            part("BYMINUTE", dice.some(&["0", "15", "45"]));
        }
    }
    if every == "WEEKLY" && dice.roll(2) == 0 {
        part("WKST", dice.one(&DAYS).to_owned());
    }
    match dice.roll(4) {
        0 => part("COUNT", (1 + dice.roll(40)).to_string()),
        1 if is_day => part("UNTIL", format!("2026{:02}15", 1 + dice.roll(12))),
        1 => part("UNTIL", format!("2026{:02}15T120000Z", 1 + dice.roll(12))),
        _ => {}
    }
    rule
}

fn event(dice: &mut Dice, number: usize) -> String {
    let zones = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"];
    let day = format!("{}{:02}{:02}", 2019 + dice.roll(8), 1 + dice.roll(12), 1 + dice.roll(28));
    let time = format!("T{:02}{:02}00", dice.roll(22), dice.one(&["00", "30", "45"]));
    let (kind, start, length) = match dice.roll(7) {
        0 => (";VALUE=DATE".to_owned(), day, dice.one(&["P1D", "P3D", "P1W"])),
        1 => (String::new(), format!("{day}{time}Z"), dice.one(&["PT1H", "PT0S", "P1DT2H"])),
        _ => {
            let zone = format!(";TZID={}", dice.one(&zones));
            (zone, format!("{day}{time}"), dice.one(&["PT1H", "PT30M", "P1D"]))
        }
    };
    let rule = rule(dice, kind.contains("DATE"));
    format!("UID:u{number}\r\nDTSTART{kind}:{start}\r\nDURATION:{length}\r\nRRULE:{rule}")
}

#[test]
fn rules_expand_as_another_library_has_them() {
    let world = world();
    let mut dice = Dice(12);
    for number in 0..400 {
        let event = event(&mut dice, number);
        world.put(&format!("u{number:03}.ics"), calendar(&[&event]));
    }
    let compared = compare(&world, ("2026-02-01T00:00:00Z", "2026-11-15T00:00:00Z"));
    assert!(compared >= 300, "{compared}");
}

/// What our own tests have as fixed cases, and others of their kind.
#[test]
fn fixed_cases_are_what_another_library_has() {
    let world = world();
    let berlin = "UID:u\nDTSTART;TZID=Europe/Berlin:20260302T090000\nDURATION:PT1H\n\
        RRULE:FREQ=DAILY;COUNT=40";
    let two = |other: &str| vec![other.to_owned(), berlin.to_owned()];
    let with = |line: &str| vec![format!("{berlin}\n{line}")];
    let instead = |id: &str, start: &str| {
        two(&format!("UID:u\nRECURRENCE-ID{id}\nDTSTART:{start}\nDURATION:PT1H"))
    };
    let start = "DTSTART;TZID=Europe/Berlin:20260327T023000\nDURATION:PT1H\nRRULE:FREQ=DAILY";
    let cases = [
        vec![berlin.to_owned()],
        with("EXDATE:20260303T080000Z"),
        // That library also takes out what the clocks show at such a time in another zone.
        with("EXDATE:20260303T110000Z,20260304T080000Z"),
        with("EXDATE;TZID=Europe/Berlin:20260303T090000\nEXDATE;TZID=Asia/Tokyo:20260304T170000"),
        with("EXDATE;VALUE=DATE:20260303"),
        with("RDATE:20260305T080000Z,20260605T080000Z"),
        with("RDATE;TZID=Asia/Tokyo:20260605T080000\nEXDATE:20260604T230000Z"),
        instead(":20260303T080000Z", "20260307T120000Z"),
        instead(":20260303T080000Z", "20270307T120000Z"),
        instead(";TZID=Europe/Berlin:20260303T090000", "20260307T120000Z"),
        instead(":20260503T080000Z", "20260507T120000Z"),
        vec![format!("UID:u\n{start};COUNT=4")],
        vec!["UID:u\nDTSTART;VALUE=DATE:20240229\nRRULE:FREQ=YEARLY".to_owned()],
        vec!["UID:u\nDTSTART;VALUE=DATE:20260131\nRRULE:FREQ=MONTHLY".to_owned()],
        vec!["UID:u\nDTSTART;VALUE=DATE:20260303\nDTEND;VALUE=DATE:20260305".to_owned()],
        vec![
            "UID:u\nDTSTART;VALUE=DATE:20260302\nEXDATE;VALUE=DATE:20260304\n\
              RRULE:FREQ=DAILY;COUNT=4"
                .to_owned(),
        ],
        vec!["UID:u\nDTSTART:20260304T073000\nDURATION:PT15M\nRRULE:FREQ=WEEKLY".to_owned()],
        vec!["UID:u\nDTSTART:20260304T073000Z\nRRULE:FREQ=DAILY;UNTIL=20260305T073000Z".to_owned()],
        // The example of RFC 5545 in which the first day of a week makes a difference.
        vec![
            "UID:u\nDTSTART;TZID=America/New_York:19970805T090000\nDURATION:PT1H\n\
              RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU"
                .to_owned(),
        ],
        vec![
            "UID:u\nDTSTART;TZID=America/New_York:19961105T090000\nDURATION:PT1H\n\
              RRULE:FREQ=YEARLY;INTERVAL=2;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8"
                .to_owned(),
        ],
    ];
    for (number, events) in cases.iter().enumerate() {
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        world.put(&format!("c{number:02}.ics"), calendar(&events));
    }
    let compared = compare(&world, ("2026-02-01T00:00:00Z", "2026-11-15T00:00:00Z"));
    assert!(compared >= cases.len(), "{compared}");
}
