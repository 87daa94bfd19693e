//! Ends a run whose agent, token or home is frozen, or whose token is revoked.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use syscap::Runtime;
use syscap::format::{AgentId, FreezeTarget, TokenId};
use syscap::view::View;

/// How often the home is asked.
const LOOK: Duration = Duration::from_millis(300);
/// How long the home may give no answer: nothing would tell of a freeze then.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Waits for what ends the run, until the sender of `over` is dropped; `None` where nothing did.
pub(super) fn wait(
    access: &Runtime,
    agent: &AgentId,
    token: TokenId,
    over: &Receiver<()>,
) -> Option<String> {
    let mut answered = Instant::now();
    while over.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        match access.view_of(agent, Some(token)) {
            Ok(view) => {
                answered = Instant::now();
                // What takes the place of a token that was narrowed is there before that ends.
                let goes_on = || matches!(access.successor(token), Ok(Some(_)));
                if let Some(why) = stop(&view, agent, token, goes_on) {
                    return Some(why);
                }
            }
            Err(error) if answered.elapsed() > SILENCE_MAX => {
                return Some(format!("the home gives no answer: {error}"));
            }
            Err(_) => {}
        }
    }
    None
}

/// Why the run must end. A token that only expired ends nothing: what comes next is refused.
fn stop(
    view: &View,
    agent: &AgentId,
    token: TokenId,
    goes_on: impl FnOnce() -> bool,
) -> Option<String> {
    if let Some(freeze) = view.stopped_by(agent) {
        return Some(match freeze.target {
            FreezeTarget::Agent => format!("agent {} is frozen", freeze.name),
            FreezeTarget::Kernel | FreezeTarget::Tool => "the home is frozen".to_owned(),
        });
    }
    match view.token(token) {
        Some(token) if token.revoked && !goes_on() => {
            Some(format!("token {} was revoked", token.id))
        }
        Some(_) => None,
        None => Some(format!("token {token} is not in the home")),
    }
}
