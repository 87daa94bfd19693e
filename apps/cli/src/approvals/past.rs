//! An approval request that does not wait any more: how it was answered, and what ran by that.

use std::path::Path;

use syscap::approvals::Rows;
use syscap::audit::SqliteReader;
use syscap::format::{
    ApprovalAnswer, ApprovalBody, Body, ControlBody as _, Leaf, PublicKey, Record, Seq, UnixMillis,
    leaf,
};
use syscap::kernel::{Next, StoreError};

use super::shown;
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Form, Object, Out, array, word_of};
use crate::signed::{self, SignedBy};

/// An answer on record.
struct Answered {
    record: Seq,
    time: UnixMillis,
    answer: ApprovalAnswer,
    by: SignedBy,
}

impl Answered {
    /// As people read it: who, by which channel, when, because of what.
    fn show(&self, out: &mut Out) -> Result<(), Failure> {
        let Self { record, time, answer, by } = self;
        let (answer, keys) = (answer.name(), by.keys());
        let channel = by.channel().unwrap_or("an unknown channel");
        out.line(&format!("answer     {answer} by {keys}, {channel}, {time}, record {record}"))?;
        let because = by.because.shown();
        because.iter().try_for_each(|text| out.line(&format!("because    {text}")))
    }

    fn json(&self) -> String {
        let object = Object::new().uint("record", self.record.get());
        let object = object.text("answer", self.answer.name()).shown("time", self.time);
        let object = object.text("means", self.by.channel().unwrap_or_default());
        self.by.json(object).finish()
    }
}

/// The log's later records about a request.
#[derive(Default)]
struct History {
    answers: Vec<Answered>,
    /// The calls that were let through by one of the answers.
    intents: Vec<Seq>,
}

/// Why a request can't be answered any more.
pub(super) fn why_not(home: &Path, ask: Seq) -> Result<String, Failure> {
    if Rows::open(home)?.asked(ask)?.is_none() {
        let home = word_of(home);
        return Ok(format!(
            "no approval request has this number; see: syscap approvals list {home}"
        ));
    }
    let failed = |error: StoreError| Failure::home(home)(syscap::Error::Home(error));
    let mut reader = SqliteReader::open(home).map_err(failed)?;
    let history = history(home, &mut reader, ask).map_err(failed)?;
    Ok(match (history.intents.last(), history.answers.last()) {
        (Some(intent), _) => format!("was approved, and the call has run (record {intent})"),
        (None, Some(Answered { record, answer: ApprovalAnswer::Deny, .. })) => {
            format!("was denied by record {record}, and has expired since")
        }
        (None, Some(Answered { record, .. })) => {
            format!("was approved by record {record}, and has expired unused")
        }
        (None, None) => "has expired; the same call asks anew".to_owned(),
    })
}

/// Shows a request that was answered, or that expired.
pub(super) fn show(home: &Path, ask: Seq, out: &mut Out) -> Ended {
    let none = || Failure::Usage {
        what: ask.to_string(),
        advice: "is no record that asks for a person; `syscap approvals list` has those that wait"
            .to_owned(),
    };
    let call = Rows::open(home)?.asked(ask)?.ok_or_else(none)?;
    let failed = |error: StoreError| Failure::home(home)(syscap::Error::Home(error));
    let mut reader = SqliteReader::open(home).map_err(failed)?;
    let history = history(home, &mut reader, ask).map_err(failed)?;
    let yes = history.answers.iter().filter(|one| one.answer != ApprovalAnswer::Deny).count();
    let yes = u64::try_from(yes).unwrap_or(u64::MAX);
    let standing = match history.answers.iter().any(|one| one.answer == ApprovalAnswer::Deny) {
        true => "denied",
        false if yes >= call.threshold => "approved",
        false => "expired",
    };
    match out.form() {
        Form::Json => {
            let answers = history.answers.iter().map(Answered::json);
            let intents = history.intents.iter().map(|intent| intent.get().to_string());
            let object = shown::json_as(&call, standing, yes);
            let object = object.json("answers", &array(answers));
            out.line(&object.json("intents", &array(intents)).finish())?;
        }
        Form::Text => {
            shown::text_as(out, &call, standing.to_owned())?;
            history.answers.iter().try_for_each(|answer| answer.show(out))?;
            for intent in &history.intents {
                out.line(&format!("ran        record {intent}"))?;
            }
        }
    }
    Ok(Exit::Done)
}

/// The answers that a request has, for people.
pub(super) fn answers(home: &Path, ask: Seq, out: &mut Out) -> Result<(), Failure> {
    let failed = |error: StoreError| Failure::home(home)(syscap::Error::Home(error));
    let mut reader = SqliteReader::open(home).map_err(failed)?;
    let history = history(home, &mut reader, ask).map_err(failed)?;
    history.answers.iter().try_for_each(|answer| answer.show(out))
}

/// The same for programs, and the keys that have signed one.
pub(super) fn answers_json(home: &Path, ask: Seq) -> Result<(String, Vec<PublicKey>), Failure> {
    let failed = |error: StoreError| Failure::home(home)(syscap::Error::Home(error));
    let mut reader = SqliteReader::open(home).map_err(failed)?;
    let history = history(home, &mut reader, ask).map_err(failed)?;
    let signed = history.answers.iter().flat_map(|answer| answer.by.all().copied());
    let signed = signed.collect();
    Ok((array(history.answers.iter().map(Answered::json)), signed))
}

fn history(home: &Path, reader: &mut SqliteReader, ask: Seq) -> Result<History, StoreError> {
    let (mut history, mut approvals) = (History::default(), Vec::new());
    let mut asked: Option<Leaf> = None;
    reader.records(ask, &mut |seq, bytes| {
        let Some(of) = asked else {
            asked = Some(leaf(bytes));
            return Next::More;
        };
        // One that can't be read is found by `syscap verify`.
        let Ok(record) = Record::decode(bytes) else { return Next::More };
        match &record.body {
            Body::Approval(event) => {
                let body = ApprovalBody::from_bytes(&event.control.body).ok();
                if let Some(ApprovalBody { answer, .. }) = body.filter(|b| b.ask == of) {
                    approvals.push((record, answer));
                }
            }
            Body::Intent(intent) => {
                let of_it = |by| approvals.iter().any(|(one, _)| Some(one.seq) == by);
                if of_it(intent.approval) {
                    history.intents.push(seq);
                }
            }
            _ => {}
        }
        Next::More
    })?;
    let names = signed::names(home);
    for (record, answer) in approvals {
        if let Some(by) = SignedBy::of(&record, &names, Some(&mut *reader))? {
            let (record, time) = (record.seq, record.time);
            history.answers.push(Answered { record, time, answer, by });
        }
    }
    Ok(history)
}
