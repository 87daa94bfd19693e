//! Sessions that an operator has opened for agents. A ticket opens one, once: whoever has the
//! token's id and no ticket opens nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use syscap_format::{
    AgentId, DecodeError, Decoder, Encoder, Leaf, Reason, Refused, field::Field, leaf,
};

use crate::Error;
use crate::server::{Holding, LocalSession};
use crate::tools::ConnectionId;
use crate::transport::limits::LENT_MAX;

/// Opens a session that was lent, once, at the holder that it was lent at. Its bearer can open the
/// session.
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

/// Sessions that wait to be taken. A ticket is found by its hash, so that the time that a look
/// takes says nothing about it.
#[derive(Default)]
pub(crate) struct Lent(Mutex<BTreeMap<Leaf, (ConnectionId, Arc<LocalSession>)>>);

impl Lent {
    /// Lends a session that `from` has opened.
    pub(crate) fn lend(
        &self,
        runtime: &Holding,
        from: ConnectionId,
        session: Arc<LocalSession>,
    ) -> Result<SessionTicket, Error> {
        let ticket = SessionTicket(runtime.core.salts.bytes()?);
        let mut sessions = self.sessions();
        if sessions.len() >= LENT_MAX {
            return Err(Refused::new(Reason::TooManySessions).into());
        }
        sessions.insert(leaf(ticket.as_bytes()), (from, session));
        Ok(ticket)
    }

    /// The session of a ticket, which opens nothing from here on.
    pub(crate) fn take(&self, ticket: &SessionTicket) -> Option<Arc<LocalSession>> {
        self.sessions().remove(&leaf(ticket.as_bytes())).map(|(_, session)| session)
    }

    /// The agent whose session a ticket opens.
    pub(crate) fn agent_of(&self, ticket: &SessionTicket) -> Option<AgentId> {
        let sessions = self.sessions();
        sessions.get(&leaf(ticket.as_bytes())).map(|(_, session)| session.agent().clone())
    }

    /// The sessions that a connection has delegated and that were not taken.
    pub(crate) fn take_all(&self, from: ConnectionId) -> Vec<Arc<LocalSession>> {
        let mut sessions = self.sessions();
        sessions.extract_if(.., |_, (by, _)| *by == from).map(|(_, (_, session))| session).collect()
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<Leaf, (ConnectionId, Arc<LocalSession>)>> {
        // Every change is one step that can't break off half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
