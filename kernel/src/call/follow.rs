//! The step between the resolved arguments and the plan: links are followed.

use alloc::boxed::Box;

use super::{Call, Resolved, Seat, Stopped, stop};
use crate::{
    args,
    registry::{Registered, Registry},
    resolve::{AsSent, Found, Lookup, Resolving},
    tool::{Live, Request},
};
use syscap_format::{
    cbor::Item,
    hash::args_hash,
    limits::LOOKUPS_MAX,
    reason::{Reason, Refused},
    vault::CallSalts,
};

/// What was looked up for a call, and what came of it.
pub(crate) type Seen = (Lookup, Result<Found, Refused>);

/// What must be looked up before a call can go on.
pub(crate) type Unseen = Option<(Lookup, Box<Resolving>)>;

impl Call<Resolved> {
    /// Puts what was found into the place of the argument that it was found for, or says what
    /// must be looked up.
    pub(crate) fn follow(
        self,
        seat: &Seat<'_>,
        registry: &Registry,
        (salts, live): (&CallSalts, Live),
        seen: Option<Seen>,
    ) -> Result<(Self, Unseen), Box<Stopped>> {
        let Some(registered) = registry.find(self.at.call.tool()) else {
            return stop(self.fields, Reason::UnknownTool);
        };
        let tries = match seen {
            Some((lookup, found)) if lookup.of == self.fields.args_hash => {
                return self.take(registered, salts, lookup.argument, found);
            }
            Some((lookup, _)) => lookup.tries,
            None => 0,
        };
        let body = seat.state.tokens.body(self.at.token);
        let Some(grant) = body.and_then(|body| body.grants.get(&registered.manifest.tool)) else {
            return stop(self.fields, Reason::NotGranted);
        };
        let (agent, args) = (&seat.session.agent, self.at.args.item());
        let request = Request { agent, args, grant, live: Some(live) };
        let resolver = match registered.tool.resolver(&request) {
            Ok(Some(resolver)) => resolver,
            Ok(None) => return Ok((self, None)),
            Err(refused) => return stop(self.fields, refused),
        };
        if tries >= LOOKUPS_MAX {
            return stop(self.fields, Reason::Busy);
        }
        let (of, argument) = (self.fields.args_hash, resolver.argument());
        let lookup = Lookup { of, argument, tries: tries.saturating_add(1) };
        Ok((self, Some((lookup, Box::new(Resolving(resolver))))))
    }

    /// From here on the call is about what was found: its arguments are those, and nothing else
    /// in them has changed.
    fn take(
        mut self,
        registered: &Registered,
        salts: &CallSalts,
        argument: &'static str,
        found: Result<Found, Refused>,
    ) -> Result<(Self, Unseen), Box<Stopped>> {
        let found = match found {
            Ok(found) => found,
            Err(refused) => return stop(self.fields, refused),
        };
        let manifest = &registered.manifest;
        let args = self.at.args.item();
        let sent = args.get(argument).and_then(Item::as_text);
        let sent = sent.map(|text| AsSent { argument, text: Box::from(text) });
        let replaced = args::replace(manifest, args, argument, &found.0);
        let (Some(sent), Some(args)) = (sent, replaced) else {
            // The tool named what it may not, or found what is no such argument.
            return stop(self.fields, Refused::new(Reason::Failed).field(argument));
        };
        self.fields.args_hash =
            Some(args_hash(&salts.args, &manifest.tool, &registered.manifest_id, args.item()));
        self.at.args = args;
        self.at.sent = Some(sent);
        Ok((self, None))
    }
}
