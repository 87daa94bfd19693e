//! `syscap tools show`.

use std::path::{Path, PathBuf};

use clap::Args;
use syscap::format::{Manifest, ToolId, json};
use syscap::provide::Standing;
use syscap::syscalls::stated::Unlimited;
use syscap::view::{ToolDetail, View};

use super::catalogue::{self, standing};
use super::difference::{between, lines};
use super::seen::Seen;
use super::stated::not_limited;
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Form, Object, Out, array, quote, word_of};
use crate::parse;

/// Which tool.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The home.
    home: PathBuf,
    /// The tool, by its id or another name of it.
    #[arg(value_parser = parse::tool)]
    tool: ToolId,
}

impl Show {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let seen = Seen::of(&self.home)?;
        let detail = seen.tool(&self.home, &self.tool)?;
        if out.form() == Form::Json {
            out.line(&json(&seen.view, &detail).finish())?;
            return Ok(Exit::Done);
        }
        out.line(&format!("tool        {}", detail.info.tool))?;
        out.line(&format!("standing    {}", standing(&detail.info)))?;
        out.line(&match catalogue::why_not(&seen.view, &detail.info) {
            None => "callable    yes, with a token that grants it".to_owned(),
            Some(why) => format!("callable    no: {why}"),
        })?;
        whole(&detail, out)?;
        for dimension in &detail.manifest.dimensions {
            let catalogue::Permission { about, given } = catalogue::permission(dimension);
            out.line(&format!("permission  {dimension}: {about} ({given})"))?;
        }
        for one in Unlimited::of(&detail.manifest) {
            let tool = detail.info.tool.as_str();
            out.line(&format!("{:<11} {}", "not limited", not_limited(&self.home, tool, &one)))?;
        }
        if let Some(offered) = &detail.offered {
            out.line("")?;
            match detail.info.standing {
                Standing::New => out.line("this is what is offered; nothing is on record yet")?,
                _ => out.line("what is offered differs from what is on record:")?,
            }
            changes(&detail, out)?;
            out.line(&format!("to take it: {}", command(&self.home, &detail.info.tool, offered)))?;
        }
        Ok(Exit::Done)
    }
}

/// The command that accepts what was shown, and nothing else.
pub(super) fn command(home: &Path, tool: &ToolId, offered: &Manifest) -> String {
    format!("syscap tools accept {} {tool}={}", word_of(home), offered.id())
}

/// A manifest, line by line.
pub(super) fn whole(detail: &ToolDetail, out: &mut Out) -> Result<(), Failure> {
    lines(&detail.manifest).iter().try_for_each(|line| out.text(line))
}

/// The offer beside the manifest on record, as a unified diff.
pub(super) fn changes(detail: &ToolDetail, out: &mut Out) -> Result<(), Failure> {
    let Some(offered) = &detail.offered else { return Ok(()) };
    if detail.info.standing == Standing::New {
        return Ok(());
    }
    if !is_kept(&detail.manifest) && is_kept(offered) {
        out.text(
            "the definition on record was pinned by its hash alone, before definitions were kept: \
             all of the one that is offered follows",
        )?;
    }
    let (old, new) = (lines(&detail.manifest), lines(offered));
    between(&old, &new).unified.iter().try_for_each(|line| out.text(line))?;
    if !is_kept(offered) && offered.definition.is_some() {
        out.text(
            "what offers it gave the hash of its definition, not the definition: what changed \
             there can't be shown",
        )?;
    }
    Ok(())
}

fn is_kept(manifest: &Manifest) -> bool {
    manifest.whole_definition().is_some()
}

pub(super) fn json(view: &View, detail: &ToolDetail) -> Object {
    let list = |lines: &[String]| array(lines.iter().map(|line| quote(line)));
    let definition = |manifest: &Manifest| {
        let whole = manifest.whole_definition();
        whole.map_or("null".to_owned(), |whole| json::from_data(whole.item()))
    };
    let old = lines(&detail.manifest);
    let object = catalogue::entry(view, &detail.info, &detail.manifest);
    let object = object.json("on_record", &list(&old));
    let object = object.json("on_record_definition", &definition(&detail.manifest));
    let Some(offered) = &detail.offered else {
        let object = object.json("offered", "null").json("offered_manifest", "null");
        return object.json("offered_definition", "null");
    };
    let new = lines(offered);
    object
        .json("offered", &list(&new))
        .shown("offered_manifest", offered.id())
        .json("offered_definition", &definition(offered))
        .json("changes", &list(&between(&old, &new).changes))
}
