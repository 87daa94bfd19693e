//! Sessions that an operator has opened for agents, and tickets by which programs of theirs open their
//! own: whoever has the token's id and no ticket opens nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use syscap_format::{
    AgentId, DecodeError, Decoder, Encoder, Leaf, Reason, Refused, TokenId, field::Field, leaf,
};

use crate::Error;
use crate::server::offered::{NEW_NAMES_MAX, Prefix};
use crate::server::{Holding, LocalSession};
use crate::tools::ConnectionId;
use crate::transport::limits::{
    LENT_MAX, TICKET_CONNECTIONS_MAX, TICKET_SESSIONS_MAX, TICKET_TIME,
};
use crate::transport::message::Ticketed;

/// Opens a session that was lent, once, at the server that it was lent at; or a session of its own for
/// each connection that shows it, while the process is there that has registered it. Its bearer can
/// open the session.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionTicket([u8; 32]);

impl SessionTicket {
    /// The ticket of these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes, which are the secret.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Field for SessionTicket {
    const SHAPE: &'static str = "bstr of 32";

    fn put(&self, encoder: &mut Encoder) {
        self.0.put(encoder);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Field::take(decoder).map(Self)
    }
}

impl fmt::Debug for SessionTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionTicket(..)")
    }
}

/// What tickets open. A ticket is found by its hash, so that the time that a look takes says nothing
/// about it.
#[derive(Default)]
pub(crate) struct Lent(Mutex<State>);

#[derive(Default)]
struct State {
    /// Sessions that wait to be taken, with who has lent them.
    sessions: BTreeMap<Leaf, (ConnectionId, Arc<LocalSession>)>,
    /// Tickets that open sessions of their own, as long as who registered them is there.
    tickets: BTreeMap<Leaf, Ticket>,
}

/// A ticket of a process that stays: each connection that shows it gets a session of its own.
struct Ticket {
    by: ConnectionId,
    agent: AgentId,
    token: TokenId,
    prefixes: Vec<Prefix>,
    client_runs: bool,
    /// How many new names it has put on record.
    new_names: usize,
    /// The connections that have shown it, and are there.
    at: BTreeSet<ConnectionId>,
    /// When the present minute began, and how many sessions were opened in it: each is on record, and
    /// paid by nobody.
    minute: (Instant, usize),
}

impl Lent {
    /// Lends a session that `from` has opened.
    pub(crate) fn lend(
        &self,
        runtime: &Holding,
        from: ConnectionId,
        session: Arc<LocalSession>,
    ) -> Result<SessionTicket, Error> {
        let ticket = SessionTicket(runtime.core.salts.bytes()?);
        let mut state = self.state();
        if state.sessions.len() >= LENT_MAX {
            return Err(Refused::new(Reason::TooManySessions).into());
        }
        state.sessions.insert(leaf(ticket.as_bytes()), (from, session));
        Ok(ticket)
    }

    /// The session of a ticket, which opens nothing from here on.
    pub(crate) fn take(&self, ticket: &SessionTicket) -> Option<Arc<LocalSession>> {
        self.state().sessions.remove(&leaf(ticket.as_bytes())).map(|(_, session)| session)
    }

    /// Takes a ticket that a process has drawn, and stays for. The same one, registered again by
    /// another connection, is that one's from here on: its process has come back.
    pub(crate) fn register(
        &self,
        by: ConnectionId,
        Ticketed { ticket, agent, token, prefixes, client_runs }: Ticketed,
    ) -> Result<(), Refused> {
        let (name, mut state) = (leaf(ticket.as_bytes()), self.state());
        if let Some(known) = state.tickets.get_mut(&name) {
            let its = (&known.agent, known.token, &known.prefixes, known.client_runs);
            if its != (&agent, token, &prefixes, client_runs) {
                return Err(Refused::new(Reason::NotBound).field("ticket"));
            }
            known.by = by;
            return Ok(());
        }
        if state.tickets.len() >= LENT_MAX {
            return Err(Refused::new(Reason::TooManySessions).field("tickets"));
        }
        let (new_names, at, minute) = (0, BTreeSet::new(), (Instant::now(), 0));
        let ticket = Ticket { by, agent, token, prefixes, client_runs, new_names, at, minute };
        state.tickets.insert(name, ticket);
        Ok(())
    }

    /// Whose session a ticket opens that is shown by a connection; it counts among its connections
    /// from here on. `None` where there is no such ticket.
    pub(crate) fn show(
        &self,
        ticket: &SessionTicket,
        shown_by: ConnectionId,
    ) -> Option<Result<(Leaf, AgentId, TokenId), Refused>> {
        let (name, mut state) = (leaf(ticket.as_bytes()), self.state());
        let others = state.tickets.iter().filter(|(other, _)| **other != name);
        if others.into_iter().any(|(_, other)| other.at.contains(&shown_by)) {
            // What it offers, and who runs it, would be of two.
            let refused = Refused::new(Reason::NotBound).field("ticket");
            return Some(Err(refused.allowed("the ticket that this connection has shown")));
        }
        let found = state.tickets.get_mut(&name)?;
        if !found.at.contains(&shown_by) && found.at.len() >= TICKET_CONNECTIONS_MAX {
            let got = format_args!("{} connections", found.at.len());
            let refused = Refused::new(Reason::Overloaded).field("ticket").got(&got);
            return Some(Err(refused.allowed(&TICKET_CONNECTIONS_MAX)));
        }
        if found.minute.0.elapsed() >= TICKET_TIME {
            found.minute = (Instant::now(), 0);
        }
        if found.minute.1 >= TICKET_SESSIONS_MAX {
            let refused = Refused::new(Reason::Overloaded).field("ticket").got(&found.minute.1);
            let most = format_args!("{TICKET_SESSIONS_MAX} sessions in a minute");
            return Some(Err(refused.allowed(&most)));
        }
        found.minute.1 = found.minute.1.saturating_add(1);
        found.at.insert(shown_by);
        Some(Ok((name, found.agent.clone(), found.token)))
    }

    /// The names that a connection may offer tools under, by the ticket that it has shown.
    pub(crate) fn prefixes_of(&self, shown_by: ConnectionId) -> Option<Vec<Prefix>> {
        let state = self.state();
        let mut all = state.tickets.values();
        let ticket = all.find(|ticket| ticket.at.contains(&shown_by))?;
        (!ticket.prefixes.is_empty()).then(|| ticket.prefixes.clone())
    }

    /// True if the ticket of a connection says that it may run itself what it offers.
    pub(crate) fn may_run(&self, shown_by: ConnectionId) -> bool {
        let state = self.state();
        state.tickets.values().any(|ticket| ticket.client_runs && ticket.at.contains(&shown_by))
    }

    /// Counts new names that the ticket of a connection puts on record, where there is room for all.
    pub(crate) fn takes_new_names(&self, shown_by: ConnectionId, count: usize) -> bool {
        let mut state = self.state();
        let mut all = state.tickets.values_mut();
        let Some(ticket) = all.find(|ticket| ticket.at.contains(&shown_by)) else { return false };
        let more = ticket.new_names.saturating_add(count);
        let fits = more <= NEW_NAMES_MAX;
        if fits {
            ticket.new_names = more;
        }
        fits
    }

    /// The agent whose session a ticket opens.
    pub(crate) fn agent_of(&self, ticket: &SessionTicket) -> Option<AgentId> {
        let (name, state) = (leaf(ticket.as_bytes()), self.state());
        let lent = state.sessions.get(&name).map(|(_, session)| session.agent().clone());
        lent.or_else(|| state.tickets.get(&name).map(|ticket| ticket.agent.clone()))
    }

    /// The sessions that a connection has delegated and that were not taken.
    pub(crate) fn take_all(&self, from: ConnectionId) -> Vec<Arc<LocalSession>> {
        let mut state = self.state();
        let lent = state.sessions.extract_if(.., |_, (by, _)| *by == from);
        lent.map(|(_, (_, session))| session).collect()
    }

    /// A connection has gone, and its tickets with it; those that had shown them end, too.
    pub(crate) fn gone(&self, connection: ConnectionId) -> BTreeSet<ConnectionId> {
        let mut state = self.state();
        for ticket in state.tickets.values_mut() {
            ticket.at.remove(&connection);
        }
        let gone = state.tickets.extract_if(.., |_, ticket| ticket.by == connection);
        gone.flat_map(|(_, ticket)| ticket.at).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step that can't break off half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
