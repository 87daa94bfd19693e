//! The token that a use is made with.

use syscap::{
    Runtime,
    format::{
        id::{AgentId, TokenId, ToolId},
        time::UnixMillis,
    },
    view::TokenInfo,
};

/// Most tokens of an agent that are tried for a use that is told of.
const TOKENS_MAX: usize = 16;

/// An agent's newest token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Live(TokenId),
    /// None is valid: this is the newest, and expired then.
    Expired(TokenId, UnixMillis),
}

impl Found {
    pub(super) const fn id(self) -> TokenId {
        let (Self::Live(token) | Self::Expired(token, _)) = self;
        token
    }
}

/// The tokens that an agent has sessions with, the newest session's first.
pub(super) fn seated(access: &Runtime, agent: &AgentId) -> Result<Vec<TokenId>, syscap::Error> {
    let mut tokens = Vec::new();
    for session in access.view()?.sessions {
        if session.agent == *agent && tokens.len() < TOKENS_MAX && !tokens.contains(&session.token)
        {
            tokens.push(session.token);
        }
    }
    Ok(tokens)
}

/// The newest valid token of an agent; of several one that grants such a tool and has calls left:
/// others may be a gateway's. Where none is valid, the newest that grants such a tool, if it only
/// expired.
pub(super) fn newest(
    access: &Runtime,
    agent: &AgentId,
    is_it: impl Fn(&ToolId) -> bool,
) -> Result<Found, String> {
    let view = access.view().map_err(|error| error.to_string())?;
    let own = || view.tokens.iter().filter(|it| it.agent == *agent && !it.tools.is_empty());
    let grants = |token: &TokenInfo| token.tools.iter().any(&is_it);
    let fits = |token: &TokenInfo| (grants(token), !token.is_spent(), token.issued);
    let live = own().filter(|token| token.is_live(view.now));
    if let Some(token) = live.max_by_key(|token| fits(token)) {
        return Ok(Found::Live(token.id));
    }
    match own().filter(|token| grants(token)).max_by_key(|token| token.issued) {
        None => Err(format!("{agent} has no valid token: an operator sets the client up")),
        Some(token) if token.revoked => {
            Err(format!("{agent} has no valid token: the last one was revoked"))
        }
        Some(token) => Ok(Found::Expired(token.id, token.expires)),
    }
}

/// When a token ends.
pub(super) fn expiry(access: &Runtime, token: TokenId) -> Result<Option<UnixMillis>, String> {
    let view = access.view().map_err(|error| error.to_string())?;
    Ok(view.token(token).map(|token| token.expires))
}
