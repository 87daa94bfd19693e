//! What was found, said as it comes.

use crate::{
    exit::Failure,
    output::{Object, Out},
};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// As it should be.
    Fine,
    /// To be known; work goes on.
    Note,
    /// Work stops, or should.
    Bad,
}

impl Level {
    const fn name(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Note => "note",
            Self::Bad => "bad",
        }
    }
}

/// The findings as they come.
pub(super) struct Findings<'a> {
    pub(super) out: &'a mut Out,
    pub(super) bad: u32,
}

impl Findings<'_> {
    pub(super) fn add(&mut self, level: Level, what: &str, text: &str) -> Result<(), Failure> {
        self.add_with(level, what, text, |json| json)
    }

    /// The same, with more for machines.
    pub(super) fn add_with(
        &mut self,
        level: Level,
        what: &str,
        text: &str,
        more: impl FnOnce(Object) -> Object,
    ) -> Result<(), Failure> {
        self.bad = self.bad.saturating_add(u32::from(level == Level::Bad));
        let json = Object::new().text("level", level.name()).text("what", what).text("says", text);
        self.out.both(&format!("{:<4}  {what:<12} {text}", level.name()), more(json))
    }

    pub(super) fn fine(&mut self, what: &str, text: &str) -> Result<(), Failure> {
        self.add(Level::Fine, what, text)
    }

    pub(super) fn note(&mut self, what: &str, text: &str) -> Result<(), Failure> {
        self.add(Level::Note, what, text)
    }

    pub(super) fn bad(&mut self, what: &str, text: &str) -> Result<(), Failure> {
        self.add(Level::Bad, what, text)
    }
}
