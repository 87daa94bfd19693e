//! `syscap top`: what runs, what is used, what is refused.

mod asks;
mod json;
mod look;
mod text;

use std::io::{IsTerminal as _, stdout};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;

use self::look::Looker;
use crate::exit::{Ended, Exit};
use crate::output::{Form, Out};
use crate::parse;

/// Most rows of a kind where the screen is drawn again and again.
const ROWS: usize = 15;

/// Which home, and how often.
#[derive(Args, Debug)]
#[command(after_long_help = "\
What the process that holds the home knows is shown: what runs, and what was counted since it
opened the home. Where nobody holds it, or its holder serves nobody, that is said, and shown is
what the log has of the last run. There are no colours; a terminal's screen is cleared each time.
Budgets are shown as used, +held for calls that run, of the limit; dimensions of which nothing was
used are left out. A label is what a session has been given: untrusted, once it was a stranger's
word.")]
pub(crate) struct Top {
    /// The home.
    home: PathBuf,
    /// Show it once, with all rows, and end.
    #[arg(long)]
    once: bool,
    /// How long to wait between two looks: 1s, 1m.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse::life)]
    interval: Duration,
}

impl Top {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let mut looker = Looker::new(&self.home);
        let clears = !self.once && out.form() == Form::Text && clears();
        let rows = if self.once { usize::MAX } else { ROWS };
        loop {
            let seen = looker.look()?;
            if clears {
                out.clear()?;
            }
            match out.form() {
                Form::Text => text::print(out, &seen, rows)?,
                Form::Json => out.line(&json::print(&seen))?,
            }
            out.flush()?;
            if self.once {
                return Ok(Exit::Done);
            }
            thread::sleep(self.interval);
            if !clears {
                out.text("")?;
            }
        }
    }
}

/// True if the output is a terminal that can clear its screen.
fn clears() -> bool {
    stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != *"dumb")
}
