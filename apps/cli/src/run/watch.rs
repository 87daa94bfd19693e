//! Ends a run whose agent, token or home is frozen, or whose token is revoked.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use syscap::Runtime;
use syscap::format::{AgentId, FreezeTarget, TokenId};

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
        match look(access, agent, token) {
            Ok(None) => answered = Instant::now(),
            Ok(stops) => return stops,
            Err(error) if answered.elapsed() > SILENCE_MAX => {
                return Some(format!("the home gives no answer: {error}"));
            }
            Err(_) => {}
        }
    }
    None
}

/// Why the run must end, if it must. A token that only expired ends nothing: what comes next is
/// refused. What takes the place of one that is narrowed is there before that ends.
fn look(
    access: &Runtime,
    agent: &AgentId,
    token: TokenId,
) -> Result<Option<String>, syscap::Error> {
    let view = access.view_of(agent, Some(token))?;
    if let Some(freeze) = view.stopped_by(agent) {
        return Ok(Some(match freeze.target {
            FreezeTarget::Agent => format!("agent {} is frozen", freeze.name),
            FreezeTarget::Kernel | FreezeTarget::Tool => "the home is frozen".to_owned(),
        }));
    }
    Ok(match view.token(token) {
        Some(own) if own.revoked && access.successor(token)?.is_none() => {
            Some(format!("token {token} was revoked"))
        }
        Some(_) => None,
        None => Some(format!("token {token} is not in the home")),
    })
}
