//! Messages that wait to be written to the client, with a bound in bytes.
//!
//! A client that does not read stops being read from (see the transport); what it is told unasked
//! is said later where once is enough, and else not at all.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::say::say;

/// Most bytes that wait while more is taken in. An answer is never dropped, so those that were
/// being made come on top.
pub(crate) const BYTES_MAX: usize = 8 << 20;
/// Most bytes that wait while the client is told or asked anything unasked: a server that says
/// much must not stop the client's own requests.
const UNASKED_BYTES_MAX: usize = BYTES_MAX / 2;
/// Most notifications that are kept to be said once there is room.
const LATER_MAX: usize = 256;
/// Longest of them, in bytes.
const LATER_BYTES_MAX: usize = 4_096;
/// Most bytes that are handed to the system at once.
const WRITE_BYTES: usize = 256 << 10;

/// Most requests for lists that are being answered while more is taken in: a request is short and
/// a list is long, so that requests wait, unread, and not answers. Of long lists it is fewer: so many
/// as have [`BYTES_MAX`] together.
const LISTS_MAX: usize = 64;
/// The length of a list before one was made, in bytes.
const LIST_BYTES: usize = BYTES_MAX / 8;

/// The client leaves too much unread to be asked anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client does not read what it is sent")]
pub(crate) struct Full;

/// Decides if repeating a notification adds anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// It does: that something changed.
    Same,
    /// It does not.
    News,
}

#[derive(Default)]
pub(crate) struct Outbox {
    state: Mutex<Lines>,
    /// Something is to be written.
    filled: Notify,
    /// Cancelled when nothing more can be written.
    closed: CancellationToken,
    /// Something was written, or a list was made.
    written: Notify,
}

#[derive(Default)]
struct Lines {
    /// Whole lines.
    waiting: Vec<u8>,
    /// Bytes that were taken to be written, and are not yet.
    writing: usize,
    /// Notifications to be said once there is room, each once.
    later: BTreeSet<Vec<u8>>,
    /// Requests for lists that are being answered.
    lists: usize,
    /// The longest list so far, in bytes; 0 before the first.
    list_bytes: usize,
    /// How many were dropped since the client last kept up.
    dropped: u64,
}

impl Lines {
    fn bytes(&self) -> usize {
        self.waiting.len().saturating_add(self.writing)
    }

    /// How many requests for lists are answered at a time.
    fn lists_max(&self) -> usize {
        let each = if self.list_bytes == 0 { LIST_BYTES } else { self.list_bytes };
        BYTES_MAX.checked_div(each).unwrap_or(0).clamp(1, LISTS_MAX)
    }

    /// Says what was kept; how many were dropped, where that is news.
    fn catch_up(&mut self) -> u64 {
        if self.bytes() > UNASKED_BYTES_MAX / 2 {
            return 0;
        }
        while self.bytes() <= UNASKED_BYTES_MAX {
            let Some(line) = self.later.pop_first() else { break };
            self.waiting.extend_from_slice(&line);
        }
        std::mem::take(&mut self.dropped)
    }
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an answer there.
    pub(crate) fn answer(&self, line: &[u8]) {
        if !self.closed.is_cancelled() {
            self.lock().waiting.extend_from_slice(line);
            self.filled.notify_one();
        }
    }

    /// Puts a list there.
    pub(crate) fn answer_list(&self, line: &[u8]) {
        let mut lines = self.lock();
        lines.list_bytes = lines.list_bytes.max(line.len());
        drop(lines);
        self.answer(line);
    }

    /// Takes in a request for a list.
    pub(crate) fn enter_list(self: &Arc<Self>) -> ListGuard {
        let mut lines = self.lock();
        lines.lists = lines.lists.saturating_add(1);
        drop(lines);
        ListGuard(Arc::clone(self))
    }

    /// Puts a request to the client there.
    ///
    /// # Errors
    /// Where the client leaves too much unread.
    pub(crate) fn ask(&self, line: &[u8]) -> Result<(), Full> {
        if self.lock().bytes() > UNASKED_BYTES_MAX {
            return Err(Full);
        }
        self.answer(line);
        Ok(())
    }

    /// Puts a notification there. While the client leaves too much unread it is kept for later
    /// where it says the same however often, and dropped else.
    pub(crate) fn tell(&self, line: Vec<u8>, repeats: Repeats) {
        let mut lines = self.lock();
        if lines.bytes() <= UNASKED_BYTES_MAX && lines.later.is_empty() {
            drop(lines);
            return self.answer(&line);
        }
        let short = line.len() <= LATER_BYTES_MAX && lines.later.len() < LATER_MAX;
        if repeats == Repeats::Same && (short || lines.later.contains(&line)) {
            lines.later.insert(line);
            return;
        }
        lines.dropped = lines.dropped.saturating_add(1);
        let first = lines.dropped == 1;
        drop(lines);
        if first {
            say("the client does not read what it is sent: it is told no progress and no log \
                 messages until it does");
        }
    }

    /// Waits until the client leaves little enough unread that more may be done for it.
    pub(crate) async fn room(&self) {
        self.until(|lines| lines.bytes() <= BYTES_MAX).await;
    }

    /// Waits until more of its requests may be taken in.
    pub(crate) async fn room_for_requests(&self) {
        self.until(|lines| lines.bytes() <= BYTES_MAX && lines.lists < lines.lists_max()).await;
    }

    /// Waits until all is written, or nothing more can be.
    pub(crate) async fn flushed(&self) {
        self.until(|lines| lines.bytes() == 0 && lines.later.is_empty()).await;
    }

    async fn until(&self, holds: impl Fn(&Lines) -> bool) {
        loop {
            let written = self.written.notified();
            tokio::pin!(written);
            // From here on nothing is missed.
            written.as_mut().enable();
            if self.closed.is_cancelled() || holds(&self.lock()) {
                return;
            }
            tokio::select! {
                () = written => {}
                () = self.closed.cancelled() => return,
            }
        }
    }

    /// Writes what is put there until that fails, or the future is dropped.
    pub(crate) async fn write<W: AsyncWrite + Unpin>(&self, mut to: W) -> std::io::Result<()> {
        let _closed = self.closed.clone().drop_guard();
        loop {
            let lines = self.take();
            if lines.is_empty() {
                self.filled.notified().await;
                continue;
            }
            for part in lines.chunks(WRITE_BYTES) {
                to.write_all(part).await?;
                self.wrote(part.len());
            }
            to.flush().await?;
        }
    }

    fn take(&self) -> Vec<u8> {
        let mut lines = self.lock();
        let waiting = std::mem::take(&mut lines.waiting);
        lines.writing = waiting.len();
        waiting
    }

    fn wrote(&self, bytes: usize) {
        let mut lines = self.lock();
        lines.writing = lines.writing.saturating_sub(bytes);
        let dropped = lines.catch_up();
        drop(lines);
        self.written.notify_waiters();
        if dropped > 0 {
            say(&format!("the client reads again; {dropped} notifications were dropped"));
        }
    }
}

/// While it lives, a request for a list is being answered.
pub(crate) struct ListGuard(Arc<Outbox>);

impl Drop for ListGuard {
    fn drop(&mut self) {
        let mut lines = self.0.lock();
        lines.lists = lines.lists.saturating_sub(1);
        drop(lines);
        self.0.written.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, duplex};

    use super::*;

    fn line(letter: &str, bytes: usize) -> Vec<u8> {
        let mut line = letter.repeat(bytes - 1).into_bytes();
        line.push(b'\n');
        line
    }

    /// A client that does not read gets a repeated notification once, and loses the others; it is
    /// asked nothing.
    #[tokio::test]
    async fn unread_messages_are_bounded() {
        let outbox = Outbox::default();
        outbox.answer(&line("a", UNASKED_BYTES_MAX + 1));
        for _ in 0..1_000 {
            outbox.tell(line("p", 1_000), Repeats::News);
            outbox.tell(line("c", 100), Repeats::Same);
        }
        assert_eq!(outbox.ask(&line("q", 10)), Err(Full));
        assert_eq!(outbox.lock().bytes(), UNASKED_BYTES_MAX + 1);
        assert_eq!(outbox.lock().later.len(), 1);
        assert_eq!(outbox.lock().dropped, 1_000);
        for n in 0..1_000 {
            outbox.tell(format!("{n}\n").into_bytes(), Repeats::Same);
        }
        outbox.tell(line("l", LATER_BYTES_MAX + 1), Repeats::Same);
        assert_eq!(outbox.lock().later.len(), LATER_MAX);
        // The client's own requests still have room; one more answer, and they wait.
        outbox.room().await;
        outbox.answer(&line("a", UNASKED_BYTES_MAX));
        let waits = tokio::time::timeout(std::time::Duration::from_millis(50), outbox.room());
        assert!(waits.await.is_err());
    }

    /// Once it reads it gets every answer, and what was kept.
    #[tokio::test]
    async fn resumed_reader_gets_the_kept_messages() {
        let outbox = Outbox::default();
        outbox.answer(&line("a", BYTES_MAX + 1));
        outbox.tell(line("c", 100), Repeats::Same);
        let (near, mut far) = duplex(1_024);
        let mut got = Vec::new();
        tokio::select! {
            written = outbox.write(near) => panic!("{written:?}"),
            _ = far.read_to_end(&mut got) => panic!("it goes on"),
            () = outbox.flushed() => {}
        }
        let mut rest = vec![0; BYTES_MAX + 101 - got.len()];
        far.read_exact(&mut rest).await.unwrap();
        got.extend(rest);
        assert!(got.ends_with(&line("c", 100)));
        outbox.room().await;
    }

    /// While so many lists are being made nothing more is taken in.
    #[tokio::test]
    async fn lists_are_bounded() {
        let wait = std::time::Duration::from_millis(50);
        // Before one was made it is not known how long they are.
        for (longest, most) in [(0, 8), (1_000, LISTS_MAX), (BYTES_MAX / 2, 2), (BYTES_MAX, 1)] {
            let outbox = Arc::new(Outbox::default());
            outbox.lock().list_bytes = longest;
            let mut lists: Vec<_> = (1..most).map(|_| outbox.enter_list()).collect();
            outbox.room_for_requests().await;
            lists.push(outbox.enter_list());
            let waits = tokio::time::timeout(wait, outbox.room_for_requests());
            assert!(waits.await.is_err(), "{longest}");
            lists.pop();
            outbox.room_for_requests().await;
        }
        let outbox = Outbox::default();
        outbox.answer_list(&line("l", 1_000));
        outbox.answer_list(&line("l", 10));
        assert_eq!(outbox.lock().list_bytes, 1_000);
    }

    /// No message waits for a client that is gone, and none is kept for it.
    #[tokio::test]
    async fn a_client_that_is_gone_is_not_waited_for() {
        let outbox = Outbox::default();
        outbox.answer(&line("a", BYTES_MAX + 1));
        let (near, far) = duplex(1_024);
        drop(far);
        assert!(outbox.write(near).await.is_err());
        outbox.room().await;
        outbox.flushed().await;
        let before = outbox.lock().waiting.len();
        outbox.answer(&line("a", 100));
        assert_eq!(outbox.lock().waiting.len(), before);
    }
}
