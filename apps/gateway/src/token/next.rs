//! The remedy after a refused call: a hint for the model, and the operator's command on standard
//! error.

use std::sync::Arc;

use syscap::format::{EffectClass, Item, Reason, Retry, Seq, TokenId, ToolId, TxOutcome};
use syscap::plain::shell_word;
use syscap::remedy::Remedy;

use crate::gateway::Gateway;
use crate::governed::kernelside::{CallOutcome, blocking};
use crate::governed::refusal::Aside;
use crate::options::ServerCommand;
use crate::say::say;
use crate::upstream::server::McpServer;

/// The hint for the model beside the kernel's own text of a refused or failed call. If its effect
/// is unknown, the hint has the intent's record, found by its idempotency key.
pub(crate) async fn aside(
    gateway: &Arc<Gateway>,
    tool: &str,
    outcome: &CallOutcome,
    key: &str,
) -> Aside {
    let Some(reason) = outcome.reason else { return Aside::default() };
    let catalog = gateway.catalog();
    let id = ToolId::new(tool);
    let class = id.as_ref().and_then(|id| catalog.class(id));
    let Some(open) = gateway.open() else { return Aside::default() };
    let (token, key) = (open.session.token().id, key.to_owned());
    if reason == Reason::OutcomeUnknown {
        let intent = blocking(move || open.session.intent_of(&key)).await.ok().flatten();
        let next = Some(unknown(gateway, intent));
        return Aside { effect: Some(TxOutcome::Unknown), intent, next, ..Aside::default() };
    }
    let got = outcome.delivered.item().get("got").and_then(Item::as_text);
    let ask = outcome.ask.filter(|_| reason == Reason::Asked);
    let (tool, intent) = (id.as_ref(), None);
    let remedy = Remedy { reason, tool, token: Some(token), got, ask, intent };
    // Somebody elevated must approve, and nobody is named.
    let is_elevated = reason == Reason::Asked
        && ask.is_none()
        && got.is_none_or(str::is_empty)
        && class == Some(EffectClass::Irreversible);
    let next = match reason {
        Reason::Revoked | Reason::Expired | Reason::Exhausted | Reason::OverBudget => {
            Some(ended(gateway, token, reason).await)
        }
        Reason::NoProvider => id.as_ref().and_then(|id| given_up(gateway, id)),
        _ if is_elevated => Some(String::from(
            "nobody is named who may approve what is as grave as this: an operator names somebody \
             in the policy (params.elevated)",
        )),
        _ => {
            if !outcome.told {
                tell(gateway, &remedy);
            }
            remedy.advice()
        }
    };
    let is_the_policys =
        reason.is_a_verdict() || matches!(reason, Reason::Obligation | Reason::Reduced);
    // What a tool counts as matters where a policy was asked.
    let class = class.filter(|_| is_the_policys);
    let effect = (outcome.tx == TxOutcome::Unknown).then_some(outcome.tx);
    let retry = (reason == Reason::NoProvider && next.is_some()).then_some(Retry::Never);
    Aside { class, constraint: outcome.constraint.clone(), next, effect, intent: None, retry }
}

/// The hint for the model about a tool whose server is not started again. The operator's command is
/// said.
fn given_up(gateway: &Gateway, tool: &ToolId) -> Option<String> {
    let server = gateway.server_of(tool).filter(|server| server.is_given_up())?;
    say_given_up(gateway, server);
    Some(String::from(
        "its server failed too often and is not started again: the same call fails until an \
         operator has mended that",
    ))
}

/// The command that starts these servers and shows what each tool is proposed to count as.
pub(crate) fn review(gateway: &Gateway, servers: &[ServerCommand]) -> String {
    let options = &gateway.options;
    let agent = options.agent.as_str();
    let mut command = format!("syscap mcp {} --agent {agent} --review", gateway.kernel.home());
    let words = |server: &ServerCommand| -> String {
        let words: Vec<_> = server.command.iter().map(|word| shell_word(word)).collect();
        words.join(" ")
    };
    match servers {
        [one] => command.push_str(&format!(" --name {} -- {}", one.name, words(one))),
        several => several.iter().for_each(|server| {
            let named = format!("{}={}", server.name, words(server));
            command.push_str(&format!(" --server {}", shell_word(&named)));
        }),
    }
    command
}

/// Tells the operator that a server is not started again, and the command that shows why.
pub(crate) fn say_given_up(gateway: &Gateway, server: &McpServer) {
    say(&format!("server {}: it is not started again; the client has to start anew", server.name));
    let command = review(gateway, std::slice::from_ref(&server.command));
    say(&format!("server {}: whether it starts is shown by: {command}", server.name));
}

/// Tells the operator the command that goes on.
fn tell(gateway: &Gateway, remedy: &Remedy<'_>) {
    if let Some(command) = remedy.command(&gateway.options.home) {
        say(&format!("{}: an operator goes on with: {command}", remedy.reason.name()));
    }
}

fn of_token(token: TokenId, reason: Reason) -> Remedy<'static> {
    let (tool, got, ask, intent) = (None, None, None, None);
    Remedy { reason, tool, token: Some(token), got, ask, intent }
}

/// The hint about a call whose effect is unknown: the person who can resolve it, and how.
pub(crate) fn unknown(gateway: &Gateway, intent: Option<Seq>) -> String {
    let (tool, token, got, ask) = (None, None, None, None);
    let remedy = Remedy { reason: Reason::OutcomeUnknown, tool, token, got, ask, intent };
    tell(gateway, &remedy);
    if let Some(intent) = intent {
        let home = gateway.kernel.home();
        say(&format!(
            "then what became of it is said with: syscap recover resolve {home} {intent} done (or \
             not-done)"
        ));
    }
    remedy.advice().unwrap_or_default()
}

/// Why a token lets nothing through any more, and who goes on. The operator's command is said.
pub(crate) async fn ended(gateway: &Arc<Gateway>, token: TokenId, reason: Reason) -> String {
    let remedy = of_token(token, reason);
    tell(gateway, &remedy);
    let advice = remedy.advice().unwrap_or_default();
    let kernel = Arc::clone(&gateway.kernel);
    let ended = blocking(move || kernel.ended(token)).await.and_then(|ended| ended);
    match ended {
        Ok(Some(why)) => format!("the token {why}; {advice}"),
        // It is valid, and has less left than that: what the same has once more may be enough.
        Ok(None) | Err(_) => advice,
    }
}

/// Tells a client who ends a freeze, and an operator how.
pub(crate) fn frozen(gateway: &Gateway) -> String {
    let (reason, tool, token, got) = (Reason::Frozen, None, None, None);
    let remedy = Remedy { reason, tool, token, got, ask: None, intent: None };
    tell(gateway, &remedy);
    remedy.advice().unwrap_or_default()
}
