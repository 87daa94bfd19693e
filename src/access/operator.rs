//! Stopping a home, whatever version its holder is of.

use std::{path::Path, sync::Arc};

use syscap_format::{
    control::Freeze,
    id::{Seq, TokenId},
};
use syscap_kernel::halt::Halt;

use super::link::{Link, Mode};
use crate::{
    Error, Runtime,
    attach::{Command, HolderStatus, client::Step, reply::read_record},
};

/// An operator at a home: revokes, freezes, looks, shuts down.
///
/// It says so by frames that never change, and needs no room at the holder: it reaches one that
/// speaks no version of the protocol that this program does, and one that lets nobody in any
/// more. Where nobody holds the home, this process does, and serves it to nobody.
pub struct Operator {
    link: Arc<Link>,
}

impl Operator {
    /// Reaches the holder, or holds the home.
    ///
    /// # Errors
    /// As [`Access::open`](super::Access::open), but for [`Error::Version`] and [`Error::Full`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let link = Link::new(folder.as_ref(), Mode::Operator);
        link.up()?;
        Ok(Self { link })
    }

    /// As [`Runtime::revoke`].
    ///
    /// # Errors
    /// As [`Runtime::revoke`]; [`Error::HolderGone`], after which it may have been done.
    pub fn revoke(&self, token: TokenId) -> Result<Seq, Error> {
        let here = |runtime: &Runtime| runtime.revoke(token);
        self.link.operate(&Command::Revoke(token), here, read_record)
    }

    /// As [`Runtime::freeze`].
    ///
    /// # Errors
    /// As [`Runtime::freeze`]; [`Error::HolderGone`], after which it may have been done.
    pub fn freeze(&self, freeze: &Freeze) -> Result<Seq, Error> {
        let here = |runtime: &Runtime| runtime.freeze(freeze);
        self.link.operate(&Command::Freeze(freeze.clone()), here, read_record)
    }

    /// How things stand.
    ///
    /// # Errors
    /// [`Error::HolderGone`], or why there is no holder.
    pub fn status(&self) -> Result<HolderStatus, Error> {
        let here = |runtime: &Runtime| Ok(runtime.look(HolderStatus::of));
        self.link.operate(&Command::Status, here, HolderStatus::read)
    }

    /// Closes the home, whoever holds it, as its owner would: what runs is waited for and then
    /// given up, each for some seconds, and the log ends with the record that this names. Those
    /// that are attached to it and may hold it take over: a freeze keeps them from calling.
    ///
    /// # Errors
    /// As [`Runtime::close`]; [`Error::HolderGone`], after which it may have been done.
    pub fn shutdown(self) -> Result<Seq, Error> {
        let up = self.link.up()?;
        match up.attached() {
            Some(holder) => match holder.operate(&Command::Shutdown, read_record) {
                Step::Done(ended) => ended,
                Step::Again => Err(Error::HolderGone),
            },
            None => self.link.close()?.ok_or(Error::Halted(Halt::Halted)),
        }
    }

    /// Lets go of the home.
    ///
    /// # Errors
    /// As [`Runtime::close`], where this process holds it.
    pub fn close(self) -> Result<(), Error> {
        self.link.close().map(drop)
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // Whoever wants to know what comes of it closes it.
        drop(self.link.close());
    }
}
