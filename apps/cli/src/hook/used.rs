//! A use as the kernel is told of it: which tool, with which arguments, where, by which part of the client.

use std::ffi::OsString;

use syscap::Runtime;
use syscap::format::{Canonical, Item, MapBuilder, TokenId, json};
use syscap::host::ToolUse;
use syscap::provide::LocationText;

use super::event::Event;
use super::{Hook, class, tokens};

/// By which tool a use goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// The one of its name.
    Own,
    /// The one for all of the client's own tools that are not listed.
    Other,
}

impl Hook {
    /// By which tool a use goes. A tool that is not listed goes by its own name where the operator
    /// classifies it, or where the token grants that name.
    pub(super) fn naming(
        &self,
        access: &Runtime,
        token: Option<TokenId>,
        event: &Event,
    ) -> Result<Naming, String> {
        let is_classed = class::class(&self.classes, &event.tool).is_some();
        if is_classed || !self.client.is_other(&event.tool) {
            return Ok(Naming::Own);
        }
        let Some(own) = self.tool(&event.tool) else { return Ok(Naming::Other) };
        Ok(match tokens::grants(access, &self.agent, token, &own)? {
            true => Naming::Own,
            false => Naming::Other,
        })
    }

    pub(super) fn used(&self, event: &Event, naming: Naming) -> Result<ToolUse, String> {
        let long = || format!("the tool's name can't be used here: {}", event.tool);
        let (tool, args) = match naming {
            Naming::Own => (self.tool(&event.tool), self.own_arguments(event)),
            Naming::Other => {
                let input = json::from_data(event.args.item());
                let args = MapBuilder::new().text("tool", &event.tool).text("input", &input);
                (self.client.other(), args.finish())
            }
        };
        Ok(ToolUse {
            agent: self.agent.clone(),
            conversation: event.conversation.clone(),
            id: event.id.clone(),
            tool: tool.ok_or_else(long)?,
            args,
            place: event.folder.as_deref().filter(|_| self.is_black_box(&event.tool)).map(place),
            location: self.location.clone().or_else(|| self.location_outside(event)),
            part: event.part.clone(),
        })
    }

    fn own_arguments(&self, event: &Event) -> Canonical {
        match self.is_black_box(&event.tool) || self.is_shell_inside(&event.tool) {
            true => without_words(event.args.item()),
            false => event.args.clone(),
        }
    }

    /// The location of a use outside of any run: the client's project, or where it works. A shell's
    /// folder is an argument of its call.
    fn location_outside(&self, event: &Event) -> Option<String> {
        if self.is_black_box(&event.tool) {
            return None;
        }
        let project = self.client.project_variable();
        let project = std::env::var_os(project).filter(|folder| !folder.is_empty());
        let folder = project.or_else(|| event.folder.clone().map(OsString::from))?;
        Some(LocationText::default().part("client in", [folder]).finish())
    }
}

/// The location at which the client's shell runs a command: shown to the person who is asked, and a
/// part of the approved call. It decides nothing.
fn place(folder: &str) -> Canonical {
    MapBuilder::new().text("folder", folder).finish()
}

/// A shell's arguments without the model's own words for them: the same command is the same call,
/// whatever it is called today.
fn without_words(args: Item<'_>) -> Canonical {
    let others = args.entries().filter(|(key, _)| *key != "description");
    others.fold(MapBuilder::new(), |map, (key, value)| map.item(key, value)).finish()
}
