//! `syscap policy who-can`.

use std::{collections::BTreeSet, path::PathBuf};

use clap::Args;
use syscap::analysis::scenario::to_json;
use syscap::analysis::{Finding, NODES_DEFAULT, Proof, Reach, Witness, only_of, who_can};
use syscap::format::{AgentId, EffectClass, ToolId};
use syscap::policy::Document;

use super::diff::unknown;
use super::json;
use super::target::{Loaded, classes_of};
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Object, Out};
use crate::parse;

/// Which policy, and which tool.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Each line is one agent that stands for all that the policy can't tell from it, with the mildest
verdict that such an agent can get and a call that gets it. A home has the tool, by its own id, and
knows which classes its calls can have (a tool of HTTP by its methods); a file or a preset has no
tools, and the effect class is asked for. Exit codes: 0 done; with --only nobody else can get the
tool allowed, degraded or asked about; 1 somebody else can; 5 the analysis reached its limit without
an answer.")]
pub(crate) struct WhoCan {
    /// A file, a home or preset:NAME.
    target: PathBuf,
    /// The tool.
    #[arg(value_parser = parse::tool)]
    tool: ToolId,
    /// Its effect class: a home knows that of its own tools, a file or a preset does not.
    #[arg(long, value_name = "CLASS", value_parser = parse::class)]
    effect: Option<EffectClass>,
    /// Ask whether nobody can but this agent and those below it.
    #[arg(long, value_name = "AGENT", value_parser = parse::agent)]
    only: Option<AgentId>,
    /// How many nodes are looked at for an agent, at most.
    #[arg(long, value_name = "NODES", default_value_t = NODES_DEFAULT)]
    limit: u64,
}

impl WhoCan {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let loaded = Loaded::of(&self.target)?;
        let document = loaded.policy()?.written();
        let classes = classes_of(&self.target, &self.tool, self.effect)?;
        if let Some(agent) = &self.only {
            return match self.only(document, &classes, agent) {
                Finding::Holds { nodes } => {
                    let json = Object::new().text("finding", "only").uint("nodes", nodes);
                    let printed = out.both(&format!("nobody but {agent}"), json);
                    out.conclude(printed, Exit::Done)
                }
                Finding::Fails(witness) => somebody_else(out, &witness),
                Finding::Unknown { nodes } => unknown(out, nodes),
            };
        }
        let reaches = self.reaches(document, &classes);
        // Every agent gets some verdict: where there is none nothing was looked at.
        if reaches.is_empty() {
            return unknown(out, 0);
        }
        let exact = |reach: &Reach| reach.proof == Proof::Exact;
        let printed = reaches.iter().try_for_each(|reach| line(out, reach));
        let all = reaches.iter().all(exact);
        out.conclude(printed, if all { Exit::Done } else { Exit::Unknown })
    }
}

impl WhoCan {
    /// The mildest verdict of each agent, over all classes that a call can have.
    fn reaches(&self, document: &Document, classes: &BTreeSet<EffectClass>) -> Vec<Reach> {
        let mut mildest: Vec<Reach> = Vec::new();
        for class in classes {
            for reach in who_can(document, &self.tool, Some(*class), self.limit) {
                let of = |one: &&mut Reach| one.agent == reach.agent;
                match mildest.iter_mut().find(of) {
                    None => mildest.push(reach),
                    Some(known) => {
                        // What is unknown of one class is unknown of the call.
                        let proof = match (known.proof, reach.proof) {
                            (Proof::Exact, Proof::Exact) => Proof::Exact,
                            _ => Proof::Unknown,
                        };
                        if reach.witness.outcome.verdict < known.witness.outcome.verdict {
                            *known = reach;
                        }
                        known.proof = proof;
                    }
                }
            }
        }
        mildest
    }

    /// Checks that no other agent can, by a call of any possible class.
    fn only(
        &self,
        document: &Document,
        classes: &BTreeSet<EffectClass>,
        agent: &AgentId,
    ) -> Finding<Witness> {
        let (mut looked_at, mut all_known) = (0_u64, true);
        for class in classes {
            match only_of(document, &self.tool, Some(*class), agent, self.limit) {
                Finding::Fails(witness) => return Finding::Fails(witness),
                Finding::Holds { nodes } => looked_at = looked_at.saturating_add(nodes),
                Finding::Unknown { nodes } => {
                    (looked_at, all_known) = (looked_at.saturating_add(nodes), false);
                }
            }
        }
        match all_known {
            true => Finding::Holds { nodes: looked_at },
            false => Finding::Unknown { nodes: looked_at },
        }
    }
}

fn line(out: &mut Out, reach: &Reach) -> Result<(), Failure> {
    let Reach { agent, proof, witness: Witness { scenario, outcome } } = reach;
    let said = json::said(outcome.verdict, outcome.deciding.as_ref(), &outcome.obligations);
    let (proof, or_milder) = match proof {
        Proof::Exact => ("exact", ""),
        Proof::Unknown => ("unknown", " (or milder: the analysis reached its limit)"),
    };
    let json = Object::new()
        .shown("agent", agent)
        .text("proof", proof)
        .json("given", &to_json(scenario))
        .json("outcome", &json::outcome(outcome));
    out.both(&format!("{agent}  {said}{or_milder}  {}", to_json(scenario)), json)
}

fn somebody_else(out: &mut Out, witness: &Witness) -> Ended {
    let Witness { scenario, outcome } = witness;
    let said = json::said(outcome.verdict, outcome.deciding.as_ref(), &outcome.obligations);
    let json = Object::new()
        .text("finding", "somebody_else")
        .json("given", &to_json(scenario))
        .json("outcome", &json::outcome(outcome));
    let printed = out.both(&format!("somebody else: {said}  {}", to_json(scenario)), json);
    out.conclude(printed, Exit::Failed)
}
