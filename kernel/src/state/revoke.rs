//! What ends for good: tokens, by what names them; and calls that are out.
//!
//! What comes in live, what is folded and what a log says that is opened is held against the same
//! words here.

use super::{fold::State, tokens::TokenIndex};
use syscap_format::{
    control::{Revocation, Revoked, Role},
    id::{Seq, TokenId},
    reason::{Reason, Refused},
    sign::PublicKey,
    token::TokenBody,
};

/// What a revocation ends, found.
pub(crate) enum Ended {
    Subtree(TokenIndex),
    Children(TokenIndex),
    Epoch(u64),
    Key(PublicKey),
}

impl State {
    /// What a revocation ends, where it is there.
    pub(crate) fn ended_by(&self, revocation: &Revocation) -> Result<Ended, Refused> {
        let bad = |field| Refused::new(Reason::BadControl).field(field);
        let unknown = |field| Refused::new(Reason::UnknownToken).field(field);
        let found = |token: &TokenId| self.tokens.find(token).ok_or(unknown("token"));
        match revocation.revoked().ok_or(bad("target"))? {
            Revoked::Subtree(token) => found(&token).map(Ended::Subtree),
            Revoked::Children(token) => found(&token).map(Ended::Children),
            // It only grows: what has ended does not come back.
            Revoked::Epoch(least) if least > self.epoch => Ok(Ended::Epoch(least)),
            Revoked::Epoch(least) => {
                let above = format_args!("above {}", self.epoch);
                Err(bad("epoch").got(&least).allowed(&above))
            }
            Revoked::Key(key) if self.knows(&key) => Ok(Ended::Key(key)),
            Revoked::Key(_) => Err(unknown("key")),
        }
    }

    /// Whether a key issues, or has issued or been given a token.
    fn knows(&self, key: &PublicKey) -> bool {
        self.roles.holds(Role::Issuer, key) || self.tokens.concerns(key)
    }

    pub(super) fn end(&mut self, ended: Ended) {
        match ended {
            Ended::Subtree(token) => self.tokens.revoke(token),
            Ended::Children(token) => self.tokens.revoke_children(token),
            Ended::Epoch(least) => {
                self.epoch = least;
                self.tokens.revoke_roots(|body, _| body.epoch < least);
            }
            Ended::Key(key) => {
                self.revoked_keys.insert(key);
                self.tokens.revoke_key(&key);
            }
        }
    }

    /// What of a token has ended before it was registered, if anything has. What lies above a
    /// derived one is looked at by itself.
    pub(crate) fn ended_before(&self, body: &TokenBody) -> Option<&'static str> {
        if body.parent.is_none() && body.epoch < self.epoch {
            Some("epoch")
        } else if self.revoked_keys.contains(&body.issuer) {
            Some("issuer")
        } else if body.holder.is_some_and(|holder| self.revoked_keys.contains(&holder)) {
            Some("holder")
        } else {
            None
        }
    }

    /// The intent that a `cancel` means, where it can be cancelled: by the session that it is of,
    /// while that is open, or by the revoker. The same is said of one that ended, of another's and
    /// of one that there never was.
    pub(crate) fn cancellable(&self, intent: Seq, by: Option<Seq>) -> Result<Seq, Refused> {
        let is_its = |own: Seq| by.is_none_or(|by| by == own && self.sessions.contains_key(&by));
        match self.open.get(&intent) {
            Some(open) if !open.cancelled && is_its(open.session) => Ok(intent),
            _ => Err(Refused::new(Reason::NotOpen).field("intent").got(&intent)),
        }
    }
}
