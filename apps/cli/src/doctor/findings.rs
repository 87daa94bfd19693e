//! The findings, and the verdict that a person reads first.

use crate::exit::Failure;
use crate::output::{Form, Object, Out};

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

/// The findings. Programs get each as it comes, people the verdict before them.
pub(super) struct Findings<'a> {
    out: &'a mut Out,
    found: Vec<(Level, String)>,
}

impl<'a> Findings<'a> {
    pub(super) const fn new(out: &'a mut Out) -> Self {
        Self { out, found: Vec::new() }
    }

    /// Prints the verdict and the problems, and all other findings where `all` is set. Answers
    /// whether there is no problem.
    pub(super) fn end(self, all: bool) -> Result<bool, Failure> {
        let count = |level| self.found.iter().filter(|(found, _)| *found == level).count();
        let (bad, notes, fine) = (count(Level::Bad), count(Level::Note), count(Level::Fine));
        let verdict = match bad {
            0 => "all is well".to_owned(),
            1 => "1 problem".to_owned(),
            bad => format!("{bad} problems"),
        };
        let more = if all { "" } else { "; --all shows them" };
        self.out.text(&format!("{verdict} ({fine} checks passed, {notes} notes{more})"))?;
        for (level, line) in &self.found {
            if all || *level == Level::Bad {
                self.out.text(line)?;
            }
        }
        Ok(bad == 0)
    }

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
        self.found.push((level, format!("{:<4}  {what:<12} {text}", level.name())));
        let json = Object::new().text("level", level.name()).text("what", what).text("says", text);
        match self.out.form() {
            Form::Json => self.out.line(&more(json).finish()),
            Form::Text => Ok(()),
        }
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
