//! Revocation of tokens, by their names, and of calls in flight.
//!
//! Live input, replayed records and a log that is opened are all checked by the same rules here.

use crate::{authority::tokens::TokenIndex, state::fold::State};
use syscap_format::{
    ControlBody as _, PublicKey, Reason, Refused, Revocation, RevocationList, Revoked, Role, Seq,
    Token, TokenId, UnixMillis,
};

/// The target of a revocation, found.
pub(crate) enum Ended {
    Subtree(TokenIndex),
    Children(TokenIndex),
    Epoch(u64),
    Key(PublicKey),
    List(RevocationList),
}

impl State {
    /// The target of a `revoke` event's body, if it is there.
    pub(crate) fn ended_by(&self, body: &[u8]) -> Result<Ended, Refused> {
        let bad = |field| Refused::new(Reason::BadControl).field(field);
        let unknown = |field| Refused::new(Reason::UnknownToken).field(field);
        let found = |token: &TokenId| self.tokens.find(token).ok_or(unknown("token"));
        let Ok(revocation) = Revocation::from_bytes(body) else {
            return self.listed_by(RevocationList::from_bytes(body).map_err(|_| bad("body"))?);
        };
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

    /// The same of a list. An older one would say that what has ended since has not.
    fn listed_by(&self, list: RevocationList) -> Result<Ended, Refused> {
        let bad = |field| Refused::new(Reason::BadControl).field(field);
        match self.tokens.list() {
            Some(last) if list.version <= last.version || list.as_of < last.as_of => {
                let after = format_args!("above {}, not before {}", last.version, last.as_of);
                Err(bad("version").got(&list.version).allowed(&after))
            }
            last if list.is_sound(last.map_or(0, |last| last.tokens.len())) => {
                Ok(Ended::List(list))
            }
            _ => Err(bad("tokens")),
        }
    }

    /// True if a key issues, or has issued or been given a token.
    fn knows(&self, key: &PublicKey) -> bool {
        self.roles.holds(Role::Issuer, key) || self.tokens.concerns(key)
    }

    pub(crate) fn end(&mut self, ended: Ended, now: UnixMillis) {
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
            Ended::List(list) => self.tokens.revoke_listed(list, now),
        }
    }

    /// The part of a token that had ended before it was registered, if any. The ancestors of a
    /// derived token are checked separately.
    pub(crate) fn ended_before(&self, token: &Token) -> Option<&'static str> {
        let body = token.body();
        if self.tokens.list().is_some_and(|list| list.tokens.binary_search(&token.id()).is_ok()) {
            Some("list")
        } else if body.parent.is_none() && body.epoch < self.epoch {
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
