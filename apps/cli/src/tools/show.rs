//! `syscap tools show`.

use std::path::PathBuf;

use clap::Args;
use syscap::{access::ToolInfo, kernel::id::ToolId};

use super::{
    brief,
    difference::{Line, between, lines},
    known, standing, view,
};
use crate::{
    Ended,
    exit::{Exit, Failure},
    output::{Form, Object, Out, array, quote},
    parse,
};

/// Which tool.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The home.
    home: PathBuf,
    /// The tool.
    #[arg(value_parser = parse::tool)]
    tool: ToolId,
}

impl Show {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let view = view(&self.home)?;
        let info = known(&view, &self.tool)?;
        if out.form() == Form::Json {
            out.line(&json(info).finish())?;
            return Ok(Exit::Done);
        }
        out.line(&format!("tool        {}", self.tool))?;
        out.line(&format!("standing    {}", standing(info)))?;
        for line in lines(&info.manifest) {
            out.line(&line)?;
        }
        if let Some(offered) = &info.offered {
            out.line("")?;
            out.line("what is offered differs from what is on record:")?;
            changes(info, out)?;
            out.line(&format!(
                "to take it: syscap tools accept {} {}={}",
                self.home.display(),
                self.tool,
                offered.id()
            ))?;
        }
        Ok(Exit::Done)
    }
}

/// The lines in which what is offered differs.
pub(super) fn changes(info: &ToolInfo, out: &mut Out) -> Result<(), Failure> {
    let Some(offered) = &info.offered else { return Ok(()) };
    let (old, new) = (lines(&info.manifest), lines(offered));
    for line in between(&old, &new).iter().filter(|line| !matches!(line, Line::Both(_))) {
        out.text(&line.marked())?;
    }
    let (mut same, on_record) = (offered.clone(), &info.manifest);
    same.definition = on_record.definition;
    if same == *on_record {
        out.text(
            "only the definition's hash differs: it changed where a manifest does not show it",
        )?;
    }
    Ok(())
}

pub(super) fn json(info: &ToolInfo) -> Object {
    let list = |lines: Vec<String>| array(lines.iter().map(|line| quote(line)));
    let object = brief(info).json("on_record", &list(lines(&info.manifest)));
    let Some(offered) = &info.offered else {
        return object.json("offered", "null").json("offered_manifest", "null");
    };
    let (old, new) = (lines(&info.manifest), lines(offered));
    let changes = between(&old, &new);
    let changes = changes.iter().filter(|line| !matches!(line, Line::Both(_)));
    object
        .json("offered", &list(lines(offered)))
        .shown("offered_manifest", offered.id())
        .json("changes", &list(changes.map(Line::marked).collect()))
}
