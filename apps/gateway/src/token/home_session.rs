//! A session at the home, through which every call has an answer, also where the holder goes.
//!
//! A call that was sent, and whose answer never came, may have run. It is sent again under its
//! idempotency key to whoever holds the home next, which knows by its log whether there was such a
//! call. If that one refuses the call itself (the token was revoked meanwhile, say), that says
//! nothing about the first time: then the log itself is read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use syscap::audit::SqliteReader;
use syscap::format::json::Escapes;
use syscap::format::{Body, Canonical, Item, Reason, Record, Recovered, Seq, ToolResult};
use syscap::kernel::{Next, StoreError};
use syscap::view::TokenInfo;
use syscap::{CallContext, Error, Session, Written};

use crate::governed::kernelside::{
    CallOutcome, Done, Envelope, KernelSession, NoAnswer, Unreached,
};

/// How often a call is sent: more holders than that do not go one after the other.
const TRIES_MAX: u32 = 16;
/// How long it is asked for what a holder still runs whose connection broke off.
const IN_FLIGHT_MAX: Duration = Duration::from_secs(15);
/// The pause between two of those.
const IN_FLIGHT_PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct HomeSession {
    session: Session,
    token: TokenInfo,
    home: PathBuf,
    /// The first record behind which a call of this process may stand.
    since: Seq,
}

/// The meaning of an error for the call that was sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It never came to the kernel.
    NotMade,
    /// It may have: the next holder can be asked.
    Lost,
    /// It may have, and there is nobody to ask.
    Stopped,
}

impl Fate {
    const fn of(error: &Error) -> Self {
        match error {
            Error::HolderGone | Error::BrokeOff | Error::Holder(_) => Self::Lost,
            // No record of it was written.
            Error::Home(StoreError::Busy) => Self::NotMade,
            Error::Halted(_) | Error::Home(_) => Self::Stopped,
            // Who is refused, or finds no holder, has handed nothing over.
            _ => Self::NotMade,
        }
    }
}

/// The log's knowledge of the calls with an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trace {
    /// There is none, or none that ran.
    NotRun,
    /// This one may have done something.
    Ran(Seq),
}

impl HomeSession {
    pub(crate) fn new(session: Session, token: TokenInfo, home: &Path, since: Seq) -> Self {
        Self { session, token, home: home.to_path_buf(), since }
    }

    /// Sends a call until it is answered, after it was sent once and this came of it.
    fn see_through(
        &self,
        envelope: &Envelope,
        tag: u64,
        first: Error,
    ) -> Result<ToolResult, NoAnswer> {
        let (map, form) = parts(envelope);
        let key = map.item().get("idempotency_key").and_then(Item::as_text);
        let (mut lost, mut tries, since) = (None, 1_u32, Instant::now());
        let mut first = Some(first);
        loop {
            let sent = match first.take() {
                Some(first) => Err(first),
                None => {
                    let call = self.session.envelope(map.as_bytes(), form);
                    call.context(CallContext::tag(tag)).wait()
                }
            };
            let error = match sent {
                Ok(answer) => {
                    let waits = answer.reason() == Some(Reason::KeyInFlight) && lost.is_some();
                    if waits && since.elapsed() < IN_FLIGHT_MAX {
                        thread::sleep(IN_FLIGHT_PAUSE);
                        continue;
                    }
                    return match lost {
                        Some(lost) => self.sent_again(answer, lost, key),
                        None => Ok(answer),
                    };
                }
                Err(error) => error,
            };
            let (fate, error) = (Fate::of(&error), Unreached::from(error));
            if fate == Fate::NotMade && lost.is_none() {
                return Err(NoAnswer::NotMade(error));
            }
            let lost = lost.get_or_insert(error).clone();
            if fate != Fate::Lost || tries >= TRIES_MAX {
                return Err(self.unknown(lost, key));
            }
            tries = tries.saturating_add(1);
        }
    }

    /// The next server's answer about a call that the one before had been sent.
    fn sent_again(
        &self,
        answer: ToolResult,
        lost: Unreached,
        key: Option<&str>,
    ) -> Result<ToolResult, NoAnswer> {
        // A result is that of the only run that there was under the key, and so is an error of one.
        if answer.reason().is_none() || answer.receipt().intent.is_some() {
            return Ok(answer);
        }
        match self.trace(key) {
            Ok(Trace::NotRun) if answer.reason() != Some(Reason::KeyInFlight) => Ok(answer),
            Ok(Trace::Ran(intent)) => Err(NoAnswer::Unknown(lost, Some(intent))),
            Ok(Trace::NotRun) | Err(_) => Err(NoAnswer::Unknown(lost, None)),
        }
    }

    /// The answer without a server: the log may show more once the home is opened.
    fn unknown(&self, lost: Unreached, key: Option<&str>) -> NoAnswer {
        match self.trace(key) {
            Ok(Trace::Ran(intent)) => NoAnswer::Unknown(lost, Some(intent)),
            Ok(Trace::NotRun) | Err(_) => NoAnswer::Unknown(lost, None),
        }
    }

    /// Looks for the calls with a key. One that has none can't be found, and never runs: only what
    /// is no call has none.
    fn trace(&self, key: Option<&str>) -> Result<Trace, StoreError> {
        let Some(key) = key else { return Ok(Trace::NotRun) };
        let mut ran: Vec<Seq> = Vec::new();
        SqliteReader::open(&self.home)?.records(self.since, &mut |seq, bytes| {
            let Ok(record) = Record::decode(bytes) else { return Next::More };
            match &record.body {
                Body::Intent(intent)
                    if intent.key.as_ref().is_some_and(|own| own.as_str() == key) =>
                {
                    ran.push(seq);
                }
                Body::Outcome(outcome) if outcome.reason == Some(Reason::NotRun) => {
                    ran.retain(|intent| *intent != outcome.intent);
                }
                Body::Recovery(recovery) if recovery.verdict == Recovered::NotDone => {
                    ran.retain(|intent| *intent != recovery.intent);
                }
                _ => {}
            }
            Next::More
        })?;
        Ok(ran.last().map_or(Trace::NotRun, |intent| Trace::Ran(*intent)))
    }
}

fn parts(envelope: &Envelope) -> (&Canonical, Written) {
    match envelope {
        Envelope::Canonical(map) => (map, Written::Cbor),
        Envelope::Text(map) => (map, Written::Arguments(Escapes::Data)),
    }
}

fn outcome(answer: &ToolResult) -> CallOutcome {
    CallOutcome {
        reason: answer.reason(),
        delivered: answer.delivered().clone(),
        record: answer.receipt().outcome_seq,
        constraint: answer.constraint().map(ToString::to_string),
        tx: answer.tx_outcome(),
        ask: answer.ask(),
        told: false,
    }
}

impl KernelSession for HomeSession {
    fn token(&self) -> &TokenInfo {
        &self.token
    }

    fn submit(self: Arc<Self>, envelope: Arc<Envelope>, context: CallContext, done: Done) {
        let (again, sent) = (Arc::clone(&self), Arc::clone(&envelope));
        let ((map, form), tag) = (parts(&sent), context.tag);
        let call = self.session.envelope(map.as_bytes(), form).context(context);
        call.submit(move |answer| match answer {
            Ok(answer) => done(Ok(outcome(&answer))),
            Err(error) => {
                let unknown = Fate::of(&error) != Fate::NotMade;
                let why = Unreached::from(&error);
                let done = Arc::new(Mutex::new(Some(done)));
                let tell = |outcome, done: &Mutex<Option<Done>>| {
                    let done = done.lock().unwrap_or_else(PoisonError::into_inner).take();
                    if let Some(done) = done {
                        done(outcome);
                    }
                };
                let theirs = Arc::clone(&done);
                // This thread must not wait.
                let started = thread::Builder::new().spawn(move || {
                    let answer = again.see_through(&envelope, tag, error);
                    tell(answer.map(|answer| outcome(&answer)), &theirs);
                });
                match started {
                    Ok(_) => {}
                    Err(_) if unknown => tell(Err(NoAnswer::Unknown(why, None)), &done),
                    Err(_) => tell(Err(NoAnswer::NotMade(why)), &done),
                }
            }
        });
    }

    fn intent_of(&self, key: &str) -> Option<Seq> {
        match self.trace(Some(key)) {
            Ok(Trace::Ran(intent)) => Some(intent),
            Ok(Trace::NotRun) | Err(_) => None,
        }
    }

    fn close(&self) -> Result<(), Unreached> {
        // Of the same session: calls may be out through it.
        let closed = self.session.by(self.session.source()).close();
        closed.map_err(Unreached::from)
    }
}
