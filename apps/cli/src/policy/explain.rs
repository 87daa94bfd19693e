//! `syscap policy explain`.

use std::{io, path::PathBuf};

use clap::Args;
use syscap::format::Seq;
use syscap::policy::{Explained, Explanation, Scenario, ScenarioError, Tree, Truth};

use super::target::{Loaded, bounded, located, read};
use super::{json, recorded};
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Form, Object, Out, array};

/// Far more than a call has: an envelope has 1 MiB.
const GIVEN_BYTES_MAX: usize = 4 << 20;

/// Which policy, and which call.
#[derive(Args, Debug)]
#[command(after_long_help = "\
A call is written as a map from attributes to values, in JSON: {\"call.tool\": \"fs.write\",
\"call.effect\": \"local_write\", \"call.agent\": \"team/a\", \"args.path\": {\"path\":
\"workspace/a.txt\"}}. What is not given is missing; risk follows from the tool and its class.
The exit code is 0 whatever the verdict.")]
pub(crate) struct Explain {
    /// A file, a home or preset:NAME.
    target: PathBuf,
    /// The call, as JSON.
    #[arg(long, value_name = "JSON", conflicts_with = "file")]
    given: Option<String>,
    /// The call; standard input where it is - or left out.
    file: Option<PathBuf>,
    /// The decision in this record of a home.
    #[arg(long, value_name = "N", conflicts_with_all = ["given", "file"])]
    record: Option<u64>,
}

impl Explain {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        if let Some(record) = self.record {
            return recorded::show(&self.target, Seq::new(record), out);
        }
        let loaded = Loaded::of(&self.target)?;
        let policy = loaded.policy()?;
        let (name, text) = match (&self.given, self.file.as_deref()) {
            (Some(given), _) => ("--given".to_owned(), given.clone().into_bytes()),
            (None, Some(file)) if file.as_os_str() != "-" => {
                (file.display().to_string(), read(file, GIVEN_BYTES_MAX)?)
            }
            _ => (
                "-".to_owned(),
                bounded(io::stdin().lock(), GIVEN_BYTES_MAX).map_err(Failure::Stream)?,
            ),
        };
        let scenario = Scenario::from_json(&text).map_err(bad(&name, &text))?;
        print(out, &policy.explain_values(&scenario))?;
        Ok(Exit::Done)
    }
}

/// For a scenario that can't be read.
fn bad(name: &str, text: &[u8]) -> impl FnOnce(ScenarioError) -> Failure {
    let what = name.to_owned();
    |ScenarioError { fault, key, place }| {
        let place = located(text, &place);
        let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
        let key = if key.is_empty() { String::new() } else { format!(" ({key})") };
        Failure::Policy { what, problem: format!("{place}{fault}{key}") }
    }
}

fn print(out: &mut Out, explanation: &Explanation) -> Result<(), Failure> {
    if out.form() == Form::Json {
        let explained = array(explanation.constraints.iter().map(explained));
        let json = Object::new()
            .json("decision", &json::decision(&explanation.decision))
            .json("constraints", &explained);
        return out.line(&json.finish());
    }
    explanation.to_string().lines().try_for_each(|line| out.line(line))
}

fn explained(one: &Explained) -> String {
    Object::new()
        .shown("id", &one.id)
        .text("effect", one.effect.name())
        .text("on_fail", one.on_fail.name())
        .text("truth", truth(one.truth))
        .flag("matched", one.matched)
        .text("reason", &one.reason)
        .json("when", &tree(&one.when))
        .finish()
}

fn tree(tree: &Tree) -> String {
    let known = Object::new().text("truth", truth(tree.truth()));
    match tree {
        Tree::Joint { op, parts, .. } => {
            known.text("op", op).json("parts", &array(parts.iter().map(self::tree)))
        }
        Tree::Test { test, seen, .. } => known.text("test", test).text("seen", seen),
    }
    .finish()
}

const fn truth(truth: Truth) -> &'static str {
    match truth {
        Truth::False => "false",
        Truth::Unknown => "unknown",
        Truth::True => "true",
    }
}
