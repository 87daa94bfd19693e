//! The screen, and the effect of keys on it. A call is approved only if all of it was on the screen
//! before the key was pressed.

use syscap::approvals::WaitingCall;
use syscap::format::{ApprovalAnswer, Seq, TEXT_BYTES_MAX, UnixMillis};

use super::super::shown::{arguments, standing, text, tool};
use super::keys::Key;
use crate::exit::Failure;
use crate::output::{Out, plain};
use crate::terminal::Size;

/// Rows around what is shown: a title, what was said, what can be pressed.
const AROUND: usize = 3;

/// Fewest columns in which anything is shown.
const COLUMNS_MIN: usize = 20;

/// The effect of a key.
pub(super) enum Pressed {
    Nothing,
    Quit,
    Answered(Answered),
}

/// An answer to these calls, each of which was shown.
pub(super) struct Answered {
    pub(super) asks: Vec<Seq>,
    pub(super) answer: ApprovalAnswer,
    pub(super) why: Option<String>,
}

/// The page shown.
enum Page {
    List,
    Whole(Whole),
    /// Why a call is refused, as far as it is typed.
    Why(Seq, String),
}

/// All of some calls.
struct Whole {
    asks: Vec<Seq>,
    lines: Vec<String>,
    /// The first row that is shown.
    from: usize,
    /// How many rows have been on the screen, from the first one on without a gap; all of them
    /// where it has ended. At so many columns: at others they are other rows.
    seen: usize,
    ended: bool,
    columns: usize,
}

/// The screen.
pub(super) struct View {
    calls: Vec<WaitingCall>,
    /// By its record: what comes or goes around it changes nothing.
    chosen: Option<Seq>,
    page: Page,
    said: String,
    begun: bool,
    /// How many rows fit.
    rows: usize,
}

impl View {
    pub(super) fn new() -> Self {
        let (calls, said, page) = (Vec::new(), String::new(), Page::List);
        Self { calls, chosen: None, page, said, begun: false, rows: 1 }
    }

    pub(super) fn say(&mut self, said: String) {
        self.said = said;
    }

    /// These wait now. If the chosen call has gone, none is chosen: a key that is pressed in that
    /// moment is for no other.
    pub(super) fn take<'a>(&mut self, calls: impl Iterator<Item = &'a WaitingCall>) {
        self.calls = calls.cloned().collect();
        if !self.begun {
            self.begun = true;
            self.chosen = self.calls.first().map(|call| call.ask);
        }
        let waits = |ask: &Seq| self.calls.iter().any(|call| call.ask == *ask);
        let gone = match &self.page {
            Page::List => false,
            Page::Whole(whole) => !whole.asks.iter().all(waits),
            Page::Why(ask, _) => !waits(ask),
        };
        let chosen = self.chosen.filter(waits);
        if gone {
            self.page = Page::List;
            if self.said.is_empty() {
                "it waits no more".clone_into(&mut self.said);
            }
        }
        self.chosen = chosen;
    }

    /// The screen, row by row.
    pub(super) fn frame(&mut self, size: Size, now: UnixMillis) -> Result<Vec<String>, Failure> {
        if size.rows <= AROUND || size.columns < COLUMNS_MIN {
            // What does not stay on the screen was not seen.
            return Ok(vec![fitted("make it larger", size.columns.max(1))]);
        }
        self.rows = size.rows.saturating_sub(AROUND);
        let (rows, columns) = (self.rows, size.columns);
        let (title, mut shown, help) = match &mut self.page {
            Page::List => self.list(rows, now),
            Page::Whole(whole) => whole.rows(rows, columns),
            Page::Why(ask, why) => {
                let shown = wrapped(&format!("because: {}", plain(why)), columns);
                let from = shown.len().saturating_sub(rows);
                let shown = shown.into_iter().skip(from).collect();
                let help = "Enter: deny   Esc: back".to_owned();
                (format!("deny {ask}, and tell the agent why"), shown, help)
            }
        };
        shown.truncate(rows);
        shown.resize(rows, String::new());
        let all = [vec![title], shown, vec![plain(&self.said).into_owned(), help]].concat();
        Ok(all.iter().map(|row| fitted(row, columns)).collect())
    }

    fn list(&self, rows: usize, now: UnixMillis) -> (String, Vec<String>, String) {
        let place = self.place().unwrap_or(0);
        let from = place.saturating_add(1).saturating_sub(rows);
        let row = |call: &WaitingCall| {
            let mark = if self.chosen == Some(call.ask) { '>' } else { ' ' };
            let left = left(call.expires.since(now));
            let (standing, args) = (standing(call), arguments(call));
            let row = format!(
                "{mark} {left}  {}  {standing}  {}  {}  {args}",
                call.ask,
                call.agent,
                tool(call)
            );
            plain(&row).into_owned()
        };
        let shown = self.calls.iter().skip(from).take(rows).map(row).collect();
        let title = format!("{} calls wait for a person", self.calls.len());
        let help = "j k: choose   Enter: show   a: approve   d: deny   A: all like it   q: leave";
        (title, shown, help.to_owned())
    }

    fn place(&self) -> Option<usize> {
        self.calls.iter().position(|call| Some(call.ask) == self.chosen)
    }

    pub(super) fn press(&mut self, key: Key) -> Result<Pressed, Failure> {
        self.said.clear();
        match &mut self.page {
            Page::List => self.in_list(key),
            Page::Whole(_) => Ok(self.in_whole(key)),
            Page::Why(ask, why) => {
                let ask = *ask;
                match key {
                    Key::Char(c) if why.len().saturating_add(c.len_utf8()) <= TEXT_BYTES_MAX => {
                        why.push(c);
                    }
                    Key::Erase => drop(why.pop()),
                    Key::Escape => self.page = Page::List,
                    Key::Enter => {
                        let why = Some(std::mem::take(why)).filter(|why| !why.is_empty());
                        self.page = Page::List;
                        let answer = ApprovalAnswer::Deny;
                        return Ok(Pressed::Answered(Answered { asks: vec![ask], answer, why }));
                    }
                    _ => {}
                }
                Ok(Pressed::Nothing)
            }
        }
    }

    fn in_list(&mut self, key: Key) -> Result<Pressed, Failure> {
        match (key, self.chosen) {
            (Key::Char('q'), _) => return Ok(Pressed::Quit),
            (Key::Char('j') | Key::Down, _) => self.step(|at| at.saturating_add(1)),
            (Key::Char('k') | Key::Up, _) => self.step(|at| at.saturating_sub(1)),
            (Key::Enter | Key::Char('a'), Some(ask)) => self.show(|call| call.ask == ask)?,
            (Key::Char('A'), Some(ask)) => {
                let like = self.calls.iter().find(|call| call.ask == ask);
                let like = like.map(|call| (call.agent.clone(), call.tool.clone()));
                self.show(|call| like == Some((call.agent.clone(), call.tool.clone())))?;
            }
            (Key::Char('d'), Some(ask)) => self.page = Page::Why(ask, String::new()),
            (Key::Enter | Key::Char('a' | 'A' | 'd'), None) => {
                "choose one first: j or k".clone_into(&mut self.said);
            }
            _ => {}
        }
        Ok(Pressed::Nothing)
    }

    fn step(&mut self, to: impl FnOnce(usize) -> usize) {
        let place = self.place().map_or(0, to);
        let last = self.calls.len().saturating_sub(1);
        self.chosen = self.calls.get(place.min(last)).map(|call| call.ask);
    }

    /// Shows all of these.
    fn show(&mut self, of: impl Fn(&WaitingCall) -> bool) -> Result<(), Failure> {
        let calls: Vec<&WaitingCall> = self.calls.iter().filter(|call| of(call)).collect();
        let mut lines = Vec::new();
        for call in &calls {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            lines.extend(Out::lines(|out| text(out, call))?);
        }
        let asks = calls.iter().map(|call| call.ask).collect();
        self.page = Page::Whole(Whole { asks, lines, from: 0, seen: 0, ended: false, columns: 0 });
        Ok(())
    }

    fn in_whole(&mut self, key: Key) -> Pressed {
        let rows = self.rows;
        let Page::Whole(whole) = &mut self.page else { return Pressed::Nothing };
        let one = match &whole.asks[..] {
            [ask] => Some(*ask),
            _ => None,
        };
        match (key, one) {
            (Key::Escape | Key::Char('q'), _) => self.page = Page::List,
            (Key::Char('j') | Key::Down, _) => {
                whole.from = whole.from.saturating_add(1);
            }
            (Key::Char(' ') | Key::PageDown, _) => {
                whole.from = whole.from.saturating_add(rows);
            }
            (Key::Char('k') | Key::Up, _) => whole.from = whole.from.saturating_sub(1),
            (Key::Char('b') | Key::PageUp, _) => whole.from = whole.from.saturating_sub(rows),
            (Key::Char('d'), Some(ask)) => self.page = Page::Why(ask, String::new()),
            (Key::Char('a'), Some(_)) | (Key::Char('A'), None) if whole.ended => {
                let (asks, why) = (std::mem::take(&mut whole.asks), None);
                self.page = Page::List;
                return Pressed::Answered(Answered { asks, answer: ApprovalAnswer::Once, why });
            }
            (Key::Char('a'), Some(_)) | (Key::Char('A'), None) => {
                "there is more of it: space goes on".clone_into(&mut self.said);
            }
            _ => {}
        }
        Pressed::Nothing
    }
}

impl Whole {
    fn rows(&mut self, rows: usize, columns: usize) -> (String, Vec<String>, String) {
        let all: Vec<String> = self.lines.iter().flat_map(|line| wrapped(line, columns)).collect();
        if self.columns != columns {
            (self.from, self.seen, self.ended, self.columns) = (0, 0, false, columns);
        }
        // However fast keys come: no row is passed over.
        self.from = self.from.min(all.len().saturating_sub(rows)).min(self.seen);
        self.seen = self.seen.max(self.from.saturating_add(rows));
        self.ended = self.seen >= all.len();
        // Two parts of a long text may look the same.
        let to = self.from.saturating_add(rows).min(all.len());
        let place = format!("rows {} to {to} of {}", self.from.saturating_add(1), all.len());
        let (title, again) = match self.asks.len() {
            1 => ("all of one call".to_owned(), "a: approve it once   d: deny it"),
            count => (format!("all of {count} like calls"), "A: approve each of them once"),
        };
        let help = match self.ended {
            true => format!("{again}   Esc: back"),
            false => "space: there is more of it   Esc: back".to_owned(),
        };
        (format!("{title}, {place}"), all.into_iter().skip(self.from).take(rows).collect(), help)
    }
}

/// How long still: hours, minutes, seconds.
fn left(ms: u64) -> String {
    let seconds = ms.div_ceil(1_000);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}", seconds % 60)
}

/// How many columns a character takes at most.
const fn cells(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

/// A line as rows, none of which a terminal breaks by itself.
fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let (mut rows, mut row, mut taken) = (Vec::new(), String::new(), 0_usize);
    for c in line.chars() {
        if taken.saturating_add(cells(c)) > columns && !row.is_empty() {
            rows.push(std::mem::take(&mut row));
            taken = 0;
        }
        row.push(c);
        taken = taken.saturating_add(cells(c));
    }
    rows.push(row);
    rows
}

/// As much of a line as fits in a row.
fn fitted(line: &str, columns: usize) -> String {
    wrapped(line, columns).swap_remove(0)
}
