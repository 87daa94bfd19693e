//! A home while this process holds it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use syscap_format::{Seq, field::Field};

use crate::Error;
use crate::driver::guard::caught;
use crate::server::Holding;
use crate::server::accept::Server;
use crate::server::client::Client;
use crate::tools::ConnectionId;
use crate::transport::Ask;
use crate::transport::frame::take;
use crate::transport::limits::{DRAIN_TIME, END_TIME, TRY_PAUSE};

/// The home, held by this process.
pub(crate) struct Held {
    pub(crate) holding: Holding,
    /// This process, as a client of its own home.
    pub(crate) client: Client,
    /// `None` where it is served to nobody.
    pub(super) server: Option<Server>,
    /// The number of uses by this process itself at present.
    pub(super) working: AtomicUsize,
}

/// Something that this process does; counted off also where it panics.
pub(super) struct Working<'a>(&'a AtomicUsize);

impl<'a> Working<'a> {
    pub(super) fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Held {
    pub(super) fn new(holding: Holding, server: Option<Server>) -> Self {
        let client = Client::new(ConnectionId::HOLDER, None);
        Self { holding, client, server, working: AtomicUsize::new(0) }
    }

    /// Ends it: the attached first, then what this process does itself. The record that ends the
    /// log is told to those who asked for it.
    pub(super) fn close(&self) -> Result<Seq, Error> {
        let since = Instant::now();
        if let Some(server) = &self.server {
            // Whatever panics with it, the home is closed.
            caught(|| server.close()).unwrap_or(());
        }
        let works = || self.working.load(Ordering::SeqCst) > 0;
        while works() && since.elapsed() < DRAIN_TIME {
            thread::sleep(TRY_PAUSE);
        }
        let since = Instant::now();
        // More than once: what was about to run has no run to give up yet.
        loop {
            caught(|| self.holding.give_up_runs()).unwrap_or(());
            if !works() || since.elapsed() > END_TIME {
                break;
            }
            thread::sleep(TRY_PAUSE);
        }
        let ended = self.holding.end();
        if let Some(server) = &self.server {
            caught(|| server.tell_closed(&ended)).unwrap_or(());
        }
        ended
    }

    /// Does what this process asks for itself.
    pub(super) fn serve<T: Field>(&self, ask: Ask) -> Result<T, Error> {
        let answer = self.holding.serve(&self.client, ask)?;
        take(&answer).map_err(|_| Error::BrokeOff)
    }

    /// True if it serves the home to others.
    pub(super) fn is_served(&self) -> bool {
        self.server.is_some()
    }
}
