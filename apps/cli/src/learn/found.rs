//! The log's findings besides a proposal: untrusted content, altered rows of the vault, and the
//! proposal's verdicts on the calls on record.

use syscap::analysis::learn::Ended;
use syscap::learn::{
    After, Loosened, Origin, PREVIEWED_MAX, Poisoned, Preview, Previewed, PreviewedCall, Recorded,
    WhyNot,
};
use syscap::verify::{Altered, VaultReport};

use crate::exit::Failure;
use crate::output::{Object, Out, array};

/// The mark of a failed attempt.
pub(super) const FAILED: &str = "!";

/// All of it.
pub(super) struct Found {
    pub(super) vault: VaultReport,
    pub(super) preview: Preview,
    /// The findings about the agents that are learned for.
    pub(super) poisoned: Vec<Poisoned>,
}

fn counted(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

const fn name(ended: Ended) -> &'static str {
    match ended {
        Ended::Done => "done",
        Ended::Failed => "failed",
        Ended::ToolFailed => "tool_failed",
        Ended::Refused(_) => "refused",
        Ended::Open => "open",
    }
}

fn words(ended: Ended) -> String {
    match ended {
        Ended::Done => "it was done".to_owned(),
        Ended::Failed => "the run failed".to_owned(),
        Ended::ToolFailed => "the tool failed".to_owned(),
        Ended::Refused(reason) => format!("refused, {reason}"),
        Ended::Open => "no outcome on record".to_owned(),
    }
}

/// Before a line, whether it came to nothing.
fn mark(ended: Ended) -> &'static str {
    if ended == Ended::Done { " " } else { FAILED }
}

impl Found {
    pub(super) fn print(&self, out: &mut Out, recorded: &Recorded) -> Result<(), Failure> {
        if !self.poisoned.is_empty() {
            out.line("after a stranger's word")?;
        }
        self.poisoned.iter().try_for_each(|one| poisoned(out, one))?;
        if recorded.poisoned_dropped > 0 {
            out.line(&format!("  and in {} older sessions", recorded.poisoned_dropped))?;
        }
        let VaultReport { altered, altered_in_all, .. } = &self.vault;
        if !altered.is_empty() {
            out.line("altered in the vault: nothing is learned of it")?;
        }
        for Altered { seq, part } in altered {
            let part = part.name();
            out.line(&format!("  record {seq}: its {part}: not what it commits to"))?;
        }
        match altered_in_all.saturating_sub(counted(altered.len())) {
            0 => Ok(()),
            more => out.line(&format!("  and {more} more")),
        }
    }

    /// The proposal's verdicts.
    pub(super) fn print_preview(&self, out: &mut Out) -> Result<(), Failure> {
        let Preview { allowed, asked, refused, not_asked, loosened } = &self.preview;
        out.line("of the calls on record that a policy decided, this proposal")?;
        out.line(&format!("  lets run {}, of which {} had run", allowed.count, allowed.ran))?;
        for Loosened { seq, agent, tool, was } in loosened {
            out.line(&format!("    record {seq}  {agent}  {tool}: {} -> allow", was.name()))?;
        }
        let kinds =
            [("asks about", asked), ("refuses", refused), ("can't be asked about", not_asked)];
        for (what, Previewed { count, ran, calls }) in kinds {
            out.line(&format!("  {what} {count}, of which {ran} had run"))?;
            calls.iter().try_for_each(|call| previewed(out, call))?;
            match count.saturating_sub(counted(calls.len())) {
                0 => {}
                more => out.line(&format!("    and {more} more"))?,
            }
        }
        Ok(())
    }

    pub(super) fn json(&self, object: Object, recorded: &Recorded) -> Object {
        let altered = self.vault.altered.iter().map(|Altered { seq, part }| {
            Object::new().uint("record", seq.get()).text("part", part.name()).finish()
        });
        let Preview { allowed, asked, refused, not_asked, loosened } = &self.preview;
        let loosened = loosened.iter().map(|Loosened { seq, agent, tool, was }| {
            let object = Object::new().uint("record", seq.get()).shown("agent", agent);
            object.shown("tool", tool).text("was", was.name()).finish()
        });
        let preview = Object::new()
            .json("allowed", &kind(allowed, 0))
            .json("asked", &kind(asked, PREVIEWED_MAX))
            .json("refused", &kind(refused, PREVIEWED_MAX))
            .json("not_asked", &kind(not_asked, PREVIEWED_MAX))
            .json("loosened", &array(loosened));
        object
            .json("poisoned", &array(self.poisoned.iter().map(poisoned_json)))
            .uint("poisoned_dropped", recorded.poisoned_dropped)
            .json("altered", &array(altered))
            .uint("altered_count", self.vault.altered_in_all)
            .json("preview", &preview.finish())
    }
}

fn poisoned(out: &mut Out, one: &Poisoned) -> Result<(), Failure> {
    let Poisoned { session, agent, origin, after, after_in_all } = one;
    let came = match origin {
        Origin::Result(seq, tool) => format!("record {seq} ({tool}) brought it"),
        Origin::Beginning => "it began with it".to_owned(),
    };
    let calls = if *after_in_all == 1 { "call does" } else { "calls do" };
    out.line(&format!(
        "  session {session} of {agent}: {came}; {after_in_all} {calls} more than read after it"
    ))?;
    for After { seq, tool, effect, ended } in after {
        let line = format!("record {seq}  {tool} ({effect}): {}", words(*ended));
        out.line(&format!("  {} {line}", mark(*ended)))?;
    }
    match after_in_all.saturating_sub(counted(after.len())) {
        0 => Ok(()),
        more => out.line(&format!("    and {more} more")),
    }
}

fn poisoned_json(one: &Poisoned) -> String {
    let object = Object::new().uint("session", one.session.get()).shown("agent", &one.agent);
    let object = match &one.origin {
        Origin::Result(seq, tool) => object.uint("record", seq.get()).shown("tool", tool),
        Origin::Beginning => object.json("record", "null").json("tool", "null"),
    };
    let after = one.after.iter().map(|After { seq, tool, effect, ended }| {
        let object = Object::new().uint("record", seq.get()).shown("tool", tool);
        let object = object.shown("effect", effect).text("ended", name(*ended));
        match ended {
            Ended::Refused(reason) => object.text("reason", reason.name()),
            _ => object.json("reason", "null"),
        }
        .finish()
    });
    object.json("after", &array(after)).uint("after_count", one.after_in_all).finish()
}

fn why(why: &WhyNot) -> String {
    match why {
        WhyNot::Policy(Some(constraint)) => format!("by {constraint}"),
        WhyNot::Policy(None) => "no allow speaks of it".to_owned(),
        WhyNot::Token(reason) => format!("by the token, {reason}"),
        WhyNot::NotAsked(why) => why.name().to_owned(),
    }
}

fn previewed(out: &mut Out, call: &PreviewedCall) -> Result<(), Failure> {
    let PreviewedCall { seq, agent, tool, was, why: not } = call;
    out.line(&format!("    record {seq}  {agent}  {tool}: {}; it was: {was}", why(not)))
}

fn kind(previewed: &Previewed, most: usize) -> String {
    let calls = previewed.calls.iter().take(most).map(|call| {
        let object = Object::new()
            .uint("record", call.seq.get())
            .shown("agent", &call.agent)
            .shown("tool", &call.tool)
            .shown("was", call.was);
        let (constraint, reason) = match &call.why {
            WhyNot::Policy(constraint) => (constraint.as_ref().map(ToString::to_string), None),
            WhyNot::Token(reason) => (None, Some(reason.name())),
            WhyNot::NotAsked(why) => (None, Some(why.name())),
        };
        let optional = |object: Object, key: &str, value: Option<&str>| match value {
            Some(value) => object.text(key, value),
            None => object.json(key, "null"),
        };
        optional(optional(object, "constraint", constraint.as_deref()), "reason", reason).finish()
    });
    Object::new()
        .uint("count", previewed.count)
        .uint("ran", previewed.ran)
        .json("calls", &array(calls))
        .finish()
}
