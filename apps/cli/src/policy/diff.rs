//! `syscap policy diff`.

use std::path::PathBuf;

use clap::Args;
use syscap::analysis::scenario::to_json;
use syscap::analysis::{Difference, Finding, NODES_DEFAULT, diff};

use super::{json, target::Loaded};
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Object, Out};

/// Which two policies.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Exit codes: 0 they say the same of every call (verdict and obligations), 1 they differ, and the
call is printed, 5 the analysis reached its limit without an answer. Whether a tool is of the
class that a call has is not asked: the call may be one that a given set of tools never makes.")]
pub(crate) struct Diff {
    /// A file, a home or preset:NAME.
    #[arg(value_name = "A")]
    first: PathBuf,
    /// Another.
    #[arg(value_name = "B")]
    second: PathBuf,
    /// How many nodes are looked at, at most.
    #[arg(long, value_name = "NODES", default_value_t = NODES_DEFAULT)]
    limit: u64,
}

impl Diff {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let (first, second) = (Loaded::of(&self.first)?, Loaded::of(&self.second)?);
        if first.hash == second.hash {
            return same(out, 0);
        }
        let found = diff(first.policy()?.written(), second.policy()?.written(), self.limit);
        match found {
            Finding::Holds { nodes } => same(out, nodes),
            Finding::Fails(difference) => {
                let printed = print(out, &difference);
                out.conclude(printed, Exit::Failed)
            }
            Finding::Unknown { nodes } => unknown(out, nodes),
        }
    }
}

fn same(out: &mut Out, nodes: u64) -> Ended {
    let json = Object::new().text("finding", "same").uint("nodes", nodes);
    let printed = out.both("the same for every call", json);
    out.conclude(printed, Exit::Done)
}

/// An analysis that ended without an answer.
pub(super) fn unknown(out: &mut Out, nodes: u64) -> Ended {
    let text = format!("unknown: the analysis reached its limit after {nodes} nodes; see --limit");
    let json = Object::new().text("finding", "unknown").uint("nodes", nodes);
    let printed = out.both(&text, json);
    out.conclude(printed, Exit::Unknown)
}

fn print(out: &mut Out, difference: &Difference) -> Result<(), Failure> {
    let Difference { scenario, first, second } = difference;
    out.text(&format!("they differ: {}", to_json(scenario)))?;
    for (name, outcome) in [("A", first), ("B", second)] {
        let said = json::said(outcome.verdict, outcome.deciding.as_ref(), &outcome.obligations);
        out.text(&format!("{name}  {said}"))?;
    }
    if out.form() == crate::output::Form::Json {
        let json = Object::new()
            .text("finding", "differ")
            .json("given", &to_json(scenario))
            .json("a", &json::outcome(first))
            .json("b", &json::outcome(second));
        out.line(&json.finish())?;
    }
    Ok(())
}
