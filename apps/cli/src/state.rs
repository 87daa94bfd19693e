//! `syscap state`: what agents know and are after.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use syscap::format::{AgentId, Canonical, FactKey, SnapshotId, Source, json};
use syscap::{AgentState, Args as Changes, Changed};

use crate::exit::{Ended, Exit, Failure};
use crate::output::{Form, Object, Out};
use crate::token::TokenName;
use crate::{parse, runtime};

/// A command on an agent's state.
#[derive(Debug, Subcommand)]
pub(crate) enum State {
    /// Show the agents' heads and facts. Works beside the process that holds the home.
    Show(Show),
    /// Change an agent's state, whole or not at all.
    Propose(Propose),
}

impl State {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        match self {
            Self::Show(show) => show.run(out),
            Self::Propose(propose) => propose.run(out),
        }
    }
}

/// Which home, and whose state.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The home.
    home: PathBuf,
    /// This agent only.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: Option<AgentId>,
}

impl Show {
    fn run(self, out: &mut Out) -> Ended {
        let states = match runtime::asked(&self.home, syscap::Runtime::states) {
            Some(states) => states,
            None => runtime::look(&self.home)?.states(),
        };
        for state in states {
            if self.agent.as_ref().is_none_or(|agent| *agent == state.agent) {
                show(&state, out)?;
            }
        }
        Ok(Exit::Done)
    }
}

/// One agent: its head, then a line for each fact.
fn show(state: &AgentState, out: &mut Out) -> Result<(), Failure> {
    let AgentState { agent, snapshot, number, facts } = state;
    out.text(&format!("{agent}  snapshot {snapshot}  number {number}"))?;
    let mut object = Object::new();
    for (key, value) in facts {
        let value = value.as_ref().map(|value| json::from_data(value.item()));
        out.text(&format!("  {key} = {}", value.as_deref().unwrap_or("(erased)")))?;
        let erased = || Object::new().flag("erased", true).finish();
        object = object.json(key, &value.unwrap_or_else(erased));
    }
    if out.form() == Form::Json {
        let line = Object::new()
            .shown("agent", agent)
            .shown("snapshot", snapshot)
            .uint("number", *number)
            .json("facts", &object.finish());
        out.line(&line.finish())?;
    }
    Ok(())
}

/// In whose name a change is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Writer {
    /// An agent: goal.*
    Agent,
    /// A person: goal.*
    User,
    /// A tool's result: fact.*
    Tool,
    /// An encoder of observations: fact.*
    Encoder,
}

impl Writer {
    const fn source(self) -> Source {
        match self {
            Self::Agent => Source::Agent,
            Self::User => Source::User,
            Self::Tool => Source::Tool,
            Self::Encoder => Source::Encoder,
        }
    }
}

/// The changes.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Keys are namespace.name: agents and people write goal.*, tools and encoders fact.*; policy.* and
constraint.* change with the policy only. A change pays one of the token's calls. Who can open the
home speaks for whom he likes: --as is the host's word.")]
pub(crate) struct Propose {
    /// The home.
    home: PathBuf,
    /// The agent.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: AgentId,
    /// Its token.
    #[arg(long, value_name = "ID", value_parser = TokenName::parse)]
    token: TokenName,
    /// In whose name.
    #[arg(long = "as", value_name = "WRITER", value_enum, default_value = "agent")]
    writer: Writer,
    /// The snapshot that must still be the head.
    #[arg(long, value_name = "SNAPSHOT", value_parser = parse::snapshot)]
    base: Option<SnapshotId>,
    /// A key to take away; may be given again.
    #[arg(long, value_name = "KEY", value_parser = parse::fact_key)]
    remove: Vec<FactKey>,
    /// A key and its value as JSON: goal.topic='"bees"', fact.pages=12.
    #[arg(value_name = "KEY=JSON", value_parser = parse::fact,
          required_unless_present = "remove")]
    set: Vec<(FactKey, Canonical)>,
}

impl Propose {
    fn run(self, out: &mut Out) -> Ended {
        self.expect_each_once()?;
        let Changed { snapshot, record } = runtime::with(&self.home, |access| {
            let caller = runtime::session(access, &self.agent, self.token.of(&self.home)?)?;
            let changed =
                access.observe_from(&caller, self.writer.source(), &[], self.base, self.changes());
            caller.close()?;
            Ok(changed?)
        })?;
        let json = Object::new()
            .shown("agent", &self.agent)
            .shown("snapshot", snapshot)
            .uint("record", record.get());
        out.both(&format!("snapshot {snapshot} by record {record}"), json)?;
        Ok(Exit::Done)
    }

    /// A key that is named twice would be taken as it was named last.
    fn expect_each_once(&self) -> Result<(), Failure> {
        let mut keys: Vec<&FactKey> = self.set.iter().map(|(key, _)| key).collect();
        keys.extend(&self.remove);
        keys.sort();
        match keys.windows(2).find(|pair| pair.first() == pair.last()) {
            None => Ok(()),
            Some(pair) => {
                let what = pair.first().map(ToString::to_string).unwrap_or_default();
                Err(Failure::Usage { what, advice: "name each key once".to_owned() })
            }
        }
    }

    fn changes(&self) -> Changes {
        let set = self
            .set
            .iter()
            .fold(Changes::new(), |changes, (key, value)| changes.with(key.as_str(), value));
        self.remove.iter().fold(set, |changes, key| changes.with(key.as_str(), Canonical::null()))
    }
}
