//! `syscap resume export`.

use std::path::{Path, PathBuf};

use clap::Args;
use syscap::format::{AgentId, Grants, Manifest, TokenId, ToolId};
use syscap::resume::{Resume, Written};

use super::{Unused, place::Place, unusable};
use crate::exit::{Ended, Exit, Failure, tell};
use crate::output::{Form, Object, Out, array, quote};
use crate::token::{TokenName, now};
use crate::{parse, runtime};

/// Which token, and where to.
#[derive(Args, Debug)]
#[command(after_long_help = "\
With FILE, that resume is written anew where something changes: `permissions.tools`, `.file_access`
and `.send_outboxes` become what the token grants, and every other byte stays. No link is followed
on the way to it: an agent may have made it. Without FILE a new resume is printed. What a resume
can't say of a token is told; where what it can say would give a tool more than the token does,
nothing is written.")]
pub(crate) struct Export {
    /// The home.
    home: PathBuf,
    /// Whose token.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: AgentId,
    /// Which one; without this the newest that can be used.
    #[arg(long, value_name = "ID", value_parser = TokenName::parse)]
    token: Option<TokenName>,
    /// The resume to write to, which is there.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// The contents to write.
struct Granted {
    token: TokenId,
    grants: Grants,
    tools: Vec<Manifest>,
}

impl Export {
    /// To the resume of an agent that is there.
    pub(super) fn to(home: &Path, agent: &AgentId, token: Option<TokenName>, file: &Path) -> Self {
        let (home, file) = (home.to_path_buf(), Some(file.to_path_buf()));
        Self { home, agent: agent.clone(), token, file }
    }

    pub(super) fn run(self, out: &mut Out) -> Ended {
        let granted = self.granted()?;
        let less = match &self.file {
            Some(file) => self.update(file, &granted, out)?,
            None => self.fresh(&granted, out)?,
        };
        out.flush()?;
        for tool in &less {
            tell(&format!("the token gives {tool} more than a resume can say"));
        }
        Ok(Exit::Done)
    }

    /// The token's grants, and the home's tools.
    fn granted(&self) -> Result<Granted, Failure> {
        let log = runtime::look(&self.home)?;
        let (kernel, view) = (log.kernel(), log.view());
        let now = now(kernel.now());
        let mut own = view.tokens.iter().filter(|token| token.agent == self.agent);
        let mut newest = || own.find(|token| token.is_live(now) && !token.tools.is_empty());
        let found = TokenName::of_any(self.token.as_ref(), &self.home)?
            .or_else(|| newest().map(|token| token.id));
        let usage = |what: String, advice: &str| Failure::Usage { what, advice: advice.to_owned() };
        let lacks = "has no token that can be used; see `syscap token list`, and --token";
        let id = found.ok_or_else(|| usage(self.agent.to_string(), lacks))?;
        let token = kernel.token(&id).ok_or_else(|| Failure::unknown(id, &self.home))?;
        if token.body.agent != self.agent {
            return Err(usage(id.to_string(), "is another agent's; see `syscap token list`"));
        }
        let tools = kernel.manifests().cloned().collect();
        Ok(Granted { token: id, grants: token.body.grants.clone(), tools })
    }

    /// Prints a new resume.
    fn fresh(&self, granted: &Granted, out: &mut Out) -> Result<Vec<ToolId>, Failure> {
        let fresh = Resume::new(&self.agent).map_err(Unused::from);
        let fresh = fresh.and_then(|fresh| self.written(&fresh, granted));
        let written = fresh.map_err(|why| unusable(&self.home, &why))?;
        let lines = written.resume.text().lines();
        match out.form() {
            Form::Text => lines.into_iter().try_for_each(|line| out.line(line))?,
            // It is JSON in any case: one line of it. No text in it has a line's end.
            Form::Json => out.line(&lines.map(str::trim).collect::<Vec<_>>().join(" "))?,
        }
        Ok(written.less)
    }

    /// Writes to the resume that is there.
    fn update(
        &self,
        file: &Path,
        granted: &Granted,
        out: &mut Out,
    ) -> Result<Vec<ToolId>, Failure> {
        let unusable = |why: Unused| unusable(file, &why);
        let place = Place::of(file).map_err(|error| unusable(error.into()))?;
        let found = place.read(Resume::BYTES_MAX).map_err(|error| unusable(error.into()))?;
        let old = Resume::read(&found.bytes).map_err(|error| unusable(error.into()))?;
        let written = self.written(&old, granted).map_err(unusable)?;
        let changed = old.text() != written.resume.text();
        if changed {
            let text = written.resume.text().as_bytes();
            place.replace(&found, text).map_err(Failure::file(file))?;
        }
        let less = array(written.less.iter().map(|tool| quote(tool.as_str())));
        let object = Object::new()
            .shown("file", file.display())
            .shown("agent", &self.agent)
            .shown("token_id", granted.token)
            .flag("changed", changed)
            .json("less", &less);
        let what = if changed { "written" } else { "unchanged" };
        out.both(&format!("{what}  {}", file.display()), object)?;
        Ok(written.less)
    }

    fn written(&self, old: &Resume, granted: &Granted) -> Result<Written, Unused> {
        Ok(old.with(&self.agent, &granted.grants, &granted.tools)?)
    }
}
