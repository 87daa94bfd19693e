//! Which records of a log are shown.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use syscap::audit::SqliteReader;
use syscap::format::{
    AgentId, Body, CallFields, ControlBody as _, CreditChange, EffectClass, Manifest, Record,
    UnixMillis,
};
use syscap::kernel::{Next, StoreError};

use super::answers::Asked;
use crate::parse;

/// A filter of records.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Select {
    /// Only what this agent did, or was given.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    pub(super) agent: Option<AgentId>,
    /// Only calls of this tool; `notes.*` is every tool whose name begins so, `*` every tool.
    #[arg(long, value_name = "ID", value_parser = parse::tools)]
    pub(super) tool: Option<parse::Tools>,
    /// Only calls of this class, or of one of these where it is given more than once.
    #[arg(long = "class", value_name = "CLASS", value_parser = parse::class)]
    pub(super) classes: Vec<EffectClass>,
    /// Only what was refused.
    #[arg(long)]
    pub(super) refused: bool,
    /// Only what is no older: `90s`, `15m`, `2h`, `7d`.
    #[arg(long, value_name = "AGE", value_parser = parse::age)]
    pub(super) since: Option<std::time::Duration>,
}

impl Select {
    /// When the oldest record may have been written.
    pub(super) fn oldest(&self) -> Option<UnixMillis> {
        let since = self.since?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let then = now.saturating_sub(since);
        Some(UnixMillis::new(u64::try_from(then.as_millis()).unwrap_or(u64::MAX)))
    }

    /// True if a record is of a class that is shown.
    pub(super) fn means_class(
        &self,
        record: &Record,
        asked: Option<&Asked>,
        reader: &mut SqliteReader,
    ) -> Result<bool, StoreError> {
        if self.classes.is_empty() {
            return Ok(true);
        }
        let mut class = match asked {
            Some(asked) => asked.class,
            None => class_of(&record.body),
        };
        if let Body::Outcome(outcome) = &record.body {
            // It is the intent that says it.
            reader.records(outcome.intent, &mut |_, bytes| {
                class = Record::decode(bytes).ok().and_then(|intent| class_of(&intent.body));
                Next::Enough
            })?;
        } else if class.is_none()
            && let Some(id) = call_of(&record.body).and_then(|call| call.manifest)
        {
            // One that was refused first has none of its own: its tool's, then.
            let manifest = reader.object(&id)?;
            let manifest = manifest.and_then(|object| Manifest::from_bytes(&object.bytes).ok());
            class = manifest.map(|manifest| manifest.effect);
        }
        Ok(class.is_some_and(|class| self.classes.contains(&class)))
    }

    /// True if a record passes the rest of the filter, at any time.
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

/// The class of a call, where the record says it itself.
const fn class_of(body: &Body) -> Option<EffectClass> {
    match body {
        Body::Intent(intent) => Some(intent.call_effect),
        Body::Ask(ask) => Some(ask.call_effect),
        _ => None,
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
