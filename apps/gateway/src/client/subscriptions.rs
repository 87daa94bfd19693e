//! Resources that the client has subscribed to, and how each is watched.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::client::capabilities::WireKind;

/// Most resources that are watched.
const WATCHED_MAX: usize = 256;

#[derive(Default)]
pub(crate) struct Subscriptions(Mutex<HashMap<String, Subscribed>>);

struct Subscribed {
    /// How many of the client's subscriptions want it.
    count: usize,
    at: WatchedAt,
}

/// The watch of a resource.
#[derive(Clone, Copy)]
pub(crate) struct WatchedAt {
    /// The server by its place.
    pub(crate) place: usize,
    /// The wire by which it is watched.
    pub(crate) wire: WireKind,
}

/// The step that one more subscription to a resource needs.
pub(crate) enum Joining {
    /// None: the resource is watched already.
    Watched,
    /// That it be watched.
    First,
    /// More room than there is.
    Full,
}

impl Subscriptions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Subscribed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more for a resource, where it is watched.
    pub(crate) fn join(&self, uri: &str) -> Joining {
        let mut subscribed = self.lock();
        if let Some(known) = subscribed.get_mut(uri) {
            known.count = known.count.saturating_add(1);
            return Joining::Watched;
        }
        if subscribed.len() < WATCHED_MAX { Joining::First } else { Joining::Full }
    }

    /// Notes that a resource is watched from now on, for one subscription.
    pub(crate) fn add(&self, uri: &str, at: WatchedAt) {
        let mut subscribed = self.lock();
        let known = subscribed.entry(uri.to_owned()).or_insert(Subscribed { count: 0, at });
        known.count = known.count.saturating_add(1);
    }

    /// Counts one less. For the last one: the place where the watch ends.
    pub(crate) fn leave(&self, uri: &str) -> Option<WatchedAt> {
        let mut subscribed = self.lock();
        let known = subscribed.get_mut(uri)?;
        known.count = known.count.saturating_sub(1);
        if known.count > 0 {
            return None;
        }
        subscribed.remove(uri).map(|last| last.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_watched_until_its_last_subscription_ends() {
        let subscriptions = Subscriptions::default();
        assert!(subscriptions.leave("a:").is_none());
        assert!(matches!(subscriptions.join("a:"), Joining::First));
        subscriptions.add("a:", WatchedAt { place: 3, wire: WireKind::Stateless });
        assert!(matches!(subscriptions.join("a:"), Joining::Watched));
        assert!(subscriptions.leave("a:").is_none());
        let last = subscriptions.leave("a:").unwrap();
        assert_eq!((last.place, last.wire), (3, WireKind::Stateless));
        assert!(matches!(subscriptions.join("a:"), Joining::First));
    }

    /// Two that find nothing watched at one moment both have it watched, and are two.
    #[test]
    fn both_of_two_that_are_the_first_count() {
        let subscriptions = Subscriptions::default();
        for _ in 0..2 {
            assert!(matches!(subscriptions.join("a:"), Joining::First));
        }
        for _ in 0..2 {
            subscriptions.add("a:", WatchedAt { place: 3, wire: WireKind::Session });
        }
        assert!(subscriptions.leave("a:").is_none());
        assert!(subscriptions.leave("a:").is_some());
    }

    #[test]
    fn so_many_resources_are_watched() {
        let subscriptions = Subscriptions::default();
        for n in 0..WATCHED_MAX {
            assert!(matches!(subscriptions.join(&n.to_string()), Joining::First));
            let at = WatchedAt { place: 0, wire: WireKind::Session };
            subscriptions.add(&n.to_string(), at);
        }
        assert!(matches!(subscriptions.join("one more"), Joining::Full));
        assert!(matches!(subscriptions.join("0"), Joining::Watched));
    }
}
