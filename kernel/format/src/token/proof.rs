//! Proofs of a holder who is not in the kernel's process: that a token's wire, or its id, alone
//! opens nothing, and that what was sent once is not sent again by somebody else.
//!
//! The holder signs a challenge that the host drew, then each envelope with a counter that grows.
//! Home, session and challenge stand in what is signed, so that nothing of it holds elsewhere.

use alloc::vec::Vec;

use crate::cbor::Encoder;
use crate::field::shape;
use crate::id::{HomeId, Seq, TokenId};
use crate::sign::{PublicKey, Signature};

shape! {
    /// A holder's word that it opens a session with its token.
    #[derive(Copy)]
    pub struct Opening {
        /// 32 random bytes of the host's, for this opening alone.
        1 => pub challenge: [u8; 32],
        /// Over [`Opening::CONTEXT`] and [`Opening::message`], by the token's holder.
        2 => pub signature: Signature,
    }
}

impl Opening {
    /// The domain separator of the signature, before the message.
    pub const CONTEXT: &[u8] = b"syscap/opening/v2\0";

    /// The bytes that the holder signs.
    #[must_use]
    pub fn message(home: &HomeId, token: &TokenId, challenge: &[u8; 32]) -> Vec<u8> {
        let mut encoder = Encoder::with_capacity(112);
        encoder.array(3);
        encoder.bytes(home.as_bytes());
        encoder.bytes(token.as_bytes());
        encoder.bytes(challenge);
        encoder.into_bytes()
    }

    /// True if that key has signed it.
    #[must_use]
    pub fn is_by(&self, holder: &PublicKey, home: &HomeId, token: &TokenId) -> bool {
        let message = Self::message(home, token, &self.challenge);
        holder.verify(Self::CONTEXT, &message, &self.signature).is_ok()
    }
}

shape! {
    /// A holder's word that it makes a call.
    #[derive(Copy)]
    pub struct Proof {
        /// Greater than that of every call before, in this session.
        1 => pub counter: u64,
        /// Over [`Proof::CONTEXT`] and [`Proof::message`], by the holder of the session's token.
        2 => pub signature: Signature,
    }
}

impl Proof {
    /// The domain separator of the signature, before the message.
    pub const CONTEXT: &[u8] = b"syscap/proof/v2\0";

    /// The bytes that the holder signs: in that session, opened over that challenge, these bytes.
    #[must_use]
    pub fn message(
        home: &HomeId,
        session: Seq,
        challenge: &[u8; 32],
        counter: u64,
        envelope: &[u8],
    ) -> Vec<u8> {
        let mut encoder = Encoder::with_capacity(envelope.len().saturating_add(112));
        encoder.array(5);
        encoder.bytes(home.as_bytes());
        encoder.uint(session.get());
        encoder.bytes(challenge);
        encoder.uint(counter);
        encoder.bytes(envelope);
        encoder.into_bytes()
    }

    /// True if that key has signed it.
    #[must_use]
    pub fn is_by(
        &self,
        holder: &PublicKey,
        home: &HomeId,
        session: Seq,
        challenge: &[u8; 32],
        envelope: &[u8],
    ) -> bool {
        let message = Self::message(home, session, challenge, self.counter, envelope);
        holder.verify(Self::CONTEXT, &message, &self.signature).is_ok()
    }
}
