//! The view, for machines.

use syscap::format::PolicyHash;
use syscap::view::{Running, SessionInfo, TokenInfo};

use super::look::Seen;
use crate::output::{Object, array, quote};
use crate::tools::brief;

pub(super) fn print(seen: &Seen) -> String {
    let view = &seen.view;
    let hash = |hash: Option<PolicyHash>| {
        hash.map_or_else(|| "null".to_owned(), |hash| quote(&hash.to_string()))
    };
    let preset = seen.policy.as_ref().and_then(|policy| policy.preset);
    let records_only = seen.policy.as_ref().is_some_and(|policy| policy.records_only);
    let frozen = view.frozen.iter().map(|freeze| {
        Object::new().text("target", freeze.target.name()).text("name", &freeze.name).finish()
    });
    Object::new()
        .shown("home_id", view.home)
        .text("holder", seen.holder.name())
        .uint("head_seq", view.head.get())
        .shown("at", seen.at)
        .json("policy", &hash(view.policy))
        .json("preset", &preset.map_or_else(|| "null".to_owned(), quote))
        .flag("recording", records_only)
        .json("shadow", &hash(view.shadow))
        .json("frozen", &array(frozen))
        .json("counts", &counts(seen))
        .uint("asks_last_hour", seen.asks)
        .uint("running_in_all", view.running_in_all)
        .json("running", &array(view.running.iter().map(|run| running(run, seen))))
        .uint("sessions_in_all", view.sessions_in_all)
        .json("sessions", &array(view.sessions.iter().map(session)))
        .uint("tokens_in_all", view.tokens_in_all)
        .json("tokens", &array(view.tokens.iter().map(|info| token(info, seen))))
        .uint("tools_in_all", view.tools_in_all)
        .json("tools", &array(view.tools.iter().map(|info| brief(info).finish())))
        .finish()
}

fn counts(seen: &Seen) -> String {
    let counts = &seen.view.counts;
    let refused = counts.refused.iter();
    let refused = refused.fold(Object::new(), |o, (reason, count)| o.uint(reason.name(), *count));
    Object::new()
        .uint("calls", counts.calls)
        .uint("allowed", counts.allowed)
        .uint("failed", counts.failed)
        .json("refused", &refused.finish())
        .uint("connections", counts.connections)
        .uint("attached", counts.attached)
        .uint("foreign", counts.foreign)
        .uint("notified", counts.notified)
        .uint("unnotified", counts.unnotified)
        .finish()
}

fn running(run: &Running, seen: &Seen) -> String {
    Object::new()
        .uint("intent", run.intent.get())
        .shown("tool", &run.tool)
        .shown("agent", &run.agent)
        .uint("for_ms", seen.at.since(run.since))
        .finish()
}

fn session(session: &SessionInfo) -> String {
    Object::new()
        .uint("session", session.number.get())
        .shown("agent", &session.agent)
        .shown("token_id", session.token)
        .shown("label", session.label)
        .flag("untrusted", session.label.is_untrusted())
        .finish()
}

fn token(token: &TokenInfo, seen: &Seen) -> String {
    Object::new()
        .shown("token_id", token.id)
        .shown("agent", &token.agent)
        .flag("live", token.is_live(seen.at))
        .flag("revoked", token.revoked)
        .shown("expires", token.expires)
        .json("tools", &array(token.tools.iter().map(|tool| quote(tool.as_str()))))
        .amounts("limits", &token.limits)
        .amounts("used", &token.used)
        .amounts("held", &token.held)
        .amounts("left", &token.left)
        .finish()
}
