//! Frames: four bytes of length, big-endian, and one canonical item: a map where the protocol's
//! version says what stands in it (`frame`), an array where nothing ever changes (`hello`,
//! `frozen`).
//!
//! Any fault of a frame ends its connection: a peer that writes one such frame can't be trusted to
//! have meant the next.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use syscap_format::DecodeError;

use crate::transport::limits::{
    FRAME_BYTES_MAX, FRAME_TIME, FROZEN_BYTES_MAX, PARTIAL_BYTES_MAX, READ_PAUSE, SHORT_BYTES_MAX,
    TRY_PAUSE, WRITE_TIME,
};

/// The bytes of a frame's length.
const HEAD: usize = 4;
const CHUNK: usize = 64 << 10;

/// Why no frame can be had from a connection any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The peer has ended it, between two frames.
    Ended,
    /// It ended within a frame.
    Cut,
    /// A frame is longer than it may be, or empty.
    Length,
    /// A frame, or the first one, took too long.
    Slow,
    /// A frame is not of the protocol's form.
    Form,
    /// The operating system reported an error.
    Io(ErrorKind),
}

impl From<DecodeError> for Broken {
    fn from(_: DecodeError) -> Self {
        Self::Form
    }
}

/// Counts the bytes of long frames that have begun, of all readers that share it.
#[derive(Default)]
pub(crate) struct Partial(AtomicUsize);

impl Partial {
    /// Makes room for so many, where there is some.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let more = |held: usize| held.checked_add(bytes).filter(|all| *all <= PARTIAL_BYTES_MAX);
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// How many are taken.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::SeqCst);
    }
}

/// The result of reading without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// As much as is read at once.
    More,
    /// All that was there.
    All,
    /// No frame: there is no room for the one that has begun.
    NoRoom,
}

/// Reads frames.
pub(crate) struct Reader {
    stream: Arc<UnixStream>,
    /// The time since which a frame is incomplete, if it is read without waiting.
    since: Option<Instant>,
    held: Vec<u8>,
    chunk: Vec<u8>,
    /// Longest frame, in bytes.
    most: usize,
    partial: Arc<Partial>,
    /// This reader's share of `partial`: the length of the long frame that has begun.
    taken: usize,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.partial.give_back(self.taken);
    }
}

impl Reader {
    pub(crate) fn new(stream: Arc<UnixStream>) -> io::Result<Self> {
        stream.set_read_timeout(Some(READ_PAUSE))?;
        let (held, chunk, partial) = (Vec::new(), vec![0; CHUNK], Arc::default());
        let most = FROZEN_BYTES_MAX;
        Ok(Self { stream, since: None, held, chunk, most, partial, taken: 0 })
    }

    /// From here on frames may be as long as those of a version: so many bytes. Incomplete frames
    /// share this count with others.
    pub(crate) fn take_long_frames(&mut self, most: usize, partial: Arc<Partial>) {
        (self.most, self.partial) = (most, partial);
    }

    /// The next frame's item, unchecked. It must begin within `patience`, where that is given, and
    /// be whole [`FRAME_TIME`] after.
    pub(crate) fn next(&mut self, patience: Option<Duration>) -> Result<Vec<u8>, Broken> {
        let mut since = Instant::now();
        let mut begun = !self.held.is_empty();
        loop {
            if let Some(frame) = self.whole()? {
                return Ok(frame);
            }
            if !self.has_room() {
                // It is others who are slow: its own time begins when there is room.
                thread::sleep(TRY_PAUSE);
                since = Instant::now();
                continue;
            }
            match (&*self.stream).read(&mut self.chunk) {
                Ok(0) if self.held.is_empty() => return Err(Broken::Ended),
                Ok(0) => return Err(Broken::Cut),
                Ok(count) => {
                    self.held.extend_from_slice(self.chunk.get(..count).unwrap_or_default());
                    if !begun {
                        (begun, since) = (true, Instant::now());
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    kind => return Err(Broken::Io(kind)),
                },
            }
            let limit = if begun { Some(FRAME_TIME) } else { patience };
            if limit.is_some_and(|limit| since.elapsed() > limit) {
                return Err(Broken::Slow);
            }
        }
    }

    /// Reads what has come, and does not wait. The frames that are [whole](Self::whole) by then are
    /// to be taken before it is called again.
    pub(crate) fn fill(&mut self) -> Result<Came, Broken> {
        if !self.has_room() {
            return Ok(Came::NoRoom);
        }
        let count = match recv(&*self.stream, &mut *self.chunk, RecvFlags::DONTWAIT) {
            Ok((0, _)) if self.held.is_empty() => return Err(Broken::Ended),
            Ok((0, _)) => return Err(Broken::Cut),
            Ok((count, _)) => count,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(error) => return Err(Broken::Io(io::Error::from(error).kind())),
        };
        self.held.extend_from_slice(self.chunk.get(..count).unwrap_or_default());
        let late = self.since.is_some_and(|since| since.elapsed() > FRAME_TIME);
        if late && !self.has_whole() {
            return Err(Broken::Slow);
        }
        Ok(if count == self.chunk.len() { Came::More } else { Came::All })
    }

    /// By when the frame that has begun must be whole, once those that are have been taken.
    pub(crate) fn until(&mut self) -> Option<Instant> {
        if self.held.is_empty() {
            return None;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        since.checked_add(FRAME_TIME)
    }

    /// True if all bytes read were taken.
    pub(crate) const fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// True if the first frame has arrived whole.
    fn has_whole(&self) -> bool {
        let Some(head) = self.held.first_chunk::<HEAD>() else { return false };
        let length = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
        self.held.len() >= length.saturating_add(HEAD)
    }

    /// A frame that has arrived whole.
    pub(crate) fn whole(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        let Some(head) = self.held.first_chunk::<HEAD>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
        if length == 0 || length > self.most {
            return Err(Broken::Length);
        }
        let end = length.saturating_add(HEAD);
        if self.held.len() < end {
            return Ok(None);
        }
        let rest = self.held.split_off(end);
        let mut frame = std::mem::replace(&mut self.held, rest);
        frame.drain(..HEAD);
        self.since = None;
        self.partial.give_back(std::mem::take(&mut self.taken));
        Ok(Some(frame))
    }

    /// True if there is room for the incomplete frame.
    fn has_room(&mut self) -> bool {
        let Some(head) = self.held.first_chunk::<HEAD>() else { return true };
        let length = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
        if length <= SHORT_BYTES_MAX || self.taken > 0 {
            return true;
        }
        let fits = self.partial.take(length);
        if fits {
            self.taken = length;
            // At once and no more than that: a vector that grows may hold twice as much.
            let end = length.saturating_add(HEAD).saturating_add(CHUNK);
            self.held.reserve_exact(end.saturating_sub(self.held.len()));
        }
        fits
    }
}

/// Has the other direction read while a write waits for the other side, until it is told that it
/// waits no more.
pub(crate) type Meanwhile = Box<dyn Fn(Arc<AtomicBool>) + Send>;

/// A write that waits. When it is dropped it does not any more.
struct Waits(Arc<AtomicBool>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Writes frames.
pub(crate) struct Writer {
    stream: Arc<UnixStream>,
    meanwhile: Option<Meanwhile>,
    /// Longest frame, in bytes.
    most: usize,
}

impl Writer {
    pub(crate) fn new(stream: Arc<UnixStream>) -> io::Result<Self> {
        stream.set_write_timeout(Some(WRITE_TIME))?;
        Ok(Self { stream, meanwhile: None, most: FRAME_BYTES_MAX })
    }

    /// From here on this is done where a write waits.
    pub(crate) fn meanwhile(&mut self, act: Meanwhile) {
        self.meanwhile = Some(act);
    }

    pub(crate) const fn longest(&self) -> usize {
        self.most
    }

    /// From here on no frame may be longer.
    pub(crate) const fn write_at_most(&mut self, bytes: usize) {
        self.most = bytes;
    }

    /// Writes a frame whole. After an error the peer has not got all of it, and the connection
    /// is of no use any more.
    pub(crate) fn write(&mut self, item: &[u8]) -> Result<(), Broken> {
        if item.len() > self.most {
            return Err(Broken::Length);
        }
        let length = u32::try_from(item.len()).map_err(|_| Broken::Length)?;
        let mut frame = Vec::with_capacity(item.len().saturating_add(HEAD));
        frame.extend_from_slice(&length.to_be_bytes());
        frame.extend_from_slice(item);
        let since = Instant::now();
        let (mut left, mut waits) = (&frame[..], None);
        while !left.is_empty() {
            if let (Some(meanwhile), None) = (&self.meanwhile, &waits) {
                match send(&*self.stream, left, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                    Ok(count) => {
                        left = left.get(count..).unwrap_or_default();
                        continue;
                    }
                    Err(Errno::AGAIN) => {
                        let over = Arc::<AtomicBool>::default();
                        waits = Some(Waits(Arc::clone(&over)));
                        meanwhile(over);
                    }
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(Broken::Io(io::Error::from(error).kind())),
                }
            }
            match (&*self.stream).write(left) {
                Ok(0) => return Err(Broken::Cut),
                Ok(count) => left = left.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(Broken::Slow),
                Err(error) => return Err(Broken::Io(error.kind())),
            }
            if !left.is_empty() && since.elapsed() > WRITE_TIME {
                return Err(Broken::Slow);
            }
        }
        Ok(())
    }
}
