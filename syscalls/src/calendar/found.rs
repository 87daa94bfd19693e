//! The result of a search: the first occurrences of all, and the parts left out.

use std::{collections::BinaryHeap, rc::Rc};

use jiff::{Timestamp, tz::TimeZone};
use syscap_format::{Canonical, Label, MapBuilder};

use super::event::Event;
use super::lines::unescaped;
use super::moment::Clock;
use super::series::{Times, Window};
use super::skip::Skip;

/// The shown length of a summary or place, and of a description, in bytes.
const TEXT_BYTES_MAX: usize = 512;
const DESCRIPTION_BYTES_MAX: usize = 2_000;
/// The shown length of a name of an event or a file, in bytes.
const NAME_BYTES_MAX: usize = 512;
/// How much of what was left out is told one by one.
const SKIPPED_MAX: usize = 50;
/// Most bytes of a result that are neither occurrences nor what was left out.
const FRAME_BYTES: usize = 256;

/// An event as it is shown.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Shown {
    uid: String,
    file: String,
    summary: String,
    location: String,
    description: String,
    status: String,
    is_day: bool,
    /// True if its times are those of a zone; the zone's name.
    is_in_zone: bool,
    zone: String,
    is_cut: bool,
}

/// The occurrences that come first, as many as were asked for, and counts of all.
pub(super) struct Found {
    first: BinaryHeap<(Times, Rc<Shown>)>,
    limit: usize,
    /// In small letters, what the texts of an event must have.
    text: Option<String>,
    skipped: Vec<Canonical>,
    skipped_count: u64,
    pub(super) files: u64,
    pub(super) is_cut: bool,
    /// The label of all files that were read: absence is information, too.
    pub(super) label: Label,
}

impl Found {
    pub(super) fn new(limit: usize, text: Option<String>) -> Self {
        Self {
            first: BinaryHeap::new(),
            limit,
            text,
            skipped: Vec::new(),
            skipped_count: 0,
            files: 0,
            is_cut: false,
            label: Label::PUBLIC,
        }
    }

    pub(super) fn skip(&mut self, file: &str, uid: Option<&str>, why: Skip) {
        self.skipped_count = self.skipped_count.saturating_add(1);
        if self.skipped.len() < SKIPPED_MAX {
            let map = MapBuilder::new()
                .text("file", start_of(file, NAME_BYTES_MAX))
                .text("reason", why.name());
            let map = match uid {
                Some(uid) => map.text("uid", start_of(uid, NAME_BYTES_MAX)),
                None => map,
            };
            self.skipped.push(map.finish());
        }
    }

    /// Adds the occurrences of one event, where it has the text that is asked for.
    pub(super) fn add(&mut self, file: &str, uid: &str, event: &Event<'_>, times: &[Times]) {
        let shown = Shown::of(file, uid, event);
        let has = |text: &String| {
            let all = [event.summary, event.location, event.description];
            all.into_iter().any(|own| unescaped(own).to_lowercase().contains(text.as_str()))
        };
        if !self.text.as_ref().is_none_or(has) {
            return;
        }
        let shown = Rc::new(shown);
        for one in times {
            self.first.push((*one, Rc::clone(&shown)));
            if self.first.len() > self.limit {
                self.first.pop();
                self.is_cut = true;
            }
        }
    }

    /// `{events, files, from, skipped, skipped_count, to, truncated}`.
    pub(super) fn result(self, window: &Window, bytes_max: usize) -> Canonical {
        let bytes_max = bytes_max.saturating_sub(FRAME_BYTES);
        // What was left out has its share, however much was found.
        let (skipped, room) = fitting(self.skipped.into_iter(), bytes_max / 4);
        let all = self.first.into_sorted_vec();
        let count = all.len();
        let entries = all.into_iter().map(|(times, shown)| shown.at(&times));
        let room = bytes_max.saturating_sub(bytes_max / 4).saturating_add(room);
        let (events, _) = fitting(entries, room);
        let is_cut = self.is_cut || events.len() < count;
        MapBuilder::new()
            .item("events", Canonical::list(events.into_iter()).item())
            .uint("files", self.files)
            .text("from", &written(window.from, &window.here))
            .item("skipped", Canonical::list(skipped.into_iter()).item())
            .uint("skipped_count", self.skipped_count)
            .text("to", &written(window.to, &window.here))
            .boolean("truncated", is_cut)
            .finish()
    }
}

/// As many as there is room for, and the room that is left.
fn fitting(all: impl Iterator<Item = Canonical>, mut room: usize) -> (Vec<Canonical>, usize) {
    let mut taken = Vec::new();
    for one in all {
        match room.checked_sub(one.as_bytes().len()) {
            Some(left) => room = left,
            None => break,
        }
        taken.push(one);
    }
    (taken, room)
}

/// The start of a text, cut between two letters.
fn start_of(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}

impl Shown {
    fn of(file: &str, uid: &str, event: &Event<'_>) -> Self {
        let mut is_cut = false;
        let mut part = |value: &str, bytes_max: usize| {
            let whole = unescaped(value);
            let part = start_of(&whole, bytes_max);
            is_cut |= part.len() < whole.len();
            part.to_owned()
        };
        Self {
            uid: start_of(uid, NAME_BYTES_MAX).to_owned(),
            file: start_of(file, NAME_BYTES_MAX).to_owned(),
            summary: part(event.summary, TEXT_BYTES_MAX),
            location: part(event.location, TEXT_BYTES_MAX),
            description: part(event.description, DESCRIPTION_BYTES_MAX),
            status: part(event.status, TEXT_BYTES_MAX),
            is_day: event.start.clock.is_day(),
            is_in_zone: matches!(event.start.clock, Clock::Zone(_)),
            zone: match &event.start.clock {
                Clock::Zone(zone) => zone.iana_name().unwrap_or_default().to_owned(),
                Clock::Day | Clock::Floating => String::new(),
            },
            is_cut,
        }
    }

    /// `{uid, start, end, all_day, file, summary}`, and what there is of the rest. A day ends
    /// with the first day that is not in it.
    fn at(&self, times: &Times) -> Canonical {
        let show = |at: Timestamp, local: jiff::civil::DateTime| {
            if self.is_day {
                return local.date().to_string();
            }
            if self.is_in_zone { shown_with(at, local) } else { local.to_string() }
        };
        let map = MapBuilder::new()
            .boolean("all_day", self.is_day)
            .text("end", &show(times.end, times.local_end))
            .text("file", &self.file)
            .text("start", &show(times.start, times.local_start))
            .text("summary", &self.summary)
            .text("uid", &self.uid);
        let others = [
            ("description", &self.description),
            ("location", &self.location),
            ("status", &self.status),
            ("zone", &self.zone),
        ];
        let map = others
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .fold(map, |map, (name, text)| map.text(name, text));
        if self.is_cut { map.boolean("cut", true).finish() } else { map.finish() }
    }
}

/// An instant as a zone's clocks show it, with their offset.
fn written(at: Timestamp, zone: &TimeZone) -> String {
    shown_with(at, zone.to_datetime(at))
}

/// The offset is what lies between the instant and the local time.
fn shown_with(at: Timestamp, local: jiff::civil::DateTime) -> String {
    let seconds = local.duration_since(TimeZone::UTC.to_datetime(at)).as_secs();
    let sign = if seconds < 0 { '-' } else { '+' };
    let (hours, minutes) = (seconds.unsigned_abs() / 3_600, seconds.unsigned_abs() / 60 % 60);
    match seconds {
        0 => format!("{local}Z"),
        _ => format!("{local}{sign}{hours:02}:{minutes:02}"),
    }
}
