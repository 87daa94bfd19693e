//! `approvals watch`: what waits, as it comes; at a terminal it is answered key by key.

mod keys;
mod view;

use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use syscap::approvals::WaitingCall;
use syscap::audit::{LockState, SqliteReader};
use syscap::format::{ApprovalAnswer, Seq, UnixMillis};
use syscap::kernel::StoreError;
use syscap::{Connect, Error, Runtime};

use self::keys::Decoder;
use self::view::{Answered, Pressed, View};
use super::approver::Approver;
use super::shown::{json, listed};
use crate::exit::{Ended, Exit, Failure, tell};
use crate::output::{Form, Out};
use crate::runtime;
use crate::terminal::{self, Screen};
use crate::token::now;

/// How often it is looked for more where no server says so.
const LOOK: Duration = Duration::from_millis(250);
/// How long a server is asked to say so.
const WATCH: Duration = Duration::from_secs(30);

pub(super) fn run(home: &Path, out: &mut Out) -> Ended {
    if out.form() == Form::Json || !terminal::is_there() {
        return lines(home, out);
    }
    let (mut looker, mut view, mut decoder) = (Looker::new(home), View::new(), Decoder::new());
    // Before the terminal is another: what can't be looked at is said as elsewhere.
    looker.look(Duration::ZERO)?;
    looker.news().iter().for_each(|news| tell(news));
    let approver = Approver::of(home)?;
    let mut screen = Screen::open()?;
    loop {
        looker.look(Duration::ZERO)?;
        looker.news().into_iter().for_each(|news| view.say(news));
        view.take(looker.waiting());
        screen.draw(&view.frame(screen.size(), looker.now())?)?;
        for key in decoder.keys(&screen.pressed()?) {
            match view.press(key)? {
                Pressed::Nothing => {}
                Pressed::Quit => {
                    screen.end()?;
                    return Ok(Exit::Done);
                }
                Pressed::Answered(answered) => {
                    // A passphrase is asked for as elsewhere.
                    screen.part()?;
                    let said = answer(&approver, &answered);
                    screen = Screen::open()?;
                    view.say(said.unwrap_or_else(|failure| failure.to_string()));
                    break;
                }
            }
        }
    }
}

/// Without a keyboard it answers nothing: each call is printed once.
fn lines(home: &Path, out: &mut Out) -> Ended {
    let (mut looker, mut printed) = (Looker::new(home), BTreeSet::new());
    loop {
        for call in looker.waiting() {
            if printed.insert(call.ask) {
                out.both(&listed(call, looker.now()), json(call))?;
            }
        }
        out.flush()?;
        if !looker.look(WATCH)? {
            thread::sleep(LOOK);
        }
        looker.news().iter().for_each(|news| tell(news));
    }
}

/// Looks again and again for what waits: asks the server, and reads the log where none answers.
struct Looker<'h> {
    home: &'h Path,
    server: Option<Runtime>,
    /// Why the server can't be asked, where that is not said yet, and when it was tried.
    unheard: Option<(Option<String>, Instant)>,
    /// How often what waits had changed at the server.
    seen: Option<u64>,
    /// How far the log was read, where there is no server.
    read: Option<Seq>,
    calls: Vec<WaitingCall>,
    /// Kernel time.
    time: UnixMillis,
}

impl<'h> Looker<'h> {
    fn new(home: &'h Path) -> Self {
        let (calls, time) = (Vec::new(), UnixMillis::new(0));
        Self { home, server: None, unheard: None, seen: None, read: None, calls, time }
    }

    /// Looks again where something has changed. True if a server was asked, which was waited for.
    fn look(&mut self, wait: Duration) -> Result<bool, Failure> {
        let store = |error: StoreError| Failure::home(self.home)(Error::Home(error));
        let mut reader = SqliteReader::open(self.home).map_err(store)?;
        if self.server.is_none() && reader.lock_state().map_err(store)? == LockState::Held {
            self.connect();
        }
        if let Some(server) = &self.server {
            if let Ok(asked) = asked(server, self.seen, wait) {
                if let Some((seen, calls, time)) = asked {
                    (self.seen, self.calls, self.time) = (Some(seen), calls, time);
                }
                return Ok(true);
            }
            (self.server, self.seen, self.read) = (None, None, None);
        }
        let head = reader.head().map_err(store)?.map(|head| head.seq);
        if self.read.is_none() || self.read != head {
            let log = runtime::look(self.home)?;
            (self.calls, self.time, self.read) = (log.waiting()?, log.kernel().now(), head);
        }
        Ok(false)
    }

    /// Of a server that can't be asked the log says how things stand, and another try takes a while.
    fn connect(&mut self) {
        if self.unheard.as_ref().is_some_and(|(_, tried)| tried.elapsed() < WATCH) {
            return;
        }
        match Connect::to(self.home).stays().open() {
            Ok(server) => (self.server, self.unheard) = (Some(server), None),
            Err(Error::NoServer { .. }) => {}
            Err(error) => {
                let why = format!("the server is not asked ({error}): this is what the log says");
                self.unheard = Some((Some(why), Instant::now()));
            }
        }
    }

    /// Why the server can't be asked, once for each try.
    fn news(&mut self) -> Option<String> {
        self.unheard.as_mut().and_then(|(why, _)| why.take())
    }

    fn now(&self) -> UnixMillis {
        now(self.time)
    }

    /// The calls that still need an answer.
    fn waiting(&self) -> impl Iterator<Item = &WaitingCall> {
        let now = self.now();
        self.calls.iter().filter(move |call| now < call.expires && call.approved.is_some())
    }
}

/// How often what waits has changed, what that is, and the time; `None` where it has not.
type Asked = Option<(u64, Vec<WaitingCall>, UnixMillis)>;

fn asked(server: &Runtime, seen: Option<u64>, wait: Duration) -> Result<Asked, Error> {
    // Counted first: what comes meanwhile is seen the next time.
    let count = server.watch(seen.unwrap_or(u64::MAX), wait)?;
    if seen == Some(count) {
        return Ok(None);
    }
    let (calls, time) = server.waiting()?;
    Ok(Some((count, calls, time)))
}

/// Answers all of them; what is said of that is for one line.
fn answer(approver: &Approver<'_>, answered: &Answered) -> Result<String, Failure> {
    let Answered { asks, answer, why } = answered;
    let mut records = Vec::new();
    for ask in asks {
        match approver.answer(*ask, *answer, None, why.as_deref()) {
            Ok(seq) => records.push(seq.to_string()),
            Err(failure) if records.is_empty() => return Err(failure),
            // What is on record is said, too.
            Err(failure) => return Ok(format!("{}; then: {failure}", recorded(*answer, &records))),
        }
    }
    Ok(recorded(*answer, &records))
}

fn recorded(answer: ApprovalAnswer, records: &[String]) -> String {
    let said = if answer == ApprovalAnswer::Deny { "denied" } else { "approved" };
    format!("{said} by record {}", records.join(", "))
}
