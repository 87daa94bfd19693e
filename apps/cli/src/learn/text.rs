//! A proposal for people: a line for each thing that is granted, and why.

use syscap::analysis::learn::{
    ArgumentLine, Class, ForAgent, LeftOut, Proposal, Reach, ScopeLine, Settings, Support,
    ToolLine, Why,
};
use syscap::format::json;
use syscap::learn::Recorded;

use super::found::{FAILED, Found};
use super::{Applied, not_seen};
use crate::{exit::Failure, output::Out};

pub(super) fn print(
    out: &mut Out,
    proposal: &Proposal,
    recorded: &Recorded,
    settings: &Settings,
    found: &Found,
) -> Result<(), Failure> {
    for one in &proposal.agents {
        agent(out, one, settings)?;
    }
    if !proposal.left_out.is_empty() {
        out.line("left out")?;
    }
    for left in &proposal.left_out {
        out.line(&format!("  {} {}", mark(left.why), left_out(left)))?;
    }
    for (_, what, count) in not_seen(recorded) {
        out.line(&format!("not looked at: {count} {what}"))?;
    }
    found.print(out, recorded)?;
    found.print_preview(out)?;
    out.line("policy")?;
    proposal.policy.to_json().lines().try_for_each(|line| out.line(line))
}

pub(super) fn applied(out: &mut Out, applied: Option<&Applied>) -> Result<(), Failure> {
    let Some(Applied { policy, tokens }) = applied else { return Ok(()) };
    for (agent, token) in tokens {
        out.line(&format!("token {token} for {agent}"))?;
    }
    out.line(&format!("in force by record {policy}"))
}

fn agent(out: &mut Out, one: &ForAgent, settings: &Settings) -> Result<(), Failure> {
    out.line(&format!("agent {}: {}", one.agent, support(&one.seen)))?;
    out.line(&format!("  no wider than token {}", one.ceiling))?;
    let tasks = one.seen.tasks;
    out.line(&format!(
        "  of {tasks} tasks {} would be refused something if it were new, by what is narrowed; \
         {} used a tool that no other used",
        one.refused, one.alone_with_a_tool
    ))?;
    for line in &one.tools {
        tool(out, line, tasks)?;
    }
    for limit in &one.limits {
        let why = match limit.most {
            Some((most, session)) => format!(
                "most {most}, in session {session}, times {} for {}",
                settings.headroom,
                counted(settings.sessions, "session")
            ),
            None => "nothing seen: as the standard budget".to_owned(),
        };
        out.line(&format!("  budget {}={}  ({why})", limit.dimension.name(), limit.limit))?;
    }
    Ok(())
}

fn tool(out: &mut Out, line: &ToolLine, tasks: usize) -> Result<(), Failure> {
    let seen = match line.seen.calls {
        0 => "never called; named by the operator".to_owned(),
        _ => support(&line.seen),
    };
    let confirmed = match line.confirmed {
        0 => String::new(),
        n => format!("; {n} more after a stranger's word lie inside"),
    };
    out.line(&format!("  tool {} ({}): {seen}{confirmed}", line.tool, line.effect))?;
    line.scopes.iter().try_for_each(|scope| {
        out.line(&format!("    {}: {}  ({})", scope.dimension, scope.scope, reach(scope, tasks)))
    })?;
    line.arguments.iter().try_for_each(|argument| {
        out.line(&format!("    args.{}: {}", argument.name, said(argument, tasks)))
    })
}

fn reach(line: &ScopeLine, tasks: usize) -> String {
    let alone = |alone: usize| format!("{alone} of {tasks} tasks alone");
    let how = match line.reach {
        Reach::Touched => "what was touched",
        Reach::Gathered => "folders and domains of several",
        Reach::Common => "what all lies in",
        Reach::Granted => "as it was granted",
    };
    let tried = line.tried.iter().map(|(tried, n)| format!("{} has {}", tried.name(), alone(*n)));
    let tried: String = tried.map(|tried| format!("; {tried}")).collect();
    format!("{how}: {} resources, {}{tried}", line.resources, alone(line.alone))
}

fn said(line: &ArgumentLine, tasks: usize) -> String {
    let alone = |alone: usize| format!("{alone} of {tasks} tasks alone");
    let said = match line.class {
        Class::Free => "anything".to_owned(),
        _ => json::from_item(line.written().item()),
    };
    let tried = line.tried.iter().filter_map(|(class, n)| n.map(|n| (class, n)));
    let tried: String =
        tried.map(|(class, n)| format!("; {} has {}", class.name(), alone(n))).collect();
    let values = counted(u64::try_from(line.values).unwrap_or(u64::MAX), "value");
    format!("{said}  ({}: {values}, {}{tried})", line.class.name(), alone(line.alone))
}

/// Before a line, whether what it is about came to nothing.
const fn mark(why: Why) -> &'static str {
    match why {
        Why::Refused(_) | Why::Failed | Why::ToolFailed => FAILED,
        _ => " ",
    }
}

fn left_out(left: &LeftOut) -> String {
    let LeftOut { agent, tool, why, calls, records } = left;
    let words = match why {
        Why::Refused(reason) => format!("refused, {reason}"),
        Why::Failed => "the run failed".to_owned(),
        Why::ToolFailed => "the tool failed".to_owned(),
        Why::Open => "no outcome on record".to_owned(),
        Why::Untrusted => "after a stranger's word, and beyond the rest".to_owned(),
        Why::Erased => "arguments erased".to_owned(),
        Why::Altered => "arguments altered: not what the record commits to".to_owned(),
        Why::ToolChanged => "the tool is another by now".to_owned(),
        Why::BeyondToken => "beyond the newest token of the recording".to_owned(),
        Why::NeverCalled => "granted and never called".to_owned(),
    };
    let listed: Vec<String> = records.iter().map(ToString::to_string).collect();
    let more = calls.saturating_sub(u64::try_from(listed.len()).unwrap_or(u64::MAX));
    let more = if more > 0 { ", .." } else { "" };
    match listed.len() {
        0 => format!("{agent} {tool}: {words}"),
        n => {
            let what = if n == 1 { "record" } else { "records" };
            let (calls, listed) = (counted(*calls, "call"), listed.join(", "));
            format!("{agent} {tool}: {calls}, {what} {listed}{more}: {words}")
        }
    }
}

fn support(seen: &Support) -> String {
    let count = |n: usize, what| counted(u64::try_from(n).unwrap_or(u64::MAX), what);
    let (calls, sessions) = (count(seen.calls, "call"), count(seen.sessions, "session"));
    format!("{calls} in {sessions} of {}", count(seen.tasks, "task"))
}

fn counted(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
