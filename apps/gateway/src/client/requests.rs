//! Requests that are being answered: one of each id at a time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio_util::sync::CancellationToken;

/// Most requests that are out or wait; of more none comes to the kernel.
const REQUESTS_MAX: usize = 4_096;

#[derive(Default)]
pub(crate) struct Requests(Mutex<HashMap<RequestId, Twin>>);

/// A request that is being answered, as a second one of its id sees it.
#[derive(Clone)]
struct Twin {
    /// Cancelled when it has been answered.
    done: CancellationToken,
    cancel: CancellationToken,
}

/// While it lives the request is being answered.
pub(crate) struct RequestGuard<'r> {
    requests: &'r Requests,
    id: RequestId,
    done: CancellationToken,
}

impl Requests {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Twin>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request in. A second one of the same id waits for the first.
    pub(crate) async fn enter(
        &self,
        id: &RequestId,
        cancel: &CancellationToken,
    ) -> Result<RequestGuard<'_>, &'static str> {
        let done = CancellationToken::new();
        loop {
            let own = Twin { done: done.clone(), cancel: cancel.clone() };
            let other = {
                let mut requests = self.lock();
                match requests.get(id) {
                    Some(other) => other.clone(),
                    None if requests.len() >= REQUESTS_MAX => {
                        return Err("too many calls are out");
                    }
                    None => {
                        requests.insert(id.clone(), own);
                        return Ok(RequestGuard { requests: self, id: id.clone(), done });
                    }
                }
            };
            // Who gives the second up means the first: they can't be told apart.
            tokio::select! {
                () = other.done.cancelled() => {}
                () = cancel.cancelled() => {
                    other.cancel.cancel();
                    other.done.cancelled().await;
                }
            }
        }
    }
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        self.requests.lock().remove(&self.id);
        self.done.cancel();
    }
}
