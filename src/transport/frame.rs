//! The frames of a version: a map of two entries, the `id` under 1 and what it carries under the
//! number of its kind. Each possible content is declared where it belongs, by the macros that
//! declare documents; all of it has the one version that there is.

use syscap_format::field::{Field, code};
use syscap_format::{Decoder, Encoder, Profile};

use crate::transport::wire::Broken;

/// The entry of a frame that holds its id, which an answer repeats.
const ID: u64 = 1;

code! {
    /// The content of a frame.
    pub(crate) enum Carries {
        /// A request on either channel.
        AgentAsk = 2 "agent_ask",
        /// A request on the operator channel.
        Ask = 3 "ask",
        /// A request of the server.
        Order = 4 "order",
        /// An answer: what was asked for, of the form that the one who asked knows.
        Done = 5 "done",
        /// An answer: nothing was done.
        Refused = 6 "refused",
        /// An answer: it could not be had.
        Failed = 7 "failed",
    }
}

/// A request with a frame kind of its own.
pub(crate) trait Message: Field {
    const CARRIES: Carries;

    /// The frame that asks it.
    fn frame(&self, id: u64) -> Vec<u8> {
        frame(id, Self::CARRIES, |encoder| self.put(encoder))
    }
}

/// A frame's bytes.
pub(crate) fn frame(id: u64, carries: Carries, body: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let mut encoder = Encoder::with_capacity(256);
    encoder.map(2);
    encoder.uint(ID);
    encoder.uint(id);
    encoder.uint(carries.code());
    body(&mut encoder);
    encoder.into_bytes()
}

/// A frame as it came in. Its content is not read yet.
pub(crate) struct Frame<'a> {
    pub(crate) id: u64,
    pub(crate) carries: Carries,
    body: &'a [u8],
}

impl<'a> Frame<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Broken> {
        let mut decoder = Decoder::new(bytes, Profile::MESSAGE);
        decoder.shape(2)?;
        decoder.key(ID)?;
        let (id, carries) = (decoder.uint()?, Carries::take(&mut decoder)?);
        let body = bytes.get(decoder.position()..).ok_or(Broken::Form)?;
        Ok(Self { id, carries, body })
    }

    /// Its content, unchecked.
    pub(crate) const fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Its content, if it has this type.
    pub(crate) fn take<T: Field>(&self) -> Result<T, Broken> {
        take(self.body)
    }
}

/// A value that a frame carries.
pub(crate) fn take<T: Field>(body: &[u8]) -> Result<T, Broken> {
    let mut decoder = Decoder::new(body, Profile::MESSAGE);
    let value = T::take(&mut decoder)?;
    decoder.finish()?;
    Ok(value)
}
