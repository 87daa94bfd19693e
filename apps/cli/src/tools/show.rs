//! `syscap tools show`.

use std::path::PathBuf;

use clap::Args;
use syscap::{
    format::id::ToolId,
    provide::Standing,
    view::{ToolDetail, View},
};

use super::{
    catalogue::{self, standing},
    difference::{Line, between, lines},
    seen::Seen,
};
use crate::{
    exit::{Ended, Exit, Failure},
    output::{Form, Object, Out, array, quote, word_of},
    parse,
};

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
        if let Some(offered) = &detail.offered {
            out.line("")?;
            match detail.info.standing {
                Standing::New => out.line("this is what is offered; nothing is on record yet")?,
                _ => out.line("what is offered differs from what is on record:")?,
            }
            changes(&detail, out)?;
            out.line(&format!(
                "to take it: syscap tools accept {} {}={}",
                word_of(&self.home),
                detail.info.tool,
                offered.id()
            ))?;
        }
        Ok(Exit::Done)
    }
}

/// A manifest, line by line.
pub(super) fn whole(detail: &ToolDetail, out: &mut Out) -> Result<(), Failure> {
    lines(&detail.manifest).iter().try_for_each(|line| out.text(line))
}

/// The lines in which what is offered differs.
pub(super) fn changes(detail: &ToolDetail, out: &mut Out) -> Result<(), Failure> {
    let Some(offered) = &detail.offered else { return Ok(()) };
    if detail.info.standing == Standing::New {
        return Ok(());
    }
    let (old, new) = (lines(&detail.manifest), lines(offered));
    for line in between(&old, &new).iter().filter(|line| !matches!(line, Line::Both(_))) {
        out.text(&line.marked())?;
    }
    let (mut same, on_record) = (offered.clone(), &detail.manifest);
    same.definition = on_record.definition;
    if same == *on_record {
        out.text(
            "only the definition's hash differs: it changed where a manifest does not show it",
        )?;
    }
    Ok(())
}

fn json(view: &View, detail: &ToolDetail) -> Object {
    let list = |lines: Vec<String>| array(lines.iter().map(|line| quote(line)));
    let object = catalogue::entry(view, &detail.info, &detail.manifest);
    let object = object.json("on_record", &list(lines(&detail.manifest)));
    let Some(offered) = &detail.offered else {
        return object.json("offered", "null").json("offered_manifest", "null");
    };
    let (old, new) = (lines(&detail.manifest), lines(offered));
    let changes = between(&old, &new);
    let changes = changes.iter().filter(|line| !matches!(line, Line::Both(_)));
    object
        .json("offered", &list(lines(offered)))
        .shown("offered_manifest", offered.id())
        .json("changes", &list(changes.map(Line::marked).collect()))
}
