//! The uses of tools that this run's gateway offers: it decides about them, and the hook passes them.
//!
//! The hook knows the gateway's name from `syscap run`, never from the client's event: a project may
//! configure a server of any name. A passed use is held against the call that the gateway gets.

use syscap::Runtime;
use syscap::format::Reason;
use syscap::host::{Begun, Reported, Settled};
use syscap::plain::plain;
use syscap_gateway::{Held, Uses};

use super::event::Event;
use super::used::Naming;
use super::{Hook, tokens};
use crate::exit::{Exit, diagnose};
use crate::starter::{self, Presence};

impl Hook {
    /// Passes a use of a tool that a gateway of this run offers, by exactly the client's spelling of
    /// its name. False for any other use: that is judged.
    pub(super) fn passes(&self, event: &Event) -> Result<bool, String> {
        let Some((uses, shown)) = self.offered(event)? else { return Ok(false) };
        let id = event.id.as_deref();
        uses.pass(id, &shown).map_err(|error| format!("the use can't be noted: {error}"))
    }

    /// Holds a reported use against the gateway's call. `None` where it was not passed; a use that was
    /// passed and of which no gateway got the call is put on record, and told.
    pub(super) fn settled_by_gateway(
        &self,
        event: &Event,
        reported: &Reported,
    ) -> Result<Option<Exit>, String> {
        let Some(uses) = self.uses.clone().map(Uses::at) else { return Ok(None) };
        let shown = self.offered(event)?.map(|(_, shown)| shown);
        let held = uses.take(event.id.as_deref(), shown.as_deref().unwrap_or(&event.tool));
        match held.map_err(|error| format!("the use can't be held against its call: {error}"))? {
            Held::Called => Ok(Some(Exit::Done)),
            // A client without names for its uses may report two of one name one after the other.
            Held::NotPassed if event.id.is_none() && shown.is_some() => Ok(Some(Exit::Done)),
            Held::NotPassed => Ok(None),
            Held::Missed => self.missed(event, reported, &uses).map(Some),
        }
    }

    /// True if a use that is over was passed: its gateway has it on record, or no call was made.
    pub(super) fn is_passed(&self, event: &Event) -> Result<bool, String> {
        let Some(uses) = self.uses.clone().map(Uses::at) else { return Ok(false) };
        let held = uses.take(event.id.as_deref(), &event.tool);
        Ok(held.map_err(|error| error.to_string())? != Held::NotPassed)
    }

    /// The tool as the gateway shows it, where one of this run offers it.
    fn offered(&self, event: &Event) -> Result<Option<(Uses, String)>, String> {
        let (Some(server), Some(folder)) = (&self.gateway, &self.uses) else { return Ok(None) };
        let uses = Uses::at(folder.clone());
        let names = uses.offered().map_err(|error| format!("the gateway's tools: {error}"))?;
        let is_meant = |shown: &String| self.client.mcp_tool(server, shown) == event.tool;
        Ok(names.into_iter().find(is_meant).map(|shown| (uses, shown)))
    }

    /// Puts on record a use that went past the gateway: as one of a tool that the client runs itself,
    /// judged after the fact.
    fn missed(&self, event: &Event, reported: &Reported, uses: &Uses) -> Result<Exit, String> {
        let used = self.used(event, Naming::Own)?;
        let access = self.reached()?;
        let token = match self.token_now(&access)? {
            Some(token) => token,
            None => tokens::newest(&access, &self.agent, |tool| *tool == used.tool)?.id(),
        };
        let manifest = self.manifest(&event.tool, used.tool.clone());
        let begun = access.begin_use(token, &used, &manifest).map_err(|error| error.to_string());
        let on_record = begun.and_then(|begun| match begun {
            Begun::Out(_) => {
                let settled = access.settle_use(token, &used, reported);
                settled.map_err(|error| error.to_string())
            }
            Begun::Answered(answer) => Ok(Settled::Answered(answer)),
        });
        let tool = plain(&event.tool);
        let line = match &on_record {
            Ok(settled) => on_record_as(&tool, settled),
            Err(why) => format!("{tool}: not on record: {}", plain(why)),
        };
        let noted = uses.miss(&line).map_err(|error| error.to_string());
        let closed = access.close().map_err(|error| error.to_string());
        diagnose(&format!("this run's gateway got no call of a use that its client made: {line}"));
        on_record.and(noted).and(closed).map(|()| Exit::Failed)
    }

    pub(super) fn reached(&self) -> Result<Runtime, String> {
        let reached = starter::reach(&self.home, self.people, Presence::Passes);
        reached.map_err(|failure| self.why(failure))
    }
}

fn on_record_as(tool: &str, settled: &Settled) -> String {
    let answer = match settled {
        Settled::Answered(answer) => answer,
        Settled::Late(record) => return format!("{tool}: reported late (record {record})"),
    };
    let reason = answer.reason().map_or("ok", Reason::name);
    format!("{tool}: {reason} (record {})", answer.receipt().outcome_seq.get())
}
