//! An agent's own resume, `agents/ID/resume.json` beneath the base, which the console's page keeps as its
//! token is.

use std::path::{Path, PathBuf};

use syscap::Home;
use syscap::format::AgentId;
use syscap::resume::Resume;

use super::{Unused, export::Export, place::Place};
use crate::exit::Failure;
use crate::output::{Object, Out};
use crate::runtime;
use crate::token::{TokenName, now};

/// Where it lies, if there is one. A link in its place is one too, and is not followed.
fn of(home: &Path, agent: &AgentId) -> Result<Option<PathBuf>, Failure> {
    let folder = agent.as_str().replace('/', "+");
    let file = Home::at(home).base()?.join("agents").join(folder).join("resume.json");
    Ok(file.symlink_metadata().is_ok().then_some(file))
}

/// Why it is of no use: `import` would skip it.
fn fault(file: &Path, agent: &AgentId) -> Option<Unused> {
    let read = || -> Result<(), Unused> {
        let found = Place::of(file)?.read(Resume::BYTES_MAX)?;
        let resume = Resume::read(&found.bytes)?;
        resume.agent()?;
        Ok(resume.compile(agent, &[], &[]).map(drop)?)
    };
    read().err()
}

/// Where it lies, and why it is of no use, for the page.
pub(crate) fn json(home: &Path, agent: &AgentId) -> Result<Option<String>, Failure> {
    let Some(file) = of(home, agent)? else { return Ok(None) };
    let object = Object::new().shown("file", file.display());
    let fault = fault(&file, agent);
    Ok(Some(fault.iter().fold(object, |it, why| it.shown("warning", why)).finish()))
}

/// Writes into it what the agent's newest token grants, once that has changed; what came of it, in
/// words. What can't be written is left as it is.
pub(crate) fn follow(home: &Path, agent: &AgentId) -> Result<Option<String>, Failure> {
    let Some(file) = of(home, agent)? else { return Ok(None) };
    let left = |why: String| format!("its resume is left as it is: {why}");
    if let Some(fault) = fault(&file, agent) {
        return Ok(Some(left(fault.to_string())));
    }
    let log = runtime::look(home)?;
    let (view, at) = (log.view(), now(log.kernel().now()));
    let live = view.tokens.iter().find(|token| token.agent == *agent && token.is_live(at));
    let name = live.and_then(|token| TokenName::parse(&token.id.to_string()).ok());
    let export = Export::to(home, agent, name, &file);
    let written = Out::lines(|out| export.run(out).map(drop));
    Ok(Some(written.map_or_else(|failure| left(failure.to_string()), |lines| lines.join("; "))))
}
