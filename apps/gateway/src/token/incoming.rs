//! Messages from the home's server, read by the thread that does the tasks: a thread of its own
//! would be woken only to wake that one.

use std::sync::Arc;

use syscap::incoming::{Drained, Incoming, ReadBy};
use tokio::{io::Interest, io::unix::AsyncFd, runtime::Handle, time::timeout_at};

/// Has it read by a task. If that ends before the connection does, a thread reads on.
pub(crate) fn read_by(handle: &Handle) -> ReadBy {
    let handle = handle.clone();
    Arc::new(move |incoming| drop(handle.spawn(read(incoming))))
}

async fn read(incoming: Incoming) {
    let Ok(incoming) = AsyncFd::with_interest(incoming, Interest::READABLE) else { return };
    let mut until = None;
    loop {
        let readable = match until {
            None => incoming.readable().await.map(Some),
            // It is looked at once more by then.
            Some(until) => timeout_at(until, incoming.readable()).await.ok().transpose(),
        };
        let Ok(mut readable) = readable else { return };
        match incoming.get_ref().drain() {
            Drained::More => {}
            Drained::All(rest) => {
                readable.iter_mut().for_each(|readable| readable.clear_ready());
                until = rest.map(Into::into);
            }
            Drained::Over => return,
        }
    }
}
