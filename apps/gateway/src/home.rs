//! The home, by whichever process holds it.

use std::sync::{Arc, Mutex, PoisonError};

use syscap::{
    Error, Grant, Runtime, Session, Written,
    format::{
        budget::Budget,
        id::{ObjectId, TokenId, ToolId},
        json::Escapes,
        limits::GRANTS_MAX,
        manifest::Manifest,
    },
    provide::{Offer, Provider},
    view::{TokenInfo, Whose},
};

use crate::{
    kernelside::{Accepted, CallOutcome, Envelope, KernelSession, Kernelside, Unreached},
    options::{Options, People},
    say::say,
};

/// See the module.
pub(crate) struct HomeKernel {
    runtime: Runtime,
    options: Options,
    /// The token that was issued here.
    issued: Mutex<Option<TokenId>>,
}

fn unreached(error: Error) -> Unreached {
    Unreached(error.to_string())
}

impl HomeKernel {
    pub(crate) fn open(options: &Options) -> Result<Self, Error> {
        let held = syscap::Options::new();
        let held = match options.people {
            People::Asked => held,
            People::Absent => held.headless(),
        };
        let runtime = held.share(&options.home)?;
        Ok(Self { runtime, options: options.clone(), issued: Mutex::default() })
    }

    /// Closes it: who still uses it is told.
    pub(crate) fn close(&self) -> Result<(), Error> {
        self.runtime.close()
    }
}

/// Whether the home, or its holder, has no room for more tools.
fn has_no_room(error: &Error) -> bool {
    match error {
        Error::TooManyTools => true,
        Error::Holder(says) => *says == Error::TooManyTools.to_string(),
        _ => false,
    }
}

/// Offers all tools; where there is no room for all at the home, those for which there is.
fn provide(
    runtime: &Runtime,
    tools: Vec<Manifest>,
    provider: &Arc<dyn Provider>,
) -> Result<Vec<Offer>, Error> {
    let (mut offers, mut rest, mut without) = (Vec::new(), vec![tools], 0_usize);
    while let Some(mut part) = rest.pop() {
        match runtime.provide(part.clone(), Arc::clone(provider)) {
            Ok(more) => offers.extend(more),
            Err(error) if has_no_room(&error) && part.len() > 1 => {
                let second = part.split_off(part.len() / 2);
                rest.extend([second, part]);
            }
            Err(error) if has_no_room(&error) => without = without.saturating_add(1),
            Err(error) => return Err(error),
        }
    }
    if without > 0 {
        say(&format!(
            "there is no room at the home for {without} tools: they are not offered; \
             `syscap tools forget` makes room"
        ));
    }
    Ok(offers)
}

impl Kernelside for HomeKernel {
    fn provide(
        &self,
        tools: Vec<Manifest>,
        provider: Arc<dyn Provider>,
    ) -> Result<Vec<Offer>, Unreached> {
        provide(&self.runtime, tools, &provider).map_err(unreached)
    }

    fn withdraw(&self, tools: &[ToolId]) -> Result<(), Unreached> {
        self.runtime.withdraw(tools).map_err(unreached)
    }

    fn accept(&self, tools: &[(ToolId, ObjectId)]) -> Result<Accepted, Unreached> {
        match self.runtime.accept_as(tools) {
            Ok(_) => Ok(Accepted::Recorded),
            Err(Error::Signer(_)) => Ok(Accepted::Waits),
            Err(error) => Err(unreached(error)),
        }
    }

    fn built_in(&self) -> Result<Vec<Manifest>, Unreached> {
        self.runtime.manifests(Whose::Holders).map_err(unreached)
    }

    fn open_session(&self, tools: &[ToolId]) -> Result<Arc<dyn KernelSession>, Unreached> {
        let runtime = &self.runtime;
        let token = self.token(runtime, tools)?;
        self.session(token)
    }

    fn widen(&self, tools: &[ToolId]) -> Result<Option<Arc<dyn KernelSession>>, Unreached> {
        let Some(issued) = *self.issued.lock().unwrap_or_else(PoisonError::into_inner) else {
            return Ok(None);
        };
        let view = self.runtime.view().map_err(unreached)?;
        let lives = view.token(issued).is_some_and(|token| token.is_live(view.now));
        // What an operator has issued or taken back since counts.
        let newest = view.tokens.iter().find(|token| token.agent == self.options.agent);
        if !lives || newest.is_none_or(|newest| newest.id != issued) {
            return Ok(None);
        }
        let token = self.issued_for(&self.runtime, tools)?;
        self.session(token).map(Some)
    }
}

impl HomeKernel {
    /// The token that is named; else the agent's newest that lives and grants one of these tools;
    /// else a new one. What was revoked stays revoked: where the agent's newest token was, an
    /// operator must issue the next.
    fn token(&self, runtime: &Runtime, tools: &[ToolId]) -> Result<TokenInfo, Unreached> {
        let view = runtime.view().map_err(unreached)?;
        let agent = &self.options.agent;
        if let Some(id) = self.options.token {
            let known = view.token(id).cloned();
            return known.ok_or_else(|| Unreached(format!("there is no token {id} here")));
        }
        let own: Vec<&TokenInfo> =
            view.tokens.iter().filter(|token| token.agent == *agent).collect();
        let fits = |token: &&&TokenInfo| {
            let grants = tools.is_empty() || token.tools.iter().any(|tool| tools.contains(tool));
            token.is_live(view.now) && grants
        };
        if let Some(token) = own.iter().find(fits) {
            return Ok((*token).clone());
        }
        if own.first().is_some_and(|newest| newest.revoked) {
            return Err(Unreached(format!(
                "the last token of {agent} was revoked; issue another, or name one by --token"
            )));
        }
        self.issued_for(runtime, tools)
    }

    fn session(&self, token: TokenInfo) -> Result<Arc<dyn KernelSession>, Unreached> {
        let agent = self.options.agent.as_str();
        let session = self.runtime.session(agent, token.id).map_err(unreached)?;
        Ok(Arc::new(HomeSession { session, grants: token.tools }))
    }

    /// A new token for these tools.
    fn issued_for(&self, runtime: &Runtime, tools: &[ToolId]) -> Result<TokenInfo, Unreached> {
        let view = runtime.view().map_err(unreached)?;
        let own = view.tools.iter().filter(|tool| !tool.delegated);
        let own: Vec<ToolId> = own.map(|tool| tool.tool.clone()).collect();
        let id = self.issue(runtime, tools, &own)?;
        *self.issued.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
        let view = runtime.view().map_err(unreached)?;
        let issued = view.token(id).cloned();
        issued.ok_or_else(|| Unreached(format!("the token {id} was issued and is not here")))
    }

    fn issue(
        &self,
        runtime: &Runtime,
        tools: &[ToolId],
        own: &[ToolId],
    ) -> Result<TokenId, Unreached> {
        let agent = &self.options.agent;
        let mut granted: Vec<&str> = tools.iter().map(ToolId::as_str).collect();
        let mut grant = Grant::to(agent.as_str());
        if self.options.built_in {
            granted.extend(own.iter().map(ToolId::as_str));
            grant = grant.workspace();
        }
        if granted.len() > GRANTS_MAX {
            return Err(Unreached(format!(
                "there are {} tools, and a token grants {GRANTS_MAX} at most; issue one for those \
                 that are needed, and name it by --token",
                granted.len()
            )));
        }
        let count = granted.len();
        let grant =
            grant.tools(granted).budget(Budget::standard()).expires_in(self.options.expires);
        let token = runtime.issue(grant).map_err(unreached)?;
        say(&format!(
            "{agent} had no token: ISSUED {token} for {count} tools, for {} s, with the standard \
             budget; `syscap revoke` takes it back",
            self.options.expires.as_secs()
        ));
        Ok(token)
    }
}

/// A session.
struct HomeSession {
    session: Session,
    grants: Vec<ToolId>,
}

impl KernelSession for HomeSession {
    fn grants(&self) -> Vec<ToolId> {
        self.grants.clone()
    }

    fn send(&self, envelope: &Envelope, tag: u64) -> Result<CallOutcome, Unreached> {
        let (bytes, form) = match envelope {
            Envelope::Canonical(map) => (map.as_bytes(), Written::Cbor),
            Envelope::Text(map) => (map.as_bytes(), Written::Arguments(Escapes::Data)),
        };
        let answer = self.session.send(bytes, form, tag).map_err(unreached)?;
        Ok(CallOutcome {
            reason: answer.reason(),
            delivered: answer.delivered().clone(),
            record: answer.receipt().outcome_seq,
        })
    }

    fn close(&self) -> Result<(), Unreached> {
        // Of the same session: calls may be out through it.
        self.session.by(self.session.source()).close().map_err(unreached)
    }
}
