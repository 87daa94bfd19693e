//! The operator's frames that never change: revoke, freeze, status, shutdown, and a signed event.
//!
//! They belong to no version of the protocol. A holder takes them on the operator's lane and on a
//! connection that was granted none, so that a program can stop what a newer or an older one runs,
//! and one that is full. `docs/spec/calls.md` has the bytes.

#[cfg(test)]
mod tests;

use syscap_format::field::{code, shape};
use syscap_format::{
    Encoder, ErrorKind, Freeze, FreezeChange, FreezeTarget, Head, HomeId, Item, Leaf, Reason,
    RecordKind, Refused, Seq, TokenId,
};
use syscap_kernel::Kernel;

use crate::Error;
use crate::transport::hello::{Hello, Row, frame};
use crate::transport::limits::{FROZEN_BYTES_MAX, FROZEN_TEXT_BYTES_MAX};
use crate::transport::reply::{Failure, Reply};
use crate::transport::versions::Versions;
use crate::transport::wire::Broken;

/// A frame that never changes, as the holder takes it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// The greeting of a new connection.
    Hello(Hello),
    /// An operator asks something under this id; an error where it is of the form, and says
    /// what this version does not know.
    Asked(u64, Result<Command, Reason>),
}

/// An operator's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// End a token, and all below it: the holder signs.
    Revoke(TokenId),
    /// Begin or end a freeze: the holder signs.
    Freeze(Freeze),
    /// Say how things stand.
    Status,
    /// Close the home.
    Shutdown,
    /// Take a revocation or a freeze that was signed elsewhere, as it stands in a record of that
    /// version.
    Signed { kind: RecordKind, version: u64, event: Vec<u8> },
}

impl Said {
    pub(crate) fn read(frame: &[u8]) -> Result<Self, Broken> {
        if frame.len() > FROZEN_BYTES_MAX {
            return Err(Broken::Length);
        }
        let (number, row) = Row::read(frame)?;
        if number == Hello::NUMBER {
            return Ok(Self::Hello(Hello::read(row)?));
        }
        let (id, command) = Command::read(number, row)?;
        Ok(Self::Asked(id, command))
    }
}

impl Command {
    const REVOKE: u64 = 4;
    const FREEZE: u64 = 5;
    const STATUS: u64 = 6;
    const SHUTDOWN: u64 = 7;
    const SIGNED: u64 = 8;

    pub(crate) fn write(&self, id: u64) -> Vec<u8> {
        match self {
            Self::Revoke(token) => frame(Self::REVOKE, 2, |encoder| {
                encoder.uint(id);
                encoder.bytes(token.as_bytes());
            }),
            Self::Freeze(Freeze { target, name, change }) => frame(Self::FREEZE, 4, |encoder| {
                encoder.uint(id);
                encoder.uint(target.code());
                encoder.text(name);
                encoder.uint(change.code());
            }),
            Self::Status => frame(Self::STATUS, 1, |encoder| encoder.uint(id)),
            Self::Shutdown => frame(Self::SHUTDOWN, 1, |encoder| encoder.uint(id)),
            Self::Signed { kind, version, event } => frame(Self::SIGNED, 4, |encoder| {
                encoder.uint(id);
                encoder.uint(kind.code());
                encoder.uint(*version);
                encoder.bytes(event);
            }),
        }
    }

    fn read(number: u64, mut row: Row<'_>) -> Result<(u64, Result<Self, Reason>), Broken> {
        // What every number has, also one that a later version adds.
        let id = row.uint()?;
        let command = match number {
            Self::REVOKE => Ok(Self::Revoke(TokenId::from_bytes(row.digest()?))),
            Self::FREEZE => {
                let target = FreezeTarget::from_code(row.uint()?);
                let name = Box::from(row.text()?);
                let freeze = target.zip(FreezeChange::from_code(row.uint()?));
                let freeze = freeze.map(|(target, change)| Freeze { target, name, change });
                freeze.map(Self::Freeze).ok_or(Reason::BadControl)
            }
            Self::STATUS => Ok(Self::Status),
            Self::SHUTDOWN => Ok(Self::Shutdown),
            Self::SIGNED => {
                let kind = RecordKind::from_code(row.uint()?);
                let (version, event) = (row.uint()?, row.bytes()?.to_vec());
                let kind =
                    kind.filter(|kind| matches!(kind, RecordKind::Revoke | RecordKind::Freeze));
                let signed = kind.map(|kind| Self::Signed { kind, version, event });
                signed.ok_or(Reason::BadControl)
            }
            number if number > Response::LAST => {
                row.skip()?;
                Err(Reason::UnknownVersion)
            }
            _ => return Err(Broken::Form),
        };
        row.end()?;
        Ok((id, command))
    }
}

/// The server's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Response {
    /// It was done, and this record says so.
    Done(Seq),
    /// It was not: a reason's number, and what it is about, in few words.
    Refused(u64, String),
    /// How things stand.
    Status(HolderStatus),
}

impl Response {
    const DONE: u64 = 9;
    const REFUSED: u64 = 10;
    const STANDS: u64 = 11;
    const LAST: u64 = Self::STANDS;

    pub(crate) const fn refused(reason: Reason) -> Self {
        Self::Refused(reason.code(), String::new())
    }

    pub(crate) fn of(result: &Result<Seq, Error>) -> Self {
        let (reason, text) = match result {
            Ok(record) => return Self::Done(*record),
            Err(Error::Refused(refused)) => {
                let details = refused.error_object(ErrorKind::Refused);
                let field = details.item().get("field").and_then(Item::as_text);
                (refused.reason(), field.unwrap_or_default().to_owned())
            }
            Err(error) => (Reason::Failed, error.to_string()),
        };
        Self::Refused(reason.code(), text)
    }

    pub(crate) fn write(&self, id: u64) -> Vec<u8> {
        match self {
            Self::Done(record) => frame(Self::DONE, 2, |encoder| {
                encoder.uint(id);
                encoder.uint(record.get());
            }),
            Self::Refused(code, text) => frame(Self::REFUSED, 3, |encoder| {
                encoder.uint(id);
                encoder.uint(*code);
                let end = text.floor_char_boundary(FROZEN_TEXT_BYTES_MAX);
                encoder.text(text.get(..end).unwrap_or_default());
            }),
            Self::Status(status) => frame(Self::STANDS, 10, |encoder| {
                encoder.uint(id);
                status.put(encoder);
            }),
        }
    }

    pub(crate) fn read(frame: &[u8]) -> Result<(u64, Self), Broken> {
        let (number, mut row) = Row::read(frame)?;
        let id = row.uint()?;
        let answer = match number {
            Self::DONE => Self::Done(Seq::new(row.uint()?)),
            Self::REFUSED => Self::Refused(row.uint()?, row.text()?.to_owned()),
            Self::STANDS => Self::Status(HolderStatus::take(&mut row)?),
            _ => return Err(Broken::Form),
        };
        row.end()?;
        Ok((id, answer))
    }

    /// As an answer to a frame of a version, which whoever waits for it takes.
    pub(crate) fn into_reply(self) -> Reply {
        match self {
            Self::Done(record) => Reply::done(&record),
            Self::Status(status) => Reply::done(&status),
            Self::Refused(code, text) => match Reason::from_code(code) {
                Some(reason) if reason != Reason::Failed => {
                    let refused = Refused::new(reason);
                    Reply::Refused(if text.is_empty() { refused } else { refused.field(&text) })
                }
                Some(_) => Reply::Failed(Failure::Other(text)),
                None => Reply::Failed(Failure::Other(format!("refused by reason {code}: {text}"))),
            },
        }
    }
}

code! {
    /// The phase of a server.
    pub enum Phase {
        /// It does.
        Open = 1 "open",
        /// It ends.
        Closing = 2 "closing",
        /// Its kernel has stopped.
        Halted = 3 "halted",
    }
}

shape! {
    /// How things stand at a home, in the few numbers that every version has.
    #[derive(Copy)]
    pub struct HolderStatus {
        /// The home.
        1 => pub home: HomeId,
        /// The versions of the protocol that the holder speaks.
        2 => pub versions: Versions,
        /// The phase of the server.
        3 => pub phase: Phase,
        /// Its log's last record.
        4 => pub head: Head,
        /// How many sessions are open.
        5 => pub sessions: u64,
        /// How many calls run.
        6 => pub running: u64,
        /// How many things are frozen.
        7 => pub frozen: u64,
    }
}

impl HolderStatus {
    pub(crate) fn of(kernel: &Kernel) -> Self {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        Self {
            home: kernel.home(),
            versions: Versions::OURS,
            phase: if kernel.halted().is_some() { Phase::Halted } else { Phase::Open },
            head: kernel.head(),
            sessions: count(kernel.sessions().count()),
            running: count(kernel.running().count()),
            frozen: count(kernel.frozen().len()),
        }
    }

    fn put(&self, encoder: &mut Encoder) {
        encoder.bytes(self.home.as_bytes());
        encoder.uint(self.versions.least);
        encoder.uint(self.versions.greatest);
        encoder.uint(self.phase.code());
        encoder.uint(self.head.seq.get());
        encoder.bytes(self.head.leaf.as_bytes());
        encoder.uint(self.sessions);
        encoder.uint(self.running);
        encoder.uint(self.frozen);
    }

    fn take(row: &mut Row<'_>) -> Result<Self, Broken> {
        Ok(Self {
            home: HomeId::from_bytes(row.digest()?),
            versions: row.versions()?,
            phase: Phase::from_code(row.uint()?).ok_or(Broken::Form)?,
            head: Head { seq: Seq::new(row.uint()?), leaf: Leaf::from_bytes(row.digest()?) },
            sessions: row.uint()?,
            running: row.uint()?,
            frozen: row.uint()?,
        })
    }
}
