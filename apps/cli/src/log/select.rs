//! Which records of a log are shown.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use syscap::format::{
    AgentId, Body, CallFields, ControlBody as _, CreditChange, Record, UnixMillis,
};

use super::answers::Asked;
use crate::parse;

/// A filter of records.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct Select {
    /// Only what this agent did, or was given.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: Option<AgentId>,
    /// Only calls of this tool; `notes.*` is every tool whose name begins so, `*` every tool.
    #[arg(long, value_name = "ID", value_parser = parse::tools)]
    tool: Option<parse::Tools>,
    /// Only what was refused.
    #[arg(long)]
    refused: bool,
    /// Only what is no older: `90s`, `15m`, `2h`, `7d`.
    #[arg(long, value_name = "AGE", value_parser = parse::age)]
    since: Option<std::time::Duration>,
}

impl Select {
    /// When the oldest record may have been written.
    pub(super) fn oldest(&self) -> Option<UnixMillis> {
        let since = self.since?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let then = now.saturating_sub(since);
        Some(UnixMillis::new(u64::try_from(then.as_millis()).unwrap_or(u64::MAX)))
    }

    /// True if a record passes the filter, at any time.
    pub(super) fn means(&self, record: &Record, asked: Option<&Asked>) -> bool {
        let body = &record.body;
        let is_refused = matches!(body, Body::Refusal(_) | Body::Refusals(_));
        let agent = |agent: &AgentId| match asked {
            Some(asked) => asked.agent == agent.as_str(),
            None => agent_of(body).as_ref() == Some(agent),
        };
        let tool = |tools: &parse::Tools| match (asked, call_of(body)) {
            (Some(asked), _) => tools.include(&asked.tool),
            (None, Some(call)) => {
                call.tool_id.as_ref().is_some_and(|tool| tools.include(tool.as_str()))
            }
            (None, None) => false,
        };
        (!self.refused || is_refused)
            && self.agent.as_ref().is_none_or(agent)
            && self.tool.as_ref().is_none_or(tool)
    }
}

/// The call of a record, where it is one's.
pub(super) fn call_of(body: &Body) -> Option<&CallFields> {
    Some(match body {
        Body::Intent(intent) => &intent.call,
        Body::Outcome(outcome) => &outcome.call,
        Body::Refusal(refusal) => &refusal.call,
        Body::Ask(ask) => &ask.call,
        Body::Repeat(repeat) => &repeat.call,
        Body::State(change) => &change.call,
        _ => return None,
    })
}

fn agent_of(body: &Body) -> Option<AgentId> {
    if let Some(call) = call_of(body) {
        return call.agent_id.clone();
    }
    match body {
        Body::Issue(issue) => Some(issue.agent.clone()),
        Body::Session(change) | Body::SessionAlone(change) => Some(change.agent.clone()),
        Body::Input(input) => Some(input.agent.clone()),
        Body::Credit(event) => {
            CreditChange::from_bytes(&event.control.body).ok().map(|change| change.agent)
        }
        _ => None,
    }
}
