//! Answers to more than one call.

use std::{path::Path, time::Duration};

use syscap::approvals::{Proposal, Rows, SetTerms, WaitingCall};
use syscap::format::{Grants, Resource, Rule, SET_LIFE_MS, Scope, Seq, UnixMillis};
use syscap::kernel::SetView;

use super::shown::left;
use crate::exit::{Ended, Exit, Failure};
use crate::hook::client::Client;
use crate::output::{Object, Out, array, plain, quote};
use crate::runtime;

/// The signed terms: a number of calls, an end, and scopes.
pub(crate) fn terms(
    home: &Path,
    call: &WaitingCall,
    uses: u64,
    life: Option<(UnixMillis, Duration)>,
    wider: bool,
) -> Result<SetTerms, Failure> {
    let failed = |what: &str, advice: String| Failure::Usage { what: what.to_owned(), advice };
    if call.uses_max == 0 {
        let advice = concat!(
            "is not for this call: it can't be undone, runs what it is given, touches nothing ",
            "that has a name, or the policy says so",
        );
        return Err(failed("--uses", advice.to_owned()));
    }
    if uses > call.uses_max {
        return Err(failed("--uses", format!("is at most {} for this call", call.uses_max)));
    }
    let expires = match life {
        None if call.session.is_none() => {
            let advice = "the session that asked has ended: say how long, with --for DURATION";
            return Err(failed("--uses", advice.to_owned()));
        }
        None => None,
        Some((now, life)) => {
            let life = u64::try_from(life.as_millis()).unwrap_or(u64::MAX);
            if life > SET_LIFE_MS {
                return Err(failed("--for", "is a day at most".to_owned()));
            }
            Some(now.plus(life))
        }
    };
    let scopes = if wider {
        let proposals = Rows::open(home)?.proposals(call)?;
        let wide = proposals.into_iter().find_map(|proposal| proposal.scopes);
        let advice = "nothing wider is proposed for this call: see `syscap approvals show`";
        Some(wide.ok_or_else(|| failed("--wider", advice.to_owned()))?)
    } else {
        None
    };
    Ok(SetTerms { uses, scopes, expires })
}

/// The standing approvals, and kernel time: as the server says, where one answers, else as the log
/// does.
fn all(home: &Path) -> Result<(Vec<SetView>, UnixMillis), Failure> {
    match runtime::asked(home, syscap::Runtime::sets) {
        Some(sets) => Ok(sets),
        None => {
            let log = runtime::look(home)?;
            Ok((log.kernel().sets().collect(), log.kernel().now()))
        }
    }
}

/// True if a standing approval has that number.
pub(super) fn stands(home: &Path, ask: u64) -> Result<bool, Failure> {
    Ok(all(home)?.0.iter().any(|set| set.ask == Seq::new(ask)))
}

/// The terms that are about to be signed, beside the call.
pub(super) fn given(out: &mut Out, call: &WaitingCall, terms: &SetTerms) -> Result<(), Failure> {
    let until = match terms.expires {
        Some(until) => format!("until {until}"),
        None => "until its session ends".to_owned(),
    };
    out.line(&format!("for        {} calls, {until}", terms.uses))?;
    match &terms.scopes {
        None => out.line("covers     what it touches, and nothing else")?,
        Some(scopes) => {
            for shown in shown(scopes) {
                out.line(&format!("covers     {shown}"))?;
            }
        }
    }
    let sessions = match terms.expires {
        Some(_) => "all sessions of its token",
        None => "its session",
    };
    out.line(&match call.label.is_untrusted() {
        true => format!("holds      in {sessions}, whatever untrusted content they read"),
        false => format!(
            "holds      in {sessions}, up to the first untrusted result: the same call then asks \
             once more, and that answer holds on"
        ),
    })
}

/// Says of a call that waits which standing approval of its tool has ended, and why.
pub(super) fn outlived(out: &mut Out, home: &Path, call: &WaitingCall) -> Result<(), Failure> {
    let is_its = |set: &&SetView| {
        (&set.agent, &set.tool, set.token) == (&call.agent, &call.tool, call.token)
    };
    for set in all(home)?.0.iter().filter(is_its).filter(|set| set.is_outlived()) {
        out.line(&format!(
            "ended      the standing approval {} of this tool ({} calls left): a session of its \
             token has read untrusted content since; an answer with --for now holds on",
            set.ask, set.left
        ))?;
    }
    Ok(())
}

/// The possible standing approvals, and the past calls that each would have covered.
pub(super) fn proposed(
    out: &mut Out,
    call: &WaitingCall,
    proposals: &[Proposal],
) -> Result<(), Failure> {
    for proposal in proposals {
        let Proposal { scopes, asked, covered, .. } = proposal;
        let (what, how) = match scopes {
            None => ("what it touches, and nothing else".to_owned(), "--uses N"),
            Some(scopes) => (shown(scopes).join("; "), "--uses N --for 1h --wider"),
        };
        out.line(&format!("or covers  {what}"))?;
        out.line(&format!("           {covered} of the {asked} that were asked so far: {how}"))?;
    }
    if proposals.is_empty() {
        out.line("or covers  nothing else: this one call can only be approved once")?;
    } else {
        out.line(&format!("           at most {} calls", call.uses_max))?;
    }
    Ok(())
}

/// A proposal, as programs read it.
pub(super) fn json(proposal: &Proposal) -> Object {
    let object = Object::new().uint("asked", proposal.asked).uint("covered", proposal.covered);
    scoped(object.flag("wider", proposal.scopes.is_some()), proposal.scopes.as_ref())
}

fn scoped(object: Object, scopes: Option<&Grants>) -> Object {
    let shown = scopes.map(shown).unwrap_or_default();
    object.json("scopes", &array(shown.iter().map(|one| quote(one))))
}

fn shown(scopes: &Grants) -> Vec<String> {
    let each = scopes.iter().flat_map(|(_, grant)| grant.iter());
    let parts = each.flat_map(|(dimension, scope)| match scope {
        // What a person approves is never cut.
        Scope::Paths(paths) => {
            let below = |rule: &Rule| {
                let (path, needs) = (rule.path.clone(), rule.rights);
                format!("{dimension}: all below {}", Resource::Path { path, needs }.in_full())
            };
            paths.rules().iter().map(below).collect()
        }
        _ => vec![format!("{dimension}: {scope:#}")],
    });
    parts.map(|part| plain(&part).into_owned()).collect()
}

/// `approvals sets`.
pub(super) fn list(home: &Path, out: &mut Out) -> Ended {
    let (sets, at) = all(home)?;
    let now = crate::token::now(at);
    for set in sets.iter().filter(|set| now < set.until) {
        let covers = match &set.scopes {
            None => "what it touched".to_owned(),
            Some(scopes) => shown(scopes).join("; "),
        };
        let is_outlived = set.is_outlived();
        let stands = match is_outlived {
            true => "ended by untrusted content".to_owned(),
            false => left(set.until, now),
        };
        let text = format!(
            "{}  {} calls left  {}  {}  {covers}  {stands}",
            set.ask,
            set.left,
            set.agent,
            Client::shown(&set.tool, None),
        );
        let object = Object::new()
            .uint("ask", set.ask.get())
            .uint("record", set.set.get())
            .shown("agent", &set.agent)
            .shown("tool", &set.tool)
            .uint("left", set.left)
            .flag("outlived", is_outlived)
            .shown("until", set.until)
            .uint("until_ms", set.until.get());
        let object = match set.session {
            Some(session) => object.uint("session", session.get()),
            None => object.json("session", "null"),
        };
        out.both(&text, scoped(object, set.scopes.as_ref()))?;
    }
    Ok(Exit::Done)
}
