//! Going on where a token has ended: by one that an operator issued since, or that is issued here.

use std::sync::Arc;

use syscap::format::{Dimension, Item, Reason, ToolId};
use syscap::view::TokenInfo;

use crate::gateway::{Gateway, Open};
use crate::governed::kernelside::{CallOutcome, Lack, blocking};
use crate::say::say;
use crate::upstream::notice::ChangedList;

/// The missing part of a call that another token may have. `None` where it was not refused for
/// that.
pub(crate) fn lack(outcome: &CallOutcome, token: &TokenInfo) -> Option<Lack> {
    let error = outcome.delivered.item();
    let text = |key: &str| error.get(key).and_then(Item::as_text);
    let renewable = match outcome.reason? {
        Reason::Expired => true,
        // Or it is the agent that has no more, by whatever token.
        Reason::Exhausted => text("field").is_none_or(|field| !field.starts_with("credits of ")),
        // What is more than all that it ever had is more than the same once more.
        Reason::OverBudget => {
            let dimension = text("field").and_then(Dimension::from_name)?;
            let wanted: u64 = text("got")?.parse().ok()?;
            wanted <= token.limits.get(dimension)
        }
        Reason::Revoked | Reason::NotGranted | Reason::OutOfScope => false,
        _ => return None,
    };
    let tool =
        (outcome.reason == Some(Reason::NotGranted)).then(|| text("got").and_then(ToolId::new));
    let scope = outcome.reason == Some(Reason::OutOfScope);
    Some(Lack { tool: tool.flatten(), scope, renewable })
}

/// True if calls use another session from now on.
pub(crate) async fn go_on(gateway: &Arc<Gateway>, ended: &Arc<Open>, lack: &Lack) -> bool {
    let _one = gateway.renewing.lock().await;
    if gateway.open().is_some_and(|open| !Arc::ptr_eq(&open, ended)) {
        return true;
    }
    let (kernel, lack) = (Arc::clone(&gateway.kernel), lack.clone());
    let token = ended.session.token().id;
    match blocking(move || kernel.go_on(token, &lack)).await.and_then(|found| found) {
        Ok(Some(session)) => {
            let before = gateway.granted();
            gateway.set_session(session);
            if gateway.granted() != before {
                gateway.client.changed(ChangedList::Tools).await;
            }
            true
        }
        Ok(None) => false,
        Err(error) => {
            say(&format!("no other token can be had: {}", error.for_operator()));
            false
        }
    }
}

/// Why no call is let through any more, for the client; the operator is told the command.
pub(crate) async fn ended(gateway: &Arc<Gateway>) -> Option<String> {
    let token = gateway.open()?.session.token().id;
    let kernel = Arc::clone(&gateway.kernel);
    let ended = blocking(move || kernel.ended(token)).await.and_then(|ended| ended);
    match ended {
        Ok(ended) => {
            let why = ended?;
            let home = gateway.kernel.home();
            say(&format!("token {token} {why}; go on with: syscap token reissue {home} {token}"));
            Some(format!("the token {why}; an operator can issue it once more"))
        }
        Err(error) => {
            say(&format!("how the token stands is not known: {}", error.for_operator()));
            None
        }
    }
}
