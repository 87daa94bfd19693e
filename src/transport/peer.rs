//! One connection as either side has it: asking, answering, ending.
//!
//! A request that could not be written whole never reaches the other side; one that was, and has
//! no answer when the connection ends, may have been carried out or not.

use std::collections::BTreeMap;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::transport::reply::Reply;
use crate::transport::wire::{Broken, Meanwhile, Writer};

/// Why a request was not sent: nothing of it was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotSent {
    /// The connection is at its end, or the other side is.
    Over,
    /// It is longer than a frame may be.
    TooLong,
}

/// The connection ended before the answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost;

/// One side of a connection.
pub(crate) struct Peer {
    /// For ending it, from any thread.
    stream: Arc<UnixStream>,
    out: Mutex<Out>,
    waiting: Mutex<Waiting>,
    /// True if it gave an answer that nobody could read.
    babbles: AtomicBool,
}

struct Out {
    writer: Writer,
    /// True if requests may be written. Answers may, as long as the connection lasts.
    asks: bool,
}

struct Waiting {
    next: u64,
    /// True if the connection has ended.
    over: bool,
    slots: BTreeMap<u64, Slot>,
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    NotSent(NotSent),
    Lost,
}

/// Takes an answer, or hears that there is none. It must not block: the thread that reads calls it.
pub(crate) type Told = Box<dyn FnOnce(Result<Reply, Unanswered>) + Send>;

/// Whom an answer goes to.
enum Slot {
    /// A thread that waits.
    Waits(SyncSender<Reply>),
    /// Nobody waits.
    Told(Told),
}

/// An answer that is waited for.
pub(crate) struct Pending {
    pub(crate) id: u64,
    answer: Receiver<Reply>,
}

impl Slot {
    /// No answer comes. The waiting thread learns it by the end of the channel.
    fn miss(self, why: Unanswered) {
        if let Self::Told(told) = self {
            told(Err(why));
        }
    }
}

impl Pending {
    pub(crate) fn wait(self) -> Result<Reply, Lost> {
        self.answer.recv().map_err(|_| Lost)
    }

    /// The answer, or that there is none, where that has come.
    pub(crate) fn come(&self) -> Option<Result<Reply, Lost>> {
        match self.answer.try_recv() {
            Ok(reply) => Some(Ok(reply)),
            Err(TryRecvError::Disconnected) => Some(Err(Lost)),
            Err(TryRecvError::Empty) => None,
        }
    }

    /// `None` where it took longer.
    pub(crate) fn wait_for(&self, limit: Duration) -> Option<Result<Reply, Lost>> {
        match self.answer.recv_timeout(limit) {
            Ok(reply) => Some(Ok(reply)),
            Err(RecvTimeoutError::Disconnected) => Some(Err(Lost)),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }
}

impl Peer {
    pub(crate) fn new(stream: Arc<UnixStream>) -> io::Result<Self> {
        let writer = Writer::new(Arc::clone(&stream))?;
        let waiting = Waiting { next: 0, over: false, slots: BTreeMap::new() };
        Ok(Self {
            stream,
            out: Mutex::new(Out { writer, asks: true }),
            waiting: Mutex::new(waiting),
            babbles: AtomicBool::new(false),
        })
    }

    /// Asks something.
    pub(crate) fn ask(&self, frame: impl FnOnce(u64) -> Vec<u8>) -> Result<Pending, NotSent> {
        let (slot, answer) = sync_channel(1);
        let id = self.register(Slot::Waits(slot)).map_err(|_| NotSent::Over)?;
        match self.send(&frame(id)) {
            Ok(()) => Ok(Pending { id, answer }),
            Err(not_sent) => {
                self.waiting().slots.remove(&id);
                Err(not_sent)
            }
        }
    }

    /// Asks something, and does not wait: `told` hears of it, once.
    pub(crate) fn ask_then(&self, frame: impl FnOnce(u64) -> Vec<u8>, told: Told) {
        let id = match self.register(Slot::Told(told)) {
            Ok(id) => id,
            Err(slot) => return slot.miss(Unanswered::NotSent(NotSent::Over)),
        };
        if let Err(not_sent) = self.send(&frame(id)) {
            // Where it is not there any more it has heard that the connection ended.
            let slot = self.waiting().slots.remove(&id);
            slot.into_iter().for_each(|slot| slot.miss(Unanswered::NotSent(not_sent)));
        }
    }

    fn send(&self, frame: &[u8]) -> Result<(), NotSent> {
        let mut out = self.out();
        let written = if out.asks { out.writer.write(frame) } else { Err(Broken::Ended) };
        drop(out);
        written.map_err(|broken| match broken {
            Broken::Length => NotSent::TooLong,
            // It was held back.
            Broken::Ended => NotSent::Over,
            _ => {
                self.break_off();
                NotSent::Over
            }
        })
    }

    /// Answers something. If it can't be written the connection ends; if it is too long, the
    /// requester is told so.
    pub(crate) fn answer(&self, id: u64, reply: Reply) {
        let frame = reply.frame(id);
        // Not held twice while the other side does not read.
        drop(reply);
        let mut out = self.out();
        let written = match out.writer.write(&frame) {
            Err(Broken::Length) => out.writer.write(&Reply::too_long().frame(id)),
            written => written,
        };
        drop(out);
        if written.is_err() {
            self.break_off();
        }
    }

    /// The longest frame that is written, in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.out().writer.longest()
    }

    /// From here on no frame is written that is longer.
    pub(crate) fn write_at_most(&self, bytes: usize) {
        self.out().writer.write_at_most(bytes);
    }

    /// From here on this is done where a write waits for the other side.
    pub(crate) fn meanwhile(&self, act: Meanwhile) {
        self.out().writer.meanwhile(act);
    }

    /// Writes a frame that never changes, and ends the connection where it can't.
    pub(crate) fn tell(&self, frame: &[u8]) {
        let written = self.out().writer.write(frame);
        if written.is_err() {
            self.break_off();
        }
    }

    /// Hands an answer to the thread that waits for it. An answer to nothing is a fault.
    pub(crate) fn settle(&self, id: u64, reply: Reply) -> Result<(), Broken> {
        let slot = self.waiting().slots.remove(&id).ok_or(Broken::Form)?;
        match slot {
            // Nobody waits any more where it can't be sent.
            Slot::Waits(slot) => slot.try_send(reply).unwrap_or(()),
            Slot::Told(told) => told(Ok(reply)),
        }
        Ok(())
    }

    /// An answer of the other side's has a sound frame, and a content that nobody can read.
    pub(crate) fn is_unreadable(&self) {
        self.babbles.store(true, Ordering::SeqCst);
    }

    /// True if there was such an answer since this was asked last.
    pub(crate) fn was_unreadable(&self) -> bool {
        self.babbles.swap(false, Ordering::SeqCst)
    }

    /// From here on nothing is asked; answers are still given and taken.
    pub(crate) fn stop_asking(&self) {
        self.out().asks = false;
    }

    /// Breaks the connection. Answers that have arrived are still read, and then its reader
    /// [finishes](Self::finish) it.
    pub(crate) fn break_off(&self) {
        self.waiting().over = true;
        // It may have ended already.
        self.stream.shutdown(Shutdown::Both).unwrap_or(());
    }

    /// There is nothing more to read: whoever waits for an answer is told that it is lost.
    pub(crate) fn finish(&self) {
        self.break_off();
        let slots = std::mem::take(&mut self.waiting().slots);
        slots.into_values().for_each(|slot| slot.miss(Unanswered::Lost));
    }

    /// Waits until the other side has ended the connection, for so long at most.
    pub(crate) fn wait_over(&self, limit: Duration) {
        let (slot, ended) = sync_channel(1);
        // No answer comes: the slot goes when there is nothing more to read.
        if self.register(Slot::Waits(slot)).is_ok() {
            drop(ended.recv_timeout(limit));
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.waiting().over
    }

    /// A place for an answer; the slot itself, where none comes any more.
    fn register(&self, slot: Slot) -> Result<u64, Slot> {
        let mut waiting = self.waiting();
        if waiting.over {
            return Err(slot);
        }
        let id = waiting.next;
        waiting.next = waiting.next.wrapping_add(1);
        waiting.slots.insert(id, slot);
        Ok(id)
    }

    /// A frame that a panic cut short breaks the connection by itself: what follows it is no
    /// frame.
    fn out(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
