//! Stopping a home, whatever version its holder is of.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use syscap_format::{Freeze, Seq, TokenId};
use syscap_kernel::Halt;

use crate::runtime::backend::Step;
use crate::runtime::connect::Setup;
use crate::runtime::failover::{Failover, Mode};
use crate::transport::client::Entry;
use crate::transport::{Command, HolderStatus};
use crate::{Error, Home, Options};

/// An operator at a home: revokes, freezes, looks, shuts down.
///
/// It says so by frames that never change, and needs no room at the holder: it reaches one that
/// speaks no version of the protocol that this program does, and one that lets nobody in any more.
/// If no server holds the home, this process does, and accepts no other connections.
///
/// ```
/// use syscap::{Operator, prelude::*};
///
/// # fn main() -> Result<(), Error> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// # let home = folder.path().join("home");
/// let rt = Runtime::create(&home)?;
/// let token = rt.issue(Grant::to("a").tools(["echo"]))?;
/// let agent = rt.session("a", token)?;
/// let operator = Operator::open(&home)?;
/// operator.revoke(token)?;
/// let refused = agent.call("echo", args! { "value": "hello" })?;
/// assert_eq!(refused.reason(), Some(Reason::Revoked));
/// // It ends what runs, and closes the home.
/// operator.shutdown()?;
/// # Ok(())
/// # }
/// ```
pub struct Operator {
    home: Arc<Failover>,
}

impl Operator {
    /// Reaches the holder, or holds the home.
    ///
    /// It waits for no other program that holds a lock of the database: what is asked of it then is
    /// [`Error::Refused`] by [`Busy`](syscap_format::Reason::Busy), or [`Error::Home`] by
    /// [`StoreError::Busy`](syscap_kernel::StoreError::Busy), and not in force.
    ///
    /// # Errors
    /// As [`Options::command`], but for [`Error::Version`] and [`Error::Full`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let options = Options::new().stall_time(Duration::ZERO);
        let mode = Mode::Command(Box::new(Mutex::new(options)));
        let home = Failover::new(Home::at(folder), mode, Entry::Bare);
        home.up()?;
        Ok(Self { home })
    }

    /// Reaches the server, and never holds the home.
    ///
    /// # Errors
    /// [`Error::NoServer`] where nobody serves it; else as [`Operator::open`].
    pub fn connect(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let home = Failover::new(Home::at(folder), Mode::Connect(Setup::default()), Entry::Bare);
        home.connect()?;
        Ok(Self { home })
    }

    /// As [`Runtime::revoke`](crate::Runtime::revoke).
    ///
    /// # Errors
    /// As [`Runtime::revoke`](crate::Runtime::revoke); [`Error::HolderGone`], after which it may
    /// have been done.
    pub fn revoke(&self, token: TokenId) -> Result<Seq, Error> {
        self.home.operate(&Command::Revoke(token))
    }

    /// As [`Runtime::freeze`](crate::Runtime::freeze).
    ///
    /// # Errors
    /// As [`Runtime::freeze`](crate::Runtime::freeze); [`Error::HolderGone`], after which it may
    /// have been done.
    pub fn freeze(&self, freeze: &Freeze) -> Result<Seq, Error> {
        self.home.operate(&Command::Freeze(freeze.clone()))
    }

    /// How things stand.
    ///
    /// # Errors
    /// [`Error::HolderGone`], or why there is no holder.
    pub fn status(&self) -> Result<HolderStatus, Error> {
        self.home.operate(&Command::Status)
    }

    /// Closes the home, whoever holds it, as its owner would: what runs is waited for and then
    /// given up, each for some seconds, and the log ends with the record that this names. A client
    /// may start another server: freeze the home to stop its calls.
    ///
    /// # Errors
    /// As [`Runtime::close`](crate::Runtime::close); [`Error::HolderGone`], after which it may
    /// have been done.
    pub fn shutdown(self) -> Result<Seq, Error> {
        let up = self.home.up()?;
        if up.held().is_some() {
            return self.home.close()?.ok_or(Error::Halted(Halt::Halted));
        }
        match up.read(up.operate(Command::Shutdown)) {
            Step::Done(ended) => ended,
            Step::Again => Err(Error::HolderGone),
        }
    }

    /// Lets go of the home.
    ///
    /// # Errors
    /// As [`Runtime::close`](crate::Runtime::close), where this process holds it.
    pub fn close(self) -> Result<(), Error> {
        self.home.close().map(drop)
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // Whoever wants to know what comes of it closes it.
        drop(self.home.close());
    }
}
