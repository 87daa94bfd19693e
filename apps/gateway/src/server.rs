//! One server over all its lives: its connection now, what was taken of it, when to list again.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::Notify;

use crate::{
    capabilities::WireKind, manifest::Definition, options::ServerCommand, quota::Quota,
    upstream::Link,
};

/// See the module.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    /// Wakes who lists its tools anew.
    pub(crate) relist: Notify,
    /// What has been taken of its lists.
    pub(crate) quota: Mutex<Quota>,
    link: RwLock<Option<Arc<Link>>>,
}

impl Server {
    /// One of so many.
    pub(crate) fn new(command: ServerCommand, servers: usize) -> Self {
        Self {
            name: command.name,
            command: command.command,
            relist: Notify::new(),
            quota: Mutex::new(Quota::new(servers)),
            link: RwLock::default(),
        }
    }

    /// The connection, where it runs.
    pub(crate) fn link(&self) -> Option<Arc<Link>> {
        let link = self.link.read().unwrap_or_else(PoisonError::into_inner).clone();
        link.filter(|link| !link.gone.is_cancelled())
    }

    /// Puts another connection in its place, or none. What the one before listed goes with it.
    pub(crate) fn set_link(&self, link: Option<Arc<Link>>) {
        *self.link.write().unwrap_or_else(PoisonError::into_inner) = link;
    }

    /// Its tools as the connection that there is last listed them.
    pub(crate) fn definitions(&self) -> Vec<Definition> {
        self.link().and_then(|link| link.listing().definitions.clone()).unwrap_or_default()
    }

    /// Whether it speaks the newer wire now.
    pub(crate) fn is_stateless(&self) -> bool {
        self.link().is_some_and(|link| link.wire == WireKind::Stateless)
    }
}
