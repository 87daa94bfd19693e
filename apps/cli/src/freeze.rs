//! `syscap freeze` and `syscap thaw`: stops calls for now, and lets them go on.

use std::path::{Path, PathBuf};

use clap::Args;
use syscap::Beside;
use syscap::format::{
    AgentId, Freeze as Change, FreezeBecause, FreezeChange, FreezeTarget, Role, Seq, ToolId,
};

use crate::exit::{Ended, Exit, Failure, tell};
use crate::output::{Object, Out};
use crate::{parse, runtime, signing};

/// The target to stop or to resume.
#[derive(Args, Debug)]
#[command(after_long_help = "\
What is frozen is refused, on the record; what runs already goes on, and its result is marked.
Each freeze ends by a thaw of the same: a thaw of one agent does not end a freeze of all.")]
pub(crate) struct Frozen {
    /// The home.
    home: PathBuf,
    #[command(flatten)]
    what: What,
    /// Why: on record as a commitment, the text in the vault. The stop does not wait for it.
    #[arg(long, value_name = "TEXT")]
    because: Option<String>,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct What {
    /// An agent, and all below it.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: Option<AgentId>,
    /// A tool, by its own id.
    #[arg(long, value_name = "TOOL", value_parser = parse::tool)]
    tool: Option<ToolId>,
    /// Every call.
    #[arg(long)]
    all: bool,
}

impl Frozen {
    /// Records the reason, in a second event of the same: a cause never delays a stop, which any server
    /// takes and a server of an older version takes without one.
    fn record_why(&self, change: &Change, why: &str) -> Result<Seq, Failure> {
        let role = match change.change {
            FreezeChange::Freeze => Role::Revoker,
            FreezeChange::Thaw => {
                runtime::look(&self.home)?.kernel().limits().thaws.unwrap_or(Role::Revoker)
            }
        };
        let person = signing::own(&self.home, role)?;
        let why = signing::salted::<FreezeBecause>(why)?;
        let body = FreezeBecause::new(change.clone(), why.hash());
        runtime::with(&self.home, |access| {
            person.submit(access, |_| Ok(body.clone()), &Beside::Why(why.clone()), Failure::from)
        })
    }

    pub(crate) fn run(self, change: FreezeChange, out: &mut Out) -> Ended {
        let (target, name) = match (&self.what.agent, &self.what.tool) {
            (Some(agent), _) => (FreezeTarget::Agent, agent.as_str()),
            (None, Some(tool)) => (FreezeTarget::Tool, tool.as_str()),
            (None, None) => (FreezeTarget::Kernel, ""),
        };
        let change = Change { target, name: Box::from(name), change };
        let seq =
            record(&self.home, &change).map_err(|failure| match (failure, &self.what.tool) {
                (Failure::Refused(refused), Some(tool)) => {
                    let own = "a tool's own id, as `syscap tools list` has it";
                    Failure::Refused(refused.got(tool).allowed(&own))
                }
                (failure, _) => failure,
            })?;
        let json = Object::new()
            .text("change", change.change.name())
            .text("target", target.name())
            .text("name", name)
            .uint("record", seq.get());
        let done = match change.change {
            FreezeChange::Freeze => "frozen",
            FreezeChange::Thaw => "thawed",
        };
        let why = self.because.as_deref().map(|why| self.record_why(&change, why));
        let (text, json) = match &why {
            Some(Ok(why)) => (format!(", the reason by record {why}"), json.uint("why", why.get())),
            Some(Err(_)) | None => (String::new(), json),
        };
        out.both(&format!("{done} by record {seq}{text}"), json)?;
        out.flush()?;
        if let Some(Err(failure)) = why {
            tell(&format!("the reason is not on record: {failure}"));
        }
        if let Some(doubt) = self.doubt(change.change) {
            tell(&doubt);
        }
        Ok(Exit::Done)
    }

    /// A warning about a probable mistake: printed afterwards, since a stop must not wait, and only
    /// if the log can be read.
    fn doubt(&self, change: FreezeChange) -> Option<String> {
        let log = runtime::look(&self.home).ok()?;
        let kernel = log.kernel();
        if change == FreezeChange::Thaw {
            let still = kernel.frozen();
            let all: Vec<String> = still.iter().map(named).collect();
            return (!all.is_empty()).then(|| format!("still frozen: {}", all.join(", ")));
        }
        let agent = self.what.agent.as_ref()?;
        let known = kernel.tokens().any(|token| token.body.agent.is_within(agent));
        (!known).then(|| format!("no token names {agent} or an agent below it: was another meant?"))
    }
}

/// Records it. The server signs a freeze, so that a program of any version can stop the home; to resume
/// may take a person, as the home was made.
pub(crate) fn record(home: &Path, change: &Change) -> Result<Seq, Failure> {
    let thaws = change.change == FreezeChange::Thaw;
    if thaws && signing::is_sealed(home, Role::Operator)? {
        let limits = runtime::look(home)?.kernel().limits().clone();
        if limits.thaws == Some(Role::Operator) {
            let person = signing::own(home, Role::Operator)?;
            return runtime::with(home, |access| {
                person.submit(access, |_| Ok(change.clone()), &Beside::Nothing, Failure::from)
            });
        }
    }
    runtime::operate(home, |operator| operator.freeze(change))
}

/// The frozen target, in words.
pub(crate) fn named(frozen: &Change) -> String {
    match frozen.target {
        FreezeTarget::Kernel => "all calls".to_owned(),
        FreezeTarget::Agent => format!("agent {}", frozen.name),
        FreezeTarget::Tool => format!("tool {}", frozen.name),
    }
}
