//! `syscap token issue`.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use syscap::{
    Error, Grant, Runtime,
    format::{
        budget::{Budget, Dimension},
        id::AgentId,
    },
};

use crate::{
    exit::{Ended, Exit, Failure},
    output::{Object, Out},
    parse, runtime,
};

/// What to grant, and to whom.
#[derive(Args, Debug)]
pub(crate) struct Issue {
    /// The home.
    home: PathBuf,
    /// The agent that may use it.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: AgentId,
    /// A tool that it grants; may be given again.
    #[arg(long, value_name = "TOOL", required = true, value_delimiter = ',')]
    tool: Vec<String>,
    /// A root to read below: workspace, shared, shared/docs; may be given again.
    #[arg(long, value_name = "ROOT", value_parser = parse::root)]
    read: Vec<String>,
    /// A root to write below; may be given again.
    #[arg(long, value_name = "ROOT", value_parser = parse::root)]
    write: Vec<String>,
    /// A limit such as calls=100; may be given again. Others are as the standard budget has them.
    #[arg(long, value_name = "DIMENSION=AMOUNT", value_delimiter = ',',
          value_parser = parse::limit)]
    budget: Vec<(Dimension, u64)>,
    /// How long it lives: 90s, 15m, 1h, 7d.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse::life)]
    expires: Duration,
}

impl Issue {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let id = runtime::with(&self.home, |access| {
            access.issue(self.grant()).map_err(|error| named(error, access))
        })?;
        let json = Object::new().shown("token_id", id).shown("agent", &self.agent);
        out.both(&id.to_string(), json)?;
        Ok(Exit::Done)
    }

    fn grant(&self) -> Grant {
        let budget = self
            .budget
            .iter()
            .fold(Budget::standard(), |budget, (dimension, limit)| budget.with(*dimension, *limit));
        let grant = Grant::to(self.agent.as_str()).tools(&self.tool);
        let grant = self.read.iter().fold(grant, |grant, root| grant.read(root));
        let grant = self.write.iter().fold(grant, |grant, root| grant.write(root));
        grant.budget(budget).expires_in(self.expires)
    }
}

/// Names the tools there are, where one is asked for that is not there.
fn named(error: Error, access: &Runtime) -> Failure {
    let unknown = match &error {
        Error::NoSuch { what: "the tool", got } => got.clone(),
        _ => return error.into(),
    };
    match access.view() {
        Ok(view) => {
            let tools: Vec<&str> = view.tools.iter().map(|info| info.tool.as_str()).collect();
            let advice = format!("is no tool; there are {}", tools.join(", "));
            Failure::Usage { what: unknown, advice }
        }
        Err(_) => error.into(),
    }
}
