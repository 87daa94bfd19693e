//! What a process offers and asks of each new server of its home.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use syscap_format::{Manifest, ToolId};

use crate::Error;
use crate::runtime::backend::{Backend, Step};
use crate::runtime::failover::{Failover, Provided};
use crate::tools::provide::{Offer, Offered, Provider};
use crate::transport::Ask;
use crate::transport::limits::{TOOLS_MAX, TRY_TIME};
use crate::transport::message::Ticketed;

impl Failover {
    /// Offers tools, now and to each new holder.
    pub(crate) fn provide(
        &self,
        tools: Vec<Manifest>,
        provider: Arc<dyn Provider>,
    ) -> Result<Vec<Offer>, Error> {
        let names: Vec<ToolId> = tools.iter().map(|manifest| manifest.tool.clone()).collect();
        let named = |(manifest, _): &Provided| names.contains(&manifest.tool);
        let mut offered = self.offered();
        let others = offered.iter().filter(|offer| !named(offer)).count();
        if others.saturating_add(tools.len()) > TOOLS_MAX {
            return Err(Error::TooManyTools);
        }
        let before: Vec<Provided> = offered.extract_if(.., |offer| named(offer)).collect();
        offered.extend(tools.iter().map(|manifest| (manifest.clone(), Arc::clone(&provider))));
        drop(offered);
        let offers = self.each(|up| offer(&**up, &tools, &provider, Duration::MAX));
        if offers.is_err() {
            // What was offered before still is.
            let mut offered = self.offered();
            let ours = |offer: &mut Provided| named(offer) && Arc::ptr_eq(&offer.1, &provider);
            let gone: Vec<Provided> = offered.extract_if(.., ours).collect();
            for old in before {
                if offered.iter().all(|(manifest, _)| manifest.tool != old.0.tool) {
                    offered.push(old);
                }
            }
            drop(offered);
            drop(gone);
        }
        offers
    }

    /// Does not offer them to the next holder.
    pub(crate) fn forget(&self, tools: &[ToolId]) {
        let named = |(manifest, _): &mut Provided| tools.contains(&manifest.tool);
        let gone: Vec<Provided> = self.offered().extract_if(.., named).collect();
        // A provider is dropped when nothing is locked: it may do anything then.
        drop(gone);
    }

    /// Registers a ticket, now and with each new server.
    pub(crate) fn register(&self, ticketed: Ticketed) -> Result<(), Error> {
        self.tickets().push(ticketed.clone());
        let registered = self.each(|up| up.ask(Ask::Ticket(ticketed.clone()), Duration::MAX));
        if registered.is_err() {
            self.tickets().retain(|one| one.ticket != ticketed.ticket);
        }
        registered
    }

    /// True if no new server is to be told of anything.
    pub(super) fn offers_nothing(&self) -> bool {
        self.offered().is_empty() && self.tickets().is_empty()
    }

    fn tickets(&self) -> MutexGuard<'_, Vec<Ticketed>> {
        // Every change is one step.
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a new holder to stay, and offers it everything. A tool that it does not accept can't be
    /// called.
    pub(super) fn set_up(&self, up: &dyn Backend) {
        if self.stays() {
            // One that does not hear it is over, and another is looked for.
            drop(up.ask::<bool>(Ask::Stay(true), TRY_TIME));
        }
        let tickets = self.tickets().clone();
        for ticketed in tickets {
            // One that it does not take opens nothing there.
            drop(up.ask::<()>(Ask::Ticket(ticketed), TRY_TIME));
        }
        let offered = self.offered().clone();
        let mut rest = &offered[..];
        while let Some((_, provider)) = rest.first() {
            let same = |(_, other): &&Provided| Arc::ptr_eq(provider, other);
            let count = rest.iter().take_while(same).count();
            let (these, others) = rest.split_at(count);
            let tools: Vec<Manifest> = these.iter().map(|(tool, _)| tool.clone()).collect();
            drop(offer(up, &tools, provider, TRY_TIME));
            rest = others;
        }
    }

    pub(super) fn offered(&self) -> MutexGuard<'_, Vec<Provided>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn offer(
    up: &dyn Backend,
    tools: &[Manifest],
    provider: &Arc<dyn Provider>,
    limit: Duration,
) -> Step<Vec<Offer>> {
    let tools = tools.iter().map(|tool| Offered::by(&**provider, tool.clone())).collect();
    up.provide(tools, provider, limit)
}
