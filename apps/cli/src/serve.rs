//! `syscap serve`: serves a home to others.

pub(crate) mod log;
mod own;

use std::fs::File;
use std::io::{Write as _, stdout};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use syscap::secrets::SecretFiles;
use syscap::{Error, Home, Operator, Options, Runtime, Serving, Until};

use crate::exit::{Ended, Exit, Failure, diagnose, tell};
use crate::{parse, recording, runtime};

/// How often it is looked whether the kernel goes on.
const TICK: Duration = Duration::from_millis(250);
/// How long one that a client has started stays where only commands and hooks come.
const IDLE: Duration = Duration::from_mins(10);
/// What one that a client has started says once it serves.
pub(crate) const READY: &str = "ready";

/// The home to serve, and the time.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Every command works without this: `mcp`, `run`, `call` and `hook` start a server where there is none,
and it ends with the last of them. This one is for a home that is served all the time, by systemd or
in a container. It says `serving HOME` on standard error when it is ready, and ends with SIGTERM or
SIGINT, or with `syscap serve HOME --stop`: what runs is waited for and then given up, each for some
seconds, and the log ends properly.

Put no copy over a home that is served, and don't move it: it halts where its files are replaced or
gone, and a copy that is written into home.db itself damages the log. Stop it first.")]
pub(crate) struct Serve {
    /// The home.
    home: PathBuf,
    /// End when for so long no process was attached and no call was made: 90s, 15m, 1h.
    #[arg(long, value_name = "DURATION", value_parser = parse::life)]
    idle: Option<Duration>,
    /// Where the base is another home's, keep this home's agents in folders of their own there.
    #[arg(long, conflicts_with = "take_base")]
    shared_base: bool,
    /// Take the base of a home that is gone, with what its agents left there.
    #[arg(long)]
    take_base: bool,
    /// Refuse at once each call that the policy asks a person about, whoever makes it: nobody is there.
    #[arg(long)]
    headless: bool,
    /// End the process that serves the home, whatever version it is of.
    #[arg(long, conflicts_with_all = ["idle", "shared_base", "take_base", "headless"])]
    stop: bool,
    /// A client has started it, and reads on standard output whether it is ready.
    #[arg(long, hide = true)]
    started: bool,
}

impl Serve {
    pub(crate) fn run(self) -> Ended {
        if self.stop {
            return self.stop();
        }
        if !self.started {
            return self.serve();
        }
        own::become_one();
        let served = self.serve();
        if let Err(why) = &served {
            // Whoever started it waits for a word; what comes later stands in the log alone.
            drop(writeln!(stdout(), "{why}"));
        }
        served
    }

    fn stop(&self) -> Ended {
        let home = self.home.display();
        match runtime::noticed(&self.home, || Operator::connect(&self.home)) {
            Ok(operator) => {
                let ended = operator.shutdown()?;
                tell(&format!("{home} is served no longer (record {ended})"));
            }
            Err(Error::NoServer { .. }) => tell(&format!("no process serves {home}")),
            Err(error) => return Err(Failure::home(&self.home)(error)),
        }
        Ok(Exit::Done)
    }

    /// What the owner has said of servers holds for one that a client starts.
    fn options(&self) -> Result<Options, Error> {
        let said = if self.started { Home::at(&self.home).serving()? } else { Serving::default() };
        let options = Options::new().serve_until(match (self.started, self.idle) {
            (true, _) => Until::LastOut(said.idle.unwrap_or(IDLE)),
            (false, Some(idle)) => Until::Idle(idle),
            (false, None) => Until::Told,
        });
        let options = if self.headless || said.headless { options.headless() } else { options };
        Ok(match (self.shared_base, self.take_base) {
            (true, _) => options.shared_base(),
            (_, true) => options.take_base(),
            _ => options,
        })
    }

    fn serve(self) -> Ended {
        // Before the home is opened: what is opened must be closed.
        let signalled = signals()?;
        let open = || self.options()?.open_unless_served(&self.home);
        let Some(access) = runtime::reached(&self.home, open)? else {
            // Another that was started was quicker.
            return if self.started { Ok(Exit::Done) } else { Err(Failure::Held(self.home)) };
        };
        runtime::finish(access, |access| {
            recording::warn_of_recording(access)?;
            if access.home().base_is_unclaimed()? {
                let base = access.home().base()?;
                diagnose(&format!(
                    "warning: no claim can be made on the base {}: its agents' folders are only read",
                    base.display()
                ));
            }
            if let Err(error) = SecretFiles::of(access.home()).keep_form() {
                diagnose(&format!("warning: the key of secrets is in the form of before: {error}"));
            }
            tell(&format!("serving {}", self.home.display()));
            if self.started {
                say_ready()?;
            }
            let waited = self.wait(access, &signalled);
            // Where an operator has shut it down, that is how it was to end.
            if access.is_holder() {
                waited?;
            }
            Ok(Exit::Done)
        })
    }

    /// Until a signal comes, nobody uses the home any more, it is shut down, or the kernel stops.
    fn wait(&self, access: &Runtime, signalled: &Receiver<()>) -> Result<(), Failure> {
        let place = own::Place::of(&self.home)?;
        loop {
            match signalled.try_recv() {
                Err(TryRecvError::Empty) if access.is_holder() => {}
                _ => return Ok(()),
            }
            if access.wait_unused(TICK)? {
                return Ok(());
            }
            access.tick()?;
            place.check()?;
            if self.started {
                own::look(&self.home)?;
            }
        }
    }
}

/// Says that it serves, to whoever started it; nothing more is said there.
fn say_ready() -> Result<(), Failure> {
    let nowhere = File::options().write(true).open("/dev/null").map_err(Failure::Stream)?;
    let mut said = stdout();
    // Whoever started it may have gone.
    drop(writeln!(said, "{READY}").and_then(|()| said.flush()));
    rustix::stdio::dup2_stdout(nowhere).map_err(|error| Failure::Stream(error.into()))
}

/// Hears of the first signal that is to end the process. Others after it change nothing: the end
/// takes a bounded time.
fn signals() -> Result<Receiver<()>, Failure> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(Failure::Stream)?;
    let (said, signalled) = channel();
    let hear = move || {
        if signals.forever().next().is_some() {
            // Nobody waits any more where the process ends by itself.
            said.send(()).unwrap_or(());
        }
    };
    let heard = thread::Builder::new().name("syscap-signals".to_owned()).spawn(hear);
    heard.map_err(Failure::Stream)?;
    Ok(signalled)
}
