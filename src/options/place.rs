//! Where the agents' files lie, and what opens them.

use std::path::Path;

use syscap_syscalls::beneath::Openers;

use super::Options;

impl Options {
    /// Puts the agents' files below a folder that exists, when the home is made.
    #[must_use]
    pub fn base(mut self, folder: impl AsRef<Path>) -> Self {
        self.base.folder = Some(folder.as_ref().to_path_buf());
        self
    }

    /// Says what must open the agents' files, when the home is made. It stays with the home: where
    /// the system lacks that, the home is not opened. What it was is in the record of each call.
    #[must_use]
    pub fn openers(mut self, openers: Openers) -> Self {
        self.base.openers = openers;
        self
    }
}
