//! `approvals watch`: what waits, as it comes; at a terminal it is answered key by key.

mod keys;
mod view;

use std::{collections::BTreeSet, path::Path, thread, time::Duration};

use syscap::approvals::WaitingCall;
use syscap::audit::SqliteReader;
use syscap::format::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, Body, Record, Role, Seq, UnixMillis,
};
use syscap::kernel::{Next, StoreError};
use syscap::{Beside, Error, FileKeys, Home, Signer as _};

use self::keys::Decoder;
use self::view::{Answered, Pressed, View};
use super::shown::{json, listed};
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Form, Out};
use crate::runtime;
use crate::signing::{salted, submit};
use crate::terminal::{self, Screen, Terminal};
use crate::token::now;

/// How often it is looked for more where no terminal waits for keys.
const LOOK: Duration = Duration::from_millis(250);

pub(super) fn run(home: &Path, out: &mut Out) -> Ended {
    if out.form() == Form::Json || !terminal::is_there() {
        return lines(home, out);
    }
    let (mut looker, mut view, mut decoder) = (Looker::new(home), View::new(), Decoder::new());
    // Before the terminal is another: what can't be looked at is said as elsewhere.
    looker.look()?;
    let approver = Approver::of(home)?;
    let mut screen = Screen::open()?;
    loop {
        looker.look()?;
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
                    let said = approver.answer(&answered);
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
        looker.look()?;
        for call in looker.waiting() {
            if printed.insert(call.ask) {
                out.both(&listed(call, looker.now()), json(call))?;
            }
        }
        out.flush()?;
        thread::sleep(LOOK);
    }
}

/// Looks again and again for what waits.
struct Looker<'h> {
    home: &'h Path,
    /// How far the log was read.
    read: Option<Seq>,
    calls: Vec<WaitingCall>,
    /// Kernel time, as the log has it.
    time: UnixMillis,
}

impl<'h> Looker<'h> {
    const fn new(home: &'h Path) -> Self {
        Self { home, read: None, calls: Vec::new(), time: UnixMillis::new(0) }
    }

    /// The log is replayed only where something in it may have changed what waits.
    fn look(&mut self) -> Result<(), Failure> {
        let store = |error: StoreError| Failure::home(self.home)(Error::Home(error));
        let mut reader = SqliteReader::open(self.home).map_err(store)?;
        let (mut last, mut changed) = (self.read, self.read.is_none());
        let from = self.read.map_or(Seq::GENESIS, Seq::next);
        if !changed {
            let each = &mut |seq, bytes: &[u8]| {
                last = Some(seq);
                changed |= is_about_asks(bytes);
                if changed { Next::Enough } else { Next::More }
            };
            reader.records(from, each).map_err(store)?;
        }
        self.read = last;
        if changed {
            let log = runtime::look(self.home)?;
            self.calls = log.waiting()?;
            self.time = log.kernel().now();
            self.read = Some(log.kernel().head().seq);
        }
        Ok(())
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

fn is_about_asks(record: &[u8]) -> bool {
    match Record::decode(record).map(|record| record.body) {
        Ok(Body::Ask(_) | Body::Approval(_)) => true,
        Ok(Body::Intent(intent)) => intent.approval.is_some(),
        Ok(_) => false,
        // Whoever replays it says what is wrong.
        Err(_) => true,
    }
}

/// The approver: the approvers' key of the home, unsealed once.
struct Approver<'h> {
    home: &'h Path,
    keys: FileKeys,
    means: ApprovalChannel,
}

impl<'h> Approver<'h> {
    fn of(home: &'h Path) -> Result<Self, Failure> {
        let keys = FileKeys::open(&Home::at(home).keys())?.asking(Terminal);
        keys.renew(runtime::look(home)?.kernel().roles());
        // What it is now: once it is unsealed nobody is asked any more.
        let sealed = keys.needs_person(Role::Approver);
        let means = if sealed { ApprovalChannel::Terminal } else { ApprovalChannel::Command };
        Ok(Self { home, keys, means })
    }

    /// Signs and records; what is said of it is for one line.
    fn answer(&self, answered: &Answered) -> Result<String, Failure> {
        let Answered { asks, answer, why } = answered;
        let role = Role::Approver;
        terminal::unsealed(|| self.keys.prepare(role)).map_err(Error::from)?;
        let key = self.keys.public_key(role).map_err(Error::from)?;
        let mut records = Vec::new();
        for ask in asks {
            let why = why.as_deref().map(salted::<ApprovalBody>).transpose()?;
            let beside = why.clone().map_or(Beside::Nothing, Beside::Why);
            let sign = |message: &[u8]| self.keys.sign(role, message);
            let body = |log: &syscap::Inspection| {
                let over = || Failure::Usage {
                    what: format!("{ask}"),
                    advice: "is not waiting any more".to_owned(),
                };
                log.answer(*ask, *answer, self.means, why.as_ref()).ok_or_else(over)
            };
            let done = runtime::with(self.home, |access| {
                submit(self.home, access, &key, sign, body, &beside, Failure::from)
            });
            match done {
                Ok(seq) => records.push(seq.to_string()),
                Err(failure) if records.is_empty() => return Err(failure),
                // What is on record is said, too.
                Err(failure) => {
                    return Ok(format!("{}; then: {failure}", recorded(*answer, &records)));
                }
            }
        }
        Ok(recorded(*answer, &records))
    }
}

fn recorded(answer: ApprovalAnswer, records: &[String]) -> String {
    let said = if answer == ApprovalAnswer::Deny { "denied" } else { "approved" };
    format!("{said} by record {}", records.join(", "))
}
