//! News: new records while the gateway runs, and offers that are not shown. No offered tool
//! silently fails to appear.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use rmcp::model::Tool;
use serde_json::{Value, json};
use syscap::format::{EffectClass, ToolId};
use syscap::plain::shell_word;
use syscap::provide::Standing;
use tokio::time::sleep;

use crate::client::missing::{Missing, Why};
use crate::gateway::Gateway;
use crate::governed::kernelside::blocking;
use crate::governed::offer::offer;
use crate::say::say;
use crate::upstream::notice::ChangedList;

/// How often it is looked whether anything has come on record.
const LOOK: Duration = Duration::from_millis(500);
/// Most tools that are named in a list, or in one line.
const NAMED_MAX: usize = 32;
/// The hint for a client about the person who can show them.
const NEXT: &str = "an operator can grant, accept or choose them";
/// The operator's remedy for tools that are left out.
const CHOOSE: &str = "syscap mcp with --tool SERVER:NAME,NAME* which takes these alone";
/// Longest list of tools in a command, in bytes: a command that is cut goes nowhere.
const LIST_BYTES_MAX: usize = 300;

/// All of them.
pub(crate) fn missing(gateway: &Gateway) -> Vec<Missing> {
    let (catalog, granted) = (gateway.catalog(), gateway.granted());
    let each = catalog.all().iter().filter_map(|(id, tool)| {
        let why = match tool.standing {
            Standing::Ready if granted.contains(id) => return None,
            Standing::Ready => Why::NotGranted,
            Standing::New => Why::New,
            Standing::Changed => Why::Changed,
            Standing::Taken => Why::Taken,
        };
        Some(Missing { tool: id.clone(), why })
    });
    each.chain(left_out(gateway)).collect()
}

/// The tools beyond a server's quota.
fn left_out(gateway: &Gateway) -> Vec<Missing> {
    let mut all = Vec::new();
    for server in &gateway.servers {
        let quota = server.quota.lock().unwrap_or_else(PoisonError::into_inner);
        let tools = quota.left().iter().filter_map(|name| {
            ToolId::new(&format!("{}.{}", server.name, name.to_ascii_lowercase()))
        });
        all.extend(tools.map(|tool| Missing { tool, why: Why::LeftOut }));
    }
    all
}

/// The part of a list of tools about the missing ones: `None` where none is. A client may give it
/// to its model: the commands stand on standard error.
pub(crate) fn told(gateway: &Gateway) -> Option<Value> {
    let missing = missing(gateway);
    if missing.is_empty() {
        return None;
    }
    let named = missing.iter().take(NAMED_MAX);
    let named: Vec<Value> = named
        .map(|missing| json!({"tool": missing.tool.as_str(), "why": missing.why.name()}))
        .collect();
    Some(json!({"tools": named, "in_all": missing.len(), "next": NEXT}))
}

/// The text for a client at its beginning about missing tools, and about servers that do not run:
/// `None` where there is nothing.
pub(crate) fn told_at_start(gateway: &Gateway) -> Option<String> {
    let mut lines = Vec::new();
    for server in gateway.servers.iter().filter(|server| server.connection().is_none()) {
        lines.push(match server.settled.is_cancelled() {
            true => format!("server {} could not be started.", server.name),
            false => format!("server {} is still starting: call its tools later.", server.name),
        });
    }
    let missing = missing(gateway);
    for why in Why::ALL {
        let of_it = missing.iter().filter(|missing| missing.why == why);
        let names: Vec<&str> = of_it.map(|missing| missing.tool.as_str()).collect();
        if let Some(named) = names.get(..names.len().min(NAMED_MAX)).filter(|n| !n.is_empty()) {
            let more = match names.len().saturating_sub(named.len()) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            lines.push(format!("{} ({}){more} can't be called.", named.join(", "), why.name()));
        }
    }
    if lines.is_empty() {
        return None;
    }
    lines.push("The operator finds what to do about it on the gateway's standard error.".into());
    Some(format!("syscap:\n{}", lines.join("\n")))
}

/// The one command that shows all that are missing for one reason.
fn command(gateway: &Gateway, why: Why, missing: &[Missing]) -> Option<String> {
    let tools = missing.iter().filter(|missing| missing.why == why);
    let tools: Vec<&str> = tools.map(|missing| missing.tool.as_str()).collect();
    if tools.is_empty() {
        return None;
    }
    let home = gateway.kernel.home();
    match why {
        Why::NotGranted => {
            let token = gateway.open()?.session.token().id;
            let besides = besides(&tools);
            let named = match gateway.options.token {
                // One that is named stays the one that is meant.
                Some(_) => "; then name the new one by --token",
                None => "",
            };
            Some(format!("syscap token reissue {home} {token} --tool {besides} --dry-run{named}"))
        }
        // As many as fit: the others are named when these are accepted.
        Why::New | Why::Changed => {
            let mut list = String::new();
            for tool in tools {
                if !list.is_empty() && list.len().saturating_add(tool.len()) > LIST_BYTES_MAX {
                    break;
                }
                list.push_str(&format!(" {tool}"));
            }
            Some(format!("syscap tools accept {home}{list}"))
        }
        Why::Taken => None,
        Why::LeftOut => Some(String::from(CHOOSE)),
    }
}

/// The tools, one by one; where those are too many, as all of their servers'.
fn besides(tools: &[&str]) -> String {
    let all = tools.join(",");
    if all.len() <= LIST_BYTES_MAX {
        return all;
    }
    let servers = tools.iter().filter_map(|tool| tool.split('.').next());
    let servers: BTreeSet<String> = servers.map(|server| format!("{server}.*")).collect();
    let servers: Vec<String> = servers.into_iter().collect();
    shell_word(&servers.join(",")).into_owned()
}

/// Says on standard error which tools are missing now that were not before.
fn say_what_is_missing(gateway: &Gateway) {
    let all = missing(gateway);
    let news: Vec<Missing> = gateway.told_missing(&all.iter().cloned().collect());
    for why in Why::ALL {
        let of_it = news.iter().filter(|missing| missing.why == why);
        let names: Vec<&str> = of_it.map(|missing| missing.tool.as_str()).collect();
        if let (false, Some(command)) = (names.is_empty(), command(gateway, why, &news)) {
            let because = match why {
                Why::NotGranted => "the token does not grant what is offered:",
                Why::New => "not on record yet, so that a person must accept:",
                Why::LeftOut => "left out, since more are not taken of a server:",
                _ => "another definition is on record of:",
            };
            // Apart, so that a long list of names cuts no command.
            let shown = names.get(..names.len().min(NAMED_MAX)).unwrap_or_default();
            let more = match names.len().saturating_sub(shown.len()) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            say(&format!("{because} {}{more}", shown.join(", ")));
            say(&format!("that is shown after: {command}"));
        }
    }
}

/// Goes by a token that grants what is missing, where an operator has issued one, or has said that
/// one may be issued here; and says what is missing still.
pub(crate) async fn take_up(gateway: &Arc<Gateway>) {
    let lacking = || {
        let of_it = missing(gateway).into_iter().filter(|one| one.why == Why::NotGranted);
        of_it.map(|missing| missing.tool).collect::<Vec<ToolId>>()
    };
    let tools = lacking();
    if let (false, Some(open)) = (tools.is_empty(), gateway.open()) {
        let _one = gateway.renewing.lock().await;
        let (kernel, token) = (Arc::clone(&gateway.kernel), open.session.token().id);
        match blocking(move || kernel.grow(token, &tools)).await.and_then(|grown| grown) {
            Ok(Some(session)) => gateway.set_session(session),
            Ok(None) => {}
            Err(error) => say(&format!("no other token can be had: {}", error.for_operator())),
        }
    }
    say_what_is_missing(gateway);
}

/// The shown tools, their classes, and the missing ones.
type Shown = (Vec<(Tool, Option<EffectClass>)>, Vec<Missing>);

fn shown(gateway: &Gateway) -> Shown {
    let catalog = gateway.catalog();
    let class = |tool: &Tool| catalog.id(&tool.name).and_then(|id| catalog.class(id));
    let listed = catalog.list(&gateway.granted()).into_iter();
    (listed.map(|tool| (tool.clone(), class(&tool))).collect(), missing(gateway))
}

/// Takes up what comes on record, until the gateway ends: definitions that are accepted, what an
/// operator states of tools, tokens.
pub(crate) async fn watch(gateway: Arc<Gateway>) {
    let stamp = || {
        let kernel = Arc::clone(&gateway.kernel);
        async move { blocking(move || kernel.stamp()).await.and_then(|stamp| stamp).ok() }
    };
    let mut last = stamp().await;
    loop {
        tokio::select! {
            () = sleep(LOOK) => {}
            () = gateway.closing.cancelled() => return,
        }
        // Who can't be asked now is asked again: whoever calls says what is wrong.
        let now = stamp().await;
        if now.is_none() || now == last {
            continue;
        }
        last = now;
        let before = shown(&gateway);
        let accepted: BTreeSet<ToolId> = of(&before.1, Why::New);
        if let Err(error) = offer(&gateway).await {
            say(&format!("what came on record can't be taken up: {}", error.for_operator()));
        }
        let still: BTreeSet<ToolId> = of(&missing(&gateway), Why::New);
        if accepted.difference(&still).next().is_some() {
            widen(&gateway).await;
        }
        take_up(&gateway).await;
        if shown(&gateway) != before {
            gateway.client.changed(ChangedList::Tools).await;
        }
    }
}

fn of(missing: &[Missing], why: Why) -> BTreeSet<ToolId> {
    missing.iter().filter(|one| one.why == why).map(|one| one.tool.clone()).collect()
}

/// A token that was issued here was issued for all tools of these servers: so is the next, with
/// those that came later and that an operator has put on record.
pub(crate) async fn widen(gateway: &Arc<Gateway>) {
    let ready = gateway.grantable();
    let kernel = Arc::clone(&gateway.kernel);
    match blocking(move || kernel.widen(&ready)).await.and_then(|widened| widened) {
        Ok(Some(session)) => gateway.set_session(session),
        Ok(None) => {}
        Err(error) => {
            say(&format!("the token can't be issued with more tools: {}", error.for_operator()));
        }
    }
}
