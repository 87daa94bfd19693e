//! `syscap artifacts list`.

use std::path::PathBuf;

use clap::Args;
use syscap::artifact::{Artifact, Cut, Kept, LAST_MAX, Which};
use syscap::format::AgentId;

use super::found::{concluded, read, status};
use super::json::json;
use crate::exit::Ended;
use crate::output::{Out, plain};
use crate::parse;

/// How much of a result's first line a row shows, in characters.
const SHOWN: usize = 48;

/// Which results.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// The home.
    home: PathBuf,
    /// Only those of this agent.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: Option<AgentId>,
    /// How many, of the newest.
    #[arg(long, value_name = "N", default_value_t = 20)]
    last: u16,
}

impl List {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let last = usize::from(self.last).min(LAST_MAX);
        let cut = Cut::default();
        let which = Which { agent: self.agent, session: None, last, cut };
        let found = read(&self.home, &which)?;
        out.text(&columns(["record", "time", "agent", "tool", "status", "bytes", "begins"]))?;
        // The newest last, as of a log.
        for artifact in found.artifacts.iter().rev() {
            out.both(&row(artifact), json(artifact))?;
        }
        concluded(&self.home, &found)
    }
}

fn row(artifact: &Artifact) -> String {
    let name = |name: Option<String>| name.unwrap_or_default();
    let (size, begins) = match &artifact.kept {
        Kept::There(short) => {
            let text = short.excerpts.first().map(|excerpt| excerpt.text.as_str());
            (short.size_bytes.to_string(), first_line(text.unwrap_or_default()))
        }
        Kept::Erased => (String::new(), "erased".to_owned()),
        Kept::Altered => (String::new(), "altered".to_owned()),
    };
    columns([
        &artifact.record.to_string(),
        &artifact.time.to_string(),
        &name(artifact.agent.as_ref().map(ToString::to_string)),
        &name(artifact.tool.as_ref().map(ToString::to_string)),
        &status(artifact),
        &size,
        &begins,
    ])
}

fn first_line(text: &str) -> String {
    let line = plain(text.lines().next().unwrap_or_default());
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}..", line.get(..end).unwrap_or_default()),
        None => line.into_owned(),
    }
}

fn columns([record, time, agent, tool, status, size, begins]: [&str; 7]) -> String {
    let row = format!(
        "{record:>7}  {time:<24}  {agent:<16}  {tool:<12}  {status:<16}  {size:>8}  {begins}"
    );
    row.trim_end().to_owned()
}
