//! The first frame of a connection and its answers. Their form never changes, so that every
//! version understands every other one that far; `docs/spec/calls.md` has the bytes.

use syscap_format::{Decoder, Encoder, HomeId, Profile, Reason};

use crate::{transport::versions::Versions, transport::wire::Broken};

/// The use of a connection: a channel. The holder enforces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Everything.
    Operator,
    /// Calls through sessions that were lent to it, and nothing else.
    Agents,
}

impl Lane {
    const fn code(self) -> u64 {
        match self {
            Self::Operator => 1,
            Self::Agents => 2,
        }
    }

    const fn from_code(code: u64) -> Option<Self> {
        match code {
            1 => Some(Self::Operator),
            2 => Some(Self::Agents),
            _ => None,
        }
    }
}

/// The first message of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) versions: Versions,
    /// The lane that it wants; `None` for one that only later versions know.
    pub(crate) lane: Option<Lane>,
}

impl Hello {
    pub(crate) const NUMBER: u64 = 1;

    pub(crate) fn write(versions: Versions, lane: Lane) -> Vec<u8> {
        frame(Self::NUMBER, 3, |encoder| {
            encoder.uint(versions.least);
            encoder.uint(versions.greatest);
            encoder.uint(lane.code());
        })
    }

    pub(crate) fn read(mut row: Row<'_>) -> Result<Self, Broken> {
        let versions = row.versions()?;
        let lane = Lane::from_code(row.uint()?);
        row.end()?;
        Ok(Self { versions, lane })
    }
}

/// The server's answer to the greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Greeting {
    /// The lane is open, for frames of this version.
    Welcome { version: u64, home: HomeId },
    /// It is not; why, by a reason's number, and what the holder speaks.
    TurnedAway { code: u64, versions: Versions },
}

impl Greeting {
    const WELCOME: u64 = 2;
    const TURNED_AWAY: u64 = 3;

    pub(crate) const fn turned_away(reason: Reason) -> Self {
        Self::TurnedAway { code: reason.code(), versions: Versions::OURS }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        match self {
            Self::Welcome { version, home } => frame(Self::WELCOME, 2, |encoder| {
                encoder.uint(*version);
                encoder.bytes(home.as_bytes());
            }),
            Self::TurnedAway { code, versions } => frame(Self::TURNED_AWAY, 3, |encoder| {
                encoder.uint(*code);
                encoder.uint(versions.least);
                encoder.uint(versions.greatest);
            }),
        }
    }

    pub(crate) fn read(frame: &[u8]) -> Result<Self, Broken> {
        let (number, mut row) = Row::read(frame)?;
        let greeting = match number {
            Self::WELCOME => {
                let version = row.uint()?;
                Self::Welcome { version, home: HomeId::from_bytes(row.digest()?) }
            }
            Self::TURNED_AWAY => {
                let code = row.uint()?;
                Self::TurnedAway { code, versions: row.versions()? }
            }
            _ => return Err(Broken::Form),
        };
        row.end()?;
        Ok(greeting)
    }
}

/// True if a frame is one of those that never change. They are arrays, all others maps.
pub(crate) fn is_frozen(frame: &[u8]) -> bool {
    frame.first().is_some_and(|head| head >> 5 == 4)
}

/// A frame that never changes: an array of its number and so many items more.
pub(crate) fn frame(number: u64, items: usize, write: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.array(items.saturating_add(1));
    encoder.uint(number);
    write(&mut encoder);
    encoder.into_bytes()
}

/// The items of a frame that never changes, to be read in their order.
pub(crate) struct Row<'a> {
    decoder: Decoder<'a>,
    /// How many are left.
    left: u64,
}

impl<'a> Row<'a> {
    /// The frame's number, and what follows it.
    pub(crate) fn read(frame: &'a [u8]) -> Result<(u64, Self), Broken> {
        let mut decoder = Decoder::new(frame, Profile::CONTROL);
        let left = decoder.array()?;
        let mut row = Self { decoder, left };
        Ok((row.uint()?, row))
    }

    pub(crate) fn uint(&mut self) -> Result<u64, Broken> {
        Ok(self.next()?.uint()?)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Broken> {
        Ok(self.next()?.text()?)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Broken> {
        Ok(self.next()?.bytes()?)
    }

    pub(crate) fn digest(&mut self) -> Result<[u8; 32], Broken> {
        self.bytes()?.try_into().map_err(|_| Broken::Form)
    }

    pub(crate) fn versions(&mut self) -> Result<Versions, Broken> {
        let versions = Versions { least: self.uint()?, greatest: self.uint()? };
        if versions.least <= versions.greatest { Ok(versions) } else { Err(Broken::Form) }
    }

    /// Skips the rest, if each part is an item.
    pub(crate) fn skip(&mut self) -> Result<(), Broken> {
        while self.left > 0 {
            self.next()?.item()?;
        }
        Ok(())
    }

    /// Refuses remaining bytes.
    pub(crate) fn end(self) -> Result<(), Broken> {
        match self.left {
            0 => Ok(self.decoder.finish()?),
            _ => Err(Broken::Form),
        }
    }

    fn next(&mut self) -> Result<&mut Decoder<'a>, Broken> {
        self.left = self.left.checked_sub(1).ok_or(Broken::Form)?;
        Ok(&mut self.decoder)
    }
}
