//! One server over all its lives: its connection now, what was taken of it, when to list again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::client::capabilities::WireKind;
use crate::governed::manifest::Definition;
use crate::options::{Passed, ServerCommand};
use crate::say::{plain, say};
use crate::upstream::method::Method;
use crate::upstream::notice::ChangedList;
use crate::upstream::quota::Quota;
use crate::upstream::{Connection, NoStart};

pub(crate) struct McpServer {
    pub(crate) name: String,
    pub(crate) command: ServerCommand,
    /// Wakes who lists its tools anew.
    pub(crate) relist: Notify,
    /// Wakes who lists its prompts anew.
    pub(crate) relist_prompts: Notify,
    /// The parts of it that pass beside tools.
    pub(crate) passed: Passed,
    /// The accepted tools.
    pub(crate) quota: Mutex<Quota>,
    /// The accepted prompts.
    pub(crate) prompts: Mutex<Quota>,
    /// Cancelled when it has been started for the first time, or that failed.
    pub(crate) settled: CancellationToken,
    /// True if the gateway began without it, and it has not come since.
    late: AtomicBool,
    /// True if it failed so often that it is not started again.
    given_up: AtomicBool,
    connection: RwLock<Option<Arc<Connection>>>,
    /// Why it could not be started the last time.
    failure: Mutex<Option<String>>,
}

impl McpServer {
    /// One of so many.
    pub(crate) fn new(command: ServerCommand, passed: Passed, servers: usize) -> Self {
        Self {
            name: command.name.clone(),
            command,
            relist: Notify::new(),
            relist_prompts: Notify::new(),
            passed,
            quota: Mutex::new(Quota::new(servers)),
            prompts: Mutex::new(Quota::of_prompts(servers)),
            settled: CancellationToken::new(),
            late: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            connection: RwLock::default(),
            failure: Mutex::default(),
        }
    }

    /// Notes that the gateway begins, with or without it.
    pub(crate) fn begins(&self) {
        self.late.store(self.connection().is_none(), Ordering::Release);
    }

    /// True, once, if the gateway began without it.
    pub(crate) fn joins(&self) -> bool {
        self.late.swap(false, Ordering::AcqRel)
    }

    /// Notes that it is not started again.
    pub(crate) fn gives_up(&self) {
        self.given_up.store(true, Ordering::Release);
    }

    /// True if it is not started again.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    /// True if it is being started, for the first time or again.
    pub(crate) fn is_starting(&self) -> bool {
        self.connection().is_none() && !self.is_given_up()
    }

    /// Notes why it could not be started, and says so.
    pub(crate) fn fails(&self, why: &NoStart) {
        say(&format!("server {}: {why}", self.name));
        let why = plain(&why.to_string());
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    /// Why it could not be started the last time, where it does not run.
    pub(crate) fn failure(&self) -> Option<String> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        failure.filter(|_| self.connection().is_none())
    }

    /// The connection, where it runs.
    pub(crate) fn connection(&self) -> Option<Arc<Connection>> {
        let connection = self.connection.read().unwrap_or_else(PoisonError::into_inner).clone();
        connection.filter(|connection| !connection.gone.is_cancelled())
    }

    /// Puts another connection in its place, or none. The lists of the one before go with it.
    pub(crate) fn set_connection(&self, connection: Option<Arc<Connection>>) {
        *self.connection.write().unwrap_or_else(PoisonError::into_inner) = connection;
    }

    /// True if it speaks the newer wire now.
    pub(crate) fn is_stateless(&self) -> bool {
        self.connection().is_some_and(|connection| connection.wire == WireKind::Stateless)
    }

    /// All that can be called of it: its tools and prompts, as the connection that there is last
    /// listed them, and what it has one of.
    pub(crate) fn definitions(&self) -> Vec<Definition> {
        let Some(connection) = self.connection() else { return Vec::new() };
        let listed = [ChangedList::Tools, ChangedList::Prompts].map(|l| connection.listing(l));
        let mut all: Vec<Definition> = listed
            .iter()
            .flat_map(|listing| listing.definitions.iter().flatten().cloned())
            .collect();
        let single = Method::of(&connection.capabilities, self.passed, &self.command.asks);
        all.extend(single.into_iter().filter_map(|method| Definition::single(method).ok()));
        all
    }
}
