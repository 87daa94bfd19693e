//! Which server listed which resource.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Most URIs of which it is kept who listed them.
const ROUTES_MAX: usize = 16_384;

#[derive(Default)]
pub(crate) struct Routes(Mutex<HashMap<String, usize>>);

impl Routes {
    /// Notes who listed it.
    pub(crate) fn learn(&self, uri: &str, place: usize) {
        let mut routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if routes.len() < ROUTES_MAX || routes.contains_key(uri) {
            routes.insert(uri.to_owned(), place);
        }
    }

    /// The server that listed it.
    pub(crate) fn find(&self, uri: &str) -> Option<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(uri).copied()
    }
}
