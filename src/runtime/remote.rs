//! Sessions of token holders who are elsewhere: nothing that goes over a wire opens one, or makes a
//! call, without the holder's signature over just that.
//!
//! The transport of the bytes is the host's. The host hands out challenges, and accepts openings
//! and calls:
//!
//! 1. The holder asks for a [challenge](Runtime::challenge).
//! 2. It signs [`Opening::message`] under [`Opening::CONTEXT`], and has the session
//!    [opened](Runtime::open_proved). It is told the session's number.
//! 3. For each call it makes the envelope, as canonical CBOR, and signs [`Proof::message`] under
//!    [`Proof::CONTEXT`] with a counter that grows.
//!
//! The signature covers the context followed by the message: [`preimage`](syscap_format::preimage).

use std::sync::Arc;

use syscap_format::{AgentId, Opening, Proof, Seq, Source, TokenId, ToolResult};

use crate::{Error, Runtime, server::LocalSession, tools::ConnectionId, tools::provide::Cancel};

/// A seat at the kernel of this process for a holder who is elsewhere: every call needs that one's
/// proof. It is open until it is [closed](Self::close), or the home is.
pub struct ProvedSession {
    session: Arc<LocalSession>,
}

impl ProvedSession {
    /// The session's number: what each proof names.
    pub fn number(&self) -> Seq {
        self.session.number()
    }

    /// The agent.
    pub fn agent(&self) -> &AgentId {
        self.session.agent()
    }

    /// Makes a call: an envelope in canonical CBOR, and its holder's proof. One without a good
    /// proof, or with the counter of an earlier one, is refused as
    /// [`BadProof`](syscap_format::Reason::BadProof) and runs nothing. The counter of a
    /// good one is used up, whatever comes of the call.
    ///
    /// # Errors
    /// As [`Session::call`](crate::Session::call).
    pub fn call(&self, envelope: Vec<u8>, proof: Option<Proof>) -> Result<ToolResult, Error> {
        let answer = self.session.prove(envelope, proof, Source::Agent, &Cancel::new());
        self.session.hold_up(&answer);
        answer
    }

    /// Closes it.
    ///
    /// # Errors
    /// [`Error::Refused`] where it is closed; [`Error::Halted`].
    pub fn close(&self) -> Result<Seq, Error> {
        self.session.leave()
    }
}

impl Runtime {
    /// 32 random bytes, over which one session may be opened by a holder who is elsewhere. The
    /// last 1,024 stand.
    ///
    /// # Errors
    /// [`Error::NotHolder`] where another process holds the home; [`Error`] without random bytes.
    pub fn challenge(&self) -> Result<[u8; 32], Error> {
        self.here(|holding| {
            let challenge = holding.core.salts.bytes()?;
            holding.challenges().draws(challenge);
            Ok(challenge)
        })
    }

    /// Opens a session for the holder of a token, who has signed one of the
    /// [challenges](Self::challenge). Each is taken once, whatever comes of it. The token's wire,
    /// or that of one that it was derived from, opens nothing.
    ///
    /// ```
    /// use ed25519_dalek::{Signer, SigningKey};
    /// use syscap::format::{MapBuilder, Opening, Proof, PublicKey, Signature, preimage};
    /// use syscap::prelude::*;
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let rt = Runtime::create(folder.path().join("home"))?;
    /// // The far side's key, and a token that it holds.
    /// let key = SigningKey::from_bytes(&[7; 32]);
    /// let public = PublicKey::new(key.verifying_key().to_bytes()).expect("a key");
    /// let token = rt.issue(Grant::to("far").tools(["echo"]).delegable(1).held_by(public))?;
    /// let sign = |context, message: Vec<u8>| {
    ///     Signature::from_bytes(key.sign(&preimage(context, &message)).to_bytes())
    /// };
    ///
    /// let challenge = rt.challenge()?;
    /// let message = Opening::message(&rt.id(), &token, &challenge);
    /// let signature = sign(Opening::CONTEXT, message);
    /// let session = rt.open_proved("far", token, Opening { challenge, signature })?;
    ///
    /// let args = MapBuilder::new().text("value", "hello").finish();
    /// let call = MapBuilder::new().text("tool_id", "echo").item("args", args.item()).finish();
    /// let (home, number) = (rt.id(), session.number());
    /// let message = Proof::message(&home, number, &challenge, 1, call.as_bytes());
    /// let signature = sign(Proof::CONTEXT, message);
    /// let proof = Some(Proof { counter: 1, signature });
    /// let answer = session.call(call.as_bytes().to_vec(), proof)?;
    /// assert_eq!(answer.status(), Status::Ok);
    /// // The same again, by whoever has read it.
    /// let again = session.call(call.as_bytes().to_vec(), proof)?;
    /// assert_eq!(again.reason(), Some(Reason::BadProof));
    /// # rt.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] as `bad_proof` where the challenge was not drawn here or has been taken,
    /// or it is not the holder's signature, and as `not_bound` where the token is not the agent's,
    /// with the reason on record; [`Error::NotHolder`]; [`Error::Base`].
    pub fn open_proved(
        &self,
        agent: &str,
        token: TokenId,
        opening: Opening,
    ) -> Result<ProvedSession, Error> {
        self.here(|holding| {
            // One that was not drawn here goes to the kernel all the same: it is refused there, on
            // the record, since no holder has signed what it is replaced by.
            let known = holding.challenges().takes(&opening.challenge);
            let challenge = if known { opening.challenge } else { holding.core.salts.bytes()? };
            let opening = Opening { challenge, ..opening };
            let session = holding.session_by(agent, token, Some(opening))?;
            holding.bind(session.number(), ConnectionId::HOLDER);
            Ok(ProvedSession { session: Arc::new(session) })
        })
    }
}
