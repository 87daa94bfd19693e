//! `syscap tools`: the tools of a home, what is offered in their place, and whether to take it.

pub(crate) mod accept;
mod catalogue;
mod difference;
mod seen;
mod show;
pub(crate) mod stated;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use syscap::format::{AgentId, Role, ToolId};
use syscap::view::{TokenInfo, TokenStanding, ToolDetail};
use syscap::{Beside, Error, Inspection};

pub(crate) use catalogue::{brief, standing};
pub(crate) use difference::between;
pub(crate) use seen::changed;

use self::seen::{Seen, names, not_delegated};

use crate::exit::{Ended, Exit, Failure};
use crate::output::{Object, Out, array, quote};
use crate::signing::{self, Hand};
use crate::{parse, runtime};

/// A command on tools.
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
A tool that another process runs is pinned when it is first offered. Where its definition is
another one later it is refused as `changed`, until somebody has looked at the difference and
accepts it. Where the operator's key is sealed, one that is offered first is `new` until somebody
has accepted it. Who offers what only the process knows that holds the home: where none does,
nothing is offered. Standings: built_in, ready, changed, new, no_provider.")]
pub(crate) enum Tools {
    /// List the tools and how they stand.
    List(List),
    /// Show a tool's manifest, and how what is offered differs from it.
    Show(show::Show),
    /// Put the definitions on record that are offered at present.
    Accept(accept::Accept),
    /// Say what a tool of another process counts as, whatever its server says.
    Class(stated::Class),
    /// Say which argument of a tool is a path, a host, a recipient: scopes and policies reach it.
    Argument(stated::Argument),
    /// Take tools off the record. One that is offered again is new, and pinned as it is then.
    Forget(Forget),
}

impl Tools {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        match self {
            Self::List(list) => list.run(out),
            Self::Show(show) => show.run(out),
            Self::Accept(accept) => accept.run(out),
            Self::Class(class) => class.run(out),
            Self::Argument(argument) => argument.run(out),
            Self::Forget(forget) => forget.run(out),
        }
    }
}

/// The tools for programs, as `list` has them, each with the agents that have a token for it; and the
/// agents that have any.
pub(crate) fn store_json(home: &Path) -> Result<String, Failure> {
    let Seen { view, manifests, .. } = Seen::of(home)?;
    let lives = |token: &&TokenInfo| token.standing == TokenStanding::Live;
    let live: Vec<&TokenInfo> = view.tokens.iter().filter(lives).collect();
    let names =
        |agents: BTreeSet<&AgentId>| array(agents.into_iter().map(|one| quote(one.as_str())));
    let tools = view.tools.iter().map(|info| {
        let known = manifests.iter().find(|manifest| manifest.tool == info.tool);
        let entry = known.map_or_else(|| brief(info), |known| catalogue::entry(&view, info, known));
        let of_it = live.iter().filter(|token| token.tools.contains(&info.tool));
        entry.json("agents", &names(of_it.map(|token| &token.agent).collect())).finish()
    });
    let agents = names(live.iter().map(|token| &token.agent).collect());
    Ok(Object::new().json("tools", &array(tools)).json("agents", &agents).finish())
}

/// A tool for programs, as `show` has it.
pub(crate) fn whole_json(home: &Path, tool: &ToolId) -> Result<(ToolDetail, String), Failure> {
    let seen = Seen::of(home)?;
    let detail = seen.tool(home, tool)?;
    let json = show::json(&seen.view, &detail).finish();
    Ok((detail, json))
}

/// The same of one whose offer is to be accepted.
pub(crate) fn to_accept(home: &Path, tool: &ToolId) -> Result<(ToolDetail, String), Failure> {
    let (seen, log) = (Seen::of(home)?, runtime::look(home)?);
    let detail = seen::to_accept(&log, tool, seen.tool(home, tool)?)?;
    let json = show::json(&seen.view, &detail).finish();
    Ok((detail, json))
}

/// Which home.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// The home.
    home: PathBuf,
}

impl List {
    fn run(self, out: &mut Out) -> Ended {
        let Seen { view, manifests, access } = Seen::of(&self.home)?;
        for info in &view.tools {
            let text = format!(
                "{:<32}  {:<11}  {:<14}  {:<18}  {}",
                info.tool.as_str(),
                standing(info),
                info.effect.name(),
                info.label.to_string(),
                info.title
            );
            let known = manifests.iter().find(|manifest| manifest.tool == info.tool).cloned();
            // One that is not on record, say.
            let known = known.or_else(|| Some(access.as_ref()?.tool(&info.tool).ok()?.manifest));
            let Some(manifest) = known else {
                out.both(text.trim_end(), brief(info))?;
                continue;
            };
            out.both(text.trim_end(), catalogue::entry(&view, info, &manifest))?;
            out.text(&format!("    {}", catalogue::about(&manifest)))?;
            if let Some(needs) = catalogue::needs(&manifest) {
                out.text(&format!("    {needs}"))?;
            }
        }
        let shown = u64::try_from(view.tools.len()).unwrap_or(u64::MAX);
        match view.tools_in_all.saturating_sub(shown) {
            0 => {}
            more => out.text(&format!("and {more} more"))?,
        }
        Ok(Exit::Done)
    }
}

/// Which tools to take off the record.
#[derive(Args, Debug)]
pub(crate) struct Forget {
    /// The home.
    home: PathBuf,
    /// The tools.
    #[arg(value_name = "TOOL", value_parser = parse::tool, required = true)]
    tools: Vec<ToolId>,
}

impl Forget {
    fn run(self, out: &mut Out) -> Ended {
        let hand = signing::hand(&self.home, Role::Operator)?;
        let seq = runtime::with(&self.home, |access| {
            let known = |error| match error {
                Error::NoSuch { what: "a delegated tool", got } => not_delegated(access, got),
                error => error.into(),
            };
            match &hand {
                Hand::Holder => access.forget(&self.tools).map_err(known),
                Hand::Person(person) => {
                    let change = |log: &Inspection| changed(log.tools_change(&[], &self.tools));
                    person.submit(access, change, &Beside::Forgotten(self.tools.clone()), known)
                }
            }
        })?;
        let json = Object::new().json("tools", &names(&self.tools)).uint("record", seq.get());
        out.both(&format!("forgotten by record {seq}"), json)?;
        Ok(Exit::Done)
    }
}
