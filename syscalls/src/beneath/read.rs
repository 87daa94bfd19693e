//! Reading a bounded part of a file.

use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::io::{pread, retry_on_intr};
use sha2::{Digest as _, Sha256};
use syscap_format::Label;

use super::base::Base;
use super::error::FsError;
use super::gate::Node;
use super::homes::{expect_no_key, is_mark};
use super::judged::Seen;
use super::label;
use super::location::Location;
use super::walk::READ;

/// The step in which a buffer grows: a size that a file claims never decides an allocation.
const STEP_BYTES: usize = 64 * 1024;
/// Behind this the system rejects the offset, where a caller should see the end of the file.
const OFFSET_MAX: u64 = 1 << 62;

/// Largest file of which a digest is made.
pub const DIGEST_BYTES_MAX: u64 = 16 << 20;

/// A regular file, open for reading.
#[derive(Debug)]
pub struct OpenFile {
    fd: OwnedFd,
    size_bytes: u64,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes from the offset on, at most as many as asked for.
    pub bytes: Vec<u8>,
    /// True if the file went on behind them when they were read.
    pub more: bool,
    /// The file's size where the read came to its end, else after the read. A file that others
    /// change at the same time may have been longer or shorter before.
    pub size_bytes: u64,
}

impl Base {
    /// Opens a regular file of one link and at most `max_size_bytes` for reading.
    ///
    /// To open a device is already to act on it, so the file is first named, which opens nothing,
    /// and judged. An `O_PATH` handle can only be reopened through the magic links of /proc, and
    /// not every system has one: so a second walk opens the file, and what it opened is judged
    /// again. Only that judgement counts. An attacker who can put a device node in place between
    /// the two walks can make device nodes; it is opened without waiting, refused and closed.
    ///
    /// A file that was named and judged before, in a folder that did not change since, is still
    /// what it was: then the walk that opens it is the only one.
    ///
    /// # Errors
    /// Any of a walk or a gate.
    pub fn open_file(&self, at: &Location, max_size_bytes: u64) -> Result<OpenFile, FsError> {
        let (parent, name) = at.split()?;
        if is_mark(name) {
            return Err(FsError::Home);
        }
        let path = at.as_path();
        if let Some(file) = self.open_judged(path, parent, name, max_size_bytes)? {
            return Ok(file);
        }
        if let Ok(named) = self.name(self.handle(), path.as_bytes())
            && let Some(folder) = self.known(parent)
        {
            let named = self.judge(named.node, max_size_bytes)?;
            let fd = self.walk(self.handle(), path.as_bytes(), READ)?;
            let opened = self.judge_open(name, &fd, max_size_bytes)?;
            // What was known is the way of the first walk: to the same file, or it says nothing.
            if opened.ident == named.ident {
                self.judged.remember(self, parent, name, &folder, &opened);
                return Ok(OpenFile { fd, size_bytes: opened.size_bytes });
            }
        }
        let dir = self.name_directory(parent)?;
        self.judge(self.name(&dir, name.as_bytes())?.node, max_size_bytes)?;
        let fd = self.walk(&dir, name.as_bytes(), READ)?;
        let size_bytes = self.judge_open(name, &fd, max_size_bytes)?.size_bytes;
        Ok(OpenFile { fd, size_bytes })
    }

    /// Opens a file that was judged before. If it is no longer known to be that file, the two walks
    /// decide.
    fn open_judged(
        &self,
        path: &str,
        parent: &str,
        name: &str,
        max_size_bytes: u64,
    ) -> Result<Option<OpenFile>, FsError> {
        let Some(file) = self.judged.file(parent, name) else { return Ok(None) };
        let Ok(fd) = self.walk(self.handle(), path.as_bytes(), READ) else { return Ok(None) };
        // Whatever it is, it is open, and judged as what was opened.
        let opened = self.judge_open(name, &fd, max_size_bytes)?;
        let is_it = Seen::from(&opened) == file;
        Ok(is_it.then_some(OpenFile { fd, size_bytes: opened.size_bytes }))
    }

    /// The SHA-256 of what is open there, under that name.
    pub(super) fn digest(&self, name: &str, fd: OwnedFd) -> Result<[u8; 32], FsError> {
        let size_bytes = self.judge_open(name, &fd, DIGEST_BYTES_MAX)?.size_bytes;
        OpenFile { fd, size_bytes }.digest()
    }

    /// A file that may be read.
    fn judge(&self, node: Node, max_size_bytes: u64) -> Result<Node, FsError> {
        node.expect_file(self.device())?;
        if node.size_bytes > max_size_bytes { Err(FsError::TooLarge) } else { Ok(node) }
    }

    /// The same once it is open, and is no key: its folder may have been looked at before it was
    /// there.
    fn judge_open(&self, name: &str, fd: &OwnedFd, max_size_bytes: u64) -> Result<Node, FsError> {
        let node = self.judge(Node::of(fd)?, max_size_bytes)?;
        expect_no_key(name, fd)?;
        Ok(node)
    }
}

impl OpenFile {
    /// The size when it was opened.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The label that was kept with it when it was written; trusted and public where there is
    /// none, and the most careful one where what stands there is none.
    ///
    /// # Errors
    /// What the system says of the read.
    pub fn label(&self) -> Result<Label, FsError> {
        label::kept(&self.fd)
    }

    /// Reads at most `limit_bytes` from `offset_bytes` on; past the end that is nothing.
    ///
    /// # Errors
    /// What the system says of the read.
    pub fn read(&self, offset_bytes: u64, limit_bytes: usize) -> Result<Chunk, FsError> {
        // One byte more tells whether the file goes on, without trusting its size.
        let goal = limit_bytes.saturating_add(1);
        let expected = self.size_bytes.saturating_sub(offset_bytes).saturating_add(1);
        let first = usize::try_from(expected).unwrap_or(STEP_BYTES).min(STEP_BYTES);
        let mut bytes = Vec::with_capacity(first.min(goal));
        let mut size_bytes = None;
        while bytes.len() < goal {
            if bytes.len() == bytes.capacity() {
                bytes.reserve(STEP_BYTES.min(goal - bytes.len()));
            }
            let at = offset_bytes.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            if at > OFFSET_MAX {
                break;
            }
            let room = bytes.capacity() - bytes.len();
            let read = retry_on_intr(|| pread(&self.fd, spare_capacity(&mut bytes), at))?;
            if read == 0 {
                break;
            }
            // A short read is the end where the size says so too, that of the opening or that of
            // now. Neither is believed alone.
            if read < room {
                let end = at.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
                if end == self.size_bytes || end == self.size_now()? {
                    size_bytes = Some(end);
                    break;
                }
            }
        }
        let more = bytes.len() > limit_bytes;
        bytes.truncate(limit_bytes);
        let size_bytes = size_bytes.map_or_else(|| self.size_now(), Ok)?;
        Ok(Chunk { bytes, more, size_bytes })
    }

    /// The SHA-256 (FIPS 180-4) of its content. A file that others change at the same time has the
    /// digest of neither.
    ///
    /// # Errors
    /// [`FsError::TooLarge`] beyond [`DIGEST_BYTES_MAX`], or what the system says of a read.
    pub fn digest(&self) -> Result<[u8; 32], FsError> {
        let (mut hasher, mut at) = (Sha256::new(), 0_u64);
        loop {
            let chunk = self.read(at, STEP_BYTES)?;
            hasher.update(&chunk.bytes);
            at = at.saturating_add(u64::try_from(chunk.bytes.len()).unwrap_or(u64::MAX));
            if at > DIGEST_BYTES_MAX {
                return Err(FsError::TooLarge);
            }
            if !chunk.more {
                return Ok(hasher.finalize().into());
            }
        }
    }

    pub(super) fn node(&self) -> Result<Node, FsError> {
        Node::of(&self.fd)
    }

    fn size_now(&self) -> Result<u64, FsError> {
        Ok(self.node()?.size_bytes)
    }
}
