//! A record in a row: what `log show --records` prints, and what is not a call.

use syscap::format::{
    Amounts, ApprovalBody, Body, CallFields, Control, ControlBody as _, CreditChange, Decision,
    KeyChange, PolicyBecause, PolicyChange, PublicKey, Record, SessionPhase, StateChange,
};

use super::{acts, answers::Asked};
use crate::hook::client::Client;
use crate::signed::SignedBy;
use crate::token;

pub(super) fn heading() -> String {
    columns(["seq", "time", "kind", "agent", "tool", "status", "used"])
}

/// A record, with what it answers.
pub(super) fn row(record: &Record, asked: Option<Asked>) -> String {
    let (seq, time) = (record.seq.to_string(), record.time.to_string());
    let kind = record.body.kind();
    let Columns { mut agent, mut tool, mut status, used } = Columns::of(&record.body);
    if let Some(asked) = asked {
        status.push_str(&format!(", to {}", asked.ask));
        (tool, agent) = (asked.shown(), asked.agent);
    }
    columns([&seq, &time, kind.name(), &agent, &tool, &status, &used])
}

/// The owner and the text of a record that is no call's.
pub(super) fn event(
    record: &Record,
    asked: Option<Asked>,
    by: Option<&SignedBy>,
) -> (String, String) {
    let Columns { agent, status, used, .. } = Columns::of(&record.body);
    if let Some(asked) = asked {
        let (ask, tool) = (asked.ask, asked.shown());
        let what =
            format!("approval request {ask} of {} for {tool} was answered: {status}", asked.agent);
        return (acts::actor(&record.body, by).unwrap_or(asked.agent), what);
    }
    let agent = acts::actor(&record.body, by).unwrap_or(agent);
    if let Some(what) = acts::words(&record.body, &status) {
        return (agent, what);
    }
    let what = match &record.body {
        Body::Genesis(_) => "the home was made".to_owned(),
        Body::Boot(boot) => format!("the home was opened; before: {}", boot.before),
        Body::Shutdown(_) => "the home was closed".to_owned(),
        Body::Session(change) | Body::SessionAlone(change) => match change.phase {
            SessionPhase::Open => "a session began".to_owned(),
            SessionPhase::Close => "its session ended".to_owned(),
        },
        Body::Issue(issue) => {
            let token = short(&issue.token.to_string());
            let of =
                issue.parent.map(|parent| format!(", a part of {}", short(&parent.to_string())));
            format!("was given token {token}{}", of.unwrap_or_default())
        }
        body => {
            let said = [status, used].into_iter().filter(|text| !text.is_empty());
            let said: Vec<String> = said.collect();
            format!("{}: {}", body.kind().name(), said.join(", "))
        }
    };
    (agent, what)
}

/// `, result_cap 4096, notify topic`.
pub(super) fn obligations(decision: &Decision) -> String {
    decision.obligations.iter().map(|asked| format!(", {asked}")).collect()
}

fn columns([seq, time, kind, agent, tool, status, used]: [&str; 7]) -> String {
    let row =
        format!("{seq:>7}  {time:<24}  {kind:<8}  {agent:<16}  {tool:<12}  {status:<20}  {used}");
    row.trim_end().to_owned()
}

/// The parts of a row besides position, time and kind.
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
            Body::Session(change) | Body::SessionAlone(change) => {
                let agent = change.agent.to_string();
                Self { agent, ..Self::default() }.status(change.phase.name())
            }
            Body::Input(input) => {
                let (agent, session) = (input.agent.to_string(), input.session);
                Self { agent, ..Self::default() }.status(&format!("in session {session}"))
            }
            Body::Charge(charge) => Self { used: charge.amounts.to_string(), ..Self::default() },
            Body::Late(late) => Self::default().status(late.status.name()),
            Body::LateReport(report) => {
                Self::default().status(&format!("{}: {}", report.intent, report.status))
            }
            Body::Recovery(recovery) => {
                let status = format!("{}: {}", recovery.intent, recovery.verdict);
                Self { used: shown(&recovery.used), ..Self::default() }.status(&status)
            }
            Body::Boot(boot) => Self::default().status(&format!("before: {}", boot.before)),
            Body::Shutdown(shutdown) => Self::default().status(&format!("open: {}", shutdown.open)),
            Body::Revoke(event) => Self::default().status(&token::said(&event.control.body)),
            Body::Cancel(cancel) => {
                let by =
                    cancel.session.map_or_else(|| "signed".to_owned(), |by| format!("by {by}"));
                Self::default().status(&format!("{}: {by}", cancel.intent))
            }
            // Genesis, and what is reserved and so never read, have none.
            body => Self::signed(body),
        }
    }

    /// Those of further signed events.
    fn signed(body: &Body) -> Self {
        match body {
            Body::Freeze(event) | Body::FreezeBecause(event) => {
                Self::default().status(&frozen(&event.control.body))
            }
            Body::Policy(event) | Body::PolicyBecause(event) => {
                Self::default().status(&policies(&event.control.body))
            }
            Body::Key(event) => Self::default().status(&keys(&event.control)),
            Body::Credit(event) => match CreditChange::from_bytes(&event.control.body) {
                Ok(CreditChange { agent, added }) => {
                    let agent = agent.to_string();
                    Self { agent, ..Self::default() }.status(&format!("credits_micro +{added}"))
                }
                Err(_) => Self::default(),
            },
            Body::Tools(_) | Body::Config(_) => Self::default().status("signed"),
            _ => Self::default(),
        }
    }

    fn call(call: &CallFields) -> Self {
        Self {
            agent: call.agent_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            tool: call.tool_id.as_ref().map(|it| Client::shown(it, None)).unwrap_or_default(),
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

/// The policies' decisions on a call.
fn decided(call: &CallFields) -> String {
    let said = |decision: &Decision| {
        let by = decision.deciding.as_ref().map(|id| format!(" by {id}")).unwrap_or_default();
        format!("{}{by}{}", decision.verdict, obligations(decision))
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
    let because = || PolicyBecause::from_bytes(body).map(|because| because.change());
    let Ok(PolicyChange { policy, shadow }) = PolicyChange::from_bytes(body).or_else(|_| because())
    else {
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
    acts::freeze(body)
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
