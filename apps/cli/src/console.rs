//! `syscap console`: a page on loopback for the person who answers for agents.
//!
//! The page wishes, and this process decides: a stop is done at a click, everything else once the
//! person has pressed `y` at this terminal, below a line that is made here from the log's rows.

mod alone;
mod home;
mod overview;
mod person;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{env, thread};

use clap::Args;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use syscap_console::{Console as Page, Home, Options};

use self::alone::LogAlone;
use self::home::ServedHome;
use self::person::Person;
use crate::exit::{Ended, Failure, tell};
use crate::output::{Out, plain};
use crate::{lane, parse, terminal};

/// Show a page for approvals on loopback.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  syscap console home
  syscap console home --view

The address holds no secret: the code that is printed beside it is typed into the page. What the page
asks for is signed only after `y` at this terminal; a freeze is done at once. Over ssh use the same port
at both ends: --port N, and ssh -L N:localhost:N HOST.")]
pub(crate) struct Console {
    /// The home.
    home: PathBuf,
    /// Only look: the page can wish for nothing.
    #[arg(long)]
    view: bool,
    /// How long an unsealed approver's key, and an idle page, last: 15m, 1h at most.
    #[arg(long = "for", value_name = "DURATION", default_value = "15m", value_parser = life)]
    life: Duration,
    /// Once `p` is pressed at this terminal, so many approvals of one call each are given by a click alone
    /// within 10 minutes: at most 10, and none of what can't be undone, of code, of what an untrusted
    /// session sends outside, or of what needs more than one signature or a person of a level.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10))]
    by_page: Option<u32>,
    /// The port, on both loopback addresses. One that is free if absent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
}

fn life(text: &str) -> Result<Duration, String> {
    const MAX: Duration = Duration::from_secs(60 * 60);
    match parse::life(text) {
        Ok(life) if !life.is_zero() && life <= MAX => Ok(life),
        Ok(_) => Err("at most an hour, and not nothing".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl Console {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let wrong =
            |advice: &str| Failure::Usage { what: "console".to_owned(), advice: advice.to_owned() };
        if env::var_os(lane::VARIABLE).is_some() {
            return Err(wrong("is the person's own: it is not started inside a run"));
        }
        if !terminal::is_there() {
            return Err(wrong("needs a terminal: it shows the code there, and asks there"));
        }
        let (mut person, desk) = Person::new(&self.home, self.life, self.by_page.unwrap_or(0));
        let (home, view): (Arc<dyn Home>, bool) = match ServedHome::reach(&self.home, desk) {
            Ok(home) => (Arc::new(home), self.view),
            Err(failure) => match LogAlone::of(&self.home, &failure) {
                Some(alone) => {
                    tell(&format!("only the log can be read: {}", plain(&failure.to_string())));
                    (Arc::new(alone), true)
                }
                None => return Err(failure),
            },
        };
        // From here on no other program of the user reads a key that is unsealed in this one.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .map_err(|e| Failure::Stream(e.into()))?;
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        setrlimit(Resource::Core, none).map_err(|error| Failure::Stream(error.into()))?;
        let options = Options { port: self.port, view, idle: self.life };
        let port = self.port;
        let failed = |source| Failure::Port { port, source };
        let page = Page::open(options, home).map_err(failed)?;
        out.line(&page.address())?;
        if let (Some(port), true) = (page.port(), env::var_os("SSH_CONNECTION").is_some()) {
            out.line(&format!("from your own machine: ssh -L {port}:localhost:{port} THIS-HOST"))?;
        }
        out.flush()?;
        let codes = page.codes();
        let serving = thread::Builder::new().name("syscap-page".to_owned());
        let serving = serving.spawn(move || page.serve()).map_err(Failure::Stream)?;
        person.attend(&codes, || serving.is_finished())
    }
}
