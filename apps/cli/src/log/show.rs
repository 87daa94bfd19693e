//! `syscap log show`.

use std::path::PathBuf;

use clap::Args;
use syscap::{
    audit::sqlite::SqliteReader,
    format::{
        budget::Amounts,
        control::{Control, ControlBody as _, CreditChange, Freeze, KeyChange, PolicyChange},
        decision::Decision,
        id::Seq,
        record::{ApprovalBody, Body, CallFields, Record, StateChange},
        sign::PublicKey,
    },
    kernel::store::{Next, StoreError},
};

use super::answers::{Answers, Asked};
use crate::{
    exit::{Ended, Exit, Failure},
    fields,
    output::{Form, Object, Out},
    token,
};

/// How many records are read before they are printed: whoever reads the output may be slow, and
/// must not hold up the process that holds the home.
const CHUNK: usize = 512;

/// Which records.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The home.
    home: PathBuf,
    /// The first record to show.
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// Only the last so many records.
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "limit"])]
    last: Option<u64>,
    /// How many records to show at most.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

impl Show {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let failed = |error: StoreError| Failure::home(&self.home)(syscap::Error::Home(error));
        let mut reader = SqliteReader::open(&self.home).map_err(failed)?;
        let mut left = self.limit.unwrap_or(u64::MAX);
        let mut from = Seq::new(self.from);
        if let (Some(last), Some(head)) = (self.last, reader.head().map_err(failed)?) {
            from = Seq::new(head.seq.get().saturating_add(1).saturating_sub(last));
        }
        let mut unreadable = 0_u64;
        let mut answers = Answers::default();
        out.text(&heading())?;
        loop {
            let chunk = read(&mut reader, from, left).map_err(failed)?;
            let Some((last, _)) = chunk.last() else { break };
            (from, left) = (last.next(), left.saturating_sub(count(chunk.len())));
            for (seq, bytes) in &chunk {
                match Record::decode(bytes) {
                    Ok(record) => {
                        let asked = answers.of(&record, &mut reader).map_err(failed)?;
                        match out.form() {
                            Form::Text => out.line(&row(&record, asked))?,
                            Form::Json => out.line(&json(&record, bytes, asked))?,
                        }
                    }
                    Err(error) => {
                        unreadable = unreadable.saturating_add(1);
                        let json = Object::new().uint("seq", seq.get()).shown("unreadable", error);
                        out.both(&format!("{seq:>7}  unreadable: {error}"), json)?;
                    }
                }
            }
        }
        if unreadable > 0 { Err(Failure::Unreadable(unreadable)) } else { Ok(Exit::Done) }
    }
}

fn read(
    reader: &mut SqliteReader,
    from: Seq,
    limit: u64,
) -> Result<Vec<(Seq, Vec<u8>)>, StoreError> {
    let mut chunk = Vec::new();
    if limit == 0 || i64::try_from(from.get()).is_err() {
        return Ok(chunk);
    }
    reader.records(from, &mut |seq, bytes| {
        chunk.push((seq, bytes.to_vec()));
        if chunk.len() < CHUNK && count(chunk.len()) < limit { Next::More } else { Next::Enough }
    })?;
    Ok(chunk)
}

fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

fn heading() -> String {
    columns(["seq", "time", "kind", "agent", "tool", "status", "used"])
}

/// A record, with what it answers.
fn json(record: &Record, bytes: &[u8], asked: Option<Asked>) -> String {
    let object = fields::record(record, bytes);
    let object = match asked {
        None => object,
        Some(Asked { ask, agent, tool }) => {
            let answered = Object::new().uint("ask", ask.get()).text("agent", &agent);
            object.json("answers", &answered.text("tool", &tool).finish())
        }
    };
    object.finish()
}

fn row(record: &Record, asked: Option<Asked>) -> String {
    let (seq, time) = (record.seq.to_string(), record.time.to_string());
    let kind = record.body.kind();
    let Columns { mut agent, mut tool, mut status, used } = Columns::of(&record.body);
    if let Some(asked) = asked {
        status.push_str(&format!(", to {}", asked.ask));
        (agent, tool) = (asked.agent, asked.tool);
    }
    columns([&seq, &time, kind.name(), &agent, &tool, &status, &used])
}

fn columns([seq, time, kind, agent, tool, status, used]: [&str; 7]) -> String {
    let row =
        format!("{seq:>7}  {time:<24}  {kind:<8}  {agent:<16}  {tool:<12}  {status:<20}  {used}");
    row.trim_end().to_owned()
}

/// What a row says besides position, time and kind.
#[derive(Default)]
struct Columns {
    agent: String,
    tool: String,
    status: String,
    used: String,
}

impl Columns {
    fn of(body: &Body) -> Self {
        match body {
            Body::Intent(intent) => {
                Self { used: format!("held: {}", intent.call.held), ..Self::call(&intent.call) }
                    .status(&decided(&intent.call))
            }
            Body::Outcome(outcome) => {
                let status = match outcome.reason {
                    Some(reason) => format!("{reason} ({})", outcome.tx),
                    None => format!("{} ({})", outcome.status, outcome.tx),
                };
                Self::call(&outcome.call).status(&status)
            }
            Body::Refusal(refusal) => {
                let (reason, decided) = (refusal.reason.name(), decided(&refusal.call));
                let status = match decided.is_empty() {
                    true => reason.to_owned(),
                    false => format!("{reason} ({decided})"),
                };
                Self::call(&refusal.call).status(&status)
            }
            Body::Ask(ask) => {
                let status = format!("waits until {}", ask.expires);
                Self::call(&ask.call).status(&status)
            }
            Body::Approval(event) => Self::default().status(&answered(&event.control.body)),
            Body::State(change) => Self::call(&change.call).status(&changed(change)),
            Body::Repeat(repeat) => {
                Self::call(&repeat.call).status(&format!("as record {}", repeat.outcome))
            }
            Body::Refusals(run) => {
                let count = run.count.map_or_else(String::new, |n| format!(" {n} refused"));
                let charged = format!("calls={}", run.count.unwrap_or(run.reserved));
                Self { used: charged, ..Self::default() }.status(&format!("{}{count}", run.phase))
            }
            Body::Issue(issue) => Self { agent: issue.agent.to_string(), ..Self::default() },
            Body::Session(change) => {
                let agent = change.agent.to_string();
                Self { agent, ..Self::default() }.status(change.phase.name())
            }
            Body::Charge(charge) => Self { used: charge.amounts.to_string(), ..Self::default() },
            Body::Late(late) => Self::default().status(late.status.name()),
            Body::Recovery(recovery) => {
                let status = format!("{}: {}", recovery.intent, recovery.verdict);
                Self { used: shown(&recovery.used), ..Self::default() }.status(&status)
            }
            Body::Boot(boot) => Self::default().status(&format!("before: {}", boot.before)),
            Body::Shutdown(shutdown) => Self::default().status(&format!("open: {}", shutdown.open)),
            Body::Revoke(event) => Self::default().status(&revoked(&event.control.body)),
            Body::Cancel(cancel) => {
                let by =
                    cancel.session.map_or_else(|| "signed".to_owned(), |by| format!("by {by}"));
                Self::default().status(&format!("{}: {by}", cancel.intent))
            }
            Body::Freeze(event) => Self::default().status(&frozen(&event.control.body)),
            Body::Policy(event) => Self::default().status(&policies(&event.control.body)),
            Body::Key(event) => Self::default().status(&keys(&event.control)),
            Body::Credit(event) => match CreditChange::from_bytes(&event.control.body) {
                Ok(CreditChange { agent, added }) => {
                    let agent = agent.to_string();
                    Self { agent, ..Self::default() }.status(&format!("credits_micro +{added}"))
                }
                Err(_) => Self::default(),
            },
            Body::Tools(_) | Body::Config(_) => Self::default().status("signed"),
            // Genesis, and what is reserved and so never read.
            _ => Self::default(),
        }
    }

    fn call(call: &CallFields) -> Self {
        Self {
            agent: call.agent_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            tool: call.tool_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            status: String::new(),
            used: shown(&call.used),
        }
    }

    fn status(mut self, status: &str) -> Self {
        status.clone_into(&mut self.status);
        self
    }
}

fn shown(amounts: &Amounts) -> String {
    amounts.to_string()
}

/// What the policies said of a call.
fn decided(call: &CallFields) -> String {
    let said = |decision: &Decision| {
        let by = decision.deciding.as_ref().map(|id| format!(" by {id}")).unwrap_or_default();
        let asks = decision.obligations.iter().map(|asked| format!(", {asked}"));
        format!("{}{by}{}", decision.verdict, asks.collect::<String>())
    };
    let policy = call.decision.as_ref().map(said);
    let shadow = call.shadow.as_ref().map(|shadow| format!("shadow: {}", said(&shadow.decision)));
    policy.into_iter().chain(shadow).collect::<Vec<_>>().join("; ")
}

/// `number 3 by agent: +goal.topic -goal.draft`.
fn changed(change: &StateChange) -> String {
    let mut text = format!("number {} by {}:", change.number, change.writer.name());
    change.set.iter().for_each(|key| text.push_str(&format!(" +{key}")));
    change.removed.iter().for_each(|key| text.push_str(&format!(" -{key}")));
    text
}

fn policies(body: &[u8]) -> String {
    let Ok(PolicyChange { policy, shadow }) = PolicyChange::from_bytes(body) else {
        return String::new();
    };
    let shadow = shadow.map(|shadow| format!(", shadow {}", short(&shadow.to_string())));
    format!("policy {}{}", short(&policy.to_string()), shadow.unwrap_or_default())
}

/// `once by terminal`.
fn answered(body: &[u8]) -> String {
    let said = ApprovalBody::from_bytes(body).ok();
    let unread = || "can't be read".to_owned();
    said.map_or_else(unread, |said| format!("{} by {}", said.answer, said.means))
}

fn revoked(body: &[u8]) -> String {
    token::said(body)
}

/// `operator: 2 keys, 1 signs`.
/// Which keys a role has from here on, and by whose word.
fn keys(control: &Control) -> String {
    let Ok(KeyChange { set, .. }) = KeyChange::from_bytes(&control.body) else {
        return String::new();
    };
    let list = |keys: &mut dyn Iterator<Item = PublicKey>| {
        keys.map(|key| short(&key.to_string())).collect::<Vec<String>>().join(" ")
    };
    let (has, by) =
        (list(&mut set.keys()), list(&mut control.signatures.iter().map(|signed| signed.key)));
    format!("{}: {has}, {} must sign; signed by {by}", set.role, set.threshold)
}

/// The first digits of a hash.
fn short(hash: &str) -> String {
    hash.get(..12).map_or_else(String::new, |head| format!("{head}.."))
}

fn frozen(body: &[u8]) -> String {
    Freeze::from_bytes(body)
        .map(|freeze| format!("{} {} {}", freeze.change, freeze.target, freeze.name))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log that was not written by a kernel can hold anything: nothing is not what it says.
    #[test]
    fn an_answer_that_cannot_be_read_says_so() {
        assert_eq!(answered(&[0xff]), "can't be read");
        assert_eq!(answered(&[]), "can't be read");
    }
}
