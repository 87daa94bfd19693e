//! A server's messages, read by a thread of their own, or where the process waits for other input
//! too: then no thread is woken only to wake another.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::driver::pool;
use crate::transport::wire::{Broken, Came, Reader};

/// How often who reads for a thread that writes looks whether it still does.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Reads what comes from holders. It is given each connection once; where it drops that before its
/// end, a thread reads on.
pub type ReadBy = Arc<dyn Fn(Incoming) + Send + Sync>;

type Take = Box<dyn FnMut(&[u8]) -> Result<(), Broken> + Send>;
type Then = Box<dyn FnOnce() + Send>;

/// The messages on one connection to a server.
pub struct Incoming(Arc<Shared>);

/// The result of one reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// So much that there may be more.
    More,
    /// All of it; of what has begun to come the rest must be there by then.
    All(Option<Instant>),
    /// No more is to be read here.
    Over,
}

struct Shared {
    stream: Arc<UnixStream>,
    /// `None` once the connection is over, or a thread of its own reads it.
    reading: Mutex<Option<Reading>>,
}

/// A connection that is read, and what becomes of that.
pub(crate) struct Reading {
    pub(crate) reader: Reader,
    /// Takes a frame. It does not block.
    pub(crate) take: Take,
    /// There is nothing more to read. It does not block.
    pub(crate) finish: Then,
    /// After that. It may block.
    pub(crate) ended: Then,
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
    pub(crate) fn new(stream: Arc<UnixStream>, reading: Reading) -> Self {
        Self(Arc::new(Shared { stream, reading: Mutex::new(Some(reading)) }))
    }

    /// Reads it on a thread of its own, to its end.
    pub(crate) fn on_a_thread(self) -> std::io::Result<()> {
        self.0.on_a_thread()
    }

    /// A reader for the time in which a thread that should read is about to wait for its peer: it
    /// reads until the thread waits no more.
    pub(crate) fn meanwhile(&self) -> impl Fn(Arc<AtomicBool>) + Send + use<> {
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

/// It keeps the deadline of a frame that it has begun to take, until the frame is whole: the other
/// reader does not know of it.
fn read_meanwhile(shared: &Weak<Shared>, over: &AtomicBool) {
    let mut begun: Option<Instant> = None;
    while begun.is_some() || !over.load(Ordering::SeqCst) {
        let Some(shared) = shared.upgrade() else { return };
        let mut fds = [PollFd::new(&*shared.stream, PollFlags::IN)];
        // What it says is found by reading.
        let ready = poll(&mut fds, Some(&LOOK)).is_ok_and(|ready| ready > 0);
        if ready || begun.is_some_and(|until| until <= Instant::now()) {
            match shared.drain() {
                Drained::Over => return,
                Drained::All(until) => begun = until,
                Drained::More => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use super::*;
    use crate::transport::wire::Writer;

    const LONG: Duration = Duration::from_secs(20);

    #[derive(Debug, PartialEq, Eq)]
    enum Told {
        Frame(Vec<u8>),
        Finished,
        Ended,
    }

    fn frame(item: &[u8]) -> Vec<u8> {
        let mut frame = u32::try_from(item.len()).unwrap().to_be_bytes().to_vec();
        frame.extend(item);
        frame
    }

    fn connection() -> (Incoming, Arc<UnixStream>, UnixStream, Receiver<Told>) {
        let (near, far) = UnixStream::pair().unwrap();
        let near = Arc::new(near);
        let (tell, told) = channel();
        let [frames, finished, ended] = [tell.clone(), tell.clone(), tell];
        let mut reader = Reader::new(Arc::clone(&near)).unwrap();
        reader.take_long_frames(1 << 20, Arc::default());
        let reading = Reading {
            reader,
            take: Box::new(move |frame| {
                frames.send(Told::Frame(frame.to_vec())).unwrap();
                if frame == b"bad" { Err(Broken::Form) } else { Ok(()) }
            }),
            finish: Box::new(move || finished.send(Told::Finished).unwrap()),
            ended: Box::new(move || ended.send(Told::Ended).unwrap()),
        };
        (Incoming::new(Arc::clone(&near), reading), near, far, told)
    }

    /// Frames are taken as they come whole, and nothing waits for the rest of one.
    #[test]
    fn complete_frames_are_taken_at_once() {
        let (incoming, _near, mut far, told) = connection();
        assert_eq!(incoming.drain(), Drained::All(None));
        let two = [frame(b"one"), frame(b"two")].concat();
        far.write_all(&two[..9]).unwrap();
        let Drained::All(Some(until)) = incoming.drain() else { panic!("no rest is waited for") };
        assert!(until > Instant::now());
        assert_eq!(told.try_recv().unwrap(), Told::Frame(b"one".to_vec()));
        assert!(told.try_recv().is_err());
        far.write_all(&two[9..]).unwrap();
        assert_eq!(incoming.drain(), Drained::All(None));
        assert_eq!(told.try_recv().unwrap(), Told::Frame(b"two".to_vec()));
        // Much at once.
        let long = frame(&vec![7; 200_000]);
        let writes = std::thread::spawn(move || {
            far.write_all(&long).unwrap();
            far
        });
        let since = Instant::now();
        loop {
            assert_ne!(incoming.drain(), Drained::Over);
            if told.try_recv().is_ok() {
                break;
            }
            assert!(since.elapsed() < LONG);
        }
        drop(writes.join().unwrap());
        assert_eq!(incoming.drain(), Drained::Over);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Told::Finished);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Told::Ended);
        assert_eq!(incoming.drain(), Drained::Over);
        drop(incoming);
        assert!(told.recv_timeout(LONG).is_err());
    }

    #[test]
    fn protocol_violation_ends_the_connection() {
        for bad in [frame(b"bad"), frame(b""), u32::MAX.to_be_bytes().to_vec()] {
            let (incoming, _near, mut far, told) = connection();
            far.write_all(&bad).unwrap();
            assert_eq!(incoming.drain(), Drained::Over);
            let told: Vec<Told> = told.iter().collect();
            assert_eq!(told[told.len() - 2..], [Told::Finished, Told::Ended]);
        }
    }

    /// Dropping it leaves the connection to a thread, with the frame that has begun.
    #[test]
    fn a_thread_reads_on() {
        let (incoming, _near, mut far, told) = connection();
        let one = frame(b"one");
        far.write_all(&one[..5]).unwrap();
        assert!(matches!(incoming.drain(), Drained::All(Some(_))));
        drop(incoming);
        far.write_all(&one[5..]).unwrap();
        assert_eq!(told.recv_timeout(LONG).unwrap(), Told::Frame(b"one".to_vec()));
        drop(far);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Told::Finished);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Told::Ended);
    }

    /// Both sides write more than the socket holds, and neither reads before it has written: here
    /// another thread does.
    #[test]
    fn reader_continues_while_a_write_waits() {
        let (incoming, near, mut far, told) = connection();
        let mut writer = Writer::new(near).unwrap();
        writer.meanwhile(Box::new(incoming.meanwhile()));
        let many = vec![7; 900_000];
        let theirs = frame(&many);
        let far = std::thread::spawn(move || {
            far.write_all(&theirs).unwrap();
            let mut got = vec![0; theirs.len()];
            far.read_exact(&mut got).unwrap();
            assert!(got == theirs);
        });
        writer.write(&many).unwrap();
        far.join().unwrap();
        // What is left when the write has ended is read as ever.
        while incoming.drain() == Drained::More {}
        assert_eq!(told.recv_timeout(LONG).unwrap(), Told::Frame(many));
        drop(incoming);
    }

    /// A substitute reader keeps the deadline of a begun frame, even when the first reader could
    /// read again: that one does not know of it.
    #[test]
    fn reader_hand_off_keeps_the_frame_deadline() {
        let (incoming, near, mut far, told) = connection();
        let over = Arc::<AtomicBool>::default();
        incoming.meanwhile()(Arc::clone(&over));
        far.write_all(&frame(b"one")[..5]).unwrap();
        let since = Instant::now();
        while rustix::io::ioctl_fionread(&*near).unwrap() > 0 {
            assert!(since.elapsed() < LONG, "nobody reads");
        }
        over.store(true, Ordering::SeqCst);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Told::Finished);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Told::Ended);
        assert_eq!(incoming.drain(), Drained::Over);
    }
}
