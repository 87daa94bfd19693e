//! One server over all its lives: its connection now, what was taken of it, when to list again.

use std::sync::{
    Arc, Mutex, PoisonError, RwLock,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    capabilities::WireKind, manifest::Definition, options::ServerCommand, quota::Quota,
    upstream::Connection,
};

/// See the module.
pub(crate) struct McpServer {
    pub(crate) name: String,
    pub(crate) command: ServerCommand,
    /// Wakes who lists its tools anew.
    pub(crate) relist: Notify,
    /// What has been taken of its lists.
    pub(crate) quota: Mutex<Quota>,
    /// Cancelled when it has been started for the first time, or that failed.
    pub(crate) settled: CancellationToken,
    /// Whether the gateway began without it, and it has not come since.
    late: AtomicBool,
    connection: RwLock<Option<Arc<Connection>>>,
}

impl McpServer {
    /// One of so many.
    pub(crate) fn new(command: ServerCommand, servers: usize) -> Self {
        Self {
            name: command.name.clone(),
            command,
            relist: Notify::new(),
            quota: Mutex::new(Quota::new(servers)),
            settled: CancellationToken::new(),
            late: AtomicBool::new(false),
            connection: RwLock::default(),
        }
    }

    /// Notes that the gateway begins, with or without it.
    pub(crate) fn begins(&self) {
        self.late.store(self.connection().is_none(), Ordering::Release);
    }

    /// Whether the gateway began without it; once.
    pub(crate) fn joins(&self) -> bool {
        self.late.swap(false, Ordering::AcqRel)
    }

    /// The connection, where it runs.
    pub(crate) fn connection(&self) -> Option<Arc<Connection>> {
        let connection = self.connection.read().unwrap_or_else(PoisonError::into_inner).clone();
        connection.filter(|connection| !connection.gone.is_cancelled())
    }

    /// Puts another connection in its place, or none. What the one before listed goes with it.
    pub(crate) fn set_connection(&self, connection: Option<Arc<Connection>>) {
        *self.connection.write().unwrap_or_else(PoisonError::into_inner) = connection;
    }

    /// Its tools as the connection that there is last listed them.
    pub(crate) fn definitions(&self) -> Vec<Definition> {
        self.connection()
            .and_then(|connection| connection.listing().definitions.clone())
            .unwrap_or_default()
    }

    /// Whether it speaks the newer wire now.
    pub(crate) fn is_stateless(&self) -> bool {
        self.connection().is_some_and(|connection| connection.wire == WireKind::Stateless)
    }
}
