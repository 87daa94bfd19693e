//! What one client has at a home: its sessions and its tools. A client is a connected process, or
//! the process that holds the home.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use syscap_format::{AgentId, Reason, Refused, Seq, TokenId, ToolId};

use crate::Error;
use crate::driver::guard::caught;
use crate::inspect::view::TokenDetail;
use crate::server::lend::SessionTicket;
use crate::server::offered::bound;
use crate::server::{Holding, LocalSession};
use crate::tools::host::uses::{Begun, Settled};
use crate::tools::provide::{Offered, Provider, Standing};
use crate::tools::{ConnectionId, MANIFEST_BYTES_MAX, Withdrawn};
use crate::transport::limits::{SESSIONS_MAX, TOOLS_MAX};
use crate::transport::message::{BeginOwn, Provided, SettleOwn, Ticketed};
use crate::transport::reply::{Offers, Taken};

/// A client.
pub(crate) struct Client {
    pub(crate) number: ConnectionId,
    /// Runs the tools that it offers. The process that holds the home has one for each offer, and
    /// doesn't ask.
    provider: Option<Arc<dyn Provider>>,
    state: Mutex<State>,
    /// The lock under which its offers change one step at a time: they are counted exactly.
    offering: Mutex<()>,
}

#[derive(Default)]
struct State {
    sessions: BTreeMap<Seq, Arc<LocalSession>>,
    /// The tools that it offers, each with the length of its manifest in bytes.
    tools: BTreeMap<ToolId, usize>,
    /// True if it has gone: it is given nothing any more.
    gone: bool,
}

/// The fate of the sessions of a client that has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sessions {
    /// They end.
    Ended,
    /// They are left to the end of the home, which is near.
    Left,
}

impl Client {
    pub(crate) fn new(number: ConnectionId, provider: Option<Arc<dyn Provider>>) -> Self {
        Self { number, provider, state: Mutex::default(), offering: Mutex::default() }
    }

    /// One of its sessions.
    pub(crate) fn session(&self, session: Seq) -> Result<Arc<LocalSession>, Error> {
        self.state().sessions.get(&session).map(Arc::clone).ok_or_else(no_session)
    }

    /// Opens a session for an agent, whose name is checked, with a token.
    pub(crate) fn open(
        &self,
        holding: &Holding,
        agent: &str,
        token: TokenId,
    ) -> Result<Seq, Error> {
        self.check_room()?;
        self.seat(holding, Arc::new(holding.session(agent, token)?))
    }

    /// Gives a session away, to whoever has the ticket.
    pub(crate) fn lend(&self, holding: &Holding, session: Seq) -> Result<SessionTicket, Error> {
        let taken = self.remove(session)?;
        let lent = holding.lent().lend(holding, self.number, Arc::clone(&taken));
        if lent.is_err() {
            self.seat(holding, taken)?;
        } else if self.state().gone {
            // It went meanwhile, and whoever saw to that may have missed this one.
            for session in holding.lent().take_all(self.number) {
                holding.unbind(session.number());
                session.end()?;
            }
        }
        lent
    }

    /// Takes a session that was lent. A ticket that opens none tells nothing of why.
    pub(crate) fn take(&self, holding: &Holding, ticket: &SessionTicket) -> Result<Taken, Error> {
        self.check_room()?;
        let no_ticket = || Refused::new(Reason::NotBound).field("ticket");
        let session = match holding.lent().take(ticket) {
            Some(session) => session,
            None => {
                let shown = holding.lent().show(ticket, self.number).ok_or_else(no_ticket)?;
                let (name, agent, token) = shown?;
                holding.providers.lock().tickets.insert(self.number, name);
                // One that was narrowed or renewed goes on by that.
                let token = holding.look(|kernel| TokenDetail::going_on(kernel, token));
                Arc::new(holding.session(agent.as_str(), token)?)
            }
        };
        let (agent, token): (AgentId, TokenId) = (session.agent().clone(), session.token());
        Ok(Taken { session: self.seat(holding, session)?, agent, token })
    }

    /// Registers a ticket, for a token that is the agent's.
    pub(crate) fn register(&self, holding: &Holding, ticketed: Ticketed) -> Result<(), Error> {
        let token = ticketed.token;
        let whose = holding.look(|kernel| kernel.token(&token).map(|it| it.body.agent.clone()));
        let whose = whose.ok_or_else(|| Refused::new(Reason::UnknownToken).field("token"))?;
        if whose != ticketed.agent {
            return Err(Refused::new(Reason::NotBound).field("token").into());
        }
        holding.check_prefixes(&ticketed.prefixes)?;
        // One that has gone registers nothing; one that goes from here on takes this with it.
        let state = self.state();
        if state.gone {
            return Err(Refused::new(Reason::Closing).into());
        }
        Ok(holding.lent().register(self.number, ticketed)?)
    }

    /// Closes a session.
    pub(crate) fn close(&self, holding: &Holding, session: Seq) -> Result<Seq, Error> {
        let taken = self.remove(session)?;
        holding.unbind(session);
        taken.end()
    }

    /// Offers tools by the ticket that it has shown.
    pub(crate) fn offer(&self, holding: &Holding, tools: Vec<Provided>) -> Result<Offers, Error> {
        let no_ticket = || Refused::new(Reason::NotBound).field("ticket");
        let prefixes = holding.lent().prefixes_of(self.number).ok_or_else(no_ticket)?;
        let tools = bound(tools.into_iter().map(Offered::from).collect(), &prefixes)?;
        self.provide(holding, tools.into_iter().map(Provided::from).collect())
    }

    /// Asks for leave to use a tool that it offers, and runs itself.
    pub(crate) fn begin(&self, holding: &Holding, begin: BeginOwn) -> Result<Begun, Error> {
        let session = self.session(begin.session)?;
        let not_bound = |field| Refused::new(Reason::NotBound).field(field);
        if !holding.lent().may_run(self.number) {
            return Err(not_bound("ticket").into());
        }
        if !self.state().tools.contains_key(&begin.used.tool) {
            return Err(not_bound("tool").got(&begin.used.tool).into());
        }
        let begun = holding.desk().begin_own(holding, &session, begin.used, begin.unasked);
        if let Ok(Begun::Answered(answer)) = &begun {
            session.backoff().answered(answer);
        }
        begun
    }

    /// What such a use came to.
    pub(crate) fn settle(&self, holding: &Holding, settle: SettleOwn) -> Result<Settled, Error> {
        let SettleOwn { session, intent, reported } = settle;
        let session = self.session(session)?;
        // Of what others offer it has nothing to say, however late.
        let offers = |tool: &ToolId| self.state().tools.contains_key(tool);
        holding.desk().settle_own(holding, &session, intent, reported, offers)
    }

    /// Offers tools.
    pub(crate) fn provide(&self, holding: &Holding, tools: Vec<Provided>) -> Result<Offers, Error> {
        let no_provider = || Refused::new(Reason::NotBound).field("provider");
        let provider = self.provider.as_ref().ok_or_else(no_provider)?;
        let _one_at_a_time = self.offering();
        let size = |tool: &Provided| tool.manifest.to_bytes().len();
        let sizes: Vec<usize> = tools.iter().map(size).collect();
        let mut offered = self.state().tools.clone();
        let names = tools.iter().map(|tool| tool.manifest.tool.clone());
        offered.extend(names.zip(sizes.iter().copied()));
        let bytes = offered.values().fold(0, |sum: usize, bytes| sum.saturating_add(*bytes));
        if offered.len() > TOOLS_MAX || bytes > MANIFEST_BYTES_MAX {
            return Err(Error::TooManyTools);
        }
        let tools = tools.into_iter().map(Offered::from).collect();
        let offers = holding.provide(self.number, tools, provider)?;
        let mut state = self.state();
        for (offer, size) in offers.iter().zip(sizes) {
            if offer.standing != Standing::Taken {
                state.tools.insert(offer.tool().clone(), size);
            }
        }
        let gone = state.gone;
        drop(state);
        if gone {
            // It went meanwhile, and whoever saw to that may have missed these.
            holding.withdraw(self.number, Withdrawn::All);
        }
        Ok(Offers { list: offers })
    }

    /// Takes back some of what it offered.
    pub(crate) fn withdraw(&self, holding: &Holding, tools: &[ToolId]) -> Result<(), Error> {
        let _one_at_a_time = self.offering();
        self.state().tools.retain(|tool, _| !tools.contains(tool));
        holding.withdraw(self.number, Withdrawn::These(tools));
        Ok(())
    }

    /// It has gone: its tools are nobody's, and its sessions are its own no more. What runs in them
    /// is `give_up`'s, and then they end.
    pub(crate) fn leave(
        &self,
        holding: &Holding,
        sessions: Sessions,
        give_up: impl FnOnce(&[Seq]),
    ) {
        let mut open = {
            let mut state = self.state();
            state.gone = true;
            std::mem::take(&mut state.sessions)
        };
        holding.uses().gone(self.number);
        // What a host has hung on any of it may panic; the rest is done all the same.
        caught(|| holding.withdraw(self.number, Withdrawn::All)).unwrap_or(());
        let lent = holding.lent().take_all(self.number);
        open.extend(lent.into_iter().map(|session| (session.number(), session)));
        let numbers: Vec<Seq> = open.keys().copied().collect();
        caught(|| give_up(&numbers)).unwrap_or(());
        if sessions == Sessions::Ended {
            for session in open.values() {
                // Where the kernel has stopped there is nothing to end any more.
                drop(caught(|| session.end()));
            }
        }
    }

    fn check_room(&self) -> Result<(), Error> {
        let full = self.state().sessions.len() >= SESSIONS_MAX;
        match full && self.number != ConnectionId::HOLDER {
            true => Err(Error::Refused(Refused::new(Reason::TooManySessions))),
            false => Ok(()),
        }
    }

    /// The session is this client's from here on. If the client has gone it ends.
    fn seat(&self, holding: &Holding, session: Arc<LocalSession>) -> Result<Seq, Error> {
        let number = session.number();
        holding.bind(number, self.number);
        let mut state = self.state();
        if state.gone {
            drop(state);
            holding.unbind(number);
            session.end()?;
            return Err(no_session());
        }
        state.sessions.insert(number, session);
        Ok(number)
    }

    fn remove(&self, session: Seq) -> Result<Arc<LocalSession>, Error> {
        self.state().sessions.remove(&session).ok_or_else(no_session)
    }

    fn offering(&self) -> MutexGuard<'_, ()> {
        self.offering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step that can't break off half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_session() -> Error {
    Error::Refused(Refused::new(Reason::NoSession).field("session"))
}
