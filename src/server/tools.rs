//! Delegated tools, offered and taken back.

use std::sync::Arc;

use syscap_format::{Manifest, Seq, ToolId};

use crate::Error;
use crate::inspect::view::RUN_MARK;
use crate::server::{By, Holding};
use crate::tools::place::Place;
use crate::tools::provide::{Offer, Offered, Provider, Standing};
use crate::tools::{ConnectionId, Withdrawn, bounded, delta, identity, names, names_of};

impl Holding {
    /// See [`Runtime::provide`](crate::Runtime::provide).
    pub(crate) fn provide(
        &self,
        connection: ConnectionId,
        tools: Vec<Offered>,
        provider: &Arc<dyn Provider>,
    ) -> Result<Vec<Offer>, Error> {
        let _one_at_a_time = self.tooling();
        let whole = |tool: Offered| Offered { manifest: bounded(tool.manifest), ..tool };
        let tools: Vec<Offered> = tools.into_iter().map(whole).collect();
        let offered: Vec<Manifest> = tools.iter().map(|tool| tool.manifest.clone()).collect();
        let here = self.core.look(names);
        let table = self.providers.lock();
        let known = |manifest: &Manifest| table.tools.contains_key(&manifest.tool);
        // Nothing of this process compares what the manifest does not say how to compare.
        let fits = |manifest: &Manifest| {
            let named = |declared: &str| {
                manifest.argument_resources().any(|own| *own.dimension == *declared)
            };
            manifest.dimensions.iter().all(|declared| named(declared))
        };
        let is_free = |name: &ToolId| !here.contains(name) && name.as_str() != RUN_MARK;
        let free = |manifest: &Manifest| names_of(manifest).all(is_free);
        let new: Vec<Manifest> =
            offered.iter().filter(|m| !known(m) && fits(m) && free(m)).cloned().collect();
        let pins = table.room_for(connection, &offered, &new)?;
        drop(table);
        let mut waiting: Vec<ToolId> = Vec::new();
        if !new.is_empty() {
            let names = new.iter().map(|manifest| manifest.tool.clone()).collect();
            // An agent's program puts only so many on record.
            let by_ticket = self.providers.lock().tickets.contains_key(&connection);
            if by_ticket && !self.lent().takes_new_names(connection, new.len()) {
                waiting = names;
            } else {
                match self.change_tools(delta(new, Vec::new(), &self.providers)?, By::Signer) {
                    Ok(_) => drop(self.providers.lock().pins.insert(connection, pins)),
                    Err(Error::Signer(_)) => waiting = names,
                    Err(error) => return Err(error),
                }
            }
        }
        // What is a provider's is dropped when nothing is locked: it may do anything then.
        let mut gone = Vec::new();
        let mut table = self.providers.lock();
        let offers = tools.into_iter().map(|tool| {
            let own = |place: &mut Place| place.connection == connection;
            let place = |tool| Place::new(connection, tool, Arc::clone(provider));
            let manifest = tool.manifest.clone();
            if waiting.contains(&manifest.tool) {
                let places = table.awaiting.entry(manifest.tool.clone()).or_default();
                gone.extend(places.extract_if(.., own));
                places.push(place(tool));
                return Offer { manifest, standing: Standing::New };
            }
            let known = table.tools.get_mut(&manifest.tool).filter(|_| fits(&manifest));
            let Some(known) = known else {
                return Offer { manifest, standing: Standing::Taken };
            };
            gone.extend(known.places.extract_if(.., own));
            let place = place(tool);
            let standing = place.standing(identity(&known.pinned));
            known.places.push(place);
            Offer { manifest: known.pinned.clone(), standing }
        });
        let offers = offers.collect();
        drop((table, gone));
        Ok(offers)
    }

    /// Takes back what a connection offers: all of it, or some.
    pub(crate) fn withdraw(&self, connection: ConnectionId, which: Withdrawn<'_>) {
        let mut gone = Vec::new();
        let mut table = self.providers.lock();
        for (tool, known) in &mut table.tools {
            match which {
                // It has gone: nothing of it is left.
                Withdrawn::All => {
                    let own = |place: &mut Place| place.connection == connection;
                    gone.extend(known.places.extract_if(.., own).map(|place| place.provider));
                }
                Withdrawn::These(tools) if tools.contains(tool) => {
                    let own = known.places.iter_mut().filter(|p| p.connection == connection);
                    gone.extend(own.map(|place| place.provider.take()));
                }
                Withdrawn::These(_) => {}
            }
        }
        for (tool, places) in &mut table.awaiting {
            let of_these = match which {
                Withdrawn::All => true,
                Withdrawn::These(tools) => tools.contains(tool),
            };
            let own = |place: &mut Place| of_these && place.connection == connection;
            gone.extend(places.extract_if(.., own).map(|place| place.provider));
        }
        table.awaiting.retain(|_, places| !places.is_empty());
        if let Withdrawn::All = which {
            table.pins.remove(&connection);
            table.tickets.remove(&connection);
        }
        drop(table);
        drop(gone);
    }

    /// The delegated tools as they are on record; for each, how every offer of it stands, with
    /// the manifest that was offered.
    pub(crate) fn delegated(&self) -> Vec<(Manifest, Vec<Offer>)> {
        self.providers.delegated()
    }

    /// Says through which connection a session calls: its calls go to what that one offers
    /// first.
    pub(crate) fn bind(&self, session: Seq, connection: ConnectionId) {
        self.providers.lock().sessions.insert(session, connection);
    }

    /// Forgets a session that has ended, and gives up what it still runs.
    pub(crate) fn unbind(&self, session: Seq) {
        self.providers.unbind(session);
    }
}
