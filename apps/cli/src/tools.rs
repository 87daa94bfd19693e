//! `syscap tools`: the tools of a home, what is offered in their place, and whether to take it.

mod accept;
mod difference;
mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use syscap::{
    access::{Access, ToolInfo, View},
    kernel::{id::ToolId, manifest::Manifest},
    provide::Standing,
};

use crate::{
    Ended,
    exit::{Exit, Failure},
    near::hint,
    output::{Object, Out},
    parse, runtime,
};

/// What to do with tools.
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
A tool that another process runs is pinned when it is first offered. Where its definition is
another one later it is refused as `changed`, until somebody has looked at the difference and
accepts it. Who offers what only the process knows that holds the home: where none does, nothing
is offered. Standings: built_in, ready, changed, no_provider.")]
pub(crate) enum Tools {
    /// List the tools and how they stand.
    List(List),
    /// Show a tool's manifest, and how what is offered differs from it.
    Show(show::Show),
    /// Put the definitions on record that are offered at present.
    Accept(accept::Accept),
    /// Take tools off the record. One that is offered again is new, and pinned as it is then.
    Forget(Forget),
}

impl Tools {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        match self {
            Self::List(list) => list.run(out),
            Self::Show(show) => show.run(out),
            Self::Accept(accept) => accept.run(out),
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
        let view = view(&self.home)?;
        for info in &view.tools {
            let Manifest { tool, effect, label, title, .. } = &info.manifest;
            let text = format!(
                "{:<32}  {:<11}  {:<14}  {:<18}  {title}",
                tool.as_str(),
                standing(info),
                effect.name(),
                label.to_string()
            );
            out.both(text.trim_end(), brief(info))?;
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
        let seq = runtime::with(&self.home, |access| {
            let view = access.view()?;
            self.tools.iter().try_for_each(|tool| delegated(&view, tool).map(drop))?;
            Ok(access.forget(&self.tools)?)
        })?;
        let json = Object::new().json("tools", &names(&self.tools)).uint("record", seq.get());
        out.both(&format!("forgotten by record {seq}"), json)?;
        Ok(Exit::Done)
    }
}

/// What is known of a home: by its holder, else by its log.
fn view(home: &std::path::Path) -> Result<View, Failure> {
    match Access::attach_only(home).map_err(Failure::home(home))? {
        Some(access) => Ok(access.view()?),
        None => Ok(runtime::look(home)?.view()),
    }
}

/// How a tool stands, in a word.
pub(crate) fn standing(info: &ToolInfo) -> &'static str {
    match (info.delegated, info.provided, info.standing) {
        (false, ..) => "built_in",
        (true, false, _) => "no_provider",
        (true, true, Standing::Ready) => "ready",
        (true, true, Standing::Changed | Standing::Taken) => "changed",
    }
}

/// A tool in few words.
pub(crate) fn brief(info: &ToolInfo) -> Object {
    Object::new()
        .shown("tool", &info.manifest.tool)
        .text("standing", standing(info))
        .text("effect", info.manifest.effect.name())
        .shown("label", info.manifest.label)
        .text("title", &info.manifest.title)
        .shown("manifest", info.manifest.id())
}

/// A tool of the home, by its own id.
fn known<'v>(view: &'v View, tool: &ToolId) -> Result<&'v ToolInfo, Failure> {
    view.tool(tool).ok_or_else(|| {
        let tools: Vec<&str> = view.tools.iter().map(|i| i.manifest.tool.as_str()).collect();
        let advice =
            format!("the home has no such tool{}", hint(tool.as_str(), "; it has", &tools));
        Failure::Usage { what: tool.to_string(), advice }
    })
}

/// A tool that another process runs.
fn delegated<'v>(view: &'v View, tool: &ToolId) -> Result<&'v ToolInfo, Failure> {
    let info = known(view, tool)?;
    let built_in = || Failure::Usage {
        what: tool.to_string(),
        advice: "is built in: nobody offers it, and it stays".to_owned(),
    };
    if info.delegated { Ok(info) } else { Err(built_in()) }
}

fn names(tools: &[ToolId]) -> String {
    crate::output::array(tools.iter().map(|tool| crate::output::quote(tool.as_str())))
}
