//! A call that waits for a person: the client is told that it does, may be asked itself where the
//! policy lets that count, and the call goes on or ends with how to take it up.

use std::{sync::Arc, time::Duration};

use rmcp::model::{
    ClientResult, ElicitResult, ElicitationAction, InputRequest, ProgressNotificationParam,
};
use serde_json::{Value, json};
use syscap::approvals::Waited as Stands;
use syscap::format::json::from_data;
use syscap::format::{ApprovalAnswer, Item, Seq};
use syscap::plain::plain;
use tokio::time::{Instant, sleep};

use crate::client::capabilities::WireKind;
use crate::gateway::Gateway;
use crate::governed::flight::Flight;
use crate::governed::kernelside::{CallOutcome, Envelope, ShownCall, blocking};
use crate::governed::names;
use crate::say::say;

/// How long it is waited at once, before it is asked whether anybody still wants to know.
const STEP: Duration = Duration::from_millis(500);
/// How much of a call's arguments the operator's line shows, in characters.
const ARGUMENTS_MAX: usize = 120;
/// The pause between two words to the client.
const TELL: Duration = Duration::from_secs(5);
/// Longest arguments, and resources, that a client's window is asked to show, in characters: what
/// is cut nobody has seen.
const SHOWN_MAX: usize = 4_096;

/// How long it was waited for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// Until an answer: the same call, made again, goes on or is told why not.
    Answered,
    /// Until the time was over.
    InVain,
    /// Not at all, and nobody was told.
    Not,
}

/// Waits until a call was answered, no longer than until then.
pub(crate) async fn wait(
    gateway: &Arc<Gateway>,
    outcome: &CallOutcome,
    envelope: &Envelope,
    flight: &Flight,
    until: Instant,
) -> Waited {
    let Some(ask) = outcome.ask.filter(|_| Instant::now() < until) else { return Waited::Not };
    // Of more at once each ends with how to take it up.
    let Ok(_one) = gateway.waits.try_acquire() else { return Waited::Not };
    say_that_it_waits(gateway, envelope, ask);
    let kernel = Arc::clone(&gateway.kernel);
    let elsewhere = blocking(move || kernel.needs_another_window(ask)).await;
    // That policy expects its person at the client. No other person is waited for.
    if elsewhere.and_then(|elsewhere| elsewhere).unwrap_or(false) {
        return Waited::InVain;
    }
    let answered = tokio::select! {
        answered = watched(gateway, ask, until) => answered,
        () = told(gateway, ask, flight) => false,
        () = flight.cancel.cancelled() => false,
        () = gateway.closing.cancelled() => false,
    };
    if answered { Waited::Answered } else { Waited::InVain }
}

/// Tells the operator which call waits, and the command that answers it.
fn say_that_it_waits(gateway: &Gateway, envelope: &Envelope, ask: Seq) {
    let (Envelope::Canonical(call) | Envelope::Text(call)) = envelope;
    let tool = call.item().get("tool_id").and_then(Item::as_text).unwrap_or("a tool");
    let args = call.item().get("args").map(from_data).unwrap_or_default();
    let shown: String = args.chars().take(ARGUMENTS_MAX).collect();
    let more = if shown.len() < args.len() { ".." } else { "" };
    let (agent, home) = (&gateway.options.agent, gateway.kernel.home());
    say(&format!("{agent} wants {tool} {shown}{more}: syscap approvals approve {home} {ask}"));
}

async fn watched(gateway: &Gateway, ask: Seq, until: Instant) -> bool {
    while Instant::now() < until {
        let step = until.saturating_duration_since(Instant::now()).min(STEP);
        let kernel = Arc::clone(&gateway.kernel);
        match blocking(move || kernel.wait(ask, step)).await {
            Ok(Ok(Stands::Waiting)) => {}
            Ok(Ok(Stands::Approved | Stands::Denied)) => return true,
            // Another like it used the approval up, or the tool is not what it was: it asks anew,
            // and nobody is sent to a question that can't be answered any more.
            Ok(Ok(Stands::Expired | Stands::Over)) => return true,
            Ok(Err(error)) => {
                say(&format!(
                    "how a call stands that waits is not known: {}",
                    error.for_operator()
                ));
                return false;
            }
            Err(_) => return false,
        }
    }
    false
}

/// Tells the client that it waits, as long as it does, and asks it where it may be asked.
async fn told(gateway: &Arc<Gateway>, ask: Seq, flight: &Flight) {
    tokio::join!(progress(gateway, ask, flight), asked(gateway, ask, flight));
}

async fn progress(gateway: &Gateway, ask: Seq, flight: &Flight) {
    let mut told = 0_u32;
    loop {
        if let Some(token) = flight.progress.clone() {
            told = told.saturating_add(1);
            // Below what the tool itself will say: progress only goes on.
            let little = f64::from(told) / 1_000_000.0;
            let words =
                format!("waits for a person's approval: syscap approvals approve HOME {ask}");
            let progress = ProgressNotificationParam::new(token, little).with_message(words);
            gateway.client.progress(progress).await;
        }
        sleep(TELL).await;
    }
}

/// Puts the call before the client's own user, where its client can and the policy lets that count.
async fn asked(gateway: &Arc<Gateway>, ask: Seq, flight: &Flight) {
    if let Some(answer) = put(gateway, ask, flight).await {
        let kernel = Arc::clone(&gateway.kernel);
        let given = blocking(move || kernel.answer(ask, answer)).await.and_then(|given| given);
        match given {
            Ok(()) => say(&format!("call {ask} was answered in the client's own window")),
            Err(error) => say(&format!(
                "the client's own answer to {ask} does not count: {}",
                error.for_operator()
            )),
        }
    }
    std::future::pending().await
}

async fn put(gateway: &Arc<Gateway>, ask: Seq, flight: &Flight) -> Option<ApprovalAnswer> {
    let kernel = Arc::clone(&gateway.kernel);
    if flight.able.wire != WireKind::Session || flight.able.capabilities.elicitation.is_none() {
        return None;
    }
    let shown = blocking(move || kernel.shown(ask)).await.and_then(|shown| shown).ok()??;
    let request = form(&shown)?;
    if !flight.able.can(&request) {
        return None;
    }
    match gateway.client.ask(request).await {
        Ok(ClientResult::ElicitResult(result)) => answer(&result),
        Ok(_) => None,
        Err(error) => {
            say(&format!("the client was asked for {ask}, and did not answer: {}", error.message));
            None
        }
    }
}

/// `None` where it can't be shown whole.
fn form(shown: &ShownCall) -> Option<InputRequest> {
    let mut lines = vec![
        format!("An agent asks for approval ({}):", shown.agent),
        format!("tool: {}", shown.tool),
        format!("arguments: {}", shown.args),
    ];
    lines.extend(shown.touches.iter().map(|touched| format!("touches: {touched}")));
    lines.extend(shown.constraint.iter().map(|by| format!("asked by: {by}")));
    if shown.untrusted {
        lines.push(String::from("The agent has read what strangers wrote."));
    }
    if lines.iter().map(|line| line.chars().count()).sum::<usize>() > SHOWN_MAX {
        return None;
    }
    let own = names::OWN;
    let lines: Vec<String> = lines.iter().map(|line| format!("[{own}] {}", plain(line))).collect();
    let approve = json!({"type": "boolean", "title": "Approve this call, once", "default": false});
    let schema = json!({"type": "object", "properties": {"approve": approve},
        "required": ["approve"]});
    let request = json!({"method": "elicitation/create",
        "params": {"mode": "form", "message": lines.join("\n"), "requestedSchema": schema}});
    serde_json::from_value(request).ok()
}

/// Yes where the box was ticked, no where it was declined; else it waits on.
fn answer(result: &ElicitResult) -> Option<ApprovalAnswer> {
    let ticked = result.content.as_ref().and_then(|content| content.get("approve"));
    match result.action {
        ElicitationAction::Accept if ticked == Some(&Value::Bool(true)) => {
            Some(ApprovalAnswer::Once)
        }
        ElicitationAction::Decline => Some(ApprovalAnswer::Deny),
        _ => None,
    }
}
