//! Adding to a file that is only ever added to.

use rustix::fs::{Mode, OFlags};
use rustix::io::{pread, pwrite, retry_on_intr};
use std::os::fd::OwnedFd;

use super::base::Base;
use super::error::FsError;
use super::gate::Node;
use super::homes::is_key;
use super::temp::CHUNK_BYTES;
use super::turn::Turn;
use super::walk::CHANGE;
use super::write::{Charge, Effect, Refused, State, WriteFailure, charge};

/// An append to a file.
#[derive(Clone, Copy, Debug)]
pub struct Append<'a> {
    /// The end of its known content. The file is made where it is missing and this is 0.
    pub from_bytes: u64,
    /// The content to append.
    pub content: &'a [u8],
    /// What may lie behind the known end.
    pub behind: Behind,
}

/// What is done about bytes behind the known end.
#[derive(Clone, Copy, Debug)]
pub enum Behind {
    /// There are none.
    Nothing,
    /// They come from an append that a crash interrupted, and are cut off. Of so many of them it is
    /// asked first whether they are torn: if not, somebody else has added to the file, and it is
    /// left.
    Torn(usize, fn(&[u8]) -> bool),
}

impl Base {
    /// Adds to a file, durably, or leaves it as it was up to `from_bytes`.
    ///
    /// A reader of such a file must be able to tell its end: after a crash any bytes, or a part of
    /// the content, may lie behind the known end.
    ///
    /// # Errors
    /// [`WriteFailure`] says why and what was left. [`FsError::Changed`]: it is shorter than what
    /// is known of it, or what lies behind that is not torn.
    pub fn append(
        &self,
        turn: &Turn,
        job: &Append<'_>,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
    ) -> Result<(), WriteFailure> {
        let mut state = turn.state();
        self.add(turn, job, meter, &mut state).map_err(|error| state.failed(error))
    }

    fn add(
        &self,
        turn: &Turn,
        job: &Append<'_>,
        meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
        state: &mut State,
    ) -> Result<(), FsError> {
        let (dir, name) = (&turn.dir, &*turn.name);
        if is_key(name, job.content) {
            return Err(FsError::Home);
        }
        let file = match self.name(dir, name.as_bytes()) {
            // To open a device is already to act on it: it is judged before, and after.
            Ok(named) => {
                named.node.expect_file(self.device())?;
                self.walk(dir, name.as_bytes(), CHANGE)?
            }
            Err(FsError::NotFound) if job.from_bytes == 0 => {
                charge(meter, Charge::File)?;
                let flags = CHANGE | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let made = rustix::fs::openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?;
                rustix::fs::fsync(dir)?;
                made
            }
            Err(FsError::NotFound) => return Err(FsError::Changed),
            Err(error) => return Err(error),
        };
        let node = Node::of(&file)?;
        node.expect_file(self.device())?;
        if node.size_bytes < job.from_bytes {
            return Err(FsError::Changed);
        }
        if node.size_bytes > job.from_bytes {
            let Behind::Torn(most, is_torn) = job.behind else { return Err(FsError::Changed) };
            if !is_torn(&read_from(&file, job.from_bytes, most)?) {
                return Err(FsError::Changed);
            }
            rustix::fs::ftruncate(&file, job.from_bytes)?;
        }
        if let Err(error) = fill_from(&file, job, meter) {
            if rustix::fs::ftruncate(&file, job.from_bytes).is_err() {
                state.effect = Effect::Unknown;
            }
            return Err(error);
        }
        state.effect = Effect::Unknown;
        Ok(rustix::fs::fdatasync(&file)?)
    }
}

/// The bytes from a place on, `most` at the most.
fn read_from(file: &OwnedFd, from: u64, most: usize) -> Result<Vec<u8>, FsError> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES.min(most)];
    while let Some(room) = chunk.get_mut(..CHUNK_BYTES.min(most.saturating_sub(bytes.len()))) {
        let at = from.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let read = retry_on_intr(|| pread(file, &mut *room, at))?;
        match room.get(..read) {
            Some(some) if read > 0 => bytes.extend_from_slice(some),
            _ => break,
        }
    }
    Ok(bytes)
}

fn fill_from(
    file: &OwnedFd,
    job: &Append<'_>,
    meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
) -> Result<(), FsError> {
    let mut at = job.from_bytes;
    for piece in job.content.chunks(CHUNK_BYTES) {
        charge(meter, Charge::Bytes(u64::try_from(piece.len()).unwrap_or(u64::MAX)))?;
        let mut left = piece;
        while !left.is_empty() {
            let written = retry_on_intr(|| pwrite(file, left, at))?;
            at = at.saturating_add(u64::try_from(written).unwrap_or(u64::MAX));
            // A file that takes nothing has no room.
            left = left.get(written..).filter(|_| written > 0).ok_or(FsError::NoSpace)?;
        }
    }
    Ok(())
}
