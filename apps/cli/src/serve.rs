//! `syscap serve`: holds a home for others.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use syscap::secrets::SecretFiles;
use syscap::{Runtime, view::View};

use crate::exit::{Ended, Exit, Failure, diagnose, tell};
use crate::{parse, recording, runtime};

/// How often it is looked whether the kernel goes on and somebody is there.
const LOOK: Duration = Duration::from_millis(250);

/// The home to serve, and the time.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Every command works without this: whoever needs the home first holds it, and serves it where it
stays. This one is for a home that is to be held by nobody who comes and goes. It says `serving
HOME` on standard error when it is ready, and ends with SIGTERM or SIGINT, or where an operator
shuts the home down by its socket: what runs is waited for and then given up, each for some seconds,
and the log ends properly.

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
    #[command(flatten)]
    people: runtime::People,
}

impl Serve {
    pub(crate) fn run(self) -> Ended {
        // Before the home is opened: what is opened must be closed.
        let signalled = signals()?;
        let options = || match (self.shared_base, self.take_base) {
            (true, _) => self.people.options().shared_base(),
            (_, true) => self.people.options().take_base(),
            _ => self.people.options(),
        };
        let access = runtime::reached(&self.home, || options().share(&self.home))?;
        if !access.is_holder() {
            return Err(Failure::Held(self.home));
        }
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
            let waited = self.wait(access, &signalled);
            // Where an operator has shut it down, that is how it was to end.
            if access.is_holder() {
                waited?;
            }
            Ok(Exit::Done)
        })
    }

    /// Until a signal comes, nobody is there for so long, the home is shut down, or the kernel
    /// stops.
    fn wait(&self, access: &Runtime, signalled: &Receiver<()>) -> Result<(), Failure> {
        let (mut seen, mut since) = (Seen::default(), Instant::now());
        loop {
            match signalled.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Timeout) if access.is_holder() => access.tick()?,
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            let Some(idle) = self.idle else { continue };
            let view = access.view()?;
            let now = Seen::of(&view);
            if now != seen || is_used(&view) {
                (seen, since) = (now, Instant::now());
            } else if since.elapsed() >= idle {
                return Ok(());
            }
        }
    }
}

/// The number of requests so far; unchanged if nobody came.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Seen {
    connections: u64,
    calls: u64,
}

impl Seen {
    const fn of(view: &View) -> Self {
        Self { connections: view.counts.connections, calls: view.counts.calls }
    }
}

const fn is_used(view: &View) -> bool {
    view.counts.attached > 0 || view.running_in_all > 0
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
