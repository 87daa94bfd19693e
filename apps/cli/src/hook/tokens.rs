//! The token that a use is made with.

use syscap::Runtime;
use syscap::format::{AgentId, TokenId, ToolId, UnixMillis};
use syscap::view::{Choice, Owner, TokenInfo};

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

/// The tokens that an agent has sessions with, the newest session's first; then its newest token: a
/// server that has just begun has no sessions, and a use that an earlier one let through is reported by
/// any.
pub(super) fn used(access: &Runtime, agent: &AgentId) -> Result<Vec<TokenId>, syscap::Error> {
    let view = access.view()?;
    let newest = view.tokens.iter().rev().find(|token| token.agent == *agent);
    let newest = newest.map(|token| token.id);
    let mut tokens = Vec::new();
    for session in view.sessions {
        if session.agent == *agent && tokens.len() < TOKENS_MAX && !tokens.contains(&session.token)
        {
            tokens.push(session.token);
        }
    }
    tokens.extend(newest.filter(|newest| !tokens.contains(newest)));
    Ok(tokens)
}

/// The agent's token for such a tool, by [`View::choose`](syscap::view::View::choose). One that is used
/// up, or does not grant the tool, is found too: the refusal is on record then.
pub(super) fn newest(
    access: &Runtime,
    agent: &AgentId,
    is_it: impl Fn(&ToolId) -> bool,
) -> Result<Found, String> {
    let view = access.view_of(agent, None).map_err(|error| error.to_string())?;
    match view.choose(agent, Owner::Agent, |token| token.tools.iter().any(&is_it)) {
        Choice::Use(token) | Choice::Spent(token) | Choice::Unfit(token) => {
            Ok(Found::Live(token.id))
        }
        Choice::Expired(token) => Ok(Found::Expired(token.id, token.expires)),
        Choice::Revoked(_) => Err(format!(
            "agent `{agent}` has no valid token: the last one was revoked; tell your user, who goes \
             on with `syscap hook --setup` or `syscap token issue`, or names an older one by --token"
        )),
        Choice::None => Err(format!(
            "agent `{agent}` has no token; tell your user, who sets the hook up with --setup"
        )),
    }
}

/// True if a token grants a tool: the named one, or else the agent's newest that does.
pub(super) fn grants(
    access: &Runtime,
    agent: &AgentId,
    token: Option<TokenId>,
    tool: &ToolId,
) -> Result<bool, String> {
    let view = access.view_of(agent, token).map_err(|error| error.to_string())?;
    let has = |token: &TokenInfo| token.tools.contains(tool);
    Ok(match token {
        Some(id) => view.token(id).is_some_and(has),
        None => matches!(view.choose(agent, Owner::Agent, has), Choice::Use(token) if has(token)),
    })
}

/// When a token ends.
pub(super) fn expiry(access: &Runtime, token: TokenId) -> Result<Option<UnixMillis>, String> {
    let view = access.view().map_err(|error| error.to_string())?;
    Ok(view.token(token).map(|token| token.expires))
}
