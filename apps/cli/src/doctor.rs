//! `syscap doctor`: whether machine and home are fit for work.

mod holder;
mod home;
mod keys;
mod machine;

use std::path::PathBuf;

use clap::Args;

use crate::{
    Ended,
    exit::{Exit, Failure},
    output::{Object, Out},
};

/// What to look at besides the machine.
#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// A home. It is only read, also beside the process that holds it.
    home: Option<PathBuf>,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
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
struct Findings<'a> {
    out: &'a mut Out,
    bad: u32,
}

impl Findings<'_> {
    fn add(&mut self, level: Level, what: &str, text: &str) -> Result<(), Failure> {
        self.add_with(level, what, text, |json| json)
    }

    /// The same, with more for machines.
    fn add_with(
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

    fn fine(&mut self, what: &str, text: &str) -> Result<(), Failure> {
        self.add(Level::Fine, what, text)
    }

    fn note(&mut self, what: &str, text: &str) -> Result<(), Failure> {
        self.add(Level::Note, what, text)
    }

    fn bad(&mut self, what: &str, text: &str) -> Result<(), Failure> {
        self.add(Level::Bad, what, text)
    }
}

impl Doctor {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let mut findings = Findings { out, bad: 0 };
        machine::look(&mut findings)?;
        if let Some(folder) = &self.home {
            home::look(&mut findings, folder)?;
        }
        Ok(if findings.bad == 0 { Exit::Done } else { Exit::Failed })
    }
}
