//! How the tokens of an agent stand: what ended one, what stopped it, what takes its place.

use syscap::format::{AgentId, Dimension, ToolId, UnixMillis};
use syscap::view::{TokenInfo, View};

/// Why nothing more is let through by a token.
pub(crate) fn ended(token: &TokenInfo, now: UnixMillis) -> Option<String> {
    match token {
        token if token.revoked => Some("was revoked".to_owned()),
        token if token.expires <= now => Some(format!("has expired, at {}", token.expires)),
        token if token.is_spent() => {
            let used = token.limits.iter().find(|(dimension, limit)| {
                *limit > 0 && *dimension != Dimension::Concurrent && token.left.get(*dimension) == 0
            });
            Some(match used {
                Some((dimension, _)) => format!("is spent: {} has run out", dimension.name()),
                None => "is spent: a run took more than was set aside for it".to_owned(),
            })
        }
        _ => None,
    }
}

/// True if an agent, or everything, is frozen, or may be, since not all freezes are seen.
pub(crate) fn is_frozen(view: &View, agent: &AgentId) -> bool {
    let unseen = u64::try_from(view.frozen.len()).is_ok_and(|seen| seen < view.frozen_in_all);
    unseen || view.stopped_by(agent).is_some()
}

/// True if an operator has stopped the agent of a token since that was issued, by any means.
pub(crate) fn is_stopped(view: &View, token: &TokenInfo) -> bool {
    let own = |other: &&TokenInfo| other.agent == token.agent && other.issued >= token.issued;
    let revoked = view.tokens.iter().filter(own).any(|other| other.revoked);
    revoked || is_frozen(view, &token.agent)
}

/// The requirement of another token for the missing part.
pub(crate) enum Lacks<'a> {
    Tool(&'a ToolId),
    Scope,
    Life,
}

/// A token of the same agent that was issued later, and goes on: what sessions of the other have
/// been given is not forgotten by it. If a tool or a scope was lacking it grants all others too;
/// else some of them.
pub(crate) fn newer<'v>(
    view: &'v View,
    ended: &TokenInfo,
    lacks: &Lacks<'_>,
) -> Option<&'v TokenInfo> {
    let read = ended.label;
    view.tokens.iter().find(|token| {
        let has = |tool: &ToolId| token.tools.contains(tool);
        let grants = match lacks {
            Lacks::Tool(tool) => has(tool) && ended.tools.iter().all(has),
            Lacks::Scope => ended.tools.iter().all(has),
            Lacks::Life => ended.tools.iter().any(has),
        };
        let goes_on =
            crate::token::standing::ended(token, view.now).is_none() && read.leq(token.label);
        token.agent == ended.agent && token.issued > ended.issued && goes_on && grants
    })
}
