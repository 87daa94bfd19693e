//! `syscap policy replay`.

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use syscap::kernel::{NotAsked, Redecided, Tally};

use super::{json, target::Loaded};
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Form, Object, Out};
use crate::runtime;

/// Which log, and which policy.
#[derive(Args, Debug)]
#[command(after_long_help = "\
A line for each call of which the other policy says something else, and for each that can't be
decided again, then the sums. Nothing is written, and nothing runs. Exit codes: 0 nothing changes,
1 something changes, 5 nothing changes that was asked about, but not every call could be.")]
pub(crate) struct Replay {
    /// The home. Another process may hold it.
    home: PathBuf,
    /// The other policy: a file, a home or preset:NAME.
    #[arg(long, value_name = "TARGET")]
    against: PathBuf,
}

impl Replay {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let home = runtime::look(&self.home)?;
        let against = Loaded::of(&self.against)?;
        let tally = home.replay(against.engine()?).map_err(Failure::home(&self.home))?;
        let printed = print(out, &tally);
        let verdict = match (tally.changed.is_empty(), tally.not_asked.is_empty()) {
            (false, _) => Exit::Failed,
            (true, false) => Exit::Unknown,
            (true, true) => Exit::Done,
        };
        out.conclude(printed, verdict)
    }
}

fn print(out: &mut Out, tally: &Tally) -> Result<(), Failure> {
    let mut lines: Vec<&Redecided> = tally.changed.iter().chain(&tally.not_asked).collect();
    lines.sort_by_key(|redecided| redecided.seq);
    lines.into_iter().try_for_each(|redecided| line(out, redecided))?;
    sums(out, tally)
}

fn line(out: &mut Out, redecided: &Redecided) -> Result<(), Failure> {
    let Redecided { seq, agent, tool, was, now, .. } = redecided;
    let said = match now {
        Ok(now) => json::said_of(now),
        Err(why) => format!("not asked: {}", words(*why)),
    };
    let json = Object::new()
        .uint("record", seq.get())
        .shown("agent", agent)
        .shown("tool", tool)
        .json("was", &json::decision(was));
    let json = match now {
        Ok(now) => json.json("now", &json::decision(now)),
        Err(why) => json.json("now", "null").text("not_asked", why.name()),
    };
    out.both(&format!("{seq:>7}  {agent}  {tool}  {} -> {said}", json::said_of(was)), json)
}

const fn words(why: NotAsked) -> &'static str {
    match why {
        NotAsked::Erased => "its arguments were erased or damaged",
        NotAsked::ToolChanged => "the tool is another or gone",
        NotAsked::BudgetUnclear => "what was left of its budget is not clear",
    }
}

fn sums(out: &mut Out, tally: &Tally) -> Result<(), Failure> {
    let mut changed: BTreeMap<String, u64> = BTreeMap::new();
    let mut not_asked: BTreeMap<&str, u64> = BTreeMap::new();
    for redecided in tally.changed.iter().chain(&tally.not_asked) {
        let count = match &redecided.now {
            Ok(now) => {
                let verdicts = format!("{} -> {}", redecided.was.verdict, now.verdict);
                changed.entry(verdicts).or_default()
            }
            Err(why) => not_asked.entry(why.name()).or_default(),
        };
        *count = count.saturating_add(1);
    }
    if out.form() == Form::Json {
        let object = |sums: Object, (name, n): (&str, u64)| sums.uint(name, n);
        let changed = changed.iter().map(|(name, n)| (&**name, *n)).fold(Object::new(), object);
        let not_asked = not_asked.into_iter().fold(Object::new(), object);
        let json = Object::new()
            .uint("same", tally.same)
            .json("changed", &changed.finish())
            .json("not_asked", &not_asked.finish());
        return out.line(&json.finish());
    }
    for (verdicts, n) in &changed {
        out.line(&format!("{verdicts}: {n}"))?;
    }
    for (why, n) in &not_asked {
        out.line(&format!("not asked, {why}: {n}"))?;
    }
    out.line(&format!("the same: {}", tally.same))
}
