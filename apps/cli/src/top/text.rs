//! The view, for people.

use syscap::format::Dimension;
use syscap::view::{TokenInfo, ToolInfo, View};

use super::look::{Holder, Seen};
use crate::{exit::Failure, hook::client::Client, output::Out, tools::standing};

/// Prints it, with so many rows of a kind at most.
pub(super) fn print(out: &mut Out, seen: &Seen, rows: usize) -> Result<(), Failure> {
    head(out, seen)?;
    counted(out, seen)?;
    running(out, seen, rows)?;
    sessions(out, &seen.view, rows)?;
    tokens(out, seen, rows)?;
    tools(out, &seen.view, rows)
}

fn head(out: &mut Out, seen: &Seen) -> Result<(), Failure> {
    let view = &seen.view;
    let policy = view.policy.map_or("none".to_owned(), |hash| short(&hash.to_string()));
    let preset = seen.policy.as_ref().and_then(|policy| policy.preset);
    let preset = preset.map_or_else(String::new, |preset| format!("preset {preset} "));
    let shadow = view.shadow.map(|hash| format!("  shadow {}", short(&hash.to_string())));
    let shadow = shadow.unwrap_or_default();
    let (home, head) = (short(&view.home.to_string()), view.head);
    out.line(&format!("home {home}  record {head}  {}  policy {preset}{policy}{shadow}", seen.at))?;
    out.line(&match seen.holder {
        Holder::Serves => {
            format!("a process holds it and serves it; {} attached", view.counts.attached)
        }
        Holder::Silent => "a process holds it and serves nobody: this is what the log has".into(),
        Holder::Nobody => "no process holds it: this is what the log has".into(),
    })?;
    if seen.policy.as_ref().is_some_and(|policy| policy.records_only) {
        out.line("WARNING the policy in force is a recording: it allows every call in a token")?;
    }
    for freeze in &view.frozen {
        out.line(format!("FROZEN  {} {}", freeze.target, freeze.name).trim_end())?;
    }
    Ok(())
}

fn counted(out: &mut Out, seen: &Seen) -> Result<(), Failure> {
    let counts = &seen.view.counts;
    let refused = counts.refused.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
    let since = match seen.holder {
        Holder::Serves => "since it was opened",
        Holder::Silent | Holder::Nobody => "in the last run",
    };
    let (calls, allowed, failed) = (counts.calls, counts.allowed, counts.failed);
    out.line(&format!(
        "calls {calls} {since}: {allowed} brought a result, {failed} failed, {refused} refused"
    ))?;
    if seen.asks > 0 {
        out.line(&format!("asked a person {} times in the last hour", seen.asks))?;
    }
    if counts.unnotified > 0 {
        out.line(&format!(
            "nobody was told of asks {} times: the program that `syscap config` names failed, or \
             took too long",
            counts.unnotified
        ))?;
    }
    if counts.foreign > 0 {
        out.line(&format!("turned away {} connections of other users", counts.foreign))?;
    }
    let mut reasons: Vec<_> = counts.refused.iter().collect();
    reasons.sort_by(|(_, one), (_, other)| other.cmp(one));
    for (reason, count) in reasons {
        out.line(&format!("  {count:>7}  {}", reason.name()))?;
    }
    Ok(())
}

fn running(out: &mut Out, seen: &Seen, rows: usize) -> Result<(), Failure> {
    let (view, at) = (&seen.view, seen.at);
    // A log does not say what runs.
    if seen.holder != Holder::Serves {
        return Ok(());
    }
    out.line(&format!("running {}", view.running_in_all))?;
    for run in view.running.iter().take(rows) {
        let lasts = seconds(at.since(run.since));
        let (intent, agent) = (run.intent, run.agent.as_str());
        let tool = Client::shown(&run.tool, None);
        out.line(&format!("  {intent:>7}  {tool:<32}  {agent:<16}  {lasts}"))?;
    }
    more(out, view.running_in_all, view.running.len().min(rows))
}

fn sessions(out: &mut Out, view: &View, rows: usize) -> Result<(), Failure> {
    out.line(&format!("sessions {}", view.sessions_in_all))?;
    for session in view.sessions.iter().take(rows) {
        let (number, agent) = (session.number, session.agent.as_str());
        let token = short(&session.token.to_string());
        out.line(&format!("  {number:>7}  {agent:<32}  {token}  {}", session.label))?;
    }
    more(out, view.sessions_in_all, view.sessions.len().min(rows))
}

fn tokens(out: &mut Out, seen: &Seen, rows: usize) -> Result<(), Failure> {
    let view = &seen.view;
    let live: Vec<&TokenInfo> = view.tokens.iter().filter(|token| token.is_live(seen.at)).collect();
    out.line(&format!("tokens {}, {} live", view.tokens_in_all, live.len()))?;
    for token in live.iter().take(rows) {
        let (id, agent) = (short(&token.id.to_string()), token.agent.as_str());
        let left = seconds(token.expires.since(seen.at));
        out.line(&format!("  {id}  {agent:<16}  {left:>9}  {}", budget(token)))?;
    }
    more(out, count(live.len()), live.len().min(rows))
}

/// `calls 3+1/100  wall_us 12/600000000`: calls, and what else was used or is held.
fn budget(token: &TokenInfo) -> String {
    let mut text = Vec::new();
    for dimension in Dimension::ALL {
        let (used, held) = (token.used.get(dimension), token.held.get(dimension));
        if dimension != Dimension::Calls && used == 0 && held == 0 {
            continue;
        }
        let held = if held > 0 { format!("+{held}") } else { String::new() };
        let limit = token.limits.get(dimension);
        text.push(format!("{} {used}{held}/{limit}", dimension.name()));
    }
    text.join("  ")
}

fn tools(out: &mut Out, view: &View, rows: usize) -> Result<(), Failure> {
    let is_wanting = |info: &&ToolInfo| matches!(standing(info), "changed" | "no_provider");
    let wanting: Vec<&ToolInfo> = view.tools.iter().filter(is_wanting).collect();
    let able = view.tools_in_all.saturating_sub(count(wanting.len()));
    out.line(&format!("tools {}, {able} can be called", view.tools_in_all))?;
    for info in wanting.iter().take(rows) {
        out.line(&format!("  {:<32}  {}", info.tool.as_str(), standing(info)))?;
    }
    more(out, count(wanting.len()), wanting.len().min(rows))
}

fn more(out: &mut Out, all: u64, shown: usize) -> Result<(), Failure> {
    match all.saturating_sub(count(shown)) {
        0 => Ok(()),
        more => out.line(&format!("  and {more} more")),
    }
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// `3.2 s`, `75 min`: as exact as one wants it.
fn seconds(ms: u64) -> String {
    match ms {
        ..60_000 => format!("{}.{} s", ms.div_euclid(1_000), ms.rem_euclid(1_000).div_euclid(100)),
        60_000..7_200_000 => format!("{} min", ms.div_euclid(60_000)),
        _ => format!("{} h", ms.div_euclid(3_600_000)),
    }
}

/// The first digits of a hash.
fn short(hash: &str) -> String {
    hash.get(..12).map_or_else(String::new, |head| format!("{head}.."))
}
