//! The step between the resolved arguments and the plan: links are followed.

use alloc::boxed::Box;

use crate::call::context::Context;
use crate::call::links::{AsSent, Found, Lookup, Resolving};
use crate::call::{Call, Dereferenced, Stopped, arguments};
use crate::tool::{Live, Request};
use syscap_format::{CallSalts, Item, LOOKUPS_MAX, Reason, Refused, args_hash};

/// A lookup for a call, and its result.
pub(crate) type Seen = (Lookup, Result<Found, Refused>);

/// A lookup that a call still needs.
pub(crate) type Unseen = Option<(Lookup, Box<Resolving>)>;

impl<'k> Call<'_, Dereferenced<'k>> {
    /// Puts what was found into the place of the argument that it was found for, or says what
    /// must be looked up.
    pub(crate) fn follow(
        self,
        context: &Context<'k>,
        salts: &CallSalts,
        live: Live,
        seen: Option<Seen>,
    ) -> Result<(Self, Unseen), Stopped> {
        let tries = match seen {
            Some((lookup, found)) if lookup.of == self.fields.args_hash => {
                return Ok((self.take(salts, lookup.argument, found?)?, None));
            }
            Some((lookup, _)) => lookup.tries,
            None => 0,
        };
        let (agent, args, token) = (&context.session.agent, self.at.args(), context.token.body);
        let request = Request { agent, args, grant: self.at.found.grant, token, live: Some(live) };
        let resolver = self.at.found.tool.tool.resolver(&request);
        let Some(resolver) = resolver.map_err(|refused| self.at.stopped(refused))? else {
            return Ok((self, None));
        };
        if tries >= LOOKUPS_MAX {
            return Err(Reason::Busy.into());
        }
        let (of, argument) = (self.fields.args_hash, resolver.argument());
        let lookup = Lookup { of, argument, tries: tries.saturating_add(1) };
        Ok((self, Some((lookup, Box::new(Resolving(resolver))))))
    }

    /// From here on the call is about what was found: its arguments are those, and nothing else
    /// in them has changed.
    fn take(
        mut self,
        salts: &CallSalts,
        argument: &'static str,
        found: Found,
    ) -> Result<Self, Stopped> {
        let tool = self.at.found.tool;
        let manifest = &tool.manifest;
        let args = self.at.args();
        let sent = args.get(argument).and_then(Item::as_text);
        let sent = sent.map(|text| AsSent { argument, text: Box::from(text) });
        let replaced = arguments::replace(manifest, args, argument, &found.0);
        let (Some(sent), Some(args)) = (sent, replaced) else {
            // The tool named what it may not, or found what is no such argument.
            return Err(Refused::new(Reason::Failed).field(argument).into());
        };
        self.fields.args_hash =
            Some(args_hash(&salts.args, &manifest.tool, &tool.manifest_id, args.item()));
        self.at.args = Some(args);
        self.at.sent = Some(sent);
        Ok(self)
    }
}
