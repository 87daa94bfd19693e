//! Holders who are elsewhere: their word for a session, and for each call.

use crate::{events::Submit, machine::Kernel, state::fold::State};
use syscap_format::{Opening, Proof, PublicKey, Reason, Refused, TokenId};

impl Kernel {
    /// A holder who is elsewhere has signed that it opens the session, over a challenge that no
    /// other was opened over. That nobody has used it before is the host's to know, who drew it.
    pub(crate) fn opens(&self, token: &TokenId, by: Option<Opening>) -> Option<Refused> {
        let by = by?;
        let tokens = &self.state.tokens;
        let holder = tokens.find(token).and_then(|token| tokens.body(token)?.holder);
        let is_its = holder.is_some_and(|holder| by.is_by(&holder, &self.state.home, token));
        let used = self.remote.values().any(|(challenge, _)| *challenge == by.challenge);
        (used || !is_its).then(|| Refused::new(Reason::BadProof).field("opening"))
    }

    /// True if a proof came with the call where one is required, and none where not.
    pub(crate) fn is_proved(&self, submit: &Submit) -> bool {
        self.remote.contains_key(&submit.session) == submit.proof.is_some()
    }

    /// True if a proof is its holder's, and newer than those before: a used proof is refused again,
    /// whatever came of it. One that nobody asked for stays, to be refused.
    pub(crate) fn takes(&mut self, proof: &Proof, submit: &Submit) -> bool {
        let State { home, sessions, tokens, .. } = &self.state;
        let Submit { session, received, .. } = submit;
        let Some((challenge, last)) = self.remote.get_mut(session) else { return true };
        let token = sessions.get(session).map(|session| session.token);
        let holder = token.and_then(|token| tokens.body(token)?.holder);
        let is_its = |key: &PublicKey| proof.is_by(key, home, *session, challenge, received);
        let fine = proof.counter > *last && holder.as_ref().is_some_and(is_its);
        *last = if fine { proof.counter } else { *last };
        fine
    }
}
