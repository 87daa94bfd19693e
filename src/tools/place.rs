//! The offers of delegated tools, and the choice among them for a call.

use std::sync::Arc;

use syscap_format::{DefinitionHash, Leaf, Manifest, Reason};

use crate::tools::provide::{Location, Offered, Provider, Standing};
use crate::tools::{ConnectionId, identity};

/// A delegated tool as it is on record, and who offers it.
pub(crate) struct Known {
    pub(crate) pinned: Manifest,
    /// Its length in bytes.
    pub(crate) bytes: usize,
    pub(crate) places: Vec<Place>,
}

/// An offer of a tool.
pub(crate) struct Place {
    pub(crate) connection: ConnectionId,
    pub(crate) offered: Manifest,
    /// The identity of the offered definition: computed once, not with every call.
    identity: DefinitionHash,
    /// `None` where it was taken back: the connection's own calls then go to nobody.
    pub(crate) provider: Option<Arc<dyn Provider>>,
    location: Option<Location>,
}

/// Who runs a call, and where.
pub(crate) struct Chosen<'a> {
    pub(crate) provider: &'a Arc<dyn Provider>,
    pub(crate) location: Option<&'a Location>,
}

impl Place {
    pub(crate) fn new(
        connection: ConnectionId,
        offered: Offered,
        provider: Arc<dyn Provider>,
    ) -> Self {
        let Offered { manifest: offered, location } = offered;
        let identity = identity(&offered);
        Self { connection, offered, identity, provider: Some(provider), location }
    }

    pub(crate) fn standing(&self, pinned: DefinitionHash) -> Standing {
        if self.identity == pinned { Standing::Ready } else { Standing::Changed }
    }

    fn take(&self, pinned: DefinitionHash) -> Result<Chosen<'_>, Reason> {
        match (&self.provider, self.standing(pinned)) {
            (Some(provider), Standing::Ready) => {
                Ok(Chosen { provider, location: self.location.as_ref() })
            }
            (Some(_), _) => Err(Reason::ToolChanged),
            (None, _) => Err(Reason::NoProvider),
        }
    }
}

impl Known {
    /// The provider of a call: of its own connection if there is one, else of any. `pinned` is what
    /// the kernel's own manifest stands for.
    pub(crate) fn provider<'t>(
        &self,
        own: Option<ConnectionId>,
        pinned: DefinitionHash,
        ticket_of: impl Fn(ConnectionId) -> Option<&'t Leaf>,
    ) -> Result<Chosen<'_>, Reason> {
        // Who offers the tool, or did, means its own: another's may reach other things.
        if let Some(place) = self.places.iter().rev().find(|p| Some(p.connection) == own) {
            return place.take(pinned);
        }
        // What a ticket's programs offer is for their sessions, and what is run by the desk's clients
        // is nobody else's to run.
        let ticket = own.and_then(&ticket_of);
        let of_ticket = ticket.is_some()
            && self.places.iter().any(|place| ticket_of(place.connection) == ticket);
        let wanted = if of_ticket { ticket } else { None };
        let others = self.places.iter().rev().filter(|place| {
            place.connection != ConnectionId::DESK && ticket_of(place.connection) == wanted
        });
        let mut why = Reason::NoProvider;
        for place in others {
            match place.take(pinned) {
                Err(Reason::ToolChanged) => why = Reason::ToolChanged,
                Err(_) => {}
                ready => return ready,
            }
        }
        Err(why)
    }
}
