//! `syscap tools`: the tools of a home, what is offered in their place, and whether to take it.

mod accept;
mod catalogue;
mod difference;
mod show;
pub(crate) mod stated;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use syscap::{
    Beside, Error, Inspection, Runtime,
    format::{
        control::{Role, ToolsChange},
        id::ToolId,
        manifest::Manifest,
    },
    view::{ToolDetail, View, Whose},
};

pub(crate) use catalogue::{brief, standing};

use crate::{
    exit::{Ended, Exit, Failure},
    near::near,
    output::{Object, Out},
    parse, runtime,
    signing::{self, Hand},
};

/// What to do with tools.
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

/// A change of tools that can be signed.
pub(crate) fn changed(change: Option<ToolsChange>) -> Result<ToolsChange, Failure> {
    change.ok_or_else(|| Failure::Usage {
        what: "the tools on record".to_owned(),
        advice: "are not those of this program: first `syscap tools accept HOME --own`".to_owned(),
    })
}

/// What is known of a home: by its holder, else by its log.
struct Seen {
    view: View,
    /// Those on record.
    manifests: Vec<Manifest>,
    /// The holder, where there is one.
    access: Option<Runtime>,
}

impl Seen {
    fn of(home: &Path) -> Result<Self, Failure> {
        match Runtime::attach(home).map_err(Failure::home(home))? {
            Some(access) => {
                let mut seen = Self::at(access)?;
                // Of very many the holder tells but the first.
                if usize::try_from(seen.view.frozen_in_all) != Ok(seen.view.frozen.len()) {
                    seen.view.frozen = runtime::look(home)?.kernel().frozen();
                }
                Ok(seen)
            }
            None => {
                let log = runtime::look(home)?;
                let manifests = log.kernel().manifests().cloned().collect();
                let mut view = log.view();
                view.frozen = log.kernel().frozen();
                Ok(Self { view, manifests, access: None })
            }
        }
    }

    fn at(access: Runtime) -> Result<Self, Failure> {
        let (view, manifests) = (access.view()?, access.manifests(Whose::All)?);
        Ok(Self { view, manifests, access: Some(access) })
    }

    /// The tool of that name or alias, whole.
    fn tool(&self, home: &Path, tool: &ToolId) -> Result<ToolDetail, Failure> {
        let found = match &self.access {
            Some(access) => access.tool(tool),
            None => runtime::look(home)?.tool(tool),
        };
        found.map_err(|error| self.known(error))
    }

    /// Names what there is in the place of a tool that is not there.
    fn known(&self, error: Error) -> Failure {
        let Error::NoSuch { what: "the tool", got } = error else { return error.into() };
        let tools: Vec<&str> = self.view.tools.iter().map(|info| info.tool.as_str()).collect();
        let aliases = self.manifests.iter().flat_map(|manifest| &manifest.aliases);
        let all = tools.iter().copied().chain(aliases.map(ToolId::as_str));
        let hint = match near(&got, all) {
            Some(near) => format!(", did you mean {near}?"),
            None if tools.is_empty() => String::new(),
            None => format!("; it has: {}", tools.join(", ")),
        };
        Failure::Usage { what: got, advice: format!("the home has no such tool{hint}") }
    }
}

fn detail_at(access: &Runtime, tool: &ToolId) -> Result<ToolDetail, Failure> {
    access.tool(tool).map_err(|error| match Seen::at(access.clone()) {
        Ok(seen) => seen.known(error),
        // What is wrong is wrong, also where nobody can say what would be right.
        Err(_) => error.into(),
    })
}

/// Why a tool is not one that another process runs.
fn not_delegated(access: &Runtime, got: String) -> Failure {
    match ToolId::new(&got).map(|tool| detail_at(access, &tool)) {
        Some(Err(why)) => why,
        Some(Ok(detail)) if detail.info.delegated => {
            let advice = format!("is another name of {}: use that", detail.info.tool);
            Failure::Usage { what: got, advice }
        }
        _ => built_in(got),
    }
}

fn built_in(tool: String) -> Failure {
    let advice = "is built in, or set by `syscap http set`: nobody offers it".to_owned();
    Failure::Usage { what: tool, advice }
}

/// A tool that another process runs.
fn delegated(access: &Runtime, tool: &ToolId) -> Result<ToolDetail, Failure> {
    let detail = detail_at(access, tool)?;
    if detail.info.delegated { Ok(detail) } else { Err(built_in(tool.to_string())) }
}

fn names(tools: &[ToolId]) -> String {
    crate::output::array(tools.iter().map(|tool| crate::output::quote(tool.as_str())))
}
