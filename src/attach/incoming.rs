//! What comes from a holder, read by a thread of its own, or where the process waits for other
//! things too: then none of its threads is woken only to wake another.

use std::{
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Instant,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::wire::{Broken, Came, Reader};
use crate::pool;

/// How often who reads for a thread that writes looks whether it still does.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Reads what comes from holders. It is given each connection once; where it drops that before its
/// end, a thread reads on.
pub type ReadBy = Arc<dyn Fn(Incoming) + Send + Sync>;

type Take = Box<dyn FnMut(&[u8]) -> Result<(), Broken> + Send>;
type Then = Box<dyn FnOnce() + Send>;

/// What comes on one connection to a holder.
pub struct Incoming(Arc<Shared>);

/// What was there to be taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// So much that there may be more.
    More,
    /// All of it; of what has begun to come the rest must be there by then.
    All(Option<Instant>),
    /// Nothing more is to be read here.
    Over,
}

struct Shared {
    stream: Arc<UnixStream>,
    /// `None` once the connection is over, or a thread of its own reads it.
    reading: Mutex<Option<Reading>>,
}

/// A connection that is read, and what becomes of that.
pub(super) struct Reading {
    pub(super) reader: Reader,
    /// Takes a frame. It does not block.
    pub(super) take: Take,
    /// There is nothing more to read. It does not block.
    pub(super) finish: Then,
    /// After that. It may block.
    pub(super) ended: Then,
}

impl Reading {
    /// Reads to the end, on this thread.
    fn read(mut self) {
        while let Ok(frame) = self.reader.next(None) {
            if (self.take)(&frame).is_err() {
                break;
            }
        }
        self.close();
    }

    fn close(self) {
        let Self { reader, take, finish, ended } = self;
        finish();
        drop((reader, take));
        ended();
    }

    fn drain(&mut self) -> Result<Came, Broken> {
        let came = self.reader.fill()?;
        while let Some(frame) = self.reader.whole()? {
            (self.take)(&frame)?;
        }
        Ok(came)
    }
}

impl Incoming {
    pub(super) fn new(stream: Arc<UnixStream>, reading: Reading) -> Self {
        Self(Arc::new(Shared { stream, reading: Mutex::new(Some(reading)) }))
    }

    /// Reads it on a thread of its own, to its end.
    pub(super) fn on_a_thread(self) -> std::io::Result<()> {
        self.0.on_a_thread()
    }

    /// What reads, while a thread that should do so is about to wait for the other side to read:
    /// until it is told that the thread waits no more.
    pub(super) fn meanwhile(&self) -> impl Fn(Arc<AtomicBool>) + Send + use<> {
        let shared = Arc::downgrade(&self.0);
        move |over| {
            let shared = Weak::clone(&shared);
            // Where no thread is to be had the write has its limit all the same.
            pool::spawn(move || read_meanwhile(&shared, &over)).unwrap_or(());
        }
    }

    /// Takes in what has come, up to a bound, and does not wait: to be called when the connection
    /// can be read from, and when the time has come that was said last.
    #[must_use = "it says how to go on"]
    pub fn drain(&self) -> Drained {
        self.0.drain()
    }
}

impl AsFd for Incoming {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.stream.as_fd()
    }
}

impl AsRawFd for Incoming {
    fn as_raw_fd(&self) -> RawFd {
        self.0.stream.as_raw_fd()
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // Where there is no thread, it ends: nobody would read what is waited for.
        if self.0.on_a_thread().is_err() {
            self.0.end();
        }
    }
}

impl Shared {
    fn reading(&self) -> MutexGuard<'_, Option<Reading>> {
        // A frame that was being taken when a thread panicked is taken off already.
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_a_thread(self: &Arc<Self>) -> std::io::Result<()> {
        if self.reading().is_none() {
            return Ok(());
        }
        let shared = Arc::clone(self);
        let thread = thread::Builder::new().name("syscap-holder".to_owned());
        let read = move || {
            let reading = shared.reading().take();
            reading.into_iter().for_each(Reading::read);
        };
        thread.spawn(read).map(drop)
    }

    fn drain(&self) -> Drained {
        let mut held = self.reading();
        let Some(reading) = held.as_mut() else { return Drained::Over };
        match reading.drain() {
            Ok(Came::More) => Drained::More,
            Ok(Came::All) => Drained::All(reading.reader.until()),
            // A thread can wait for it.
            Ok(Came::NoRoom) => Drained::Over,
            Err(_) => {
                drop(held);
                self.end();
                Drained::Over
            }
        }
    }

    /// It is over: who waits is told at once, and what may block has a thread.
    fn end(&self) {
        let Some(Reading { reader, take, finish, ended }) = self.reading().take() else { return };
        finish();
        drop((reader, take));
        // Without one nobody looks for the next holder before there is something to ask of it.
        pool::spawn(ended).unwrap_or(());
    }
}

fn read_meanwhile(shared: &Weak<Shared>, over: &AtomicBool) {
    while !over.load(Ordering::SeqCst) {
        let Some(shared) = shared.upgrade() else { return };
        let mut fds = [PollFd::new(&*shared.stream, PollFlags::IN)];
        // What it says is found by reading.
        let ready = poll(&mut fds, Some(&LOOK)).is_ok_and(|ready| ready > 0);
        if ready && shared.drain() == Drained::Over {
            return;
        }
    }
}
