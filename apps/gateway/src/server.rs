//! One server over all its lives: its connection now, its definitions, when to list again.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Notify;

use crate::{client::WireKind, manifest::Definition, upstream::Link};

/// How a server is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCommand {
    /// Its name: one component of its tools' ids.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
}

/// See the module.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    /// Wakes who lists its tools anew.
    pub(crate) relist: Notify,
    link: RwLock<Option<Arc<Link>>>,
    definitions: RwLock<Vec<Definition>>,
}

impl Server {
    pub(crate) fn new(command: ServerCommand) -> Self {
        Self {
            name: command.name,
            command: command.command,
            relist: Notify::new(),
            link: RwLock::default(),
            definitions: RwLock::default(),
        }
    }

    /// The connection, where it runs.
    pub(crate) fn link(&self) -> Option<Arc<Link>> {
        let link = self.link.read().unwrap_or_else(PoisonError::into_inner).clone();
        link.filter(|link| !link.gone.is_cancelled())
    }

    /// Puts another connection in its place, or none.
    pub(crate) fn set_link(&self, link: Option<Arc<Link>>) {
        *self.link.write().unwrap_or_else(PoisonError::into_inner) = link;
    }

    /// Its tools as it last listed them; whether that is news.
    pub(crate) fn set_definitions(&self, definitions: &[Definition]) -> bool {
        let mut known = self.definitions.write().unwrap_or_else(PoisonError::into_inner);
        let news = *known != definitions;
        *known = definitions.to_vec();
        news
    }

    /// Its tools as it last listed them.
    pub(crate) fn definitions(&self) -> Vec<Definition> {
        self.definitions.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it speaks the newer wire now.
    pub(crate) fn is_stateless(&self) -> bool {
        self.link().is_some_and(|link| link.wire == WireKind::Stateless)
    }
}
